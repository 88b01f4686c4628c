"""Find edges that short-circuit a manifold: few edges that many shortest paths depend on."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from manifoldry._typing import Array, IntArray
from manifoldry._validation import canonical, spread_rows
from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.graph import NeighborGraph

_SOURCES = 16  # starting points of the paths that are looked at
_CANDIDATES = 12  # busiest points whose removal is tried
_DETOUR = 5.0  # a way round this many times as long means that a gap was crossed
_CHANGE = 0.1  # relative change of a geodesic that counts when single edges are removed
_CROWD = 100  # a point with more neighbours is on too many paths to mean anything
_FEWEST = 4  # neighbours below which sheets come apart by chance
# Fewer neighbours lengthen all geodesics a little; crossings of a gap show in a few that double.
_DOUBLED, _USUAL, _UNREACHED = 0.05, 1.3, 0.02


@dataclass(frozen=True, eq=False)
class ShortCircuits:
    """Edges across gaps, and what leaving them out would do.

    A point that alone joins two layers is found among those that many shortest paths run through;
    a multitude of crossings by comparing with the same graph cut down to fewer neighbours. Two or
    three stray points side by side in one gap escape both.

    Parameters
    ----------
    edges : array of shape (n_edges, 2)
        Single suspicious edges.
    changed : float
        Share of geodesics that change by more than a tenth when those edges are removed.
    sound_neighbors : int or None
        A number of neighbours with which many geodesics are more than twice as long, though most
        hardly change; None if there is none.
    doubled : float
        The share of geodesics that are.

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
    sound_neighbors: int | None
    doubled: float

    @classmethod
    def of(cls, graph: NeighborGraph) -> "ShortCircuits":
        """Look for short circuits in a connected graph."""
        lengths, unit = edge_lengths(graph)
        sources = spread_rows(graph.n_query, _SOURCES)
        before, predecessors = dijkstra(lengths, indices=sources, return_predecessors=True)
        sound, doubled = _with_fewer_neighbors(graph, sources, before * unit)
        busiest = np.argsort(-_load(predecessors), kind="stable")[:_CANDIDATES]
        found = [edge for point in busiest for edge in _crossings(lengths, int(point))]
        if not found:
            return cls(np.empty((0, 2), dtype=np.intp), 0.0, sound, doubled)
        edges = np.unique(np.sort(np.array(found), axis=1), axis=0)
        after = dijkstra(_without_edges(lengths, edges), indices=sources)
        return cls(edges, _changed(before, after), sound, doubled)


def _with_fewer_neighbors(
    graph: NeighborGraph, sources: IntArray, before: Array
) -> tuple[int | None, float]:
    """The most neighbours, of half as many, a quarter, ..., without which gaps were crossed."""
    k = (graph.n_neighbors or 0) // 2
    while k >= _FEWEST:
        lengths, unit = edge_lengths(graph.truncate(k))
        known = np.isfinite(before) & (before > 0)
        stretch = dijkstra(lengths, indices=sources)[known] * unit / before[known]
        reached = np.isfinite(stretch)
        if reached.mean() < 1 - _UNREACHED or np.median(stretch[reached]) > _USUAL:
            break
        doubled = float((stretch[reached] > 2).mean())
        if doubled > _DOUBLED:
            return k, doubled
        k //= 2
    return None, 0.0


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
    if len(neighbors) > _CROWD:
        return []
    rest = _without_point(lengths, point)
    through = steps[:, None] + steps[None, :]
    around = dijkstra(rest, indices=neighbors, limit=_DETOUR * through.max())[:, neighbors]
    far = around > _DETOUR * through
    if not far.any():
        return []
    # Two sides of a gap: whoever is near the nearest neighbour, and the others.
    side = ~far[int(np.argmin(steps))]
    component = connected_components(rest, directed=False)[1][neighbors]
    if not np.intersect1d(component[side], component[~side]).size:
        return []  # a bridge: without the point the graph falls apart, so nothing is cut short
    fewer = side if side.sum() < (~side).sum() else ~side
    return [(point, int(other)) for other in neighbors[fewer]]


def _without_point(lengths: sparse.csr_array, point: int) -> sparse.csr_array:
    keep = np.ones(lengths.shape[0])
    keep[point] = 0.0
    out = sparse.csr_array(sparse.diags_array(keep) @ lengths @ sparse.diags_array(keep))
    out.eliminate_zeros()
    return canonical(out)


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
