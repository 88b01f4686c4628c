"""Affinities between new points and training points."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from manifoldry.affinity.base import Weights
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, Matrix


class AffinityRows(Protocol):
    """Affinities between new points and training points."""

    def rows(self, X: Matrix) -> tuple[Matrix, Array | None]:
        """Affinities divided by scales of the rows, and the logarithms of the scales, or None.

        The affinities of a training point sum to one on average.
        """
        ...


@dataclass(frozen=True, eq=False)
class ProbabilityRows:
    """Neighbor probabilities of new points among the training points."""

    graph: NeighborGraph
    weights: Weights

    def rows(self, X: Matrix) -> tuple[sparse.csr_array, None]:
        """Probabilities p(j|x), (n_new, n_train), which sum to one."""
        own = self.graph.nearest_to(X)
        return own.matrix(np.exp(-self.weights.probability_exponents(own))), None


@dataclass(frozen=True, eq=False)
class KernelRows:
    """Affinities of new points as a function of their distances, not normalized."""

    graph: NeighborGraph
    weights: Weights
    total: float
    """Sum of the weights of all training points."""

    def rows(self, X: Matrix) -> tuple[sparse.csr_array, Array]:
        """Affinities divided by the largest of their row, and the logarithm of the latter."""
        own, reverse = self.graph.query(X)
        weights = self.weights.frozen(own, self.graph.identical(X))
        with np.errstate(over="ignore"):
            W, log_scale = weights.rows(own, reverse)
        return W, log_scale + np.log(self.graph.n_reference / self.total)
