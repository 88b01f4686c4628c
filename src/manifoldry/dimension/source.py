"""Distinct points and their neighbors: what the estimators of dimension look at."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from manifoldry.dimension.linear_spectrum import LinearSpectrum
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_count
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import canonical, refuse_masked

_EUCLIDEAN = ("euclidean", "l2")


@dataclass(frozen=True, eq=False)
class Source:
    """The data of an estimate, copies counted once, or the neighbor graph that stands for them.

    A copy says nothing new about dimension, and its distance of zero would make all ratios of
    distances meaningless.

    Parameters
    ----------
    points : array or sparse matrix of shape (n_distinct, n_features), or None
        The distinct rows; None where only a graph of distances other than Euclidean is known.
    place : array of shape (n_samples,)
        Distinct point at which every sample lies.
    given : NeighborGraph or None
        The graph that was passed in place of data.
    first : array of shape (n_distinct,)
        First sample of every distinct point.
    usual_neighbors : int
        Neighbors of every point in the graph that all estimators share.
    """

    points: Matrix | None
    place: IntArray
    given: NeighborGraph | None
    first: IntArray
    usual_neighbors: int = 20

    @classmethod
    def of(cls, X: Any) -> "Source":
        """Read data or a graph; what was read before is taken as it is."""
        if isinstance(X, cls):
            return X
        if isinstance(X, NeighborGraph):
            return cls._of_graph(X)
        X = _read(X)
        first, place = np.unique(RowLookup.of(X).identical(X), return_inverse=True)
        _check_distinct(len(first), X.shape[0])
        return cls(X if len(first) == X.shape[0] else X[first], place, None, first)

    @classmethod
    def _of_graph(cls, graph: NeighborGraph) -> "Source":
        if graph.n_query != graph.n_reference:
            raise ValueError(
                f"a dimension needs the graph of the points among themselves; this one has "
                f"{graph.n_query} query points and {graph.n_reference} reference points"
            )
        copies = graph.matrix(graph.distances == 0)
        copies.eliminate_zeros()
        labels = connected_components(copies, directed=False)[1]
        _, first, place = np.unique(labels, return_index=True, return_inverse=True)
        _check_distinct(len(first), graph.n_query)
        points = graph.index.points if graph.metric in _EUCLIDEAN else None
        return cls(None if points is None else points[first], place, graph, first)

    @property
    def n(self) -> int:
        """Number of distinct points."""
        return len(self.first)

    @property
    def n_samples(self) -> int:
        """Number of points with their copies."""
        return len(self.place)

    def to_samples(self, values: Array) -> Array:
        """A value of every distinct point, for every sample."""
        return np.asarray(values[self.place])

    def require_points(self, method: str) -> Matrix:
        """The distinct points, where `method` cannot do without."""
        if self.points is None:
            metric = "precomputed" if self.given is None else self.given.metric
            raise ValueError(
                f"{method} needs the points themselves, with Euclidean distances; the graph passed "
                f"to it has metric={metric!r}: pass the data"
            )
        return self.points

    def spectrum(self, method: str) -> LinearSpectrum:
        """The variances along the principal axes, for `method`."""
        self.require_points(method)
        return self._spectrum

    @cached_property
    def _spectrum(self) -> LinearSpectrum:
        return LinearSpectrum.of(self.points)

    @cached_property
    def graph(self) -> NeighborGraph:
        """The graph that was passed, or that of the distinct points."""
        if self.given is not None:
            return self.given
        return NeighborGraph.build(self.points, min(self.usual_neighbors, self.n - 1), copy=False)

    def nearest(self, k: int) -> tuple[IntArray, Array]:
        """The k nearest distinct neighbors of every distinct point, and their distances.

        Both are (n_distinct, k); where a graph knows fewer, -1 and infinity fill the row.
        """
        if self.given is None:
            known = self.graph.k >= k
            graph = self.graph if known else NeighborGraph.build(self.points, k, copy=False)
            shape = (self.n, -1)
            indices, distances = graph.indices.reshape(shape), graph.distances.reshape(shape)
            return indices[:, :k], positive(distances[:, :k])
        return self._edges.nearest(k)

    @cached_property
    def _edges(self) -> "Edges":
        assert self.given is not None
        return Edges.of(self.given, self.place, self.n)

    def resolve_neighbors(self, n_neighbors: int | None, least: int = 1) -> int:
        """Neighbors to use: what was asked for, or twenty, or what most points have."""
        most, usual = (self.n - 1,) * 2 if self.given is None else self._edges.known
        if most < least:
            raise ValueError(
                f"the graph knows at most {most} distinct neighbors of a point, and at least "
                f"{least} are needed; build it with more"
            )
        if n_neighbors is None:
            return max(least, min(self.usual_neighbors, usual))
        k = check_count("n_neighbors", n_neighbors, minimum=least)
        if k > most:
            raise ValueError(
                f"n_neighbors={k} must be between {least} and {most} ({self._why(most)}); pass "
                f"n_neighbors={most} or fewer"
            )
        return k

    def _why(self, most: int) -> str:
        if most == self.n - 1:
            return f"one less than the distinct points, of which there are {self.n}"
        return f"the graph knows no more than {most} distinct neighbors; build it with more"


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of a graph between distinct points, every pair once, by point and length."""

    rows: IntArray
    columns: IntArray
    lengths: Array
    counts: IntArray  # (n,), of every point

    @classmethod
    def of(cls, graph: NeighborGraph, place: IntArray, n: int) -> "Edges":
        """Those of the graph, where ``place`` is the distinct point of every sample.

        A point's copies know the same neighbors, but not the same copies of those: all are asked.
        """
        rows, columns, lengths = place[graph.rows], place[graph.indices], graph.distances
        order = np.lexsort((lengths, columns, rows))
        order = order[rows[order] != columns[order]]
        pairs = rows[order] * n + columns[order]
        order = order[np.diff(pairs, prepend=-1) != 0]
        order = order[np.lexsort((lengths[order], rows[order]))]
        counts = np.bincount(rows[order], minlength=n)
        return cls(rows[order], columns[order], lengths[order], counts)

    @property
    def known(self) -> tuple[int, int]:
        """How many neighbors the best known point has, and how many more than half have."""
        ascending = np.sort(self.counts)
        return int(ascending[-1]), int(ascending[(len(ascending) - 1) // 2])

    def nearest(self, k: int) -> tuple[IntArray, Array]:
        """The k nearest of every point and their distances; -1 and infinity where not known."""
        n, starts = len(self.counts), np.cumsum(self.counts) - self.counts
        rank = np.arange(len(self.rows)) - starts[self.rows]
        near = rank < k
        indices, distances = np.full((n, k), -1), np.full((n, k), np.inf)
        indices[self.rows[near], rank[near]] = self.columns[near]
        distances[self.rows[near], rank[near]] = self.lengths[near]
        return indices, distances


def positive(distances: Array) -> Array:
    """Distances of distinct rows; where squares of differences vanish, the smallest of the rest."""
    least = np.min(distances, where=distances > 0, initial=np.inf)
    return np.maximum(distances, least) if np.isfinite(least) else distances


def _read(X: Any) -> Matrix:
    from sklearn.utils import check_array

    refuse_masked(X)
    dtypes = [np.float64, np.float32]
    return canonical(check_array(X, accept_sparse="csr", dtype=dtypes, ensure_min_samples=2))


def _check_distinct(distinct: int, n: int, fewest: int = 4) -> None:
    """Refuse fewer distinct points than these, which have no third neighbor."""
    if distinct < fewest:
        raise ValueError(
            f"X has n_samples={n} rows of which {distinct} are distinct; a dimension needs at "
            f"least {fewest} distinct points"
        )
