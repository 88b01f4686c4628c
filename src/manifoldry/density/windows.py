"""Gaussian windows that are stretched along the data, and the log density of their mixture."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from manifoldry.neighbors.neighborhoods import NO_EXTENT
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class Windows:
    """Gaussians N(xᵢ, Vᵢ diag(λᵢ) Vᵢᵀ + σ²I); the noise σ is given where it is needed.

    Directions in which the neighbors of a point do not extend have a zero axis and variance.
    """

    centers: Array  # (n, n_features)
    axes: Array  # (n, d, n_features), orthonormal rows
    variances: Array  # (n, d)
    batch: int = 2**17  # numbers that points of a batch of windows have, few enough for the cache

    @classmethod
    def join(cls, blocks: Iterable[tuple[slice, "Windows"]]) -> "Windows":
        """All windows of pieces that come in order."""
        parts = [windows for _, windows in blocks]
        return cls(
            np.concatenate([part.centers for part in parts]),
            np.concatenate([part.axes for part in parts]),
            np.concatenate([part.variances for part in parts]),
        )

    def squared_distances(self, X: Array, members: IntArray | None = None) -> "SquaredDistances":
        """What the density at `X` needs, for all windows or some for every row, (n_query, m)."""
        n, d = self.variances.shape
        if members is not None:
            return measure_blocks(X, members, [(slice(0, n), self)], (n, d))
        across, along = np.empty((len(X), n)), np.empty((d, len(X), n))
        for block in row_blocks(n, len(X) * X.shape[1], self.batch):
            squares, projected = self.squares(block, X)
            across[:, block], along[:, :, block] = squares.T, projected.T
        return SquaredDistances(across, along, self.variances.T, None, X.shape[1])

    def squares(self, some: slice | IntArray, points: Array) -> tuple[Array, Array]:
        """Squared distances from the planes of some windows, (w, r), and along axes, (w, r, d).

        `points` are (w, r, n_features), r for every window, or (r, n_features), the same for all.
        """
        axes = self.axes[some]
        delta = points - self.centers[some][:, None]
        projected = delta @ axes.transpose(0, 2, 1)
        delta -= projected @ axes  # a difference of squares would cancel near the plane
        return np.einsum("wrf,wrf->wr", delta, delta), projected**2


def windows_around(X: Array, neighbors: IntArray, d: int) -> Iterator[tuple[slice, Windows]]:
    """Windows along the `d` leading directions from points to their neighbors, block by block."""
    n, k = neighbors.shape
    for block in row_blocks(n, max(k, d) * X.shape[1], budget=2**21):
        steps = X[neighbors[block]] - X[block, None]
        yield block, Windows(X[block], *principal_axes(steps, d))


def windows_without(
    X: Array, neighbors: IntArray, owners: IntArray, dropped: IntArray, d: int
) -> Iterator[tuple[slice, Windows]]:
    """Windows of some points, each without the neighbor in place ``dropped[i]`` of its list."""
    k = neighbors.shape[1]
    for block in row_blocks(len(owners), max(k, d) * X.shape[1], budget=2**21):
        steps = X[neighbors[owners[block]]] - X[owners[block], None]
        steps[np.arange(len(steps)), dropped[block]] = 0.0
        axes, variances = principal_axes(steps, d)
        yield block, Windows(X[owners[block]], axes, variances * k / max(1, k - 1))


def principal_axes(steps: Array, d: int, no_extent: float = NO_EXTENT) -> tuple[Array, Array]:
    """Leading directions (n, d, n_features) of steps (n, k, n_features), and their mean squares.

    Not centered: the plane goes through the point itself, not through the mean of its neighbors.
    By way of the smaller of the two Gram matrices. Variance below the fraction `no_extent` of the
    largest is rounding.
    """
    k, n_features = steps.shape[1:]
    transposed = steps.transpose(0, 2, 1)
    few_features = n_features < k
    values, vectors = np.linalg.eigh(transposed @ steps if few_features else steps @ transposed)
    values = values[:, ::-1][:, :d]
    vectors = vectors[:, :, ::-1][:, :, :d].transpose(0, 2, 1)
    extends = values > no_extent * np.maximum(values[:, :1], np.finfo(float).tiny)
    if not few_features:
        vectors = vectors @ steps / np.sqrt(np.where(extends, values, np.inf))[:, :, None]
    return vectors * extends[:, :, None], np.where(extends, values, 0.0) / k


@dataclass(frozen=True, eq=False)
class SquaredDistances:
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
        return values if self.members is None else values.take(self.members)


def measure_blocks(
    X: Array,
    members: IntArray,
    blocks: Iterable[tuple[slice, Windows]],
    shape: tuple[int, int],
) -> SquaredDistances:
    """Terms of `X` for windows that come in pieces, (n_windows, d) in all, so that few are kept."""
    n, d = shape
    across, along = np.empty(members.shape), np.empty((d, *members.shape))
    variances, occurrences = np.empty((d, n)), Occurrences.of(members, n)
    for block, windows in blocks:
        variances[:, block] = windows.variances.T
        for some, rows, columns in occurrences.batches(block, X.shape[1], windows.batch):
            squares, projected = windows.squares(some, X[rows])
            across[rows, columns] = squares
            along[:, rows, columns] = np.moveaxis(projected, 2, 0)
    return SquaredDistances(across, along, variances, members, X.shape[1])


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Rows and columns of a table of windows, (n_query, m), at which every window stands."""

    rows: IntArray  # by window
    columns: IntArray
    starts: IntArray  # (n + 1,), of every window in these

    @classmethod
    def of(cls, members: IntArray, n: int) -> "Occurrences":
        """Places of n windows."""
        order = np.argsort(members, axis=None, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(members.ravel(), minlength=n)))
        return cls(*np.divmod(order, members.shape[1]), starts)

    def batches(
        self, block: slice, n_features: int, budget: int
    ) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Windows of the block that occur, as counted from its start, with their places, (w, r).

        Those that stand at up to r places, a power of two, come together; where one has fewer, its
        last is repeated. Points of a batch have about so many `numbers`.
        """
        starts = self.starts[block.start : block.stop + 1]
        counts = np.diff(starts)
        sizes = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.intp)
        for size in np.unique(sizes[counts > 0]):
            alike = np.flatnonzero((sizes == size) & (counts > 0))
            for part in row_blocks(len(alike), 2**size * n_features, budget):
                some = alike[part]
                within = np.minimum(np.arange(2**size), counts[some, None] - 1)
                at = starts[some, None] + within
                yield some, self.rows[at], self.columns[at]


def log_sum(log_terms: Array) -> Array:
    """Logarithm of Σ exp over the last axis; -inf where no term has any weight."""
    largest = log_terms.max(axis=-1, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(log_terms - shift).sum(axis=-1)) + shift[..., 0])
