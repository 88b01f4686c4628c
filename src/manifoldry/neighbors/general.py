"""Exact neighbours in any metric that scikit-learn knows, or a callable."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifoldry.neighbors.base import SLACK, Edges, PointIndex, gather, smallest_entries
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class GeneralIndex(PointIndex):
    """All distances, block by block, for the metrics without a faster path here.

    Trees would be faster, but they are wrong for what obeys no triangle inequality, as some named
    dissimilarities and many callables do not.
    """

    X: Matrix
    metric: Any
    reason: str
    metric_params: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        indices, distances = np.empty((X.shape[0], k), dtype=np.intp), np.empty((X.shape[0], k))
        for block, D in self._blocks(X):
            indices[block], distances[block] = smallest_entries(D, k)
        return indices, distances

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        radii = np.asarray(radius, dtype=np.float64)
        found = []
        for block, D in self._blocks(X):
            query, reference = np.nonzero(radii * SLACK >= D)
            found.append((query + block.start, reference, D[query, reference]))
        return gather(found, X.shape[0])

    def between(self, i: IntArray, j: IntArray) -> Array:
        out = np.empty(len(i))
        order = np.argsort(i, kind="stable")
        starts = np.flatnonzero(np.diff(i[order])) + 1
        for pairs in np.split(order, starts) if len(i) else []:
            out[pairs] = self._all_pairs(self.X[i[pairs[:1]]], self.X[j[pairs]])[0]
        return out

    def _blocks(self, X: Matrix) -> Iterator[tuple[slice, Array]]:
        for block in row_blocks(X.shape[0], self.n_reference, budget=2**22):
            yield block, self._all_pairs(X[block], self.X, self.n_jobs)

    def _all_pairs(self, X: Matrix, Y: Matrix, n_jobs: int | None = None) -> Array:
        from sklearn.metrics import pairwise_distances

        X, Y = X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)
        D = pairwise_distances(X, Y, metric=self.metric, n_jobs=n_jobs, **self.metric_params)
        return np.asarray(D, dtype=np.float64)
