"""Equal weights on all edges."""

from dataclasses import dataclass

import numpy as np

from manifoldry.affinity.base import Affinity, Weights
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class Binary(Affinity):
    """Weight one on every edge: no bandwidth to choose, and only the graph matters."""

    def fit(self, graph: NeighborGraph) -> "BinaryWeights":
        return BinaryWeights(self.symmetrize)


@dataclass(frozen=True, eq=False)
class BinaryWeights(Weights):
    """Equal weights; nothing had to be settled."""

    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        return np.zeros(len(graph.distances))
