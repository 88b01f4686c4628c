"""The neighbor graph: who is near whom, for training points and for new ones."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.neighbors.base import Edges, NeighborIndex, without
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.precomputed import DenseDistances, SparseDistances
from manifoldry.neighbors.removed_edges import RemovedEdges
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.threads import threads_allowed
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    canonical,
    check_non_negative,
    check_square,
    check_symmetric,
    check_zero_diagonal,
    owned,
    plan_memory,
    refuse_masked,
    spread_rows,
)

DEFAULT_NEIGHBORS = 10


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """Neighbors of query points among reference points, with their distances.

    Compute it once with :meth:`build` and hand it to several estimators in place of the data;
    it remembers the data, so those estimators can still place new points. A point is never its
    own neighbor. Edges of length zero, between duplicated points, are edges like any other.

    Parameters
    ----------
    indptr, indices, distances : arrays
        Rows of neighbors as a CSR matrix stores them, nearest first.
    index : NeighborIndex
        Who answered, to be asked again about new points; ``index.reason`` says why it was chosen.
    neighbor_radius : array of shape (n_reference,)
        How far each reference point looks: its k-th neighbor's distance, or the radius.
    last_neighbor : array of shape (n_reference,)
        The k-th neighbor of each reference point; in a radius graph nobody is last.
    n_neighbors : int or None
        Neighbors of every point in a k-nearest-neighbor graph.
    radius : float or None
        Largest edge length in a radius graph.
    metric : str or callable
        What distances are measured in.
    feature_names : array or None
        Names of the columns, if the graph was built on a frame.
    recall : float
        Fraction of true neighbors among those found: 1 for an exact search, else measured on a
        sample of points.
    removed_edges : RemovedEdges or None
        Edges that were removed, see :class:`ShortCircuits`, and which no new point may bridge.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> graph = NeighborGraph.build(X, n_neighbors=1)
    >>> graph.indices
    array([1, 0, 1, 2])
    >>> graph.distances
    array([1., 1., 2., 4.])
    """

    indptr: IntArray
    indices: IntArray
    distances: Array
    index: NeighborIndex
    neighbor_radius: Array
    last_neighbor: IntArray
    n_neighbors: int | None = None
    radius: float | None = None
    metric: Any = "euclidean"
    feature_names: Any = None
    recall: float = 1.0
    removed_edges: RemovedEdges | None = None

    def __repr__(self) -> str:
        rule = f"radius={self.radius}" if self.n_neighbors is None else f"k={self.n_neighbors}"
        return (
            f"NeighborGraph({self.n_query} points among {self.n_reference}, {rule}, "
            f"metric={self.metric!r}, {len(self.indices)} edges"
            + (f", recall {self.recall:.3f})" if self.recall < 1 else ")")
        )

    @classmethod
    def build(
        cls,
        X: Any,
        n_neighbors: int | None = None,
        *,
        radius: float | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        search: str = "auto",
        copy: bool = True,
    ) -> "NeighborGraph":
        """Find the neighbors of every row of `X` among the other rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The data; with ``metric="precomputed"`` a dense matrix of distances, or a sparse one
            whose stored entries are the only neighbors on offer.
        n_neighbors : int, default=None
            Neighbors per point; by default 10, or half the points if those are fewer.
        radius : float, default=None
            Take every point within this distance instead of a fixed number.
        metric : str or callable, default="euclidean"
            Any metric of :class:`sklearn.neighbors.NearestNeighbors`, or ``"precomputed"``.
        metric_params : dict, default=None
            Further arguments of the metric.
        n_jobs : int, default=None
            Threads, by default one per core; -1 for all. BLAS keeps its own number.
        search : {"auto", "exact", "approximate"}, default="auto"
            ``"approximate"`` finds nearly all neighbors of large data of many features in a
            fraction of the time; ``recall`` tells how many. By default exact wherever that takes
            seconds; ``index.reason`` says which it was.
        copy : bool, default=True
            Keep a copy of `X`; without one `X` must not be overwritten as long as the graph is
            asked about new points. A read-only memory map is never copied.
        """
        checked = _check_points(X, least=2)
        if isinstance(metric, str) and metric == "precomputed":
            graph = _from_distances(checked, n_neighbors, radius)
        else:
            kept = owned(checked, X) if copy else checked
            index = choose_index(kept, metric, metric_params, n_jobs, search)
            with threads_allowed(n_jobs):
                graph = _from_index(index, kept, n_neighbors, radius)
        return replace(graph, metric=metric, feature_names=_column_names(X))

    @property
    def search(self) -> str:
        """How the neighbors were found, and why so; how many of them, where not all."""
        found = f"; recall {self.recall:.3f} on a sample" if self.recall < 1 else ""
        return self.index.reason + found

    @property
    def n_query(self) -> int:
        """Number of points whose neighbors these are."""
        return len(self.indptr) - 1

    @property
    def n_reference(self) -> int:
        """Number of points among which neighbors were sought."""
        return self.index.n_reference

    @property
    def rows(self) -> IntArray:
        """Query point of every edge."""
        return np.repeat(np.arange(self.n_query), np.diff(self.indptr))

    def matrix(self, weights: Array | None = None) -> sparse.csr_array:
        """Edges as a sparse matrix of `weights` (default: distances); zeros stay stored."""
        data = self.distances if weights is None else weights
        # A copy: scipy sorts the indices of its matrices in place whenever it likes.
        return sparse.csr_array(
            (data, self.indices, self.indptr), shape=(self.n_query, self.n_reference), copy=True
        )

    def truncate(self, n_neighbors: int) -> "NeighborGraph":
        """Keep only the nearest `n_neighbors` of every point."""
        n_neighbors = check_count("n_neighbors", n_neighbors)
        if self.n_query != self.n_reference:
            raise ValueError(
                f"only the graph of the training points can be truncated; this one has "
                f"{self.n_query} query points among {self.n_reference}: truncate before querying"
            )
        if self.n_neighbors is None or n_neighbors > self.n_neighbors:
            have = "a radius" if self.n_neighbors is None else f"{self.n_neighbors} neighbors"
            raise ValueError(
                f"n_neighbors={n_neighbors} cannot be cut from a graph built with {have}; "
                f"build it with n_neighbors={n_neighbors} or more"
            )
        counts = np.minimum(np.diff(self.indptr), n_neighbors)
        rank = np.arange(len(self.indices)) - np.repeat(self.indptr[:-1], np.diff(self.indptr))
        keep = rank < n_neighbors
        indptr = np.concatenate([[0], np.cumsum(counts)])
        distances = self.distances[keep]
        return replace(
            self,
            indptr=indptr,
            indices=self.indices[keep],
            distances=distances,
            neighbor_radius=distances[indptr[1:] - 1],
            last_neighbor=self.indices[keep][indptr[1:] - 1],
            n_neighbors=n_neighbors,
        )

    def query(self, X: Any) -> tuple["NeighborGraph", "NeighborGraph"]:
        """Neighbors of new points, in both directions.

        Returns the graph of each new point's own neighbors, and the graph of the training points
        that would have taken the new point as theirs: those j with d(x, j) ≤ ``neighbor_radius[j]``.
        A new row identical to a training row stands for that row and is not its own neighbor, so
        that the two graphs of the training points are the training graph and its transpose.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_query, n_features)
            New points; for a graph of precomputed distances, those to all training points.
        """
        X = self._check_query(X)
        known = self.index.identical(X)
        if self.radius is not None:
            own = without(self.index.within(X, self.radius), known)
        else:
            own = Edges.of(*self.index.nearest_excluding(X, self.k, known))
        reverse = without(self.index.within(X, self.neighbor_radius), known)
        reverse = reverse.keep(self._would_choose(reverse, known))
        if self.removed_edges is not None:
            own, reverse = self.removed_edges.apply(own, reverse, known)
        return replace_edges(self, own), replace_edges(self, reverse)

    def _would_choose(self, reverse: Edges, known: IntArray) -> Any:
        """Whether the training point of each edge would have taken the query point as neighbor.

        Among points tied for the last place the one of lower index was taken, which can be told
        only of a query point that stands for a training point; others get the benefit.
        """
        tied = reverse.distances == self.neighbor_radius[reverse.indices]
        excluded = known[reverse.rows] > self.last_neighbor[reverse.indices]
        return ~(tied & excluded)

    def _check_query(self, X: Any) -> Matrix:
        """Validate new points, in the form (dense or sparse) that the index holds."""
        X = _check_points(X, least=0)
        points = self.index.points
        expected = self.n_reference if points is None else points.shape[1]
        if X.shape[1] != expected:
            what = "distances to the training points" if points is None else "features"
            raise ValueError(
                f"X has {X.shape[1]} columns; the graph was built on {expected} {what}"
            )
        if points is None:
            check_non_negative(X, "distances")
        return self.index.as_queries(X)

    def identical(self, X: Any) -> IntArray:
        """Training point at distance exactly zero from each row of `X`, or -1."""
        return self.index.identical(self._check_query(X))

    @property
    def k(self) -> int:
        """Neighbors per point, for graphs that have a fixed number."""
        if self.n_neighbors is None:
            raise ValueError("a radius graph has no fixed number of neighbors")
        return self.n_neighbors

    def components(self) -> tuple[int, IntArray]:
        """Number of connected components, and the component of every point."""
        pattern = self.matrix(np.ones(len(self.indices)))
        count, labels = connected_components(pattern, directed=False)
        return int(count), labels


def _from_index(
    index: NeighborIndex,
    X: Matrix,
    n_neighbors: int | None,
    radius: float | None,
    counted_first: int = 20,
) -> NeighborGraph:
    """Search an index; neighbors within a radius of a few points are counted before all."""
    n = index.n_reference
    itself = np.arange(n)
    if radius is not None:
        if n_neighbors is not None:
            raise ValueError(f"pass n_neighbors={n_neighbors} or radius={radius}, not both")
        few = spread_rows(n, counted_first)
        count = index.within(X[few], check_positive("radius", radius)).indptr[-1]
        _plan(float(n) * count / len(few), n, f"radius={radius}", "pass a smaller one")
        edges = without(index.within(X, radius), itself)
        neighbor_radius, last_neighbor = np.full(n, float(radius)), np.full(n, n)
        return NeighborGraph(*edges, index, neighbor_radius, last_neighbor, radius=float(radius))
    if n_neighbors is None and isinstance(index, SparseDistances):
        k = min(DEFAULT_NEIGHBORS, index.min_stored(X))
    else:
        k = resolve_neighbors(n_neighbors, n)
    _plan(float(n) * (k + 1), n, f"n_neighbors={k}", "pass fewer")
    indices, distances, recall = index.reference_neighbors(X, k)
    edges = Edges.of(indices, distances)
    neighbor_radius, last_neighbor = distances[:, -1].copy(), indices[:, -1].copy()
    return NeighborGraph(
        *edges, index, neighbor_radius, last_neighbor, n_neighbors=k, recall=recall
    )


def _plan(edges: float, n: int, what: str, remedy: str, bytes_per_edge: int = 64) -> None:
    """Refuse graphs that do not fit into memory, while edges are found and sorted."""
    plan_memory(bytes_per_edge * edges, f"the graph of {n} points with {what}", remedy)


def _from_distances(X: Matrix, n_neighbors: int | None, radius: float | None) -> NeighborGraph:
    check_square(X, "distances")
    check_non_negative(X, "distances")
    if sparse.issparse(X):
        return _from_index(SparseDistances(X.shape[0]), X, n_neighbors, radius)
    check_symmetric(X, "distances")
    check_zero_diagonal(X)
    return _from_index(DenseDistances(X.shape[0]), X, n_neighbors, radius)


def resolve_neighbors(n_neighbors: int | None, n: int) -> int:
    """Number of neighbors for `n` points: what was asked for, or what the data allow."""
    if n_neighbors is None:
        return min(DEFAULT_NEIGHBORS, max(2, n // 2), n - 1)
    check_count("n_neighbors", n_neighbors)
    if n_neighbors >= n:
        raise ValueError(
            f"n_neighbors={n_neighbors} must be less than n_samples={n}; "
            f"pass n_neighbors={n - 1} or fewer"
        )
    return int(n_neighbors)


def _column_names(X: Any) -> Any:
    names = list(getattr(X, "columns", []))
    return np.asarray(names, dtype=object) if names and _all_strings(names) else None


def _all_strings(names: list[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def _check_points(X: Any, least: int) -> Matrix:
    from sklearn.utils import check_array

    refuse_masked(X)
    dtypes = [np.float64, np.float32]
    return canonical(check_array(X, accept_sparse="csr", dtype=dtypes, ensure_min_samples=least))


def replace_edges(graph: NeighborGraph, edges: Edges) -> NeighborGraph:
    """The same index and settings with other edges."""
    return replace(graph, indptr=edges.indptr, indices=edges.indices, distances=edges.distances)
