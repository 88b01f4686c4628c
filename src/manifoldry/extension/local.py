"""New points placed by the geometry of their neighborhood: barycenters and local affine maps."""

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.extension.base import Extension, KernelExtension, with_training_rows
from manifoldry.extension.regression import LocalRegression
from manifoldry.neighbors.base import Edges, NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import barycentric_weights, gathered
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import power_of_two_scale, row_blocks


@dataclass(frozen=True, eq=False)
class LocalWeights(KernelExtension):
    """Coordinates of a few training points, averaged with weights that may be negative."""

    graph: NeighborGraph
    embedding: Array  # (n_train, n_components)
    # What the map costs, with a method `matrix`; None where nobody asks for its kernel.
    alignment: Any = field(default=None, kw_only=True)

    @abstractmethod
    def _weights(self, X: Matrix) -> tuple[IntArray, Array]:
        """Training points of every new one, and their weights, which sum to one."""

    def rows(self, X: Matrix) -> sparse.csr_array:
        indices, weights = self._weights(X)
        indptr = np.arange(X.shape[0] + 1) * indices.shape[1]
        shape = (X.shape[0], len(self.embedding))
        return sparse.csr_array((weights.ravel(), indices.ravel(), indptr), shape=shape)

    def transform(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.embedding.shape[1]))
        for block in row_blocks(X.shape[0], self.numbers_per_row):
            indices, weights = self._weights(X[block])
            out[block] = np.einsum("qk,qkl->ql", weights, self.embedding[indices])
        return out

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        """μI − M among training points; μ times its weights on them at a new point."""
        if self.alignment is None:
            return Extension.equivalent_kernel(self, X, known)
        M = self.alignment.matrix()
        bound = abs(M).sum(axis=1).max()  # μ: no eigenvalue is larger
        K = bound * sparse.eye_array(M.shape[0]) - M
        return with_training_rows(bound * self.matrix(X), known, K)

    @property
    def numbers_per_row(self) -> int:
        return 2 * (self.graph.k + 1) * max(self._points.shape[1], self.graph.k)

    @property
    def _points(self) -> Matrix:
        points = self.graph.index.points
        assert points is not None  # the estimator saw to that
        return points


@dataclass(frozen=True, eq=False)
class Barycentric(LocalWeights):
    """Weights that reproduce a new point from its neighbors, applied to their coordinates.

    This is the limit of LLE's equivalent kernel in which its free parameter goes to infinity.
    Neighbors on another component of the map than the nearest one, or across a cut of the graph,
    get no weight.
    """

    reg: float
    labels: IntArray  # component of every training point

    def _weights(self, X: Matrix) -> tuple[IntArray, Array]:
        index = self.graph.index
        X = index.read(X)
        indices, distances = index.nearest(X, self.graph.k)
        differences = gathered(index.points, indices) - gathered(X, np.arange(X.shape[0])[:, None])
        unit = np.where(distances[:, -1] > 0, distances[:, -1], 1.0)[:, None, None]
        elsewhere = self.labels[indices] != self.labels[indices[:, :1]]
        if self.graph.cuts is not None:
            edges = Edges.of(indices, distances)
            elsewhere |= self.graph.cuts.across(edges).reshape(indices.shape)
        return indices, barycentric_weights(differences / unit, self.reg, elsewhere)


