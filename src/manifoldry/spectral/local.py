"""Methods whose objective is a sum of local quadratic forms: LLE, Hessian LLE, LTSA."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import sparse

from manifoldry.affinity.gaussian import local_weights
from manifoldry.base.input import Input
from manifoldry.eigen import SpectralProblem
from manifoldry.neighbors.disconnected import ALIGNMENT, DisconnectedPolicy
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import Neighborhoods, weighted_sum, with_itself
from manifoldry.spectral.posed import PosedOnGraph, operator_components
from manifoldry.util.typing import IntArray


@dataclass(frozen=True, eq=False)
class LocalAlignment(ABC):
    """Objective tr(YᵀMY) of an embedding Y: M is a sum of small matrices, one per neighborhood."""

    graph: NeighborGraph

    # Whether a point belongs to its own neighborhood.
    includes_itself: ClassVar[bool] = True

    @abstractmethod
    def align(self, neighborhoods: Neighborhoods) -> sparse.csr_array:
        """Return the sum of the local matrices over all neighborhoods."""

    def matrix(self) -> sparse.csr_array:
        """Return M (n, n), with a penalty that keeps duplicated points together."""
        M = self.align(self.neighborhoods)
        if self.graph.distances.all():
            return M
        return weighted_sum((1.0, M), (1.0, _duplicate_penalty(self.graph)))

    @property
    def neighborhoods(self) -> Neighborhoods:
        """The neighborhoods of all points."""
        graph = self.graph
        members = with_itself(graph) if self.includes_itself else _neighbors_without_self(graph)
        return Neighborhoods(graph.index.points, members)


@dataclass(frozen=True, eq=False)
class PosedAlignment(PosedOnGraph):
    """Embedding of least alignment error; new points are interpolated from their neighbors."""

    alignment: LocalAlignment

    @property
    def graph(self) -> NeighborGraph:
        """The neighbor graph of the training points."""
        return self.alignment.graph

    @property
    def row_matcher(self) -> NeighborGraph:
        return self.graph


def alignment_problem(alignment: LocalAlignment) -> SpectralProblem:
    """Return the problem of the smallest eigenvectors orthogonal to the constant vector."""
    M = alignment.matrix()
    return SpectralProblem(
        M,
        "smallest",
        deflate=np.ones(M.shape[0]),
        bounds=(0.0, np.inf),
        scale="sqrt_n",
        graph=partial(local_weights, alignment.graph),
    )


def alignment_components(
    problem: SpectralProblem, graph: NeighborGraph, policy: DisconnectedPolicy
) -> list[IntArray]:
    """Return the rows of each connected component to embed."""
    return operator_components(problem.operator, policy, graph, ALIGNMENT, "raise n_neighbors")


def check_has_points(name: str, data: Input) -> None:
    """Raise an error if the input has distances only."""
    if data.points is None:
        raise ValueError(
            f"{name} needs the coordinates of the data, not only distances; "
            "pass the data, or use Isomap or LaplacianEigenmaps"
        )


def check_uniform_neighborhoods(name: str, graph: NeighborGraph) -> NeighborGraph:
    """Return the graph, or raise an error if the number of neighbors varies between points."""
    if graph.n_neighbors is None:
        raise ValueError(
            f"{name} needs the same number of neighbors for each point; build the "
            "graph with n_neighbors instead of radius"
        )
    return graph


def _neighbors_without_self(graph: NeighborGraph) -> IntArray:
    """Return the neighbors of each point (n, k), without the point itself.

    A point that is no neighbor of any other would be in no neighborhood; it replaces the farthest
    of its own neighbors.
    """
    members = graph.indices.reshape(-1, graph.k).copy()
    unchosen = np.flatnonzero(np.bincount(members.ravel(), minlength=graph.n_query) == 0)
    members[unchosen, -1] = unchosen
    return members


def _duplicate_penalty(graph: NeighborGraph, weight: float = 1e4) -> sparse.csr_array:
    """Return the Laplacian of the edges of length zero, with a weight far above local entries.

    Duplicates have the same local coordinates, so the local problems may not determine their
    difference in the embedding; this penalty makes it zero.
    """
    zero = graph.matrix(np.where(graph.distances == 0, weight, 0.0))
    zero.eliminate_zeros()
    zero = zero.maximum(zero.T)
    return sparse.csr_array(sparse.diags_array(zero.sum(axis=1)) - zero)
