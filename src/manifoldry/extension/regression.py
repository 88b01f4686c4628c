"""Inverse by local regression."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.device import current_device
from manifoldry.device.small import eigh
from manifoldry.extension.local_on_device import (
    device_of_rows,
    stacked_predictions,
    weighted_rows,
)
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.util.arrays import namespace
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import power_of_two_scale, read_array, row_blocks, spread_rows

# Candidate bandwidths, in units of the local spacing.
BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class Smoother(NamedTuple):
    """Degree of the local polynomial, and bandwidth in units of the local spacing."""

    degree: int
    bandwidth: float


@dataclass(frozen=True, eq=False)
class EmbeddingSpacing:
    """Local spacing of the points of an embedding."""

    Z: Matrix
    max_neighbors: int = 48  # largest number of neighbors of a prediction
    spacing_neighbor: int = 5  # the local spacing is the distance to this neighbor
    sample_size: int = 1000  # points on which statistics are computed and bandwidths chosen

    @cached_property
    def positions(self) -> Matrix:
        """Coordinates in double precision."""
        return _in_double(self.Z)

    @cached_property
    def index(self) -> NeighborIndex:
        """Neighbor search among the coordinates."""
        return choose_index(self.positions)

    @cached_property
    def sample(self) -> IntArray:
        """Up to `sample_size` evenly spaced rows."""
        return spread_rows(self.Z.shape[0], self.sample_size)

    @property
    def k(self) -> int:
        """Number of neighbors of a prediction."""
        return min(self.max_neighbors, self.Z.shape[0] - 1)

    @property
    def spacing_rank(self) -> int:
        """Rank of the neighbor whose distance is the local spacing."""
        return min(self.spacing_neighbor, self.k)

    @cached_property
    def sample_neighbors(self) -> tuple[IntArray, Array]:
        """Neighbors of the sampled points, without the points themselves."""
        indices, distances = self.index.nearest(self.positions[self.sample], self.k + 1)
        itself = indices == self.sample[:, None]
        itself[~itself.any(axis=1), -1] = True
        shape = (len(self.sample), self.k)
        return indices[~itself].reshape(shape), distances[~itself].reshape(shape)

    def candidates(self, bandwidths: tuple[float, ...]) -> list[Smoother]:
        """Local constant and, if there are enough neighbors, local linear smoothers."""
        # A local linear fit has n_components + 1 unknowns and needs twice as many points.
        enough = self.k >= 2 * (self.Z.shape[1] + 1)
        degrees = (0, 1) if enough and not sparse.issparse(self.Z) else (0,)
        return [Smoother(degree, h) for degree in degrees for h in bandwidths]

    def weights(
        self, smoother: Smoother, Z: Matrix, positions: Matrix, indices: IntArray, distances: Array
    ) -> Array:
        """Weights (n_query, k) of the neighbors in predictions at `Z`, where the arrays are."""
        width = smoother.bandwidth * distances[:, self.spacing_rank - 1]
        weights = gaussian_weights(distances, width)
        return weights if smoother.degree == 0 else linear_weights(weights, positions[indices], Z)

    def smoothing_matrix(
        self, smoother: Smoother, Z: Matrix, indices: IntArray, distances: Array
    ) -> sparse.csr_array:
        """Weights (n_query, n_samples) of predictions at `Z`, from the neighbors of its rows."""
        weights = self.weights(smoother, Z, self.positions, indices, distances)
        indptr = np.arange(len(indices) + 1) * indices.shape[1]
        shape = (len(indices), self.Z.shape[0])
        return sparse.csr_array((weights.ravel(), indices.ravel(), indptr), shape=shape)


@dataclass(frozen=True, eq=False)
class LocalRegression:
    """Local constant or local linear regression of the data on the coordinates.

    The bandwidth of the Gaussian weights is proportional to the local spacing of the embedding. Its
    factor and the degree are chosen by the leave-one-out error: the mean length of the residuals,
    which is less sensitive to outliers than the mean square.

    Parameters
    ----------
    Z : array or sparse matrix of shape (n_samples, n_components)
        Coordinates of at least two points; if sparse, regression is local constant.
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    bandwidths : tuple of float
        Candidate bandwidths, in units of the local spacing.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.linspace(0, 1, 50)[:, None]
    >>> regression = LocalRegression(Z, np.hstack([Z, Z**2]))
    >>> regression.predict(np.array([[0.505]])).round(3)
    array([[0.505, 0.255]])
    """

    Z: Matrix
    X: Matrix
    bandwidths: tuple[float, ...] = BANDWIDTHS

    __getstate__ = state_of_fields

    @cached_property
    def spacing(self) -> EmbeddingSpacing:
        """Spacing of the coordinates."""
        return EmbeddingSpacing(self.Z)

    @cached_property
    def smoother(self) -> Smoother:
        """The smoother with the smallest leave-one-out error."""
        return min(self._candidates, key=lambda smoother: self._residuals(smoother).mean())

    @cached_property
    def error(self) -> float:
        """Root mean squared leave-one-out error, in the units of the data."""
        return float(np.sqrt(((self.residual_lengths / self._unit) ** 2).mean())) * self._unit

    @cached_property
    def residual_lengths(self) -> Array:
        """Lengths of the leave-one-out residuals of sampled rows, in the units of the data."""
        return self._residuals(self.smoother) * self._unit

    @cached_property
    def mean_residual(self) -> float:
        """Mean length of the leave-one-out residuals, in the units of the data."""
        return float(self.residual_lengths.mean())

    def predict(self, Z: Matrix) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        Z = self.spacing.index.as_queries(_in_double(Z))
        out = np.empty((Z.shape[0], self.X.shape[1]))
        for block in row_blocks(Z.shape[0], self._numbers_per_row):
            indices, distances = self.spacing.index.nearest(Z[block], self.spacing.k)
            out[block] = self._average(self.smoother, Z[block], indices, distances)
        return out

    @property
    def _candidates(self) -> list[Smoother]:
        return self.spacing.candidates(self.bandwidths)

    @cached_property
    def _unit(self) -> float:
        return power_of_two_scale(self.X)

    @property
    def _numbers_per_row(self) -> int:
        """Number of values that the prediction of one row needs in memory."""
        n_components = self.Z.shape[1]
        return int(self.X.shape[1] + (self.spacing.k + n_components) * (4 * n_components + 8))

    def _residuals(self, smoother: Smoother) -> Array:
        """Lengths of the leave-one-out residuals of sampled rows, divided by `_unit`."""
        rows, lengths = self.spacing.sample, np.empty(len(self.spacing.sample))
        indices, distances = self.spacing.sample_neighbors
        for block in row_blocks(len(rows), self._numbers_per_row):
            Z, X = self.spacing.positions[rows[block]], self.X[rows[block]]
            predicted = self._average(smoother, Z, indices[block], distances[block])
            residuals = predicted - (X.toarray() if sparse.issparse(X) else X)
            lengths[block] = np.linalg.norm(residuals / self._unit, axis=1)
        return lengths

    def _average(self, smoother: Smoother, Z: Matrix, indices: IntArray, distances: Array) -> Array:
        if (device := device_of_rows(self.X, Z)) is not None:
            near: Any = device.array(indices)
            places = device.array(Z), device.array(self.spacing.positions), near
            weights = self.spacing.weights(smoother, *places, device.array(distances))
            return weighted_rows(device, indices, weights, self.X)
        out = self.spacing.smoothing_matrix(smoother, Z, indices, distances) @ self.X
        return out.toarray() if sparse.issparse(out) else np.asarray(out)


def _in_double(Z: Matrix) -> Matrix:
    return Z.astype(np.float64) if sparse.issparse(Z) else np.asarray(Z, dtype=np.float64)


def gaussian_weights(distances: Array, width: Array) -> Array:
    """exp(−d²/2h²) normalized over each row, without underflow for small h or large d."""
    xp = namespace(distances)
    with np.errstate(over="ignore"):  # an infinite exponent gives weight zero
        scaled = distances / xp.where(width > 0, width, 1.0)[:, None]
        exponent = (scaled**2 - scaled[:, :1] ** 2) / 2
    # A width of zero means several points at this position: only they have weight.
    several = xp.where(distances > 0, np.inf, 0.0)
    weights = xp.exp(-xp.where((width == 0)[:, None], several, exponent))
    return weights / weights.sum(axis=1, keepdims=True)


def linear_weights(
    weights: Array, neighbors: Array, Z: Array, *, reach: float = 5.0, fade: float = 1e-6
) -> Array:
    """Weights of a local linear fit at Z, from the kernel weights of the neighbors.

    The fitted value is Σ wᵢ·(1 + cᵢᵀ C⁻¹ (z − m))·xᵢ, with the weighted mean m of the neighbors,
    their offsets cᵢ from it and their covariance C. Along eigenvectors of C with less than the
    fraction `fade` of the variance, C⁻¹ tends to zero and the fit to a local constant. To limit
    extrapolation, z − m is clipped to `reach` standard deviations along each eigenvector; the
    fitted value then stays within as many standard deviations of the xᵢ.
    """
    xp = namespace(neighbors)
    origin = neighbors[:, :1]  # the nearest neighbor: differences to it are accurate
    unit = xp.abs(neighbors - origin).max(axis=(1, 2), keepdims=True)
    unit = xp.where(unit == 0, 1.0, unit)
    local = (neighbors - origin) / unit  # (n_query, k, n_components)
    mean = xp.einsum("qk,qkl->ql", weights, local)
    centered = local - mean[:, None, :]
    C = centered.transpose(0, 2, 1) @ (weights[:, :, None] * centered)
    trace = xp.trace(C, axis1=1, axis2=2)[:, None]
    scale = xp.where(trace > 1e-100, trace, np.inf)  # otherwise one neighbor has all the weight
    fractions, axes = eigh(C / scale[:, :, None])
    fractions = xp.maximum(fractions, 0.0)
    farthest = reach * xp.sqrt(fractions * xp.where(xp.isinf(scale), 0.0, scale))
    offset = (Z - origin[:, 0]) / unit[:, 0] - mean
    along = xp.clip(xp.einsum("qlm,ql->qm", axes, offset), -farthest, farthest)
    # λ/(λ² + ε²) in place of 1/λ: equal up to (ε/λ)² for λ ≫ ε, and near zero for λ ≪ ε.
    gradient = xp.einsum("qlm,qm->ql", axes, along * fractions / (fractions**2 + fade**2)) / scale
    return weights * (1 + (centered @ gradient[:, :, None])[:, :, 0])


def regression_inverse(embedding: Array, points: Matrix | None) -> LocalRegression | None:
    """Local regression of the data on the embedding; None if the data are unknown.

    Rows without coordinates are left out.
    """
    if points is None:
        return None
    rows = np.flatnonzero(np.isfinite(embedding).all(axis=1))
    if len(rows) < len(embedding):
        return LocalRegression(embedding[rows], points[rows])
    return LocalRegression(embedding, points)


def coordinate_unpredictability(Y: Array) -> Array:
    """Error of predicting each coordinate from the earlier ones, in its standard deviations.

    At most 1: the mean is also a prediction, and its error is one standard deviation.
    """
    Y = read_array(Y, "embedding", ensure_min_samples=3)
    Y = Y / power_of_two_scale(Y)  # so that squares do not overflow
    return np.array([1.0, *(prediction_error(Y[:, :i], Y[:, i]) for i in range(1, Y.shape[1]))])


def prediction_error(before: Array, f: Array) -> float:
    """Error of predicting `f` from the columns `before`, relative to its spread."""
    spread, size = before.std(axis=0), float(f.std())
    if size == 0:
        return 0.0  # a constant is predicted exactly
    if not spread.any():
        return 1.0
    rows = np.column_stack([before[:, spread > 0] / spread[spread > 0], f / size])
    rows = rows[RowLookup.of(rows).first_duplicates(1)]  # duplicates would predict each other
    if len(rows) <= 2:
        return 1.0
    return min(1.0, LocalRegression(rows[:, :-1], rows[:, -1:]).error)


@dataclass(frozen=True, eq=False)
class PredictionErrors:
    """:func:`prediction_error` of several functions from the same coordinates.

    Neighbors and weights, which take most of the time, are computed once.
    """

    before: Array

    def __call__(self, f: Array) -> float:
        """Error of predicting `f` from the coordinates, relative to its spread."""
        size = float(f.std())
        if size == 0 or not self._distinct:
            return prediction_error(self.before, f)
        f = f / size
        residuals = [np.abs(found - f[self._spacing.sample]) for found in self._predictions(f)]
        best = min(residuals, key=np.mean)
        return min(1.0, float(np.sqrt((best**2).mean())))

    @cached_property
    def _distinct(self) -> bool:
        """Whether the coordinates of all points differ, and there are enough points."""
        rows = self._spacing.Z
        if rows.shape[1] == 0 or len(rows) <= 2:
            return False
        if len(np.unique(rows[:, 0])) == len(rows):  # which takes less time
            return True
        return len(rows) == len(RowLookup.of(rows).first_duplicates(1))

    @cached_property
    def _spacing(self) -> EmbeddingSpacing:
        spread = self.before.std(axis=0)
        return EmbeddingSpacing(self.before[:, spread > 0] / spread[spread > 0])

    @cached_property
    def _predictions(self) -> Callable[[Array], Iterable[Array]]:
        """The leave-one-out predictions of a function at the sample, by each smoother."""
        spacing, device = self._spacing, current_device()
        at, known = spacing.positions[spacing.sample], spacing.sample_neighbors
        smoothers = spacing.candidates(BANDWIDTHS)
        if device is None:
            matrices = [spacing.smoothing_matrix(smoother, at, *known) for smoother in smoothers]
            return lambda f: (S @ f for S in matrices)
        places: list[Any] = [device.array(part) for part in (at, spacing.positions, *known)]
        weights = [spacing.weights(smoother, *places) for smoother in smoothers]
        return stacked_predictions(device, weights, places[2], len(spacing.positions))
