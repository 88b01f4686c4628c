"""Rows that move from chunks of the data to the parts of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from manifoldry.distributed.scheduler import delayed
from manifoldry.util.typing import Array, IntArray

# Dask takes one to two milliseconds per task. Above this number of pieces rows move in two steps,
# which takes 2·P^1.5 tasks for P chunks and parts instead of P². A graph of 100 parts of 400 rows
# then took 9 s instead of 25 s, on two workers; of large parts, the network carries twice as much.
_MOST_TASKS = 2500


class Moving(NamedTuple):
    """Rows on their way, sorted by cell."""

    cells: IntArray
    rows: IntArray
    points: Array

    @classmethod
    def sorted(cls, cells: IntArray, rows: IntArray, points: Array) -> Moving:
        """Sort rows by cell, those of a cell by their number."""
        order = np.lexsort((rows, cells))
        return cls(cells[order], rows[order], points[order])


def moved(
    chunks: Sequence[Any], present: Sequence[IntArray], bounds: IntArray, most: int = _MOST_TASKS
) -> list[Any]:
    """Return the rows of each part.

    Parameters
    ----------
    chunks : list of Delayed
        The rows of each chunk, as `Moving`.
    present : list of arrays
        For each chunk, the parts that it has rows of.
    bounds : array of shape (n_parts + 1,)
        The first cell of each part, and the number of cells.
    most : int
        Number of pieces above which rows move in two steps.

    Returns
    -------
    list of Delayed
        The rows of each part, as `Moving`.
    """
    if sum(map(len, present)) <= most:
        return _gathered(chunks, present, bounds)
    width, height = _root(len(bounds) - 1), _root(len(chunks))
    groups = np.append(bounds[:-1:width], bounds[-1])  # of about √P consecutive parts
    batches = [slice(i, i + height) for i in range(0, len(chunks), height)]
    between = [
        _gathered(chunks[batch], [np.unique(parts // width) for parts in present[batch]], groups)
        for batch in batches
    ]
    of_batches = [np.unique(np.concatenate(present[batch])) for batch in batches]
    found: list[Any] = []
    for group, first in enumerate(range(0, len(bounds) - 1, width)):
        of_group = bounds[first : first + width + 1]
        inside = [parts[(first <= parts) & (parts < first + width)] - first for parts in of_batches]
        found += _gathered([batch[group] for batch in between], inside, of_group)
    return found


def _gathered(sources: Sequence[Any], present: Sequence[IntArray], bounds: IntArray) -> list[Any]:
    """The rows of each part, from the sources that have some."""
    take, join = delayed(_taken), delayed(_joined)
    pieces: list[list[Any]] = [[] for _ in bounds[1:]]
    for source, parts in zip(sources, present, strict=True):
        for part in parts:
            pieces[part].append(take(source, int(bounds[part]), int(bounds[part + 1])))
    return [join(*of_part) for of_part in pieces]


def _root(n: int) -> int:
    return int(np.ceil(np.sqrt(n)))


def parts_present(moving: Moving, bounds: IntArray) -> IntArray:
    """The parts that have some of the rows."""
    ends = np.searchsorted(moving.cells, bounds)
    return np.flatnonzero([b > a for a, b in pairwise(ends)])


def _taken(moving: Moving, first: int, stop: int) -> Moving:
    piece = slice(*np.searchsorted(moving.cells, [first, stop]))
    return Moving(
        moving.cells[piece].copy(), moving.rows[piece].copy(), moving.points[piece].copy()
    )


def _joined(*pieces: Moving) -> Moving:
    return Moving.sorted(*(np.concatenate(each) for each in zip(*pieces, strict=True)))
