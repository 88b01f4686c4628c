"""Distributed data and an embedding of them, in the same blocks, without rows of NaN."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.distributed.collections import from_parts, is_collection
from manifoldry.distributed.failures import block_keys
from manifoldry.distributed.rows import Rows, checked_block, dense_block
from manifoldry.distributed.scheduler import compute, delayed, persist
from manifoldry.metrics.pair import read_embedding
from manifoldry.util.typing import Array, IntArray

# Embedded rows that an assessment needs, as in memory.
_LEAST = 4


@dataclass(frozen=True, eq=False)
class EmbeddedRows(Rows):
    """Some rows of each block of others, which are checked where they are read.

    Parameters
    ----------
    pieces : list of Delayed
        The rows of each block.
    """

    pieces: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Rows, pieces: list[Any], counts: IntArray) -> EmbeddedRows:
        """Return so many rows of each block."""
        array = from_parts(pieces, counts, rows.n_features, rows.array.dtype)
        return cls(array, rows.names, rows.what, pieces=pieces)

    @property
    def blocks(self) -> list[Any]:
        """Delayed blocks."""
        return list(self.pieces)


@dataclass(frozen=True, eq=False)
class DistributedPair:
    """The embedded rows of distributed data, and their embedding.

    Parameters
    ----------
    data, embedding : Rows
        The embedded rows, in the same blocks.
    n_rows : int
        Number of all rows, embedded or not.
    starts : array of shape (n_blocks,)
        The first row of each block among all rows.
    masks : list of Delayed or None
        Which rows of each block are embedded; None if all are.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from manifoldry.distributed import Rows
    >>> from manifoldry.metrics.distributed_pair import DistributedPair
    >>> X, Y = np.eye(7, 3), np.eye(7, 2)
    >>> Y[2] = np.nan
    >>> pair = DistributedPair.of(Rows.read(da.from_array(X, chunks=(4, 3))), Y)
    >>> pair.data.counts, pair.n_left_out, pair.original(np.array([1, 2, 5]))
    (array([3, 3]), 1, array([1, 3, 6]))
    """

    data: Rows
    embedding: Rows
    n_rows: int
    starts: IntArray
    masks: list[Any] | None = None

    @classmethod
    def of(cls, data: Rows, model: Any) -> DistributedPair:
        """Return the pair; an embedding that is not computed yet is computed once, on workers.

        Parameters
        ----------
        data : Rows
            The data.
        model : array, dask.array.Array or fitted estimator
            The embedding. Rows of NaN are points that were not embedded.

        Returns
        -------
        DistributedPair
            The pair.
        """
        embedding = _embedding_rows(model, data)
        raw, mask_of = embedding.array.to_delayed().ravel(), delayed(_embedded)
        masks = persist(mask_of(block) for block in raw)
        counts = np.array(compute([delayed(_count)(mask) for mask in masks], "embedded rows"))
        n, starts = data.n_samples, data.starts
        if counts.sum() == n:
            return cls(data, embedding, n, starts)
        if counts.sum() < _LEAST:
            raise ValueError(
                f"{counts.sum()} of {n} points are embedded (not NaN); at least {_LEAST} are needed"
            )
        take, take_finite, d = delayed(_taken), delayed(_finite_taken), embedding.n_features
        of_data = [take(*of_block) for of_block in zip(data.blocks, masks, strict=True)]
        shapes = [(int(count), d) for count in data.counts]
        numbered = zip(raw, range(len(raw)), map(int, starts), shapes, masks, strict=True)
        keys = block_keys(starts, data.counts, embedding.what)
        of_map = [
            take_finite(*of_block, dask_key_name=key)
            for of_block, key in zip(numbered, keys, strict=True)
        ]
        kept = EmbeddedRows.of(data, of_data, counts), EmbeddedRows.of(embedding, of_map, counts)
        return cls(*kept, n, starts, masks)

    @property
    def n_left_out(self) -> int:
        """Number of rows that are not embedded."""
        return self.n_rows - self.data.n_samples

    def original(self, rows: IntArray) -> IntArray:
        """Return the numbers that embedded rows have among all rows.

        Parameters
        ----------
        rows : array of int
            Numbers among the embedded rows, in any order.

        Returns
        -------
        array of int
            Their numbers among all rows.
        """
        if self.masks is None:
            return rows
        order = np.argsort(rows, kind="stable")
        first = np.searchsorted(rows[order], self.data.starts)
        end = np.searchsorted(rows[order], self.data.starts + self.data.counts)
        place = delayed(_places)
        pieces = zip(self.masks, first, end, self.data.starts, strict=True)
        tasks = [place(mask, rows[order][a:b] - start) for mask, a, b, start in pieces]
        found = compute(tasks, "numbers of sampled rows")
        of_all = np.empty_like(rows)
        of_all[order] = np.concatenate(
            [places + start for places, start in zip(found, self.starts, strict=True)]
        )
        return of_all


def _embedding_rows(model: Any, data: Rows) -> Rows:
    """The rows of an embedding in the blocks of the data, computed once on workers."""
    import dask.array

    Y = getattr(model, "embedding_", model)
    if not is_collection(Y):
        Y = read_embedding(model)
        Y = dask.array.from_array(Y, chunks=(_fitting_chunks(data, len(Y)), -1))
    elif getattr(Y, "ndim", 2) == 1:
        Y = Y.to_frame() if hasattr(Y, "to_frame") else Y[:, None]
    rows = Rows.read(Y, "embedding")
    if rows.n_samples != data.n_samples:
        raise ValueError(
            f"X has {data.n_samples} rows and the embedding has {rows.n_samples}; they must be "
            "equal"
        )
    array = rows.array.rechunk({0: data.array.chunks[0]})
    return replace(rows, array=persist([array])[0])


def _fitting_chunks(data: Rows, n: int) -> Any:
    """Chunks of the data, if there are as many rows."""
    return data.array.chunks[0] if n == data.n_samples else -1


def _embedded(block: Any) -> NDArray[np.bool_]:
    """Which rows of a block are not NaN in all coordinates; runs on a worker."""
    values = np.asarray(dense_block(block), dtype=np.float64)
    return np.asarray(~np.isnan(values).all(axis=1))


def _count(mask: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(mask))


def _taken(block: Array, mask: NDArray[np.bool_]) -> Array:
    return block[mask]


def _finite_taken(
    block: Any, number: int, start: int, shape: tuple[int, int], mask: NDArray[np.bool_]
) -> Array:
    """The embedded rows of a block; an error names the row among all rows."""
    values = np.where(mask[:, None], dense_block(block), 0)
    return checked_block(values, number, start, shape, "embedding")[mask]


def _places(mask: NDArray[np.bool_], rows: IntArray) -> IntArray:
    return np.flatnonzero(mask)[rows]
