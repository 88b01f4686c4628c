"""The affine maps of PCA and its relatives, forwards and backwards."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.eigen import Spectrum
from manifoldry.extension.base import Extension
from manifoldry.neighbors.distances import Frame
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class AffineMap(Extension):
    """z = (x − mean)·V and back, x = mean + z·Vᵀ."""

    mean: Array  # (n_features,), rounded as numbers of its size are
    rest: Array  # (n_features,), what the rounding left of the mean, in units of `unit`
    components: Array  # V, (n_features, n_components), orthonormal columns or zero ones
    unit: float  # a power of two near the size of the data: products in it cannot overflow

    @classmethod
    def of(cls, X: Matrix, frame: Frame, spectrum: Spectrum) -> "AffineMap":
        """The map whose training coordinates are U·√ℓ, for eigenpairs (ℓ, U) of the Gram."""
        F = frame.apply(X)
        # Dual vectors sum to zero, so centring F would change nothing here.
        V = np.asarray(F.T @ spectrum.dual_vectors)
        offset = np.asarray(F.mean(axis=0)).ravel()
        mean = frame.origin + offset * frame.unit
        rest = offset - (mean - frame.origin) / frame.unit
        return cls(mean, rest, V, frame.unit)

    def transform(self, X: Matrix) -> Array:
        if sparse.issparse(X):
            center = self.mean / self.unit + self.rest
            scaled = (X / self.unit) @ self.components - center @ self.components
        else:
            scaled = ((X - self.mean) / self.unit - self.rest) @ self.components
        return np.asarray(scaled) * self.unit

    def among(self, X: Matrix) -> Array:
        """Inner products of new points with each other, centred as the training points were."""
        dense = X.toarray() if sparse.issparse(X) else X
        centered = (dense - self.mean) / self.unit - self.rest
        return np.asarray(centered @ centered.T)

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        raise ValueError(
            "a linear map keeps no data; its kernel is the inner product of centred rows, "
            "(X - mean) @ (X_train - mean).T"
        )

    def predict(self, Z: Array) -> Array:
        """Data at map positions `Z`, (n_new, n_features)."""
        return self.mean + ((Z / self.unit) @ self.components.T + self.rest) * self.unit
