"""What every neighbor index answers: the k nearest references, and those within a radius."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix

# Sums in another order, as trees and mirrored pairs have, differ from ours in the last digits.
SLACK = 1 + 1e-12


class Edges(NamedTuple):
    """Neighbors of query points in compressed rows, as a CSR matrix stores them."""

    indptr: IntArray  # (n_query + 1,)
    indices: IntArray  # (n_edges,)
    distances: Array  # (n_edges,)

    @property
    def rows(self) -> IntArray:
        """Query point of every edge."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def keep(self, mask: NDArray[np.bool_]) -> "Edges":
        """Only the edges where `mask` is true."""
        counts = np.bincount(self.rows[mask], minlength=len(self.indptr) - 1)
        return Edges(_starts(counts), self.indices[mask], self.distances[mask])

    @classmethod
    def of(cls, indices: IntArray, distances: Array) -> "Edges":
        """From the same number of neighbors for every query point, (n_query, k)."""
        indptr = np.arange(indices.shape[0] + 1) * indices.shape[1]
        return cls(indptr, indices.ravel(), distances.ravel())

    def first(self, k: int) -> tuple[IntArray, Array]:
        """The first k edges of every row, which must have that many, as (n_query, k) arrays."""
        position = self.indptr[:-1, None] + np.arange(k)
        return self.indices[position], self.distances[position]


class ReferenceNeighbors(NamedTuple):
    """Neighbors of the reference points among themselves."""

    indices: IntArray  # (n, k)
    distances: Array  # (n, k)
    recall: float = 1.0
    """Fraction of the true neighbors that were found, measured on a sample where not all are."""


class NeighborIndex(ABC):
    """Reference points that can be asked for neighbors.

    All answers but those of `others`, where an index says so, are exact: distances are as right as
    rounding the data allows, also far from the origin; rows are sorted by distance, ties by
    index; none depends on the other query rows.
    """

    reason: str
    """Why this index was chosen, in words."""

    @property
    @abstractmethod
    def n_reference(self) -> int:
        """Number of reference points."""

    @property
    @abstractmethod
    def points(self) -> Matrix | None:
        """The reference points, or None where only distances are known."""

    @abstractmethod
    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        """Indices and distances, both (n_query, k), of the k ≤ n_reference nearest references."""

    def nearest_excluding(self, X: Matrix, k: int, itself: IntArray) -> tuple[IntArray, Array]:
        """The k nearest references of each row other than ``itself[row]``, which may be -1."""
        known = bool((itself >= 0).any())
        indices, distances = self.nearest(X, k + known)
        return without_self(indices, distances, itself) if known else (indices, distances)

    def reference_neighbors(self, X: Matrix, k: int) -> "ReferenceNeighbors":
        """The k nearest of the other references for every reference; `X` are they, as queries."""
        return ReferenceNeighbors(*self.nearest_excluding(X, k, np.arange(self.n_reference)))

    @abstractmethod
    def within(self, X: Matrix, radius: float | Array) -> Edges:
        """References j with d(x, j) ≤ radius, or ≤ radius[j] where every reference has its own."""

    @abstractmethod
    def restrict(self, rows: IntArray) -> "NeighborIndex":
        """The same kind of index over some of the reference points, numbered from zero."""

    def as_queries(self, X: Matrix) -> Matrix:
        """Query rows in the form, dense or sparse, in which this index holds its own."""
        if sparse.issparse(self.points):
            return sparse.csr_array(X)
        return X.toarray() if sparse.issparse(X) else X

    @abstractmethod
    def identical(self, X: Matrix) -> IntArray:
        """First reference that each query row repeats, at distance exactly zero, or -1."""

    def distances_between(self, i: IntArray, j: IntArray) -> Array | None:
        """Distances of pairs of references; None where the index does not know them."""
        return None


class PointIndex(NeighborIndex):
    """Base of the frozen dataclasses that hold the reference points themselves, as ``X``."""

    X: Matrix

    @property
    def n_reference(self) -> int:
        return int(self.X.shape[0])

    @property
    def points(self) -> Matrix:
        return self.X

    def restrict(self, rows: IntArray) -> NeighborIndex:
        return replace(self, X=self.X[rows])  # type: ignore[type-var]  # subclasses are dataclasses

    def identical(self, X: Matrix) -> IntArray:
        return self._lookup.identical(X)

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup.of(self.X)

    def __getstate__(self) -> dict[str, Any]:
        """What was given; trees and copies that were derived from it are made again."""
        own = fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
        return {field.name: getattr(self, field.name) for field in own}


def without_self(indices: IntArray, distances: Array, itself: IntArray) -> tuple[IntArray, Array]:
    """One neighbor fewer per row: the row's own self, or the farthest if it is not among them."""
    drop = indices == itself[:, None]
    drop[~drop.any(axis=1), -1] = True
    shape = (indices.shape[0], indices.shape[1] - 1)
    return indices[~drop].reshape(shape), distances[~drop].reshape(shape)


def sort_rows(indices: IntArray, distances: Array) -> tuple[IntArray, Array]:
    """Sort each row by distance, ties by index."""
    step = np.diff(distances, axis=1)
    late = (step < 0) | ((step == 0) & (np.diff(indices, axis=1) < 0))
    rows = np.flatnonzero(late.any(axis=1))  # most rows come sorted
    if len(rows):
        order = np.lexsort((indices[rows], distances[rows]), axis=1)
        indices, distances = indices.copy(), distances.copy()
        indices[rows] = np.take_along_axis(indices[rows], order, axis=1)
        distances[rows] = np.take_along_axis(distances[rows], order, axis=1)
    return indices, distances


def compress(query: IntArray, reference: IntArray, distances: Array, n_query: int) -> Edges:
    """Gather edge triplets into rows, each sorted by distance, ties by index."""
    order = np.lexsort((reference, distances, query))
    counts = np.bincount(query, minlength=n_query)
    return Edges(_starts(counts), reference[order], distances[order])


def gather(blocks: Iterable[tuple[IntArray, IntArray, Array]], n_query: int) -> Edges:
    """Compress the triplets that were found block by block."""
    none = (np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))
    query, reference, distances = map(np.concatenate, zip(none, *blocks, strict=True))
    return compress(query, reference, distances, n_query)


def smallest_entries(D: Array, k: int) -> tuple[IntArray, Array]:
    """Columns and values of the k smallest entries of each row, ties by column."""
    kth = np.partition(D, k - 1, axis=1)[:, k - 1 : k]
    row, column = np.nonzero(kth >= D)  # k of every row, and more where the k-th is tied
    return compress(row, column, D[row, column].astype(np.float64), D.shape[0]).first(k)


def without(edges: Edges, itself: IntArray) -> Edges:
    """Drop from each row the edge to the row's own self, if there is one."""
    return edges.keep(edges.indices != itself[edges.rows])


def _starts(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)])
