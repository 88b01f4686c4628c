"""Candidates for nearest neighbors from matrix products in single precision.

Nearly all of the work is the matrix product, so this runs at the speed of BLAS: compiled loops
select the smallest entries of a block while it is in the cache. If queries and references are the
same points, each block is used for its rows and for its columns, which halves the work.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from manifoldry.neighbors.distances import Frame, squared_norms
from manifoldry.util.threads import map_threads, run_on_rows
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
