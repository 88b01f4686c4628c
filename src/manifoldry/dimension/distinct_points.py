"""The input of the dimension estimators: distinct points, their neighbors and their variances."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.base.input import Points
from manifoldry.eigen import resolve_solver
from manifoldry.neighbors.distances import squared_norms
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.gram import LinearGram
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_count
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import read_rows

_EUCLIDEAN = ("euclidean", "l2")


@dataclass(frozen=True, eq=False)
class LinearSpectrum:
    """Fractions of the variance along the principal axes, with the contribution of each point.

    Parameters
    ----------
    fractions : array of shape (k,)
        Fraction of the total variance along each axis, largest first.
    contributions : array of shape (n_rows, k)
        Squared coordinates of each point, divided by the mean squared distance to the center.
    squared_distances : array of shape (n_rows,)
        Squared distances to the center, divided by their mean.
    max_rank : int
        Largest number of axes that data of this shape can have.
    """

    fractions: Array
    contributions: Array
    squared_distances: Array
    max_rank: int

    @classmethod
    def of(cls, X: Matrix, *, max_rows: int = 10_000, max_axes: int = 300) -> "LinearSpectrum":
        """Decompose the Gram matrix of the data, or of a fixed random sample of `max_rows` rows."""
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
        """Standard error of each fraction, to first order, where eigenvectors count as fixed."""
        influence = self.contributions - self.fractions * self.squared_distances[:, None]
        return influence.std(axis=0) / np.sqrt(len(self.squared_distances))

    @property
    def cumulative(self) -> tuple[Array, Array]:
        """Fraction of the variance along the first axes together, and its standard error."""
        cumulative = np.minimum(np.cumsum(self.fractions), 1.0)
        influence = (
            np.cumsum(self.contributions, axis=1) - cumulative * self.squared_distances[:, None]
        )
        return cumulative, influence.std(axis=0) / np.sqrt(len(self.squared_distances))


def _squared_distances(gram: LinearGram) -> Array:
    """Squared distances of the points from their mean, in the units of the Gram matrix."""
    F = gram.problem.operator.factor
    if not sparse.issparse(F):
        return squared_norms(F)
    mean = np.asarray(F.mean(axis=0)).ravel()
    return np.asarray(squared_norms(F) - 2 * (F @ mean) + mean @ mean)


@dataclass(frozen=True, eq=False)
class DimensionInput:
    """Distinct points of the data, or of the neighbor graph passed in place of data.

    Duplicates carry no information about the dimension, and their distance of zero would make
    ratios of distances undefined.

    Parameters
    ----------
    points : array or sparse matrix of shape (n_distinct, n_features), or None
        The distinct rows; None for a graph whose metric is not Euclidean.
    point_index : array of shape (n_samples,)
        Index of the distinct point of each sample.
    input_graph : NeighborGraph or None
        The graph passed in place of data.
    first_sample : array of shape (n_distinct,)
        Index of the first sample at each distinct point.
    default_neighbors : int
        Number of neighbors of the graph that all estimators share.
    """

    points: Matrix | None
    point_index: IntArray
    input_graph: NeighborGraph | None
    first_sample: IntArray
    default_neighbors: int = 20

    @classmethod
    def of(cls, X: Any) -> "DimensionInput":
        """Validate data or a graph; a `DimensionInput` is returned unchanged."""
        if isinstance(X, cls):
            return X
        if isinstance(X, NeighborGraph):
            return cls._of_graph(X)
        X = read_rows(X, least=2)
        first_sample, point_index = np.unique(RowLookup.of(X).identical(X), return_inverse=True)
        _check_distinct(len(first_sample), X.shape[0])
        return cls(
            X if len(first_sample) == X.shape[0] else X[first_sample],
            point_index,
            None,
            first_sample,
        )

    @classmethod
    def _of_graph(cls, graph: NeighborGraph) -> "DimensionInput":
        if graph.n_query != graph.n_reference:
            raise ValueError(
                f"the graph has {graph.n_query} query points and {graph.n_reference} reference "
                "points; pass the neighbor graph of one data set"
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
        """Number of samples, duplicates included."""
        return len(self.point_index)

    def to_samples(self, values: Array) -> Array:
        """Expand values of the distinct points to all samples."""
        return np.asarray(values[self.point_index])

    def require_points(self, method: str) -> Matrix:
        """The distinct points; raises ValueError if only distances are available."""
        if self.points is None:
            metric = "precomputed" if self.input_graph is None else self.input_graph.metric
            raise ValueError(
                f"{method} needs the points and Euclidean distances, but the graph has "
                f"metric={metric!r}; pass the data"
            )
        return self.points

    def spectrum(self, method: str) -> LinearSpectrum:
        """The variances along the principal axes; `method` is named in errors."""
        self.require_points(method)
        return self._spectrum

    @cached_property
    def _spectrum(self) -> LinearSpectrum:
        return LinearSpectrum.of(self.points)

    @cached_property
    def graph(self) -> NeighborGraph:
        """The input graph, or the neighbor graph of the distinct points."""
        if self.input_graph is not None:
            return self.input_graph
        return NeighborGraph.build(self.points, min(self.default_neighbors, self.n - 1), copy=False)

    def nearest(self, k: int) -> tuple[IntArray, Array]:
        """The k nearest distinct neighbors of each distinct point, and their distances.

        Both have shape (n_distinct, k). Where the graph has fewer neighbors, rows are filled with
        -1 and infinity.
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
        """The requested number of neighbors, by default 20 or the median of the graph."""
        bound, typical = (
            (self.n - 1,) * 2 if self.input_graph is None else self._edges.max_and_median_count
        )
        if bound < minimum:
            raise ValueError(
                f"the graph has at most {bound} distinct neighbors per point, but at least "
                f"{minimum} are needed; build it with more neighbors"
            )
        if n_neighbors is None:
            return max(minimum, min(self.default_neighbors, typical))
        k = check_count("n_neighbors", n_neighbors, minimum=minimum)
        if k > bound:
            raise ValueError(
                f"n_neighbors={k} must be between {minimum} and {bound} "
                f"({self._bound_reason(bound)}); pass n_neighbors={bound} or fewer"
            )
        return k

    def _bound_reason(self, bound: int) -> str:
        if bound == self.n - 1:
            return f"the number of distinct points, {self.n}, minus 1"
        return f"the graph has at most {bound} distinct neighbors per point"


