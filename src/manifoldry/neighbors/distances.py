"""Distances that keep their digits at any offset and any scale."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import largest_modulus, power_of_two_scale, row_blocks

# Squares of larger numbers, or sums of such squares, leave the range of double precision.
_MAX_MAGNITUDE = 1e150
_SAFE_MAGNITUDE = 1e60  # magnitudes whose squares are far from both ends of the range of numbers
_CACHE_SIZE = 2**17  # numbers that stay in the processor's cache while they are worked on


@dataclass(frozen=True)
class Frame:
    """Origin and unit in which squares neither cancel nor overflow.

    Sparse data keep the origin at zero, since centering would fill them in.
    """

    origin: Array  # (n_features,)
    unit: float

    @classmethod
    def of(cls, X: Matrix) -> "Frame":
        """Center on the mean; the unit is a power of two, so scaling is free of rounding."""
        if sparse.issparse(X):
            return cls.at_zero(X)
        blocks = row_blocks(*X.shape)
        scale = power_of_two_scale(X)
        total = sum((X[block] / scale).sum(axis=0, dtype=np.float64) for block in blocks)
        origin = total / X.shape[0] * scale
        return cls(origin, max(power_of_two_scale(X[block] - origin) for block in blocks))

    @classmethod
    def at_zero(cls, X: Matrix) -> "Frame":
        """Only a unit: for what works with differences, and need not be centered."""
        return cls(np.zeros(X.shape[1]), power_of_two_scale(X))

    def apply(self, X: Matrix) -> Matrix:
        """Coordinates of `X` in this frame, in double precision."""
        largest = largest_modulus(X)
        if largest / self.unit > _MAX_MAGNITUDE:
            raise ValueError(
                f"X has values up to {largest:.0e} where the training data extend over about "
                f"{self.unit:.0e}, so that distances overflow; check the units of X"
            )
        if sparse.issparse(X):
            return X.astype(np.float64) * (1.0 / self.unit)
        return (X - self.origin) / self.unit


def pair_distances(
    X: Matrix, Y: Matrix, i: IntArray, j: IntArray, unit: float, p: float = 2.0
) -> Array:
    """‖X[i] − Y[j]‖ₚ by direct subtraction in float64, for paired index arrays."""
    out = np.empty(len(i))
    numbers = Y.nnz // Y.shape[0] + 1 if sparse.issparse(Y) else Y.shape[1]
    for block in row_blocks(len(i), numbers, budget=_CACHE_SIZE):
        out[block] = _scaled_norms(_subtract(X[i[block]], Y[j[block]]), unit, p)
    return out


def neighbor_distances(
    X: Matrix, Y: Matrix, neighbors: IntArray, unit: float, p: float = 2.0
) -> Array:
    """Distances (n, k) from every row of `X` to its neighbors (n, k) among the rows of `Y`.

    The same as `pair_distances` to the last bit, by several threads.
    """
    n, k = neighbors.shape
    out = np.empty((n, k))

    def fill(part: slice) -> None:
        for block in row_blocks(part.stop - part.start, k * Y.shape[1], budget=_CACHE_SIZE):
            rows = slice(part.start + block.start, part.start + block.stop)
            # In place: a second array of this size would be fetched from the system every time.
            steps = np.take(Y, neighbors[rows], axis=0).astype(np.float64, copy=False)
            steps -= X[rows][:, None]
            lengths = _scaled_norms(steps.reshape(-1, steps.shape[2]), unit, p)
            out[rows] = lengths.reshape(-1, k)

    if sparse.issparse(X) or sparse.issparse(Y):
        rows = np.repeat(np.arange(n), k)
        return pair_distances(X, Y, rows, neighbors.ravel(), unit, p).reshape(n, k)
    map_threads(fill, row_blocks(n, k * Y.shape[1], budget=2**22))
    return out


def _subtract(A: Matrix, B: Matrix) -> Matrix:
    if sparse.issparse(A) or sparse.issparse(B):
        A, B = sparse.csr_array(A), sparse.csr_array(B)
    return A.astype(np.float64, copy=False) - B.astype(np.float64, copy=False)


def _scaled_norms(D: Matrix, unit: float, p: float) -> Array:
    """Norms of rows by way of a unit, where squares might leave the range of numbers."""
    if 1 / _SAFE_MAGNITUDE < unit < _SAFE_MAGNITUDE:
        return _row_norms(D, p)  # the same bits: units are powers of two
    D /= unit
    return _row_norms(D, p) * unit


def _row_norms(D: Matrix, p: float) -> Array:
    if p == 2:
        return np.sqrt(squared_norms(D))
    if p == 1:
        return np.abs(D).sum(axis=1)
    if np.isinf(p):
        return np.abs(D).max(axis=1)
    return np.asarray((np.abs(D) ** p).sum(axis=1) ** (1 / p))


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


def expansion_error(
    x_squares: Array, y_squares: Array | float, n_features: int, precision: Any = np.float64
) -> Array:
    """Bound on the rounding error of the expanded squares of points with these squared norms.

    The expansion cancels where points lie close together far from the origin; the bound says
    when its result can no longer be trusted.
    """
    info = np.finfo(precision)
    return (n_features + 8) * (float(info.eps) * (x_squares + y_squares) + float(info.tiny))


def corrected_squares(
    A: Matrix,
    B: Matrix,
    squares: Array,
    error: Array,
    X: Matrix,
    Y: Matrix,
    unit: float,
    close: float = 1e4,
) -> Array:
    """Squared distances of A to B, which are X and Y in a frame; small ones by subtraction.

    Those below `close` times their possible error have lost too many digits.
    """
    D2 = expanded_squares(A, B, squares)
    i, j = np.nonzero(close * error[:, None] >= D2)
    D2[i, j] = (pair_distances(X, Y, i, j, unit) / unit) ** 2
    return D2


def squared_distances(
    X: Matrix, Y: Matrix, frame: Frame, accuracy: float, *, direct: float = 2e8
) -> Array:
    """Squared Euclidean distances in units of the frame, each right to `accuracy`.

    One matrix product where rounding allows it, else (points close together but far from the
    origin) direct subtraction, which is slower and always right. Points that coincide are at
    distance exactly zero either way. Below `direct` multiplications subtracting every pair
    outright costs next to nothing.
    """
    if sparse.issparse(X) or sparse.issparse(Y):
        X, Y = sparse.csr_array(X), sparse.csr_array(Y)
    A, B = frame.apply(X), frame.apply(Y)
    squares = squared_norms(B)
    error = expansion_error(squared_norms(A), squares.max(initial=0.0), A.shape[1])
    work = float(X.shape[0]) * Y.shape[0] * X.shape[1]
    if error.max(initial=0.0) > accuracy or (work < direct and not sparse.issparse(X)):
        return _subtracted_squares(X / frame.unit, Y / frame.unit)
    D2 = np.empty((X.shape[0], Y.shape[0]))

    def fill(rows: slice) -> None:
        D2[rows] = corrected_squares(A[rows], B, squares, error[rows], X[rows], Y, frame.unit)

    with one_blas_thread():
        map_threads(fill, row_blocks(len(D2), D2.shape[1], budget=2**18))
    return D2


def _subtracted_squares(X: Matrix, Y: Matrix) -> Array:
    """Squared distances pair by pair, of sparse rows in blocks so that few are dense at a time."""
    from scipy.spatial.distance import cdist

    if not sparse.issparse(X):
        return np.asarray(cdist(X, Y, "sqeuclidean"))
    D2 = np.empty((X.shape[0], Y.shape[0]))
    for rows in row_blocks(*X.shape):
        dense = X[rows].toarray()
        for columns in row_blocks(*Y.shape):
            D2[rows, columns] = cdist(dense, Y[columns].toarray(), "sqeuclidean")
    return D2


def check_range(unit: float, low: float = 1e-153, high: float = 1e153) -> None:
    """Refuse lengths whose squares, the eigenvalues, leave the range of double precision."""
    if not low < unit < high:
        raise ValueError(
            f"the data have a spread of about {unit:.0e}, whose square leaves the range of double "
            f"precision (spreads from {low:.0e} to {high:.0e}); multiply X by a constant first"
        )
