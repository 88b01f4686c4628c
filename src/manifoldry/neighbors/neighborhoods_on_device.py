"""Local problems of many neighborhoods on a device, and the sparse matrices assembled from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.device import Device, current_device
from manifoldry.device.primitives import DeviceMatrix
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.on_device import frame_of
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

_BLOCK = 2**25  # coordinates in memory at a time, of which there are several copies
_MOST_NEIGHBORHOODS = 2**16 - 1  # of a block: products of more matrices are slower
_MOST_ENTRIES = 2**25  # that are sorted at a time
_ENTRY_BYTES = 64  # for an entry while it is sorted: keys, values, order and their copies


@dataclass(frozen=True, eq=False)
class DeviceNeighborhoods:
    """The neighborhoods of all points; see `Neighborhoods`, whose methods these are.

    `local` is called with arrays of the device. Matrices are returned as those of the host, and
    the device keeps its copies of their parts.
    """

    device: Device
    X: Array
    members: IntArray

    def each(self, local: Callable[[Array], Array]) -> Array:
        """Values of `local` as an array of the device."""
        return self.device.xp.concatenate([local(found) for _, found in self._coordinates()])

    def rows(self, local: Callable[[Array], Array]) -> sparse.csr_array:
        """Sparse matrix (n, n) with one row per point."""
        device, (n, k) = self.device, self.members.shape
        index = np.int32 if n * k < 2**31 else np.int64
        columns = device.array(self.members).ravel().astype(index)
        starts = device.xp.arange(0, n * k + 1, k, dtype=index)
        return _on_host(device, self.each(local).ravel(), columns, starts)

    def align(self, local: Callable[[Array], Array]) -> sparse.csr_array:
        """Sum of local symmetric matrices over all neighborhoods, (n, n)."""
        device, (n, k) = self.device, self.members.shape
        what = f"the sum of {n} matrices of {k} x {k}"
        device.plan(_ENTRY_BYTES * (min(n * k * k, _MOST_ENTRIES) + n * k * k / 4), what, _FEWER)
        parts = (
            _Entries(self._keys(members).ravel(), local(found).ravel())
            for members, found in self._coordinates()
        )
        return _summed(device, parts).matrix(device, n)

    def gram(self, local: Callable[[Array], Array]) -> sparse.csr_array:
        """RᵀR for the matrix R of `rows`."""

        def squared(coordinates: Array) -> Array:
            row = local(coordinates)
            return row[:, :, None] * row[:, None, :]

        return self.align(squared)

    def _keys(self, members: Array) -> Array:
        """Place of each entry of the local matrices, row by row."""
        return members[:, :, None] * len(self.members) + members[:, None, :]

    def _coordinates(self) -> Iterator[tuple[Array, Array]]:
        """Members, and centered, scaled coordinates (n_block, k, n_features), of all blocks."""
        members = self.device.array(self.members)
        n, k = members.shape
        numbers = k * max(self.X.shape[1], k)
        most = min(_BLOCK, _MOST_NEIGHBORHOODS * numbers)
        size = 8 * (self.X.size + 6 * min(n * numbers, most))
        self.device.plan(size, f"a block of the coordinates of {n} neighborhoods", _FEWER)
        framed = self._framed
        for block in row_blocks(n, numbers, most):
            yield members[block].astype(np.int64, copy=False), framed[members[block]]

    @cached_property
    def _framed(self) -> Array:
        """All points, centered and scaled, in double precision."""
        frame, points = frame_of(self.X, robust=False), self.device.array(self.X)
        return (points - self.device.array(frame.origin)) / frame.unit


_FEWER = "pass a smaller n_neighbors, or device='cpu'"


@dataclass(frozen=True, eq=False)
class _Entries:
    """Entries of an (n, n) matrix: row·n + column, and value."""

    keys: Array
    values: Array

    def __len__(self) -> int:
        return len(self.keys)

    def summed(self, device: Device) -> _Entries:
        """The same with increasing keys: values of equal keys are added, in their order."""
        xp, count = device.xp, len(self)
        order = xp.argsort(self.keys)
        keys = self.keys[order]
        new = xp.ones(count, dtype=bool)
        new[1:] = keys[1:] != keys[:-1]
        first = xp.flatnonzero(new)
        starts = xp.full(len(first) + 1, count, dtype=np.int64)
        starts[:-1] = first
        once = DeviceMatrix(starts, order.astype(np.int32), xp.ones(count), count)
        return _Entries(keys[first], device.product(once, self.values[:, None])[:, 0])

    def matrix(self, device: Device, n: int) -> sparse.csr_array:
        """The matrix, of summed entries."""
        xp, index = device.xp, np.int32 if len(self) < 2**31 else np.int64
        starts = xp.zeros(n + 1, dtype=np.int64)
        starts[1:] = xp.cumsum(xp.bincount(self.keys // n, minlength=n))
        columns = (self.keys % n).astype(index)
        found = _on_host(device, self.values, columns, starts.astype(index))
        found.has_canonical_format = True  # sorted, without duplicates
        return found


def _summed(device: Device, parts: Iterator[_Entries]) -> _Entries:
    """The sum of matrices; a limited number of entries is sorted at a time."""
    done: list[_Entries] = []
    waiting: list[_Entries] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= _MOST_ENTRIES:
            done.append(_joined(device, waiting).summed(device))
            waiting = []
    done += [_joined(device, waiting).summed(device)] if waiting else []
    return done[0] if len(done) == 1 else _joined(device, done).summed(device)


def _joined(device: Device, parts: Sequence[_Entries]) -> _Entries:
    xp = device.xp
    return _Entries(
        xp.concatenate([part.keys for part in parts]),
        xp.concatenate([part.values for part in parts]),
    )


def _on_host(device: Device, values: Array, columns: Any, starts: Any) -> sparse.csr_array:
    """A sparse matrix of the host, of whose parts the device keeps its copies."""
    parts = values, columns, starts
    on_host = tuple(device.host(part) for part in parts)
    for part, copy in zip(on_host, parts, strict=True):
        device.hold(part, copy)
    n = len(on_host[2]) - 1
    return sparse.csr_array(on_host, shape=(n, n))


def weighted_sum_on_device(
    device: Device, terms: Sequence[tuple[float, sparse.csr_array]]
) -> sparse.csr_array:
    """The sum of factors times square matrices, whose parts mostly are on the device already."""
    n = terms[0][1].shape[0]
    parts = (_entries_of(device, factor, matrix) for factor, matrix in terms)
    return _summed(device, parts).matrix(device, n)


def _entries_of(device: Device, factor: float, matrix: sparse.csr_array) -> _Entries:
    rows = device.rows(matrix)
    row = rows.row_numbers(device.xp)
    return _Entries(row * rows.n_rows + rows.indices, factor * rows.data)


def laplacian_on_device(device: Device, graph: NeighborGraph) -> sparse.csr_array:
    """The matrix of Σ ‖yᵢ − yⱼ‖² / 2 over the neighbors j of all points i, k for each point."""
    xp, n = device.xp, graph.n_query
    i = xp.repeat(xp.arange(n, dtype=np.int64), graph.k)
    j = device.array(graph.indices).astype(np.int64)
    keys = xp.concatenate([i * n + i, j * n + j, i * n + j, j * n + i])
    values = xp.full(len(keys), -0.5)
    values[: len(keys) // 2] = 0.5
    return _Entries(keys, values).summed(device).matrix(device, n)


def device_for(X: Matrix) -> Device | None:
    """The device for the neighborhoods of points; None if they are solved on the CPU."""
    device = current_device()
    if device is not None and sparse.issparse(X):
        device.runs_on_host("the local problems", "the data are sparse; pass X.toarray()")
        return None
    return device
