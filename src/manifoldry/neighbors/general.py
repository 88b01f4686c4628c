"""Exact neighbours in any metric that scikit-learn knows, or a callable."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from manifoldry._rows import RowLookup
from manifoldry._typing import Array, IntArray, Matrix
from manifoldry._validation import row_blocks
from manifoldry.neighbors.base import Edges, NeighborIndex, compress, sort_rows


@dataclass(frozen=True, eq=False)
class GeneralIndex(NeighborIndex):
    """scikit-learn's own search, for the metrics without a faster path here."""

    X: Matrix
    metric: Any
    reason: str
    metric_params: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None

    @property
    def n_reference(self) -> int:
        return int(self.X.shape[0])

    @property
    def points(self) -> Matrix:
        return self.X

    @cached_property
    def _search(self) -> Any:
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(
            metric=self.metric, metric_params=self.metric_params or None, n_jobs=self.n_jobs
        )
        return search.fit(self.X)

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup.of(self.X)

    def restrict(self, rows: IntArray) -> NeighborIndex:
        return replace(self, X=self.X[rows])

    def identical(self, X: Matrix) -> IntArray:
        return self._lookup.find(X)

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        distances, indices = self._search.kneighbors(X, n_neighbors=k)
        return sort_rows(indices, np.asarray(distances, dtype=np.float64))

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        from sklearn.metrics import pairwise_distances

        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), self.n_reference)
        found: list[tuple[IntArray, IntArray, Array]] = []
        for block in row_blocks(X.shape[0], self.n_reference):
            D = pairwise_distances(X[block], self.X, metric=self.metric, **self.metric_params)
            # 1e-12: the k-th distances in `radius` come from another routine of scikit-learn.
            query, reference = np.nonzero(radii * (1 + 1e-12) >= D)
            found.append((query + block.start, reference, D[query, reference]))
        query, reference, distance = (np.concatenate(part) for part in zip(*found, strict=True))
        return compress(query, reference, distance, X.shape[0])
