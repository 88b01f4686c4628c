"""Copies of an estimator, fitted on parts of the data."""

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

from manifoldry.exceptions import ManifoldryWarning
from manifoldry.util.progress import progress
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import check_square, refuse_masked
from manifoldry.util.warn import warn


@dataclass(frozen=True, eq=False)
class SubsetFitter:
    """Fits copies of an estimator on chosen rows of the data.

    Maps have a row for every row of the data, NaN where a point is not on the map.
    """

    estimator: Any
    X: Any
    n: int
    pairwise: bool  # X holds distances or the like: its columns are points as well
    threads: int | None  # for estimators that have n_jobs; None leaves it to them

    @classmethod
    def of(cls, estimator: Any, X: Any, n_jobs: int | None) -> SubsetFitter:
        """Check what can be checked before the first fit."""
        _check_estimator(estimator)
        X, pairwise = _as_indexable(X), _is_pairwise(estimator)
        if pairwise:
            X = X if sparse.issparse(X) else np.atleast_2d(np.asarray(X))
            check_square(X, "values")
        return cls(estimator, X, _num_samples(X), pairwise, _threads_per_fit(n_jobs))

    def fit(self, rows: IntArray, seed: int) -> SubsetFit:
        """Fit a copy on some rows."""
        rows = np.sort(rows)
        model = _clone_with_seed(self.estimator, seed, self.threads)
        found = model.fit_transform(self._subset(rows, rows))
        return SubsetFit(self, model, rows, self._expand_to_all_rows(found, rows))

    def transform(self, model: Any, fitted: IntArray, rows: IntArray) -> Array:
        """Let a model fitted on some rows place others."""
        return self._expand_to_all_rows(model.transform(self._subset(rows, fitted)), rows)

    def _subset(self, rows: IntArray, columns: IntArray) -> Any:
        return self.X[np.ix_(rows, columns)] if self.pairwise else _safe_indexing(self.X, rows)

    def _expand_to_all_rows(self, found: Any, rows: IntArray) -> Array:
        Y = np.asarray(found)
        if Y.ndim != 2 or len(Y) != len(rows) or Y.dtype.kind not in "fiu":
            raise ValueError(
                f"{type(self.estimator).__name__} made {type(found).__name__} of shape {Y.shape} "
                f"of {len(rows)} rows; a map has a row of numbers for each"
            )
        whole = np.full((self.n, Y.shape[1]), np.nan)
        whole[rows] = np.where(np.isfinite(Y).all(axis=1, keepdims=True), Y, np.nan)
        return whole


@dataclass(frozen=True, eq=False)
class SubsetFit:
    """A copy fitted on some rows, and their map."""

    fitter: SubsetFitter
    model: Any
    rows: IntArray
    embedding: Array

    @property
    def has_transform(self) -> bool:
        """Whether the estimator takes new points at all."""
        return hasattr(self.model, "transform")

    def transform(self, rows: IntArray) -> Array:
        """Where rows that the copy was not fitted on belong on its map."""
        return self.fitter.transform(self.model, self.rows, rows)


def _check_estimator(estimator: Any) -> None:
    missing = [name for name in ("fit_transform", "get_params") if not hasattr(estimator, name)]
    if missing or isinstance(estimator, type):
        raise TypeError(
            f"estimator={estimator!r} must be an unfitted or fitted scikit-learn estimator with "
            "fit_transform, such as PCA(); copies of it are fitted"
        )


def _as_indexable(X: Any) -> Any:
    """Data whose rows can be chosen."""
    refuse_masked(X)
    if not (hasattr(X, "__len__") or hasattr(X, "shape")):
        raise TypeError(f"X is a {type(X).__name__}; pass data, of which parts can be taken")
    if sparse.issparse(X):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)


def _is_pairwise(estimator: Any) -> bool:
    tagged = hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).input_tags.pairwise
    return bool(tagged) or getattr(estimator, "metric", None) == "precomputed"


def _threads_per_fit(n_jobs: int | None) -> int | None:
    """Threads that a fit may use where several run at once."""
    from joblib import cpu_count, effective_n_jobs  # type: ignore[import-untyped]  # it ships no types

    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} must be a positive number of processes, -1 for all")
    workers = effective_n_jobs(n_jobs)
    return max(1, cpu_count() // workers) if workers > 1 else None


def _clone_with_seed(estimator: Any, seed: int, threads: int | None) -> Any:
    """A copy with a seed of its own, where the user gave none, and its fraction of the cores."""
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
    """What a task returned, or why it did not, and the warnings on the way."""

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
    """Outcomes of a task for all jobs, in their order, by several processes."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]  # it ships no types

    done = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_run_task)(task, job) for job in jobs
    )
    return progress(done, total, what, verbose)


def _run_task(task: Callable[..., Any], job: tuple[Any, ...]) -> TaskResult:
    # One thread of BLAS whatever n_jobs: more processes would compete for the cores, and sums in
    # another order are other numbers, which chaotic methods such as t-SNE make visible.
    with one_blas_thread(), _record_warnings() as seen:
        try:
            result = TaskResult(task(*job))
        except Exception as error:
            result = TaskResult(error=describe_error(error))
    return replace(result, warnings=frozenset((w.category, str(w.message)) for w in seen))


@contextmanager
def _record_warnings() -> Iterator[list[Any]]:
    """Collect warnings, which would otherwise come once per fit; not where threads share them."""
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for meant_for_others in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", meant_for_others)
        yield seen


def describe_error(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"


def report_failures(results: list[TaskResult], what: str = "refits") -> tuple[str, ...]:
    """Pass on what went wrong, each thing once; refuse results of which most are missing."""
    total, failures = len(results), tuple(result.error for result in results if result.error)
    if 2 * len(failures) > total:
        raise RuntimeError(
            f"{len(failures)} of {total} {what} failed, too many to say anything; the first: "
            f"{failures[0]}. Settings that suit all the data may ask too much of a part of them"
        )
    if failures:
        warn(
            f"{len(failures)} of {total} {what} failed and are left out; the first: {failures[0]}",
            ManifoldryWarning,
        )
    counts = Counter(category for o in results for category in {c for c, _ in o.warnings})
    first = {c: text for o in reversed(results) for c, text in sorted(o.warnings, key=str)}
    for category, count in counts.items():
        warn(f"in {count} of {total} {what}: {first[category]}", category)
    return failures
