"""Fits of an estimator to subsets of the data, run in parallel, with errors collected."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples

from manifoldry.device import say_on_cpu
from manifoldry.exceptions import DominatedCoordinateWarning, ManifoldryWarning, warn
from manifoldry.util.progress import progress
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import check_square, numeric


@dataclass(frozen=True, eq=False)
class SubsetFitter:
    """Fits clones of an estimator to subsets of the rows of the data.

    Embeddings have a row for every row of the data, NaN for points that were not embedded.
    """

    estimator: Any
    X: Any
    n: int
    pairwise: bool  # whether X is a matrix of distances or a kernel, so its columns are points
    threads: int | None  # n_jobs of the clones; None keeps the estimator's own

    @classmethod
    def of(cls, estimator: Any, X: Any, n_jobs: int | None) -> SubsetFitter:
        """Validate the estimator and the data."""
        _check_estimator(estimator)
        X, pairwise = _as_indexable(X), _is_pairwise(estimator)
        if pairwise:
            X = X if sparse.issparse(X) else np.atleast_2d(np.asarray(X))
            check_square(X, "values")
        return cls(estimator, X, _num_samples(X), pairwise, _threads_per_fit(n_jobs))

    def fit(self, rows: IntArray, seed: int) -> SubsetFit:
        """Fit a clone to some rows."""
        rows = np.sort(rows)
        model = _clone_with_seed(self.estimator, seed, self.threads)
        found = model.fit_transform(self._subset(rows, rows))
        return SubsetFit(self, model, rows, self._expand_to_all_rows(found, rows))

    def transform(self, model: Any, fitted: IntArray, rows: IntArray) -> Array:
        """Transform `rows` with a model that was fitted to the rows `fitted`."""
        return self._expand_to_all_rows(model.transform(self._subset(rows, fitted)), rows)

    def _subset(self, rows: IntArray, columns: IntArray) -> Any:
        return self.X[np.ix_(rows, columns)] if self.pairwise else _safe_indexing(self.X, rows)

    def _expand_to_all_rows(self, found: Any, rows: IntArray) -> Array:
        Y = np.asarray(found)
        if Y.ndim != 2 or len(Y) != len(rows) or Y.dtype.kind not in "fiu":
            raise ValueError(
                f"{type(self.estimator).__name__} returned {type(found).__name__} of shape "
                f"{Y.shape} for {len(rows)} rows; an embedding must be numeric, of shape "
                f"({len(rows)}, n_components)"
            )
        whole = np.full((self.n, Y.shape[1]), np.nan)
        whole[rows] = np.where(np.isfinite(Y).all(axis=1, keepdims=True), Y, np.nan)
        return whole


@dataclass(frozen=True, eq=False)
class SubsetFit:
    """A clone fitted to some rows, and their embedding."""

    fitter: SubsetFitter
    model: Any
    rows: IntArray
    embedding: Array

    @property
    def has_transform(self) -> bool:
        """Whether the estimator can embed new points."""
        return hasattr(self.model, "transform")

    def transform(self, rows: IntArray) -> Array:
        """Embed rows that the clone was not fitted to."""
        return self.fitter.transform(self.model, self.rows, rows)


def _check_estimator(estimator: Any) -> None:
    missing = [name for name in ("fit_transform", "get_params") if not hasattr(estimator, name)]
    if missing or isinstance(estimator, type):
        raise TypeError(
            f"estimator={estimator!r} must be an unfitted or fitted scikit-learn estimator with "
            "fit_transform and get_params, such as PCA()"
        )


def _as_indexable(X: Any) -> Any:
    """Data that support selecting rows."""
    if X is None:
        raise TypeError("X is None; pass data whose rows can be selected, such as an array")
    X = numeric(X, "X")
    if sparse.issparse(X):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)


def _is_pairwise(estimator: Any) -> bool:
    tagged = hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).input_tags.pairwise
    return bool(tagged) or getattr(estimator, "metric", None) == "precomputed"


def _threads_per_fit(n_jobs: int | None) -> int | None:
    """Threads that each of several simultaneous fits may use; None if there is one."""
    from joblib import cpu_count, effective_n_jobs  # type: ignore[import-untyped]  # it ships no types

    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs={n_jobs!r} must be a nonzero integer or None; pass -1 to use all cores"
        )
    workers = effective_n_jobs(n_jobs)
    return max(1, cpu_count() // workers) if workers > 1 else None


def _clone_with_seed(estimator: Any, seed: int, threads: int | None) -> Any:
    """A clone with this seed, unless the estimator has one, and this number of threads."""
    model = clone(estimator)
    settings: dict[str, Any] = {}
    for name, value in model.get_params().items():
        last = name.rsplit("__", 1)[-1]
        if last == "random_state" and not isinstance(value, Integral):
            settings[name] = seed
        elif last == "n_jobs" and value is not None and threads is not None:
            settings[name] = threads
    return model.set_params(**settings) if settings else model


@dataclass(frozen=True)
class TaskResult:
    """Return value of a task, or its error message, and the warnings it raised."""

    value: Any = None
    error: str = ""
    warnings: frozenset[tuple[type[Warning], str]] = frozenset()


def run_tasks(
    task: Callable[..., Any],
    jobs: Iterable[tuple[Any, ...]],
    total: int,
    n_jobs: int | None,
    verbose: bool,
    what: str = "refits",
) -> Iterator[TaskResult]:
    """Run a task for all jobs in several processes and yield the results in order."""
    from joblib import Parallel, delayed

    if n_jobs not in (None, 1):
        say_on_cpu(what, "they run in several processes; pass n_jobs=1, or device to the estimator")
    done = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_run_task)(task, job) for job in jobs
    )
    return progress(done, total, what, verbose)


def _run_task(task: Callable[..., Any], job: tuple[Any, ...]) -> TaskResult:
    # One BLAS thread for any n_jobs: more would compete for the cores and change the order of
    # summation, and methods such as t-SNE amplify the different rounding errors.
    with one_blas_thread(), _record_warnings() as seen:
        try:
            result = TaskResult(task(*job))
        except Exception as error:
            result = TaskResult(error=describe_error(error))
    return replace(result, warnings=frozenset((w.category, str(w.message)) for w in seen))


@contextmanager
def _record_warnings() -> Iterator[list[Any]]:
    """Collect warnings, except in worker threads, where warning filters are shared."""
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        # The rows that a refit names are those of its subset; the fit to all rows names them.
        ignored = DeprecationWarning, PendingDeprecationWarning, DominatedCoordinateWarning
        for category in ignored:
            warnings.simplefilter("ignore", category)
        yield seen


def describe_error(error: Exception) -> str:
    """Type and message of an error."""
    return f"{type(error).__name__}: {error}"


def report_failures(results: list[TaskResult], what: str = "refits") -> tuple[str, ...]:
    """Issue each kind of warning once; raise an error if more than half of the tasks failed."""
    total, failures = len(results), tuple(result.error for result in results if result.error)
    if 2 * len(failures) > total:
        raise RuntimeError(
            f"{len(failures)} of {total} {what} failed, at most half may; the first error: "
            f"{failures[0]}. Check that the parameters also suit a subset of the data"
        )
    if failures:
        warn(
            f"{len(failures)} of {total} {what} failed and are ignored; the first error: "
            f"{failures[0]}",
            ManifoldryWarning,
        )
    counts = Counter(category for o in results for category in {c for c, _ in o.warnings})
    first = {c: text for o in reversed(results) for c, text in sorted(o.warnings, key=str)}
    for category, count in counts.items():
        warn(f"in {count} of {total} {what}: {first[category]}", category)
    return failures
