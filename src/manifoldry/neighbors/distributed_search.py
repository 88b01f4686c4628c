"""Nearest neighbors among the rows of parts.

The exact search compares all pairs of parts, without the rows that cannot be near each other by the
ranges of their features. The approximate one compares a row with the points of
the cells that are nearest to it, as in memory: products in single precision nominate candidates,
whose distances are then computed by subtraction. For each part there is a chain of tasks, one for
each part that has some of these cells, beginning with the part itself. What is found so far limits
what is nominated next. A worker has two parts in memory at a time, and those that it received.

Of rows at the same distance the first in the data are nearest, as in memory, so that the division
into parts does not matter. The approximate search knows that of its candidates only: it may miss
some of more than k + 8 rows that are equal to rounding, or in cells that it does not search.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from manifoldry.distributed.blocks import taken
from manifoldry.distributed.scheduler import combined, compute, delayed, persist
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.neighbors.base import SLACK
from manifoldry.neighbors.cells import (
    center_squares,
    compare_with_cells,
    nearest_centers,
    searched_cells,
)
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.distances import expansion_error, squared_norms
from manifoldry.neighbors.distributed_cells import Partition, PartitionedRows
from manifoldry.util.typing import Array, IntArray


class NearestRows(NamedTuple):
    """The nearest rows found so far, (n, k): positions, -1 for none, row numbers, and distances."""

    positions: IntArray
    numbers: IntArray
    """Which rows of the data these are; they decide between equal distances."""
    distances: Array

    @classmethod
    def nothing(cls, n: int, k: int) -> NearestRows:
        """None yet."""
        none = np.full((n, k), -1, dtype=np.int64)
        return cls(none, none, np.full((n, k), np.inf))

    def rows(self, rows: Any) -> NearestRows:
        """Those of some rows."""
        return NearestRows(self.positions[rows], self.numbers[rows], self.distances[rows])

    def replaced(self, rows: IntArray, nearest: NearestRows) -> NearestRows:
        """The same with other neighbors of some rows."""
        changed = NearestRows(self.positions.copy(), self.numbers.copy(), self.distances.copy())
        for each, new in zip(changed, nearest, strict=True):
            each[rows] = new
        return changed

    def with_others(self, other: NearestRows) -> NearestRows:
        """The nearest of both."""
        both = (np.concatenate(pair, axis=1) for pair in zip(self, other, strict=True))
        positions, numbers, distances = both
        order = np.lexsort((numbers, distances), axis=1)[:, : self.positions.shape[1]]
        first = np.arange(len(order))[:, None], order
        return NearestRows(positions[first], numbers[first], distances[first])


class Searched(NamedTuple):
    """Neighbors of the rows of each part, and how they were found."""

    found: list[Any]
    recall: float
    how: str
    sampled: bool
    """Whether the recall is that of a sample."""


def exact_search(rows: PartitionedRows, k: int, metric: str, *, verbose: bool = False) -> Searched:
    """Find the neighbors of all rows by comparing all pairs of parts."""
    nearer, search, found = delayed(_AllPairs.nearer), _AllPairs(k, metric), []
    starts = rows.order.bounds[:-1].tolist()
    parts = list(zip(rows.points, rows.order.rows, starts, strict=True))
    for p, X in enumerate(rows.points):
        nearest = None
        for q in _itself_first(p, range(len(parts))):
            nearest = nearer(search, nearest, X, starts[p], *parts[q])
        found.append(nearest)
    found = persist(found)
    compute([delayed(_n_missing)(each) for each in found], "comparing parts", verbose=verbose)
    return Searched(found, 1.0, "all pairs of rows, part by part", False)


@dataclass(frozen=True)
class NearbySearch:
    """Search in the cells near each row.

    Parameters
    ----------
    sample : int
        Number of rows whose exact neighbors decide how many cells are searched, and of as many
        others on which the recall is estimated.
    target_recall, margin : float
        The recall that the search aims at, and by how much it is to exceed that on the first
        sample.
    warn_below : float
        Recall below which there is a warning.
    n_extra : int
        Number of candidates in addition to k, against rounding.
    completed_at_once : int
        Rows with fewer than k neighbors in nearby cells are compared with all others, about so
        many at a time.
    """

    sample: int = 200
    target_recall: float = 0.98
    margin: float = 0.01
    warn_below: float = 0.97
    n_extra: int = 8
    completed_at_once: int = 4096

    def __call__(
        self,
        rows: PartitionedRows,
        k: int,
        metric: str,
        rng: np.random.Generator,
        *,
        verbose: bool = False,
    ) -> Searched:
        """Find the neighbors of all rows.

        Parameters
        ----------
        rows : PartitionedRows
            The rows.
        k : int
            Number of neighbors.
        metric : str
            "euclidean" or "cosine".
        rng : numpy.random.Generator
            Source of random numbers.
        verbose : bool
            Whether progress is shown.

        Returns
        -------
        Searched
            The neighbors.
        """
        sample = self._sample(rows.order.n_samples, rng)
        [queries, truth] = persist(self._truth(rows, k, metric, sample))
        recall = min(1.0, self.target_recall + self.margin)
        choose = delayed(_needed)(rows.partition, queries, truth, recall)
        [n_searched] = compute([choose], "sampling neighbors", verbose=verbose)
        found = self._search(rows, k, n_searched)
        counts = compute(
            [delayed(_n_missing)(each) for each in found], "searching", verbose=verbose
        )
        if any(counts):
            found = self._completed(rows, found, counts, k, metric, verbose)
        achieved = self._recall(rows, found, truth, sample)
        if achieved < self.warn_below:
            warn(
                f"approximate search found {achieved:.0%} of the neighbors of a sample of rows, "
                f"less than {self.target_recall:.0%}; for exact neighbors pass search='exact', "
                f"which takes {float(rows.order.n_samples) ** 2:.0e} distances",
                ConvergenceWarning,
            )
        return Searched(
            found, achieved, f"nearby cells, {n_searched} of {rows.n_cells} per row", True
        )

    def _sample(self, n: int, rng: np.random.Generator) -> IntArray:
        return np.sort(rng.choice(n, min(n, 2 * self.sample), replace=False))

    def _truth(self, rows: PartitionedRows, k: int, metric: str, sample: IntArray) -> list[Any]:
        """Tasks of a sample of rows, and of their exact neighbors."""
        pieces = [
            delayed(taken)(rows.points[p], here) for p, here in _by_part(sample, rows.order.bounds)
        ]
        queries = delayed(np.concatenate)(pieces)
        return [queries, _among_all(rows, queries, sample, k, metric)]

    def _search(self, rows: PartitionedRows, k: int, n_searched: int) -> list[Any]:
        """The neighbors of the rows of each part in the cells near them."""
        near_cells, near_parts = delayed(_near_cells), delayed(_near_parts)
        near = persist(
            near_cells(X, rows.partition, p, n_searched) for p, X in enumerate(rows.points)
        )
        parts = compute([near_parts(each, rows.partition) for each in near], "nearby cells")
        compare, finish, found = delayed(_Pair.compared), delayed(_finished), []
        starts = rows.order.bounds.tolist()
        for p, X in enumerate(rows.points):
            nearest = None
            for q in _itself_first(p, parts[p]):
                pair, others = _Pair(p, q, starts[q], k, self.n_extra), rows.order.rows[q]
                here = X, rows.points[q], others, near[p], rows.partition
                nearest = compare(pair, nearest, *here)
            found.append(finish(nearest, rows.partition))
        return persist(found)

    def _completed(
        self,
        rows: PartitionedRows,
        found: list[Any],
        counts: list[int],
        k: int,
        metric: str,
        verbose: bool,
    ) -> list[Any]:
        """Compare rows that have fewer than k neighbors with all others."""
        missing, take = delayed(_missing), delayed(taken)
        incomplete = np.flatnonzero(counts)
        groups = np.cumsum(np.array(counts)[incomplete]) // self.completed_at_once
        found = list(found)
        for group in np.unique(groups):
            parts = incomplete[groups == group]
            here = {p: missing(found[p]) for p in parts}
            queries = delayed(np.concatenate)([take(rows.points[p], here[p]) for p in parts])
            own = delayed(_global)([here[p] for p in parts], rows.order.bounds[parts])
            nearest = _among_all(rows, queries, own, k, metric)
            ends = np.concatenate([[0], np.cumsum(np.array(counts)[parts])])
            for p, of_part in zip(parts, pairwise(ends), strict=True):
                found[p] = delayed(_replaced)(found[p], here[p], nearest, *map(int, of_part))
        found = persist(found)
        compute([delayed(_n_missing)(each) for each in found], "completing", verbose=verbose)
        return found

    def _recall(
        self, rows: PartitionedRows, found: list[Any], truth: Any, sample: IntArray
    ) -> float:
        """Fraction of the true neighbors that were found for the second half of a sample."""
        count = delayed(_of_rows)
        of_parts = [count(found[p], here) for p, here in _by_part(sample, rows.order.bounds)]
        return float(compute([delayed(_fraction)(of_parts, truth)], "measuring recall")[0])


def _itself_first(p: int, parts: Iterable[int]) -> list[int]:
    return sorted(map(int, parts), key=lambda q: q != p)


def _by_part(positions: IntArray, bounds: IntArray) -> list[tuple[int, IntArray]]:
    """The parts that have some of the sorted positions, and their rows there."""
    part = np.searchsorted(bounds, positions, side="right") - 1
    return [(int(p), positions[part == p] - bounds[p]) for p in np.unique(part)]


def _among_all(rows: PartitionedRows, queries: Any, own: Any, k: int, metric: str) -> Any:
    """The task of the exact neighbors of a few queries among all rows."""
    find, search = delayed(_AllPairs.nearest), _AllPairs(k, metric)
    parts = zip(rows.points, rows.order.rows, rows.order.bounds[:-1].tolist(), strict=True)
    return combined([find(search, queries, own, *part) for part in parts], _merged)


@dataclass(frozen=True)
class _AllPairs:
    """Comparison of all pairs of rows of two parts."""

    k: int
    metric: str

    def nearest(
        self, X: Array, own: IntArray, Y: Array, numbers: IntArray, start: int
    ) -> NearestRows:
        """The nearest rows of a part to queries, except themselves; `own` are their positions.

        `numbers` are the rows of the data that are in the part, and `start` its first position.
        """
        n, order = len(Y), np.argsort(numbers)  # of equal distances the first one counts
        Y = _of_similar_size(Y[order], X)
        index = choose_index(Y, self.metric, search="exact")
        found, distances = index.nearest(X, min(self.k + 1 + len(Y) - n, len(Y)))
        local = order[np.minimum(found, n - 1)]
        positions = local.astype(np.int64) + start
        left_out = (positions == own[:, None]) | (found >= n)
        positions, known = np.where(left_out, -1, positions), np.where(left_out, -1, numbers[local])
        others = NearestRows(positions, known, np.where(left_out, np.inf, distances))
        return NearestRows.nothing(len(X), self.k).with_others(others)

    def nearer(
        self,
        found: NearestRows | None,
        X: Array,
        own_start: int,
        Y: Array,
        numbers: IntArray,
        start: int,
    ) -> NearestRows:
        """What was found for the rows of a part, or nearer rows of another part."""
        own = np.arange(own_start, own_start + len(X))
        if found is None:
            return self.nearest(X, own, Y, numbers, start)
        rows = np.arange(len(X))
        if self.metric == "euclidean":
            rows = np.flatnonzero(least_distances(X, Y) <= found.distances[:, -1])
        if len(rows) == 0:
            return found
        nearest = self.nearest(X[rows], own[rows], Y, numbers, start)
        return found.replaced(rows, found.rows(rows).with_others(nearest))


def least_distances(X: Array, Y: Array) -> Array:
    """Return lower bounds of the distances of rows from all rows of a part, by ranges of features.

    Parameters
    ----------
    X : array of shape (n, n_features)
        The rows.
    Y : array of shape (m, n_features)
        The rows of the part.

    Returns
    -------
    array of shape (n,)
        The largest distance of a feature from the range that it has in the part.
    """
    X, low, high = (each.astype(np.float64) for each in (X, Y.min(axis=0), Y.max(axis=0)))
    with np.errstate(over="ignore"):  # farther than any distance
        return np.asarray(np.maximum(low - X, X - high).max(axis=1, initial=0.0) / SLACK)


def _of_similar_size(Y: Array, X: Array, largest: float = 1e100) -> Array:
    """The rows Y, with one of X if those are so large in units of Y that squares may overflow."""
    size = np.abs(X).max(axis=1)
    spread = float((Y.max(axis=0).astype(np.float64) - Y.min(axis=0)).max())
    if float(size.max()) / largest <= spread:
        return Y
    return np.vstack([Y, X[np.argmax(size)]])


def _merged(found: list[NearestRows]) -> NearestRows:
    """The nearest of several parts."""
    return reduce(NearestRows.with_others, found)


def _needed(partition: Partition, queries: Array, truth: NearestRows, recall: float) -> int:
    """Number of cells to search per row, from every other row of a sample."""
    squares = center_squares(partition.single(queries[::2]), partition.centers)
    cells = np.searchsorted(partition.starts, truth.positions[::2], side="right") - 1
    return searched_cells(squares, partition.starts, cells, recall, np.inf)


def _blocks(partition: Partition, part: int, most: int = 1024) -> list[tuple[Array, slice]]:
    """Rows of a part in blocks of one cell, with its center, the origin of products."""
    starts = partition.local_starts(part)
    return [
        (partition.centers[cell], slice(first, min(first + most, stop)))
        for cell, (start, stop) in zip(partition.cells_of(part), pairwise(starts), strict=True)
        for first in range(start, stop, most)
    ]


def _near_cells(X: Array, partition: Partition, part: int, count: int) -> IntArray:
    """The cells that the rows of a part are compared with, (n_rows, count)."""
    X, centers = partition.single(X), partition.centers
    near = np.empty((len(X), count), dtype=np.min_scalar_type(len(centers)))
    for center, rows in _blocks(partition, part):
        near[rows] = nearest_centers(X[rows] - center, centers - center, count)
    return near


def _near_parts(near: IntArray, partition: Partition) -> IntArray:
    return np.unique(np.searchsorted(partition.bounds, np.unique(near), side="right") - 1)


@dataclass(frozen=True)
class _Pair:
    """A part, and another one or the same, whose rows are compared with its rows.

    Parameters
    ----------
    part, other : int
        Their numbers.
    start : int
        The first position of the other part.
    k : int
        Number of neighbors.
    n_extra : int
        Number of candidates in addition.
    """

    part: int
    other: int
    start: int
    k: int
    n_extra: int

    def compared(
        self,
        found: NearestRows | None,
        X: Array,
        Y: Array,
        numbers: IntArray,
        near: IntArray,
        partition: Partition,
    ) -> NearestRows:
        """What was found, or nearer rows of the other part in the cells `near` rows."""
        found = NearestRows.nothing(len(X), self.k) if found is None else found
        X, Y = partition.exact(X), partition.exact(Y)
        candidates = self._candidates(found, X, Y, near, partition)
        rows = np.flatnonzero((candidates >= 0).any(axis=1))
        candidates = candidates[rows]
        known = candidates >= 0
        query, slot = np.nonzero(known)
        distances = np.full(candidates.shape, np.inf)
        distances[query, slot] = _lengths(
            X, Y, rows[query], candidates[query, slot], partition.frame.unit
        )
        positions = np.where(known, candidates.astype(np.int64) + self.start, -1)
        others = NearestRows(positions, np.where(known, numbers[candidates], -1), distances)
        return found.replaced(rows, found.rows(rows).with_others(others))

    def _candidates(
        self, found: NearestRows, X: Array, Y: Array, near: IntArray, partition: Partition
    ) -> IntArray:
        """Rows of the other part that may be nearer than what was found, (n_rows, k + n_extra)."""
        frame, cells = partition.frame, partition.cells_of(self.other)
        X, Y = frame.apply_single(X), frame.apply_single(Y)
        starts = partition.local_starts(self.other)
        indices = np.full((len(X), self.k + self.n_extra), -1, dtype=np.int32)
        for center, rows in _blocks(partition, self.part):
            local = near[rows].astype(np.int32) - cells.start
            local[local >= len(cells)] = -1
            if (local < 0).all():
                continue
            queries = X[rows] - center
            values = np.empty((len(queries), indices.shape[1]), dtype=np.float32)
            values[:] = _limits(squared_norms(queries), found.distances[rows, -1:] / frame.unit, X)
            own = rows.start if self.part == self.other else -1
            compare_with_cells(Y, starts, center, queries, local, own, indices[rows], values)
        return indices


def _limits(squares: Array, radii: Array, X: Array) -> Array:
    """Bounds of the squared distance less the square of the query, of rows within `radii`."""
    squares = squares[:, None].astype(np.float64)
    error = expansion_error(squares, (np.sqrt(squares) + radii) ** 2, X.shape[1], X.dtype)
    return radii**2 + error - squares


def _lengths(X: Array, Y: Array, i: IntArray, j: IntArray, unit: float) -> Array:
    """Distances of pairs of rows by subtraction, in double precision."""
    from manifoldry.neighbors.compiled import lengths

    out = np.empty(len(i))
    lengths(_writable(X), _writable(Y), i, j.astype(np.intp), unit, out)
    return out


def _writable(X: Array) -> Array:
    """Rows as an array of the usual type: loops are compiled once more for read-only arrays."""
    return X if X.flags.writeable and X.flags.c_contiguous else X.copy()


def _finished(found: NearestRows, partition: Partition) -> NearestRows:
    """Distances of the metric; on the unit sphere they were chords."""
    if partition.metric == "euclidean":
        return found
    return found._replace(distances=found.distances**2 / 2)


def _missing(found: NearestRows) -> IntArray:
    """Rows with fewer than k neighbors."""
    return np.flatnonzero(np.isinf(found.distances[:, -1]))


def _n_missing(found: NearestRows) -> int:
    return len(_missing(found))


def _global(rows: list[IntArray], starts: IntArray) -> IntArray:
    return np.concatenate([each + start for each, start in zip(rows, starts, strict=True)])


def _replaced(
    found: NearestRows, rows: IntArray, nearest: NearestRows, first: int, stop: int
) -> NearestRows:
    return found.replaced(rows, nearest.rows(slice(first, stop)))


def _of_rows(found: NearestRows, rows: IntArray) -> NearestRows:
    return found.rows(rows)


def _fraction(found: list[NearestRows], truth: NearestRows) -> float:
    """Fraction of neighbors that are as near as the true ones, of every other row."""
    distances = np.concatenate([each.distances for each in found])
    # Any of several tied rows counts as found.
    return float((distances[1::2] <= truth.distances[1::2, -1:] * SLACK).mean())
