"""Base classes of the neighbor indices: k-nearest and radius queries, and compressed rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix

UNKNOWN_AMONG = (
    "kernel values or distances among new points are unknown, because the model was fitted on a "
    "precomputed matrix; fit it on the data"
)

# Relative tolerance for distances computed with another order of summation.
SLACK = 1 + 1e-12
# Shorter distances, relative to the largest value, are compared only after they were computed by
# subtraction: squares in a tree or a product may underflow.
RESOLUTION = 1e-100


class Edges(NamedTuple):
    """Neighbors of query points in compressed rows (CSR format).

    Parameters
    ----------
    indptr : array of shape (n_query + 1,)
        Position of the first edge of each row; the last entry is the number of edges.
    indices : array of shape (n_edges,)
        Reference point of each edge.
    distances : array of shape (n_edges,)
        Length of each edge.

    See Also
    --------
    NeighborIndex : its searches return edges.
    manifoldry.NeighborGraph : a graph with these arrays.

    Examples
    --------
    Two query points, with one and two neighbors within a distance of 1:

    >>> import numpy as np
    >>> from manifoldry.neighbors import choose_index
    >>> index = choose_index(np.array([[0.0], [1.0], [2.0]]))
    >>> edges = index.within(np.array([[-0.5], [1.5]]), 1.0)
    >>> edges.rows, edges.indices, edges.distances
    (array([0, 1, 1]), array([0, 1, 2]), array([0.5, 0.5, 0.5]))
    """

    indptr: IntArray
    indices: IntArray
    distances: Array

    @property
    def rows(self) -> IntArray:
        """Query point of each edge."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def keep(self, mask: NDArray[np.bool_]) -> "Edges":
        """Return the edges where `mask` is true.

        Parameters
        ----------
        mask : array of bool of shape (n_edges,)
            Which edges to keep.

        Returns
        -------
        Edges
            These edges.
        """
        starts = np.concatenate([[0], np.cumsum(mask)])[self.indptr]
        return Edges(starts, self.indices[mask], self.distances[mask])

    def of_rows(self, block: slice) -> "Edges":
        """Return the edges of a block of rows.

        Parameters
        ----------
        block : slice
            The rows.

        Returns
        -------
        Edges
            Their edges.
        """
        indptr = self.indptr[block.start : block.stop + 1]
        part = slice(indptr[0], indptr[-1])
        return Edges(indptr - indptr[0], self.indices[part], self.distances[part])

    @classmethod
    def of(cls, indices: IntArray, distances: Array) -> "Edges":
        """Create edges from arrays with a row per query point.

        Parameters
        ----------
        indices, distances : array of shape (n_query, k)
            The neighbors and their distances.

        Returns
        -------
        Edges
            The same edges in compressed rows.
        """
        indptr = np.arange(indices.shape[0] + 1) * indices.shape[1]
        return cls(indptr, indices.ravel(), distances.ravel())

    def first(self, k: int) -> tuple[IntArray, Array]:
        """Return the first k edges of each row, all of which must have as many.

        Parameters
        ----------
        k : int
            Number of edges per row.

        Returns
        -------
        indices, distances : array of shape (n_query, k)
            The neighbors and their distances.
        """
        position = self.indptr[:-1, None] + np.arange(k)
        return self.indices[position], self.distances[position]


class ReferenceNeighbors(NamedTuple):
    """Nearest neighbors of each reference point among the other reference points."""

    indices: IntArray  # (n, k)
    distances: Array  # (n, k)
    recall: float = 1.0
    """Fraction of the true neighbors that were found, estimated on a sample if below one."""
    note: str = ""
    """What the reason of the index does not say about this search."""


