"""What every neighbour index answers: the k nearest references, and those within a radius."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from manifoldry._typing import Array, IntArray, Matrix


class Edges(NamedTuple):
    """Neighbours of query points in compressed rows, as a CSR matrix stores them."""

    indptr: IntArray  # (n_query + 1,)
    indices: IntArray  # (n_edges,)
    distances: Array  # (n_edges,)


class NeighborIndex(ABC):
    """Reference points that can be asked for neighbours; all answers are exact."""

    reason: str
    """Why this index was chosen, in words."""

    @property
    @abstractmethod
    def n_reference(self) -> int:
        """Number of reference points."""

    @property
    @abstractmethod
    def points(self) -> Matrix | None:
        """The reference points, or None where only distances are known."""

    @abstractmethod
    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        """Indices and distances, both (n_query, k), of the k nearest references, nearest first."""

    @abstractmethod
    def within(self, X: Matrix, radius: float | Array) -> Edges:
        """References j with d(x, j) ≤ radius, or ≤ radius[j] where every reference has its own."""

    @abstractmethod
    def restrict(self, rows: IntArray) -> "NeighborIndex":
        """The same kind of index over some of the reference points."""

    @abstractmethod
    def identical(self, X: Matrix) -> IntArray:
        """Reference at distance exactly zero from each query row, or -1."""


def sort_rows(indices: IntArray, distances: Array) -> tuple[IntArray, Array]:
    """Sort each row by distance, ties by index."""
    order = np.lexsort((indices, distances), axis=1)
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)


def compress(query: IntArray, reference: IntArray, distances: Array, n_query: int) -> Edges:
    """Gather edge triplets into rows, each sorted by distance, ties by index."""
    order = np.lexsort((reference, distances, query))
    counts = np.bincount(query, minlength=n_query)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return Edges(indptr, reference[order], distances[order])
