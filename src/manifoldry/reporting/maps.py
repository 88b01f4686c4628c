"""Maps by several methods, each with the evidence for and against it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifoldry.exceptions import DominatedCoordinateWarning, ManifoldryWarning, ignoring
from manifoldry.methods.catalog import USUAL_METHODS, Method, find_method
from manifoldry.methods.choice import metric_of, suited_to_size
from manifoldry.metrics import assess, procrustes, stability, unpredictability
from manifoldry.metrics.assess import Assessment
from manifoldry.metrics.stability import Stability
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class MethodMap:
    """One method: its map with evidence, or the error.

    Parameters
    ----------
    name : str
        Name in headings.
    method : str or None
        Name on the command line; None for an estimator that was passed.
    estimator : estimator
        Before the fit.
    embedding : array of shape (n, n_components) or None
        The map as the method gives it; None if it failed.
    aligned : array of shape (n, n_components) or None
        The map moved, turned and scaled to match the first one, for drawing.
    assessment, stability : Assessment, Stability or None
        The evidence; None if there is none.
    trust : array of shape (n,)
        Trustworthiness of each row.
    redundancy : tuple of float
        Unpredictability of each coordinate of a spectral method; empty for others.
    messages : tuple of str
        Warnings of the fit and of the evidence.
    error : str
        Why the method failed; empty if it did not.
    seconds : float
        Of the fit.
    """

    name: str
    method: str | None
    estimator: Any
    embedding: Array | None = None
    aligned: Array | None = None
    assessment: Assessment | None = None
    stability: Stability | None = None
    trust: Array = field(default_factory=lambda: np.empty(0))
    redundancy: tuple[float, ...] = ()
    messages: tuple[str, ...] = ()
    error: str = ""
    seconds: float = 0.0

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the assessment."""
        return {} if self.assessment is None else dict(self.assessment.metrics)


@dataclass(frozen=True)
class MapOptions:
    """How maps are made and judged.

    Parameters
    ----------
    n_components, seed, n_jobs
        As for the estimators.
    n_refits : int
        Refits for the stability of each map; none if 0.
    most_refit : int
        Rows of the sample that is refitted.
    """

    n_components: int = 2
    seed: int = 0
    n_jobs: int | None = None
    n_refits: int = 5
    most_refit: int = 500


def named_estimators(
    methods: Sequence[Any] | None, n: int, options: MapOptions, note: Callable[[str], None]
) -> list[tuple[str, str | None, Any]]:
    """Heading, name on the command line, and estimator of each method."""
    found: dict[str, tuple[str, str | None, Any]] = {}
    if isinstance(methods, str):
        methods = [methods]
    for each in USUAL_METHODS if methods is None else methods:
        if isinstance(each, str):
            method: Method = find_method(each)
            made = method.estimator(options.n_components, options.seed, options.n_jobs)
            made = suited_to_size(made, n, note)
            found[method.title] = (method.title, method.name, made)
        elif hasattr(each, "fit_transform") and hasattr(each, "get_params"):
            name = type(each).__name__
            count = sum(type(known).__name__ == name for _, _, known in found.values())
            name = f"{name} {count + 1}" if count else name
            found[name] = (name, None, each)
        else:
            raise TypeError(
                f"methods has {each!r}; pass names of methods, such as 'isomap', or estimators"
            )
    if not found:
        raise ValueError("methods is empty; name at least one, or pass None for the usual ones")
    return list(found.values())


def make_map(
    name: str, method: str | None, estimator: Any, X: Any, labels: Any, options: MapOptions
) -> MethodMap:
    """Fit a method and collect the evidence; an error of the fit is part of the result."""
    from sklearn.base import clone

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        # It has row numbers of the sample; the page has the names of these rows.
        warnings.simplefilter("ignore", DominatedCoordinateWarning)
        start = time.perf_counter()
        try:
            model = clone(estimator)
            embedding = np.asarray(model.fit_transform(X), dtype=np.float64)
            seconds = time.perf_counter() - start
            found = assess(X, model if hasattr(model, "embedding_") else embedding, labels,
                           metric=metric_of(model), random_state=options.seed)  # fmt: skip
            trust = found.per_point["trustworthiness"]
        except Exception as error:  # another method may still succeed
            message = " ".join(str(error).split()) or type(error).__name__
            return MethodMap(name, method, estimator, error=message, messages=_texts(seen))
    redundancy: tuple[float, ...] = ()
    if "unpredictability" in found.metrics:
        redundancy = tuple(float(value) for value in unpredictability(embedding))
    return MethodMap(
        name, method, estimator, embedding, None, found, None, trust, redundancy, _texts(seen),
        "", seconds,
    )  # fmt: skip


def measure_stability(estimator: Any, X: Any, options: MapOptions) -> Stability | None:
    """Refits to parts of a sample; None if there are too few rows, or the refits fail."""
    if options.n_refits == 0:
        return None
    rows = sample_rows(X.shape[0], options.most_refit, options.seed)
    try:
        with warnings.catch_warnings(action="ignore"):
            return stability(estimator, X[rows], n_resamples=options.n_refits,
                             random_state=options.seed)  # fmt: skip
    except (ValueError, RuntimeError):
        return None


def sample_rows(n: int, most: int | None, seed: int) -> IntArray:
    """At most so many of n rows, at random, in their order."""
    if most is None or n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).permutation(n)[:most])


def aligned_with(reference: Array, embedding: Array) -> Array:
    """The embedding moved, turned and scaled to match the reference."""
    return np.asarray(procrustes(embedding, reference).aligned)


@dataclass(frozen=True)
class Region:
    """The part of a map where trustworthiness is lowest.

    `place` says where it is in the drawing; `rows` are its rows, least trustworthy first.
    """

    place: str
    trust: float
    rows: tuple[int, ...]


def worst_region(drawn: Array, trust: Array, n_neighbors: int = 15) -> Region | None:
    """The neighborhood in the map with the lowest mean trustworthiness."""
    placed = np.flatnonzero(np.isfinite(drawn).all(axis=1) & np.isfinite(trust))
    k = min(n_neighbors, len(placed) - 1)
    if k < 2:
        return None
    points = drawn[placed, :2]
    with ignoring(ManifoldryWarning):
        near = NeighborGraph.build(points, n_neighbors=k).indices.reshape(-1, k)
    around = np.column_stack([np.arange(len(placed)), near])
    means = trust[placed][around].mean(axis=1)
    worst = int(means.argmin())
    members = placed[around[worst]]
    members = members[np.argsort(trust[members], kind="stable")]
    return Region(_place(points, worst), float(means[worst]), tuple(int(i) for i in members))


def _place(points: Array, i: int) -> str:
    """Where a point is in the drawing, in words."""
    low, high = points.min(axis=0), points.max(axis=0)
    part = (points[i] - low) / np.where(high > low, high - low, 1.0)
    across = ("left", "", "right")[min(int(3 * part[0]), 2)]
    up = ("bottom", "", "top")[min(int(3 * part[-1]), 2)] if points.shape[1] > 1 else ""
    return " ".join(word for word in (up, across) if word) or "middle"


def _texts(seen: list[Any]) -> tuple[str, ...]:
    """Warnings as lines, each once."""
    return tuple(dict.fromkeys(" ".join(str(each.message).split()) for each in seen))