@dataclass(frozen=True, eq=False)
class LocalAffine(LocalWeights):
    """The affine map that carries a training neighborhood's tangent plane onto the map.

    A new point takes the neighborhood of the training point nearest to it; a position on the map
    is carried back by the inverse of the same map.
    """

    members: IntArray  # (n_train, k), the point itself first
    # Where the map shrinks one direction to less than this fraction of another, it is folded there
    # and going back along that direction would blow up noise.
    folded: float = 0.05
    # Tangent coordinates smaller than this fraction of the largest are rounding.
    flat: float = 1e-10

    def _weights(self, X: Matrix) -> tuple[IntArray, Array]:
        query = self.graph.index.read(X)
        members = self.members[self.graph.index.nearest(query, 1)[0][:, 0]]
        local, center, axes = self._tangents(members)
        position = gathered(query, np.arange(query.shape[0])[:, None])[:, 0] - center
        theta = np.einsum("qf,qfl->ql", position, axes)
        # The pseudo-inverse of centered coordinates sums to zero over the members.
        steps = np.einsum("ql,qlk->qk", theta, np.linalg.pinv(local, rcond=self.flat))
        return members, 1 / members.shape[1] + steps

    def inverse(self, Z: Array) -> Array:
        """Data at map positions, through the neighborhood of the nearest embedded point."""
        out = np.empty((len(Z), self._points.shape[1]))
        for block in self._blocks(len(Z)):
            near = self._nearest_on_map(Z[block], 1)[:, 0]
            out[block] = self._inverse_affine(Z[block], self.members[near])
        return out

    def inverse_error(self, rows: IntArray) -> float:
        """Mean distance of training rows from what `inverse` makes of them, each left out."""
        total, unit = 0.0, power_of_two_scale(self._points)
        for block in self._blocks(len(rows)):
            left_out = rows[block]
            Z = self.embedding[left_out].astype(np.float64)
            two = self._nearest_on_map(Z, 2)
            near = np.where(two[:, 0] == left_out, two[:, 1], two[:, 0])
            members = self.members[near]
            members = np.where(members == left_out[:, None], near[:, None], members)
            truth = gathered(self._points, left_out[:, None])[:, 0]
            residuals = (self._inverse_affine(Z, members) - truth) / unit
            total += float(np.linalg.norm(residuals, axis=1).sum())
        return total / len(rows) * unit

    def _inverse_affine(self, Z: Array, members: IntArray) -> Array:
        local, center, axes = self._tangents(members)
        middle, A = self._affine(members, local)
        theta = np.einsum("qm,qml->ql", Z - middle, np.linalg.pinv(A, rcond=self.folded))
        return np.asarray(center + np.einsum("qfl,ql->qf", axes, theta))

    def _nearest_on_map(self, Z: Array, k: int) -> IntArray:
        on_map, index = self._map
        return np.asarray(on_map[index.nearest(Z, k)[0]])

    @cached_property
    def _map(self) -> tuple[IntArray, NeighborIndex]:
        on_map = np.flatnonzero(np.isfinite(self.embedding).all(axis=1))
        return on_map, choose_index(self.embedding[on_map].astype(np.float64))

    def _blocks(self, n: int) -> list[slice]:
        return row_blocks(n, self.numbers_per_row)

    def _tangents(self, members: IntArray) -> tuple[Array, Array, Array]:
        """Tangent coordinates of the members, their center, and the tangent axes."""
        coordinates = gathered(self._points, members)
        center = coordinates.mean(axis=1)
        centered = coordinates - center[:, None, :]
        L = min(self.embedding.shape[1], *centered.shape[1:])
        axes = np.linalg.svd(centered, full_matrices=False)[2][:, :L].transpose(0, 2, 1)
        return centered @ axes, center, axes

    def _affine(self, members: IntArray, local: Array) -> tuple[Array, Array]:
        """Center on the map, and the least-squares map from tangent coordinates to it."""
        Y = self.embedding[members].astype(np.float64)
        middle = Y.mean(axis=1)
        return middle, np.linalg.pinv(local, rcond=self.flat) @ (Y - middle[:, None, :])


@dataclass(frozen=True, eq=False)
class TangentInverse:
    """From the map to the data along tangent planes, or by regression where data are no sheet.

    The one with the smaller leave-one-out error on a sample is taken. On curled-up or noisy data
    tangent planes point past the data, and an average of neighbors is nearer to them.
    """

    affine: LocalAffine
    regression: LocalRegression
    on_map: IntArray  # training rows that the regression was made on

    def predict(self, Z: Array) -> Array:
        """Data at map positions `Z`, (n_new, n_features)."""
        return self.affine.inverse(Z) if self.use_tangents else self.regression.predict(Z)

    @cached_property
    def use_tangents(self) -> bool:
        """Whether tangent planes lead back to the data at least as well as the regression."""
        rows = self.on_map[self.regression.map.sample]
        return self.affine.inverse_error(rows) <= self.regression.mean_residual
