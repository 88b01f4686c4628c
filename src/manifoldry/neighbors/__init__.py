"""Neighbour graphs: exact search, radius and k-nearest graphs, disconnected graphs."""

from manifoldry.neighbors.base import Edges, NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.disconnected import DisconnectedPolicy
from manifoldry.neighbors.graph import NeighborGraph

__all__ = ["DisconnectedPolicy", "Edges", "NeighborGraph", "NeighborIndex", "choose_index"]
