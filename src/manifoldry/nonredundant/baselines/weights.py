"""What several baselines need."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.affinity.gaussian import local_weights
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.posed import coupled_components
from manifoldry.util.typing import Array, Matrix


def kernel_rows(Z: Array, rows: Any, width: float, without_self: bool = False) -> Array:
    """Weights exp(−d²/width²) of all points at Z[rows], each row summing to one."""
    D2 = cdist(Z[rows], Z, "sqeuclidean")
    if without_self:
        D2[np.arange(len(D2)), rows] = np.inf
    D2 -= D2.min(axis=1, keepdims=True)  # the nearest gets 1: never 0/0, however far it is
    w = np.exp(-D2 / width**2)
    return np.asarray(w / w.sum(axis=1, keepdims=True))


def degrees(W: Matrix) -> Array:
    """Sum of every row."""
    return np.asarray(W.sum(axis=1)).ravel()


def graph_weights(X: Array, k: int) -> tuple[sparse.csr_array, int]:
    """Weights of the neighbor graph, and the number of components they leave."""
    W = local_weights(NeighborGraph.build(X, k))
    return W, int(coupled_components(sparse.diags_array(degrees(W)) - W).max()) + 1
