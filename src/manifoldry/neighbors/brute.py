"""Exact Euclidean and cosine neighbours by blocked matrix products."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from manifoldry._rows import RowLookup
from manifoldry._typing import Array, IntArray, Matrix
from manifoldry._validation import row_blocks
from manifoldry.neighbors.base import Edges, NeighborIndex, compress, sort_rows
from manifoldry.neighbors.distances import (
    Frame,
    expanded_squares,
    expansion_error,
    pair_distances,
    squared_norms,
)

_SPARE = 8  # candidates beyond k, so that rounding in the matrix product rarely decides


@dataclass(frozen=True, eq=False)
class BruteIndex(NeighborIndex):
    """All distances, block by block, with BLAS; O(n_query · n_reference · n_features).

    The matrix product only nominates candidates. Their distances are recomputed by subtraction,
    and a row whose nominations could be wrong by rounding is searched again in full, so the
    answer is exact also far from the origin and in float32.
    """

    X: Matrix
    reason: str

    @property
    def n_reference(self) -> int:
        return int(self.X.shape[0])

    @property
    def points(self) -> Matrix:
        return self.X

    @cached_property
    def _frame(self) -> Frame:
        return Frame.of(self.X)

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup.of(self.X)

    def restrict(self, rows: IntArray) -> NeighborIndex:
        return replace(self, X=self.X[rows])

    def identical(self, X: Matrix) -> IntArray:
        return self._lookup.find(X)

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        n_candidates = min(k + _SPARE, self.n_reference)
        candidates, cut, error = self._nominate(X, n_candidates)
        rows = np.repeat(np.arange(X.shape[0]), n_candidates)
        exact = pair_distances(X, self.X, rows, candidates.ravel(), self._frame.unit)
        candidates, exact = sort_rows(candidates, exact.reshape(candidates.shape))
        indices, distances = candidates[:, :k].copy(), exact[:, :k].copy()
        if n_candidates < self.n_reference:
            kth = (distances[:, -1] / self._frame.unit) ** 2
            # Beyond the candidates nothing is nearer than cut − error; a tie within
            # 1e-9 of the k-th distance is harmless whichever way it falls.
            doubtful = (kth > cut - error) & (error > 1e-9 * kth)
            self._search_in_full(X, np.flatnonzero(doubtful), indices, distances)
        return indices, distances

    def _nominate(self, X: Matrix, k: int) -> tuple[IntArray, Array, Array]:
        """K candidates per row, the largest squared distance among them, a bound on its error."""
        from sklearn.neighbors import NearestNeighbors

        references, queries = self._frame.apply(self.X), self._frame.apply(X)
        search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(references)
        distances, candidates = search.kneighbors(queries)
        error = expansion_error(queries, squared_norms(references))
        return candidates, distances[:, -1].astype(np.float64) ** 2, error

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), self.n_reference)
        limit = (radii / self._frame.unit) ** 2
        found: list[tuple[IntArray, IntArray, Array]] = []
        for block, D2, error in self._blocks(X):
            query, reference = np.nonzero(limit * (1 + 1e-9) + error[:, None] >= D2)
            exact = pair_distances(X, self.X, query + block.start, reference, self._frame.unit)
            keep = exact <= radii[reference]
            found.append((query[keep] + block.start, reference[keep], exact[keep]))
        query, reference, distance = (np.concatenate(part) for part in zip(*found, strict=True))
        return compress(query, reference, distance, X.shape[0])

    def _blocks(self, X: Matrix) -> Iterator[tuple[slice, Array, Array]]:
        """Squared distances in units of the frame, with their error bounds, block by block."""
        references = self._frame.apply(self.X)
        squares = squared_norms(references)
        for block in row_blocks(X.shape[0], self.n_reference):
            queries = self._frame.apply(X[block])
            D2 = expanded_squares(queries, references, squares)
            yield block, D2, expansion_error(queries, squares)

    def _search_in_full(
        self, X: Matrix, rows: IntArray, indices: IntArray, distances: Array
    ) -> None:
        k = indices.shape[1]
        everyone = np.arange(self.n_reference)
        for row in rows:
            repeated = np.full(self.n_reference, row)
            exact = pair_distances(X, self.X, repeated, everyone, self._frame.unit)
            order = np.argsort(exact, kind="stable")[:k]
            indices[row], distances[row] = order, exact[order]


@dataclass(frozen=True, eq=False)
class CosineIndex(NeighborIndex):
    """Cosine distance 1 − cos, found as half the squared distance on the unit sphere.

    Through the sphere the distance of nearly parallel rows keeps its digits, which 1 − x·y loses.
    """

    sphere: BruteIndex
    X: Matrix
    reason: str

    @classmethod
    def of(cls, X: Matrix, reason: str) -> "CosineIndex":
        """Index the directions of the rows of `X`."""
        return cls(BruteIndex(directions(X), reason), X, reason)

    @property
    def n_reference(self) -> int:
        return self.sphere.n_reference

    @property
    def points(self) -> Matrix:
        return self.X

    def restrict(self, rows: IntArray) -> NeighborIndex:
        return CosineIndex.of(self.X[rows], self.reason)

    def identical(self, X: Matrix) -> IntArray:
        return self.sphere.identical(directions(X))

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        indices, chords = self.sphere.nearest(directions(X), k)
        return indices, chords**2 / 2

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        chord = np.sqrt(2 * np.asarray(radius, dtype=np.float64)) * (1 + 1e-15)
        indptr, indices, chords = self.sphere.within(directions(X), chord)
        return Edges(indptr, indices, chords**2 / 2)


def directions(X: Matrix) -> Matrix:
    """Rows scaled to unit length; a row of zeros has no direction and is refused."""
    largest = abs(X).max(axis=1)
    largest = largest.toarray() if sparse.issparse(largest) else largest
    largest = np.asarray(largest, dtype=np.float64).ravel()
    if (largest == 0).any():
        row = int(np.flatnonzero(largest == 0)[0])
        raise ValueError(
            f"row {row} of X is all zeros, which has no direction for metric='cosine'; "
            "drop such rows or use metric='euclidean'"
        )
    if sparse.issparse(X):
        scaled = sparse.diags_array(1 / largest) @ X
        return sparse.csr_array(sparse.diags_array(1 / np.sqrt(squared_norms(scaled))) @ scaled)
    scaled = X / largest[:, None]
    return scaled / np.sqrt(squared_norms(scaled))[:, None]
