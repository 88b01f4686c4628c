"""Distinct points and their neighbors: what the estimators of dimension look at."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.base.input import Points
from manifoldry.eigen import resolve_solver
from manifoldry.neighbors.distances import squared_norms
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.gram import LinearGram
from manifoldry.util.checks import check_count
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import canonical, refuse_masked

_EUCLIDEAN = ("euclidean", "l2")


@dataclass(frozen=True, eq=False)
class LinearSpectrum:
    """Fractions of the variance along the principal axes, with what each point contributes.

    Parameters
    ----------
    fractions : array of shape (k,)
        Fraction of the whole variance along every axis, largest first.
    parts : array of shape (n_rows, k)
        Squared coordinates of every point, as fractions of the mean squared distance to the center.
    lengths : array of shape (n_rows,)
        Squared distances to the center, divided by their mean.
    all_there_are : int
        Number of axes that data of this shape can have.
    """

    fractions: Array
    contributions: Array
    squared_distances: Array
    max_rank: int

    @classmethod
    def of(cls, X: Matrix, *, max_rows: int = 10_000, max_axes: int = 300) -> "LinearSpectrum":
        """Decompose the Gram matrix of the data, or of a sample of them, always the same."""
        rng = np.random.default_rng(0)
        if X.shape[0] > max_rows:
            X = X[np.sort(rng.choice(X.shape[0], max_rows, replace=False))]
        n = X.shape[0]
        bound = min(n - 1, X.shape[1])
        gram = LinearGram.of(Points(X))
        solver = resolve_solver("auto", end="largest")
        spectrum = solver.solve(gram.problem, min(bound, max_axes), rng)
        values = np.maximum(spectrum.values, 0.0)
        squared_distances = _squared_distances(gram) * n / gram.inertia
        contributions = values * spectrum.vectors**2 * n / gram.inertia
        return cls(values / gram.inertia, contributions, squared_distances, bound)

    @property
    def errors(self) -> Array:
        """Standard error of each fraction: to first order eigenvectors do not matter."""
        influence = self.contributions - self.fractions * self.squared_distances[:, None]
        return influence.std(axis=0) / np.sqrt(len(self.squared_distances))

    @property
    def cumulative(self) -> tuple[Array, Array]:
        """Fraction of the variance that the first axes hold together, and its standard error."""
        cumulative = np.minimum(np.cumsum(self.fractions), 1.0)
        influence = (
            np.cumsum(self.contributions, axis=1) - cumulative * self.squared_distances[:, None]
        )
        return cumulative, influence.std(axis=0) / np.sqrt(len(self.squared_distances))


def _squared_distances(gram: LinearGram) -> Array:
    """Squared distances of the points from their mean, in units of the pose."""
    F = gram.problem.operator.factor
    if not sparse.issparse(F):
        return squared_norms(F)
    mean = np.asarray(F.mean(axis=0)).ravel()
    return np.asarray(squared_norms(F) - 2 * (F @ mean) + mean @ mean)


@dataclass(frozen=True, eq=False)
class DistinctPoints:
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
    point_index: IntArray
    input_graph: NeighborGraph | None
    first_sample: IntArray
    default_neighbors: int = 20

    @classmethod
    def of(cls, X: Any) -> "DistinctPoints":
        """Read data or a graph; what was read before is taken as it is."""
        if isinstance(X, cls):
            return X
        if isinstance(X, NeighborGraph):
            return cls._of_graph(X)
        X = _read(X)
        first_sample, point_index = np.unique(RowLookup.of(X).identical(X), return_inverse=True)
        _check_distinct(len(first_sample), X.shape[0])
        return cls(
            X if len(first_sample) == X.shape[0] else X[first_sample],
            point_index,
            None,
            first_sample,
        )

    @classmethod
    def _of_graph(cls, graph: NeighborGraph) -> "DistinctPoints":
        if graph.n_query != graph.n_reference:
            raise ValueError(
                f"a dimension needs the graph of the points among themselves; this one has "
                f"{graph.n_query} query points and {graph.n_reference} reference points"
            )
        duplicates = graph.matrix(graph.distances == 0)
        duplicates.eliminate_zeros()
        labels = connected_components(duplicates, directed=False)[1]
        _, first_sample, point_index = np.unique(labels, return_index=True, return_inverse=True)
        _check_distinct(len(first_sample), graph.n_query)
        points = graph.index.points if graph.metric in _EUCLIDEAN else None
        return cls(
            None if points is None else points[first_sample], point_index, graph, first_sample
        )

    @property
    def n(self) -> int:
        """Number of distinct points."""
        return len(self.first_sample)

    @property
    def n_samples(self) -> int:
        """Number of points with their copies."""
        return len(self.point_index)

    def to_samples(self, values: Array) -> Array:
        """A value of every distinct point, for every sample."""
        return np.asarray(values[self.point_index])

    def require_points(self, method: str) -> Matrix:
        """The distinct points, where `method` cannot do without."""
        if self.points is None:
            metric = "precomputed" if self.input_graph is None else self.input_graph.metric
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
        if self.input_graph is not None:
            return self.input_graph
        return NeighborGraph.build(self.points, min(self.default_neighbors, self.n - 1), copy=False)

    def nearest(self, k: int) -> tuple[IntArray, Array]:
        """The k nearest distinct neighbors of every distinct point, and their distances.

        Both are (n_distinct, k); where a graph knows fewer, -1 and infinity fill the row.
        """
        if self.input_graph is None:
            known = self.graph.k >= k
            graph = self.graph if known else NeighborGraph.build(self.points, k, copy=False)
            shape = (self.n, -1)
            indices, distances = graph.indices.reshape(shape), graph.distances.reshape(shape)
            return indices[:, :k], replace_zeros(distances[:, :k])
        return self._edges.nearest(k)

    @cached_property
    def _edges(self) -> "DistinctEdges":
        assert self.input_graph is not None
        return DistinctEdges.of(self.input_graph, self.point_index, self.n)

    def resolve_neighbors(self, n_neighbors: int | None, minimum: int = 1) -> int:
        """Neighbors to use: what was asked for, or twenty, or what most points have."""
        bound, typical = (
            (self.n - 1,) * 2 if self.input_graph is None else self._edges.max_and_median_count
        )
        if bound < minimum:
            raise ValueError(
                f"the graph knows at most {bound} distinct neighbors of a point, and at least "
                f"{minimum} are needed; build it with more"
            )
        if n_neighbors is None:
            return max(minimum, min(self.default_neighbors, typical))
        k = check_count("n_neighbors", n_neighbors, minimum=minimum)
        if k > bound:
            raise ValueError(
                f"n_neighbors={k} must be between {minimum} and {bound} ({self._bound_reason(bound)}); pass "
                f"n_neighbors={bound} or fewer"
            )
        return k

    def _bound_reason(self, bound: int) -> str:
        if bound == self.n - 1:
            return f"one less than the distinct points, of which there are {self.n}"
        return f"the graph knows no more than {bound} distinct neighbors; build it with more"


@dataclass(frozen=True, eq=False)
class DistinctEdges:
    """Edges of a graph between distinct points, every pair once, by point and length."""

    rows: IntArray
    columns: IntArray
    lengths: Array
    counts: IntArray  # (n,), of every point

    @classmethod
    def of(cls, graph: NeighborGraph, point_index: IntArray, n: int) -> "DistinctEdges":
        """Those of the graph, where ``place`` is the distinct point of every sample.

        A point's copies know the same neighbors, but not the same copies of those: all are asked.
        """
        rows, columns, lengths = (
            point_index[graph.rows],
            point_index[graph.indices],
            graph.distances,
        )
        order = np.lexsort((lengths, columns, rows))
        order = order[rows[order] != columns[order]]
        pairs = rows[order] * n + columns[order]
        order = order[np.diff(pairs, prepend=-1) != 0]
        order = order[np.lexsort((lengths[order], rows[order]))]
        counts = np.bincount(rows[order], minlength=n)
        return cls(rows[order], columns[order], lengths[order], counts)

    @property
    def max_and_median_count(self) -> tuple[int, int]:
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


def replace_zeros(distances: Array) -> Array:
    """Distances of distinct rows; where squares of differences vanish, the smallest of the rest."""
    smallest = np.min(distances, where=distances > 0, initial=np.inf)
    return np.maximum(distances, smallest) if np.isfinite(smallest) else distances


def _read(X: Any) -> Matrix:
    from sklearn.utils import check_array

    refuse_masked(X)
    dtypes = [np.float64, np.float32]
    return canonical(check_array(X, accept_sparse="csr", dtype=dtypes, ensure_min_samples=2))


def _check_distinct(distinct: int, n: int, minimum: int = 4) -> None:
    """Refuse fewer distinct points than these, which have no third neighbor."""
    if distinct < minimum:
        raise ValueError(
            f"X has n_samples={n} rows of which {distinct} are distinct; a dimension needs at "
            f"least {minimum} distinct points"
        )
