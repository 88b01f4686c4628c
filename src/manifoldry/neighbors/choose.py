"""Choose the neighbour index for given data and metric, and say why."""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.neighbors.approximate import ApproximateIndex
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.brute import BruteIndex, CosineIndex, directions
from manifoldry.neighbors.general import GeneralIndex
from manifoldry.neighbors.kdtree import KDTreeIndex
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Matrix

_NORMS = {
    "euclidean": 2.0,
    "l2": 2.0,
    "manhattan": 1.0,
    "cityblock": 1.0,
    "l1": 1.0,
    "chebyshev": np.inf,
}
_SPARSE_METRICS = ("euclidean", "l2", "cosine", "manhattan", "cityblock", "l1")


def choose_index(
    X: Matrix,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    search: str = "auto",
    *,
    tree_features: int = 12,
    exact_work: float = 4e11,
) -> NeighborIndex:
    """Build the index that suits `X` and `metric`; its ``reason`` tells why.

    Beyond about a dozen features (`tree_features`) a k-d tree visits most of its leaves and a
    matrix product wins. Up to `exact_work`, all pairs times features, that takes seconds; not far
    above minutes or hours, and there an approximate search is chosen.

    Examples
    --------
    >>> import numpy as np
    >>> choose_index(np.zeros((50, 3))).reason
    'k-d tree: 3 features, at most 12'
    >>> choose_index(np.zeros((50, 40))).reason
    'blocked matrix products: 40 features, more than 12'
    """
    check_option("search", search, ("auto", "exact", "approximate"))
    params = metric_params or {}
    p = _norm(metric, params)
    n_features = X.shape[1]
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
        sphere = _many_features(directions(X), search, tree_features, exact_work)
        return CosineIndex(sphere, X, f"{sphere.reason}, on the unit sphere: metric='cosine'")
    _check_sparse(X, metric)
    reason = f"all distances in blocks: metric={metric!r} has no faster path here"
    return GeneralIndex(X, metric, reason, params, n_jobs)


def _check_approximate(X: Matrix, metric: Any, p: float | None, params: dict[str, Any]) -> None:
    euclidean_or_cosine = p == 2 or (_is(metric, "cosine") and not params)
    if sparse.issparse(X) or not euclidean_or_cosine:
        what = "sparse data" if sparse.issparse(X) else f"metric={metric!r}"
        raise ValueError(
            "search='approximate' takes dense data and metric='euclidean' or 'cosine', not "
            f"{what}; pass search='auto'"
        )


def _many_features(X: Matrix, search: str, tree_features: int, exact_work: float) -> BruteIndex:
    n, n_features = X.shape
    work = float(n) ** 2 * n_features
    too_much = work > exact_work and f"exact takes {work:.0e} products"
    why = {"approximate": "as asked", "auto": too_much}.get(search)
    if why:
        return ApproximateIndex(X, f"neighbours of neighbours: {n_features} features, {why}")
    more = f"more than {tree_features}" if n_features > tree_features else "all pairs"
    return BruteIndex(X, f"blocked matrix products: {n_features} features, {more}")


def _is(metric: Any, name: str) -> bool:
    return isinstance(metric, str) and metric == name


def _norm(metric: Any, params: dict[str, Any]) -> float | None:
    """The p of a Minkowski metric that obeys the triangle inequality, else None."""
    if _is(metric, "minkowski") and set(params) <= {"p"}:
        p = params.get("p", 2.0)
        return float(p) if p >= 1 else None
    return _NORMS.get(metric) if isinstance(metric, str) and not params else None


def _check_sparse(X: Matrix, metric: Any) -> None:
    if sparse.issparse(X) and isinstance(metric, str) and metric not in _SPARSE_METRICS:
        raise ValueError(
            f"metric={metric!r} takes no sparse data; pass X.toarray(), or one of the metrics "
            f"that do: {', '.join(map(repr, _SPARSE_METRICS))}"
        )
