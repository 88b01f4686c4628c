"""Distances computed a block of rows at a time, so that no n × n matrix is held in memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.device import Device
from manifoldry.neighbors.distances import (
    Frame,
    corrected_squares,
    expansion_error,
    metric_distances,
    squared_norms,
)
from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.shortest_paths import path_lengths_from
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import check_nonnegative_entries, row_blocks

Result = TypeVar("Result")


class DistanceRows(ABC):
    """Distances between n points, computed a block of rows at a time."""

    n_groups = 1600  # number of random groups of points that `shepard_of` draws
    device: Device | None = None  # where they are computed; None for the CPU

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of points."""

    @abstractmethod
    def keys(self, rows: IntArray) -> Array:
        """Increasing function of the distances (n_rows, n) of these points to all, for sorting.

        A new array, which the caller may overwrite.
        """

    @abstractmethod
    def distances(self, rows: IntArray) -> Array:
        """Distances (n_rows, n) of these points to all."""

    @abstractmethod
    def among(self, points: IntArray) -> Array:
        """Distances (n_points, n_points) of these points to each other."""

    def neighbor_keys(self, rows: IntArray) -> Array:
        """`keys` with an infinite distance of every point to itself."""
        keys = self.keys(rows)
        if np.isinf(keys.max(initial=0.0)):
            raise ValueError(
                "the graph has several components, with infinite distances between them, which "
                "cannot be ranked; build it with more neighbors, or pass one component at a time"
            )
        keys[np.arange(len(rows)), rows] = np.inf
        return keys


def distance_rows(X: Matrix | NeighborGraph, metric: Any = "euclidean") -> DistanceRows:
    """Distances for a metric: Euclidean, precomputed, any of scikit-learn's, or geodesic."""
    if isinstance(X, NeighborGraph):
        return GeodesicRows(X)
    if isinstance(metric, str) and metric in ("euclidean", "l2"):
        return EuclideanRows(X)
    if isinstance(metric, str) and metric == "precomputed":
        check_nonnegative_entries(X, "distances")
        return PrecomputedRows(X)
    return GeneralRows(X, metric)


def map_rows(
    function: Callable[[IntArray], Result],
    points: IntArray,
    n: int,
    budget: int = 2**22,
    most_rows: int = 256,
    device: Device | None = None,
) -> list[Result]:
    """Apply a function to blocks of points in several threads, with one BLAS thread each.

    A block has at most `budget` distances and `most_rows` rows: more of few points would not fit
    into the cache. If the function computes on a `device`, blocks are as large as its memory
    allows, one after the other.
    """
    if device is not None:
        most = pairs_at_a_time(device)
        return [function(points[block]) for block in row_blocks(len(points), n, budget=most)]
    sizes = row_blocks(len(points), n, budget=min(budget, most_rows * n))
    with one_blas_thread():
        return map_threads(function, [points[block] for block in sizes])