@dataclass(frozen=True, eq=False)
class DistinctEdges:
    """Edges between distinct points, without duplicates, sorted by point and length."""

    rows: IntArray
    columns: IntArray
    lengths: Array
    counts: IntArray  # (n,), number of neighbors of each point

    @classmethod
    def of(cls, graph: NeighborGraph, point_index: IntArray, n: int) -> "DistinctEdges":
        """Merge the edges of duplicates; ``point_index`` is the distinct point of each sample.

        Duplicates of a point have neighbors in common but may list different duplicates of them,
        so the edges of all duplicates are used.
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
        """Largest and (lower) median number of neighbors of a point."""
        ascending = np.sort(self.counts)
        return int(ascending[-1]), int(ascending[(len(ascending) - 1) // 2])

    def nearest(self, k: int) -> tuple[IntArray, Array]:
        """The k nearest neighbors and their distances; -1 and infinity where there are fewer."""
        n, starts = len(self.counts), np.cumsum(self.counts) - self.counts
        rank = np.arange(len(self.rows)) - starts[self.rows]
        near = rank < k
        indices, distances = np.full((n, k), -1), np.full((n, k), np.inf)
        indices[self.rows[near], rank[near]] = self.columns[near]
        distances[self.rows[near], rank[near]] = self.lengths[near]
        return indices, distances


def replace_zeros(distances: Array) -> Array:
    """Replace zeros, from differences whose squares underflow, by the smallest other distance."""
    smallest = np.min(distances, where=distances > 0, initial=np.inf)
    return np.maximum(distances, smallest) if np.isfinite(smallest) else distances


def _check_distinct(distinct: int, n: int, minimum: int = 4) -> None:
    """Raise if there are too few distinct points: each needs a third neighbor."""
    if distinct < minimum:
        raise ValueError(
            f"X has {distinct} distinct rows (n_samples={n}); a dimension estimate needs at least "
            f"{minimum} distinct rows"
        )
