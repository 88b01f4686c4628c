"""Approximate neighbors on a device: the search of `Cells`, a cell at a time.

All points that search a cell are compared with its points by one product, which is merged into the
nearest points that were found in other cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.device import Device
from manifoldry.device.primitives import NOBODY, DeviceMatrix
from manifoldry.neighbors.cells import cut_cells, searched_cells
from manifoldry.neighbors.on_device import DeviceSearch, short_factors
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class DeviceCells:
    """Points on a device, sorted by the nearest of several centers; see `Cells`.

    Parameters
    ----------
    device : Device
        The device.
    centers : array of shape (n_cells, n_features)
        The centers of the cells, on the device.
    X : array of shape (n, n_features)
        The points in single precision, sorted by cell, on the device.
    order : array of shape (n,)
        Number of each sorted point in the original data, on the device.
    starts : array of shape (n_cells + 1,)
        First point of each cell, on the host.
    """

    device: Device
    centers: Array
    X: Array
    order: Any
    starts: IntArray

    @classmethod
    def of(
        cls,
        device: Device,
        X: Array,
        cells_per_root: float = 1.0,
        rows_per_cell: int = 50,
        max_steps: int = 8,
    ) -> DeviceCells:
        """Divide points on the device into about ``cells_per_root · √n`` cells by k-means."""
        xp, n = device.xp, len(X)
        n_cells = max(1, min(int(cells_per_root * np.sqrt(n)), n))
        rng = np.random.default_rng(0)
        rows = rng.choice(n, min(n, rows_per_cell * n_cells), replace=False)
        centers = X[device.array(rows[:n_cells], keep=False)]
        sample = X[device.array(np.sort(rows), keep=False)]
        for _ in range(max_steps):
            order, counts, indptr = _members(device, sample, centers)
            ones = xp.ones(len(sample), dtype=np.float32)
            sums = device.product(
                DeviceMatrix(indptr, order.astype(np.int32), ones, len(sample)), sample
            )
            counts = counts[:, None].astype(np.float32)
            centers = xp.where(counts > 0, sums / xp.maximum(counts, 1), centers)
        order, _, indptr = _members(device, X, centers)
        cell, starts = cut_cells(device.host(indptr).astype(np.intp))
        centers = centers[device.array(cell, keep=False)]
        return cls(device, centers, X[order], order, starts)

    def cells_needed(
        self, points: IntArray, neighbors: IntArray, recall: float, max_pairs: float
    ) -> int:
        """Number of cells to search per point; see `Cells.cells_needed`."""
        device, xp, order = self.device, self.device.xp, self.device.host(self.order)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        queries = self.X[device.array(place[points], keep=False)]
        products = queries @ self.centers.T
        squares = device.host(xp.square(self.centers).sum(axis=1) - 2 * products)
        found = np.searchsorted(self.starts, place[neighbors], side="right") - 1
        return searched_cells(squares, self.starts, found, recall, max_pairs)

    def nearest(self, k: int, n_searched: int, most_queries: int = 2**16) -> Array:
        """The k nearest other points of each point in the `n_searched` cells nearest to it.

        The result is on the device. Points are numbered as in the sorted data; missing neighbors
        are -1.
        """
        device, xp, n = self.device, self.device.xp, len(self.X)
        needed = n * (20.0 * n_searched + 8.0 * k)
        remedy = "use fewer of either, or pass device='cpu'"
        device.plan(needed, f"the approximate search for neighbors of {n} points", remedy)
        indices = xp.full((n, k), NOBODY, dtype=np.int32)
        squares = xp.full((n, k), np.inf, dtype=np.float32)
        queries, ends = self._queries(n_searched)
        for cell, center in enumerate(self.centers):
            points = slice(int(self.starts[cell]), int(self.starts[cell + 1]))
            part = short_factors(xp, self.X[points] - center)
            for block in row_blocks(int(ends[cell + 1] - ends[cell]), 1, most_queries):
                first = int(ends[cell])
                rows = queries[first + block.start : first + block.stop]
                around = short_factors(xp, self.X[rows] - center)
                device.merge_nearest(around, part, points.start, rows, (indices, squares))
        indices[indices == NOBODY] = -1
        return indices

    def _queries(self, n_searched: int) -> tuple[Any, IntArray]:
        """The points that search each cell, on the device, and where those of a cell start."""
        device, xp = self.device, self.device.xp
        cells = device.nearest(self.X, self.centers, n_searched, None, False)[0].ravel()
        order = xp.argsort(cells, kind="stable")
        counts = device.host(xp.bincount(cells, minlength=len(self.centers)))
        return (order // n_searched).astype(np.int32), np.append(0, np.cumsum(counts))


def nearby_on_device(
    search: DeviceSearch,
    k: int,
    n_candidates: int,
    sample: IntArray,
    truth: IntArray,
    recall: float,
    max_pairs: float,
) -> tuple[Any, Array]:
    """Neighbors of all points in nearby cells, and their distances, on the host.

    `truth` are the neighbors of a sample, of which a fraction `recall` is to be in those cells, if
    this does not take more than `max_pairs` pairs. Missing neighbors are infinitely far.
    """
    device, xp = search.device, search.device.xp
    cells = DeviceCells.of(device, search.single())
    n_searched = cells.cells_needed(sample, truth, recall, max_pairs)
    near = cells.nearest(min(n_candidates, len(search.X) - 1), n_searched)
    X, order = device.array(search.X), cells.order
    indices = xp.empty((len(near), k), dtype=np.intp)
    distances = xp.empty((len(near), k))
    for block in row_blocks(len(near), near.shape[1] + X.shape[1], budget=2**26):
        rows, found = order[block], order[xp.maximum(near[block], 0)].astype(np.int32)
        lengths = xp.where(near[block] < 0, np.inf, device.distances(X[rows], X, found))
        found, lengths = device.sort_rows(found, lengths)
        indices[rows], distances[rows] = found[:, :k], lengths[:, :k]
    return device.host(indices), device.host(distances)


def _members(device: Device, X: Array, centers: Array) -> tuple[Any, Any, Any]:
    """Points sorted by the nearest center, and number and first of those of each center."""
    xp, n_cells = device.xp, len(centers)
    labels = device.nearest(X, centers, 1, None, False)[0][:, 0]
    counts, indptr = xp.bincount(labels, minlength=n_cells), xp.zeros(n_cells + 1, dtype=np.int64)
    indptr[1:] = xp.cumsum(counts)
    return xp.argsort(labels, kind="stable"), counts, indptr
