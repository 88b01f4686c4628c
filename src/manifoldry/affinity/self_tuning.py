"""Gaussian weights whose bandwidth follows the local density."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.affinity.base import Affinity, Weights
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True)
class SelfTuning(Affinity):
    """Weights exp(−d²/(s_i·s_j)), s_i being the distance from i to its k-th neighbour.

    Use it where the density of the data varies: sparse regions get wide kernels, dense ones
    narrow kernels.

    Parameters
    ----------
    k : int, default=7
        The neighbour whose distance is the local scale, or the farthest if the graph has fewer.
        Where points are repeated, each distance counts once.
    symmetrize : {"or", "and", "mean"}, default="or"
        See :class:`Affinity`.
    """

    k: int = 7

    def fit(self, graph: NeighborGraph) -> "SelfTuningWeights":
        check_count("k", self.k)
        scales = _kth_distance(graph, self.k)
        positive = scales[scales > 0]
        if len(positive) == 0:
            raise ValueError(
                f"each of the {graph.n_query} rows coincides with its neighbours, so there is no "
                "local scale; drop duplicated rows or raise n_neighbors"
            )
        floor = float(positive.min())
        return SelfTuningWeights(self.symmetrize, self.k, np.maximum(scales, floor), floor)


@dataclass(frozen=True, eq=False)
class SelfTuningWeights(Weights):
    """Self-tuning weights with the training points' scales settled."""

    k: int
    scales: Array  # (n_reference,)
    floor: float  # scale of points that coincide with their k nearest neighbours

    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        query_scales = np.maximum(_kth_distance(own, self.k), self.floor)
        d_i = graph.distances / query_scales[graph.rows]
        d_j = graph.distances / self.scales[graph.indices]
        return d_i * d_j


def local_weights(graph: NeighborGraph) -> sparse.csr_array:
    """Self-tuning weights of a training graph, for those who need no more than them."""
    return SelfTuning().fit(graph).matrix(graph)


def _kth_distance(graph: NeighborGraph, k: int) -> Array:
    """Distance to the k-th neighbour, or to the farthest where there are fewer."""
    counts = np.diff(graph.indptr)
    first = np.minimum(counts, k)
    if not graph.distances.all():
        repeated = np.bincount(graph.rows[graph.distances == 0], minlength=graph.n_query) > 0
        first = np.where(repeated, _up_to_kth_place(graph, k), first)
    position = graph.indptr[:-1] + first - 1
    scales = np.zeros(graph.n_query)
    filled = counts > 0
    scales[filled] = graph.distances[position[filled]]
    return scales


def _up_to_kth_place(graph: NeighborGraph, k: int) -> IntArray:
    """Number of neighbours of every point up to its k-th positive distance."""
    rows, distances = graph.rows, graph.distances
    another = distances > 0
    another[1:] &= (distances[1:] != distances[:-1]) | (rows[1:] != rows[:-1])
    place = np.cumsum(another)
    before = np.append(0, place)[graph.indptr[:-1]]
    return np.bincount(rows[place - before[rows] <= k], minlength=graph.n_query)