def pairs_at_a_time(device: Device, most: int = 2**26, n_bytes: int = 160) -> int:
    """Number of pairs of a block on a device, whose ranks need `n_bytes` each."""
    return int(min(most, device.free_memory // n_bytes))


@dataclass(frozen=True, eq=False)
class EuclideanRows(DistanceRows):
    """Euclidean distances between vectors; squared distances serve as keys.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        The vectors.
    few_features : int
        Up to this number of features, differences are as fast as a matrix product.
    errors_per_spacing : int
        Spacing, in rounding errors, of the grid to which keys are rounded so that equal
        distances are ties.
    exact_below : int
        Keys below this multiple of the spacing are not rounded.
    """

    X: Matrix
    few_features: int = 12
    errors_per_spacing: int = 2**10
    exact_below: int = 16

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    def keys(self, rows: IntArray) -> Array:
        if self._few_columns:
            return np.asarray(cdist(self._framed[rows], self._framed, "sqeuclidean"))
        keys = self._products(rows, slice(None))
        # Equal distances differ by a few rounding errors; rounded to a coarser grid they are ties.
        # Adding 1.5·2⁵² spacings leaves no digits for fractions of a spacing.
        small = np.flatnonzero(keys <= self.exact_below * self._spacing)
        flat = keys.reshape(-1)
        exact, shift = flat[small], 1.5 * 2.0**52 * self._spacing
        keys += shift
        keys -= shift
        flat[small] = exact
        return keys

    def _products(self, rows: Any, columns: Any) -> Array:
        """Squared distances by a matrix product; small ones are recomputed from differences."""
        A, B = self._framed[rows], self._framed[columns]
        error = expansion_error(self._squares[rows], self._squares.max(), self.X.shape[1])
        X, Y = self.X[rows], self.X[columns]
        return corrected_squares(A, B, self._squares[columns], error, X, Y, self._unit)

    @property
    def _few_columns(self) -> bool:
        return bool(self.X.shape[1] <= self.few_features and not sparse.issparse(self.X))

    @cached_property
    def _spacing(self) -> float:
        """A power of two, `errors_per_spacing` or more times the rounding error of the products."""
        return key_spacing(float(self._squares.max()), self.X.shape[1], self.errors_per_spacing)

    def distances(self, rows: IntArray) -> Array:
        squares = self.keys(rows)
        return np.sqrt(squares, out=squares) * self._unit

    def among(self, points: IntArray) -> Array:
        if self._few_columns:
            return np.asarray(cdist(self._framed[points], self._framed[points])) * self._unit
        return np.sqrt(self._products(points, points)) * self._unit

    @cached_property
    def _frame(self) -> Frame:
        # Differences do not need centering to be accurate. Without it, scaling by a power of two
        # is exact, so that integer data have exact ties.
        return Frame.at_zero(self.X) if self._few_columns else Frame.of(self.X)

    @property
    def _unit(self) -> float:
        return self._frame.unit

    @cached_property
    def _framed(self) -> Matrix:
        return self._frame.apply(self.X)

    @cached_property
    def _squares(self) -> Array:
        return squared_norms(self._framed)


def key_spacing(largest: float, n_features: int, errors_per_spacing: int) -> float:
    """Spacing of the grid of keys, for points whose largest squared norm is `largest`."""
    error = float(expansion_error(np.array([largest]), largest, n_features)[0])
    return float(2.0 ** np.ceil(np.log2(errors_per_spacing * error)))


@dataclass(frozen=True, eq=False)
class PrecomputedRows(DistanceRows):
    """Distances from a precomputed matrix."""

    D: Array

    @property
    def n(self) -> int:
        return int(self.D.shape[0])

    def keys(self, rows: IntArray) -> Array:
        return self.distances(rows)

    def distances(self, rows: IntArray) -> Array:
        return np.array(self.D[rows], dtype=np.float64)

    def among(self, points: IntArray) -> Array:
        return np.array(self.D[np.ix_(points, points)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class GeodesicRows(DistanceRows):
    """Shortest paths along a neighbor graph; infinite between its connected components."""

    graph: NeighborGraph
    n_groups = 10  # fewer, since every point of a group needs a search of the whole graph

    @property
    def n(self) -> int:
        return self.graph.n_query

    def keys(self, rows: IntArray) -> Array:
        return self.distances(rows)

    def distances(self, rows: IntArray) -> Array:
        lengths, unit = self._lengths
        return path_lengths_from(lengths, rows, threads=False) * unit

    def among(self, points: IntArray) -> Array:
        return self.distances(points)[:, points]

    @cached_property
    def _lengths(self) -> tuple[Matrix, float]:
        return edge_lengths(self.graph)


@dataclass(frozen=True, eq=False)
class GeneralRows(DistanceRows):
    """Distances in any of scikit-learn's metrics, or given by a function of two points."""

    X: Matrix
    metric: Any

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    def keys(self, rows: IntArray) -> Array:
        return self.distances(rows)

    def distances(self, rows: IntArray) -> Array:
        return self._between(self.X[rows], self.X)

    def among(self, points: IntArray) -> Array:
        return self._between(self.X[points], self.X[points])

    def _between(self, A: Matrix, B: Matrix) -> Array:
        return metric_distances(A, B, self.metric)
