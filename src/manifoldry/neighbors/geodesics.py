"""Shortest paths along a neighbor graph, and from new points that may not shorten them."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry.neighbors.base import Edges, compress
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import canonical, plan_memory, power_of_two_scale, row_blocks

# scipy's graphs take a length of zero for a missing edge; duplicates get this instead.
_ZERO_LENGTH = 1e-300


@dataclass(frozen=True, eq=False)
class Geodesics:
    """Distances along the graph from every training point to some targets, or to all.

    Parameters
    ----------
    graph : NeighborGraph
        The graph of the training points; an edge counts whichever end chose it.
    targets : array of shape (n_targets,)
        Training points the distances lead to.
    distances : array of shape (n_samples, n_targets)
        The distances; infinite between components.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.neighbors import NeighborGraph
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [3.0], [6.0]]), n_neighbors=1)
    >>> Geodesics.of(graph).distances[0]
    array([0., 1., 3., 6.])
    """

    graph: NeighborGraph
    targets: IntArray
    distances: Array

    @classmethod
    def of(cls, graph: NeighborGraph, targets: IntArray | None = None) -> "Geodesics":
        """Find the shortest paths to `targets`; by default to all points."""
        targets = np.arange(graph.n_reference) if targets is None else targets
        _plan(graph, len(targets))
        lengths, unit = edge_lengths(graph)
        return cls._of(graph, targets, dijkstra(lengths, indices=targets), unit)

    @classmethod
    def to_farthest(
        cls, graph: NeighborGraph, parts: list[IntArray], counts: list[int], starts: list[int]
    ) -> "Geodesics":
        """Find paths to targets that cover each of some parts of the graph evenly.

        In part i, ``counts[i]`` targets are chosen: ``starts[i]``, and then always the point
        farthest from those before it.
        """
        _plan(graph, sum(counts))
        lengths, unit = edge_lengths(graph)
        chosen = [
            farthest_points(lengths, rows, count, start)
            for rows, count, start in zip(parts, counts, starts, strict=True)
        ]
        targets, found = (np.concatenate(column) for column in zip(*chosen, strict=True))
        order = np.argsort(targets)
        return cls._of(graph, targets[order], found[order], unit)

    @classmethod
    def _of(cls, graph: NeighborGraph, targets: IntArray, found: Array, unit: float) -> "Geodesics":
        found *= unit
        return cls(graph, targets, np.ascontiguousarray(found.T))

    def from_new(self, X: Matrix) -> Array:
        """Distances from new points to the targets, (n_new, n_targets).

        A new point enters through its neighbors only, so no path between training points can
        become shorter through it. One identical to a training point has that point among its
        neighbors, at distance zero.
        """
        own, reverse = self.graph.query(X)
        known = self.graph.identical(X)
        identical_rows = np.flatnonzero(known >= 0)
        edges = compress(
            np.concatenate([own.rows, reverse.rows, identical_rows]),
            np.concatenate([own.indices, reverse.indices, known[identical_rows]]),
            np.concatenate([own.distances, reverse.distances, np.zeros(len(identical_rows))]),
            own.n_query,
        )
        out = np.full((own.n_query, len(self.targets)), np.inf)
        most = int(np.diff(edges.indptr).max(initial=1))
        for block in row_blocks(own.n_query, most * len(self.targets)):
            self._via_neighbors(out[block], edges.indptr[block.start : block.stop + 1], edges)
        return out

    def _via_neighbors(self, out: Array, indptr: IntArray, edges: Edges) -> None:
        """Fill `out`, the rows of some new points, with the best way through a neighbor."""
        part = slice(indptr[0], indptr[-1])
        through = self.distances[edges.indices[part]] + edges.distances[part, None]
        filled = np.flatnonzero(np.diff(indptr))
        if len(filled):
            out[filled] = np.minimum.reduceat(through, indptr[filled] - indptr[0], axis=0)


def farthest_points(
    lengths: sparse.csr_array, rows: IntArray, count: int, start: int
) -> tuple[IntArray, Array]:
    """Points that cover `rows` evenly, and their distances from all, (count, n).

    The first is `start`, each next the point of `rows` that is farthest from those before it.
    """
    targets = [start]
    found = [dijkstra(lengths, indices=start)]
    nearest = found[0][rows]
    for _ in range(count - 1):
        targets.append(int(rows[np.argmax(nearest)]))
        found.append(dijkstra(lengths, indices=targets[-1]))
        nearest = np.minimum(nearest, found[-1][rows])
    return np.array(targets), np.array(found)


def edge_lengths(graph: NeighborGraph) -> tuple[sparse.csr_array, float]:
    """Symmetric edge lengths in a unit of their own, and the unit; zeros made tiny."""
    unit = power_of_two_scale(graph.distances)
    lengths = graph.matrix(np.maximum(graph.distances / unit, _ZERO_LENGTH))
    # Short indices: older versions of scipy's graph routines take no others.
    return canonical(sparse.csr_array(lengths.maximum(lengths.T))), unit


def _plan(graph: NeighborGraph, n_targets: int) -> None:
    n = graph.n_reference
    plan_memory(
        16.0 * n * n_targets,
        f"geodesic distances between {n} points and {n_targets} targets",
        "pass n_landmarks to compute fewer of them",
    )
