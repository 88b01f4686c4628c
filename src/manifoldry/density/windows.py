"""Gaussian windows that are stretched along the data, and the log density of their mixture."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from manifoldry._typing import Array, IntArray
from manifoldry._validation import row_blocks
from manifoldry.neighbors.distances import squared_norms

# Variance below this share of the largest around a point is rounding.
_NO_EXTENT = 1e-12


@dataclass(frozen=True, eq=False)
class Windows:
    """Gaussians N(xᵢ, Vᵢ diag(λᵢ) Vᵢᵀ + σ²I); the noise σ is given where it is needed.

    Directions in which the neighbours of a point do not extend have a zero axis and variance.
    """

    centers: Array  # (n, n_features)
    axes: Array  # (n, d, n_features), orthonormal rows
    variances: Array  # (n, d)

    @classmethod
    def join(cls, pieces: Iterable[tuple[slice, "Windows"]]) -> "Windows":
        """All windows of pieces that come in order."""
        parts = [windows for _, windows in pieces]
        return cls(
            np.concatenate([part.centers for part in parts]),
            np.concatenate([part.axes for part in parts]),
            np.concatenate([part.variances for part in parts]),
        )

    def terms(self, X: Array, members: IntArray | None = None) -> "Terms":
        """What the density at `X` needs, for all windows or some for every row, (n_query, m)."""
        everything = slice(0, len(self.centers))
        return measure(X, members, [(everything, self)], self.variances.shape)


def windows_around(X: Array, neighbors: IntArray, d: int) -> Iterator[tuple[slice, Windows]]:
    """Windows along the `d` leading directions from points to their neighbours, block by block."""
    n, k = neighbors.shape
    for block in row_blocks(n, max(k, d) * X.shape[1], budget=2**21):
        steps = X[neighbors[block]] - X[block, None]
        yield block, Windows(X[block], *principal_axes(steps, d))


def windows_without(
    X: Array, neighbors: IntArray, owners: IntArray, dropped: IntArray, d: int
) -> Iterator[tuple[slice, Windows]]:
    """Windows of some points, each without the neighbour in place ``dropped[i]`` of its list."""
    k = neighbors.shape[1]
    for block in row_blocks(len(owners), max(k, d) * X.shape[1], budget=2**21):
        steps = X[neighbors[owners[block]]] - X[owners[block], None]
        steps[np.arange(len(steps)), dropped[block]] = 0.0
        axes, variances = principal_axes(steps, d)
        yield block, Windows(X[owners[block]], axes, variances * k / max(1, k - 1))


def principal_axes(steps: Array, d: int) -> tuple[Array, Array]:
    """Leading directions (n, d, n_features) of steps (n, k, n_features), and their mean squares.

    Not centred: the plane goes through the point itself, not through the mean of its neighbours.
    By way of the smaller of the two Gram matrices.
    """
    k, n_features = steps.shape[1:]
    transposed = steps.transpose(0, 2, 1)
    few_features = n_features < k
    values, vectors = np.linalg.eigh(transposed @ steps if few_features else steps @ transposed)
    values = values[:, ::-1][:, :d]
    vectors = vectors[:, :, ::-1][:, :, :d].transpose(0, 2, 1)
    extends = values > _NO_EXTENT * np.maximum(values[:, :1], np.finfo(float).tiny)
    if not few_features:
        vectors = vectors @ steps / np.sqrt(np.where(extends, values, np.inf))[:, :, None]
    return vectors * extends[:, :, None], np.where(extends, values, 0.0) / k


@dataclass(frozen=True, eq=False)
class Terms:
    """Squared distances of points from the planes of windows, and squares along their axes."""

    across: Array  # (n_query, m), from the plane of all axes
    along: Array  # (d, n_query, m)
    variances: Array  # (d, n_windows)
    members: IntArray | None  # (n_query, m), or None for all windows
    n_features: int

    def log_densities(self, d: int, noise: float) -> Array:
        """Log density of every window with its `d` first axes at every point, (n_query, m)."""
        total = self.variances[:d] + noise**2
        log_volume = np.log(total).sum(axis=0) + 2 * (self.n_features - d) * np.log(noise)
        squares = self.across.copy()
        for along in self.along[d:]:
            squares += along
        with np.errstate(over="ignore"):  # infinitely many deviations away: no density at all
            squares /= noise**2
            for along, inverse in zip(self.along[:d], 1 / total, strict=True):
                squares += along * self._of_members(inverse)
        squares += self._of_members(log_volume + self.n_features * np.log(2 * np.pi))
        squares *= -0.5
        return squares

    def _of_members(self, values: Array) -> Array:
        return values if self.members is None else values[self.members]


def measure(
    X: Array,
    members: IntArray | None,
    pieces: Iterable[tuple[slice, Windows]],
    shape: tuple[int, ...],
) -> Terms:
    """Terms of `X` for windows that come in pieces, (n_windows, d) in all, so that few are kept."""
    n, d = shape
    m = n if members is None else members.shape[1]
    across, along = np.empty((len(X), m)), np.empty((d, len(X), m))
    variances, places = np.empty((d, n)), _places(members, n)
    for block, windows in pieces:
        variances[:, block] = windows.variances.T
        for i, window in enumerate(range(block.start, block.stop)):
            rows, columns = places(window)
            delta = X[rows] - windows.centers[i]
            projected = delta @ windows.axes[i].T
            delta -= projected @ windows.axes[i]
            across[rows, columns] = squared_norms(delta)
            along[:, rows, columns] = (projected**2).T
    return Terms(across, along, variances, members, X.shape[1])


def _places(members: IntArray | None, n: int) -> Callable[[int], tuple[slice | IntArray, ...]]:
    """Rows and columns of `members` where a window stands."""
    if members is None:
        return lambda window: (slice(None), window)  # type: ignore[return-value]  # one column
    order = np.argsort(members, axis=None, kind="stable")
    starts = np.searchsorted(members.ravel()[order], np.arange(n + 1))
    rows, columns = np.divmod(order, members.shape[1])

    def places(window: int) -> tuple[IntArray, IntArray]:
        part = slice(starts[window], starts[window + 1])
        return rows[part], columns[part]

    return places


def log_sum(log_terms: Array) -> Array:
    """Logarithm of Σ exp over the last axis; -inf where no term has any weight."""
    largest = log_terms.max(axis=-1, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(log_terms - shift).sum(axis=-1)) + shift[..., 0])
