"""Entropic affinities: conditional probabilities with the same perplexity at each point."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from manifoldry.affinity.bandwidths import Bandwidths
from manifoldry.affinity.base import Affinity, Symmetrization, Weights
from manifoldry.device import Device
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_at_most, check_positive
from manifoldry.util.typing import Array, IntArray

DEFAULT_PERPLEXITY = 30.0
_NEIGHBORS_PER_PERPLEXITY = 3  # the weights of farther neighbors are negligible


@dataclass(frozen=True)
class Entropic(Affinity):
    """Probabilities p(j|i) ∝ exp(−βᵢ·d²) of the neighbors j of i, each βᵢ set by the perplexity.

    The perplexity, the exponential of their entropy, is the effective number of neighbors.
    These are the affinities of stochastic neighbor embedding, t-SNE and the elastic embedding;
    they are also useful elsewhere if the density of the data varies.

    A point with at most `perplexity` neighbors, as in a radius graph, gives all of them equal
    probability. If at least `perplexity` neighbors are tied for the nearest, such as duplicates,
    these get equal probability and the others none.

    Parameters
    ----------
    perplexity : float, default=None
        Effective number of neighbors, between one and the number of neighbors in the graph, which
        should be three times as large. By default a third of the number
        of neighbors in the graph, but at most 30.
    symmetrize : {"or", "and", "mean"}, default="mean"
        See :class:`Affinity`.

    See Also
    --------
    Gaussian : one bandwidth for all edges.
    SelfTuning : a bandwidth that adapts to the local density.
    manifoldry.TSNE : uses these affinities.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.neighbors import NeighborGraph
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [2.0], [4.0]]), n_neighbors=3)
    >>> P = Entropic(perplexity=2).fit(graph).conditional(graph)
    >>> P.toarray().round(2)
    array([[0.  , 0.67, 0.31, 0.01],
           [0.5 , 0.  , 0.5 , 0.  ],
           [0.11, 0.77, 0.  , 0.11],
           [0.04, 0.22, 0.74, 0.  ]])
    """

    perplexity: float | None = None
    symmetrize: Symmetrization = field(default="mean", kw_only=True)

    def neighbors(self, n: int) -> int | None:
        return None if self.perplexity is None else neighbors_for(self.perplexity, n)

    def fit(self, graph: NeighborGraph) -> "EntropicWeights":
        counts = np.diff(graph.indptr)
        return self.at_perplexity(self.among(float(np.median(counts)), int(counts.max())), graph)

    def among(self, typical: float, most: int) -> float:
        """Return the perplexity for a graph, or raise ValueError if it is too large.

        Parameters
        ----------
        typical, most : float, int
            The median and the largest number of neighbors of a point.

        Returns
        -------
        float
            The perplexity.
        """
        if self.perplexity is None:
            return default_perplexity(typical)
        perplexity = _checked_perplexity(self.perplexity)
        wanted = _n_neighbors(perplexity)
        why = f"the neighbors of a point; build the graph with n_neighbors={wanted}"
        check_at_most("perplexity", perplexity, most, why)
        return perplexity

    def at_perplexity(self, perplexity: float, graph: NeighborGraph) -> "EntropicWeights":
        """Return the weights of the query points of a graph.

        Parameters
        ----------
        perplexity : float
            The perplexity of each point.
        graph : NeighborGraph
            Neighbors of the query points.

        Returns
        -------
        EntropicWeights
            The weights.
        """
        return EntropicWeights(self.symmetrize, perplexity, Bandwidths.of(graph, perplexity))


@dataclass(frozen=True, eq=False)
class EntropicWeights(Weights):
    """Entropic affinities with the bandwidths of the training points.

    The bandwidth of a new point x in p(j|x) is determined by the same rule. In p(x|j) the
    bandwidth and the normalizer are those of the training point j, so that a training point
    passed as a new point has its training weights.
    """

    perplexity: float
    bandwidths: Bandwidths

    @property
    def widths(self) -> Array:
        """1/√β of each training point, in units of the data, (n_reference,)."""
        return self.bandwidths.widths

    @property
    def precisions(self) -> Array:
        """β of each training point; it may overflow where `widths` do not."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1 / self.widths**2)

    def conditional(self, own: NeighborGraph) -> sparse.csr_array:
        """Probabilities p(j|i), (n_query, n_reference), for training points or new ones.

        Rows sum to one, except those of points without neighbors.
        """
        return own.matrix(np.exp(-self.exponents(own, own)))

    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        return Bandwidths.of(own, self.perplexity).edge_exponents(graph)

    def training_exponents(self, graph: NeighborGraph) -> Array:
        return self.bandwidths.edge_exponents(graph)

    def training_exponents_on(self, device: Device, graph: NeighborGraph) -> Array:
        found = self.bandwidths.exponents_on(device, graph)
        return super().training_exponents_on(device, graph) if found is None else found

    def reverse_exponents(self, own: NeighborGraph, reverse: NeighborGraph) -> Array:
        return self.bandwidths.exponents(reverse.distances, reverse.indices)

    def probability_exponents(self, own: NeighborGraph) -> Array:
        return self.exponents(own, own)

    def training_probability_exponents(self, graph: NeighborGraph) -> Array:
        return self.training_exponents(graph)

    def frozen(self, own: NeighborGraph, known: IntArray) -> "FrozenEntropicWeights":
        mine = self.bandwidths.interpolated(own, known)
        return FrozenEntropicWeights(self.symmetrize, mine, self.bandwidths)


@dataclass(frozen=True, eq=False)
class FrozenEntropicWeights(Weights):
    """Weights exp(−β·d²)/Z of new points x in both directions, with β and Z of training points.

    In p(x|j) they are those of the training point j, in p(j|x) means over the neighbors of x.
    """

    mine: Bandwidths
    theirs: Bandwidths

    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        return self.mine.edge_exponents(graph)

    def reverse_exponents(self, own: NeighborGraph, reverse: NeighborGraph) -> Array:
        return self.theirs.exponents(reverse.distances, reverse.indices)


def neighbors_for(perplexity: float | None, n: int) -> int:
    """Number of neighbors for a perplexity: three times the perplexity, but at most n − 1.

    Parameters
    ----------
    perplexity : float or None
        None for 30, or (n − 1)/3 if that is less.
    n : int
        Number of points.

    Examples
    --------
    >>> neighbors_for(30, 1000), neighbors_for(30, 50), neighbors_for(None, 10)
    (90, 49, 9)
    """
    value = default_perplexity(n - 1) if perplexity is None else _checked_perplexity(perplexity)
    check_at_most("perplexity", value, n - 1, f"n_samples={n} minus one")
    return min(_n_neighbors(value), n - 1)


def default_perplexity(candidates: float) -> float:
    """Default perplexity for points with `candidates` neighbors each."""
    return min(DEFAULT_PERPLEXITY, max(1.0, candidates / _NEIGHBORS_PER_PERPLEXITY))


def _n_neighbors(perplexity: float) -> int:
    return int(np.ceil(_NEIGHBORS_PER_PERPLEXITY * perplexity))


def _checked_perplexity(perplexity: float) -> float:
    value = check_positive("perplexity", perplexity)
    if value < 1:
        raise ValueError(
            f"perplexity={perplexity} must be at least 1 (one neighbor); pass perplexity=1 or more"
        )
    return value
