"""Removal of edges from a neighbor graph."""

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry.neighbors.base import Edges, compress
from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.graph import NeighborGraph, replace_edges
from manifoldry.neighbors.removed_edges import RemovedEdges
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


def without_edges(graph: NeighborGraph, pairs: IntArray) -> NeighborGraph:
    """Return the training graph without some undirected edges.

    A point that loses one of its k neighbors gets the nearest other point along the graph instead,
    at its geodesic distance: all points keep k neighbors, as local methods require, and no other
    shortest path changes. In a radius graph the number of neighbors decreases.
    """
    if len(pairs) == 0:
        return graph
    n = graph.n_query
    removed = np.concatenate([pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]])
    edges = Edges(graph.indptr, graph.indices, graph.distances)
    left = edges.keep(~np.isin(edges.rows * n + edges.indices, removed))
    removed_edges = (
        RemovedEdges(pairs) if graph.removed_edges is None else graph.removed_edges.union(pairs)
    )
    pruned = replace(replace_edges(graph, left), removed_edges=removed_edges)
    if graph.n_neighbors is None:
        return pruned
    return replace_edges(pruned, _refilled(pruned, np.diff(graph.indptr)))


def _refilled(graph: NeighborGraph, counts: IntArray, zero_below: float = 1e-200) -> Edges:
    """Return the edges, with rows shorter than `counts` filled up by the nearest along the graph.

    Lengths below `zero_below` belong to edges between duplicates and become zero.
    """
    lengths, unit = edge_lengths(graph)
    short = np.flatnonzero(np.diff(graph.indptr) < counts)
    rows, columns, found = [graph.rows], [graph.indices], [graph.distances]
    for block in row_blocks(len(short), graph.n_query, budget=2**22):
        neighbor_radius = float(graph.neighbor_radius[short[block]].max()) / unit
        paths = _distances_to_enough(lengths, short[block], counts[short[block]], neighbor_radius)
        for i, D in zip(short[block], paths, strict=True):
            new = _next_nearest(graph, i, D, int(counts[i]))
            rows.append(np.full(len(new), i))
            columns.append(new)
            found.append(np.where(D[new] < zero_below, 0.0, D[new]) * unit)
    distances: Array = np.concatenate(found)
    return compress(np.concatenate(rows), np.concatenate(columns), distances, graph.n_query)


def _distances_to_enough(
    lengths: sparse.csr_array,
    rows: IntArray,
    counts: IntArray,
    neighbor_radius: float,
    growth: float = 2.0,
) -> Array:
    """Geodesic distances from `rows` to more than twice `counts` other points each.

    The search radius is multiplied by `growth` until enough points are found.
    """
    limit, farthest = growth * neighbor_radius, float(lengths.sum())
    while True:
        D = np.asarray(dijkstra(lengths, indices=rows, limit=limit))
        if limit > farthest or (np.isfinite(D).sum(axis=1) > 2 * counts).all():
            return D
        limit *= growth


def _next_nearest(graph: NeighborGraph, i: int, D: Array, count: int) -> IntArray:
    """Points nearest to `i` along the graph, except its neighbors and those with removed edges."""
    own = graph.indices[graph.indptr[i] : graph.indptr[i + 1]]
    assert graph.removed_edges is not None  # set by without_edges
    nearest = np.argsort(D, kind="stable")
    free = ~np.isin(
        nearest, np.concatenate([[i], own, graph.removed_edges.neighbors_removed_from(i)])
    )
    return nearest[free & np.isfinite(D[nearest])][: count - len(own)]
