"""Exact Euclidean neighbours in low dimension by a k-d tree."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from manifoldry._rows import RowLookup
from manifoldry._typing import Array, IntArray, Matrix
from manifoldry.neighbors.base import Edges, NeighborIndex, compress, sort_rows
from manifoldry.neighbors.brute import BruteIndex
from manifoldry.neighbors.distances import Frame, pair_distances

_SMALL = 2**24  # pairs below which one pass over all distances beats building a second tree


@dataclass(frozen=True, eq=False)
class KDTreeIndex(NeighborIndex):
    """scipy's k-d tree; O(log n) per query in a few dimensions, hopeless beyond about a dozen."""

    X: Array
    reason: str
    workers: int = 1

    @property
    def n_reference(self) -> int:
        return int(self.X.shape[0])

    @property
    def points(self) -> Array:
        return self.X

    @cached_property
    def _frame(self) -> Frame:
        return Frame.of(self.X)

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self._scaled(self.X))

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup.of(self.X)

    def restrict(self, rows: IntArray) -> NeighborIndex:
        return replace(self, X=self.X[rows])

    def identical(self, X: Matrix) -> IntArray:
        return self._lookup.find(X)

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        _, indices = self._tree.query(self._scaled(X), k=np.arange(1, k + 1), workers=self.workers)
        rows = np.repeat(np.arange(X.shape[0]), k)
        # The tree's own distances are rounded in its frame; these are not.
        exact = pair_distances(X, self.X, rows, indices.ravel(), self._frame.unit)
        return sort_rows(indices, exact.reshape(indices.shape))

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        if X.shape[0] * self.n_reference <= _SMALL:
            return BruteIndex(self.X, self.reason).within(X, radius)
        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), self.n_reference)
        query, reference = self._pairs(X, radii)
        exact = pair_distances(X, self.X, query, reference, self._frame.unit)
        keep = exact <= radii[reference]
        return compress(query[keep], reference[keep], exact[keep], X.shape[0])

    def _pairs(self, X: Matrix, radii: Array) -> tuple[IntArray, IntArray]:
        """Candidate pairs, found from the references' side since each has its own radius."""
        from scipy.spatial import cKDTree

        reach = radii / self._frame.unit * (1 + 1e-9)
        lists = cKDTree(self._scaled(X)).query_ball_point(
            self._scaled(self.X), reach, workers=self.workers
        )
        counts = np.fromiter(map(len, lists), dtype=np.intp, count=len(lists))
        query = np.fromiter((q for row in lists for q in row), np.intp, count=counts.sum())
        return query, np.repeat(np.arange(self.n_reference), counts)

    def _scaled(self, X: Matrix) -> Array:
        return self._frame.apply(np.asarray(X, dtype=np.float64))
