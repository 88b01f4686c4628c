"""Inner products, linear combinations, and points around their mean on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.device.cuda_launch import c_type, pointer
from manifoldry.device.primitives import MomentumRule
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

_THREADS, _MOST, _COLUMNS = 256, 12, 32  # constants of the kernels
_ENTRIES = 4  # that a thread adds, at least
_FILE = "vectors.cu"


def cuda_inner_products(device: CudaDevice, pairs: Sequence[tuple[Array, Array]]) -> Array:
    """See :meth:`Device.inner_products`."""
    xp, size, count = device.xp, pairs[0][0].size, len(pairs)
    n_blocks = _blocks(device, size)
    parts, out = xp.empty((count, n_blocks)), xp.empty(count)
    kernel = device.kernel(_FILE, "inner_products")
    for first in range(0, count, _MOST):
        some = pairs[first : first + _MOST]
        arrays = [[xp.ascontiguousarray(part) for part in pair] for pair in some]
        flags = [part.dtype == np.float64 for pair in arrays for part in pair]
        doubles = sum(1 << bit for bit, flag in enumerate(flags) if flag)
        pointers = [*_padded(pair[0] for pair in arrays), *_padded(pair[1] for pair in arrays)]
        sizes = np.int32(doubles), np.int64(size)
        kernel((n_blocks, len(some)), (_THREADS,), (*pointers, *sizes, parts[first:]))
    device.kernel(_FILE, "row_sums")((count,), (_THREADS,), (parts, np.int32(n_blocks), out))
    return out


def cuda_combination(
    device: CudaDevice, factors: Sequence[float], arrays: Sequence[Array]
) -> Array:
    """See :meth:`Device.combination`."""
    out = device.xp.empty_like(arrays[0])
    size = np.int64(out.size)
    total: list[tuple[float, Array]] = []  # of earlier launches
    kernel = device.kernel(_FILE, f"combination<{c_type(out.dtype)}>")
    terms = [(float(factor), array) for factor, array in zip(factors, arrays, strict=True)]
    while terms and out.size:
        some, terms = total + terms[: _MOST - len(total)], terms[_MOST - len(total) :]
        unused = [np.float64(0)] * (_MOST - len(some))
        numbers = [np.float64(factor) for factor, _ in some] + unused
        pointers = _padded(device.xp.ascontiguousarray(array) for _, array in some)
        kernel(*_grid(out.size), (*numbers, *pointers, np.int32(len(some)), size, out))
        total = [(1.0, out)]
    return out


def cuda_momentum_step(
    device: CudaDevice, arrays: tuple[Array, Array, Array, Array], rule: MomentumRule
) -> tuple[Array, Array, Array]:
    """See :meth:`Device.momentum_step`."""
    Y, *_ = given = [device.xp.ascontiguousarray(part) for part in arrays]
    real, out = Y.dtype.type, tuple(device.xp.empty_like(Y) for _ in range(3))
    kernel = device.kernel(_FILE, f"momentum_step<{c_type(real)}>")
    kernel(*_grid(Y.size), (*given, np.int64(Y.size), *map(real, rule), *out))
    return out[0], out[1], out[2]


def cuda_centered(device: CudaDevice, Y: Array, dtype: Any) -> Array:
    """See :meth:`Device.centered`."""
    xp, (n, d) = device.xp, Y.shape
    if d > _COLUMNS:
        return (Y - Y.mean(axis=0, dtype=np.float64)).astype(dtype, copy=False)
    Y, out = xp.ascontiguousarray(Y), xp.empty((n, d), dtype=dtype)
    n_blocks, real = _blocks(device, n), c_type(Y.dtype)
    parts, sizes = xp.empty((n_blocks, d)), (np.int32(n), np.int32(d))
    grid = (n_blocks,), (_THREADS,)
    device.kernel(_FILE, f"column_parts<{real}>")(*grid, (Y, *sizes, parts))
    subtract = device.kernel(_FILE, f"subtract_means<{real}, {c_type(out.dtype)}>")
    subtract(*grid, (Y, parts, np.int32(n_blocks), *sizes, out))
    return out


def _blocks(device: CudaDevice, size: int) -> int:
    """Number of blocks, which depends on the card, but not on what else it does."""
    return max(1, min(2 * device.n_processors, -(-size // (_THREADS * _ENTRIES))))


def _grid(n_threads: int) -> tuple[tuple[int], tuple[int]]:
    return (-(-n_threads // _THREADS),), (_THREADS,)


def _padded(arrays: Any) -> list[Any]:
    """As many pointers as kernels take."""
    given = list(arrays)
    return given + [pointer(None)] * (_MOST - len(given))
