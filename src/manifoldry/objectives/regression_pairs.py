"""The pairs of points over which a kernel regression sums: all of them, or only nearby ones."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.spatial.distance import cdist

from manifoldry.device import current_device, device_of
from manifoldry.objectives.nearby_sources import NearbySources
from manifoldry.objectives.regression_kernels import RegressionKernel, RegressionWeights, as_kernel
from manifoldry.objectives.regression_on_device import ALL_PAIRS_UP_TO, device_tiles
from manifoldry.util.arrays import namespace
from manifoldry.util.checks import check_below, check_count, check_positive
from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

Rows = slice | IntArray
Result = TypeVar("Result")
_AT_ONCE = 64  # blocks whose results are in memory at a time


@dataclass(frozen=True)
class RegressionPairs:
    """All pairs for few points; for many, those whose weight in the regression is not negligible.

    A point is left out of the fit at another one if its weight is less than `negligible` times the
    largest weight. The fitted value changes by less than n·negligible times the diameter of the
    data; where the density of the embedding hardly varies, by about `negligible` times it. The
    cost is proportional to the number of pairs that are left: a small multiple of n if the
    embedding is spread out.

    Student's kernel, whose weights decrease slowly, and embeddings of more than `max_components`
    dimensions, in which points have too many neighbors, use all pairs.

    Parameters
    ----------
    exact_up_to : int, default=2000
        Number of points up to which all pairs are used.
    negligible : float, default=1e-12
        Smallest weight, relative to the largest one.
    max_components : int, default=3
        Largest number of coordinates for which pairs are left out.

    See Also
    --------
    UKRObjective : takes it as ``pairs``.
    manifoldry.UKR : the estimator.

    Examples
    --------
    >>> RegressionPairs().reason("gaussian", 10_000, 2)
    'nearby pairs: weights below 1e-12 of the largest are left out'
    >>> RegressionPairs().reason("student", 10_000, 2)
    "all pairs: the weights of kernel 'student' decrease slowly"
    """

    exact_up_to: int = 2000
    negligible: float = 1e-12
    max_components: int = 3

    def __post_init__(self) -> None:
        check_count("exact_up_to", self.exact_up_to, minimum=0)
        check_positive("negligible", self.negligible)
        check_below("negligible", self.negligible, 1, "the largest weight itself")
        check_count("max_components", self.max_components, minimum=0)

    def reach(self, kernel: str | RegressionKernel, n: int, n_components: int) -> float:
        """Return the squared distance from which pairs are left out.

        It counts from the squared distance of the nearest point.

        Parameters
        ----------
        kernel : str or RegressionKernel
            The kernel of the regression.
        n : int
            Number of points.
        n_components : int
            Number of coordinates.

        Returns
        -------
        float
            The squared distance; infinite if all pairs are used.
        """
        reach = as_kernel(kernel).reach(self.negligible)
        if n <= self.exact_up_to or n_components > self.max_components:
            return np.inf
        return reach

    def reason(self, kernel: str | RegressionKernel, n: int, n_components: int) -> str:
        """Return which pairs are used, and why.

        Parameters
        ----------
        kernel : str or RegressionKernel
            The kernel of the regression.
        n : int
            Number of points.
        n_components : int
            Number of coordinates.

        Returns
        -------
        str
            The reason, in words.
        """
        kernel = as_kernel(kernel)
        if (device := current_device()) is not None and n <= ALL_PAIRS_UP_TO:
            return f"all pairs, on {device.name}"
        if n <= self.exact_up_to:
            return f"all pairs: at most exact_up_to={self.exact_up_to} points"
        if n_components > self.max_components:
            return f"all pairs: more than {self.max_components} dimensions"
        if np.isinf(kernel.reach(self.negligible)):
            return f"all pairs: the weights of kernel {kernel.name!r} decrease slowly"
        return f"nearby pairs: weights below {self.negligible:g} of the largest are left out"


DEFAULT_PAIRS = RegressionPairs()


class PairBlock(NamedTuple):
    """Some points, and the points from which they are predicted."""

    rows: IntArray
    """The points to predict."""
    sources: Rows
    """The points from which they are predicted."""
    own: IntArray
    """Where the rows are among the sources."""
    D: Array
    """Squared distances, (n_rows, n_sources); infinite for a point that is left out."""


def over_pairs(
    work: Callable[[PairBlock], Result],
    Y: Array,
    leave_one_out: bool = True,
    *,
    reach: float = np.inf,
    rows: IntArray | None = None,
    arrays: int = 5,  # arrays of the size of a block in memory at a time
    budget: int = 2**21,  # numbers in them: 16 MiB per thread
) -> Iterator[Result]:
    """Call `work` with blocks of pairs in which each point is a row once, and yield the results.

    With `leave_one_out`, the distance of a point to itself is infinite. Points beyond the `reach`
    of :meth:`RegressionPairs.reach` are left out. `rows` are the points to predict, by default all.
    Blocks do not depend on the number of threads, so neither do sums of the results.

    If nearby points cannot be found, because `Y` is not finite or so large that squared distances
    overflow, the distances are NaN, and so are the results: a line search tries a shorter step.
    """
    if (device := device_of(Y)) is not None:
        for some, sources in device_tiles(device, Y, leave_one_out, reach, rows):
            yield work(_pair_block(Y, some, sources, leave_one_out))
        return
    targets = np.arange(len(Y)) if rows is None else rows
    tiles: list[tuple[IntArray, Callable[[], Rows]]]
    if np.isinf(reach):
        parts = row_blocks(len(targets), arrays * len(Y), budget)
        tiles = [(targets[part], lambda: slice(None)) for part in parts]
    elif not _squares_are_finite(Y):
        Y = np.full_like(Y, np.nan)
        groups = [targets[part] for part in row_blocks(len(targets), 1, NearbySources.max_rows)]
        tiles = [(group, partial(np.sort, group)) for group in groups]
    else:
        nearby = NearbySources(Y, reach)
        found = nearby.tiles(Y[targets], leave_one_out=leave_one_out)
        tiles = [(targets[tile.rows], partial(nearby.find, tile)) for tile in found]

    def at(tile: tuple[IntArray, Callable[[], Rows]]) -> list[Result]:
        rows, sources = tile[0], tile[1]()
        n_sources = len(Y) if isinstance(sources, slice) else len(sources)
        parts = row_blocks(len(rows), arrays * n_sources, budget)
        return [work(_pair_block(Y, rows[part], sources, leave_one_out)) for part in parts]

    with one_blas_thread() if len(tiles) > 1 else nullcontext():
        for start in range(0, len(tiles), _AT_ONCE):
            for results in map_threads(at, tiles[start : start + _AT_ONCE]):
                yield from results


def _squares_are_finite(Y: Array) -> bool:
    """Whether a k-d tree of the points can be searched, up to twice their diameter."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(4 * (np.ptp(Y, axis=0) ** 2).sum()))


