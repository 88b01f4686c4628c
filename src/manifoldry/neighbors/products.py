"""Candidates for nearest neighbors from matrix products in single precision.

Nearly all of the work is the matrix product, so this runs at the speed of BLAS: compiled loops
select the smallest entries of a block while it is in the cache. If queries and references are the
same points, each block is used for its rows and for its columns, which halves the work.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from manifoldry.neighbors.base import bound_of_smallest
from manifoldry.neighbors.distances import Frame, squared_norms
from manifoldry.util.threads import map_threads, one_blas_thread, run_on_rows
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class SingleRows:
    """Frame coordinates of `X` in single precision, computed from the rows that are read.

    For a single pass over the rows; see :func:`single_precision` for several.
    """

    frame: Frame
    X: Array

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: slice | IntArray) -> Array:
        return self.frame.apply_single(self.X[rows])


def single_precision(frame: Frame, X: Array) -> Array:
    """Frame coordinates of `X` in single precision, computed in blocks."""
    out, rows = np.empty(X.shape, dtype=np.float32), SingleRows(frame, X)

    def fill(block: slice) -> None:
        out[block] = rows[block]

    map_threads(fill, row_blocks(X.shape[0], X.shape[1], budget=2**20))
    return out


def nearest_in_blocks(X: Array, Y: Array, k: int) -> tuple[IntArray, Array]:
    """Indices (n_query, k) of the rows of `Y` nearest to each row of `X`, and the last square.

    For few points, without compiled code; a row may be its own neighbor. Both are accurate to the
    precision of the arrays. Where products overflow, the indices are any and the square is −∞.
    """
    indices, squares = np.empty((len(X), k), dtype=np.intp), np.empty(len(X))
    references, halves = -Y.T, squared_norms(Y) / 2

    def fill(rows: slice) -> None:
        products = X[rows] @ references
        products += halves  # (|y|² − 2x·y) / 2
        indices[rows], last = _smallest_of_rows(products, k)
        squares[rows] = 2 * last + squared_norms(X[rows])

    with one_blas_thread():  # blocks stay in the cache
        map_threads(fill, row_blocks(len(X), len(Y), budget=2**17))
    return indices, np.where(np.isfinite(squares), squares, -np.inf)


def _smallest_of_rows(D: Array, k: int) -> tuple[IntArray, Array]:
    """Columns (n, k) of the smallest entries of each row, in any order, and the largest of them.

    If entries are not finite, the columns may be any, and the largest is −∞.
    """
    n, m = D.shape
    row, column = np.divmod(np.flatnonzero(bound_of_smallest(D, k) >= D), m)
    counts = np.bincount(row, minlength=n)
    few = np.flatnonzero(counts < k)  # no number compares to NaN
    # The entries below the bound, padded to the same number in each row.
    width = max(k, int(counts.max(initial=0)))
    values = np.full((n, width), np.inf)
    columns = np.broadcast_to(np.arange(width) % m, (n, width)).copy()
    place = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
    values[row, place], columns[row, place] = D[row, column], column
    columns[few] = np.arange(width) % m
    if width > k:
        order = np.argpartition(values, k - 1, axis=1)[:, :k]
        values, columns = (np.take_along_axis(part, order, axis=1) for part in (values, columns))
    largest = values.max(axis=1)
    largest[few] = -np.inf
    return columns, largest


Visit: TypeAlias = Callable[[slice, slice, Array], None]


def nearest_by_products(
    X: Array, Y: Array | SingleRows, k: int, visit: Visit | None = None, block_rows: int = 2048
) -> tuple[IntArray, Array]:
    """Indices (n_query, k) of the rows of `Y` nearest to each row of `X`, and squared distances.

    Both are accurate to single precision. If `X` is `Y`, a row is not its own neighbor. Blocks
    have `block_rows` rows and columns. If `X` is not `Y`, `visit` is called with the rows, the
    columns and the products of every block.
    """
    indices, values = np.zeros((len(X), k), dtype=np.int32), np.full((len(X), k), np.inf, "f4")
    if X is Y:
        _among_themselves(X, squared_norms(X), indices, values, _blocks(len(X), block_rows))
    else:
        blocks = _blocks(len(X), block_rows), _blocks(len(Y), block_rows)
        _among_others(X, Y, indices, values, *blocks, visit)
    values += squared_norms(X)[:, None]
    return indices.astype(np.intp), np.maximum(values, 0)


def _among_others(
    X: Array,
    Y: Array | SingleRows,
    indices: IntArray,
    values: Array,
    row_blocks: list[slice],
    column_blocks: list[slice],
    visit: Visit | None,
) -> None:
    from manifoldry.neighbors.compiled import keep_smallest

    for rows in row_blocks:
        row_results = indices[rows], values[rows]
        for columns in column_blocks:
            points = Y[columns]
            products = X[rows] @ points.T
            if visit is not None:
                visit(rows, columns, products)
            run_on_rows(
                keep_smallest, len(products), products, squared_norms(points), columns.start, -1,
                np.arange(len(products)), *row_results,
            )  # fmt: skip


def _among_themselves(
    X: Array, squares: Array, indices: IntArray, values: Array, blocks: list[slice]
) -> None:
    from manifoldry.neighbors.compiled import keep_smallest, keep_smallest_across

    for number, rows in enumerate(blocks):
        row_results = indices[rows], values[rows]
        for columns in blocks[number:]:
            products = X[rows] @ X[columns].T
            n, m = products.shape
            first, own = columns.start, rows.start
            run_on_rows(
                keep_smallest, n, products, squares[columns], first, own, np.arange(n), *row_results
            )
            if columns is not rows:
                column_results = indices[columns], values[columns]
                run_on_rows(keep_smallest_across, m, products, squares, own, *column_results)


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
