"""Extensions by barycentric weights and local affine maps, and their inverse."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.device import device_of
from manifoldry.extension.base import Extension, KernelExtension, with_training_rows
from manifoldry.extension.kernel_pairs import KernelPairs
from manifoldry.extension.layout import component_rows
from manifoldry.extension.local_on_device import (
    DeviceTangents,
    barycentric_on_device,
    device_of_rows,
    row_blocks_anywhere,
    weighted_rows,
)
from manifoldry.extension.regression import LocalRegression
from manifoldry.neighbors.base import Edges, NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import barycentric_weights, gathered
from manifoldry.util.arrays import to_numpy
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import plan_matrix, power_of_two_scale


@dataclass(frozen=True, eq=False)
class LocalWeights(KernelExtension):
    """Weighted averages of the coordinates of a few training points; weights may be negative."""

    graph: NeighborGraph
    embedding: Array  # (n_train, n_components)
    # Object whose `matrix()` is the alignment matrix M; None if there is no equivalent kernel.
    alignment: Any = field(default=None, kw_only=True)

    @abstractmethod
    def _weights(self, X: Matrix) -> tuple[IntArray, Array]:
        """Neighbors of every new point among the training points, and weights that sum to one.

        The weights are on the current device if there is one.
        """

    def rows(self, X: Matrix) -> sparse.csr_array:
        indices, weights = self._weights(X)
        indptr = np.arange(X.shape[0] + 1) * indices.shape[1]
        shape = (X.shape[0], len(self.embedding))
        entries = to_numpy(weights).ravel(), indices.ravel(), indptr
        return sparse.csr_array(entries, shape=shape)

    def transform(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.embedding.shape[1]))
        for block in row_blocks_anywhere(X.shape[0], self.numbers_per_row):
            indices, weights = self._weights(X[block])
            if (device := device_of(weights)) is not None:
                out[block] = weighted_rows(device, indices, weights, self.embedding)
            else:
                out[block] = np.einsum("qk,qkl->ql", weights, self.embedding[indices])
        return out

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        """μI − M between training points; μ times the weights of new points."""
        if self.alignment is None:
            return Extension.equivalent_kernel(self, X, known)
        M = self.alignment.matrix()
        bound = abs(M).sum(axis=1).max()  # μ, a bound of the eigenvalues of M
        K = bound * sparse.eye_array(M.shape[0]) - M
        return with_training_rows(bound * self.matrix(X), known, K)

    @property
    def numbers_per_row(self) -> int:
        return 2 * (self.graph.k + 1) * max(self._points.shape[1], self.graph.k)

    @property
    def _points(self) -> Matrix:
        points = self.graph.index.points
        assert points is not None  # checked by the estimator
        return points


@dataclass(frozen=True, eq=False)
class Barycentric(LocalWeights):
    """Barycentric weights of the neighbors of a new point, applied to their coordinates.

    This is the limit of LLE's equivalent kernel as its free parameter tends to infinity. Neighbors
    in another connected component than the nearest one, or across a cut of the graph, have weight
    zero.
    """

    reg: float
    labels: IntArray  # connected component of every training point

    def _weights(self, X: Matrix) -> tuple[IntArray, Array]:
        index = self.graph.index
        X = index.as_queries(X)
        indices, distances = index.nearest(X, self.graph.k)
        elsewhere = self.labels[indices] != self.labels[indices[:, :1]]
        if self.graph.removed_edges is not None:
            edges = Edges.of(indices, distances)
            elsewhere |= self.graph.removed_edges.conflicts(edges).reshape(indices.shape)
        if (device := device_of_rows(self._points, X)) is not None:
            found = indices, distances, self.reg, elsewhere
            return indices, barycentric_on_device(device, self._points, X, *found)
        differences = gathered(index.points, indices) - gathered(X, np.arange(X.shape[0])[:, None])
        unit = np.where(distances[:, -1] > 0, distances[:, -1], 1.0)[:, None, None]
        return indices, barycentric_weights(differences / unit, self.reg, elsewhere)


@dataclass(frozen=True, eq=False)
class BarycentricKernel(Barycentric):
    """Barycentric weights as the kernel of LLE, whose coordinates are its eigenvectors."""

    def kernel_pairs(self, X: Matrix) -> KernelPairs:
        """The kernel at pairs of a new point and a training point.

        Between two new points it is zero: neither has a weight on the other. If x is a training
        point, its pair with itself holds nearly all of μI − M.
        """
        n, m = len(self.embedding), X.shape[0]
        what = f"the kernel between {m} and {n} points"
        plan_matrix((n, m), 40, what, "pass fewer rows, or a smaller max_rows")
        known = self.graph.identical(X)
        K = np.asarray(self.equivalent_kernel(X, known).toarray())
        V, constant = self._eigenvectors()
        products = K @ V
        index = self.graph.index
        nearest = index.nearest(index.as_queries(X), 1)[0][:, 0]
        v = products / K.sum(axis=1, keepdims=True)  # the sum is μ, the limit of the eigenvalues
        return KernelPairs(
            K,
            products,
            V,
            (v / constant[nearest, None]) ** 2,
            (K @ constant, constant),
            (self.labels[nearest], self.labels),
            symmetric=False,
        )

    def _eigenvectors(self) -> tuple[Array, Array]:
        """Eigenvectors of unit norm in each component, and the constant one; else zero."""
        V, constant = np.zeros(self.embedding.shape), np.zeros(len(self.embedding))
        for rows in component_rows(self.labels):
            Y = self.embedding[rows].astype(np.float64)
            Y -= Y.mean(axis=0)  # undoes the placement of the component
            norms = np.linalg.norm(Y, axis=0)
            V[rows] = np.divide(Y, norms, out=np.zeros_like(Y), where=norms > 0)
            constant[rows] = 1 / np.sqrt(len(rows))
        return V, constant


@dataclass(frozen=True, eq=False)
class LocalAffine(LocalWeights):
    """The least-squares affine map from a local tangent space to the embedding, and its inverse.

    A new point uses the neighborhood of its nearest training point.
    """

    members: IntArray  # (n_train, k), each point first in its own neighborhood
    # Singular values of the affine map below this fraction of the largest are ignored by the
    # inverse: the embedding is folded there, and the inverse would amplify noise.
    inverse_singular_tol: float = 0.05
    # Singular values of tangent coordinates below this fraction of the largest are rounding.
    tangent_singular_tol: float = 1e-10

    __getstate__ = state_of_fields

    def _weights(self, X: Matrix) -> tuple[IntArray, Array]:
        query = self.graph.index.as_queries(X)
        members = self.members[self.graph.index.nearest(query, 1)[0][:, 0]]
        if (tangents := self._tangents_on_device(members, query)) is not None:
            return members, tangents.weights(query)
        local, center, axes = self._tangents(members)
        position = gathered(query, np.arange(query.shape[0])[:, None])[:, 0] - center
        theta = np.einsum("qf,qfl->ql", position / self._unit, axes)
        # The pseudo-inverse of centered coordinates has rows that sum to zero.
        steps = np.einsum(
            "ql,qlk->qk", theta, np.linalg.pinv(local, rcond=self.tangent_singular_tol)
        )
        return members, 1 / members.shape[1] + steps

    def inverse(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, by the neighborhood of the nearest embedded point."""
        out = np.empty((len(Z), self._points.shape[1]))
        for block in self._blocks(len(Z)):
            near = self._nearest_embedded(Z[block], 1)[:, 0]
            out[block] = self._inverse_affine(Z[block], self.members[near])
        return out

    def inverse_error(self, rows: IntArray) -> float:
        """Mean leave-one-out error of `inverse` on training rows."""
        total, unit = 0.0, self._unit
        for block in self._blocks(len(rows)):
            left_out = rows[block]
            Z = self.embedding[left_out].astype(np.float64)
            two = self._nearest_embedded(Z, 2)
            near = np.where(two[:, 0] == left_out, two[:, 1], two[:, 0])
            members = self.members[near]
            members = np.where(members == left_out[:, None], near[:, None], members)
            truth = gathered(self._points, left_out[:, None])[:, 0]
            residuals = (self._inverse_affine(Z, members) - truth) / unit
            total += float(np.linalg.norm(residuals, axis=1).sum())
        return total / len(rows) * unit

    def _inverse_affine(self, Z: Array, members: IntArray) -> Array:
        if (tangents := self._tangents_on_device(members)) is not None:
            return tangents.inverse(Z, self.embedding, self.inverse_singular_tol)
        local, center, axes = self._tangents(members)
        middle, A = self._affine(members, local)
        size = power_of_two_scale(A)
        inverse = np.linalg.pinv(A / size, rcond=self.inverse_singular_tol)
        theta = np.einsum("qm,qml->ql", (Z - middle) / size, inverse)
        return np.asarray(center + self._unit * np.einsum("qfl,ql->qf", axes, theta))

    def _nearest_embedded(self, Z: Array, k: int) -> IntArray:
        embedded, index = self._embedded
        return np.asarray(embedded[index.nearest(Z, k)[0]])

    @cached_property
    def _embedded(self) -> tuple[IntArray, NeighborIndex]:
        embedded = np.flatnonzero(np.isfinite(self.embedding).all(axis=1))
        return embedded, choose_index(self.embedding[embedded].astype(np.float64))

    def _blocks(self, n: int) -> list[slice]:
        return row_blocks_anywhere(n, self.numbers_per_row)

    def _tangents_on_device(self, members: IntArray, *rows: Matrix) -> DeviceTangents | None:
        """The tangent spaces of neighborhoods on the current device; None for those on the CPU."""
        device = device_of_rows(self._points, *rows)
        if device is None:
            return None
        dimension, tol = self.embedding.shape[1], self.tangent_singular_tol
        return DeviceTangents(device, self._points, members, self._unit, dimension, tol)

    @cached_property
    def _unit(self) -> float:
        """Unit of length, so that no pseudo-inverse over- or underflows."""
        return power_of_two_scale(self._points)

    def _tangents(self, members: IntArray) -> tuple[Array, Array, Array]:
        """Tangent coordinates of the neighborhoods in units of `_unit`, their centers and axes."""
        coordinates = gathered(self._points, members)
        center = coordinates.mean(axis=1)
        centered = (coordinates - center[:, None, :]) / self._unit
        L = min(self.embedding.shape[1], *centered.shape[1:])
        if not np.isfinite(centered).all():  # LAPACK might never return
            raise ValueError("the training data of the model are not finite; fit it again")
        axes = np.linalg.svd(centered, full_matrices=False)[2][:, :L].transpose(0, 2, 1)
        return centered @ axes, center, axes

    def _affine(self, members: IntArray, local: Array) -> tuple[Array, Array]:
        """Mean coordinates, and the least-squares linear map from tangent coordinates."""
        Y = self.embedding[members].astype(np.float64)
        middle = Y.mean(axis=1)
        return middle, np.linalg.pinv(local, rcond=self.tangent_singular_tol) @ (
            Y - middle[:, None, :]
        )


@dataclass(frozen=True, eq=False)
class TangentInverse:
    """Inverse by local affine maps or by local regression.

    The one with the smaller leave-one-out error on a sample is used. Affine maps are worse on
    strongly curved or noisy data.
    """

    affine: LocalAffine
    regression: LocalRegression
    embedded: IntArray  # training rows on which the regression was fitted

    __getstate__ = state_of_fields

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        return self.affine.inverse(Z) if self.use_tangents else self.regression.predict(Z)

    @cached_property
    def use_tangents(self) -> bool:
        """Whether the leave-one-out error of the affine maps is at most that of the regression."""
        rows = self.embedded[self.regression.spacing.sample]
        return self.affine.inverse_error(rows) <= self.regression.mean_residual
