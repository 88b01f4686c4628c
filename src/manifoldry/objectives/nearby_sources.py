"""The points that matter for kernel sums at some positions, found for tiles of nearby positions."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from manifoldry.util.cached import cached_property
from manifoldry.util.threads import thread_count
from manifoldry.util.typing import Array, IntArray


class Tile(NamedTuple):
    """Some positions near each other, and how far their sources may be."""

    rows: IntArray
    """Indices of the positions."""
    low: Array
    """Smallest coordinates, (d,)."""
    high: Array
    """Largest coordinates, (d,)."""
    radius: float
    """Largest distance of a source from the box from `low` to `high`."""


@dataclass(frozen=True, eq=False)
class NearbySources:
    """Finds all points whose squared distance exceeds that of the nearest by `reach` at most.

    Positions are divided into tiles, whose sources are found together: matrix products over a tile
    are faster than loops over the sources of each position, although they have more sources.

    Parameters
    ----------
    Y : array of shape (n, d)
        The points.
    reach : float
        Squared distance beyond that of the nearest point.
    max_rows : int, default=128
        Largest number of positions in a tile; 64 to 256 are equally fast.
    max_extent : float, default=4.0
        Largest side of a tile, relative to the usual distance of the farthest sources.
    """

    Y: Array
    reach: float
    max_rows: int = 128
    max_extent: float = 4.0

    def tiles(self, Z: Array, *, leave_one_out: bool = False) -> list[Tile]:
        """Divide positions `Z` into tiles, with the nearest point of each but the point itself."""
        k = 2 if leave_one_out else 1
        distances = self._tree.query(Z, k=[k], workers=thread_count())[0][:, 0]
        # Isolated positions have many sources, so they form tiles of their own.
        isolated = distances**2 > self.reach
        groups = np.flatnonzero(~isolated), np.flatnonzero(isolated)
        leaves = chain.from_iterable(self._leaves(Z, rows, distances) for rows in groups)
        return [self._tile(rows, Z[rows], float(distances[rows].max())) for rows in leaves]

    def find(self, tile: Tile) -> IntArray:
        """Sources of a tile, in ascending order."""
        center, half = (tile.low + tile.high) / 2, (tile.high - tile.low) / 2
        found = self._tree.query_ball_point(center, tile.radius + float(np.linalg.norm(half)))
        sources = np.sort(np.array(found, dtype=np.intp))
        outside = np.maximum(np.abs(self.Y[sources] - center) - half, 0.0)
        return sources[(outside**2).sum(axis=1) <= tile.radius**2]

    def _leaves(self, Z: Array, rows: IntArray, distances: Array) -> Iterator[IntArray]:
        """Halve the rows along their longest axis until they are few and near each other."""
        if len(rows) == 0:
            return
        longest = self.max_extent * float(np.sqrt(np.median(distances[rows]) ** 2 + self.reach))
        remaining = [rows]
        while remaining:
            rows = remaining.pop()
            extents = np.ptp(Z[rows], axis=0)
            axis, middle = int(np.argmax(extents)), len(rows) // 2
            if len(rows) <= self.max_rows and not extents[axis] > longest:
                yield rows
                continue
            order = np.argpartition(Z[rows, axis], middle)
            remaining += [rows[order[middle:]], rows[order[:middle]]]

    def _tile(self, rows: IntArray, positions: Array, farthest: float) -> Tile:
        # A little more, so that rounding does not exclude the nearest point.
        radius = 1.000001 * float(np.sqrt(farthest**2 + self.reach))
        return Tile(rows, positions.min(axis=0), positions.max(axis=0), radius)

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.Y)
