"""Kernel sums over fixed points at positions on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifoldry.device import Device
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.kernel_shape import kernel_shape
from manifoldry.objectives.pair_kernel import MAX_COMPILED_DIMENSION, Kernel
from manifoldry.objectives.pair_sums import LogSums, log_sums, position_sums
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks

_PAIRS = 2**25  # whose weights, or kernels, are in memory at a time


def device_position_sums(
    device: Device, kernel: Kernel, Z: Array, Y: Array, weights: Any, rows: Array | None
) -> LogSums:
    """Sums over the points `Y` at the positions `Z`; see `PositionSums.at`.

    All arrays are on the device, also the factors of factored weights.
    """
    compiled = kernel_shape(kernel) is not None and Z.shape[1] <= MAX_COMPILED_DIMENSION
    if weights is None and compiled:
        return _sums(device, kernel, Z, Y, None)
    xp, numbers = device.xp, len(Y) * (1 if compiled else 4 + Z.shape[1])
    of = xp.arange(len(Z)) if rows is None else rows
    parts = []
    for block in row_blocks(len(Z), numbers, _PAIRS):
        a = None if weights is None else _rows(xp, weights, of[block])
        parts.append(_sums(device, kernel, Z[block], Y, a))
    return LogSums(*(xp.concatenate(part) for part in zip(*parts, strict=True)))


def placed_weights(device: Device, weights: Any) -> Any:
    """Weights of new points in the memory of a device."""
    if isinstance(weights, FactoredWeights):
        return FactoredWeights(*map(device.array, (weights.left, weights.right)))
    return None if weights is None else device.array(weights, np.float64, keep=False)


def _rows(xp: Any, weights: Any, rows: Array) -> Array:
    """Weights of some positions, (n_positions, n)."""
    if isinstance(weights, FactoredWeights):
        return xp.maximum(weights.left[rows] @ weights.right.T, 0.0)
    return weights[rows]


def _sums(device: Device, kernel: Kernel, Z: Array, Y: Array, weights: Array | None) -> LogSums:
    nearest, shape = device.nearest_squares(Z, Y), kernel_shape(kernel)
    if shape is None or Z.shape[1] > MAX_COMPILED_DIMENSION:
        return position_sums(kernel, Z, Y, nearest, weights, columns=len(Y))
    least = kernel.phi(nearest)
    return log_sums(*device.position_sums(Z, Y, least, weights, shape), least)
