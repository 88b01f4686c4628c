"""From distances on a graph to weights: fitted on the training graph, applied to new rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array

Symmetrization = Literal["or", "and", "mean"]


class _Rule(NamedTuple):
    """How weights of the same edge from both its ends become one."""

    combine: Callable[[sparse.csr_array, sparse.csr_array], sparse.csr_array]
    drops_one_sided: bool = False


_RULES: dict[Symmetrization, _Rule] = {
    "or": _Rule(lambda own, reverse: own.maximum(reverse)),
    "and": _Rule(lambda own, reverse: own.minimum(reverse), drops_one_sided=True),
    "mean": _Rule(lambda own, reverse: sparse.csr_array((own + reverse) / 2)),
}


@dataclass(frozen=True)
class Affinity(ABC):
    """A rule for weights; `fit` it to a training graph to settle its bandwidths.

    Parameters
    ----------
    symmetrize : {"or", "and", "mean"}, default="or"
        Keep an edge if either end chose the other, if both did, or give it half its weight for
        each end that did.
    """

    symmetrize: Symmetrization = field(default="or", kw_only=True)

    def __post_init__(self) -> None:
        check_option("symmetrize", self.symmetrize, tuple(_RULES))

    @abstractmethod
    def fit(self, graph: NeighborGraph) -> "Weights":
        """Settle what depends on the training graph."""

    def neighbors(self, n: int) -> int | None:
        """Neighbors that the rule wants in a graph of `n` points; None leaves it to the graph."""
        return None


@dataclass(frozen=True, eq=False)
class Weights(ABC):
    """A fitted affinity: weights of training edges and, unchanged, of new points' edges."""

    symmetrize: Symmetrization

    @abstractmethod
    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        """−log weight of every edge of `graph`, whose query points are those of `own`."""

    def reverse_exponents(self, own: NeighborGraph, reverse: NeighborGraph) -> Array:
        """−log weight of the edges `reverse`, by which training points chose the query points.

        The same as that of edges in the other direction, unless it matters who chose whom.
        """
        return self.exponents(own, reverse)

    def matrix(self, graph: NeighborGraph) -> sparse.csr_array:
        """Symmetric weights (n, n) of the training graph, with a zero diagonal."""
        W = graph.matrix(np.exp(-self.exponents(graph, graph)))
        return _RULES[self.symmetrize].combine(W, W.T.tocsr())

    def rows(self, own: NeighborGraph, reverse: NeighborGraph) -> tuple[sparse.csr_array, Array]:
        """Weights of new points, (n_query, n_reference), and the logarithm of each row's scale.

        Rows are scaled so that their largest weight is one: far from all data the raw weights
        underflow, while their ratios, which is all an extension needs, stay well defined.
        """
        exponents = [self.exponents(own, own), self.reverse_exponents(own, reverse)]
        smallest, dropped = np.full(own.n_query, np.inf), _RULES[self.symmetrize].drops_one_sided
        for graph, other, values in zip((own, reverse), (reverse, own), exponents, strict=True):
            counts = _shared(graph, other) if dropped else slice(None)
            np.minimum.at(smallest, graph.rows[counts], values[counts])
        smallest[np.isinf(smallest)] = 0.0
        # An edge that "and" is about to drop may weigh more than the heaviest that stays.
        A, B = (
            graph.matrix(np.exp(np.minimum(smallest[graph.rows] - values, 0.0)))
            for graph, values in zip((own, reverse), exponents, strict=True)
        )
        return _RULES[self.symmetrize].combine(A, B), -smallest


def _shared(graph: NeighborGraph, other: NeighborGraph) -> NDArray[np.bool_]:
    """Which edges of `graph` are edges of `other` too."""
    n = graph.n_reference
    return np.isin(graph.rows * n + graph.indices, other.rows * n + other.indices)
