"""Gaussian, binary and self-tuning affinities."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from manifoldry.affinity.bandwidths import neighbor_means
from manifoldry.affinity.base import Affinity, Weights
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True)
class Gaussian(Affinity):
    """Gaussian weights exp(−gamma·d²) with one bandwidth for all edges.

    Parameters
    ----------
    gamma : float, default=None
        Coefficient of the squared distance. By default one over the squared median distance to
        the farthest neighbor, so that the weight of a typical farthest neighbor is 1/e and
        the units of the data do not matter.
    symmetrize : {"or", "and", "mean"}, default="or"
        See :class:`Affinity`.

    See Also
    --------
    SelfTuning : a bandwidth that adapts to the local density.
    Entropic : bandwidths set by a perplexity.
    manifoldry.LaplacianEigenmaps : takes an affinity.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.neighbors import NeighborGraph
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [2.0]]), n_neighbors=1)
    >>> Gaussian(gamma=1.0).fit(graph).matrix(graph).toarray().round(3)
    array([[0.   , 0.368, 0.   ],
           [0.368, 0.   , 0.368],
           [0.   , 0.368, 0.   ]])
    """

    gamma: float | None = None

    @property
    def has_given_width(self) -> bool:
        return self.gamma is not None

    def fit(self, graph: NeighborGraph) -> "GaussianWeights":
        if self.gamma is not None:
            width = 1 / np.sqrt(check_positive("gamma", self.gamma))
        else:
            width = typical_length(graph)
        return GaussianWeights(self.symmetrize, float(width))


@dataclass(frozen=True, eq=False)
class GaussianWeights(Weights):
    """Gaussian weights of width 1/√gamma."""

    width: float

    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        return (graph.distances / self.width) ** 2


def typical_length(graph: NeighborGraph) -> float:
    """Median distance to the farthest neighbor; if zero, the median of the (positive) lengths."""
    for lengths in (graph.neighbor_radius, graph.distances):
        median = float(np.median(lengths)) if len(lengths) else 0.0
        if median > 0:
            return median
    positive = graph.distances[graph.distances > 0]
    if len(positive) == 0:
        raise ValueError(no_typical_length(graph.n_query))
    return float(np.median(positive))


def no_typical_length(n: int) -> str:
    """Error message for a graph all of whose edges have length zero."""
    return (
        f"all {n} rows coincide with their neighbors, so gamma cannot be derived "
        "from distances; drop duplicated rows or pass gamma"
    )


@dataclass(frozen=True)
class Binary(Affinity):
    """Weight one for each edge, however long; there is no bandwidth.

    Use it if distances beyond the choice of neighbors carry no information.

    Parameters
    ----------
    symmetrize : {"or", "and", "mean"}, default="or"
        See :class:`Affinity`.

    See Also
    --------
    Gaussian : weights that decrease with the distance.
    manifoldry.LaplacianEigenmaps : takes it by name, ``affinity="binary"``.

    Examples
    --------
    With ``symmetrize="and"`` an edge needs both ends to be neighbors of each other:

    >>> import numpy as np
    >>> from manifoldry.neighbors import NeighborGraph
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [3.0]]), n_neighbors=1)
    >>> Binary().fit(graph).matrix(graph).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    >>> Binary(symmetrize="and").fit(graph).matrix(graph).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """

    def fit(self, graph: NeighborGraph) -> "BinaryWeights":
        return BinaryWeights(self.symmetrize)


@dataclass(frozen=True, eq=False)
class BinaryWeights(Weights):
    """Equal weights."""

    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        return np.zeros(len(graph.distances))


@dataclass(frozen=True)
class SelfTuning(Affinity):
    """Weights exp(−d²/(s_i·s_j)), where s_i is the distance from i to its k-th neighbor.

    Suitable for data of varying density: the kernel is wide in sparse regions and narrow in dense
    regions.

    Parameters
    ----------
    k : int, default=7
        The local scale is the distance to the k-th neighbor, or to the farthest if there are
        fewer. For points with duplicates, each distinct positive distance counts once.
    symmetrize : {"or", "and", "mean"}, default="or"
        See :class:`Affinity`.

    See Also
    --------
    Gaussian : one bandwidth for all edges.
    Entropic : bandwidths set by a perplexity.
    manifoldry.DiffusionMaps : takes an affinity.

    Examples
    --------
    The last point lies four times as far from its neighbor as the others from theirs. Its Gaussian
    weight vanishes, so that it would be isolated; the self-tuning weight does not:

    >>> import numpy as np
    >>> from manifoldry.neighbors import NeighborGraph
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [2.0], [6.0]]), n_neighbors=1)
    >>> Gaussian(gamma=1.0).fit(graph).matrix(graph).toarray()[3].round(3)
    array([0., 0., 0., 0.])
    >>> SelfTuning(k=1).fit(graph).matrix(graph).toarray()[3].round(3)
    array([0.   , 0.   , 0.018, 0.   ])
    """

    k: int = 7

    def fit(self, graph: NeighborGraph) -> "SelfTuningWeights":
        scales = self.local_scales(graph)
        return self.with_scales(scales, smallest_scale(scales), graph.n_query)

    def local_scales(self, graph: NeighborGraph) -> Array:
        """Return the distance of each query point to its k-th neighbor.

        Parameters
        ----------
        graph : NeighborGraph
            Neighbors of the query points.

        Returns
        -------
        array of shape (n_query,)
            The distances; zero for points that coincide with their k nearest neighbors.
        """
        return _kth_distance(graph, check_count("k", self.k))

    def with_scales(self, scales: Array, floor: float, n: int) -> "SelfTuningWeights":
        """Return the weights of points with these local scales.

        Parameters
        ----------
        scales : array of shape (n_reference,)
            Results of `local_scales`.
        floor : float
            Scale of points that coincide with their neighbors: the smallest positive one;
            infinite if there is none, which raises ValueError.
        n : int
            Number of points, for the message.

        Returns
        -------
        SelfTuningWeights
            The weights.
        """
        if np.isinf(floor):
            raise ValueError(
                f"each of the {n} rows coincides with its neighbors, so there is no "
                "local scale; drop duplicated rows or raise n_neighbors"
            )
        return SelfTuningWeights(self.symmetrize, self.k, np.maximum(scales, floor), floor)


def smallest_scale(scales: Array) -> float:
    """Smallest positive scale; infinite if there is none."""
    return float(scales[scales > 0].min(initial=np.inf))


@dataclass(frozen=True, eq=False)
class SelfTuningWeights(Weights):
    """Self-tuning weights with the local scales of the training points."""

    k: int
    scales: Array  # (n_reference,)
    floor: float  # scale of points that coincide with their k nearest neighbors

    def at(self, own: NeighborGraph) -> "SelfTuningWeights":
        return replace(self, scales=np.maximum(_kth_distance(own, self.k), self.floor))

    def frozen(self, own: NeighborGraph, known: IntArray) -> "FrozenSelfTuningWeights":
        every = np.ones(len(self.scales), dtype=bool)
        mine = np.exp(neighbor_means(own, np.log(self.scales)[:, None], every)[:, 0])
        mine = np.where(known >= 0, self.scales[known], mine)
        return FrozenSelfTuningWeights(self.symmetrize, mine, self.scales)

    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        d_i = graph.distances / self.at(own).scales[graph.rows]
        d_j = graph.distances / self.scales[graph.indices]
        return d_i * d_j


@dataclass(frozen=True, eq=False)
class FrozenSelfTuningWeights(Weights):
    """Self-tuning weights of new points, whose local scales are means over their neighbors."""

    mine: Array  # (n_query,)
    theirs: Array  # (n_reference,)

    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        d_i = graph.distances / self.mine[graph.rows]
        return d_i * (graph.distances / self.theirs[graph.indices])


def local_weights(graph: NeighborGraph) -> sparse.csr_array:
    """Self-tuning weight matrix of a training graph."""
    return SelfTuning().fit(graph).matrix(graph)


def _kth_distance(graph: NeighborGraph, k: int) -> Array:
    """Distance to the k-th neighbor, or to the farthest if there are fewer."""
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
    """Number of neighbors of each point up to its k-th distinct positive distance."""
    rows, distances = graph.rows, graph.distances
    another = distances > 0
    another[1:] &= (distances[1:] != distances[:-1]) | (rows[1:] != rows[:-1])
    place = np.cumsum(another)
    before = np.append(0, place)[graph.indptr[:-1]]
    return np.bincount(rows[place - before[rows] <= k], minlength=graph.n_query)
