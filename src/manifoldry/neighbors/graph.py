"""The neighbor graph of training points, and queries with new points."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.device import current_device
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.device.primitives import DeviceMatrix
from manifoldry.distributed.collections import is_collection
from manifoldry.neighbors.base import Edges, NeighborIndex, compress, without
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.components_on_device import LEAST_ON_DEVICE, joined_labels
from manifoldry.neighbors.precomputed import DenseDistances, SparseDistances
from manifoldry.neighbors.removed_edges import RemovedEdges
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.threads import threads_allowed
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    check_nonnegative_entries,
    check_square,
    check_symmetric,
    check_zero_diagonal,
    copy_if_shared,
    plan_memory,
    read_rows,
    spread_rows,
)

DEFAULT_NEIGHBORS = 10


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """Neighbors of query points among reference points, with their distances.

    Compute it once with :meth:`build` and pass it to several estimators in place of the data. It
    stores the data, so these estimators can still transform new points. A point is never its own
    neighbor. Edges of length zero, between duplicates, are kept.

    Parameters
    ----------
    indptr, indices, distances : arrays
        Neighbors of each point in CSR format, nearest first.
    index : NeighborIndex
        The index used for the search and for new points; ``index.reason`` explains its choice.
    neighbor_radius : array of shape (n_reference,)
        Distance of each reference point to its k-th neighbor, or the radius.
    last_neighbor : array of shape (n_reference,)
        The k-th neighbor of each reference point; n_reference in a radius graph.
    n_neighbors : int, default=None
        Number of neighbors in a k-nearest-neighbor graph.
    radius : float, default=None
        Largest edge length in a radius graph.
    metric : str or callable, default="euclidean"
        The metric.
    feature_names : array, default=None
        Column names, if the graph was built from a data frame.
    recall : float, default=1.0
        Fraction of the true neighbors that were found: 1 for an exact search, otherwise estimated
        on a sample of points.
    removed_edges : RemovedEdges, default=None
        Edges that were removed, see :class:`ShortCircuits`; new points do not reconnect them.

    See Also
    --------
    find_short_circuits : edges between distant parts of a manifold.
    manifoldry.neighbors.choose_index : the choice of the neighbor search.
    manifoldry.affinity.Affinity : weights of the edges.

    References
    ----------
    H. Jégou, M. Douze and C. Schmid, "Product quantization for nearest neighbor search", IEEE
    TPAMI 2011: the approximate search, in the cells of their inverted file without quantization.

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

    def check(self) -> None:
        """Raise ValueError if an index is out of range; compiled loops rely on them."""
        if not isinstance(self.index, NeighborIndex):
            raise TypeError(f"index is a {type(self.index).__name__}, not a NeighborIndex")
        ends, near, n = np.asarray(self.indptr), np.asarray(self.indices), self.n_reference
        rows = len(ends) > 0 and ends[0] == 0 and ends[-1] == len(near)
        if not (rows and (np.diff(ends) >= 0).all() and len(self.distances) == len(near)):
            raise ValueError("the rows of the neighbor graph are inconsistent")
        if len(near) and not 0 <= near.min() <= near.max() < n:
            raise ValueError(f"a neighbor is not one of the {n} points")
        if len(self.neighbor_radius) != n or len(self.last_neighbor) != n:
            raise ValueError(f"neighbor_radius and last_neighbor must have {n} entries")
        if self.n_neighbors is not None and not 0 < self.n_neighbors < max(2, n):
            raise ValueError(f"n_neighbors={self.n_neighbors} must be less than {n}")

    @classmethod
    @on_device_of_arguments
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
        """Find the neighbors of each row of `X` among the other rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The data. With ``metric="precomputed"`` a dense matrix of distances, or a sparse one
            whose stored entries are the only possible neighbors. Of a Dask array or data frame, or
            the path of a Zarr or Parquet store, the graph is a
            :class:`~manifoldry.neighbors.DistributedGraph`; call its `build` for more options.
        n_neighbors : int, default=None
            Number of neighbors; by default 10, or half the number of points if that is smaller.
        radius : float, default=None
            Use all points within this distance instead of a fixed number.
        metric : str or callable, default="euclidean"
            Any metric of :class:`sklearn.neighbors.NearestNeighbors`, or ``"precomputed"``.
        metric_params : dict, default=None
            Additional arguments of the metric.
        n_jobs : int, default=None
            Number of threads, by default one per core; -1 for all. BLAS threads are not affected.
        search : {"auto", "exact", "approximate"}, default="auto"
            ``"approximate"`` finds nearly all neighbors of large high-dimensional data in a
            fraction of the time; ``recall`` says how many. If they are too few, all pairs are
            compared, with a warning. ``"auto"`` is exact where that takes seconds;
            ``index.reason`` gives the choice.
        copy : bool, default=True
            Keep a copy of `X`. Without a copy, `X` must not be modified as long as the graph is
            used for new points. A read-only memory map is never copied.

        Returns
        -------
        NeighborGraph
            The graph.
        """
        if is_collection(X):
            return _distributed(X, n_neighbors, metric, search, radius, metric_params)
        checked = read_rows(X, least=2)
        if isinstance(metric, str) and metric == "precomputed":
            graph = _from_distances(checked, n_neighbors, radius)
        else:
            kept = copy_if_shared(checked, X) if copy else checked
            index = choose_index(kept, metric, metric_params, n_jobs, search)
            with threads_allowed(n_jobs):
                graph = _from_index(index, kept, n_neighbors, radius)
        return replace(graph, metric=metric, feature_names=_column_names(X))

    @property
    def search(self) -> str:
        """The search method with the reason for its choice, and the recall if approximate."""
        found = f"; recall {self.recall:.3f} on a sample" if self.recall < 1 else ""
        return self.index.reason + found

    @property
    def n_query(self) -> int:
        """Number of query points."""
        return len(self.indptr) - 1

    @property
    def n_reference(self) -> int:
        """Number of reference points."""
        return self.index.n_reference

    @property
    def rows(self) -> IntArray:
        """Query point of each edge."""
        return np.repeat(np.arange(self.n_query), np.diff(self.indptr))

    def matrix(self, weights: Array | None = None) -> sparse.csr_array:
        """Return the edges as a sparse matrix with explicit zeros.

        Parameters
        ----------
        weights : array of shape (n_edges,), default=None
            Values of the edges; by default their lengths.

        Returns
        -------
        sparse array of shape (n_query, n_reference)
            The matrix.
        """
        data = self.distances if weights is None else weights
        # A copy, since scipy may sort the indices of its matrices in place.
        return sparse.csr_array(
            (data, self.indices, self.indptr), shape=(self.n_query, self.n_reference), copy=True
        )

    def truncate(self, n_neighbors: int) -> "NeighborGraph":
        """Return the graph of the nearest `n_neighbors` of each point.

        Parameters
        ----------
        n_neighbors : int
            Number of neighbors.

        Returns
        -------
        NeighborGraph
            The smaller graph.
        """
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
        """Find the neighbors of new points, in both directions.

        A new row identical to a training row is treated as that row and is not its own neighbor, so
        that for the training points the two graphs are the training graph and its transpose.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_query, n_features)
            New points, or their distances to all training points for precomputed distances.

        Returns
        -------
        own : NeighborGraph
            The neighbors of each new point.
        reverse : NeighborGraph
            The training points j that have the new point x as a neighbor: those with
            d(x, j) ≤ ``neighbor_radius[j]``.
        """
        X = self._check_query(X)
        known = self.index.identical(X)
        radii = self.neighbor_radius
        if self.radius is not None:
            own = without(self.index.within(X, self.radius), known)
            reverse = self.index.within(X, radii)
        else:
            nearest, reverse = self.index.nearest_and_within(X, self.k, known, radii)
            own = Edges.of(*nearest)
        reverse = without(reverse, known)
        reverse = reverse.keep(self._would_choose(reverse, known))
        if self.removed_edges is not None:
            own, reverse = self.removed_edges.apply(own, reverse, known)
        return replace_edges(self, own), replace_edges(self, reverse)

    def nearest_to(self, X: Any) -> "NeighborGraph":
        """Find the neighbors of new points: the first graph of `query`, without the second search.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_query, n_features)
            New points, or their distances to all training points for precomputed distances.

        Returns
        -------
        NeighborGraph
            The neighbors of each new point.
        """
        if self.radius is not None or self.removed_edges is not None:
            return self.query(X)[0]
        X = self._check_query(X)
        nearest = self.index.nearest_excluding(X, self.k, self.index.identical(X))
        return replace_edges(self, Edges.of(*nearest))

    def among(self, X: Any) -> "NeighborGraph":
        """Find the neighbors of new points among each other.

        The new point b is a neighbor of a if it is no farther from a than the k-th neighbor of a
        among the training points, or than the radius: new points do not change each other's
        neighborhoods. After edges were removed, two new points are not neighbors if a neighbor
        of one was separated from a neighbor of the other.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_query, n_features)
            New points. ValueError if the graph was built on precomputed distances.

        Returns
        -------
        NeighborGraph
            The neighbors of each new point.
        """
        X = self._check_query(X)
        index, reach, count = self.index.over(X), self._reach(X), X.shape[0]
        # A search with one radius per reference finds the points that have the query as neighbor.
        reverse = without(index.within(X, reach), np.arange(count))
        edges = compress(reverse.indices, reverse.rows, reverse.distances, count)
        if self.removed_edges is not None:
            own, back = self.query(X)
            near = own.matrix(np.ones(len(own.indices))) + back.matrix(np.ones(len(back.indices)))
            edges = edges.keep(~self.removed_edges.separate(near, edges))
        found = replace_edges(self, edges)
        return replace(
            found, index=index, neighbor_radius=reach, last_neighbor=np.full(count, count)
        )

    def _reach(self, X: Matrix) -> Array:
        """Distance of each query point to its k-th neighbor, or the radius."""
        if self.radius is not None:
            return np.full(X.shape[0], self.radius)
        known = self.index.identical(X)
        return self.index.nearest_excluding(X, self.k, known)[1][:, -1]

    def _would_choose(self, reverse: Edges, known: IntArray) -> Any:
        """Whether the training point of each edge has the query point among its neighbors.

        Of points tied for the k-th place, those of lower index are neighbors. A query point that is
        not a training point has no index and counts as a neighbor in case of a tie.
        """
        tied = reverse.distances == self.neighbor_radius[reverse.indices]
        excluded = known[reverse.rows] > self.last_neighbor[reverse.indices]
        return ~(tied & excluded)

    def _check_query(self, X: Any) -> Matrix:
        """Validate new points and convert them to the format of the index."""
        X = read_rows(X, least=0)
        points = self.index.points
        expected = self.n_reference if points is None else points.shape[1]
        if X.shape[1] != expected:
            what = "distances to the training points" if points is None else "features"
            raise ValueError(
                f"X has {X.shape[1]} columns; the graph was built on {expected} {what}"
            )
        if points is None:
            check_nonnegative_entries(X, "distances")
        return self.index.as_queries(X)

    def identical(self, X: Any) -> IntArray:
        """Return the first training point at distance exactly zero from each row of `X`, or -1.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_query, n_features)
            The rows.

        Returns
        -------
        array of shape (n_query,)
            Indices of training points.
        """
        return self.index.identical(self._check_query(X))

    @property
    def k(self) -> int:
        """Number of neighbors; ValueError for a radius graph."""
        if self.n_neighbors is None:
            raise ValueError(
                "a graph built with radius has no fixed number of neighbors; build it with "
                "n_neighbors"
            )
        return self.n_neighbors

    def components(self, compile_above: float = 1e6) -> tuple[int, IntArray]:
        """Find the connected components.

        Parameters
        ----------
        compile_above : float, default=1e6
            Graphs of more edges are not copied as a matrix.

        Returns
        -------
        count : int
            Number of components.
        labels : array of shape (n_query,)
            The component of each point.
        """
        device, many = current_device(), len(self.indices) >= LEAST_ON_DEVICE
        if device is not None and many and self.n_query == self.n_reference:
            indptr, columns = device.array(self.indptr), device.array(self.indices)
            rows = DeviceMatrix(indptr, columns, columns, self.n_query).row_numbers(device.xp)
            labels = joined_labels(device, rows, columns, self.n_query)
            return int(labels.max()) + 1, labels
        if self.n_query == self.n_reference and len(self.indices) > compile_above:
            from manifoldry.neighbors.compiled import join_rows

            parts = np.arange(self.n_query)
            join_rows(self.indptr, self.indices, parts)
            lowest, labels = np.unique(parts, return_inverse=True)
            return len(lowest), labels.astype(np.int32)
        pattern = self.matrix(np.ones(len(self.indices)))
        count, labels = connected_components(pattern, directed=False)
        return int(count), labels


