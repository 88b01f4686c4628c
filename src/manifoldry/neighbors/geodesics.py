"""Geodesic distances: shortest paths along a neighbor graph, also from new points."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry.neighbors.base import Edges, compress
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import canonical, plan_memory, power_of_two_scale, row_blocks

# scipy treats a length of zero as a missing edge; edges between duplicates get this length.
_ZERO_LENGTH = 1e-300


@dataclass(frozen=True, eq=False)
class Geodesics:
    """Geodesic distances from each training point to some targets, or to all points.

    Parameters
    ----------
    graph : NeighborGraph
        The graph of the training points; its edges are used in both directions.
    targets : array of shape (n_targets,)
        Indices of the target points.
    distances : array of shape (n_samples, n_targets)
        The distances; infinite between connected components.

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
        """Compute the distances to `targets`, by default to all points."""
        targets = np.arange(graph.n_reference) if targets is None else targets
        _plan(graph, len(targets))
        lengths, unit = edge_lengths(graph)
        return cls._of(graph, targets, dijkstra(lengths, indices=targets), unit)

    @classmethod
    def to_farthest(
        cls, graph: NeighborGraph, parts: list[IntArray], counts: list[int], starts: list[int]
    ) -> "Geodesics":
        """Compute the distances to targets chosen by farthest-point sampling.

        In part i, ``counts[i]`` targets are chosen: ``starts[i]``, then repeatedly the point
        farthest from those already chosen.
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

        Paths of a new point start with an edge to one of its neighbors; new points do not change
        the paths between training points. A new point identical to a training point has that
        point as a neighbor at distance zero.
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
        """Fill `out`, the rows of some new points, with the shortest path via a neighbor."""
        part = slice(indptr[0], indptr[-1])
        through = self.distances[edges.indices[part]] + edges.distances[part, None]
        filled = np.flatnonzero(np.diff(indptr))
        if len(filled):
            out[filled] = np.minimum.reduceat(through, indptr[filled] - indptr[0], axis=0)


def farthest_points(
    lengths: sparse.csr_array, rows: IntArray, count: int, start: int
) -> tuple[IntArray, Array]:
    """Return points chosen from `rows` by farthest-point sampling and their distances, (count, n).

    The first is `start`; each next point is the one farthest from those already chosen.
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
    """Symmetric edge lengths divided by a power of two, and that unit; zeros become tiny."""
    unit = power_of_two_scale(graph.distances)
    lengths = graph.matrix(np.maximum(graph.distances / unit, _ZERO_LENGTH))
    # Older versions of scipy's graph routines require 32-bit indices.
    return canonical(sparse.csr_array(lengths.maximum(lengths.T))), unit


def _plan(graph: NeighborGraph, n_targets: int) -> None:
    n = graph.n_reference
    plan_memory(
        16.0 * n * n_targets,
        f"geodesic distances between {n} points and {n_targets} targets",
        "pass n_landmarks to use fewer targets",
    )
