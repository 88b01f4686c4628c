"""The edges of a neighbor graph one by one: which to trust, and how far it is round them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree

from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.paths import Mask
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import canonical, row_blocks, split_by_label


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Every edge of a graph once, whichever end chose it.

    Parameters
    ----------
    ends : array of shape (n_edges, 2)
        The two points, the lower one first; edges in ascending order.
    lengths : array of shape (n_edges,)
        How far they are apart, in a unit of their own.
    spacing : array of shape (n_edges,)
        What a way round is compared with: the length, but no less than the distance at which the
        end in the denser place has its seventh neighbor.
    trusted : array of shape (n_edges,)
        Whether each end is among the seven nearest of the other, or both coincide: edges that
        reach across a gap hardly ever are, for there one end finds plenty of neighbors nearby.
    n : int
        Number of points.
    """

    ends: IntArray
    lengths: Array
    spacing: Array
    trusted: Mask
    n: int

    @classmethod
    def of(
        cls, graph: NeighborGraph, *, nearest: int = 7, duplicate_below: float = 1e-3
    ) -> "EdgeList":
        """List the edges of the graph of the training points.

        Neighbors that choose each other among their `nearest` belong together; points closer than
        the fraction `duplicate_below` of the usual spacing count as copies.
        """
        matrix, unit = edge_lengths(graph)
        upper = sparse.coo_array(sparse.triu(matrix, 1))
        ends = np.column_stack([upper.row, upper.col]).astype(np.int64)
        scale = _distance_of_rank(graph, nearest) / unit
        typical = np.median(scale[scale > 0]) if scale.any() else 1.0
        denser = np.maximum(scale, duplicate_below * typical)[ends].min(axis=1)
        spacing, coincide = np.maximum(upper.data, denser), upper.data <= duplicate_below * denser
        edges = cls(ends, upper.data, spacing, coincide, graph.n_query)
        edges.trusted[np.searchsorted(edges.codes, edges.codes_of(_mutual(graph, nearest)))] = True
        return edges

    def matrix(self, kept: Mask, lengths: Array | None = None) -> sparse.csr_array:
        """Symmetric lengths of the edges that are kept."""
        i, j = self.ends[kept].T
        data = (self.lengths if lengths is None else lengths)[kept]
        entries = (np.concatenate([data, data]), (np.concatenate([i, j]), np.concatenate([j, i])))
        return canonical(sparse.csr_array(sparse.coo_array(entries, shape=(self.n, self.n))))

    def with_spanning_edges(self, trusted: Mask, kept: Mask) -> Mask:
        """Trusted edges, and of the other kept ones the shortest that connect what those do not."""
        weights = np.where(trusted, self.lengths.min() * 1e-6, self.lengths)
        tree = sparse.coo_array(minimum_spanning_tree(self.matrix(kept, weights)))
        tree_edges = np.sort(np.column_stack([tree.row, tree.col]), axis=1)
        joined = trusted & kept
        joined[np.searchsorted(self.codes, self.codes_of(tree_edges))] = True
        return joined

    def not_within_steps(
        self, rows: IntArray, graph: sparse.csr_array, max_steps: int, work: float = 1e8
    ) -> IntArray:
        """Those of some edges whose ends are more than so many steps apart along a graph.

        Where every point has many neighbors fewer steps are tried: looking for paths is faster
        than so many products as `work`.
        """
        ones = np.ones(graph.nnz, dtype=np.float32)
        step = sparse.csr_array((ones, graph.indices, graph.indptr), shape=graph.shape)
        for steps in range(2, max_steps + 1):
            if len(rows) * (graph.nnz / self.n) ** steps <= work:
                rows = rows[~self._within_steps(rows, step, steps)]
        return rows

    def _within_steps(self, rows: IntArray, step: sparse.csr_array, steps: int) -> Mask:
        """Whether just so many steps lead from one end to the other."""
        out = np.zeros(len(rows), dtype=bool)
        degree = step.nnz / self.n
        for block in row_blocks(len(rows), int(degree**steps) + 1):
            paths = step[self.ends[rows[block], 0]]
            for _ in range(steps - 1):
                paths = paths @ step
            places = np.arange(paths.shape[0])
            out[block] = np.asarray(paths[places, self.ends[rows[block], 1]]).ravel() > 0
        return out

    def path_lengths(self, rows: IntArray, graph: sparse.csr_array, limit: float = np.inf) -> Array:
        """Length of the way between the ends of some edges along a graph; infinite past `limit`.

        The limit counts in units of each edge's spacing.
        """
        out = np.full(len(rows), np.inf)
        if len(rows) == 0:
            return out
        start, end = self._oriented(rows)
        sources, label = np.unique(start, return_inverse=True)
        members = split_by_label(label)
        for block in row_blocks(len(sources), self.n, budget=2**22):
            part = np.concatenate(members[block])
            farthest = limit * self.spacing[rows[part]].max()
            D = dijkstra(graph, indices=sources[block], limit=farthest)
            out[part] = D[label[part] - block.start, end[part]]
        return np.where(out <= limit * self.spacing[rows], out, np.inf)

    def _oriented(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Ends of some edges, first the one that more of them share: there are fewer such."""
        i, j = self.ends[rows].T
        shared = np.bincount(self.ends[rows].ravel(), minlength=self.n)
        swap = shared[j] > shared[i]
        return np.where(swap, j, i), np.where(swap, i, j)

    @cached_property
    def codes(self) -> IntArray:
        """A number for every edge."""
        return self.codes_of(self.ends)

    def codes_of(self, ends: IntArray) -> IntArray:
        """Numbers of edges given by their ends, the lower first."""
        return np.asarray(ends[:, 0].astype(np.int64) * self.n + ends[:, 1])


def _rank(graph: NeighborGraph) -> IntArray:
    """Place of every edge in its row, the nearest neighbor's being 0."""
    return np.asarray(np.arange(len(graph.indices)) - graph.indptr[:-1][graph.rows])


def _distance_of_rank(graph: NeighborGraph, rank: int) -> Array:
    """Distance from every point to its rank-th neighbor, or to the last; 0 without any."""
    counts = np.diff(graph.indptr)
    place = graph.indptr[:-1] + np.minimum(counts, rank) - 1
    out = np.zeros(graph.n_query)
    out[counts > 0] = graph.distances[place[counts > 0]]
    return out


def best_rank(graph: NeighborGraph, ends: IntArray) -> IntArray:
    """Place of some edges in the row, of the two, in which they come first; the nearest's is 0."""
    n, rank = graph.n_query, _rank(graph)
    i, j = np.minimum(graph.rows, graph.indices), np.maximum(graph.rows, graph.indices)
    order = np.lexsort((rank, i * n + j))
    codes = (i * n + j)[order]
    return np.asarray(rank[order][np.searchsorted(codes, ends[:, 0] * n + ends[:, 1])])


def _mutual(graph: NeighborGraph, nearest: int) -> IntArray:
    """Pairs of points, the lower first, each of which is among the nearest of the other."""
    near = graph.matrix((_rank(graph) < nearest).astype(np.float64))
    near.eliminate_zeros()
    both = sparse.coo_array(sparse.triu(near.multiply(near.T), 1))
    return np.column_stack([both.row, both.col])