class NeighborIndex(ABC):
    """Base class of the neighbor indices over a set of reference points.

    All results are exact, except those of :meth:`reference_neighbors` for approximate indices.
    Distances are accurate to rounding, also for data far from the origin. Rows are sorted by
    distance, ties by index. The result for a query row does not depend on the other rows.

    :func:`choose_index` returns the index for given data and metric.

    See Also
    --------
    choose_index : chooses an index.
    manifoldry.NeighborGraph : the neighbors of all points.
    Edges : results with a varying number of neighbors.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.neighbors import choose_index
    >>> index = choose_index(np.array([[0.0], [1.0], [3.0]]))
    >>> indices, distances = index.nearest(np.array([[0.9]]), k=2)
    >>> indices, distances.round(1)
    (array([[1, 0]]), array([[0.1, 0.9]]))
    """

    reason: str
    """Why this index was chosen."""

    @property
    @abstractmethod
    def n_reference(self) -> int:
        """Number of reference points."""

    @property
    @abstractmethod
    def points(self) -> Matrix | None:
        """The reference points, or None if only distances are known."""

    @abstractmethod
    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        """Return the k nearest reference points of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_query, n_features)
            The query points.
        k : int
            Number of neighbors.

        Returns
        -------
        indices, distances : array of shape (n_query, k)
            The neighbors and their distances.
        """

    def nearest_excluding(self, X: Matrix, k: int, itself: IntArray) -> tuple[IntArray, Array]:
        """Return the k nearest reference points of each row except one.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_query, n_features)
            The query points.
        k : int
            Number of neighbors.
        itself : array of shape (n_query,)
            The reference point that is excluded, mostly the query point itself; -1 excludes none.

        Returns
        -------
        indices, distances : array of shape (n_query, k)
            The neighbors and their distances.
        """
        known = bool((itself >= 0).any())
        indices, distances = self.nearest(X, k + known)
        return without_self(indices, distances, itself) if known else (indices, distances)

    def reference_neighbors(self, X: Matrix, k: int) -> "ReferenceNeighbors":
        """Return the k nearest other references of each reference.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_reference, n_features)
            All references, as queries.
        k : int
            Number of neighbors.

        Returns
        -------
        ReferenceNeighbors
            The neighbors, their distances, and the recall if the search is approximate.
        """
        return ReferenceNeighbors(*self.nearest_excluding(X, k, np.arange(self.n_reference)))

    @abstractmethod
    def within(self, X: Matrix, radius: float | Array) -> Edges:
        """Return the references within a distance of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_query, n_features)
            The query points.
        radius : float or array of shape (n_reference,)
            The distance: references j with d(x, j) ≤ radius, or ≤ radius[j] for one per reference.

        Returns
        -------
        Edges
            The neighbors of each row.
        """

    def nearest_and_within(
        self, X: Matrix, k: int, itself: IntArray, radii: Array
    ) -> tuple[tuple[IntArray, Array], Edges]:
        """Return the results of `nearest_excluding` and `within`, which may share computations.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_query, n_features)
            The query points.
        k : int
            Number of neighbors.
        itself : array of shape (n_query,)
            The reference point that is excluded from the nearest ones; -1 excludes none.
        radii : array of shape (n_reference,)
            One radius per reference.

        Returns
        -------
        nearest : tuple of arrays
            Indices and distances of the k nearest references, each of shape (n_query, k).
        within : Edges
            The references whose radius includes the query point.
        """
        return self.nearest_excluding(X, k, itself), self.within(X, radii)

    @abstractmethod
    def restrict(self, rows: IntArray) -> "NeighborIndex":
        """Return the same kind of index over some of the reference points, renumbered from zero.

        Parameters
        ----------
        rows : array of int
            The reference points to keep.

        Returns
        -------
        NeighborIndex
            The index over them.
        """

    def over(self, X: Matrix) -> "NeighborIndex":
        """Return the same kind of index over other points; ValueError if only distances are known.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The new reference points.

        Returns
        -------
        NeighborIndex
            The index over them.
        """
        raise ValueError(UNKNOWN_AMONG)

    def as_queries(self, X: Matrix) -> Matrix:
        """Convert query rows to the format of the reference points, dense or sparse.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_query, n_features)
            The rows.

        Returns
        -------
        array or sparse matrix of shape (n_query, n_features)
            The rows in that format.
        """
        if sparse.issparse(self.points):
            return sparse.csr_array(X)
        return X.toarray() if sparse.issparse(X) else X

    @abstractmethod
    def identical(self, X: Matrix) -> IntArray:
        """Return the first reference at distance exactly zero from each row, or -1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_query, n_features)
            The query points.

        Returns
        -------
        array of shape (n_query,)
            Indices of references.
        """

    def first_identical(self) -> IntArray:
        """Return the first reference at distance exactly zero from each reference.

        Returns
        -------
        array of shape (n_reference,)
            Indices of references.
        """
        points: Any = self.points
        return self.identical(points)

    def distances_between(self, i: IntArray, j: IntArray) -> Array | None:
        """Return the distances between pairs of reference points.

        Parameters
        ----------
        i, j : array of shape (n_pairs,)
            The reference points of each pair.

        Returns
        -------
        array of shape (n_pairs,) or None
            The distances; None if the index cannot compute them.
        """
        return None


