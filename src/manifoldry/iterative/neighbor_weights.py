"""The weights of attraction between neighbors, and what is wrong with degenerate ones."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.affinity.base import Weights
from manifoldry.affinity.entropic import default_perplexity
from manifoldry.base.input import Input
from manifoldry.exceptions import (
    DisconnectedGraphWarning,
    ManifoldryWarning,
    UniformAffinityWarning,
    warn,
)
from manifoldry.neighbors.base import Edges
from manifoldry.neighbors.graph import NeighborGraph, replace_edges
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.repulsion import UniformRepulsion
from manifoldry.objectives.weights import with_values
from manifoldry.spectral.posed import all_coincide_message
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array
from manifoldry.util.validation import canonical


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The data, their neighbor graph and its weights."""

    data: Input
    graph: NeighborGraph
    weights: Weights
    negligible: float = 1e-10  # probability too small to affect the search

    @property
    def conditional(self) -> sparse.csr_array:
        """Neighbor probabilities p(j|i), whose rows sum to one."""
        return self.graph.matrix(np.exp(-self._exponents))

    @cached_property
    def joint(self) -> "JointWeights":
        """Symmetric weights of the edges, as the affinity defines them, divided by their sum."""
        with np.errstate(over="ignore"):  # if d² overflows, the weight exp(−∞) = 0 is right
            W = canonical(self.weights.matrix(self.graph))
        self._check_isolated(W)
        total = float(W.sum())
        return JointWeights(with_values(W, W.data / total), total)

    def _check_isolated(self, W: sparse.csr_array) -> None:
        """Refuse points with edges whose weights are all zero."""
        degree = W.sum(axis=1)
        if degree.all():
            return
        edges = self.graph.matrix(np.ones(len(self.graph.indices)))
        isolated = int(((degree == 0) & ((edges + edges.T).sum(axis=1) > 0)).sum())
        if isolated:
            raise ValueError(
                f"{isolated} of {W.shape[0]} points have no affinity to any other point: the "
                "weights of their edges are below 1e-323; pass a smaller gamma, a graph "
                "with more neighbors, or no affinity for bandwidths that adapt to the density"
            )

    @property
    def strong(self) -> NeighborGraph:
        """The graph without edges of negligible probability, which attract too little to matter."""
        kept = self._exponents < -np.log(self.negligible)
        if kept.all():
            return self.graph
        edges = Edges(self.graph.indptr, self.graph.indices, self.graph.distances)
        return replace_edges(self.graph, edges.keep(kept))

    @cached_property
    def n_components(self) -> int:
        """Number of connected components of the graph of strong edges."""
        return self.strong.components()[0]

    @property
    def _exponents(self) -> Array:
        """−log of the neighbor probability of each edge."""
        return self.weights.training_probability_exponents(self.graph)


class JointWeights(NamedTuple):
    """Symmetric weights of pairs that sum to one, and their sum before."""

    matrix: sparse.csr_array
    total: float


def check_edges(graph: NeighborGraph) -> None:
    """Refuse graphs without edges, or whose edges all have length zero."""
    if len(graph.distances) == 0:
        raise ValueError(
            f"the graph of {graph.n_query} points has no edges; build it with n_neighbors of three "
            "times the perplexity, or with a larger radius"
        )
    if not graph.distances.any():
        raise ValueError(all_coincide_message(graph.n_query, "perplexity"))


def warn_of_components(count: int, remedy: str) -> None:
    """Warn if the graph is not connected, because only repulsion acts between its components."""
    if count > 1:
        warn(
            f"the neighbor graph has {count} connected components, between which there is no "
            "attraction: their relative positions in the embedding have little meaning; "
            f"{remedy} to connect them",
            DisconnectedGraphWarning,
        )


def warn_of_uniformity(objective: Pairwise, perplexity: float, nearly_all: float = 0.9) -> None:
    """Warn if all pairs attract and repel each other nearly equally, whatever the data.

    Repulsion that depends on the data, such as that of the elastic embedding, is exempt. If the
    perplexity is more than `nearly_all` of the other points, the nearest neighbor is hardly more
    probable than the farthest: by a factor of 4 to 11 in three data sets of 100 points, compared
    with thousands at a third of the other points.
    """
    others = objective.n - 1
    uniform = isinstance(objective.repulsion, UniformRepulsion)
    bound = max(1.0, nearly_all * others)
    if perplexity > bound and uniform:
        warn(
            f"perplexity={perplexity:g} exceeds {bound:g}, 90 % of the other points: all of them "
            "are almost equally probable neighbors, so the embedding hardly depends on the data; "
            f"pass perplexity={default_perplexity(others):.2g}",
            UniformAffinityWarning,
        )


def warn_of_few_neighbors(perplexity: float, usual: float, degree: float) -> None:
    """Warn if the default perplexity is below the `usual` one because of the graph passed."""
    if perplexity < usual:
        warn(
            f"perplexity={perplexity:.3g} is used in place of the default of {usual:.3g}, because "
            f"the graph has {degree:g} neighbors per point and a perplexity needs three times as "
            f"many; pass the data, a graph with n_neighbors={int(np.ceil(3 * usual))}, or "
            f"perplexity={perplexity:.3g} if this is intended",
            ManifoldryWarning,
        )


def joint(P: sparse.csr_array) -> sparse.csr_array:
    """Symmetric joint probabilities of pairs, from the neighbor probabilities of each point."""
    W = sparse.csr_array(P + P.T)
    return canonical(W / W.sum())  # as the objective does, which then shares its arrays
