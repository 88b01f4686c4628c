"""Factorizations of many small matrices on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

_WARPS = 4  # matrices of a block of threads, if they fit into its shared memory
_MOST_SHARED = 2**17 + 2**16  # bytes of shared memory that a block may use


def cuda_eigh(device: CudaDevice, A: Array) -> tuple[Array, Array]:
    """See :meth:`Device.eigh`."""
    found = _factors(device, A, symmetric=True)
    if found is None:
        found = device.xp.linalg.eigh(A)
    return found


def cuda_left_vectors(device: CudaDevice, A: Array) -> tuple[Array, Array]:
    """See :meth:`Device.left_vectors`."""
    found = _factors(device, A, symmetric=False)
    if found is not None:
        return found[1], found[0]
    # Too large for shared memory: by the smaller products, ascending from here.
    xp, vectors = device.xp, cuda_eigh(device, A.transpose(0, 2, 1) @ A)[1]
    scaled = A @ vectors[:, :, ::-1]
    values = xp.sqrt((scaled**2).sum(axis=1))
    return scaled / xp.where(values > 0, values, 1.0)[:, None], values


def _factors(device: CudaDevice, A: Array, symmetric: bool) -> tuple[Array, Array] | None:
    """Values and vectors; None if a matrix does not fit into shared memory."""
    xp, (n, rows, columns) = device.xp, A.shape
    each = 8 * (rows * columns * (1 + symmetric) + columns)
    if each > _MOST_SHARED:
        return None
    A = xp.ascontiguousarray(A, dtype=float)
    values, vectors = xp.empty((n, columns)), xp.empty(A.shape)
    warps = _WARPS if _WARPS * each <= _MOST_SHARED else 1
    kernel = device.kernel("factors.cu", f"factors<{str(symmetric).lower()}>")
    kernel.max_dynamic_shared_size_bytes = warps * each
    sizes = np.int32(n), np.int32(rows), np.int32(columns)
    if n:
        arguments = A, *sizes, values, vectors
        kernel((-(-n // warps),), (32 * warps,), arguments, shared_mem=warps * each)
    return values, vectors