def _pair_block(Y: Array, rows: IntArray, sources: Rows, leave_one_out: bool) -> PairBlock:
    own = rows if isinstance(sources, slice) else np.searchsorted(sources, rows)
    D = embedding_squares(Y[rows], Y[sources])
    if leave_one_out:
        D[namespace(D).arange(len(D)), own] = np.inf
    return PairBlock(rows, sources, own, D)


def embedding_squares(Y: Array, Z: Array) -> Array:
    """Squared distances of all rows of `Y` and `Z`, by subtraction."""
    device = device_of(Y)
    return cdist(Y, Z, "sqeuclidean") if device is None else device.squared_distances(Y, Z)


class PairTerms(NamedTuple):
    """Contribution of a block of pairs to an array with a row for every point, and to a value."""

    sources: Rows
    terms: Array
    """Rows of the array at the sources, (n_sources, d); the others are zero."""
    value: Any = 0.0  # a number, on the device of the terms


class PairSum:
    """Sum of contributions, in the order in which they are added."""

    def __init__(self, like: Array) -> None:
        self.terms, self.value = np.zeros_like(like), 0.0

    def add(self, part: PairTerms) -> None:
        """Add the contribution of a block."""
        self.terms[part.sources] += part.terms
        self.value += part.value


BlockWork = Callable[[Array, PairBlock, RegressionWeights], PairTerms]


def sum_over_pairs(
    Y: Array,
    kernel: RegressionKernel,
    work: Sequence[BlockWork],
    leave_one_out: bool = True,
    pairs: RegressionPairs = DEFAULT_PAIRS,
) -> list[PairSum]:
    """Sums over pairs of points, several at a time since they have the weights in common.

    Parameters
    ----------
    Y : array of shape (n, d)
        The centered embedding.
    kernel : RegressionKernel
    work : sequence of callables
        The contributions of a block to each sum, from the embedding, the block and its weights.
    leave_one_out, pairs
        As in :class:`UKRObjective`.
    """
    sums = [PairSum(Y) for _ in work]

    def at(block: PairBlock) -> list[PairTerms]:
        weights = kernel.weights(block.D)
        return [function(Y, block, weights) for function in work]

    for parts in over_pairs(at, Y, leave_one_out, reach=pairs.reach(kernel, *Y.shape)):
        for total, part in zip(sums, parts, strict=True):
            total.add(part)
    for total in sums:
        total.value = float(total.value)  # once, since it waits for a device
    return sums


def gradient_terms(C: Array, Y: Array, block: PairBlock, value: Any) -> PairTerms:
    """Gradient of a function whose derivatives by the block's squared distances are `C`.

    With T the derivatives by all of them, the sum over blocks is 2·lap(T + Tᵀ)·Y.
    """
    at_rows, at_sources = Y[block.rows], Y[block.sources]
    G = 2 * (C.sum(axis=0)[:, None] * at_sources - C.T @ at_rows)
    G[block.own] += 2 * (C.sum(axis=1)[:, None] * at_rows - C @ at_sources)
    return PairTerms(block.sources, G, value)
