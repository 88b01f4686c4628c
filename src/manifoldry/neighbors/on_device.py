"""Exact Euclidean neighbors on a device.

Products nominate candidates, as in `BruteIndex`; distances are computed by subtraction in double
precision. At first the points are rounded to 11 significant bits, of which tensor cores compute
exact products. How far that moves each point is known: a point within a radius r of a query is,
after rounding, within r plus both distances. For points that are near each other but far from the
origin, this is much less than a bound on the rounding of products. Where a neighbor could still be
left out, the search is repeated with accurate products, as for most points of clusters that are
farther from each other than 10 to 30 times their width; products of three parts in single precision
would not be enough for these. What accurate products leave uncertain, such as more ties than
candidates, is searched on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.device import Device, current_device
from manifoldry.neighbors.distances import Frame, expansion_error
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

_FEWER = "pass fewer rows, for example a sample, and transform the others; or device='cpu'"
_SAFE_UNIT = 1e-60  # of data whose squares, and those of their inverse, are in range
_DROPPED_BITS = 13  # of the 24 in single precision


class FramedPoints(NamedTuple):
    """Points in coordinates of the frame, rounded for products."""

    rows: Array
    """The points, in single precision with 11 bits, or in double."""
    moved: Array
    """By how much each was moved by rounding, in double precision, (n,)."""
    squares: Array
    """Squared norms of the rounded points, in double precision, (n,)."""

    def part(self, rows: Array | slice) -> FramedPoints:
        """Some of the points."""
        return FramedPoints(self.rows[rows], self.moved[rows], self.squares[rows])


class Found(NamedTuple):
    """Neighbors, their distances, and the rows in which others may be nearer."""

    indices: Any
    distances: Array
    uncertain: Any


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
        device = self.device
        known = None if own is None else device.array(own.astype(np.int32))
        indices, distances, uncertain = self._nearest(X, k, k + max(8, k // 4), known, None)
        if len(uncertain):
            some = device.array(uncertain)
            again = self._nearest(X, k, k + max(64, k // 4), known, some)
            indices[some], distances[some] = again.indices, again.distances
            uncertain = uncertain[again.uncertain]
        return Found(indices, distances, uncertain)

    def download(self, found: Found) -> tuple[Any, Array, IntArray]:
        """The same as arrays of the host, of which the device keeps its copies."""
        copies = found.indices.astype(np.intp), found.distances
        indices, distances = map(self.device.host, copies)
        if not len(found.uncertain):  # else some rows will change
            for part, copy in zip((indices, distances), copies, strict=True):
                self.device.hold(part, copy)
        return indices, distances, found.uncertain

    def _nearest(
        self, X: Array, k: int, n_candidates: int, own: Array | None, rows: Array | None
    ) -> Found:
        """Search once for all queries by fast products, or for `rows` of them by accurate ones."""
        device, accurate, whole = self.device, rows is not None, slice(None)
        n_candidates = min(n_candidates, len(self.X) - (own is not None))
        references = self.points(self.X, accurate)
        queries = references if X is self.X else self.points(X, accurate)
        some = whole if rows is None else rows
        queries, mine = queries.part(some), None if own is None else own[some]
        nominated = queries.rows, references.rows, n_candidates, mine, accurate
        candidates, squares = device.nearest(*nominated)
        lengths = device.distances(device.array(X)[some], device.array(self.X), candidates)
        indices, distances = device.sort_rows(candidates, lengths)
        indices, distances = indices[:, :k].copy(), distances[:, :k].copy()
        if n_candidates >= len(self.X) - (own is not None):
            return Found(indices, distances, np.empty(0, dtype=np.intp))
        reach = self._reach(queries, references, distances[:, -1] / self.frame.unit)
        certain = reach < squares[:, -1]  # false where products are not finite
        return Found(indices, distances, device.host(device.xp.flatnonzero(~certain)))

    def _reach(self, queries: FramedPoints, references: FramedPoints, radii: Array) -> Array:
        """Largest squares, as computed, of the points within `radii` of the queries."""
        xp = self.device.xp
        norms = xp.sqrt(queries.squares)
        # Tiny points are moved by at most `least`, others by a fraction of their norm.
        least = float(np.finfo(np.float32).tiny)
        fraction = xp.max(references.moved / (xp.sqrt(references.squares) + least))
        moved = queries.moved + fraction * (norms + queries.moved + radii + least) / (1 - fraction)
        farthest = radii + moved
        error = expansion_error(
            queries.squares, (norms + farthest) ** 2, self.X.shape[1], queries.rows.dtype
        )
        return farthest**2 + error

    def single(self) -> Array:
        """The reference points in coordinates of the frame, in single precision."""
        out = self.device.xp.empty(self.X.shape, dtype=np.float32)
        for block in row_blocks(len(self.X), self.X.shape[1], budget=2**26):
            out[block] = self._framed(self.device.array(self.X)[block])
        return out

    def points(self, X: Array, accurate: bool) -> FramedPoints:
        """FramedPoints in coordinates of the frame, as products take them."""
        xp, n = self.device.xp, len(X)
        if accurate:
            rows = self._framed(X)
            return FramedPoints(rows, xp.zeros(n), _row_squares(xp, rows))
        points, origin = self.device.array(X), self.device.array(self.frame.origin, keep=False)
        rounded = xp.empty(points.shape, dtype=np.float32)
        moved, squares = xp.empty(n), xp.empty(n)
        for block in row_blocks(n, X.shape[1], budget=2**26):
            exact = (points[block] - origin) * (1 / self.frame.unit)
            rounded[block] = part = short_factors(xp, exact.astype(np.float32))
            moved[block] = xp.sqrt(_row_squares(xp, exact - part))
            squares[block] = _row_squares(xp, part.astype(np.float64))
        return FramedPoints(rounded, moved, squares)

    def _framed(self, X: Array) -> Array:
        """The points in coordinates of the frame, in double precision."""
        origin = self.device.array(self.frame.origin, keep=False)
        return (self.device.array(X) - origin) * (1 / self.frame.unit)  # a power of two

    def within(self, X: Array, radii: Array) -> Iterator[tuple[IntArray, IntArray, Array]]:
        """Yield query, reference and distance of the pairs within `radii`, by blocks of queries.

        `radii`, (1,) or (n_reference,), are those of the reference points.
        """
        device, xp = self.device, self.device.xp
        queries, references = self._framed(X), self._framed(self.X)
        x_squares, y_squares = _row_squares(xp, queries), _row_squares(xp, references)
        wide = device.array(np.minimum(np.nextafter(radii, np.inf) / self.frame.unit, 1e150) ** 2)
        m, points, queried = X.shape[1], device.array(self.X), device.array(X)
        reach = device.array(np.broadcast_to(radii, len(self.X)).copy())
        for rows in row_blocks(len(X), len(self.X), self.pairs_per_block):
            error = expansion_error(x_squares[rows, None], y_squares, m)
            D = x_squares[rows, None] + y_squares - 2 * (queries[rows] @ references.T) - error
            pairs = xp.flatnonzero(wide >= D)
            i, j = (part.astype(np.int32) for part in xp.divmod(pairs, len(self.X)))
            lengths = device.distances(queried[rows], points, j, i)
            keep = lengths <= reach[j]
            query, reference = (device.host(part[keep]).astype(np.intp) for part in (i, j))
            yield query + rows.start, reference, device.host(lengths[keep])


def short_factors(xp: Any, X: Array) -> Array:
    """Single precision rounded to 11 significant bits."""
    half = 1 << (_DROPPED_BITS - 1)
    return ((X.view(xp.int32) + half) & -(1 << _DROPPED_BITS)).view(xp.float32)


def _row_squares(xp: Any, X: Array) -> Array:
    return xp.square(X).sum(axis=1)


def device_search(X: Matrix, queries: Matrix, frame: Callable[[], Frame]) -> DeviceSearch | None:
    """The search among `X` on the current device; None if it is to run on the CPU."""
    device = current_device()
    if device is None:
        return None
    if sparse.issparse(X) or sparse.issparse(queries):
        device.runs_on_host("the neighbor search", "the data are sparse; pass X.toarray()")
        return None
    # A copy in the type of the data, one in single precision, and norms.
    copied = 0 if device.held(X) is not None else X.dtype.itemsize * X.size
    what = f"the search for neighbors among {X.shape[0]} points of {X.shape[1]} features"
    device.plan(copied + 4.0 * X.size + 16.0 * X.shape[0], what, _FEWER)
    found = frame()
    if not _SAFE_UNIT < found.unit < 1 / _SAFE_UNIT:
        why = f"squares of data of size {found.unit:.0e} leave the range of numbers; rescale X"
        device.runs_on_host("the neighbor search", why)
        return None
    return DeviceSearch(device, X, found)


def frame_of(X: Matrix, *, robust: bool = True) -> Frame:
    """The frame of points, computed where they are."""
    device = current_device()
    if device is None or sparse.issparse(X):
        return Frame.of(X, robust=robust)
    points = device.array(X)
    extremes = device.host(device.xp.stack([points.min(axis=0), points.max(axis=0)]))
    total = device.host(points.sum(axis=0, dtype=np.float64))
    if not np.isfinite(total).all():
        return Frame.of(X, robust=robust)
    return Frame.of_statistics(X, total, *extremes, robust=robust)
