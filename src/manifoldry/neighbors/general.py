"""Exact neighbours in any metric that scikit-learn knows, or a callable."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifoldry._typing import Array, IntArray, Matrix
from manifoldry._validation import row_blocks
from manifoldry.neighbors.base import Edges, PointIndex, gather, smallest_entries

# A distance and its mirror image may differ in the last digits.
_SLACK = 1 + 1e-12


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
            query, reference = np.nonzero(radii * _SLACK >= D)
            found.append((query + block.start, reference, D[query, reference]))
        return gather(found, X.shape[0])

    def _blocks(self, X: Matrix) -> Iterator[tuple[slice, Array]]:
        from sklearn.metrics import pairwise_distances

        references = self.X.astype(np.float64, copy=False)
        for block in row_blocks(X.shape[0], self.n_reference, budget=2**22):
            D = pairwise_distances(
                X[block].astype(np.float64, copy=False),
                references,
                metric=self.metric,
                n_jobs=self.n_jobs,
                **self.metric_params,
            )
            yield block, np.asarray(D, dtype=np.float64)
