"""Neighbours of large data of many features: nearly all of them, in a fraction of the time."""

from dataclasses import dataclass, field

import numpy as np

from manifoldry.exceptions import ConvergenceWarning
from manifoldry.neighbors.base import SLACK, Others, sort_rows
from manifoldry.neighbors.brute import BruteIndex
from manifoldry.neighbors.descent import Descent
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import plan_memory, row_blocks
from manifoldry.util.warn import warn


@dataclass(frozen=True, eq=False)
class ApproximateIndex(BruteIndex):
    """Approximate for all points among themselves, exact for new points.

    The graph of n points takes about n·log n distances; a new point is compared with all of them.
    The same data always give the same graph, whatever the number of threads.

    Parameters
    ----------
    recall_sample : int
        Points on which recall is measured.
    enough_recall : float
        Recall at which the search ends.
    recall_spread : float
        By how much recall may come out lower on other points without a warning.
    max_passes : int
        Passes in the full space, at most, to get there.
    descent : Descent
        The search itself.
    """

    recall_sample: int = 100
    enough_recall: float = 0.98
    recall_spread: float = 0.01
    max_passes: int = 3
    descent: Descent = field(default_factory=Descent)

    def others(self, X: Matrix, k: int) -> Others:
        n, d = self.X.shape
        needed = 30.0 * n * (2 * k + 20) + 8.0 * n * d
        plan_memory(needed, f"the neighbours of {n} points", "use fewer of either")
        sample = self._sample(0)
        truth, distances = self.nearest_but(self.X[sample], k, sample)
        indices = self._completed(self.descent.neighbors(self._single, k, sample, truth))
        for _ in range(self.max_passes):
            if self._recall(indices, sample, distances) >= self.enough_recall:
                break
            indices = self._completed(self.descent.improved(self._single, indices))
        others = self._sample(1)  # than those that ended the search
        recall = self._recall(indices, others, self.nearest_but(self.X[others], k, others)[1])
        self.__dict__.pop("_single", None)  # as large as half the data
        if recall < self.enough_recall - self.recall_spread:
            warn(
                f"approximate search found {recall:.0%} of the neighbours of a sample of points, "
                f"less than {self.enough_recall:.0%}; for all of them pass fit a graph made by "
                "NeighborGraph.build(X, search='exact')",
                ConvergenceWarning,
            )
        return Others(*sort_rows(indices, self._to_neighbors(self.X, indices)), recall)

    def _completed(self, indices: IntArray) -> IntArray:
        """Search the rows again, exactly, where neighbours are missing."""
        holes = np.flatnonzero((indices < 0).any(axis=1))
        if len(holes):
            indices[holes] = self.nearest_but(self.X[holes], indices.shape[1], holes)[0]
        return indices

    def _sample(self, seed: int) -> IntArray:
        n = self.n_reference
        return np.sort(
            np.random.default_rng(seed).choice(n, min(n, self.recall_sample), replace=False)
        )

    def _is_large(self, X: Matrix) -> bool:
        return True  # the loops are compiled in any case

    def _between(self, X: Matrix, query: IntArray, reference: IntArray) -> Array:
        from manifoldry.neighbors.kernels import lengths

        out = np.empty(len(query))
        pairs = np.ascontiguousarray(X), np.ascontiguousarray(self.X), query, reference
        map_threads(
            lambda part: lengths(*pairs, self._frame.unit, out, part.start, part.stop),
            row_blocks(len(query), X.shape[1], budget=2**22),
        )
        return out

    def _to_neighbors(self, X: Matrix, neighbors: IntArray) -> Array:
        query = np.repeat(np.arange(len(neighbors)), neighbors.shape[1])
        return self._between(X, query, neighbors.ravel()).reshape(neighbors.shape)

    def _recall(self, indices: IntArray, sample: IntArray, distances: Array) -> float:
        """Share of a sample's neighbours, at these true distances, that were found."""
        found = self._to_neighbors(self.X[sample], indices[sample])
        # A neighbour as near as the last true one counts, for of tied points any will do.
        return float((found <= distances[:, -1:] * SLACK).mean())
