"""Exact neighbors by a k-d tree, for Minkowski metrics in low dimensions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from manifoldry.neighbors.base import (
    RESOLUTION,
    SLACK,
    Edges,
    PointIndex,
    compress,
    gather,
    search_radii,
    sort_rows,
)
from manifoldry.neighbors.distances import Frame, neighbor_distances, pair_distances
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import thread_count
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class KDTreeIndex(PointIndex):
    """Search by scipy's k-d tree: O(log n) per query in low dimensions, slow above about twelve.

    Parameters
    ----------
    X : array of shape (n_reference, n_features)
        The reference points.
    reason : str
        Why this index was chosen.
    p : float
        The order of the norm: 2 Euclidean, 1 Manhattan, infinity Chebyshev.
    scan_up_to : int
        Up to this number of query points, radius queries compute all distances instead of
        building a second tree.
    pairs_at_once : int
        Number of pairs processed together, which bounds memory.
    """

    X: Array
    reason: str
    p: float = 2.0
    scan_up_to: int = 64
    pairs_at_once: int = 2**22

    @cached_property
    def _frame(self) -> Frame:
        return Frame.at_zero(self.X)

    @cached_property
    def _tree(self) -> Any:
        return _tree_of(self._frame.apply(self.X))

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        ranks = np.arange(1, min(k + 1, self.n_reference) + 1)  # one more shows ties
        indices = self._query(X, ranks)
        distances = neighbor_distances(X, self.X, indices, self._frame.unit, self.p)
        indices, distances = sort_rows(indices, distances)
        if len(ranks) > k:
            tie = np.maximum(distances[:, k - 1] * SLACK, RESOLUTION * self._frame.unit)
            tied = np.flatnonzero(distances[:, k] <= tie)
            indices, distances = indices[:, :k].copy(), distances[:, :k].copy()
            self._search_again(X, tied, indices, distances)
        return indices, distances

    def _query(self, X: Matrix, ranks: IntArray) -> IntArray:
        """Neighbors of the given ranks; reference points are queried in tree order for speed."""
        query = partial(self._tree.query, k=ranks, p=self.p, workers=thread_count())
        if X is not self.X:
            return np.asarray(query(self._frame.apply(X))[1])
        order = self._tree.indices
        indices = np.empty((len(order), len(ranks)), dtype=np.intp)
        indices[order] = query(self._frame.apply(X[order]))[1]
        return indices

    def _search_again(self, X: Matrix, rows: IntArray, indices: IntArray, distances: Array) -> None:
        """Recompute the k neighbors of some rows from all points within the k-th distance."""
        if len(rows) == 0:
            return
        k = indices.shape[1]
        # Of identical points only the first k can be neighbors, since ties go by index.
        few = self._lookup.first_duplicates(k)
        index = self if len(few) == self.n_reference else replace(self, X=self.X[few])
        for batch, query, reference, exact in index.pairs(X[rows], distances[rows, -1]):
            edges = compress(query, few[reference], exact, len(batch))
            indices[rows[batch]], distances[rows[batch]] = edges.first(k)

    def pairs(
        self, X: Matrix, radii: Array
    ) -> Iterator[tuple[IntArray, IntArray, IntArray, Array]]:
        """Yield the pairs of a query and a reference within its radius, in batches of queries.

        Each item holds the queries of the batch and, for each pair, the position of the query in
        the batch, the reference and the distance.
        """
        candidates = self._balls(self._tree, self._frame.apply(X), self._search_radii(radii))
        for batch, query, reference in candidates:
            yield batch, query, reference, self._distances(X, batch[query], reference)

    def _search_radii(self, radii: Array) -> Array:
        return search_radii(radii, self._frame.unit) * SLACK

    def _balls(
        self, tree: Any, centers: Array, radii: Array
    ) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Yield the points of a tree within the radii of centers, in batches to bound memory.

        Centers and radii are in the units of the frame, as in the two methods below.
        Each item holds the centers of the batch and pairs of a position in the batch and a point.
        """
        query = partial(tree.query_ball_point, p=self.p, workers=thread_count())
        total = np.cumsum(query(centers, radii, return_length=True))
        splits = np.flatnonzero(np.diff(total // self.pairs_at_once)) + 1
        for batch in np.split(np.arange(len(centers)), splits):
            lists = query(centers[batch], radii[batch])
            counts = np.fromiter(map(len, lists), np.intp, count=len(lists))
            points = np.fromiter(chain.from_iterable(lists), np.intp, count=counts.sum())
            yield batch, np.repeat(np.arange(len(batch)), counts), points

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), self.n_reference)
        nominate = self._scan if X.shape[0] <= self.scan_up_to else self._query_swapped
        found = []
        for query, reference in nominate(X, self._search_radii(radii)):
            exact = self._distances(X, query, reference)
            keep = exact <= radii[reference]
            found.append((query[keep], reference[keep], exact[keep]))
        return gather(found, X.shape[0])

    def _scan(self, X: Matrix, radii: Array) -> Iterator[tuple[IntArray, IntArray]]:
        """Candidate pairs from all distances, for a few query points."""
        from scipy.spatial.distance import cdist

        references = self._frame.apply(self.X)
        for block in row_blocks(X.shape[0], self.n_reference, budget=self.pairs_at_once):
            D = cdist(self._frame.apply(X[block]), references, "minkowski", p=self.p)
            query, reference = np.nonzero(radii >= D)
            yield query + block.start, reference

    def _query_swapped(self, X: Matrix, radii: Array) -> Iterator[tuple[IntArray, IntArray]]:
        """Candidate pairs from a tree of the queries, since each reference has its own radius."""
        tree = _tree_of(self._frame.apply(X))
        for batch, position, query in self._balls(tree, self._frame.apply(self.X), radii):
            yield query, batch[position]

    def distances_between(self, i: IntArray, j: IntArray) -> Array:
        return self._distances(self.X, i, j)

    def _distances(self, X: Matrix, query: IntArray, reference: IntArray) -> Array:
        return pair_distances(X, self.X, query, reference, self._frame.unit, self.p)


def _tree_of(X: Array) -> Any:
    from scipy.spatial import cKDTree

    return cKDTree(X)
