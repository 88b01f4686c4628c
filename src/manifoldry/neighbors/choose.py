"""Choice of the neighbor index for data and metric; the index for general metrics."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.device import Device, current_device
from manifoldry.neighbors.approximate import ApproximateIndex
from manifoldry.neighbors.base import (
    SLACK,
    Edges,
    NeighborIndex,
    PointIndex,
    gather,
    smallest_entries,
)
from manifoldry.neighbors.brute import BruteIndex, CosineIndex, scaled_rows
from manifoldry.neighbors.distances import check_takes_sparse, metric_distances
from manifoldry.neighbors.kdtree import KDTreeIndex
from manifoldry.util.array_like import array_like, check_not_stacked
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class GeneralIndex(PointIndex):
    """Brute-force search for arbitrary metrics.

    Trees would be faster, but they are wrong if the triangle inequality does not hold, as for some
    named dissimilarities and many callables.
    """

    X: Matrix
    metric: Any
    reason: str
    metric_params: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        indices, distances = np.empty((X.shape[0], k), dtype=np.intp), np.empty((X.shape[0], k))
        for block, D in self._blocks(X):
            indices[block], distances[block] = smallest_entries(D, k)
        return indices, distances

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        radii = np.asarray(radius, dtype=np.float64)
        found = []
        for block, D in self._blocks(X):
            query, reference = np.nonzero(radii * SLACK >= D)
            found.append((query + block.start, reference, D[query, reference]))
        return gather(found, X.shape[0])

    def distances_between(self, i: IntArray, j: IntArray) -> Array:
        out = np.empty(len(i))
        order = np.argsort(i, kind="stable")
        starts = np.flatnonzero(np.diff(i[order])) + 1
        for pairs in np.split(order, starts) if len(i) else []:
            out[pairs] = self._all_pairs(self.X[i[pairs[:1]]], self.X[j[pairs]])[0]
        return out

    def _blocks(self, X: Matrix) -> Iterator[tuple[slice, Array]]:
        for block in row_blocks(X.shape[0], self.n_reference, budget=2**22):
            yield block, self._all_pairs(X[block], self.X, self.n_jobs, block.start)

    def _all_pairs(
        self, X: Matrix, Y: Matrix, n_jobs: int | None = None, first_row: int = 0
    ) -> Array:
        return metric_distances(X, Y, self.metric, self.metric_params, n_jobs, first_row)


# Exact searches of up to so many pairs times features take seconds.
EXACT_WORK = 1e11

_NORMS = {
    "euclidean": 2.0,
    "l2": 2.0,
    "manhattan": 1.0,
    "cityblock": 1.0,
    "l1": 1.0,
    "chebyshev": np.inf,
}


def choose_index(
    X: Matrix,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    search: str = "auto",
    *,
    tree_features: int = 12,
    exact_work: float = EXACT_WORK,
    device_work: float = 1e15,
) -> NeighborIndex:
    """Return the index for `X` and `metric`; its attribute ``reason`` explains the choice.

    Above `tree_features` features a k-d tree visits most of its leaves, and matrix products are
    faster. Up to `exact_work` (pairs times features) they take seconds. Above it, where they would
    take minutes or hours, the search is approximate.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The reference points.
    metric : str or callable, default="euclidean"
        The metric, as in :class:`sklearn.neighbors.NearestNeighbors`.
    metric_params : dict, default=None
        Additional keyword arguments of the metric.
    n_jobs : int, default=None
        Number of threads; None or -1 means one per core.
    search : {"auto", "exact", "approximate"}, default="auto"
        Whether the search among the reference points themselves may be approximate.
    tree_features : int, default=12
        Number of features up to which a k-d tree is used.
    exact_work : float, default=1e11
        Number of pairs times features above which ``"auto"`` is approximate.
    device_work : float, default=1e15
        The same on a device.

    Returns
    -------
    NeighborIndex
        The index.

    See Also
    --------
    NeighborIndex : what can be searched for.
    manifoldry.NeighborGraph : builds a graph with it.

    Examples
    --------
    >>> import numpy as np
    >>> choose_index(np.zeros((50, 3))).reason
    'k-d tree: 3 features, at most 12'
    >>> choose_index(np.zeros((50, 40))).reason
    'blocked matrix products: 40 features, more than 12'
    """
    check_option("search", search, ("auto", "exact", "approximate"))
    X = array_like(X)
    check_not_stacked(X)
    params = metric_params or {}
    p = _norm(metric, params)
    n_features = X.shape[1]
    if (device := current_device()) is not None:
        on_device = _on_device(device, X, metric, p, params, search, device_work)
        if on_device is not None:
            return on_device
    if search == "approximate":
        _check_approximate(X, metric, p, params)
    elif p is not None and n_features <= tree_features and not sparse.issparse(X):
        reason = f"k-d tree: {n_features} features, at most {tree_features}"
        return KDTreeIndex(X, reason, p)
    if p == 2 and sparse.issparse(X):
        return BruteIndex(X, "blocked matrix products: sparse features")
    if p == 2:
        return _many_features(X, search, tree_features, exact_work)
    if _is(metric, "cosine") and not params and sparse.issparse(X):
        return CosineIndex.of(X, "blocked matrix products on the unit sphere: metric='cosine'")
    if _is(metric, "cosine") and not params:
        sphere = _many_features(scaled_rows(X), search, tree_features, exact_work)
        return CosineIndex(sphere, X, f"{sphere.reason}, on the unit sphere: metric='cosine'")
    check_takes_sparse(metric, X)
    reason = f"all distances in blocks: metric={metric!r} has no faster search"
    return GeneralIndex(X, metric, reason, params, n_jobs)


def _on_device(
    device: Device,
    X: Matrix,
    metric: Any,
    p: float | None,
    params: dict[str, Any],
    search: str,
    most: float,
) -> NeighborIndex | None:
    """The index that searches on a device; None for data and metrics that only the CPU takes."""
    cosine = _is(metric, "cosine") and not params
    if sparse.issparse(X):
        why = "the data are sparse; pass X.toarray()"
    elif not (p == 2 or cosine):
        why = f"metric={metric!r} is neither euclidean nor cosine"
    else:
        points = scaled_rows(X) if cosine else X
        index = _all_or_nearby(device, points, search, most)
        return CosineIndex(index, X, index.reason) if cosine else index
    device.runs_on_host("the neighbor search", why)
    return None


def _all_or_nearby(device: Device, X: Matrix, search: str, most: float) -> BruteIndex:
    work = float(X.shape[0]) ** 2 * X.shape[1]
    why_approximate = work > most and f"exact takes {work:.0e} products"
    why = {"approximate": "as requested", "auto": why_approximate}.get(search)
    if why:
        reason = f"nearby cells on {device.description}: {why}"
        return ApproximateIndex(X, reason, max_work=most)
    return BruteIndex(X, f"all pairs on {device.description}")


def _check_approximate(X: Matrix, metric: Any, p: float | None, params: dict[str, Any]) -> None:
    euclidean_or_cosine = p == 2 or (_is(metric, "cosine") and not params)
    if sparse.issparse(X) or not euclidean_or_cosine:
        what = "sparse data" if sparse.issparse(X) else f"metric={metric!r}"
        raise ValueError(
            "search='approximate' requires dense data and metric='euclidean' or 'cosine', not "
            f"{what}; pass search='auto'"
        )


def _many_features(X: Matrix, search: str, tree_features: int, exact_work: float) -> BruteIndex:
    n, n_features = X.shape
    work = float(n) ** 2 * n_features
    why_approximate = work > exact_work and f"exact takes {work:.0e} products"
    why = {"approximate": "as requested", "auto": why_approximate}.get(search)
    if why:
        return ApproximateIndex(X, f"nearby cells: {n_features} features, {why}")
    more = f"more than {tree_features}" if n_features > tree_features else "all pairs"
    return BruteIndex(X, f"blocked matrix products: {n_features} features, {more}")


def _is(metric: Any, name: str) -> bool:
    return isinstance(metric, str) and metric == name


def _norm(metric: Any, params: dict[str, Any]) -> float | None:
    """The p of a Minkowski metric with p ≥ 1, else None."""
    if _is(metric, "minkowski") and set(params) <= {"p"}:
        p = params.get("p", 2.0)
        return float(p) if p >= 1 else None
    return _NORMS.get(metric) if isinstance(metric, str) and not params else None
