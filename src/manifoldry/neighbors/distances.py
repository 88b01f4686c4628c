"""Distances that are accurate for data of any offset and scale."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    ROUNDING,
    largest_modulus,
    power_of_two_scale,
    row_blocks,
    spread_rows,
    square_tiles,
)

# Sums of squares of larger numbers may overflow in double precision.
_MAX_MAGNITUDE = 1e150
_SAFE_MAGNITUDE = 1e60  # squares up to this magnitude, and of its inverse, are safe
_SAFE_SINGLE = 1e30  # differences of numbers up to this magnitude are finite in single precision
_SPARSE_METRICS = ("euclidean", "l2", "cosine", "manhattan", "cityblock", "l1")
_CACHE_SIZE = 2**17  # block size in numbers that fits into the processor cache


@dataclass(frozen=True)
class Frame:
    """Origin and unit of coordinates in which squares neither cancel nor overflow.

    For sparse data the origin is zero, since centering would make them dense.
    """

    origin: Array  # (n_features,)
    unit: float

    @classmethod
    def of(cls, X: Matrix, *, robust: bool = False) -> "Frame":
        """Use the mean as origin and a power of two as unit, so that scaling is exact.

        With `robust` the origin is within the range of most values of each feature. The mean is
        not if a few rows are very distant; all others would then be equal up to rounding. It is
        rounded to the precision of `X`, so that :meth:`apply_single` needs no other.
        """
        if sparse.issparse(X):
            return cls.at_zero(X)
        # The largest modulus of X − origin follows from the extremes of each feature.
        high, low = X.max(axis=0), X.min(axis=0)
        scale = power_of_two_scale(np.stack([high, low]))
        if scale < _SAFE_MAGNITUDE:
            total = X.sum(axis=0, dtype=np.float64)
        else:  # the sum may overflow
            # In double precision, since the scale of large float32 is beyond the range of float32.
            blocks = row_blocks(*X.shape)
            total = scale * sum(
                np.divide(X[rows], scale, dtype=np.float64).sum(axis=0) for rows in blocks
            )
        return cls.of_statistics(X, total, low, high, robust=robust)

    @classmethod
    def of_statistics(
        cls, X: Array, total: Array, low: Array, high: Array, *, robust: bool = False
    ) -> "Frame":
        """The frame of `X`, given the sum and the extremes of each feature."""
        origin = total / X.shape[0]
        if robust:
            origin = np.clip(origin, *_usual_range(X)).astype(X.dtype).astype(np.float64)
        return cls(origin, power_of_two_scale(np.stack([high - origin, low - origin])))

    @classmethod
    def with_coordinates(cls, X: Array) -> tuple["Frame", Array]:
        """Return the frame of dense data and their coordinates, in fewer passes over the data."""
        with np.errstate(over="ignore", invalid="ignore"):
            origin = X.sum(axis=0, dtype=np.float64) / X.shape[0]
            out, largest = np.empty(X.shape), 0.0
            for rows in row_blocks(len(X), X.shape[1], budget=_CACHE_SIZE):
                np.subtract(X[rows], origin, out=out[rows])
                largest = max(largest, largest_modulus(out[rows]))
        if not largest < _SAFE_MAGNITUDE:  # the sum may have overflowed
            frame = cls.of(X)
            return frame, np.asarray(frame.apply(X), dtype=np.float64)
        frame = cls(origin, power_of_two_scale(np.array([largest])))
        out *= 1 / frame.unit  # exact, since it is a power of two
        return frame, out

    @classmethod
    def at_zero(cls, X: Matrix) -> "Frame":
        """Use zero as origin, for computations with differences."""
        return cls(np.zeros(X.shape[1]), power_of_two_scale(X))

    def apply(self, X: Matrix) -> Matrix:
        """Coordinates of `X` in this frame, in double precision."""
        self.check(X)
        if sparse.issparse(X) and not self.origin.any():
            return X.astype(np.float64) * (1.0 / self.unit)
        centered = (X.toarray() if sparse.issparse(X) else X) - self.origin
        centered /= self.unit
        return centered

    def check(self, X: Matrix) -> None:
        """Raise ValueError if squares of `X` in this frame would overflow."""
        largest = largest_modulus(X)
        if largest / self.unit > _MAX_MAGNITUDE:
            raise ValueError(
                f"X has values up to {largest:.0e}, but the training data only up to about "
                f"{self.unit:.0e}, so distances overflow; check the units of X"
            )

    @property
    def is_single(self) -> bool:
        """Whether the origin and the unit are numbers of single precision."""
        if not 1 / _SAFE_SINGLE < self.unit < _SAFE_SINGLE:
            return False
        return bool((self.origin == self.origin.astype(np.float32)).all())

    def apply_single(self, X: Array) -> Array:
        """The same rounded to single precision, without conversions if that is the type of `X`."""
        if X.dtype != np.float32 or not self.is_single or largest_modulus(X) > _SAFE_SINGLE:
            return np.asarray(self.apply(X), dtype=np.float32)
        centered = X - self.origin.astype(np.float32)
        centered *= np.float32(1 / self.unit)  # a power of two
        return centered


def _usual_range(X: Array, tail: float = 0.1, most: int = 1000) -> tuple[Array, Array]:
    """Quantiles `tail` and 1 − `tail` of each feature, from at most `most` rows."""
    features = np.ascontiguousarray(X[spread_rows(X.shape[0], most)].T)
    last = features.shape[1] - 1
    low, high = int(np.floor(tail * last)), int(np.ceil((1 - tail) * last))
    features.partition(sorted({low, high}), axis=1)  # faster than np.quantile
    return features[:, low].astype(np.float64), features[:, high].astype(np.float64)


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
    """Distances (n, k) from each row of `X` to its neighbors (n, k) among the rows of `Y`.

    Bitwise equal to `pair_distances`, but uses several threads.
    """
    n, k = neighbors.shape
    out = np.empty((n, k))

    def fill(part: slice) -> None:
        for block in row_blocks(part.stop - part.start, k * Y.shape[1], budget=_CACHE_SIZE):
            rows = slice(part.start + block.start, part.start + block.stop)
            # In place, to avoid allocating a second array of this size for each block.
            steps = np.take(Y, neighbors[rows], axis=0).astype(np.float64, copy=False)
            steps -= X[rows][:, None]
            lengths = _scaled_norms(steps.reshape(-1, steps.shape[2]), unit, p)
            out[rows] = lengths.reshape(-1, k)

    if sparse.issparse(X) or sparse.issparse(Y):
        rows = np.repeat(np.arange(n), k)
        return pair_distances(X, Y, rows, neighbors.ravel(), unit, p).reshape(n, k)
    map_threads(fill, row_blocks(n, k * Y.shape[1], budget=2**22))
    return out


def metric_distances(
    X: Matrix,
    Y: Matrix,
    metric: Any,
    params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    first_row: int = 0,
) -> Array:
    """Distances of all pairs of rows in any metric, which must be finite and not negative.

    `first_row` is the number that an error message gives to the first row of `X`.
    """
    from sklearn.metrics import pairwise_distances

    X, Y = X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)
    check_takes_sparse(metric, X)
    D = pairwise_distances(X, Y, metric=metric, n_jobs=n_jobs, **(params or {}))
    D = np.asarray(D, dtype=np.float64)
    # The comparison is false for NaN. Some metrics are negative by rounding for equal points.
    valid = (-ROUNDING <= D) & (np.inf > D)
    if not valid.all():
        i, j = np.argwhere(~valid)[0]
        raise ValueError(
            f"metric={metric!r} gives {D[i, j]} as the distance of row {first_row + i} to training "
            f"row {j}; distances must be finite and not negative: remove or rescale these rows, "
            "or use another metric"
        )
    return np.maximum(D, 0.0)


def check_takes_sparse(metric: Any, X: Matrix) -> None:
    """Raise ValueError if `X` is sparse and the metric does not support that."""
    if sparse.issparse(X) and isinstance(metric, str) and metric not in _SPARSE_METRICS:
        raise ValueError(
            f"metric={metric!r} does not support sparse data; pass X.toarray() or one of the "
            f"metrics {', '.join(map(repr, _SPARSE_METRICS))}"
        )


def _subtract(A: Matrix, B: Matrix) -> Matrix:
    if sparse.issparse(A) or sparse.issparse(B):
        A, B = sparse.csr_array(A), sparse.csr_array(B)
    return A.astype(np.float64, copy=False) - B.astype(np.float64, copy=False)


def _scaled_norms(D: Matrix, unit: float, p: float) -> Array:
    """Norms of rows, computed in units of `unit` if squares could over- or underflow."""
    if 1 / _SAFE_MAGNITUDE < unit < _SAFE_MAGNITUDE:
        with np.errstate(over="ignore"):
            norms = _row_norms(D, p)  # bitwise equal, since units are powers of two
        if np.isfinite(norms).all():  # else a query is much farther than the unit
            return norms
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
    """Squared Euclidean norm of each row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def expanded_squares(X: Matrix, Y: Matrix, y_squares: Array) -> Array:
    """|x|² + |y|² − 2x·y for all pairs by one matrix product; see `expansion_error`."""
    D2 = _expansion(X, Y, y_squares)
    return np.maximum(D2, 0, out=D2)


