"""Neighbors and ranks of some rows among all rows of distributed data, in two passes over them.

The first pass finds the nearest rows in the data and in each embedding. The second one counts how
many rows are nearer than these in the other space, which is their rank. Blocks are compared where
they are; what leaves them is a few numbers for each of the points. Equal distances are ranked by
row, as in memory, but those that differ by rounding only are not taken for equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import broadcast, combined, compute, delayed
from manifoldry.metrics.preservation import NeighborRanks
from manifoldry.neighbors.base import smallest_entries
from manifoldry.neighbors.distances import Frame, metric_distances, squared_distances
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

# Numbers of a matrix of distances that is held at a time, 16 MB, and the accuracy of its squares.
_BUDGET = 2**21
_ACCURACY = 1e-8


@dataclass(frozen=True, eq=False)
class ComparedPoints:
    """Some rows in the data and in each embedding.

    Parameters
    ----------
    rows : array of shape (n_points,)
        Which rows they are.
    spaces : list of arrays of shape (n_points, n_columns)
        Their coordinates, first in the data.
    metric : str or callable
        Metric of the data.
    project : callable or None
        Makes the last embedding of the data.
    """

    rows: IntArray
    spaces: list[Array]
    metric: Any
    project: Callable[[Array], Array] | None = None

    def distances(self, blocks: list[Array]) -> list[Array]:
        """Distances (n_points, n_rows), or their squares, to a block of rows in each space."""
        metrics = [self.metric, *["euclidean"] * (len(self.spaces) - 1)]
        together = zip(self.spaces, blocks, metrics, strict=True)
        return [_distances(points, block, metric) for points, block, metric in together]


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest rows of points in one space, and their distances in all spaces.

    Parameters
    ----------
    rows : array of shape (n_points, k)
        The rows, by distance.
    distances : array of shape (n_spaces, n_points, k)
        Their distances.
    space : int
        The space in which they are nearest.
    """

    rows: IntArray
    distances: Array
    space: int

    def first(self, k: int) -> Nearest:
        """The k nearest of them, ties by row."""
        order = np.lexsort((self.rows, self.distances[self.space]), axis=1)[:, :k]
        return Nearest(
            np.take_along_axis(self.rows, order, axis=1),
            np.take_along_axis(self.distances, order[None], axis=2),
            self.space,
        )


def rank_neighbors(
    data: Rows, embedding: Rows, points: ComparedPoints, k: int, *, verbose: bool = False
) -> list[tuple[NeighborRanks, NeighborRanks]]:
    """Rank the neighbors of points among all rows, for each embedding.

    Parameters
    ----------
    data, embedding : Rows
        All rows, in the same blocks.
    points : ComparedPoints
        The points.
    k : int
        Number of neighbors.
    verbose : bool, default=False
        Whether progress is shown.

    Returns
    -------
    list of (NeighborRanks, NeighborRanks)
        Ranks in the data of the neighbors in the embedding, and the other way around.
    """
    n, n_spaces, blocks = data.n_samples, len(points.spaces), _blocks(data, embedding)
    shared, nearest_in, count_in = broadcast(points), delayed(_nearest), delayed(_nearer)
    tasks = [nearest_in(*block, shared, k) for block in blocks]
    merge = partial(_merged, k=k)
    [nearest] = compute([combined(tasks, merge)], "neighbors of sampled rows", verbose=verbose)
    pairs = [pair for e in range(1, n_spaces) for pair in ((e, 0), (0, e))]
    # A task of its own for the second pass, so that no block is kept until then.
    shared_nearest = broadcast(nearest)
    tasks = [count_in(*block, shared, shared_nearest, pairs) for block in blocks]
    [counts] = compute([combined(tasks, sum)], "ranks of sampled rows", verbose=verbose)
    ranks = [NeighborRanks(count + 1, points.rows, n) for count in counts]
    return list(zip(ranks[::2], ranks[1::2], strict=True))


def _blocks(data: Rows, embedding: Rows) -> list[tuple[Any, Any, int]]:
    starts = map(int, data.starts)
    return list(zip(data.blocks, embedding.blocks, starts, strict=True))


def _distances(points: Array, block: Array, metric: Any) -> Array:
    if not (isinstance(metric, str) and metric in ("euclidean", "l2")):
        return metric_distances(points, block, metric)
    return squared_distances(points, block, Frame.of(points), _ACCURACY)


def _slices(X: Array, Y: Array, start: int, points: ComparedPoints) -> Any:
    """Parts of a block: their first row, and the distances of the points to them in each space."""
    for part in row_blocks(len(X), len(points.rows), budget=_BUDGET):
        blocks = [X[part], Y[part]]
        if points.project is not None:
            blocks.append(points.project(X[part]))
        distances = points.distances(blocks)
        first = start + part.start
        own = np.flatnonzero((points.rows >= first) & (points.rows < start + part.stop))
        for each in distances:
            each[own, points.rows[own] - first] = np.inf
        yield first, distances


def _nearest(X: Array, Y: Array, start: int, points: ComparedPoints, k: int) -> list[Nearest]:
    """The nearest rows of a block in each space; runs on a worker."""
    n_points, n_spaces = len(points.rows), len(points.spaces)
    nothing = np.empty((n_points, 0), np.intp), np.empty((n_spaces, n_points, 0))
    found = [Nearest(*nothing, space) for space in range(n_spaces)]
    for first, distances in _slices(X, Y, start, points):
        found = _merged([found, _nearest_in_part(distances, first, k)], k)
    return found


def _nearest_in_part(distances: list[Array], first: int, k: int) -> list[Nearest]:
    nearest = []
    for space, own in enumerate(distances):
        columns = smallest_entries(own, min(k, own.shape[1]))[0]
        among = np.stack([np.take_along_axis(each, columns, axis=1) for each in distances])
        nearest.append(Nearest(columns + first, among, space))
    return nearest


def _merged(parts: list[list[Nearest]], k: int) -> list[Nearest]:
    """The nearest rows of several blocks, in each space."""
    together = zip(*parts, strict=True)
    return [
        Nearest(
            np.concatenate([each.rows for each in of_space], axis=1),
            np.concatenate([each.distances for each in of_space], axis=2),
            of_space[0].space,
        ).first(k)
        for of_space in together
    ]


def _nearer(
    X: Array,
    Y: Array,
    start: int,
    points: ComparedPoints,
    nearest: list[Nearest],
    pairs: list[tuple[int, int]],
) -> Array:
    """How many rows of a block are nearer in another space than each neighbor; on a worker."""
    counts = np.zeros((len(pairs), *nearest[0].rows.shape), dtype=np.intp)
    for first, distances in _slices(X, Y, start, points):
        for count, (near, other) in zip(counts, pairs, strict=True):
            count += _count_nearer(
                distances[other], nearest[near].distances[other], nearest[near].rows - first
            )
    return counts


def _count_nearer(D: Array, bounds: Array, columns: IntArray) -> IntArray:
    """Number of entries of each row before each of its bounds, ties by column."""
    within = bounds.max(axis=1)[:, None] >= D
    counts = np.zeros(bounds.shape, dtype=np.intp)
    for own, mask, bound, column, count in zip(D, within, bounds, columns, counts, strict=True):
        if not mask.any():
            continue
        values = np.sort(own[mask])
        count += np.searchsorted(values, bound)
        for j in np.flatnonzero(np.searchsorted(values, bound, side="right") > count):
            count[j] += np.count_nonzero(own[: max(int(column[j]), 0)] == bound[j])
    return counts
