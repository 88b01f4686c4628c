"""Choose the neighbour index for given data and metric, and say why."""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldry._typing import Matrix
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.brute import BruteIndex, CosineIndex
from manifoldry.neighbors.general import GeneralIndex
from manifoldry.neighbors.kdtree import KDTreeIndex

# Beyond about a dozen features a k-d tree visits most of its leaves and a matrix product wins.
_TREE_FEATURES = 12
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
) -> NeighborIndex:
    """Build the index that suits `X` and `metric`; its ``reason`` tells why.

    Examples
    --------
    >>> import numpy as np
    >>> choose_index(np.zeros((50, 3))).reason
    'k-d tree: 3 features, at most 12'
    >>> choose_index(np.zeros((50, 40))).reason
    'blocked matrix products: 40 features, more than 12'
    """
    params = metric_params or {}
    p = _norm(metric, params)
    n_features = X.shape[1]
    if p is not None and n_features <= _TREE_FEATURES and not sparse.issparse(X):
        reason = f"k-d tree: {n_features} features, at most {_TREE_FEATURES}"
        return KDTreeIndex(X, reason, p, _workers(n_jobs))
    if p == 2 and sparse.issparse(X):
        return BruteIndex(X, "blocked matrix products: sparse features")
    if p == 2:
        reason = f"blocked matrix products: {n_features} features, more than {_TREE_FEATURES}"
        return BruteIndex(X, reason)
    if _is(metric, "cosine") and not params:
        return CosineIndex.of(X, "blocked matrix products on the unit sphere: metric='cosine'")
    _check_sparse(X, metric)
    reason = f"all distances in blocks: metric={metric!r} has no faster path here"
    return GeneralIndex(X, metric, reason, params, n_jobs)


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


def _workers(n_jobs: int | None) -> int:
    from joblib import effective_n_jobs  # type: ignore[import-untyped]  # it ships no types

    return int(effective_n_jobs(n_jobs))