class PointIndex(NeighborIndex):
    """Base class of indices that store the reference points in the dataclass field ``X``."""

    X: Matrix

    @property
    def n_reference(self) -> int:
        return int(self.X.shape[0])

    @property
    def points(self) -> Matrix:
        return self.X

    def restrict(self, rows: IntArray) -> NeighborIndex:
        return self.over(self.X[rows])

    def over(self, X: Matrix) -> NeighborIndex:
        return replace(self, X=X)  # type: ignore[type-var]  # subclasses are dataclasses

    def identical(self, X: Matrix) -> IntArray:
        return self._lookup.identical(X)

    def first_identical(self) -> IntArray:
        return self._lookup.first_identical()

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup.of(self.X)

    __getstate__ = state_of_fields  # trees and converted arrays are recomputed


def search_radii(distances: Array, unit: float) -> Array:
    """Distances in multiples of `unit`, enlarged so that a search finds all points within them.

    Below the smallest normal number, 2e-308, the rounding error of a distance is absolute.
    """
    with np.errstate(over="ignore"):  # an infinite radius includes all points
        radii = np.nextafter(distances, np.inf) / unit
    return np.asarray(np.maximum(radii, RESOLUTION))


def without_self(indices: IntArray, distances: Array, itself: IntArray) -> tuple[IntArray, Array]:
    """Remove one neighbor per row: the row itself, or the farthest one if it is not included."""
    drop = indices == itself[:, None]
    drop[~drop.any(axis=1), -1] = True
    shape = (indices.shape[0], indices.shape[1] - 1)
    return indices[~drop].reshape(shape), distances[~drop].reshape(shape)


def sort_rows(indices: IntArray, distances: Array) -> tuple[IntArray, Array]:
    """Sort each row by distance, ties by index."""
    left, right = distances[:, :-1], distances[:, 1:]  # not differences, as both may be infinite
    late = (right < left) | ((right == left) & (indices[:, 1:] < indices[:, :-1]))
    rows = np.flatnonzero(late.any(axis=1))  # most rows come sorted
    if len(rows):
        order = np.lexsort((indices[rows], distances[rows]), axis=1)
        indices, distances = indices.copy(), distances.copy()
        indices[rows] = np.take_along_axis(indices[rows], order, axis=1)
        distances[rows] = np.take_along_axis(distances[rows], order, axis=1)
    return indices, distances


def compress(query: IntArray, reference: IntArray, distances: Array, n_query: int) -> Edges:
    """Convert edge triplets to compressed rows, sorted by distance, ties by index."""
    order = np.lexsort((reference, distances, query))
    counts = np.bincount(query, minlength=n_query)
    return Edges(_starts(counts), reference[order], distances[order])


def gather(blocks: Iterable[tuple[IntArray, IntArray, Array]], n_query: int) -> Edges:
    """Concatenate and compress triplets given in blocks."""
    none = (np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))
    query, reference, distances = map(np.concatenate, zip(none, *blocks, strict=True))
    return compress(query, reference, distances, n_query)


def smallest_entries(D: Array, k: int) -> tuple[IntArray, Array]:
    """Columns and values of the k smallest entries of each row, ties by column."""
    # At least k per row, by one index: np.nonzero of two dimensions takes longer.
    row, column = np.divmod(np.flatnonzero(bound_of_smallest(D, k) >= D), D.shape[1])
    return compress(row, column, D[row, column].astype(np.float64), D.shape[0]).first(k)


def bound_of_smallest(D: Array, k: int, groups_per_entry: int = 16) -> Array:
    """A bound, (n_rows, 1), which k entries of each row, and few others, do not exceed.

    It is the k-th smallest of the minima of groups of columns, which is faster to find than the
    k-th smallest entry itself; few groups contain two of the k smallest.
    """
    n_groups = k * groups_per_entry
    size = D.shape[1] // n_groups
    if size > 1:
        D = D[:, : size * n_groups].reshape(len(D), size, n_groups).min(axis=1)
    return np.partition(D, k - 1, axis=1)[:, k - 1 : k]


def without(edges: Edges, itself: IntArray) -> Edges:
    """Remove the edge of each row to ``itself[row]``, if there is one."""
    return edges.keep(edges.indices != itself[edges.rows])


def _starts(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)])
