"""Find edges that short-circuit a manifold: few edges that many shortest paths depend on."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry._typing import Array, IntArray
from manifoldry._validation import spread_rows
from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.graph import NeighborGraph

_SOURCES = 16  # starting points of the paths that are looked at
_CANDIDATES = 12  # busiest points whose removal is tried
_DETOUR = 5.0  # a way round this many times as long means that the edge crossed a gap
_CHANGE = 0.1  # relative change of a geodesic that counts


@dataclass(frozen=True, eq=False)
class ShortCircuits:
    """Edges across gaps, and what removing them would do.

    Parameters
    ----------
    edges : array of shape (n_edges, 2)
        The suspicious edges.
    changed : float
        Share of geodesics that change by more than a tenth when those edges are removed.

    Examples
    --------
    A horseshoe whose ends almost touch, and one point in the gap:

    >>> import numpy as np
    >>> from manifoldry.neighbors import NeighborGraph
    >>> angle = np.linspace(0.2, 2 * np.pi - 0.2, 200)
    >>> X = np.vstack([np.column_stack([np.cos(angle), np.sin(angle)]), [[1.0, 0.0]]])
    >>> int(ShortCircuits.of(NeighborGraph.build(X, 4)).edges.max())
    200
    """

    edges: IntArray
    changed: float

    @classmethod
    def of(cls, graph: NeighborGraph) -> "ShortCircuits":
        """Look for short circuits in a connected graph."""
        lengths, _ = edge_lengths(graph)
        sources = spread_rows(graph.n_query, _SOURCES)
        before, predecessors = dijkstra(lengths, indices=sources, return_predecessors=True)
        busiest = np.argsort(-_load(predecessors), kind="stable")[:_CANDIDATES]
        found = [edge for point in busiest for edge in _crossings(lengths, int(point))]
        if not found:
            return cls(np.empty((0, 2), dtype=np.intp), 0.0)
        edges = np.unique(np.sort(np.array(found), axis=1), axis=0)
        after = dijkstra(_without_edges(lengths, edges), indices=sources)
        return cls(edges, _changed(before, after))


def _load(predecessors: IntArray) -> Array:
    """How many of the shortest paths run through or end in every point.

    The paths from one source are a tree; all trees are gone through together, from the outermost
    level inwards, each point passing its count to its parent.
    """
    n_trees, n = predecessors.shape
    itself = np.arange(n_trees * n)
    offset = np.repeat(np.arange(n_trees) * n, n)
    parent = np.where(predecessors.ravel() >= 0, predecessors.ravel() + offset, itself)
    depth = _depth(parent)
    count = np.ones(n_trees * n)
    levels = np.split(np.argsort(depth, kind="stable"), np.cumsum(np.bincount(depth))[:-1])
    for level in levels[:0:-1]:
        np.add.at(count, parent[level], count[level])
    return np.asarray(np.where(depth > 0, count, 0.0).reshape(n_trees, n).sum(axis=0))


def _depth(parent: IntArray) -> IntArray:
    """Steps from every node of a forest to its root, which is its own parent."""
    depth = (parent != np.arange(len(parent))).astype(np.intp)
    while (beyond := depth[parent]).any():
        depth, parent = depth + beyond, parent[parent]
    return depth


def _crossings(lengths: sparse.csr_array, point: int) -> list[tuple[int, int]]:
    """Edges from a point to those of its neighbours that are far from the others without it."""
    part = slice(lengths.indptr[point], lengths.indptr[point + 1])
    neighbors, steps = lengths.indices[part], lengths.data[part]
    around = dijkstra(_without_point(lengths, point), indices=neighbors)[:, neighbors]
    through = steps[:, None] + steps[None, :]
    far = around > _DETOUR * through
    if not far.any():
        return []
    # Two sides of a gap: whoever is near the nearest neighbour, and the others.
    side = ~far[int(np.argmin(steps))]
    if not np.isfinite(around[side][:, ~side]).any():
        return []  # a bridge: without the point the graph falls apart, so nothing is cut short
    fewer = side if side.sum() < (~side).sum() else ~side
    return [(point, int(other)) for other in neighbors[fewer]]


def _without_point(lengths: sparse.csr_array, point: int) -> sparse.csr_array:
    keep = np.ones(lengths.shape[0])
    keep[point] = 0.0
    out = sparse.csr_array(sparse.diags_array(keep) @ lengths @ sparse.diags_array(keep))
    out.eliminate_zeros()
    return out


def _without_edges(lengths: sparse.csr_array, edges: IntArray) -> sparse.csr_array:
    out = lengths.tolil(copy=True)
    out[edges[:, 0], edges[:, 1]] = 0.0
    out[edges[:, 1], edges[:, 0]] = 0.0
    pruned = sparse.csr_array(out)
    pruned.eliminate_zeros()
    return pruned


def _changed(before: Array, after: Array) -> float:
    known = np.isfinite(before) & (before > 0)
    return float((after[known] > (1 + _CHANGE) * before[known]).mean())
