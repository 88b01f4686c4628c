"""Estimators that align small local problems: LLE, Hessian LLE, LTSA."""

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.self_tuning import local_weights
from manifoldry.base.piecewise import with_itself
from manifoldry.eigen import SpectralProblem, Spectrum
from manifoldry.neighbors.disconnected import ALIGNMENT
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import Neighborhoods
from manifoldry.spectral.graph_embedder import GraphEmbedder, all_coincide, with_training_rows
from manifoldry.util.typing import IntArray, Matrix

_GLUE = 1e4  # weight that ties duplicates, against entries of about one in the local problems


class LocalEmbedder(GraphEmbedder):
    """Base of the estimators whose operator is a sum of small matrices, one per neighbourhood.

    A subclass gives that sum in ``_align``; it needs the coordinates of the neighbours, not only
    their distances.
    """

    radius = None
    # Local fits cannot use a single bridge, so there is no "join".
    _policies: tuple[str, ...] = ("separate", "largest", "error")
    _weak_link = ALIGNMENT
    # Whether a point belongs to its own neighbourhood.
    _includes_itself: bool
    _training_graph: NeighborGraph

    @abstractmethod
    def _align(self, neighborhoods: Neighborhoods) -> sparse.csr_array:
        """Sum over all neighbourhoods of what a map costs there."""

    def _pose(self, data: Any) -> SpectralProblem:
        graph = self._training_graph = self._connected_graph(data)
        self._check_neighbors(graph)
        if not graph.distances.any():
            raise ValueError(all_coincide(graph.n_query))
        M = self._alignment()
        ones = np.ones(M.shape[0])
        weights = partial(local_weights, graph)
        return SpectralProblem(
            M, "smallest", deflate=ones, bounds=(0.0, np.inf), scale="sqrt_n", graph=weights
        )

    def _alignment(self) -> sparse.csr_array:
        """What a map costs, as a quadratic form on the training points."""
        graph = self._training_graph
        members = with_itself(graph) if self._includes_itself else self._others(graph)
        M = self._align(Neighborhoods(graph.index.points, members))
        return M if graph.distances.all() else M + _glue(graph)

    def _kernel_rows(self, data: Any) -> sparse.csr_array:
        """μI − M among training points; μ times its weights on them at a new point."""
        M, weights = self._alignment(), super()._kernel_rows(data)
        bound = abs(M).sum(axis=1).max()  # μ: no eigenvalue is larger
        K = bound * sparse.eye_array(M.shape[0]) - M
        return with_training_rows(bound * weights, self._identical(data), K)

    def _members(self, graph: NeighborGraph) -> IntArray:
        return graph.indices.reshape(-1, graph.k)

    def _others(self, graph: NeighborGraph) -> IntArray:
        """Neighbours without the point itself, but for points that nobody has as a neighbour.

        Those would be in no neighbourhood at all: they take the farthest place in their own.
        """
        members = self._members(graph).copy()
        unchosen = np.setdiff1d(np.arange(graph.n_query), members)
        members[unchosen, -1] = unchosen
        return members

    def _check_neighbors(self, graph: NeighborGraph) -> None:
        """Refuse graphs that the local problems cannot use."""
        self._check_even(graph)

    def _read(self, X: Any, reset: bool) -> Any:
        data = super()._read(X, reset)
        if reset:
            self._check_has_points(data)
        return data

    def _loss(self, spectrum: Spectrum) -> float:
        return float(self._piece_values.sum())

    def _identical(self, data: Matrix) -> IntArray:
        return self._training_graph.identical(data)


def _glue(graph: NeighborGraph) -> sparse.csr_array:
    """Laplacian of the edges of length zero.

    Duplicates always appear together in the local problems, which therefore may not see what
    tells them apart; this does, and keeps them in one place.
    """
    zero = graph.matrix(np.where(graph.distances == 0, _GLUE, 0.0))
    zero.eliminate_zeros()
    zero = zero.maximum(zero.T)
    return sparse.csr_array(sparse.diags_array(zero.sum(axis=1)) - zero)
