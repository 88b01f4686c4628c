"""Approximate neighbor graphs of large data with many features."""

from dataclasses import dataclass

import numpy as np

from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.neighbors.base import SLACK, ReferenceNeighbors, sort_rows
from manifoldry.neighbors.brute import BruteIndex
from manifoldry.neighbors.cells import Cells
from manifoldry.neighbors.cells_on_device import nearby_on_device
from manifoldry.neighbors.distances import squared_norms
from manifoldry.neighbors.on_device import device_search
from manifoldry.neighbors.products import SingleRows, single_precision
from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import plan_memory, row_blocks, spread_rows


@dataclass(frozen=True, eq=False)
class ApproximateIndex(BruteIndex):
    """Approximate neighbors of the reference points, exact neighbors of new points.

    Each reference point is compared with the points of nearby cells, about √n in each. If
    a projection to principal axes keeps most of the variance and of the neighbors, the search runs
    in the projection, which is cheaper, and the candidates are then ranked by their distances in
    the full space. The result does not depend on the number of threads. A new point is compared
    with all points.

    If too few neighbors are found, for example because clusters are so far apart that single
    precision does not distinguish the points of one, the search is repeated exactly, or refused if
    that takes too long.

    Parameters
    ----------
    recall_sample : int
        Number of points on which the recall is estimated.
    target_recall : float
        Recall at which the search aims.
    recall_tolerance : float
        A warning is issued if the recall on a second sample is lower than `target_recall` by more
        than this.
    exact_below, useless_below : float
        If the recall is lower than `exact_below`, all pairs are compared, if `max_work` allows
        that; if not, and the recall is lower than `useless_below`, an error is raised.
    margin : float
        By how much the recall on the first sample is to exceed `target_recall`.
    max_work : float
        Largest number of compared pairs times features; the recall is lower if it takes more.
    min_variance : float
        Fraction of the variance that a projection must keep.
    projection_rows, max_projection : int
        Number of rows used to compute the projection, and its largest dimension.
    """

    recall_sample: int = 200
    target_recall: float = 0.98
    recall_tolerance: float = 0.01
    exact_below: float = 0.9
    useless_below: float = 0.5
    margin: float = 0.01
    max_work: float = 4e12
    min_variance: float = 0.9
    projection_rows: int = 3000
    max_projection: int = 256

    def reference_neighbors(self, X: Matrix, k: int) -> ReferenceNeighbors:
        n, d = self.X.shape
        needed = float(n) * (4 * _max_candidates(k) + 16 * k + 8 * d)
        plan_memory(needed, f"the neighbors of {n} points", "use fewer of either")
        rows = self._sample()
        found, lengths = _OnePassIndex(self.X, self.reason).nearest_excluding(self.X[rows], k, rows)
        sample, others = np.array_split(rows, 2)  # to choose the cells, and to check the result
        exact = lengths[len(sample) :]
        indices, distances = self._search(k, sample, found[: len(sample)])
        # Compare distances, not indices: any of several tied points counts as found.
        recall = float((distances[others] <= exact[:, -1:] * SLACK).mean())
        if recall >= self.target_recall - self.recall_tolerance:
            return ReferenceNeighbors(indices, distances, recall)
        failed = (
            f"approximate search found {recall:.0%} of the neighbors of a sample of points, "
            f"less than {self.target_recall:.0%}"
        )
        if recall < self.exact_below and self._exact_work <= self.max_work:
            return self._all_pairs(k, recall, failed)
        self._report(recall, failed)
        return ReferenceNeighbors(indices, distances, recall)

    def _search(self, k: int, sample: IntArray, truth: IntArray) -> tuple[IntArray, Array]:
        """The neighbors found, and their distances; `truth` are those of a sample."""
        on_device = device_search(self.X, self.X, lambda: self._frame)
        if on_device is None:
            order, candidates = self._candidates(k, sample, truth)
            return self._ranked(k, order, candidates)
        recall = min(1.0, self.target_recall + self.margin)
        needed = sample, truth, recall, self.max_work / self.X.shape[1]
        indices, distances = nearby_on_device(on_device, k, k + self.n_extra, *needed)
        self._complete(indices, distances)
        return indices, distances

    def _complete(self, indices: IntArray, distances: Array) -> None:
        """Search all points for the neighbors of those with fewer than k in nearby cells."""
        few = np.flatnonzero(np.isinf(distances[:, -1]))
        if len(few):
            k = indices.shape[1]
            indices[few], distances[few] = self.nearest_excluding(self.X[few], k, few)

    @property
    def _exact_work(self) -> float:
        """Number of all pairs times features."""
        n, d = self.X.shape
        return float(n) ** 2 * d

    def _all_pairs(self, k: int, recall: float, failed: str) -> ReferenceNeighbors:
        """Exact neighbors, with a warning that the approximate search has failed."""
        warn(
            f"{failed}; all pairs are compared, which takes {self._exact_work:.0e} products: "
            "remove outliers or rescale the features for a faster search",
            ConvergenceWarning,
        )
        note = f"; then all pairs, since the recall was {recall:.3f}"
        return super().reference_neighbors(self.X, k)._replace(note=note)

    def _report(self, recall: float, failed: str) -> None:
        """Warn of a low recall, or raise ValueError if the graph would be useless."""
        remedy = (
            "for exact neighbors pass NeighborGraph.build(X, search='exact') to fit instead of the "
            f"data, which takes {self._exact_work:.0e} products"
        )
        if recall < self.useless_below:
            raise ValueError(
                f"{failed}; remove outliers, reduce the features, for example by PCA, or {remedy}"
            )
        warn(f"{failed}; {remedy}", ConvergenceWarning)

    def _sample(self) -> IntArray:
        n = self.n_reference
        return np.random.default_rng(0).choice(n, min(n, 2 * self.recall_sample), replace=False)

    def _candidates(self, k: int, sample: IntArray, truth: IntArray) -> tuple[IntArray, IntArray]:
        """The order of the points sorted by cell, and candidates in that order and numbering."""
        Z, n_candidates, kept = self._projected(k, sample, truth)
        n, n_axes = Z.shape
        cells = Cells.of(Z)
        del Z  # the cells have a sorted copy
        recall = min(1.0, (self.target_recall + self.margin) / kept)
        n_searched = cells.cells_needed(sample, truth, recall, self.max_work / n_axes)
        return cells.order, cells.nearest(min(n_candidates, n - 1), n_searched)

    def _ranked(self, k: int, order: IntArray, candidates: IntArray) -> tuple[IntArray, Array]:
        """The k nearest candidates of each point, and their distances."""
        n, n_candidates = candidates.shape
        indices, distances = np.empty((n, k), dtype=np.intp), np.empty((n, k))
        X = np.ascontiguousarray(self.X)

        def fill(block: slice) -> None:
            rows, near = order[block], candidates[block]
            found = order[near]
            lengths = self._lengths(X, X, np.repeat(rows, n_candidates), found.ravel())
            lengths = np.where(near < 0, np.inf, lengths.reshape(near.shape))
            nearest, lengths = sort_rows(found, lengths)
            indices[rows], distances[rows] = nearest[:, :k], lengths[:, :k]

        map_threads(fill, row_blocks(n, n_candidates, budget=2**18))
        self._complete(indices, distances)
        return indices, distances

    def _projected(self, k: int, sample: IntArray, truth: IntArray) -> tuple[Array, int, float]:
        """Principal components, or all features in single precision if they lose neighbors.

        The numbers are how many candidates to keep for each point, and the fraction of the true
        neighbors of a sample among them.
        """
        X = SingleRows(self._frame, self.X)
        axes = self._principal_axes(X[spread_rows(len(X), self.projection_rows)])
        if axes is not None:
            Z = np.empty((len(X), axes.shape[1]), dtype=np.float32)

            def fill(rows: slice) -> None:
                np.matmul(X[rows], axes, out=Z[rows])

            with one_blas_thread():  # the result must not depend on the number of threads
                map_threads(fill, row_blocks(len(X), self.X.shape[1], budget=2**20))
                ranks = _ranks(Z, sample, truth, _max_candidates(k))
            # Most of the neighbors that may be missed are left to the choice of the cells.
            enough = int(np.quantile(ranks, (3 + self.target_recall) / 4, method="higher")) + 1
            n_candidates = min(max(enough, k + self.n_extra), _max_candidates(k))
            kept = float((ranks < n_candidates).mean())
            if kept >= (1 + self.target_recall) / 2:
                return Z, n_candidates, kept
        return single_precision(self._frame, self.X), k + self.n_extra, 1.0

    def _principal_axes(self, X: Array) -> Array | None:
        """Axes that keep most of the variance, or None if these are more than half as many."""
        X = X - X.mean(axis=0)  # the origin of the frame may differ from the mean
        with one_blas_thread():
            axes = _leading_directions(X, self.max_projection)
            values, vectors = np.linalg.eigh((X @ axes).T @ (X @ axes))
        total = max(float((X**2).sum()), np.finfo(np.float32).tiny)
        n_axes = int(np.searchsorted(np.cumsum(values[::-1]) / total, self.min_variance)) + 1
        if n_axes > min(X.shape[1] // 2, len(values)):
            return None
        return np.ascontiguousarray(axes @ vectors[:, ::-1][:, :n_axes])

    def _is_large(self, X: Matrix) -> bool:
        return True  # compiled loops are used in any case

    def _between(self, X: Matrix, query: IntArray, reference: IntArray) -> Array:
        out = np.empty(len(query))
        rows = np.ascontiguousarray(X), np.ascontiguousarray(self.X)

        def fill(part: slice) -> None:
            out[part] = self._lengths(*rows, query[part], reference[part])

        map_threads(fill, row_blocks(len(query), X.shape[1], budget=2**22))
        return out

    def _to_neighbors(self, X: Matrix, neighbors: IntArray) -> Array:
        query = np.repeat(np.arange(len(neighbors)), neighbors.shape[1])
        return self._between(X, query, neighbors.ravel()).reshape(neighbors.shape)

    def _lengths(self, X: Array, Y: Array, i: IntArray, j: IntArray) -> Array:
        from manifoldry.neighbors.compiled import lengths

        out = np.empty(len(i))
        i, j = i.astype(np.intp, copy=False), j.astype(np.intp, copy=False)
        lengths(X, Y, i, j, self._frame.unit, out)
        return out


class _OnePassIndex(ApproximateIndex):
    """Exact search for a few queries, which reads all reference points only once.

    These are converted to single precision as they are read: an array of them, which pays if many
    queries are searched in blocks, would be a second copy of the data.
    """

    @property
    def _single(self) -> SingleRows:  # type: ignore[override]
        return SingleRows(self._frame, self.X)


def _max_candidates(k: int) -> int:
    """Largest number of candidates per point for a search in a projection."""
    return max(2 * k, k + 25)


def _ranks(Z: Array, sample: IntArray, truth: IntArray, most: int) -> IntArray:
    """How many points are as near as each true neighbor in the projection, at most `most`."""
    most = min(most, len(Z) - 1)
    squares, ranks = squared_norms(Z), []
    for rows in row_blocks(len(sample), len(Z), budget=2**20):
        D = squares - 2 * Z[sample[rows]] @ Z.T  # squared distances up to a constant per row
        D[np.arange(len(D)), sample[rows]] = np.inf
        nearest = np.partition(D, most - 1, axis=1)[:, :most]
        found = np.take_along_axis(D, truth[rows], axis=1)
        as_near = (nearest[:, None, :] <= found[:, :, None]).sum(axis=2)
        farther = found > nearest.max(axis=1, keepdims=True)
        ranks.append(np.where(farther, most, as_near - 1))
    return np.concatenate(ranks)


def _leading_directions(X: Array, max_projection: int) -> Array:
    """Orthonormal directions (n_features, ≤ max_projection) of largest variance of `X`."""
    d = X.shape[1]
    if d <= max_projection:
        return np.eye(d, dtype=X.dtype)
    start = np.random.default_rng(0).standard_normal((d, max_projection), dtype=np.float32)
    for _ in range(2):
        start = np.linalg.qr(X.T @ (X @ start))[0]
    return start
