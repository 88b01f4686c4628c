"""Which pairs of points are computed together for the kernel regression on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manifoldry.device import Device
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

ALL_PAIRS_UP_TO = 2**15
"""Number of points up to which all pairs take less time than to find the nearby ones."""
_PAIRS = 2**25  # in memory at a time
_ARRAYS = 8  # of their size, in double precision
_TILE = 2**12  # points near each other, whose sources are found together


def device_tiles(
    device: Device, Y: Array, leave_one_out: bool, reach: float, rows: IntArray | None
) -> Iterator[tuple[Any, Any]]:
    """Yield some points, and those from which they are predicted; see `over_pairs`.

    Everything is in double precision: the gradient is a small difference of large sums, and most of
    the time is that of reading and writing arrays, of which single precision would save half.
    """
    n = len(Y)
    targets = device.xp.arange(n) if rows is None else device.array(rows)
    needed = 8.0 * _ARRAYS * min(_PAIRS, n * len(targets))
    remedy = "use fewer points, or pass device='cpu'"
    device.plan(needed, f"kernel regression of {n} points", remedy)
    if np.isinf(reach) or len(targets) <= ALL_PAIRS_UP_TO:
        for part in row_blocks(len(targets), n, _PAIRS):
            yield targets[part], slice(None)
        return
    ordered = _by_place(device, Y, targets)
    for tile in row_blocks(len(targets), 1, _TILE):
        some = ordered[tile]
        sources = _sources(device, Y, some, leave_one_out, reach)
        for part in row_blocks(len(some), len(sources), _PAIRS):
            yield some[part], sources


def _by_place(device: Device, Y: Array, targets: Array) -> Array:
    """The points in an order in which those of a tile are near each other.

    They are sorted along the first axis and divided into slabs, those along the next, and so on.
    """
    xp, (n, d) = device.xp, (len(targets), Y.shape[1])
    per_axis = int(np.ceil((n / _TILE) ** (1 / d)))
    slab = xp.zeros(n)
    for axis in range(d):
        targets = targets[xp.lexsort(xp.stack([Y[targets, axis], slab]))]
        slab = xp.arange(n) // (_TILE * per_axis ** (d - 1 - axis)) * 1.0
    return targets


def _sources(device: Device, Y: Array, rows: Array, leave_one_out: bool, reach: float) -> Array:
    """All points that may be within `reach`, beyond the nearest point, of some of the `rows`."""
    xp, Z = device.xp, Y[rows]
    D = device.squared_distances(Z, Z)
    if leave_one_out:
        itself = xp.arange(len(D))
        D[itself, itself] = np.inf
    farthest = (D.min(axis=1).max() + reach) * (1 + 1e-12)  # the nearest point may be in no tile
    outside = xp.maximum(xp.maximum(Z.min(axis=0) - Y, Y - Z.max(axis=0)), 0.0)
    # Positions that are not finite have all sources, and sums that are not finite.
    return xp.flatnonzero(~((outside * outside).sum(axis=1) > farthest))