def _distributed(
    X: Any, n_neighbors: int | None, metric: Any, search: str, radius: Any, metric_params: Any
) -> Any:
    """The graph of data that are distributed."""
    from manifoldry.neighbors.distributed_graph import DistributedGraph

    if radius is not None:
        raise ValueError(
            f"radius={radius} is not supported for distributed data; pass n_neighbors, or a sample "
            "in memory, such as X[:10_000].compute()"
        )
    if metric_params:
        metric = f"{metric}({metric_params})"
    return DistributedGraph.build(X, n_neighbors, metric=metric, search=search)


def _from_index(
    index: NeighborIndex,
    X: Matrix,
    n_neighbors: int | None,
    radius: float | None,
    counted_first: int = 20,
) -> NeighborGraph:
    """Build the graph; for a radius, memory is first estimated from `counted_first` points."""
    n = index.n_reference
    itself = np.arange(n)
    if radius is not None:
        if n_neighbors is not None:
            raise ValueError(f"pass n_neighbors={n_neighbors} or radius={radius}, not both")
        few = spread_rows(n, counted_first)
        count = index.within(X[few], check_positive("radius", radius)).indptr[-1]
        _plan(float(n) * count / len(few), n, f"radius={radius}", "pass a smaller radius")
        edges = without(index.within(X, radius), itself)
        neighbor_radius, last_neighbor = np.full(n, float(radius)), np.full(n, n)
        return NeighborGraph(*edges, index, neighbor_radius, last_neighbor, radius=float(radius))
    if n_neighbors is None and isinstance(index, SparseDistances):
        k = min(DEFAULT_NEIGHBORS, index.min_stored(X))
    else:
        k = resolve_neighbors(n_neighbors, n)
    _plan(float(n) * (k + 1), n, f"n_neighbors={k}", "pass a smaller n_neighbors")
    indices, distances, recall, note = index.reference_neighbors(X, k)
    if note:
        index = replace(index, reason=index.reason + note)  # type: ignore[type-var]
    edges = Edges.of(indices, distances)
    neighbor_radius, last_neighbor = distances[:, -1].copy(), indices[:, -1].copy()
    return NeighborGraph(
        *edges, index, neighbor_radius, last_neighbor, n_neighbors=k, recall=recall
    )


def _plan(edges: float, n: int, what: str, remedy: str, bytes_per_edge: int = 64) -> None:
    """Raise MemoryError if the graph, including temporary arrays, does not fit into memory."""
    plan_memory(bytes_per_edge * edges, f"the graph of {n} points with {what}", remedy)


def _from_distances(X: Matrix, n_neighbors: int | None, radius: float | None) -> NeighborGraph:
    check_square(X, "distances")
    check_nonnegative_entries(X, "distances")
    if sparse.issparse(X):
        return _from_index(SparseDistances(X.shape[0]), X, n_neighbors, radius)
    check_symmetric(X, "distances")
    check_zero_diagonal(X)
    return _from_index(DenseDistances(X.shape[0]), X, n_neighbors, radius)


def resolve_neighbors(n_neighbors: int | None, n: int) -> int:
    """Number of neighbors for `n` points: `n_neighbors` if valid, or a default."""
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


def replace_edges(graph: NeighborGraph, edges: Edges) -> NeighborGraph:
    """Return the graph with the same index and settings but other edges."""
    return replace(graph, indptr=edges.indptr, indices=edges.indices, distances=edges.distances)
