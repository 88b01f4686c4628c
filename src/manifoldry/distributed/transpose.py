"""The transpose of a sparse matrix whose rows are in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.distributed.blocks import row_numbers
from manifoldry.distributed.scheduler import compute, delayed, persist
from manifoldry.util.typing import Array, IntArray, Matrix


def transposed(blocks: Sequence[Any], bounds: IntArray) -> list[Any]:
    """Return the transpose of a square sparse matrix, in the same parts.

    Entries move to the part that has their column; stored zeros stay.

    Parameters
    ----------
    blocks : list of Delayed
        Sparse arrays, (rows of a part, all rows).
    bounds : array of shape (n_parts + 1,)
        The first row of each part, and the number of all rows.

    Returns
    -------
    list of Delayed
        Arrays of the same shapes, in CSR format.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from manifoldry.distributed.transpose import transposed
    >>> A = sparse.csr_array(np.arange(9.0).reshape(3, 3))
    >>> parts = transposed([dask.delayed(A[:2]), dask.delayed(A[2:])], np.array([0, 2, 3]))
    >>> parts[0].compute().toarray()
    array([[0., 3., 6.],
           [1., 4., 7.]])
    """
    cut, take, assemble = delayed(_by_column), delayed(_of_part), delayed(_assembled)
    starts = bounds[:-1]
    pieces = persist(cut(block, start, bounds) for block, start in zip(blocks, starts, strict=True))
    targets = compute([delayed(sorted)(each) for each in pieces], "transposing")
    of_part: list[list[Any]] = [[] for _ in starts]
    for piece, parts in zip(pieces, targets, strict=True):
        for part in parts:
            of_part[part].append(take(piece, part))
    n = int(bounds[-1])
    sizes = np.diff(bounds)
    return [assemble((int(s), n), *found) for s, found in zip(sizes, of_part, strict=True)]


def _by_column(
    block: Matrix, start: int, bounds: IntArray
) -> dict[int, tuple[IntArray, IntArray, Array]]:
    """Entries by the part that has their column: that column, their row, and their value."""
    rows = start + row_numbers(block)
    part = np.searchsorted(bounds, block.indices, side="right") - 1
    order = np.argsort(part, kind="stable")
    present, first = np.unique(part[order], return_index=True)
    return {
        int(p): (block.indices[some] - bounds[p], rows[some], block.data[some])
        for p, some in zip(present, np.split(order, first)[1:], strict=True)
    }


def _of_part(pieces: dict[int, Any], part: int) -> Any:
    return pieces[part]


def _assembled(shape: tuple[int, int], *pieces: tuple[IntArray, IntArray, Array]) -> Matrix:
    if not pieces:
        return sparse.csr_array(shape)
    rows, columns, values = (np.concatenate(each) for each in zip(*pieces, strict=True))
    return sparse.csr_array((values, (rows, columns)), shape=shape)
