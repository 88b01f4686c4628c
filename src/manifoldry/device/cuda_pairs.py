"""Sums over pairs of points and over edges on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from manifoldry.device.cuda_launch import c_type, grid, pointer
from manifoldry.device.primitives import DeviceMatrix, KernelShape
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

_TILE, _WARPS = 512, 2  # of the kernel `pair_sums`
_PART_BYTES = 2**29  # sums of tiles that are in memory at a time
_BLOCKS_PER_PROCESSOR = 16  # of the kernel `weighted_pair_sums`
_WEIGHT_BYTES = 2**28  # products of factors that are in memory at a time
_FILE = "pairs.cu"


class _Packed(NamedTuple):
    """Points as the kernels read them, and the template arguments of these."""

    high: Array
    low: Array | None
    kernel: str
    options: str
    scale: float
    """Coordinates are multiplied by it."""
    power: Any


def cuda_pair_sums(
    device: CudaDevice, Y: Array, weights: Any, shape: KernelShape, order: int
) -> tuple[Array, Array]:
    """See :meth:`Device.pair_sums`."""
    of_points = None if isinstance(weights, tuple) or np.ndim(weights) == 2 else weights
    points = _packed(device, Y, of_points, shape, order)
    if weights is None or of_points is not None:
        totals = _sums_of_tiles(device, points, Y.shape, weights is not None)
    else:
        totals = _weighted_sums(device, points, Y.shape, weights)
    moments = device.xp.ascontiguousarray(totals[1:].T, dtype=Y.dtype)
    return totals[0], moments * Y.dtype.type(points.scale**-order)


def _packed(
    device: CudaDevice, Y: Array, weights: Array | None, shape: KernelShape, order: int
) -> _Packed:
    xp, (n, d), split = device.xp, Y.shape, Y.dtype == np.float64
    name, scale = _kernel(shape)
    high = xp.empty((n, 4), dtype=xp.float32)
    low = xp.empty((n, 4), dtype=xp.float32) if split else None
    if weights is not None:
        weights = xp.ascontiguousarray(weights, dtype=Y.dtype)
    pack = device.kernel(_FILE, f"pack<{c_type(Y.dtype)}, {d}>")
    sizes = np.int32(n), np.float64(scale)
    pack(*grid(n), (xp.ascontiguousarray(Y), pointer(weights), *sizes, high, pointer(low)))
    options = f"{d}, {order}, {str(split).lower()}"
    return _Packed(high, low, name, options, scale, np.float32(shape.power or 1))


def _sums_of_tiles(
    device: CudaDevice, points: _Packed, shape: tuple[int, int], weighted: bool
) -> Array:
    """Kernel sums and moments, (1 + d, n), each pair of points visited once."""
    xp, (n, d) = device.xp, shape
    n_tiles = -(-n // _TILE)
    totals = xp.zeros((1 + d, n))
    # The sums of all pairs of tiles take as much memory as the points times the number of tiles.
    band = max(1, min(n_tiles, _PART_BYTES // (8 * (1 + d) * n_tiles * _TILE)))
    row_parts = xp.empty((band, 1 + d, n), dtype=xp.float32)
    column_parts = xp.empty((n_tiles, 1 + d, band * _TILE), dtype=xp.float32)
    options = f"{points.kernel}, {points.options}, {str(weighted).lower()}"
    kernel = device.kernel(_FILE, f"pair_sums<{options}>")
    add = device.kernel(_FILE, f"add_parts<{d}>")
    (blocks,), threads = grid(n)
    for first in range(0, n_tiles, band):
        count = min(band, n_tiles - first)
        sizes = np.int32(n), np.int32(first)
        given = points.high, pointer(points.low), *sizes, points.power
        kernel((first + count, count), (32 * _WARPS,), (*given, row_parts, column_parts))
        arguments = row_parts, column_parts, *sizes, np.int32(count), totals
        add((blocks, 1 + d), threads, arguments)
    return totals


def _weighted_sums(
    device: CudaDevice, points: _Packed, shape: tuple[int, int], weights: Any
) -> Array:
    """The same with weights of pairs, which are symmetric: a matrix, or the factors of one."""
    n, d = shape
    if not isinstance(weights, tuple):
        return _with_weights(device, points, shape, weights, 0)
    left, right = (device.xp.ascontiguousarray(part, dtype=np.float32) for part in weights)
    totals, rows = device.xp.empty((1 + d, n)), max(1, _WEIGHT_BYTES // (4 * n))
    for first in range(0, n, rows):
        some = slice(first, min(first + rows, n))
        totals[:, some] = _with_weights(device, points, shape, left @ right[some].T, first)
    return totals


def _with_weights(
    device: CudaDevice, points: _Packed, shape: tuple[int, int], W: Array, first: int
) -> Array:
    """Sums of the points from `first` on, whose weights are the columns of `W`."""
    (n, d), (_, n_rows) = shape, W.shape
    (blocks,), threads = grid(n_rows)
    n_parts = max(1, min(n, device.n_processors * _BLOCKS_PER_PROCESSOR // blocks))
    chunk = -(-n // n_parts)
    parts = device.xp.empty((n_parts, 1 + d, n_rows), dtype=float)
    options = f"{points.kernel}, {points.options}, {c_type(W.dtype)}"
    kernel = device.kernel(_FILE, f"weighted_pair_sums<{options}>")
    sizes = np.int32(n), np.int32(first), np.int32(n_rows), np.int32(chunk), points.power
    W = device.xp.ascontiguousarray(W)
    arguments = points.high, pointer(points.low), W, np.int64(n_rows), *sizes, parts
    kernel((blocks, n_parts), threads, arguments)
    return parts.sum(axis=0)


def cuda_position_sums(
    device: CudaDevice,
    Z: Array,
    Y: Array,
    least: Array,
    weights: Array | None,
    shape: KernelShape,
) -> tuple[Array, Array, Array]:
    """See :meth:`Device.position_sums`."""
    n, d = Z.shape
    out = device.xp.empty((n, 1 + d + d * d), dtype=float)
    gaussian = str(shape.rate is None).lower()
    kernel = device.kernel(_FILE, f"position_sums<{gaussian}, {d}>")
    Z, Y, least = (device.xp.ascontiguousarray(part, dtype=float) for part in (Z, Y, least))
    if weights is not None:
        weights = device.xp.ascontiguousarray(weights, dtype=float)
    rate, power = np.float64(shape.rate or 0), np.float64(shape.power or 1)
    kernel((n,), (256,), (Z, Y, least, pointer(weights), np.int32(len(Y)), rate, power, out))
    return out[:, 0], out[:, 1 : 1 + d], out[:, 1 + d :].reshape(n, d, d)


def cuda_edge_sums(
    device: CudaDevice, Y: Array, W: DeviceMatrix, rate: float
) -> tuple[Any, Array, Array]:
    """See :meth:`Device.edge_sums`."""
    xp, (n, d), real = device.xp, Y.shape, Y.dtype.type
    costs, force, degree = xp.empty(n, dtype=float), xp.empty_like(Y), xp.empty(n, dtype=Y.dtype)
    kernel = device.kernel(_FILE, f"edge_sums<{c_type(Y.dtype)}, {d}>")
    Y, data = xp.ascontiguousarray(Y), W.data.astype(Y.dtype, copy=False)
    arguments = Y, W.indptr, W.indices, data, np.int32(n), real(rate), costs, force, degree
    kernel(*grid(32 * n), arguments)
    return xp.sum(costs), force, degree


def _kernel(shape: KernelShape) -> tuple[str, float]:
    """Name of the kernel, and the factor of coordinates."""
    if shape.rate is None:
        return "Gaussian", float(1 / np.sqrt(np.log(2)))  # for powers of two
    return "Cauchy" if shape.power in (None, 1) else "Student", float(np.sqrt(shape.rate))
