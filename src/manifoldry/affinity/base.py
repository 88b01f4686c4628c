"""Base classes of affinities and their fitted weights."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.neighbors.base import Edges
from manifoldry.neighbors.graph import NeighborGraph, replace_edges
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array, IntArray

Symmetrization = Literal["or", "and", "mean"]


def _halved(W: sparse.csr_array) -> sparse.csr_array:
    """Divide a new matrix by two, without a copy."""
    W.data /= 2
    return W


class _Rule(NamedTuple):
    """How to combine the two weights of an edge, one from each end."""

    combine: Callable[[sparse.csr_array, sparse.csr_array], sparse.csr_array]
    drops_one_sided: bool = False


_RULES: dict[Symmetrization, _Rule] = {
    "or": _Rule(lambda own, reverse: own.maximum(reverse)),
    "and": _Rule(lambda own, reverse: own.minimum(reverse), drops_one_sided=True),
    "mean": _Rule(lambda own, reverse: _halved(sparse.csr_array(own + reverse))),
}


@dataclass(frozen=True)
class Affinity(ABC):
    """A rule that assigns weights to the edges of a neighbor graph.

    :meth:`fit` determines the bandwidths from the training graph.

    Parameters
    ----------
    symmetrize : {"or", "and", "mean"}, default="or"
        How to combine the weights of an edge in both directions: keep the edge if one end is a
        neighbor of the other ("or"), only if both are ("and"), or average the two weights
        ("mean"), where a missing direction counts as zero.
    """

    symmetrize: Symmetrization = field(default="or", kw_only=True)

    def __post_init__(self) -> None:
        check_option("symmetrize", self.symmetrize, tuple(_RULES))

    @abstractmethod
    def fit(self, graph: NeighborGraph) -> "Weights":
        """Return the weights fitted to the training graph."""

    def neighbors(self, n: int) -> int | None:
        """Number of neighbors required for `n` points, or None for the default of the graph."""
        return None

    @property
    def has_given_width(self) -> bool:
        """Whether the weights are a given function of distance, not fitted to a graph."""
        return False


@dataclass(frozen=True, eq=False)
class Weights(ABC):
    """A fitted affinity, which gives the weights of training edges and of edges of new points."""

    symmetrize: Symmetrization

    @abstractmethod
    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        """−log weight of each edge of `graph`, which has the same query points as `own`."""

    def training_exponents(self, graph: NeighborGraph) -> Array:
        """−log weight of each edge of the training graph.

        To be defined by weights whose `exponents` compute bandwidths, since those of the training
        points are known.
        """
        return self.exponents(graph, graph)

    def reverse_exponents(self, own: NeighborGraph, reverse: NeighborGraph) -> Array:
        """−log weight of the edges `reverse` from training points to the query points.

        By default the weight does not depend on the direction.
        """
        return self.exponents(own, reverse)

    def frozen(self, own: NeighborGraph, known: IntArray) -> "Weights":
        """Weights for the query points of `own` with the constants of the training points.

        Nothing is normalized or fitted to a new point, so that weights which decrease with the
        distance vanish far from the data. `known` is the training point identical to each query
        point, or -1. By default the weights themselves: to be defined by weights with a bandwidth
        per point.
        """
        return self

    def probability_exponents(self, own: NeighborGraph) -> Array:
        """−log of each edge's neighbor probability: of its weight, divided by the row's sum."""
        with np.errstate(over="ignore"):
            exponents = self.exponents(own, own)
        smallest, total = np.full(own.n_query, np.inf), np.zeros(own.n_query)
        np.minimum.at(smallest, own.rows, exponents)
        if not np.isfinite(smallest[own.rows]).all():
            raise ValueError(
                f"{int(np.isinf(smallest[own.rows]).sum())} edges are so long that gamma·d² "
                "overflows; rescale X or pass a smaller gamma"
            )
        relative = exponents - smallest[own.rows]
        np.add.at(total, own.rows, np.exp(-relative))
        return np.asarray(relative + np.log(total)[own.rows])

    def training_probability_exponents(self, graph: NeighborGraph) -> Array:
        """`probability_exponents` of the training graph."""
        return self.probability_exponents(graph)

    def matrix(self, graph: NeighborGraph) -> sparse.csr_array:
        """Symmetric weights (n, n) of the training graph, with a zero diagonal."""
        with np.errstate(over="ignore"):  # the weight of an infinite exponent is zero
            weights = np.exp(-self.training_exponents(graph))
        # Transposed twice, rows are sorted by index, as sums of sparse matrices need them.
        reverse = graph.matrix(weights).T.tocsr()
        return _RULES[self.symmetrize].combine(reverse.T.tocsr(), reverse)

    def self_weights(self, graph: NeighborGraph) -> Array:
        """Weight of each point of the training graph with itself, at distance zero."""
        points = np.arange(graph.n_query)
        loops = Edges(np.arange(graph.n_query + 1), points, np.zeros(graph.n_query))
        return np.asarray(np.exp(-self.reverse_exponents(graph, replace_edges(graph, loops))))

    def at(self, own: NeighborGraph) -> "Weights":
        """These weights with the query points of `own` in place of the training points.

        To be defined by weights with a bandwidth per training point that `exponents` uses.
        """
        return self

    def among(self, own: NeighborGraph, pairs: NeighborGraph, log_scale: Array) -> sparse.csr_array:
        """Symmetric weights between new points, (n_query, n_query).

        `pairs` are their neighbors among each other, `own` those among the training points, which
        determine the bandwidths. The weight of i and j is divided by
        exp((log_scale[i] + log_scale[j])/2), since far from all data it would underflow.
        """
        shift = (log_scale[pairs.rows] + log_scale[pairs.indices]) / 2
        with np.errstate(over="ignore"):
            W = pairs.matrix(np.exp(-self.at(own).exponents(own, pairs) - shift))
        return _RULES[self.symmetrize].combine(W, W.T.tocsr())

    def rows(self, own: NeighborGraph, reverse: NeighborGraph) -> tuple[sparse.csr_array, Array]:
        """Weights of new points, (n_query, n_reference), and the logarithm of each row's scale.

        Rows are scaled to a largest weight of one. Far from all data the unscaled weights would
        underflow, but an out-of-sample extension only needs their ratios.
        """
        with np.errstate(over="ignore"):
            exponents = [self.exponents(own, own), self.reverse_exponents(own, reverse)]
        smallest, dropped = np.full(own.n_query, np.inf), _RULES[self.symmetrize].drops_one_sided
        for graph, other, values in zip((own, reverse), (reverse, own), exponents, strict=True):
            counts = _shared(graph, other) if dropped else slice(None)
            np.minimum.at(smallest, graph.rows[counts], values[counts])
        smallest[np.isinf(smallest)] = 0.0
        # Edges that "and" drops may have larger weights than those it keeps, hence the minimum.
        A, B = (
            graph.matrix(np.exp(np.minimum(smallest[graph.rows] - values, 0.0)))
            for graph, values in zip((own, reverse), exponents, strict=True)
        )
        return _RULES[self.symmetrize].combine(A, B), -smallest


def _shared(graph: NeighborGraph, other: NeighborGraph) -> NDArray[np.bool_]:
    """Mask of the edges of `graph` that are also edges of `other`."""
    n = graph.n_reference
    return np.isin(graph.rows * n + graph.indices, other.rows * n + other.indices)
