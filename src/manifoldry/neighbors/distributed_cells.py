"""A partition of distributed rows into cells of nearby points, and of cells into parts.

Cells are those of k-means of a sample. Parts are groups of cells that are near each other, with
about equal numbers of rows: about as many as a chunk of the data, so that what fits a worker stays
so. The data are read three times: for the sample, to count the rows of cells, and to move them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from manifoldry.distributed.order import RowOrder
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import combined, compute, delayed, persist
from manifoldry.neighbors.brute import scaled_rows
from manifoldry.neighbors.cells import cell_centers, nearest_center
from manifoldry.neighbors.distances import Frame
from manifoldry.neighbors.distributed_moves import Moving, moved, parts_present
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True)
class PartitionOptions:
    """Sizes of a partition.

    Parameters
    ----------
    cells_per_root : float
        Number of cells per √n, as in memory, where a search of few cells takes as long as finding
        the nearest cells.
    cells_per_part : int
        Least number of cells per part, since parts are balanced in units of cells.
    rows_per_cell : int
        Least number of rows per cell, on average.
    rows_per_part : int
        Least number of rows per part, on average; a task takes a millisecond.
    sampled_per_cell : int
        Number of rows per cell in the sample for k-means.
    sample_size : int
        Largest number of values in the sample: 512 MiB in single precision.
    largest_cell : float
        Cells of more rows than this multiple of the mean, such as copies of one point, are cut.
    """

    cells_per_root: float = 1.0
    cells_per_part: int = 16
    rows_per_cell: int = 10
    rows_per_part: int = 100
    sampled_per_cell: int = 50
    sample_size: int = 2**27
    largest_cell: float = 8.0

    def n_parts(self, counts: IntArray) -> int:
        """Number of parts for chunks of so many rows."""
        return max(1, min(int(np.count_nonzero(counts)), int(counts.sum()) // self.rows_per_part))

    def n_cells(self, n: int, n_parts: int) -> int:
        """Number of cells for n rows."""
        wanted = max(self.cells_per_root * np.sqrt(n), self.cells_per_part * n_parts)
        return int(max(1, min(wanted, n // self.rows_per_cell)))

    def n_sampled(self, n_cells: int, n_features: int) -> int:
        """Number of rows in the sample."""
        allowed = max(n_cells, self.sample_size // n_features)
        return min(self.sampled_per_cell * n_cells, allowed)


@dataclass(frozen=True, eq=False)
class Partition:
    """Cells in the order of parts, and coordinates in which rows are compared.

    Parameters
    ----------
    metric : str
        "euclidean", or "cosine" for Euclidean distances on the unit sphere.
    frame : Frame
        Origin and unit of coordinates in single precision.
    centers : array of shape (n_cells, n_features)
        The centers of cells in these coordinates. Pieces of a large cell have the same center.
    bounds : array of shape (n_parts + 1,)
        The first cell of each part, and the number of cells.
    starts : array of shape (n_cells + 1,)
        The first position of each cell, and the number of rows; of -1 if they are not known.
    """

    metric: str
    frame: Frame
    centers: Array
    bounds: IntArray
    starts: IntArray

    def exact(self, X: Array) -> Array:
        """Rows whose Euclidean distances are compared."""
        return compared_rows(X, self.metric)

    def single(self, X: Array) -> Array:
        """The same in coordinates in single precision."""
        return self.frame.apply_single(self.exact(X))

    def cells_of(self, part: int) -> range:
        """The cells of a part."""
        return range(self.bounds[part], self.bounds[part + 1])

    def local_starts(self, part: int) -> IntArray:
        """Where cells of a part start among the rows of the part."""
        starts = self.starts[self.bounds[part] : self.bounds[part + 1] + 1]
        return starts - starts[0]


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """Rows in parts, sorted by cell.

    Parameters
    ----------
    points : list of Delayed
        The rows of each part.
    order : RowOrder
        Which rows these are.
    partition : Delayed
        The cells, as `Partition`.
    n_cells : int
        Their number.
    """

    points: list[Any]
    order: RowOrder
    partition: Any
    n_cells: int

    @classmethod
    def of(
        cls,
        rows: Rows,
        metric: str,
        rng: np.random.Generator,
        options: PartitionOptions | None = None,
        *,
        verbose: bool = False,
    ) -> PartitionedRows:
        """Divide rows into parts.

        Parameters
        ----------
        rows : Rows
            The data.
        metric : str
            "euclidean" or "cosine".
        rng : numpy.random.Generator
            Source of random numbers.
        options : PartitionOptions, optional
            Sizes.
        verbose : bool
            Whether progress is shown.

        Returns
        -------
        PartitionedRows
            The same rows in parts; the client knows their numbers only.
        """
        options = options or PartitionOptions()
        n_parts = options.n_parts(rows.counts)
        cells = _cells(rows, metric, n_parts, rng, options)
        labels = persist(rows.tasks(_labels, cells))
        counts = combined([delayed(_counted)(each, cells) for each in labels], sum)
        [planned] = persist([delayed(_planned)(cells, counts, n_parts, options)])
        [bounds] = compute([delayed(_bounds)(planned)], "grouping cells", verbose=verbose)
        cut = delayed(_cut)
        numbered = zip(rows.blocks, labels, rows.starts, strict=True)
        chunks = persist(
            cut(block, label, planned, chunk, int(start))
            for chunk, (block, label, start) in enumerate(numbered)
        )
        has = [delayed(parts_present)(chunk, bounds) for chunk in chunks]
        present = compute(has, "moving rows", verbose=verbose)
        return cls._from(moved(chunks, present, bounds), planned, bounds, rows.counts)

    @classmethod
    def _from(
        cls, parts: Sequence[Any], planned: Any, bounds: IntArray, counts: IntArray
    ) -> PartitionedRows:
        """The rows of parts, with what is needed to find them."""
        count = delayed(_rows_per_cell)
        of_parts = [
            (delayed(_points)(part), delayed(_rows)(part), count(part, *cells))
            for part, cells in zip(parts, pairwise(bounds), strict=True)
        ]
        # At once, so that what they are taken from is not kept.
        kept = persist(task for of_part in of_parts for task in of_part)
        points, rows, counted = kept[::3], kept[1::3], kept[2::3]
        sizes = compute([delayed(len)(each) for each in rows], "counting rows")
        [partition] = persist([delayed(_with_starts)(planned, counted)])
        positions = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        return cls(points, RowOrder(rows, positions, counts), partition, int(bounds[-1]))


def compared_rows(X: Array, metric: str) -> Array:
    """Rows whose Euclidean distances are compared."""
    return scaled_rows(X) if metric == "cosine" and len(X) else X


@dataclass(frozen=True, eq=False)
class _Planned:
    """A partition, and the numbers that cells of k-means have in it.

    The cell of k-means c is cut into ``pieces[c]`` cells, with ``numbers[first[c] + piece]``.
    """

    partition: Partition
    first: IntArray
    pieces: IntArray
    numbers: IntArray


def _cells(
    rows: Rows,
    metric: str,
    n_parts: int,
    rng: np.random.Generator,
    options: PartitionOptions,
) -> Any:
    """The task of cells of k-means, as a partition of one part."""
    n, d = rows.n_samples, rows.n_features
    n_cells = options.n_cells(n, n_parts)
    drawn, sample = rows.sample(options.n_sampled(n_cells, d), rng)
    first = rng.choice(len(drawn), n_cells, replace=False)
    extremes = [
        delayed(_extremes)(block, metric, int(start))
        for block, start in zip(rows.blocks, rows.starts, strict=True)
    ]
    find = delayed(_found_cells)
    [cells] = persist([find(sample, combined(extremes, _widest), metric, first)])
    return cells


def _extremes(block: Array, metric: str, start: int) -> Array | None:
    """The least and the largest value of each feature, (2, n_features)."""
    if len(block) == 0:
        return None
    if metric == "cosine" and not (nonzero := block.any(axis=1)).all():
        raise ValueError(
            f"row {start + int(np.argmin(nonzero))} of X is all zeros, so its cosine distance is "
            "undefined; remove such rows or use metric='euclidean'"
        )
    X = compared_rows(block, metric)
    return np.stack([X.min(axis=0), X.max(axis=0)])


def _widest(extremes: list[Array | None]) -> Array | None:
    known = [each for each in extremes if each is not None]
    if not known:
        return None
    return np.stack([np.min([e[0] for e in known], axis=0), np.max([e[1] for e in known], axis=0)])


def _found_cells(sample: list[Array], extremes: Array, metric: str, first: IntArray) -> Partition:
    X = compared_rows(np.concatenate(sample), metric)
    origin = Frame.of(X, robust=True).origin
    frame = Frame(origin, power_of_two_scale(extremes - origin))  # of all rows
    X = frame.apply_single(X)
    bounds = np.array([0, len(first)])
    return Partition(metric, frame, cell_centers(X, X[first]), bounds, np.full(len(first) + 1, -1))


def _labels(block: Array, cells: Partition) -> IntArray:
    return nearest_center(cells.single(block), cells.centers)


def _counted(labels: IntArray, cells: Partition) -> IntArray:
    return np.bincount(labels, minlength=len(cells.centers))


def _planned(
    cells: Partition, counts: IntArray, n_parts: int, options: PartitionOptions
) -> _Planned:
    """Cut large cells, and group all into parts."""
    n, n_cells = int(counts.sum()), len(counts)
    most = min(options.largest_cell * n / n_cells, n / (4 * n_parts))
    pieces = -(-counts // max(1, int(most)))
    cell = np.repeat(np.arange(n_cells), pieces)
    groups = grouped(cells.centers[cell], (counts / np.maximum(pieces, 1))[cell], n_parts)
    order = np.concatenate(groups)
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order] = np.arange(len(order))
    bounds = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    centers = cells.centers[cell[order]]
    partition = Partition(cells.metric, cells.frame, centers, bounds, np.full(len(order) + 1, -1))
    return _Planned(partition, np.cumsum(pieces) - pieces, pieces, numbers)


def grouped(centers: Array, weights: Array, n_groups: int) -> list[IntArray]:
    """Divide cells into groups of about equal weight that are near each other.

    They are halved across the direction of largest variance, and so on.

    Parameters
    ----------
    centers : array of shape (n_cells, n_features)
        Their centers.
    weights : array of shape (n_cells,)
        Their positive weights.
    n_groups : int
        Number of groups; there are fewer if there are fewer cells.

    Returns
    -------
    list of arrays
        The cells of each group.
    """
    groups: list[IntArray] = []
    waiting: list[tuple[IntArray, int]] = [(np.arange(len(centers)), n_groups)]
    while waiting:
        cells, count = waiting.pop()
        if count == 1 or len(cells) == 1:
            groups.append(cells)
            continue
        along = _along_largest_variance(centers[cells].astype(np.float64), weights[cells])
        cells = cells[np.argsort(along, kind="stable")]
        total = np.cumsum(weights[cells])
        share = total[-1] * (count // 2) / count
        cut = min(int(np.argmin(np.abs(total - share))) + 1, len(cells) - 1)
        waiting += [(cells[cut:], count - count // 2), (cells[:cut], count // 2)]
    return groups


def _along_largest_variance(X: Array, weights: Array, steps: int = 20) -> Array:
    """Coordinates of points along the direction of their largest variance, by power iteration."""
    X = X - weights @ X / weights.sum()
    direction = X[np.argmax(np.abs(X).max(axis=1))]
    for _ in range(steps):
        length = np.linalg.norm(direction)
        if length == 0:
            break
        direction = X.T @ (weights * (X @ (direction / length)))
    return np.asarray(X @ direction)


def _bounds(planned: _Planned) -> IntArray:
    return planned.partition.bounds


def _cut(block: Array, labels: IntArray, planned: _Planned, chunk: int, start: int) -> Moving:
    """The rows of a chunk, by cell; those of a large cell in turn to each of its pieces."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    rank = np.empty(len(labels), dtype=np.intp)
    rank[order] = np.arange(len(labels)) - np.searchsorted(ordered, ordered)
    piece = (rank + chunk) % planned.pieces[labels]
    cells = planned.numbers[planned.first[labels] + piece]
    return Moving.sorted(cells, np.arange(start, start + len(block)), block)


def _points(moving: Moving) -> Array:
    return moving.points


def _rows(moving: Moving) -> IntArray:
    return moving.rows


def _rows_per_cell(moving: Moving, first: int, stop: int) -> IntArray:
    return np.bincount(moving.cells - first, minlength=stop - first)


def _with_starts(planned: _Planned, counts: list[IntArray]) -> Partition:
    partition = planned.partition
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return Partition(partition.metric, partition.frame, partition.centers, partition.bounds, starts)
