"""Affine extensions: the map of PCA and its inverse, and one affine map per component."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.eigen import Gram, Spectrum
from manifoldry.extension.base import Extension
from manifoldry.extension.kernel_pairs import KernelPairs
from manifoldry.extension.layout import Layout
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.distances import Frame
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class AffineMap(Extension):
    """z = (x − mean)·V, with the inverse x = mean + z·Vᵀ."""

    mean: Array  # (n_features,)
    rest: Array  # (n_features,), rounding error of the mean, in units of `unit`
    components: Array  # V, (n_features, n_components), with orthonormal or zero columns
    unit: float  # a power of two near the scale of the data, so that products do not overflow
    mean_squares: Array  # (n_components,), of the training coordinates, in units of unit²

    @classmethod
    def of(cls, gram: Gram, offset: Array, frame: Frame, spectrum: Spectrum) -> "AffineMap":
        """The map with training coordinates U·√ℓ, for eigenpairs (ℓ, U) of the Gram matrix.

        The factor of `gram` has the data in the `frame`, where their mean is `offset`; it need not
        be centered, since dual vectors sum to zero.
        """
        V = gram.times_transpose(spectrum.dual_vectors)
        # Dual vectors are zero where the eigenvalue is.
        squares = np.where(np.any(spectrum.dual_vectors, axis=0), spectrum.values, 0.0)
        return cls.of_axes(V, squares / gram.shape[0], offset, frame)

    @classmethod
    def of_axes(cls, V: Array, mean_squares: Array, offset: Array, frame: Frame) -> "AffineMap":
        """The map to the axes V of data whose mean in the `frame` is `offset`."""
        mean = frame.origin + offset * frame.unit
        rest = offset - (mean - frame.origin) / frame.unit
        return cls(mean, rest, V, frame.unit, mean_squares)

    def transform(self, X: Matrix) -> Array:
        if sparse.issparse(X):
            center = self.mean / self.unit + self.rest
            scaled = (X / self.unit) @ self.components - center @ self.components
        else:
            scaled = self._products(X)
        return np.asarray(scaled) * self.unit

    def _products(self, X: Array) -> Array:
        """(x − mean)·V in units of `unit`; blocks of the differences stay in the cache."""
        out = np.empty((X.shape[0], self.components.shape[1]))
        for rows in row_blocks(X.shape[0], X.shape[1], budget=2**17):
            centered = np.subtract(X[rows], self.mean, dtype=np.float64)
            centered *= 1 / self.unit
            centered -= self.rest
            out[rows] = centered @ self.components
        return out

    def kernel_pairs(self, X: Matrix) -> KernelPairs:
        """Inner products of pairs of new points, centered by the training mean."""
        dense = X.toarray() if sparse.issparse(X) else X
        centered = (dense - self.mean) / self.unit - self.rest
        Z = self.transform(X) / self.unit
        kernel = np.asarray(centered @ centered.T, dtype=np.float64)
        return KernelPairs.of_coordinates(kernel, Z, self.mean_squares, self.unit)

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        raise ValueError(
            "a linear map does not store the training data; compute its kernel as "
            "(X - mean) @ (X_train - mean).T"
        )

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        return self.mean + ((Z / self.unit) @ self.components.T + self.rest) * self.unit


@dataclass(frozen=True, eq=False)
class PiecewiseAffineMap(Extension):
    """One affine map per connected component, applied to the coordinates of another extension.

    A new point belongs to the component of its nearest training point.
    """

    basis: Extension
    index: NeighborIndex
    centers: Array  # (n_connected, n_basis)
    axes: Array  # (n_connected, n_basis, n_components)
    layout: Layout

    def transform(self, X: Matrix) -> Array:
        return self.place(*self.component_coordinates(X))

    def place(self, Y: Array, component: IntArray) -> Array:
        return self.layout.place(Y, component)

    def component_coordinates(self, X: Matrix) -> tuple[Array, IntArray]:
        component = self._component(X)
        steps = self.basis.transform(X) - self.centers[component]
        return np.einsum("nm,nml->nl", steps, self.axes[component]), component

    def _component(self, X: Matrix) -> IntArray:
        if len(self.centers) == 1 and self.layout.labels.min() == 0:
            return np.zeros(X.shape[0], dtype=np.intp)
        nearest = self.index.nearest(self.index.as_queries(X), 1)[0][:, 0]
        return self.layout.labels[nearest]
