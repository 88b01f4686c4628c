"""Distances and ranks of all pairs of points on a device, a block of rows at a time.

They are computed in double precision, and as on the CPU: from differences if there are few
features, else by matrix products, which are rounded to the same grid so that equal distances are
ties. Results are therefore those of the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from manifoldry.device import Device, current_device, device_of
from manifoldry.metrics.distance_rows import (
    DistanceRows,
    EuclideanRows,
    PrecomputedRows,
    key_spacing,
    pairs_at_a_time,
)
from manifoldry.neighbors.base import smallest_entries
from manifoldry.neighbors.distances import Frame
from manifoldry.neighbors.on_device import frame_of
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

_SAFE_UNIT = 1e-60  # of data whose squares, and those of their inverse, are in range
_MOST_COORDINATES = 12  # of `DifferenceRows`
_MOST_SELECTED = 4096  # entries of a row that kernels select; for more, rows are sorted
_REMEDY = "compare fewer points, or compute on the CPU, with using_device('cpu')"


@dataclass(frozen=True, eq=False)
class DeviceRows(DistanceRows):
    """Distances between n points in the memory of a device.

    Its method `among` also takes groups of points, (n_groups, size), and returns the distances
    within each of them.
    """

    device: Device = field()  # the base class has None

    @property
    def n_features(self) -> int:
        """Number of features, or one of given distances."""
        return 1

    def neighbor_keys(self, rows: IntArray) -> Array:
        keys, xp = self.keys(rows), self.device.xp
        keys[xp.arange(len(rows)), self.device.array(rows, keep=False)] = np.inf
        return keys


@dataclass(frozen=True, eq=False)
class DifferenceRows(DeviceRows):
    """Euclidean distances of vectors with few features.

    Parameters
    ----------
    device : Device
        The device.
    X : array of shape (n, n_features)
        The vectors, on the host.
    frame : Frame
        Origin and unit of the coordinates.
    """

    X: Array
    frame: Frame

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def keys(self, rows: IntArray) -> Array:
        own = self._framed[self.device.array(rows, keep=False)]
        return self.device.squared_distances(own, self._framed)

    def distances(self, rows: IntArray) -> Array:
        return self.device.xp.sqrt(self.keys(rows)) * self.frame.unit

    def among(self, points: IntArray) -> Array:
        own, xp = self._framed[self.device.array(points, keep=False)], self.device.xp
        if points.ndim == 1:
            return xp.sqrt(self.device.squared_distances(own, own)) * self.frame.unit
        steps = own[:, :, None] - own[:, None]
        return xp.sqrt((steps**2).sum(axis=-1)) * self.frame.unit

    @cached_property
    def _framed(self) -> Array:
        """The points in coordinates of the frame, in double precision."""
        framed = self.device.array(self.X).astype(np.float64)
        framed -= self.device.array(self.frame.origin)
        framed /= self.frame.unit
        return framed


@dataclass(frozen=True, eq=False)
class ProductRows(DifferenceRows):
    """Euclidean distances of vectors with many features.

    Parameters
    ----------
    device : Device
        The device.
    X : array of shape (n, n_features)
        The vectors, on the host.
    frame : Frame
        Origin and unit of the coordinates.
    source : EuclideanRows
        The same on the CPU.
    """

    source: EuclideanRows

    def keys(self, rows: IntArray) -> Array:
        mine = self.device.array(rows, keep=False)
        keys = self._products(mine, self._factors)
        small = self.device.xp.flatnonzero(keys <= self.source.exact_below * self._spacing)
        shift = 1.5 * 2.0**52 * self._spacing  # leaves no digits for fractions of a spacing
        keys += shift
        keys -= shift
        row, column = self.device.xp.divmod(small, self.n)
        keys.reshape(-1)[small] = self._exact(mine[row], column)
        return keys

    def among(self, points: IntArray) -> Array:
        mine, xp, size = self.device.array(points, keep=False), self.device.xp, points.shape[-1]
        keys = self._products(mine, self._factors[mine])
        small = xp.flatnonzero(keys <= self.source.exact_below * self._spacing)
        row, column = xp.divmod(small, size)
        flat = mine.reshape(-1)
        keys.reshape(-1)[small] = self._exact(flat[row], flat[row // size * size + column])
        return xp.sqrt(keys) * self.frame.unit

    def _products(self, rows: Array, factors: Array) -> Array:
        """Squared distances as one matrix product, of [−2x, x², 1] and [y, 1, y²]."""
        own, m = self._factors[rows], self.X.shape[1]
        own[..., :m] *= -2
        own[..., m], own[..., m + 1] = self._squares[rows], 1.0
        return own @ factors.swapaxes(-1, -2)

    def _exact(self, i: Array, j: Array) -> Array:
        """Squared distances of pairs by subtraction."""
        points: Any = self.device.array(self.X)
        pairs: Any = [part.astype(np.int32) for part in (j, i)]
        return (self.device.distances(points, points, *pairs) / self.frame.unit) ** 2

    @cached_property
    def _squares(self) -> Array:
        return self.device.xp.einsum("ij,ij->i", self._framed, self._framed)

    @cached_property
    def _factors(self) -> Array:
        """The points, ones, and their squares; rows are aligned."""
        m = self.X.shape[1]
        factors = self.device.xp.zeros((self.n, m + 2 + -(m + 2) % 4))
        factors[:, :m], factors[:, m], factors[:, m + 1] = self._framed, 1.0, self._squares
        return factors

    @cached_property
    def _spacing(self) -> float:
        largest = float(self._squares.max())
        return key_spacing(largest, self.X.shape[1], self.source.errors_per_spacing)


@dataclass(frozen=True, eq=False)
class GivenRows(DeviceRows):
    """Distances from a precomputed matrix on the host, of which rows are copied when needed."""

    D: Array

    @property
    def n(self) -> int:
        return len(self.D)

    def keys(self, rows: IntArray) -> Array:
        return abs(self.device.array(self.D[rows], np.float64, keep=False))  # no zero has a sign

    def distances(self, rows: IntArray) -> Array:
        return self.keys(rows)

    def among(self, points: IntArray) -> Array:
        within = self.D[points[..., :, None], points[..., None, :]]
        return self.device.array(within, np.float64, keep=False)


def on_device_if_possible(*spaces: DistanceRows) -> list[DistanceRows]:
    """The same distances on the current device; as they are if not all can be computed there."""
    device = current_device()
    if device is None:
        return list(spaces)
    found = [_on_device(device, space) for space in spaces]
    there = [space for space in found if space is not None]
    return there if len(there) == len(spaces) else list(spaces)


def _on_device(device: Device, space: DistanceRows) -> DistanceRows | None:
    if isinstance(space, PrecomputedRows):
        return GivenRows(device, space.D)
    if not isinstance(space, EuclideanRows):
        why = "only Euclidean and precomputed distances are computed on a device"
    elif sparse.issparse(space.X):
        why = "the data are sparse; pass X.toarray()"
    else:
        n, m = space.X.shape
        few = m <= space.few_features
        frame = Frame.at_zero(space.X) if few else frame_of(space.X, robust=False)
        if _SAFE_UNIT < frame.unit < 1 / _SAFE_UNIT:
            device.plan(24 * n * (m + 20), f"comparing {n} points of {m} features", _REMEDY)
            if few:
                return DifferenceRows(device, space.X, frame)
            return ProductRows(device, space.X, frame, space)
        why = f"squares of data of size {frame.unit:.0e} leave the range of numbers; rescale X"
    device.runs_on_host("the comparison of all pairs", why)
    return None


def smallest_columns(keys: Any, k: int) -> Any:
    """Columns of the k smallest entries of each row, ties by column, where the keys are."""
    device = device_of(keys)
    if device is None:
        return smallest_entries(keys, k)[0]
    if k <= _MOST_SELECTED:
        return device.smallest(keys, k)
    return (_order(device, keys).reshape(keys.shape) % keys.shape[1])[:, :k]


def device_ranks(device: Device, keys: Any, chosen: Any) -> Any:
    """Rank, from 1, of the chosen columns (n_rows, k) in each row; ties by column."""
    if chosen.shape[1] <= _MOST_SELECTED:
        return device.ranks(keys, chosen)
    return device.xp.take_along_axis(all_device_ranks(device, keys), chosen, axis=1)


def all_device_ranks(device: Device, keys: Any) -> Any:
    """Rank of every entry in its row, from 1 for the smallest; ties by column."""
    xp, (n_rows, n) = device.xp, keys.shape
    ranks = xp.empty(keys.size, dtype=np.int32)
    ranks[_order(device, keys)] = xp.tile(xp.arange(1, n + 1, dtype=np.int32), n_rows)
    return ranks.reshape(keys.shape)


def distances_of_groups(space: DistanceRows, groups: IntArray) -> Array:
    """Distances within each group of points, (n_groups, size, size), computed on a device."""
    assert isinstance(space, DeviceRows)
    device, size = space.device, groups.shape[1]
    numbers = size * max(_MOST_COORDINATES * size, space.n_features)
    blocks = row_blocks(len(groups), numbers, budget=pairs_at_a_time(device))
    return np.concatenate([device.host(space.among(groups[block])) for block in blocks])


def average_ranks(values: Array, least: int = 2**15) -> Array:
    """Ranks of numbers, from 1, with the mean of the ranks of equal ones."""
    device = current_device()
    if device is None or len(values) < least:
        return np.asarray(rankdata(values))
    known = device.array(values, keep=False)
    ordered = device.xp.sort(known)
    ends = (device.xp.searchsorted(ordered, known, side=side) for side in ("left", "right"))
    return device.host((sum(ends) + 1) / 2)


def _order(device: Device, keys: Any) -> Any:
    """Positions of the entries, row by row, sorted within rows; entries are not negative.

    Bits of numbers that are not negative have their order. The number of the row replaces their
    lowest bits, so that all rows are sorted at once, and values that agree to 11 digits are ties.
    """
    xp, (n_rows, _) = device.xp, keys.shape
    width = max(1, (n_rows - 1).bit_length())
    packed = xp.ascontiguousarray(keys).view(np.uint64) >> np.uint64(width - 1)
    packed |= (xp.arange(n_rows, dtype=np.uint64) << np.uint64(64 - width))[:, None]
    return xp.argsort(packed.ravel(), kind="stable")
