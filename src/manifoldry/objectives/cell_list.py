"""Sums over pairs with a kernel of short range, by visiting neighboring cells only."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from manifoldry.device import Device, device_of
from manifoldry.objectives.exact import ApproximateSums
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.pair_kernel import MAX_COMPILED_DIMENSION, GaussianKernel, Kernel
from manifoldry.objectives.pair_sums import Sums, is_matrix
from manifoldry.util.checks import check_positive
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray, Matrix

_MAX_CELLS = 2.0**20  # along each axis, so that the number of a cell has 63 bits at most
_PARTS = 64  # groups of points that may be processed at the same time


@dataclass(frozen=True, eq=False)
class CellList:
    """Points sorted by the cell of a grid they lie in, with the points of the cells around.

    Parameters
    ----------
    order : array of shape (n,)
        Indices of the points, sorted by cell.
    cell : array of shape (n,)
        Number of the cell of each point, in this order.
    ranges : array of shape (n_cells, 3**(d - 1), 2)
        First and last point, in this order, of each row of three cells around a cell.
    """

    order: IntArray
    cell: IntArray
    ranges: IntArray

    @classmethod
    def of(cls, Y: Array, width: float) -> "CellList | None":
        """Create the list for points (n, d) and cells of a given width; None if too many cells."""
        low = Y.min(axis=0)
        extent = float((Y.max(axis=0) - low).max()) / width
        if not extent < _MAX_CELLS - 4:
            return None
        cells = ((Y - low) / width).astype(np.int64) + 1  # one empty cell before the first
        sides = cells.max(axis=0) + 2
        strides = np.append(np.cumprod(sides[:0:-1])[::-1], 1)
        numbers = cells @ strides
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        unique, cell = np.unique(numbers, return_inverse=True)
        rows = np.array(list(product((-1, 0, 1), repeat=Y.shape[1] - 1)), dtype=np.int64)
        middle = unique[:, None] + rows.reshape(len(rows), -1) @ strides[:-1]
        first = np.searchsorted(numbers, middle - 1, side="left")
        last = np.searchsorted(numbers, middle + 1, side="right")
        return cls(order, cell.ravel(), np.stack([first, last], axis=2))

    @property
    def n_pairs(self) -> int:
        """Number of pairs of points in neighboring cells."""
        per_point = (self.ranges[:, :, 1] - self.ranges[:, :, 0]).sum(axis=1)
        return int(np.bincount(self.cell) @ per_point)


@dataclass(frozen=True)
class CellSums(ApproximateSums):
    """Sums over pairs of points in neighboring cells, for the Gaussian kernel.

    The cells are as wide as the distance at which the kernel is negligible. The cost is
    proportional to the number of pairs in neighboring cells, which is small if the embedding is
    spread out. Other kernels, more than three dimensions and weights for every pair of points have
    exact sums over all pairs. Results do not depend on the number of threads.

    Parameters
    ----------
    negligible : float, default=1e-9
        Values of the kernel below this are left out.
    exact : Exact, optional
        Computes all other sums.

    See Also
    --------
    Fastest : chooses between this and the interpolation on a mesh.
    FFTInterpolation : for every kernel.
    Exact : all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import CellSums, GaussianKernel
    >>> CellSums().sums(GaussianKernel(), np.array([[0.0], [1.0], [1.0]])).kernel_sums.round(3)
    array([0.736, 1.368, 1.368])
    """

    negligible: float = 1e-9

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("negligible", self.negligible)

    @property
    def width(self) -> float:
        """Width of the cells."""
        return float(np.sqrt(-np.log(self.negligible)))

    def sums(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Sums:
        if (device := device_of(Y)) is not None and self._has_cells(kernel, Y, weights):
            found = self.sums(kernel, *_on_host(device, Y, weights))
            kernel_sums, force = (device.array(part, keep=False) for part in found[:2])
            return Sums(kernel_sums, force, found.resolution)
        cells = self.cells(kernel, Y, weights)
        if cells is None:
            return self.exact.sums(kernel, Y, weights)
        return self.sums_in(cells, Y, weights)

    def moments(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Array:
        if (device := device_of(Y)) is not None and self._has_cells(kernel, Y, weights):
            found = self.moments(kernel, *_on_host(device, Y, weights))
            return device.array(found, keep=False)
        cells = self.cells(kernel, Y, weights)
        if cells is None:
            return self.exact.moments(kernel, Y, weights)
        return self.moments_in(cells, Y, weights)

    def sums_in(self, cells: CellList, Y: Array, weights: Array | None = None) -> Sums:
        """Return the sums, given the cells of the points.

        Parameters
        ----------
        cells : CellList
            The cells of the points.
        Y : array of shape (n, d)
            The points.
        weights : array of shape (n,), default=None
            Weights of the points; None means one.

        Returns
        -------
        Sums
            Kernel sums and forces of every point.
        """
        return Sums(*self._visit(cells, Y, weights, 1), resolution=1e3 * self.negligible)

    def moments_in(self, cells: CellList, Y: Array, weights: Array | None = None) -> Array:
        """Return the moments, given the cells of the points.

        Parameters
        ----------
        cells : CellList
            The cells of the points.
        Y : array of shape (n, d)
            The points.
        weights : array of shape (n,), default=None
            Weights of the points; None means one.

        Returns
        -------
        array of shape (n, d)
            The moments of every point.
        """
        return self._visit(cells, Y, weights, 2)[1]

    def cells(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> CellList | None:
        """Return the cells of the points, or None if the sums have to be exact.

        Parameters
        ----------
        kernel : Kernel
            The kernel of the sums.
        Y : array of shape (n, d)
            The points.
        weights : array or sparse array, default=None
            Weights of the points or pairs; None means one.

        Returns
        -------
        CellList or None
            The cells.
        """
        return CellList.of(Y, self.width) if self._has_cells(kernel, Y, weights) else None

    @staticmethod
    def _has_cells(kernel: Kernel, Y: Array, weights: Matrix | None) -> bool:
        """Whether there are loops over cells for these sums."""
        gaussian, d = type(kernel) is GaussianKernel, Y.shape[1]
        return gaussian and not is_matrix(weights) and d <= MAX_COMPILED_DIMENSION

    def _visit(
        self, cells: CellList, Y: Array, weights: Array | FactoredWeights | None, order: int
    ) -> tuple[Array, Array]:
        """Kernel sum of every point, and moments of the given order."""
        n, d = Y.shape
        T = np.array(Y.T[:, cells.order], dtype=np.float64, order="C")
        kernel_sums, moments = np.empty(n), np.empty((n, d))
        fixed = cells.cell, cells.ranges, cells.order, kernel_sums, moments
        if isinstance(weights, FactoredWeights):
            from manifoldry.objectives.compiled_factors import cell_sums_factors

            weights.check(n)
            pairs = T, weights.left, weights.right[cells.order], self.width**2
            loop = partial(cell_sums_factors(d, order), *pairs)
        else:
            from manifoldry.objectives.compiled import cell_sums

            a = None if weights is None else np.asarray(weights, float)[cells.order]
            loop = partial(cell_sums(d, order), T, a)
        parts = pairwise(n * part // _PARTS for part in range(_PARTS + 1))
        map_threads(lambda part: loop(*fixed, *part), parts)
        return kernel_sums, moments.astype(Y.dtype, copy=False)


def _on_host(device: Device, Y: Array, weights: Any) -> tuple[Array, Any]:
    """An embedding and weights of its points in the memory of the host."""
    device.runs_on_host("CellSums", "pass pair_sums=FFTInterpolation(), or Exact(), for the device")
    factored = weights is None or isinstance(weights, FactoredWeights)
    return device.host(Y), weights if factored else device.host(weights)
