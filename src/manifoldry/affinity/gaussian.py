"""Gaussian weights exp(−gamma·d²) with one bandwidth for all edges."""

from dataclasses import dataclass

import numpy as np

from manifoldry.affinity.base import Affinity, Weights
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class Gaussian(Affinity):
    """Weights exp(−gamma·d²).

    Parameters
    ----------
    gamma : float, default=None
        Coefficient of the squared distance. By default one over the median squared distance to
        the farthest neighbour, so that the weight of a typical farthest neighbour is 1/e and
        the units of the data do not matter.
    symmetrize : {"or", "and", "mean"}, default="or"
        See :class:`Affinity`.

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

    def fit(self, graph: NeighborGraph) -> "GaussianWeights":
        if self.gamma is not None:
            width = 1 / np.sqrt(check_positive("gamma", self.gamma))
        else:
            width = typical_length(graph)
        return GaussianWeights(self.symmetrize, float(width))


@dataclass(frozen=True, eq=False)
class GaussianWeights(Weights):
    """Gaussian weights of a settled width 1/√gamma."""

    width: float

    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        return (graph.distances / self.width) ** 2


def typical_length(graph: NeighborGraph) -> float:
    """Median length of the farthest edges; duplicates are passed over where they are the rule."""
    for lengths in (graph.reach, graph.distances):
        median = float(np.median(lengths)) if len(lengths) else 0.0
        if median > 0:
            return median
    positive = graph.distances[graph.distances > 0]
    if len(positive) == 0:
        raise ValueError(
            f"all {graph.n_query} rows coincide with their neighbours, so there is no length to "
            "derive gamma from; drop duplicated rows or pass gamma"
        )
    return float(np.median(positive))