def _expansion(X: Matrix, Y: Matrix, y_squares: Array) -> Array:
    """`expanded_squares`, where rounding may leave negative numbers."""
    product = (X * -2.0) @ Y.T
    D2: Array = product.toarray() if sparse.issparse(product) else product
    D2 += squared_norms(X)[:, None]
    D2 += y_squares[None, :]
    return D2


def expansion_error(
    x_squares: Array, y_squares: Array | float, n_features: int, precision: Any = np.float64
) -> Array:
    """Bound on the rounding error of `expanded_squares` for points with these squared norms.

    The expansion cancels for points that are close together but far from the origin.
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
    """Squared distances from A to B, which are X and Y in frame coordinates.

    Distances below `close` times their error bound are recomputed by subtraction.
    """
    D2 = _expansion(A, B, squares)
    # Rows and columns from one index are found in less time than np.nonzero takes.
    i, j = np.divmod(np.flatnonzero(close * error[:, None] >= D2), D2.shape[1])
    D2[i, j] = (pair_distances(X, Y, i, j, unit) / unit) ** 2
    return D2


def squared_distances(
    X: Matrix,
    Y: Matrix,
    frame: Frame,
    accuracy: float,
    *,
    direct: float = 1e7,
    then: Callable[[Array], object] | None = None,
) -> Array:
    """Squared Euclidean distances in units of the frame, accurate to `accuracy`.

    Computed by a matrix product if rounding allows it, otherwise (for points close together but
    far from the origin) by subtraction, which is slower and always accurate. Points that coincide
    have distance exactly zero. Below `direct` multiplications subtraction is always used. `then`,
    a function that modifies an array in place, is applied to blocks of the result. If `X` is `Y`,
    the result is symmetric.
    """
    same = X is Y
    if sparse.issparse(X) or sparse.issparse(Y):
        X, Y = sparse.csr_array(X), sparse.csr_array(Y)
    A = frame.apply(X)
    B = A if same else frame.apply(Y)
    squares = squared_norms(B)
    error = expansion_error(squared_norms(A), squares.max(initial=0.0), A.shape[1])
    work = float(X.shape[0]) * Y.shape[0] * X.shape[1]
    if error.max(initial=0.0) > accuracy or (work < direct and not sparse.issparse(X)):
        X, Y = X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)
        D2 = _subtracted_squares(X / frame.unit, Y / frame.unit)
        if then is not None:
            map_threads(then, [D2[rows] for rows in row_blocks(len(D2), D2.shape[1], budget=2**18)])
        return D2
    D2 = np.empty((X.shape[0], Y.shape[0]))

    def fill(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        parts = A[rows], B[columns], squares[columns], error[rows], X[rows], Y[columns]
        block = corrected_squares(*parts, frame.unit)
        if same and rows == columns:
            block = np.maximum(block, block.T)  # which differ by rounding
        if then is not None:
            then(block)
        D2[tile] = block
        if same and rows != columns:
            D2[columns, rows] = block.T

    whole = slice(None)
    tiles = [(rows, whole) for rows in row_blocks(len(D2), D2.shape[1], budget=2**18)]
    with one_blas_thread():
        map_threads(fill, square_tiles(len(D2)) if same else tiles)
    return D2


def _subtracted_squares(X: Matrix, Y: Matrix) -> Array:
    """Squared distances by subtraction; sparse rows are converted to dense in blocks."""
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
    """Raise ValueError if squares of lengths (eigenvalues) over- or underflow."""
    if not low < unit < high:
        raise ValueError(
            f"the data have a spread of about {unit:.0e}, whose square leaves the range of double "
            f"precision (allowed are {low:.0e} to {high:.0e}); multiply X by a constant"
        )
