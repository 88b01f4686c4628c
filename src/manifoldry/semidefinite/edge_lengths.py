"""Distinct points, and the edge lengths that maximum variance unfolding keeps."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_below, check_nonnegative, check_option
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import canonical, power_of_two_scale

KINDS = ("equal", "at_most")


@dataclass(frozen=True, eq=False)
class DistinctPoints:
    """Points of a graph with duplicates merged; distinct points are numbered from zero.

    Parameters
    ----------
    index_of_point : array of shape (n_points,)
        Index of the distinct point of every data point; -1 where it is left out.
    """

    index_of_point: IntArray

    @classmethod
    def of(cls, graph: NeighborGraph, on_map: NDArray[np.bool_]) -> "DistinctPoints":
        """Merge points that edges of length zero connect; points outside `on_map` are left out."""
        joined = graph.matrix((graph.distances == 0).astype(float))
        joined.eliminate_zeros()
        labels = connected_components(joined, directed=False)[1].astype(np.intp)
        index = np.full(len(labels), -1, dtype=np.intp)
        index[on_map] = np.unique(labels[on_map], return_inverse=True)[1]
        return cls(index)

    @cached_property
    def first(self) -> IntArray:
        """First data point of every distinct point."""
        indices, first = np.unique(self.index_of_point, return_index=True)
        return np.asarray(first[indices >= 0])

    @cached_property
    def multiplicity(self) -> Array:
        """Number of data points of every distinct point."""
        return np.bincount(self.index_of_point[self.index_of_point >= 0]).astype(np.float64)

    def expand(self, Y: Array) -> Array:
        """Rows of `Y` repeated for all data points; NaN where a point is left out."""
        out = Y[self.index_of_point]
        out[self.index_of_point < 0] = np.nan
        return out


@dataclass(frozen=True, eq=False)
class EdgeLengths:
    """Pairs of points, each listed once, and the distances that a map has to keep.

    Parameters
    ----------
    ends : array of shape (n_edges, 2)
        Indices of the two points of every edge.
    squares : array of shape (n_edges,)
        Squared lengths, in units of `unit` squared.
    n : int
        Number of points.
    unit : float
        Unit of length.
    min_relative_length : float, default=0.01
        Edges shorter than this fraction of the median length are treated as that long when relative
        changes are computed: the exact distance of points that nearly coincide hardly matters.

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
    min_relative_length: float = 0.01

    @classmethod
    def of(
        cls,
        graph: NeighborGraph,
        points: DistinctPoints,
        cliques: bool,
        distances: Array | None = None,
    ) -> "EdgeLengths":
        """The edges of a graph between distinct points.

        With `cliques`, also those between any two neighbors of a point. `distances` is the full
        distance matrix, if the graph was built from one.
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
        """Denominators of relative changes: squared lengths, but not much below the median.

        Nor so small, relative to the longest edge, that their reciprocals overflow.
        """
        least = max(self.min_relative_length**2 * float(np.median(self.squares)), 1e-100)
        return np.maximum(self.squares, least)

    @cached_property
    def incidence(self) -> sparse.csr_array:
        """Signed incidence matrix, (n_edges, n), which maps a map to its edge vectors."""
        signs = np.tile([1.0, -1.0], self.count)
        starts = np.arange(0, 2 * self.count + 1, 2)
        return sparse.csr_array((signs, self.ends.ravel(), starts), shape=(self.count, self.n))

    @cached_property
    def _incidence_transpose(self) -> sparse.csr_array:
        return sparse.csr_array(self.incidence.T)

    @cached_property
    def lengths(self) -> sparse.csr_array:
        """Symmetric sparse matrix of edge lengths."""
        return self.weights(np.sqrt(self.squares))

    def nearest(self, k: int) -> IntArray:
        """Every point and up to k nearest points along its edges, (n, 1 + k).

        Rows with fewer than k neighbors are padded with the point itself.
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
        """A subset of the edges with the same `scales`."""
        few = replace(self, ends=self.ends[rows], squares=self.squares[rows])
        few.__dict__["scales"] = self.scales[rows]
        return few

    def edge_vectors(self, R: Array) -> Array:
        """Difference of the first and the second end of every edge on a map, (n_edges, d)."""
        return np.asarray(self.incidence @ R)

    def edge_vectors_adjoint(self, vectors: Array) -> Array:
        """Adjoint of `edge_vectors`: signed sum of edge vectors at every point, (n, d)."""
        return np.asarray(self._incidence_transpose @ vectors)

    def changes(self, vectors: Array) -> Array:
        """Relative changes of squared lengths, given the edge vectors on a map."""
        return (np.einsum("ed,ed->e", vectors, vectors) - self.squares) / self.scales

    def errors(self, R: Array) -> Array:
        """Relative errors of the lengths on a map."""
        return np.abs(np.sqrt(np.maximum(1 + self.changes(self.edge_vectors(R)), 0.0)) - 1)

    def weights(self, values: Array) -> sparse.csr_array:
        """Symmetric sparse matrix with one value per edge."""
        i, j = self.ends.T
        upper = sparse.coo_array((values, (i, j)), shape=(self.n, self.n))
        # 32-bit indices, as graph routines of older scipy versions require.
        return canonical(sparse.csr_array(upper + upper.T))

    def laplacian(self, values: Array) -> sparse.csr_array:
        """Graph Laplacian with edge weights `values`, which may be negative."""
        W = self.weights(values)
        return sparse.csr_array(sparse.diags_array(W.sum(axis=1)) - W)


