"""The list of undirected edges of a neighbor graph, with lengths of paths between their ends."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra, minimum_spanning_tree

from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.paths import COMPILE_ABOVE_POINTS, Mask
from manifoldry.neighbors.step_balls import StepBalls
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import run_on_rows
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import canonical, row_blocks, split_by_label


@dataclass(frozen=True, eq=False)
class EdgeList:
    """The undirected edges of a neighbor graph, each once.

    Parameters
    ----------
    ends : array of shape (n_edges, 2)
        The two points of each edge, lower index first; edges in lexicographic order.
    lengths : array of shape (n_edges,)
        Lengths, scaled by a power of two.
    spacing : array of shape (n_edges,)
        Reference length for detours: the length of the edge, but at least the smaller of the
        distances from its ends to their seventh neighbors.
    trusted : array of shape (n_edges,)
        Whether each end is among the seven nearest neighbors of the other, or both coincide.
        Short-circuit edges hardly ever are, since their ends have nearer neighbors.
    n : int
        Number of points.
    compile_above : int, default=3000
        Number of points above which paths are searched by compiled code.
    """

    ends: IntArray
    lengths: Array
    spacing: Array
    trusted: Mask
    n: int
    compile_above: int = COMPILE_ABOVE_POINTS

    @classmethod
    def of(
        cls, graph: NeighborGraph, *, nearest: int = 7, duplicate_below: float = 1e-3
    ) -> "EdgeList":
        """Return the edges of the training graph.

        Edges between mutual neighbors among the `nearest` are trusted. Points closer than
        `duplicate_below` times the median spacing count as duplicates.
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
        """Symmetric sparse matrix of the lengths of the edges in the mask `kept`."""
        edge = self._edge_of_entry
        lengths = self.lengths if lengths is None else lengths
        if self._is_large:
            from manifoldry.neighbors.compiled import select_entries

            count = 2 * int(kept.sum())
            starts, indices = np.zeros(self.n + 1, np.int32), np.empty(count, edge.indices.dtype)
            data = np.empty(count)
            select_entries(
                edge.indptr, edge.indices, edge.data, lengths, kept, starts, indices, data
            )
        else:
            stored = kept[edge.data]
            starts = np.concatenate([[0], np.cumsum(stored)]).astype(np.int32)[edge.indptr]
            indices, data = edge.indices[stored], lengths[edge.data[stored]]
        return sparse.csr_array((data, indices, starts), shape=edge.shape)

    def parts(self, kept: Mask) -> IntArray:
        """Label of each point, equal if edges in the mask `kept` connect the points.

        Labels increase with the lowest index of the connected points.
        """
        if self._is_large:
            from manifoldry.neighbors.compiled import join

            parts = np.arange(self.n)
            join(self.ends, kept, parts)
            return parts
        labels: IntArray = connected_components(self.matrix(kept), directed=False)[1]
        return labels

    @cached_property
    def _edge_of_entry(self) -> sparse.csr_array:
        """Symmetric sparse matrix of the indices of all edges."""
        (i, j), number = self.ends.T, np.arange(len(self.ends))
        ends = np.concatenate([i, j]), np.concatenate([j, i])
        entries = (np.concatenate([number, number]), ends)
        return canonical(sparse.csr_array(sparse.coo_array(entries, shape=(self.n, self.n))))

    def with_spanning_edges(self, trusted: Mask, kept: Mask) -> Mask:
        """Mask of trusted edges plus the shortest other edges in `kept` that connect the graph."""
        weights = np.where(trusted, self.lengths.min() * 1e-6, self.lengths)
        # Other edges within a connected part of the trusted graph connect nothing.
        part = self.parts(trusted & kept)[self.ends]
        kept = kept & (trusted | (part[:, 0] != part[:, 1]))
        tree = sparse.coo_array(minimum_spanning_tree(self.matrix(kept, weights)))
        tree_edges = np.sort(np.column_stack([tree.row, tree.col]), axis=1)
        joined = trusted & kept
        joined[np.searchsorted(self.codes, self.codes_of(tree_edges))] = True
        return joined

    def not_within_steps(
        self, rows: IntArray, graph: sparse.csr_array, max_steps: int, work: float = 1e8
    ) -> IntArray:
        """Return the edges (of `rows`) whose ends no path of at most `max_steps` edges connects.

        In graphs of high degree fewer steps are tried, to limit the number of operations to about
        `work`; the result is then a superset.
        """
        balls = StepBalls(graph)
        for steps in range(2, max_steps + 1):
            if len(rows) and len(rows) * (graph.nnz / self.n) ** steps <= work:
                start, end = np.ascontiguousarray(self.ends[rows].T)
                if self._is_large:
                    within = self._within_steps(start, end, graph, steps)
                else:
                    within = balls.connects(start, end, steps)
                rows = rows[~within]
        return rows

    def _within_steps(
        self, start: IntArray, end: IntArray, graph: sparse.csr_array, steps: int
    ) -> Mask:
        """Like `StepBalls.connects`, in compiled code.

        Shorter paths may count or not, as they have been excluded before.
        """
        from manifoldry.neighbors.compiled import within_steps

        out = np.zeros(len(start), dtype=bool)
        arguments = graph.indptr, graph.indices, start, end, steps, out

        def search(first: int, last: int) -> None:
            mark, queue = np.full((2, self.n), -1), np.empty((2, self.n), dtype=np.intp)
            within_steps(*arguments, mark, queue, np.empty((2, 2), np.intp), first, last)

        run_on_rows(search, len(start))
        return out

    def path_lengths(
        self,
        rows: IntArray,
        graph: sparse.csr_array,
        limit: float = np.inf,
        shortest: bool = True,
    ) -> Array:
        """Length of the shortest path in `graph` between the ends of each edge of `rows`.

        Infinite if it exceeds `limit` times the spacing of the edge. Unless `shortest`, it may be
        the length of any path within the limit, which is found sooner.
        """
        out = np.full(len(rows), np.inf)
        if len(rows) == 0:
            return out
        if self._is_large:
            from manifoldry.neighbors.compiled import path_lengths

            start, end = np.ascontiguousarray(self.ends[rows].T)
            limits = limit * self.spacing[rows]
            arguments = graph.indptr, graph.indices, graph.data, start, end, limits, shortest, out

            def search(first: int, last: int) -> None:
                reached, nodes = np.full((2, self.n), np.inf), np.empty((3, 2, self.n), np.int32)
                path_lengths(*arguments, reached, *nodes, np.empty((2, 2), np.intp), first, last)

            run_on_rows(search, len(rows))
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

    @property
    def _is_large(self) -> bool:
        return self.n > self.compile_above

    def _oriented(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Ends of the edges, first the one with more of these edges, to have few distinct ones."""
        i, j = self.ends[rows].T
        shared = np.bincount(self.ends[rows].ravel(), minlength=self.n)
        swap = shared[j] > shared[i]
        return np.where(swap, j, i), np.where(swap, i, j)

    @cached_property
    def codes(self) -> IntArray:
        """A unique integer for each edge."""
        return self.codes_of(self.ends)

    def codes_of(self, ends: IntArray) -> IntArray:
        """Unique integers of edges given by their ends, lower index first."""
        return np.asarray(ends[:, 0].astype(np.int64) * self.n + ends[:, 1])


def _rank(graph: NeighborGraph) -> IntArray:
    """Rank of each edge in its row; 0 for the nearest neighbor."""
    return np.asarray(np.arange(len(graph.indices)) - graph.indptr[:-1][graph.rows])


def _distance_of_rank(graph: NeighborGraph, rank: int) -> Array:
    """Distance from each point to its `rank`-th neighbor, or the last one; 0 without neighbors."""
    counts = np.diff(graph.indptr)
    place = graph.indptr[:-1] + np.minimum(counts, rank) - 1
    out = np.zeros(graph.n_query)
    out[counts > 0] = graph.distances[place[counts > 0]]
    return out


def best_rank(graph: NeighborGraph, ends: IntArray) -> IntArray:
    """Smaller of the two ranks that each edge has in the rows of its ends."""
    n, rank = graph.n_query, _rank(graph)
    i, j = np.minimum(graph.rows, graph.indices), np.maximum(graph.rows, graph.indices)
    order = np.lexsort((rank, i * n + j))
    codes = (i * n + j)[order]
    return np.asarray(rank[order][np.searchsorted(codes, ends[:, 0] * n + ends[:, 1])])


def _mutual(graph: NeighborGraph, nearest: int) -> IntArray:
    """Pairs (i, j), i < j, each among the `nearest` neighbors of the other."""
    near = graph.matrix((_rank(graph) < nearest).astype(np.float64))
    near.eliminate_zeros()
    both = sparse.coo_array(sparse.triu(near.multiply(near.T), 1))
    return np.column_stack([both.row, both.col])
