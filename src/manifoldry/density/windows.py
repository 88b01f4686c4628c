"""Gaussian windows elongated along the data, and the log density of their mixture."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from manifoldry.neighbors.neighborhoods import MIN_VARIANCE_RATIO
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class Windows:
    """Gaussians N(xᵢ, Vᵢ diag(λᵢ) Vᵢᵀ + σ²I); the noise σ is passed to the methods that need it.

    If the neighbors of a point span fewer than d directions, the other axes and variances are zero.
    """

    centers: Array  # (n, n_features)
    axes: Array  # (n, d, n_features), orthonormal rows
    variances: Array  # (n, d)
    batch: int = 2**17  # numbers per batch, which should fit into the cache

    @classmethod
    def join(cls, blocks: Iterable[tuple[slice, "Windows"]]) -> "Windows":
        """Concatenate blocks of windows, which must be in order."""
        parts = [windows for _, windows in blocks]
        return cls(
            np.concatenate([part.centers for part in parts]),
            np.concatenate([part.axes for part in parts]),
            np.concatenate([part.variances for part in parts]),
        )

    def squared_distances(self, X: Array, members: IntArray | None = None) -> "SquaredDistances":
        """Squared distances of `X` to all windows, or to the windows `members`, (n_query, m)."""
        n, d = self.variances.shape
        if members is not None:
            return measure_blocks(X, members, [(slice(0, n), self)], (n, d))
        across, along = np.empty((len(X), n)), np.empty((d, len(X), n))
        for block in row_blocks(n, len(X) * X.shape[1], self.batch):
            squares, projected = self.squares(block, X)
            across[:, block], along[:, :, block] = squares.T, projected.T
        return SquaredDistances(across, along, self.variances.T, None, X.shape[1])

    def squares(self, some: slice | IntArray, points: Array) -> tuple[Array, Array]:
        """Squared distances to the planes of some windows, (w, r), and along their axes, (w, r, d).

        `points` are (w, r, n_features), r for each window, or (r, n_features), the same for all.
        """
        axes = self.axes[some]
        delta = points - self.centers[some][:, None]
        projected = delta @ axes.transpose(0, 2, 1)
        delta -= projected @ axes  # avoids the cancellation of a difference of squares
        return np.einsum("wrf,wrf->wr", delta, delta), projected**2


def windows_around(X: Array, neighbors: IntArray, d: int) -> Iterator[tuple[slice, Windows]]:
    """Windows along the `d` leading directions from points to their neighbors, in blocks."""
    n, k = neighbors.shape
    for block in row_blocks(n, max(k, d) * X.shape[1], budget=2**21):
        steps = X[neighbors[block]] - X[block, None]
        yield block, Windows(X[block], *principal_axes(steps, d))


def windows_without(
    X: Array, neighbors: IntArray, owners: IntArray, dropped: IntArray, d: int
) -> Iterator[tuple[slice, Windows]]:
    """Windows of the points `owners`, each without its neighbor at position ``dropped[i]``."""
    k = neighbors.shape[1]
    for block in row_blocks(len(owners), max(k, d) * X.shape[1], budget=2**21):
        steps = X[neighbors[owners[block]]] - X[owners[block], None]
        steps[np.arange(len(steps)), dropped[block]] = 0.0
        axes, variances = principal_axes(steps, d)
        yield block, Windows(X[owners[block]], axes, variances * k / max(1, k - 1))


def principal_axes(
    steps: Array, d: int, no_extent: float = MIN_VARIANCE_RATIO
) -> tuple[Array, Array]:
    """Leading directions (n, d, n_features) of steps (n, k, n_features), and their mean squares.

    Steps are not centered: the plane passes through the point, not the mean of its neighbors. The
    smaller of the two Gram matrices is decomposed. Variances below the fraction `no_extent` of the
    largest are rounding errors and set to zero.
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
    """Squared distances of points to the planes of windows, and along the axes."""

    across: Array  # (n_query, m), to the plane of all axes
    along: Array  # (d, n_query, m)
    variances: Array  # (d, n_windows)
    members: IntArray | None  # (n_query, m), or None for all windows
    n_features: int

    def log_densities(self, d: int, noise: float) -> Array:
        """Log density of each window with its first `d` axes at each point, (n_query, m)."""
        total = self.variances[:d] + noise**2
        log_volume = np.log(total).sum(axis=0) + 2 * (self.n_features - d) * np.log(noise)
        squares = self.across.copy()
        for along in self.along[d:]:
            squares += along
        with np.errstate(over="ignore"):  # overflow means a density of zero
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
    """Squared distances of `X` to (n_windows, d) windows that are computed block by block."""
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
    """Rows and columns of each window in a table of window indices, (n_query, m)."""

    rows: IntArray  # sorted by window
    columns: IntArray
    starts: IntArray  # (n + 1,), offset of each window in rows and columns

    @classmethod
    def of(cls, members: IntArray, n: int) -> "Occurrences":
        """Positions of n windows in the table `members`."""
        order = np.argsort(members, axis=None, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(members.ravel(), minlength=n)))
        return cls(*np.divmod(order, members.shape[1]), starts)

    def batches(
        self, block: slice, n_features: int, budget: int
    ) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Batches of windows of a block, indexed from its start, with rows and columns, (w, r).

        Windows with up to r positions, r a power of two, form a batch; shorter lists repeat their
        last position. Points of a batch contain about `budget` numbers.
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
    """Logarithm of Σ exp over the last axis; -inf if all terms are -inf."""
    largest = log_terms.max(axis=-1, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(log_terms - shift).sum(axis=-1)) + shift[..., 0])
