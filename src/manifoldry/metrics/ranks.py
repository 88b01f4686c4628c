"""How near a point's neighbours on one side, data or map, are on the other."""

from dataclasses import dataclass

import numpy as np

from manifoldry.metrics.distance_rows import DistanceRows, map_rows
from manifoldry.metrics.pair import Pair
from manifoldry.neighbors.base import smallest_entries
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class NeighborRanks:
    """The k nearest of some points on one side, and the rank that each has on the other.

    Parameters
    ----------
    ranks : array of shape (n_points, k)
        Rank, from 1 for the nearest, on the other side; columns in the order of the near side.
    points : array of shape (n_points,)
        The points.
    n : int
        How many points there are in all.
    """

    ranks: IntArray
    points: IntArray
    n: int

    @classmethod
    def of_map(cls, pair: Pair, k: int, points: IntArray) -> "NeighborRanks":
        """Ranks in the data of the nearest on the map."""
        return cls._between(pair.on_plane, pair.in_data, k, points)

    @classmethod
    def of_data(cls, pair: Pair, k: int, points: IntArray) -> "NeighborRanks":
        """Ranks on the map of the nearest in the data."""
        return cls._between(pair.in_data, pair.on_plane, k, points)

    @classmethod
    def _between(
        cls, near: DistanceRows, other: DistanceRows, k: int, points: IntArray
    ) -> "NeighborRanks":
        def ranks(block: IntArray) -> IntArray:
            chosen = smallest_entries(near.nearest_first(block), k)[0]
            return ranks_of(other.nearest_first(block), chosen)

        return cls(np.concatenate(map_rows(ranks, points, near.n)), points, near.n)

    def within(self, k: int) -> Array:
        """Share of each point's k nearest that are among its k nearest on the other side."""
        return (self.ranks[:, :k] <= k).mean(axis=1)

    def intrusion(self, k: int) -> Array:
        """How far beyond rank k each point's k nearest are, from 0 to 1 for the worst case."""
        beyond = np.maximum(self.ranks[:, :k] - k, 0).sum(axis=1)
        return np.asarray(beyond * 2.0 / (k * (2 * self.n - 3 * k - 1)))


def ranks_of(keys: Array, chosen: IntArray) -> IntArray:
    """Rank, from 1, of the chosen columns (n, k) of each row of keys; ties by column."""
    values = np.take_along_axis(keys, chosen, axis=1)
    ordered = np.sort(keys, axis=1)
    ranks = np.empty(chosen.shape, dtype=np.intp)
    for row, (own, mine) in enumerate(zip(ordered, values, strict=True)):
        ranks[row] = np.searchsorted(own, mine) + 1
        if (np.searchsorted(own, mine, side="right") > ranks[row]).any():
            ranks[row] += _equal_before(keys[row], chosen[row])
    return ranks


def _equal_before(keys: Array, columns: IntArray) -> IntArray:
    """Earlier columns with the same key as each of some columns."""
    return np.array([np.count_nonzero(keys[:c] == keys[c]) for c in columns])
