"""Which points share a place on the map, because they coincide."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class Places:
    """Places on a map, numbered from zero, and who is there.

    Parameters
    ----------
    of_point : array of shape (n_points,)
        Place of every point; -1 where it is not on the map.
    """

    of_point: IntArray

    @classmethod
    def of(cls, graph: NeighborGraph, on_map: NDArray[np.bool_]) -> "Places":
        """Points joined by edges of no length share a place; `on_map` says which points count."""
        joined = graph.matrix((graph.distances == 0).astype(float))
        joined.eliminate_zeros()
        labels = connected_components(joined, directed=False)[1].astype(np.intp)
        place = np.full(len(labels), -1, dtype=np.intp)
        place[on_map] = np.unique(labels[on_map], return_inverse=True)[1]
        return cls(place)

    @cached_property
    def first(self) -> IntArray:
        """First point at every place."""
        places, first = np.unique(self.of_point, return_index=True)
        return np.asarray(first[places >= 0])

    @cached_property
    def mass(self) -> Array:
        """Number of points at every place."""
        return np.bincount(self.of_point[self.of_point >= 0]).astype(np.float64)

    def spread(self, Y: Array) -> Array:
        """A map of all points from one of the places; NaN where a point is not on it."""
        out = Y[self.of_point]
        out[self.of_point < 0] = np.nan
        return out
