"""The lengths that an unfolding has to keep: edges between the places where points are."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import canonical, power_of_two_scale


@dataclass(frozen=True, eq=False)
class DistinctPoints:
    """DistinctPoints on a map, numbered from zero, and who is there.

    Parameters
    ----------
    index_of_point : array of shape (n_points,)
        Place of every point; -1 where it is not on the map.
    """

    index_of_point: IntArray

    @classmethod
    def of(cls, graph: NeighborGraph, on_map: NDArray[np.bool_]) -> "DistinctPoints":
        """Points joined by edges of no length share a place; `on_map` says which points count."""
        joined = graph.matrix((graph.distances == 0).astype(float))
        joined.eliminate_zeros()
        labels = connected_components(joined, directed=False)[1].astype(np.intp)
        index = np.full(len(labels), -1, dtype=np.intp)
        index[on_map] = np.unique(labels[on_map], return_inverse=True)[1]
        return cls(index)

    @cached_property
    def first(self) -> IntArray:
        """First point at every place."""
        indices, first = np.unique(self.index_of_point, return_index=True)
        return np.asarray(first[indices >= 0])

    @cached_property
    def multiplicity(self) -> Array:
        """Number of points at every place."""
        return np.bincount(self.index_of_point[self.index_of_point >= 0]).astype(np.float64)

    def expand(self, Y: Array) -> Array:
        """A map of all points from one of the places; NaN where a point is not on it."""
        out = Y[self.index_of_point]
        out[self.index_of_point < 0] = np.nan
        return out


@dataclass(frozen=True, eq=False)
class EdgeLengths:
    """Pairs of points, each once, with the distance that a map has to keep.

    Parameters
    ----------
    ends : array of shape (n_edges, 2)
        The two points.
    squares : array of shape (n_edges,)
        Their squared distance, in squared units of `unit`.
    n : int
        Number of points.
    unit : float
        Length in which everything here is measured.
    shortest : float, default=0.01
        Changes of edges shorter than this fraction of the median are counted as if they were that
        long: nothing is gained from placing points that nearly coincide to a percent of the little
        between them.

    Examples
    --------
    >>> import numpy as np
    >>> edges = EdgeLengths(np.array([[0, 1], [1, 2]]), np.array([1.0, 4.0]), 3)
    >>> edges.changes(edges.edge_vectors(np.array([[0.0], [1.0], [4.0]])))
    array([0.  , 1.25])
    """

    ends: IntArray
    squares: Array
    n: int
    unit: float = 1.0
    shortest: float = 0.01

    @classmethod
    def of(
        cls,
        graph: NeighborGraph,
        points: DistinctPoints,
        cliques: bool,
        distances: Array | None = None,
    ) -> "EdgeLengths":
        """The edges between places of a graph.

        With `cliques` also those between any two neighbors of a point; `distances` are all
        distances, of a graph that was read off them.
        """
        W = sparse.csr_array(graph.matrix(), dtype=np.float64)
        i, j = _pairs(W, cliques)
        lengths = _clique_lengths(graph, i, j, distances) if cliques else _stored_lengths(W, i, j)
        ends = np.sort(points.index_of_point[np.column_stack([i, j])], axis=1)
        n = len(points.multiplicity)
        apart = np.flatnonzero((ends[:, 0] != ends[:, 1]) & (ends[:, 0] >= 0))
        first = apart[np.unique(ends[apart] @ [n, 1], return_index=True)[1]]
        unit = power_of_two_scale(lengths[first])
        return cls(ends[first], (lengths[first] / unit) ** 2, n, unit)

    @property
    def count(self) -> int:
        """Number of edges."""
        return len(self.squares)

    @cached_property
    def scales(self) -> Array:
        """What a change of a squared length is measured by: that square, if it is not tiny."""
        return np.maximum(self.squares, self.shortest**2 * np.median(self.squares))

    @cached_property
    def incidence(self) -> sparse.csr_array:
        """The matrix whose product with a map are the steps along its edges."""
        signs = np.tile([1.0, -1.0], self.count)
        starts = np.arange(0, 2 * self.count + 1, 2)
        return sparse.csr_array((signs, self.ends.ravel(), starts), shape=(self.count, self.n))

    @cached_property
    def _gathering(self) -> sparse.csr_array:
        return sparse.csr_array(self.incidence.T)

    @cached_property
    def lengths(self) -> sparse.csr_array:
        """Symmetric matrix of all lengths."""
        return self.weights(np.sqrt(self.squares))

    def nearest(self, k: int) -> IntArray:
        """Up to k nearest points along edges of every point, (n, 1 + k), its own self first.

        It also fills the places of those that are missing.
        """
        lengths = self.lengths
        rows = np.repeat(np.arange(self.n), np.diff(lengths.indptr))
        order = np.lexsort((lengths.data, rows))
        rank = np.arange(len(rows)) - lengths.indptr[rows]
        near = rank < k
        members = np.repeat(np.arange(self.n)[:, None], 1 + k, axis=1)
        members[rows[near], 1 + rank[near]] = lengths.indices[order][near]
        return members

    def subset(self, rows: IntArray) -> "EdgeLengths":
        """Some of the edges, changes of which are measured as before."""
        few = replace(self, ends=self.ends[rows], squares=self.squares[rows])
        few.__dict__["scales"] = self.scales[rows]
        return few

    def edge_vectors(self, R: Array) -> Array:
        """What leads from the second end of every edge to the first, (n_edges, d)."""
        return np.asarray(self.incidence @ R)

    def gather(self, steps: Array) -> Array:
        """Sum of steps at every point, those that lead to it less those that lead away."""
        return np.asarray(self._gathering @ steps)

    def changes(self, steps: Array) -> Array:
        """Changes of squared lengths, as fractions of them."""
        return (np.einsum("ed,ed->e", steps, steps) - self.squares) / self.scales

    def errors(self, R: Array) -> Array:
        """Errors of lengths on a map, as fractions of them."""
        return np.abs(np.sqrt(np.maximum(1 + self.changes(self.edge_vectors(R)), 0.0)) - 1)

    def weights(self, values: Array) -> sparse.csr_array:
        """Symmetric matrix with a value for every edge."""
        i, j = self.ends.T
        upper = sparse.coo_array((values, (i, j)), shape=(self.n, self.n))
        # Short indices: older versions of scipy's graph routines take no others.
        return canonical(sparse.csr_array(upper + upper.T))

    def laplacian(self, values: Array) -> sparse.csr_array:
        """Graph Laplacian of a value for every edge; values may be negative."""
        W = self.weights(values)
        return sparse.csr_array(sparse.diags_array(W.sum(axis=1)) - W)


def has_clique_distances(graph: NeighborGraph, distances: Array | None) -> bool:
    """Whether distances between the neighbors of a point can be had."""
    none = np.empty(0, dtype=np.intp)
    return distances is not None or graph.index.between(none, none) is not None


def _pairs(W: sparse.csr_array, cliques: bool) -> tuple[IntArray, IntArray]:
    """Joined points, the lower one first: neighbors, or members of a common neighborhood."""
    ones = np.ones(W.nnz, dtype=np.float32)
    A = sparse.csr_array((ones, W.indices, W.indptr), shape=W.shape)
    if cliques:
        A = A + sparse.eye_array(A.shape[0], dtype=np.float32, format="csr")
        joined = sparse.csr_array(A.T @ A)
    else:
        joined = A + sparse.csr_array(A.T)
    upper = sparse.coo_array(sparse.triu(joined, 1))
    return upper.row.astype(np.intp), upper.col.astype(np.intp)


def _stored_lengths(W: sparse.csr_array, i: IntArray, j: IntArray) -> Array:
    """Lengths of edges, whichever end stores them."""
    both = sparse.csr_array(W.maximum(sparse.csr_array(W.T)))
    return np.asarray(both[i, j]).ravel()


def _clique_lengths(
    graph: NeighborGraph, i: IntArray, j: IntArray, distances: Array | None
) -> Array:
    if distances is not None:
        return np.asarray(distances[i, j], dtype=np.float64)
    found = graph.index.between(i, j)
    if found is None:
        raise ValueError(
            "cliques=True needs the distances between all neighbors of a point, and this graph "
            "does not know them; pass the data or dense distances, or cliques=False"
        )
    return found
