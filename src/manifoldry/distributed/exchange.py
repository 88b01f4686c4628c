"""Rows that parts need of each other, and products of sparse matrices whose rows are in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.distributed.blocks import columns, taken
from manifoldry.distributed.scheduler import compute, delayed, persist
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class Exchange:
    """What each part needs of the rows of other parts, and how it gets them.

    n rows are divided into consecutive parts. A part numbers its own rows first, then those that
    it needs of others, in their order. Only these rows move between workers; the client knows
    which parts exchange rows, not which rows.

    Parameters
    ----------
    sources : list of lists of int
        For each part, the other parts whose rows it needs.
    wanted : list of lists of Delayed
        For each part, the rows that it needs of each source, numbered in that source.

    See Also
    --------
    DistributedMatrix : multiplies vectors whose entries are exchanged.

    Examples
    --------
    Three parts of two rows; the first one needs the fourth row:

    >>> import dask
    >>> import numpy as np
    >>> from manifoldry.distributed.exchange import Exchange
    >>> needed = [dask.delayed(np.array(rows)) for rows in ([0, 3], [2], [4])]
    >>> exchange, local = Exchange.of(needed, np.array([0, 2, 4, 6]))
    >>> exchange.sources, dask.compute(*local)
    ([[1], [], []], (array([0, 2]), array([0]), array([0])))
    >>> values = [dask.delayed(np.array(rows)) for rows in ([10, 11], [12, 13], [14, 15])]
    >>> dask.compute(*exchange.gathered(values))
    (array([10, 11, 13]), array([12, 13]), array([14, 15]))
    """

    sources: list[list[int]]
    wanted: list[list[Any]]

    @classmethod
    def of(cls, needed: Sequence[Any], bounds: IntArray) -> tuple[Exchange, list[Any]]:
        """Return the exchange of the rows that parts need, and what the parts call them.

        Parameters
        ----------
        needed : list of Delayed
            For each part, an array of rows of the whole, which may repeat.
        bounds : array of shape (n_parts + 1,)
            The first row of each part, and the number of all rows.

        Returns
        -------
        exchange : Exchange
            The exchange.
        local : list of Delayed
            `needed`, in the numbers of each part.
        """
        divide, first, wanted_of = delayed(_divided), delayed(_first), delayed(_wanted)
        divided = persist(divide(rows, part, bounds) for part, rows in enumerate(needed))
        sources = compute([delayed(_sources)(each) for each in divided], "rows of other parts")
        wanted = [
            persist(wanted_of(each, source) for source in of_part)
            for each, of_part in zip(divided, sources, strict=True)
        ]
        return cls(sources, wanted), [first(each) for each in divided]

    def gathered(self, parts: Sequence[Any]) -> list[Any]:
        """Return the rows of each part, followed by those that it needs of others.

        Parameters
        ----------
        parts : list of Delayed
            An array of the rows of each part.

        Returns
        -------
        list of Delayed
            The arrays.
        """
        join = delayed(_joined)
        return [join(part, *self.received(p, parts)) for p, part in enumerate(parts)]

    def received(self, part: int, parts: Sequence[Any]) -> list[Any]:
        """Return the rows that a part needs of each of its sources.

        Parameters
        ----------
        part : int
            Number of the part.
        parts : list of Delayed
            An array of the rows of each part.

        Returns
        -------
        list of Delayed
            The arrays.
        """
        take = delayed(taken)
        pairs = zip(self.sources[part], self.wanted[part], strict=True)
        return [take(parts[source], rows) for source, rows in pairs]


@dataclass(frozen=True, eq=False)
class DistributedMatrix:
    """A sparse matrix in blocks of rows, which are on workers.

    Parameters
    ----------
    blocks : list of Delayed
        Sparse arrays, (rows of a part, columns in the numbers of the part).
    exchange : Exchange
        The rows of vectors that parts need of each other.

    See Also
    --------
    Exchange : the numbers of columns.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from manifoldry.distributed.exchange import DistributedMatrix
    >>> A = sparse.csr_array(np.arange(16.0).reshape(4, 4))
    >>> blocks = [dask.delayed(A[:2]), dask.delayed(A[2:])]
    >>> matrix = DistributedMatrix.of(blocks, np.array([0, 2, 4]))
    >>> products = matrix.times([dask.delayed(np.ones((2, 1)))] * 2)
    >>> np.concatenate(dask.compute(*products)).ravel()
    array([ 6., 22., 38., 54.])
    """

    blocks: list[Any]
    exchange: Exchange

    @classmethod
    def of(cls, blocks: Sequence[Any], bounds: IntArray) -> DistributedMatrix:
        """Return the matrix of blocks whose columns have the numbers of all rows.

        Parameters
        ----------
        blocks : list of Delayed
            Sparse arrays, (rows of a part, all rows).
        bounds : array of shape (n_parts + 1,)
            The first row of each part, and the number of all rows.

        Returns
        -------
        DistributedMatrix
            The matrix, of the same blocks in the numbers of the parts.
        """
        columns_of, renumber = delayed(columns), delayed(_renumbered)
        exchange, local = Exchange.of([columns_of(block) for block in blocks], bounds)
        pairs = zip(blocks, local, strict=True)
        return cls(persist(renumber(block, numbers) for block, numbers in pairs), exchange)

    def times(self, vectors: Sequence[Any]) -> list[Any]:
        """Return the products with a block of vectors.

        Parameters
        ----------
        vectors : list of Delayed
            The rows of each part, (rows of a part, n_vectors).

        Returns
        -------
        list of Delayed
            The rows of the products.
        """
        multiply = delayed(_product)
        return [
            multiply(block, vectors[p], *self.exchange.received(p, vectors))
            for p, block in enumerate(self.blocks)
        ]


def _divided(rows: IntArray, part: int, bounds: IntArray) -> tuple[IntArray, dict[int, IntArray]]:
    """The rows in the numbers of a part, and those that are of other parts, by part."""
    start, stop = bounds[part], bounds[part + 1]
    own = (start <= rows) & (rows < stop)
    others = np.unique(rows[~own])
    local = rows - start
    local[~own] = stop - start + np.searchsorted(others, rows[~own])
    owner = np.searchsorted(bounds, others, side="right") - 1
    return local, {int(q): others[owner == q] - bounds[q] for q in np.unique(owner)}


def _first(divided: tuple[IntArray, Any]) -> IntArray:
    return divided[0]


def _sources(divided: tuple[Any, dict[int, IntArray]]) -> list[int]:
    return sorted(divided[1])


def _wanted(divided: tuple[Any, dict[int, IntArray]], source: int) -> IntArray:
    return divided[1][source]


def _joined(*pieces: Array) -> Array:
    return np.concatenate(pieces)


def _renumbered(block: Matrix, local: IntArray) -> Matrix:
    """The block with other numbers of columns; its rows keep their order of entries."""
    from scipy import sparse

    width = max(block.shape[0], int(local.max(initial=-1)) + 1)
    return sparse.csr_array((block.data, local, block.indptr), shape=(block.shape[0], width))


def _product(block: Matrix, *pieces: Array) -> Array:
    """The product with the vectors of a part and those it received."""
    return np.asarray(block @ np.concatenate(pieces)[: block.shape[1]])
