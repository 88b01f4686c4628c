"""Neighbor search, k-nearest-neighbor and radius graphs, connected components, short circuits."""

from manifoldry.neighbors.base import Edges, NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.disconnected import DisconnectedPolicy
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.short_circuits import (
    ShortCircuitOptions,
    ShortCircuits,
    find_short_circuits,
)

__all__ = [
    "DisconnectedPolicy",
    "DistributedGraph",
    "Edges",
    "NeighborGraph",
    "NeighborIndex",
    "ShortCircuitOptions",
    "ShortCircuits",
    "choose_index",
    "find_short_circuits",
]
