"""What searches for many new points share on devices: copies of arrays, and small matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifoldry.device import Device
from manifoldry.util.arrays import namespace, on_cpu, to_numpy
from manifoldry.util.typing import Array

BUDGET = 2**26
"""Numbers in memory at a time, here and on the device: launches of kernels need large blocks."""


def copied_to(device: Device | None, *arrays: Any) -> tuple[Any, ...]:
    """Copies of arrays on a device; the arrays themselves without one. None remains None."""
    if device is None:
        return arrays
    return tuple(None if part is None else device.array(part, keep=False) for part in arrays)


def fill(whole: Any, rows: Any, parts: Any) -> None:
    """Overwrite the rows of several arrays of the host by arrays of any memory."""
    for array, part in zip(whole, parts, strict=True):
        array[rows] = to_numpy(part)


def symmetric_eigh(H: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of many small symmetric matrices, (n, d, d), where they are.

    On a device those of order two are computed by Jacobi's rotation, in no particular order.
    """
    if on_cpu(H):
        return np.linalg.eigh(H)
    xp, d = namespace(H), H.shape[1]
    if d == 1:
        return H[:, :, 0], xp.ones_like(H)
    if d > 2:
        return xp.linalg.eigh(H)
    a, b, c = H[:, 0, 0], H[:, 1, 0], H[:, 1, 1]
    angle = xp.arctan2(2 * b, a - c) / 2
    cos, sin = xp.cos(angle), xp.sin(angle)
    mixed, squares = 2 * b * cos * sin, (cos * cos, sin * sin)
    values = [a * squares[0] + mixed + c * squares[1], a * squares[1] - mixed + c * squares[0]]
    vectors = [xp.stack([cos, -sin], axis=1), xp.stack([sin, cos], axis=1)]
    return xp.stack(values, axis=1), xp.stack(vectors, axis=1)
