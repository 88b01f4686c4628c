"""Neighbors from precomputed distances: a dense matrix or a sparse neighbor graph."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from manifoldry.device import say_on_cpu
from manifoldry.neighbors.base import (
    Edges,
    NeighborIndex,
    compress,
    smallest_entries,
    without,
)
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

_REASON = "distances are precomputed, so they are only sorted"


@dataclass(frozen=True, eq=False)
class DenseDistances(NeighborIndex):
    """Index for dense precomputed distances; queries are distances to all reference points.

    After :meth:`restrict`, queries are distances to the remaining points.
    """

    n: int
    reason: str = _REASON

    @property
    def n_reference(self) -> int:
        return self.n

    @property
    def points(self) -> None:
        return None

    def restrict(self, rows: IntArray) -> NeighborIndex:
        return replace(self, n=len(rows))

    def as_queries(self, X: Matrix) -> Matrix:
        if sparse.issparse(X):
            raise ValueError(
                "the graph was built on dense distances, but X is sparse; pass the distances to "
                "all training points as a dense array"
            )
        return X

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        why = "distances are given, which are only sorted"
        say_on_cpu("the neighbor search", why, float(X.shape[0]) * self.n)
        indices, distances = np.empty((X.shape[0], k), dtype=np.intp), np.empty((X.shape[0], k))
        for block in row_blocks(X.shape[0], self.n, budget=2**22):
            indices[block], distances[block] = smallest_entries(X[block], k)
        return indices, distances

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        query, reference = np.nonzero(np.asarray(radius) >= X)
        return compress(query, reference, X[query, reference].astype(np.float64), X.shape[0])

    def identical(self, X: Matrix) -> IntArray:
        zero = X == 0
        return np.where(zero.any(axis=1), zero.argmax(axis=1), -1)


@dataclass(frozen=True, eq=False)
class SparseDistances(NeighborIndex):
    """Index for sparse precomputed distances; points that are not stored are not neighbors.

    An explicitly stored zero is a neighbor at distance zero. After :meth:`restrict`, queries are
    distances to the remaining points.
    """

    n: int
    reason: str = _REASON

    @property
    def n_reference(self) -> int:
        return self.n

    @property
    def points(self) -> None:
        return None

    def restrict(self, rows: IntArray) -> NeighborIndex:
        return replace(self, n=len(rows))

    def as_queries(self, X: Matrix) -> Matrix:
        if sparse.issparse(X):
            return X
        columns = np.tile(np.arange(self.n), len(X))  # zeros are distances, so store them
        return sparse.csr_array((X.ravel(), columns, np.arange(len(X) + 1) * self.n), shape=X.shape)

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        edges = self._rows(X)
        counts = np.diff(edges.indptr)
        if (counts < k).any():
            row = int(np.argmax(counts < k))
            raise ValueError(
                f"n_neighbors={k} needs {k} stored distances in every row of the sparse graph; "
                f"row {row} has {counts[row]}; store more or pass a smaller n_neighbors"
            )
        return edges.first(k)

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        edges = self._rows(X)
        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), self.n)
        return edges.keep(edges.distances <= radii[edges.indices])

    def identical(self, X: Matrix) -> IntArray:
        indptr, indices, distances = self._rows(X)
        found = np.full(X.shape[0], -1, dtype=np.intp)
        filled = np.flatnonzero(np.diff(indptr))
        first = indptr[filled]
        zero = distances[first] == 0
        found[filled[zero]] = indices[first[zero]]
        return found

    def nearest_excluding(self, X: Matrix, k: int, itself: IntArray) -> tuple[IntArray, Array]:
        # The graph may store the diagonal: remove it before taking k neighbors.
        indptr, indices, distances = without(self._rows(X), itself)
        shape = (X.shape[0], self.n)
        return self.nearest(sparse.csr_array((distances, indices, indptr), shape=shape), k)

    def min_stored(self, X: Matrix) -> int:
        """Smallest number of other points stored in a row of a square graph, but at least one."""
        indptr, indices, _ = self._rows(X)
        rows = np.repeat(np.arange(self.n), np.diff(indptr))
        return max(1, int(np.bincount(rows[indices != rows], minlength=self.n).min()))

    def _rows(self, X: Matrix) -> Edges:
        X = sparse.csr_array(X)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return compress(rows, X.indices.astype(np.intp), X.data.astype(np.float64), X.shape[0])
