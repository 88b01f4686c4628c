"""Ranks of the entries of rows on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

_FILE = "ranks.cu"
_THREADS = 256
_EACH = 4  # entries per thread and round of the kernel `smallest`
_USUAL_SHARED = 48 * 2**10  # bytes of shared memory that a kernel may use without asking


def cuda_smallest(device: CudaDevice, table: Array, k: int) -> Array:
    """See :meth:`Device.smallest`."""
    out = device.xp.empty((len(table), k), dtype=device.xp.int32)
    capacity = _power_of_two(k + _EACH * _THREADS)
    _launch(device, "smallest", table, (np.int32(k), np.int32(capacity), out), 12 * capacity)
    return out


def cuda_ranks(device: CudaDevice, table: Array, columns: Array) -> Array:
    """See :meth:`Device.ranks`."""
    k, out = columns.shape[1], device.xp.empty(columns.shape, dtype=device.xp.int32)
    columns, size = device.xp.ascontiguousarray(columns, dtype=np.int32), _power_of_two(k)
    _launch(device, "ranks", table, (columns, np.int32(k), np.int32(size), out), 16 * size)
    return out


def _launch(
    device: CudaDevice, name: str, table: Array, rest: tuple[object, ...], shared: int
) -> None:
    """Launch a kernel with a block of threads for each row of a table."""
    kernel = device.kernel(_FILE, name)
    if shared > _USUAL_SHARED:
        kernel.max_dynamic_shared_size_bytes = shared
    arguments = device.xp.ascontiguousarray(table, dtype=float), np.int32(table.shape[1]), *rest
    if len(table):
        kernel((len(table),), (_THREADS,), arguments, shared_mem=shared)


def _power_of_two(least: int) -> int:
    return 1 << max(1, (least - 1).bit_length())
