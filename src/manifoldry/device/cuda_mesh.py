"""Charges at the nodes of a mesh, and values interpolated between them, on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.device.cuda_launch import c_type, grid, pointer
from manifoldry.device.primitives import Nodes
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

_FILE = "mesh.cu"
_CORNER_THREADS = 256
_LANES = 32  # that share the charges of a point, if there are several


def cuda_corners(device: CudaDevice, Y: Array) -> Array:
    """See :meth:`Device.corners`."""
    n_blocks = min(4 * device.n_processors, -(-len(Y) // _CORNER_THREADS))
    parts = _corners(device, device.xp.ascontiguousarray(Y), n_blocks)
    return device.host(_corners(device, parts, 1))  # those of the corners that blocks have found


def _corners(device: CudaDevice, Y: Array, n_blocks: int) -> Array:
    n, d = Y.shape
    out = device.xp.empty((2 * n_blocks, d), dtype=float)
    kernel = device.kernel(_FILE, f"corners<{c_type(Y.dtype)}, {d}>")
    kernel((n_blocks,), (_CORNER_THREADS,), (Y, np.int64(n), out))
    return out


def cuda_spread(device: CudaDevice, Y: Array, charges: Array | None, nodes: Nodes) -> Array:
    """See :meth:`Device.spread`."""
    xp, (n, d) = device.xp, Y.shape
    totals = None
    if charges is not None:
        charges = xp.ascontiguousarray(charges, dtype=float)
        totals = xp.ones(n) @ xp.abs(charges)
    n_charges = 1 if charges is None else charges.shape[1]
    out = xp.zeros((n_charges, *nodes.shape), dtype=float)  # zero units, too
    kernel = device.kernel(_FILE, f"spread<{c_type(Y.dtype)}, {d}>")
    points = xp.ascontiguousarray(Y), pointer(charges), pointer(totals), np.int32(n)
    kernel(*grid(n * n_charges), (*points, np.int32(n_charges), *_constants(nodes), out))
    sizes = np.float64(n), np.int64(out.size // n_charges), np.int64(out.size)
    device.kernel(_FILE, "from_units")(*grid(out.size), (out, pointer(totals), *sizes))
    return out


def cuda_gather(
    device: CudaDevice,
    Y: Array,
    potential: Array,
    near: Array,
    nodes: Nodes,
    left: Array | None,
    right: Array | None,
    slopes: bool,
) -> tuple[Array, Array]:
    """See :meth:`Device.gather`."""
    xp, (n, d), n_charges = device.xp, Y.shape, potential.shape[0]
    values = xp.empty(n, dtype=float)
    gradients = xp.empty((n if slopes else 0, d), dtype=float)
    lanes = 1 if n_charges == 1 else _LANES
    options = f"{c_type(Y.dtype)}, {d}, {str(slopes).lower()}, {lanes}"
    kernel = device.kernel(_FILE, f"gather<{options}>")
    Y, potential = xp.ascontiguousarray(Y), xp.ascontiguousarray(potential)
    left, right = (
        None if part is None else xp.ascontiguousarray(part, dtype=float) for part in (left, right)
    )
    points = Y, pointer(left), pointer(right), np.int32(n), np.int32(n_charges)
    results = values, gradients if slopes else pointer(None)
    kernel(*grid(n * lanes), (*points, *_constants(nodes), potential, near, *results))
    return values, gradients


def _constants(nodes: Nodes) -> tuple[Any, ...]:
    """The mesh as arguments of kernels, which have three axes."""
    missing = 3 - len(nodes.shape)
    first = (*map(np.float64, nodes.first), *[np.float64(0)] * missing)
    return np.float64(nodes.spacing), *first, *map(np.int32, (*nodes.shape, *[0] * missing))
