"""Lengths of the shortest paths from many points of a graph, on a device."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from manifoldry.device import Device
from manifoldry.device.primitives import DeviceMatrix
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

LEAST_WORK = 2.0**20
"""Sources times edges below which scipy takes less than the launches of kernels."""

_CHECKED = 8  # steps between tests for the end, each of which waits for the device
_MOST_EDGES = 4096  # of a path; Dijkstra's algorithm is faster where there are longer ones
_TOGETHER = 2**28  # lengths that are in memory at a time


def path_lengths_on(
    device: Device, lengths: sparse.csr_array, sources: IntArray, out: Array
) -> bool:
    """Store the lengths of the shortest paths from each source in the rows of `out`.

    All paths get one more edge per step (Bellman and Ford), until none becomes shorter. That is
    more work than to settle points in order, as Dijkstra's algorithm does, but all of it can be
    done at once. The lengths are the same to the last bit: both find the least of the same sums.

    False, with `out` unfinished, if some of these paths have too many edges.
    """
    steps, n = device.rows(_steps(lengths), out.dtype), lengths.shape[0]
    most = int(min(_TOGETHER, device.free_memory // (4 * out.itemsize)))
    for block in row_blocks(len(sources), n, budget=max(most, n)):
        found = _relaxed(device, steps, sources[block])
        if found is None:
            return False
        out[block] = device.host(found).T
    return True


def _relaxed(device: Device, steps: DeviceMatrix, sources: IntArray) -> Array | None:
    """The lengths of the shortest paths to each point, (n, n_sources)."""
    xp, count = device.xp, len(sources)
    reached = xp.full((steps.n_rows, count), np.inf, dtype=steps.data.dtype)
    reached[device.array(sources, keep=False), xp.arange(count)] = 0
    for _ in range(0, _MOST_EDGES, _CHECKED):
        for _ in range(_CHECKED - 1):
            reached = device.min_plus(steps, reached)
        before, reached = reached, device.min_plus(steps, reached)
        if not bool((reached < before).any()):
            return reached
    return None


def _steps(lengths: sparse.csr_array) -> sparse.csr_array:
    """The edges that end at each point, and one of length zero from the point itself."""
    n, edges = lengths.shape[0], lengths.tocoo()
    own = np.arange(n, dtype=edges.row.dtype)
    ends, starts = np.concatenate([edges.col, own]), np.concatenate([edges.row, own])
    values = np.concatenate([edges.data, np.zeros(n)])
    return sparse.csr_array((values, (ends, starts)), shape=(n, n))
