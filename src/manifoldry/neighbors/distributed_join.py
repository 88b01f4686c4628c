"""The shortest edges that connect the components of a graph whose rows are on workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.distributed.blocks import row_numbers
from manifoldry.distributed.components import DistributedComponents
from manifoldry.distributed.scheduler import combined, delayed, persist
from manifoldry.neighbors.base import compress
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.disconnected import Bridge, shortest_bridges
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.util.typing import Array, IntArray, Matrix

# Points outside the largest component that one worker joins to it.
MOST_OUTSIDE = 10_000


class _Outside(NamedTuple):
    """The points that are not in the largest component."""

    positions: IntArray
    points: Array
    labels: IntArray  # of their components, from 1


class _Nearest(NamedTuple):
    """The nearest point of the largest component for each of some points."""

    distances: Array
    positions: IntArray
    points: Array


def can_join(components: DistributedComponents, n_samples: int) -> bool:
    """Whether the points outside the largest component are few enough for one worker.

    Parameters
    ----------
    components : DistributedComponents
        The components.
    n_samples : int
        Number of all points.

    Returns
    -------
    bool
        Whether they are at most 10 000.
    """
    return n_samples - components.sizes[0] <= MOST_OUTSIDE


def with_joined_components(
    graph: DistributedGraph, components: DistributedComponents
) -> DistributedGraph:
    """Return the graph with the shortest edges that connect its components, as in memory.

    The points outside the largest component are brought together on one worker. Each part finds
    the nearest of its points for all of them.

    Parameters
    ----------
    graph : DistributedGraph
        The graph.
    components : DistributedComponents
        Its components: at most 10 000 points are outside the largest.

    Returns
    -------
    DistributedGraph
        The graph with an edge less than there are components.
    """
    cut, join, search = delayed(_outside), delayed(_together), delayed(_nearest)
    starts = graph.order.bounds[:-1]
    parts = list(zip(graph.edges, graph.points, components.inside, starts, strict=True))
    [outside] = persist([join([cut(*part) for part in parts])])
    near = [search(*part[1:], outside, graph.metric) for part in parts]
    [bridges] = persist([delayed(_bridges)(outside, combined(near, _nearer), graph.metric)])
    add = delayed(_with_bridges)
    edges = persist(add(block, start, bridges) for block, _, _, start in parts)
    return replace(graph, edges=edges)


def _outside(
    edges: Matrix, points: Array, inside: Array, start: int
) -> tuple[IntArray, Array, Matrix]:
    rows = np.flatnonzero(np.logical_not(inside))
    return start + rows, points[rows], edges[rows]


def _together(parts: Sequence[tuple[IntArray, Array, Matrix]]) -> _Outside:
    """Points outside and their components, from edges which lead only to other such points."""
    positions, points = (np.concatenate(each) for each in list(zip(*parts, strict=True))[:2])
    ends = np.concatenate([block.indices for _, _, block in parts])
    counts = np.concatenate([np.diff(block.indptr) for _, _, block in parts])
    rows, columns = np.repeat(np.arange(len(counts)), counts), np.searchsorted(positions, ends)
    shape = (len(positions), len(positions))
    pattern = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    return _Outside(positions, points, connected_components(pattern, directed=False)[1] + 1)


def _nearest(points: Array, inside: Array, start: int, outside: _Outside, metric: str) -> _Nearest:
    rows, n = np.flatnonzero(inside), len(outside.positions)
    if len(rows) == 0:
        return _Nearest(np.full(n, np.inf), np.zeros(n, dtype=np.intp), outside.points)
    index = choose_index(points[rows], metric)
    found, distances = index.nearest(index.as_queries(outside.points), 1)
    at = rows[found[:, 0]]
    return _Nearest(distances[:, 0], start + at, points[at])


def _nearer(parts: list[_Nearest]) -> _Nearest:
    first = (
        np.argmin([part.distances for part in parts], axis=0),
        np.arange(len(parts[0].distances)),
    )
    return _Nearest(*(np.stack(each)[first] for each in zip(*parts, strict=True)))


def _bridges(outside: _Outside, nearest: _Nearest, metric: str) -> list[Bridge]:
    """The shortest edges between all components: only the nearest points matter of the largest."""
    positions, some = np.unique(nearest.positions, return_index=True)
    where = np.concatenate([outside.positions, positions])
    labels = np.concatenate([outside.labels, np.zeros(len(positions), dtype=np.intp)])
    index = choose_index(np.concatenate([outside.points, nearest.points[some]]), metric)
    found = shortest_bridges(index, labels)
    return [Bridge(int(where[i]), int(where[j]), length) for i, j, length in found]


def _with_bridges(edges: Matrix, start: int, bridges: list[Bridge]) -> Matrix:
    """The edges of a part and the bridges from its points; others have the way back."""
    here = [each for each in bridges if 0 <= each.i - start < edges.shape[0]]
    if not here:
        return edges
    own = row_numbers(edges)
    i, j, lengths = map(np.array, zip(*here, strict=True))
    rows, columns = np.concatenate([own, i - start]), np.concatenate([edges.indices, j])
    found = compress(rows, columns, np.concatenate([edges.data, lengths]), edges.shape[0])
    return sparse.csr_array((found.distances, found.indices, found.indptr), shape=edges.shape)
