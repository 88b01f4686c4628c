"""Sparse matrices and columns, and bandwidths of rows, on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manifoldry.device.cuda_launch import THREADS, c_type, grid
from manifoldry.device.primitives import DeviceMatrix
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

_FEW = 4  # columns up to which the lanes of a warp share the entries of a row
_FILE = "rows.cu"


def cuda_product(device: CudaDevice, A: DeviceMatrix, X: Array) -> Array:
    """See :meth:`Device.product`."""
    xp, (_, m), real = device.xp, X.shape, c_type(X.dtype)
    out = xp.empty((A.n_rows, m), dtype=X.dtype)
    X, data = xp.ascontiguousarray(X), A.data.astype(X.dtype, copy=False)
    name, parts = ("product_few", 1) if m <= _FEW else ("product_many", -(-m // 32))
    arguments = A.indptr, A.indices, data, X, np.int32(A.n_rows), np.int32(m), out
    blocks = -(-32 * A.n_rows // THREADS)
    device.kernel(_FILE, f"{name}<{real}>")((blocks, parts), (THREADS,), arguments)
    return out


def cuda_min_plus(device: CudaDevice, A: DeviceMatrix, X: Array) -> Array:
    """See :meth:`Device.min_plus`."""
    xp, m = device.xp, X.shape[1]
    out = xp.empty((A.n_rows, m), dtype=X.dtype)
    arguments = A.indptr, A.indices, A.data, xp.ascontiguousarray(X), np.int32(A.n_rows)
    blocks = -(-32 * A.n_rows // THREADS), -(-m // 32)
    kernel = device.kernel(_FILE, f"min_plus<{c_type(X.dtype)}>")
    if out.size:
        kernel(blocks, (THREADS,), (*arguments, np.int32(m), out))
    return out


def cuda_chebyshev_step(
    device: CudaDevice,
    W: DeviceMatrix,
    diagonals: tuple[Array, Array],
    factors: tuple[float, float],
    state: tuple[Array, Array, Array],
) -> Array:
    """See :meth:`Device.chebyshev_step`."""
    step, R, X = state
    real, (n, m) = X.dtype.type, X.shape
    out, numbers = device.xp.empty_like(X), (np.int32(n), np.int32(m), *map(real, factors))
    arguments = W.indptr, W.indices, W.data, *diagonals, step, *numbers, R, X, out
    device.kernel(_FILE, f"chebyshev_step<{c_type(real)}>")(*grid(32 * n), arguments)
    return out


def cuda_log_precisions(
    device: CudaDevice, t: Array, perplexity: float, max_steps: int = 200
) -> Array:
    """See :meth:`Device.log_precisions`."""
    n, k = t.shape
    out, rank = device.xp.empty(n, dtype=float), int(np.ceil(perplexity)) - 1
    sizes = np.int32(n), np.int32(k), np.int32(rank), np.float64(np.log(perplexity))
    columns = device.xp.ascontiguousarray(t.T, dtype=float)  # threads read neighboring entries
    arguments = columns, *sizes, np.int32(max_steps), out
    device.kernel(_FILE, "log_precisions")(*grid(n), arguments)
    return out
