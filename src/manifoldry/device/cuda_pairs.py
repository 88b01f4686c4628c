"""Sums over pairs of points and over edges on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.device.base import KernelShape, Rows
from manifoldry.device.cuda_launch import THREADS, c_type, grid, pointer
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

_ROWS, _TILE = 4, 256  # of the kernel `pair_sums`
_BLOCKS_PER_PROCESSOR = 12  # so that none of them waits long for the last ones
_FILE = "pairs.cu"


def cuda_pair_sums(
    device: CudaDevice, Y: Array, weights: Array | None, shape: KernelShape, order: int
) -> tuple[Array, Array]:
    """See :meth:`Device.pair_sums`."""
    xp, (n, d) = device.xp, Y.shape
    real, split = c_type(Y.dtype), Y.dtype == np.float64
    matrix = weights if weights is not None and weights.ndim == 2 else None
    if matrix is None and weights is not None:
        weights = xp.ascontiguousarray(weights, dtype=Y.dtype)
    high = xp.empty((n, 4), dtype=xp.float32)
    low = xp.empty((n, 4), dtype=xp.float32) if split else None
    pack = device.kernel(_FILE, f"pack<{real}, {d}>")
    own = None if matrix is not None else weights
    Y = xp.ascontiguousarray(Y)
    pack(*grid(n), (Y, pointer(own), np.int32(n), high, pointer(low)))

    row_blocks = -(-n // (THREADS * _ROWS))
    wanted = max(1, device.n_processors * _BLOCKS_PER_PROCESSOR // row_blocks)
    chunk = -(-n // (wanted * _TILE)) * _TILE
    n_parts = -(-n // chunk)
    parts = xp.empty((n_parts, 1 + d, n), dtype=float)
    name, scale, power = _kernel(shape)
    weight = "float" if matrix is None else c_type(matrix.dtype)
    options = f"{d}, {order}, {str(split).lower()}, {int(matrix is not None)}, {weight}"
    kernel = device.kernel(_FILE, f"pair_sums<{name}, {options}>")
    sizes = np.int32(n), np.int32(chunk), np.float32(scale), np.float32(power)
    arguments = high, pointer(low), pointer(matrix), *sizes, parts
    kernel((row_blocks, n_parts), (THREADS,), arguments)

    sums, moments = xp.empty(n, dtype=float), xp.empty((n, d), dtype=Y.dtype)
    add = device.kernel(_FILE, f"add_parts<{real}, {d}>")
    add(*grid(n), (parts, np.int32(n), np.int32(n_parts), sums, moments))
    return sums, moments


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


def cuda_edge_sums(device: CudaDevice, Y: Array, W: Rows, rate: float) -> tuple[Any, Array, Array]:
    """See :meth:`Device.edge_sums`."""
    xp, (n, d), real = device.xp, Y.shape, Y.dtype.type
    costs, force, degree = xp.empty(n, dtype=float), xp.empty_like(Y), xp.empty(n, dtype=Y.dtype)
    kernel = device.kernel(_FILE, f"edge_sums<{c_type(Y.dtype)}, {d}>")
    Y, data = xp.ascontiguousarray(Y), W.data.astype(Y.dtype, copy=False)
    arguments = Y, W.indptr, W.indices, data, np.int32(n), real(rate), costs, force, degree
    kernel(*grid(32 * n), arguments)
    return xp.sum(costs), force, degree


def _kernel(shape: KernelShape) -> tuple[str, float, float]:
    """Name of the kernel, factor of squared distances, and power."""
    if shape.rate is None:
        return "Gaussian", float(1 / np.log(2)), 1.0
    power = 1.0 if shape.power is None else shape.power
    return ("Cauchy" if power == 1 else "Student"), shape.rate, power
