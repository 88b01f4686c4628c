"""From distances on a graph to weights: fitted on the training graph, applied to new rows."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from manifoldry._checks import check_option
from manifoldry._typing import Array
from manifoldry.neighbors.graph import NeighborGraph

Symmetrization = Literal["or", "and", "mean"]


@dataclass(frozen=True)
class Affinity(ABC):
    """A rule for weights; `fit` it to a training graph to settle its bandwidths.

    Parameters
    ----------
    symmetrize : {"or", "and", "mean"}, default="or"
        Keep an edge if either end chose the other, if both did, or give it half its weight for
        each end that did.
    """

    symmetrize: Symmetrization = "or"

    def __post_init__(self) -> None:
        check_option("symmetrize", self.symmetrize, ("or", "and", "mean"))

    @abstractmethod
    def fit(self, graph: NeighborGraph) -> "Weights":
        """Settle what depends on the training graph."""


@dataclass(frozen=True, eq=False)
class Weights(ABC):
    """A fitted affinity: weights of training edges and, unchanged, of new points' edges."""

    symmetrize: Symmetrization

    @abstractmethod
    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        """−log weight of every edge of `graph`, whose query points are those of `own`."""

    def matrix(self, graph: NeighborGraph) -> sparse.csr_array:
        """Symmetric weights (n, n) of the training graph, with a zero diagonal."""
        W = graph.matrix(np.exp(-self.exponents(graph, graph)))
        return _combine(W, W.T.tocsr(), self.symmetrize)

    def rows(self, own: NeighborGraph, back: NeighborGraph) -> tuple[sparse.csr_array, Array]:
        """Weights of new points, (n_query, n_reference), and the logarithm of each row's scale.

        Rows are scaled so that their largest weight is one: far from all data the raw weights
        underflow, while their ratios, which is all an extension needs, stay well defined.
        """
        own_exponents, back_exponents = self.exponents(own, own), self.exponents(own, back)
        smallest = np.full(own.n_query, np.inf)
        np.minimum.at(smallest, own.rows, own_exponents)
        np.minimum.at(smallest, back.rows, back_exponents)
        smallest[np.isinf(smallest)] = 0.0
        A = own.matrix(np.exp(smallest[own.rows] - own_exponents))
        B = back.matrix(np.exp(smallest[back.rows] - back_exponents))
        return _combine(A, B, self.symmetrize), -smallest


def _combine(
    own: sparse.csr_array, back: sparse.csr_array, symmetrize: Symmetrization
) -> sparse.csr_array:
    if symmetrize == "mean":
        return sparse.csr_array((own + back) / 2)
    return own.maximum(back) if symmetrize == "or" else own.minimum(back)
