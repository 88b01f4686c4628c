"""Exact Euclidean neighbors on a device.

Products of single precision, or less, nominate candidates, as in `BruteIndex`. Distances are
computed by subtraction in double precision. Where the error of the products could have left out a
neighbor, the search is repeated with accurate products; what they leave uncertain, such as more ties
than candidates, is searched on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.device import Device, current_device
from manifoldry.neighbors.distances import Frame, expansion_error
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

_SAFE_UNIT = 1e-60  # of data whose squares, and those of their inverse, are in range
_FAST_ERROR = 2.0**-8  # of 2·x·y relative to |x||y|, if factors have 10 bits


class Found(NamedTuple):
    """Neighbors, their distances, and the rows in which others may be nearer."""

    indices: Array
    distances: Array
    uncertain: IntArray


@dataclass(frozen=True, eq=False)
class DeviceSearch:
    """Searches among reference points in the memory of a device.

    Parameters
    ----------
    device : Device
        The device.
    X : array of shape (n_reference, n_features)
        The points, on the host.
    frame : Frame
        Origin and unit of the products.
    pairs_per_block : int
        Number of pairs whose products are in memory at a time, in searches within a radius.
    """

    device: Device
    X: Array
    frame: Frame
    pairs_per_block: int = 2**27

    def nearest(self, X: Array, k: int, own: IntArray | None) -> Found:
        """The `k` nearest points of each row of `X` but `own`, as arrays of the device."""
        device, n = self.device, len(self.X)
        known = None if own is None else device.array(own.astype(np.int32))
        n_candidates = min(k + max(8, k // 4), n - (own is not None))
        fast = self._nearest(X, k, n_candidates, known, slice(None), accurate=False)
        indices, distances, uncertain = fast
        if len(uncertain):
            some = device.array(uncertain)
            again = self._nearest(X, k, n_candidates, known, some, accurate=True)
            indices[some], distances[some] = again.indices, again.distances
            uncertain = uncertain[again.uncertain]
        return Found(indices, distances, uncertain)

    def download(self, found: Found) -> tuple[IntArray, Array, IntArray]:
        """The same as arrays of the host, of which the device keeps its copies."""
        indices = found.indices.astype(np.intp)
        parts = self.device.host(indices), self.device.host(found.distances)
        if not len(found.uncertain):  # else some rows will change
            for part, copy in zip(parts, (indices, found.distances), strict=True):
                self.device.hold(part, copy)
        return *parts, found.uncertain

    def _nearest(
        self, X: Array, k: int, n_candidates: int, own: Array | None, rows: Array | slice,
        accurate: bool,
    ) -> Found:  # fmt: skip
        device, xp = self.device, self.device.xp
        dtype = np.float64 if accurate else np.float32
        queries, references = self._framed(X, dtype)[rows], self._framed(self.X, dtype)
        mine = None if own is None else own[rows]
        candidates, squares = device.nearest(queries, references, n_candidates, mine, accurate)
        lengths = device.distances(device.array(X)[rows], device.array(self.X), candidates)
        indices, distances = device.sort_rows(candidates, lengths)
        indices, distances = indices[:, :k].copy(), distances[:, :k].copy()
        if n_candidates >= len(self.X) - (own is not None):
            return Found(indices, distances, np.empty(0, dtype=np.intp))
        x_squares = xp.einsum("ij,ij->i", queries, queries).astype(float)
        radii = distances[:, -1] / self.frame.unit
        error = self._error(x_squares, (xp.sqrt(x_squares) + radii) ** 2, dtype)
        certain = radii**2 < squares[:, -1] - error  # false where products are not finite
        return Found(indices, distances, device.host(xp.flatnonzero(~certain)))

    def _error(self, x_squares: Array, y_squares: Array, dtype: type) -> Array:
        """Bound on the error of |x|² + |y|² − 2x·y."""
        error = expansion_error(x_squares, y_squares, self.X.shape[1], dtype)
        if dtype is np.float64:
            return error
        return error + _FAST_ERROR * self.device.xp.sqrt(x_squares * y_squares)

    def _framed(self, X: Array, dtype: type) -> Array:
        """The points in coordinates of the frame."""
        points, frame = self.device.array(X), self.frame
        if X.dtype == np.float32 and dtype is np.float32 and frame.is_single:
            origin = self.device.array(frame.origin.astype(np.float32))
            return (points - origin) * np.float32(1 / frame.unit)
        centered = (points - self.device.array(frame.origin)) / frame.unit
        return centered.astype(dtype, copy=False)

    def within(self, X: Array, radii: Array) -> Iterator[tuple[IntArray, IntArray, Array]]:
        """Yield query, reference and distance of the pairs within `radii`, by blocks of queries.

        `radii`, (1,) or (n_reference,), are those of the reference points.
        """
        device, xp = self.device, self.device.xp
        queries, references = self._framed(X, np.float64), self._framed(self.X, np.float64)
        x_squares = xp.einsum("ij,ij->i", queries, queries)
        y_squares = xp.einsum("ij,ij->i", references, references)
        wide = device.array(np.minimum(np.nextafter(radii, np.inf) / self.frame.unit, 1e150) ** 2)
        m, points, queried = X.shape[1], device.array(self.X), device.array(X)
        reach = device.array(np.broadcast_to(radii, len(self.X)).copy())
        for rows in row_blocks(len(X), len(self.X), self.pairs_per_block):
            error = expansion_error(x_squares[rows, None], y_squares, m)
            D = x_squares[rows, None] + y_squares - 2 * (queries[rows] @ references.T) - error
            pairs = xp.flatnonzero(D <= wide)
            i, j = (part.astype(np.int32) for part in xp.divmod(pairs, len(self.X)))
            lengths = device.distances(queried[rows], points, j, i)
            keep = lengths <= reach[j]
            query, reference = (device.host(part[keep]).astype(np.intp) for part in (i, j))
            yield query + rows.start, reference, device.host(lengths[keep])


def device_search(X: Matrix, queries: Matrix, frame: Callable[[], Frame]) -> DeviceSearch | None:
    """The search among `X` on the current device; None if it is to run on the CPU."""
    device = current_device()
    if device is None:
        return None
    if sparse.issparse(X) or sparse.issparse(queries):
        device.runs_on_host("the neighbor search", "the data are sparse; pass X.toarray()")
        return None
    found = frame()
    if not _SAFE_UNIT < found.unit < 1 / _SAFE_UNIT:
        why = f"squares of data of size {found.unit:.0e} leave the range of numbers; rescale X"
        device.runs_on_host("the neighbor search", why)
        return None
    return DeviceSearch(device, X, found)


def frame_of(X: Matrix) -> Frame:
    """The frame of points, computed where they are."""
    device = current_device()
    if device is None or sparse.issparse(X):
        return Frame.of(X, robust=True)
    points = device.array(X)
    extremes = device.host(device.xp.stack([points.min(axis=0), points.max(axis=0)]))
    total = device.host(points.sum(axis=0, dtype=np.float64))
    if not np.isfinite(total).all():
        return Frame.of(X, robust=True)
    return Frame.of_statistics(X, total, *extremes, robust=True)