@dataclass(frozen=True)
class EdgeConstraint:
    """Which distances maximum variance unfolding preserves, and how exactly.

    Parameters
    ----------
    kind : {"equal", "at_most"}, default="equal"
        Whether distances are preserved, or may also shrink.
    tolerance : float, default=0.005
        Largest relative error of a distance without any cost. Distances below a hundredth of the
        median count as if they were that long. With zero tolerance a curved sheet is rigid, because
        straight edges are shorter than distances along the sheet.
    slack : float, default=None
        Relative error of the squared distance beyond `tolerance` that is accepted for an edge with
        the mean Lagrange multiplier; for other edges it is proportional to their multiplier. 0.01
        is a large value; 0 allows no such error. By default 0, and 0.001 with landmarks, whose
        embeddings may not be able to preserve all distances.
    cliques : bool, default=None
        Also preserve the distances between any two neighbors of the same point, which makes
        neighborhoods rigid. By default if these distances are known. Without them the graph may
        shear; use 10 neighbors or more then.
    short_circuits : {"warn", "ignore"}, default="warn"
        Whether to search the graph for edges between points that are far apart on the manifold, and
        warn if they shorten many distances; see :func:`~manifoldry.find_short_circuits`.

    See Also
    --------
    manifoldry.MaximumVarianceUnfolding : takes it as ``constraint``.
    MethodOfMultipliers : the search under these constraints.

    Examples
    --------
    >>> from manifoldry import MVU
    >>> from manifoldry.semidefinite import EdgeConstraint
    >>> model = MVU(constraint=EdgeConstraint(slack=0.01))
    """

    kind: str = "equal"
    tolerance: float = 0.005
    slack: float | None = None
    cliques: bool | None = None
    short_circuits: str = "warn"

    def __post_init__(self) -> None:
        check_option("kind", self.kind, KINDS)
        check_option("short_circuits", self.short_circuits, ("warn", "ignore"))
        tolerance = check_nonnegative("tolerance", self.tolerance)
        check_below("tolerance", tolerance, 1.0, "the whole distance")
        if self.slack is not None:
            check_nonnegative("slack", self.slack)
        if not (self.cliques is None or isinstance(self.cliques, bool | np.bool_)):
            raise TypeError(f"cliques={self.cliques!r} must be True, False or None; pass one")

    @classmethod
    def of(cls, constraint: Any) -> "EdgeConstraint":
        """Convert the `constraint` of an estimator: its kind, or an EdgeConstraint.

        Parameters
        ----------
        constraint : str or EdgeConstraint
            The parameter of the estimator.

        Returns
        -------
        EdgeConstraint
            The constraint.
        """
        if isinstance(constraint, EdgeConstraint):
            return constraint
        if not (isinstance(constraint, str) and constraint in KINDS):
            raise ValueError(
                f"constraint={constraint!r} must be one of {', '.join(map(repr, KINDS))}, or a "
                "manifoldry.semidefinite.EdgeConstraint; pass constraint='equal'"
            )
        return cls(constraint)

    @property
    def interval(self) -> tuple[float, float]:
        """Relative changes of a squared distance between which it has no cost."""
        low = -np.inf if self.kind == "at_most" else (1 - self.tolerance) ** 2 - 1
        return low, (1 + self.tolerance) ** 2 - 1


def has_clique_distances(graph: NeighborGraph, distances: Array | None) -> bool:
    """Whether distances between any two neighbors of a point are available."""
    none = np.empty(0, dtype=np.intp)
    return distances is not None or graph.index.distances_between(none, none) is not None


def _pairs(W: sparse.csr_array, cliques: bool) -> tuple[IntArray, IntArray]:
    """Pairs i < j of neighbors; with `cliques`, of points in a common neighborhood."""
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
    """Lengths of edges that are stored in either direction."""
    both = sparse.csr_array(W.maximum(sparse.csr_array(W.T)))
    return np.asarray(both[i, j]).ravel()


def _clique_lengths(
    graph: NeighborGraph, i: IntArray, j: IntArray, distances: Array | None
) -> Array:
    if distances is not None:
        return np.asarray(distances[i, j], dtype=np.float64)
    found = graph.index.distances_between(i, j)
    if found is None:
        raise ValueError(
            "cliques=True needs the distances between any two neighbors of a point, which this "
            "graph does not contain; pass the data or dense distances, or cliques=False"
        )
    return found
