"""Squared distances of points with few coordinates on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manifoldry.device.cuda_launch import THREADS
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

_ROWS = 16  # of a block, about, so that it reads its columns rarely
_MOST_BLOCKS = 65_535  # in the second direction
_FEW = 8  # coordinates for which there is a kernel
_PAIRS = 2**26  # in memory at a time, without it
_FILE = "squares.cu"


def cuda_squared_distances(device: CudaDevice, X: Array, Y: Array) -> Array:
    """See :meth:`Device.squared_distances`."""
    xp, (n, d), m = device.xp, X.shape, Y.shape[0]
    X, Y = (xp.ascontiguousarray(part, dtype=float) for part in (X, Y))
    if d > _FEW:
        return _by_coordinates(X, Y)
    out = xp.empty((n, m))
    if out.size:
        blocks = -(-m // THREADS), min(-(-n // _ROWS), _MOST_BLOCKS)
        kernel = device.kernel(_FILE, f"squared_distances<{d}>")
        kernel(blocks, (THREADS,), (X, Y, np.int32(n), np.int32(m), out))
    return out


def cuda_nearest_squares(device: CudaDevice, X: Array, Y: Array) -> Array:
    """See :meth:`Device.nearest_squares`."""
    xp, (n, d), m = device.xp, X.shape, Y.shape[0]
    X, Y = (xp.ascontiguousarray(part, dtype=float) for part in (X, Y))
    out, rows = xp.empty(n), max(1, _PAIRS // m)
    if d > _FEW:
        for start in range(0, n, rows):
            out[start : start + rows] = _by_coordinates(X[start : start + rows], Y).min(axis=1)
    elif n:
        device.kernel(_FILE, f"nearest_squares<{d}>")((n,), (256,), (X, Y, np.int32(m), out))
    return out


def _by_coordinates(X: Array, Y: Array) -> Array:
    """The same by array functions, for many coordinates."""
    D = (X[:, :1] - Y[:, 0]) ** 2
    for axis in range(1, X.shape[1]):
        step = X[:, axis, None] - Y[:, axis]
        step *= step
        D += step
    return D
