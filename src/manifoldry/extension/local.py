"""New points placed by the geometry of their neighbourhood: barycentres and local affine maps."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry._typing import Array, IntArray, Matrix
from manifoldry._validation import row_blocks
from manifoldry.extension.base import Extension, KernelExtension
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import barycentric_weights, gathered

# Where the map shrinks one direction to less than this share of another, it is folded there and
# going back along that direction would blow up noise.
_FOLDED = 0.05


@dataclass(frozen=True, eq=False)
class Barycentric(KernelExtension):
    """Weights that reproduce a new point from its neighbours, applied to their coordinates.

    This is the limit of LLE's equivalent kernel in which its free parameter goes to infinity.
    Neighbours on another piece of the map than the nearest one get no weight.
    """

    graph: NeighborGraph
    embedding: Array  # (n_train, n_components)
    reg: float
    labels: IntArray  # piece of every training point

    def rows(self, X: Matrix) -> sparse.csr_array:
        indices, weights = self._weights(X)
        indptr = np.arange(X.shape[0] + 1) * indices.shape[1]
        shape = (X.shape[0], len(self.embedding))
        return sparse.csr_array((weights.ravel(), indices.ravel(), indptr), shape=shape)

    def transform(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.embedding.shape[1]))
        points = self.graph.index.points
        assert points is not None  # the estimator saw to that
        for block in row_blocks(X.shape[0], self.graph.k * max(points.shape[1], self.graph.k)):
            indices, weights = self._weights(X[block])
            out[block] = np.einsum("qk,qkl->ql", weights, self.embedding[indices])
        return out

    def _weights(self, X: Matrix) -> tuple[IntArray, Array]:
        index = self.graph.index
        X = index.read(X)
        indices, distances = index.nearest(X, self.graph.k)
        differences = gathered(index.points, indices) - gathered(X, np.arange(X.shape[0])[:, None])
        unit = np.where(distances[:, -1] > 0, distances[:, -1], 1.0)[:, None, None]
        elsewhere = self.labels[indices] != self.labels[indices[:, :1]]
        return indices, barycentric_weights(differences / unit, self.reg, elsewhere)


@dataclass(frozen=True, eq=False)
class LocalAffine(Extension):
    """The affine map that carries a training neighbourhood's tangent plane onto the map.

    A new point takes the neighbourhood of the training point nearest to it; a position on the map
    is carried back by the inverse of the same map.
    """

    graph: NeighborGraph
    embedding: Array  # (n_train, n_components)
    members: IntArray  # (n_train, k), the point itself first

    def transform(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.embedding.shape[1]))
        index = self.graph.index
        for block in self._blocks(X.shape[0]):
            query = index.read(X[block])
            near = index.nearest(query, 1)[0][:, 0]
            local, center, axes = self._tangents(near)
            position = gathered(query, np.arange(query.shape[0])[:, None])[:, 0] - center
            theta = np.einsum("qf,qfl->ql", position, axes)
            middle, A = self._affine(near, local)
            out[block] = middle + np.einsum("ql,qlm->qm", theta, A)
        return out

    def inverse(self, Z: Array) -> Array:
        """Data at map positions, through the neighbourhood of the nearest embedded point."""
        points = self.graph.index.points
        assert points is not None  # the estimator saw to that
        on_map = np.flatnonzero(np.isfinite(self.embedding).all(axis=1))
        index = choose_index(self.embedding[on_map].astype(np.float64))
        out = np.empty((len(Z), points.shape[1]))
        for block in self._blocks(len(Z)):
            near = on_map[index.nearest(Z[block], 1)[0][:, 0]]
            local, center, axes = self._tangents(near)
            middle, A = self._affine(near, local)
            theta = np.einsum("qm,qml->ql", Z[block] - middle, np.linalg.pinv(A, rcond=_FOLDED))
            out[block] = center + np.einsum("qfl,ql->qf", axes, theta)
        return out

    def _blocks(self, n: int) -> list[slice]:
        points = self.graph.index.points
        assert points is not None  # the estimator saw to that
        return row_blocks(n, 2 * self.members.shape[1] * points.shape[1])

    def _tangents(self, near: IntArray) -> tuple[Array, Array, Array]:
        """Tangent coordinates of the members, their centre, and the tangent axes."""
        coordinates = gathered(self.graph.index.points, self.members[near])
        center = coordinates.mean(axis=1)
        centered = coordinates - center[:, None, :]
        L = min(self.embedding.shape[1], *centered.shape[1:])
        axes = np.linalg.svd(centered, full_matrices=False)[2][:, :L].transpose(0, 2, 1)
        return centered @ axes, center, axes

    def _affine(self, near: IntArray, local: Array) -> tuple[Array, Array]:
        """Centre on the map, and the least-squares map from tangent coordinates to it."""
        Y = self.embedding[self.members[near]].astype(np.float64)
        middle = Y.mean(axis=1)
        return middle, np.linalg.pinv(local, rcond=1e-10) @ (Y - middle[:, None, :])
