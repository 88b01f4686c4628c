"""Euclidean distances that keep their digits at any offset and any scale."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry._typing import Array, IntArray, Matrix
from manifoldry._validation import power_of_two_scale, row_blocks


@dataclass(frozen=True)
class Frame:
    """Origin and unit in which squares neither cancel nor overflow.

    Sparse data keep the origin at zero, since centring would fill them in.
    """

    origin: Array  # (n_features,)
    unit: float

    @classmethod
    def of(cls, X: Matrix) -> "Frame":
        """Centre on the mean; the unit is a power of two, so scaling is free of rounding."""
        if sparse.issparse(X):
            return cls(np.zeros(X.shape[1]), power_of_two_scale(X.data))
        coarse = power_of_two_scale(X)
        origin = (X / coarse).mean(axis=0, dtype=np.float64) * coarse
        return cls(origin, power_of_two_scale(X - origin))

    def apply(self, X: Matrix) -> Matrix:
        """Coordinates of `X` in this frame, in the precision of `X`."""
        if sparse.issparse(X):
            return X * (1.0 / self.unit)
        return ((X - self.origin) / self.unit).astype(X.dtype, copy=False)


def pair_distances(X: Matrix, Y: Matrix, i: IntArray, j: IntArray, unit: float) -> Array:
    """‖X[i] − Y[j]‖ by direct subtraction in float64, for paired index arrays."""
    out = np.empty(len(i))
    for block in row_blocks(len(i), X.shape[1], budget=2**21):
        out[block] = _row_norms(_subtract(X[i[block]], Y[j[block]]), unit)
    return out


def _subtract(A: Matrix, B: Matrix) -> Matrix:
    if sparse.issparse(A) or sparse.issparse(B):
        return sparse.csr_array(A).astype(np.float64) - sparse.csr_array(B).astype(np.float64)
    return A.astype(np.float64) - B.astype(np.float64)


def _row_norms(D: Matrix, unit: float) -> Array:
    D = D / unit
    squares = D.power(2).sum(axis=1) if sparse.issparse(D) else np.einsum("ij,ij->i", D, D)
    return np.sqrt(squares) * unit


def squared_norms(X: Matrix) -> Array:
    """Squared Euclidean norm of every row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def expanded_squares(X: Matrix, Y: Matrix, y_squares: Array) -> Array:
    """|x|² + |y|² − 2x·y for all pairs by one matrix product; see `expansion_error`."""
    product = X @ Y.T
    D2 = product.toarray() if sparse.issparse(product) else product
    D2 *= -2
    D2 += squared_norms(X)[:, None]
    D2 += y_squares[None, :]
    return np.maximum(D2, 0, out=D2)


def expansion_error(X: Matrix, y_squares: Array) -> Array:
    """Bound, for each row of X, on the rounding error of the expanded squares.

    The expansion cancels where points lie close together far from the origin; the bound says
    when its result can no longer be trusted.
    """
    largest = squared_norms(X).astype(np.float64) + float(y_squares.max(initial=0.0))
    return (X.shape[1] + 8) * float(np.finfo(X.dtype).eps) * largest
