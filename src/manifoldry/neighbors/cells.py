"""Approximate k-nearest-neighbor graph by search in nearby cells.

The points are divided into cells by k-means, and each point is compared with all points of the
cells whose centers are nearest to it: an inverted file (Jégou, Douze & Schmid, "Product
quantization for nearest neighbor search", PAMI 2011) without quantization. The comparisons are
matrix products in single precision, about ten times as fast per pair as the single distances of
a search along a graph. How many cells have to be searched for a given recall follows from a sample
of points whose neighbors are known. Each row is found by one thread, from the same products for
any number of threads, so the result does not depend on that number.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from manifoldry.neighbors.distances import squared_norms
from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class Cells:
    """Points in single precision, sorted by the nearest of several centers.

    Parameters
    ----------
    centers : array of shape (n_cells, n_features)
        The centers of the cells.
    X : array of shape (n, n_features)
        The points, sorted by cell.
    order : array of shape (n,)
        Number of each sorted point in the original data.
    starts : array of shape (n_cells + 1,)
        First point of each cell.
    """

    centers: Array
    X: Array
    order: IntArray
    starts: IntArray

    @classmethod
    def of(
        cls,
        X: Array,
        cells_per_root: float = 1.0,
        rows_per_cell: int = 50,
        max_steps: int = 8,
    ) -> "Cells":
        """Divide `X` into about ``cells_per_root · √n`` cells by k-means.

        The centers are computed from at most `rows_per_cell` points per cell in `max_steps`
        steps, with a fixed seed. Large cells are cut into pieces.
        """
        n = len(X)
        n_cells = max(1, min(int(cells_per_root * np.sqrt(n)), n))
        rng = np.random.default_rng(0)
        rows = rng.choice(n, min(n, rows_per_cell * n_cells), replace=False)
        centers = cell_centers(X[np.sort(rows)], X[rows[:n_cells]], max_steps)
        with one_blas_thread():
            members = _members(nearest_center(X, centers), n_cells)
        cell, starts = cut_cells(members.indptr)
        return cls(centers[cell], X[members.indices], members.indices, starts)

    def cells_needed(
        self, points: IntArray, neighbors: IntArray, recall: float, max_pairs: float
    ) -> int:
        """Number of cells to search per point, to find a fraction `recall` of known neighbors.

        `neighbors` (n_points, k) are those of the given points, in the original numbering. It is
        less if the search would compare more than `max_pairs` pairs.
        """
        place = np.empty_like(self.order)
        place[self.order] = np.arange(len(self.order), dtype=place.dtype)
        cell_of = np.repeat(np.arange(len(self.centers)), np.diff(self.starts))
        with one_blas_thread():
            squares = center_squares(self.X[place[points]], self.centers)
        found = cell_of[place[neighbors]]
        return searched_cells(squares, self.starts, found, recall, max_pairs)

    def nearest(self, k: int, n_searched: int, block_rows: int = 1024) -> IntArray:
        """The k nearest other points of each point in the `n_searched` cells nearest to it.

        Points are numbered as in the sorted data, nearest first; missing neighbors are -1.
        """
        indices = np.full((len(self.X), k), -1, dtype=np.int32)
        blocks = [
            (cell, slice(first, min(first + block_rows, stop)))
            for cell, (start, stop) in enumerate(pairwise(self.starts))
            for first in range(start, stop, block_rows)
        ]
        with one_blas_thread():
            map_threads(lambda block: self._search(indices, n_searched, *block), blocks)
        return indices

    def _search(
        self, out: IntArray, n_searched: int, cell: int, block: slice, most: int = 4096
    ) -> None:
        """Fill in the neighbors of a block of points of a cell, comparing `most` at a time."""
        # In coordinates around the cell, since products of distant points cancel. An outlier
        # could be among the points and shift their mean.
        origin, indices = self.centers[cell], out[block]
        queries = self.X[block] - origin
        cells = nearest_centers(queries, self.centers - origin, n_searched)
        values = np.full(indices.shape, np.inf, dtype=np.float32)
        compare_with_cells(
            self.X, self.starts, origin, queries, cells, block.start, indices, values, most
        )


def cell_centers(sample: Array, centers: Array, max_steps: int = 8) -> Array:
    """Centers of cells by k-means of a sample of points, from given ones."""
    n_cells = len(centers)
    with one_blas_thread():
        for _ in range(max_steps):
            members = _members(nearest_center(sample, centers), n_cells)
            counts = np.diff(members.indptr)[:, None]
            means = members @ sample / np.maximum(counts, 1).astype(np.float32)
            centers = np.where(counts > 0, means, centers)
    return centers


def nearest_centers(queries: Array, centers: Array, count: int) -> IntArray:
    """The `count` cells (n_queries, count) whose centers are nearest to each query."""
    from manifoldry.neighbors.compiled import keep_smallest

    n = len(queries)
    cells = np.zeros((n, count), dtype=np.int32)
    values = np.full(cells.shape, np.inf, dtype=np.float32)
    squares = squared_norms(centers)
    keep_smallest(queries @ centers.T, squares, 0, -1, np.arange(n), cells, values, 0, n)
    return cells


def compare_with_cells(
    X: Array,
    starts: IntArray,
    origin: Array,
    queries: Array,
    cells: IntArray,
    own: int,
    indices: IntArray,
    values: Array,
    most: int = 4096,
) -> None:
    """Update the nearest points of queries with the points of some cells, `most` at a time.

    The points of cell c are ``X[starts[c] : starts[c + 1]]``, and ``cells``, (n_queries, count),
    are those that a query is compared with, negative for none. The queries are relative to the
    origin, and point ``own + i`` is query i, unless `own` is negative. ``indices`` and ``values``,
    the squared distances less the square of the query, are (n_queries, k), nearest first.
    """
    from manifoldry.neighbors.compiled import search_groups

    n_cells = len(starts) - 1
    members = _members(np.where(cells < 0, n_cells, cells).ravel(), n_cells + 1)
    rows, counts = members.indices.astype(np.intp) // cells.shape[1], np.diff(members.indptr)
    # Cells of most queries first, which are the nearest: later ones then change little.
    counts = counts[:n_cells]
    visited = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    search_groups(
        X, starts, origin, queries, visited, members.indptr, rows, own, most, indices, values
    )


def cut_cells(starts: IntArray, most: int = 8) -> tuple[IntArray, IntArray]:
    """Cut cells of more than `most` times the mean number of points into pieces.

    Such cells, for example copies of one point, would take too many pairs. Returned are the cell of
    each piece and where the pieces start. Empty cells have none.
    """
    n, counts = int(starts[-1]), np.diff(starts)
    piece = most * (n // len(counts))
    pieces = -(-counts // piece)
    cell = np.repeat(np.arange(len(counts)), pieces)
    number = np.arange(len(cell)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return cell, np.append(starts[cell] + piece * number, n)


def searched_cells(
    squares: Array, starts: IntArray, cells: IntArray, recall: float, max_pairs: float
) -> int:
    """Number of cells to search per point, to find a fraction `recall` of known neighbors.

    `squares`, (n_points, n_cells), are squared distances of some points to the centers up to a
    constant per point, `cells` those of their neighbors. It is less if the search would compare
    more than `max_pairs` pairs.
    """
    nearest = np.argsort(squares, axis=1, kind="stable")
    ranks = np.argsort(nearest, axis=1)  # of each cell for each point
    found = np.take_along_axis(ranks, cells, axis=1)
    needed = int(np.quantile(found, recall, method="higher")) + 1
    pairs = np.cumsum(np.diff(starts)[nearest].mean(axis=0)) * int(starts[-1])
    return max(1, min(needed, int(np.searchsorted(pairs, max_pairs, side="right"))))


def _members(labels: IntArray, n_labels: int) -> sparse.csr_array:
    """Matrix (n_labels, n) of ones for the members of each label."""
    n = len(labels)
    entries = np.ones(n, dtype=np.float32), labels, np.arange(n + 1)
    return sparse.csc_array(entries, shape=(n_labels, n)).tocsr()


def nearest_center(X: Array, centers: Array) -> IntArray:
    """The cell whose center is nearest to each point."""
    out = np.empty(len(X), dtype=np.int32)

    def fill(rows: slice) -> None:
        out[rows] = center_squares(X[rows], centers).argmin(axis=1)

    map_threads(fill, row_blocks(len(X), len(centers), budget=2**21))
    return out


def center_squares(X: Array, centers: Array) -> Array:
    """Squared distances to the centers, up to a constant per point."""
    values = X @ (-2 * centers.T)
    values += squared_norms(centers)
    return values
