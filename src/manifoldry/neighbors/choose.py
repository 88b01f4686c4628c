"""Choose the neighbour index for given data and metric, and say why."""

from typing import Any

from scipy import sparse

from manifoldry._typing import Matrix
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.brute import BruteIndex, CosineIndex
from manifoldry.neighbors.general import GeneralIndex
from manifoldry.neighbors.kdtree import KDTreeIndex

# Beyond about a dozen features a k-d tree visits most of its leaves and a matrix product wins.
_TREE_FEATURES = 12


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
    n_features = X.shape[1]
    if metric == "euclidean" and sparse.issparse(X):
        return BruteIndex(X, "blocked matrix products: sparse features")
    if metric == "euclidean" and n_features <= _TREE_FEATURES:
        reason = f"k-d tree: {n_features} features, at most {_TREE_FEATURES}"
        return KDTreeIndex(X, reason, workers=n_jobs or 1)
    if metric == "euclidean":
        reason = f"blocked matrix products: {n_features} features, more than {_TREE_FEATURES}"
        return BruteIndex(X, reason)
    if metric == "cosine":
        return CosineIndex.of(X, "blocked matrix products on the unit sphere: metric='cosine'")
    reason = f"scikit-learn's neighbours: metric={metric!r} has no path of its own here"
    return GeneralIndex(X, metric, reason, metric_params or {}, n_jobs)
