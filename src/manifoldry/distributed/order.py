"""Rows in parts of another order than that of the data, and values in the order of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.distributed.collections import from_parts
from manifoldry.distributed.scheduler import compute, delayed, persist
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class RowOrder:
    """The order in which parts hold the rows of data.

    Parameters
    ----------
    rows : list of Delayed
        For each part, the rows of the data that it holds, (n_rows,).
    bounds : array of shape (n_parts + 1,)
        The first position of each part, and the number of all rows.
    counts : array of shape (n_chunks,)
        Number of rows of each chunk of the data.

    See Also
    --------
    manifoldry.neighbors.DistributedGraph : whose parts are groups of nearby rows.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from manifoldry.distributed.order import RowOrder
    >>> rows = [dask.delayed(np.array([3, 0])), dask.delayed(np.array([2, 1]))]
    >>> order = RowOrder(rows, np.array([0, 2, 4]), np.array([3, 1]))
    >>> values = [dask.delayed(np.array([[3.0], [0.0]])), dask.delayed(np.array([[2.0], [1.0]]))]
    >>> order.restored(values, 1, float).compute().ravel()
    array([0., 1., 2., 3.])
    """

    rows: list[Any]
    bounds: IntArray
    counts: IntArray

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.bounds[-1])

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each part."""
        return np.diff(self.bounds)

    def positions(self, rows: IntArray) -> IntArray:
        """Return where some rows of the data are.

        Parameters
        ----------
        rows : array of shape (n,)
            Rows of the data, ascending and each once.

        Returns
        -------
        array of shape (n,)
            Their positions in all parts together.
        """
        found = compute([delayed(_found)(part, rows) for part in self.rows], "finding rows")
        positions = np.full(len(rows), -1, dtype=np.intp)
        for start, (number, place) in zip(self.bounds[:-1], found, strict=True):
            positions[number] = start + place
        return positions

    def restored(self, parts: Sequence[Any], columns: int, dtype: Any) -> Any:
        """Return values of the parts as a Dask array in the order and chunks of the data.

        Parameters
        ----------
        parts : list of Delayed
            Arrays of shape (rows of a part, columns).
        columns : int
            Number of columns.
        dtype : dtype
            That of the result.

        Returns
        -------
        dask.array.Array of shape (n_samples, columns)
            The values.
        """
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        places = persist(delayed(_by_chunk)(rows, starts) for rows in self.rows)
        chunks_of = compute([delayed(_chunks)(each) for each in places], "finding rows")
        cut, assemble = delayed(_cut), delayed(_assembled)
        pieces: list[list[Any]] = [[] for _ in self.counts]
        for part, (place, chunks) in enumerate(zip(places, chunks_of, strict=True)):
            for chunk in chunks:
                pieces[chunk].append(cut(parts[part], place, chunk))
        arrays = [
            assemble((int(count), columns), dtype, *of_chunk)
            for count, of_chunk in zip(self.counts, pieces, strict=True)
        ]
        return from_parts(arrays, self.counts, columns, dtype)


def _found(part: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Which of the rows a part has, and their places in it."""
    number = np.minimum(np.searchsorted(rows, part), len(rows) - 1)
    place = np.flatnonzero(rows[number] == part)
    return number[place], place


def _by_chunk(rows: IntArray, starts: IntArray) -> dict[int, tuple[IntArray, IntArray]]:
    """Of each chunk that has some of the rows: where they are here, and where in the chunk."""
    chunk = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(chunk, kind="stable")
    present, first = np.unique(chunk[order], return_index=True)
    groups = np.split(order, first)[1:]
    return {int(c): (here, rows[here] - starts[c]) for c, here in zip(present, groups, strict=True)}


def _chunks(places: dict[int, Any]) -> list[int]:
    return sorted(places)


def _cut(values: Array, places: dict[int, tuple[IntArray, IntArray]], chunk: int) -> Any:
    here, there = places[chunk]
    return there, values[here]


def _assembled(shape: tuple[int, int], dtype: Any, *pieces: tuple[IntArray, Array]) -> Array:
    out = np.empty(shape, dtype)
    for there, values in pieces:
        out[there] = values.reshape(len(there), shape[1])
    return out
