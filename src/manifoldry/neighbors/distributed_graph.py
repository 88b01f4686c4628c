"""Neighbor graphs whose rows are on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.distributed.order import RowOrder
from manifoldry.distributed.scheduler import broadcast, delayed, persist
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class DistributedGraph:
    """The neighbors of the rows of distributed data, in parts of nearby rows.

    A row has a position: parts hold consecutive positions. ``order`` says which rows these are.

    Parameters
    ----------
    edges : list of Delayed
        For each part, the distances to the neighbors of its rows as a sparse array of shape
        (rows of the part, n_samples); columns are positions, and the nearest neighbor is stored
        first. Zeros between duplicates are stored.
    points : list of Delayed
        The data of each part, (rows of the part, n_features).
    order : RowOrder
        The rows at the positions.
    n_neighbors : int
        Number of neighbors of each row.
    recall : float
        Fraction of the neighbors that were found: 1 for an exact search, otherwise estimated on a
        sample of rows.
    search : str
        How neighbors were found.
    metric : str, default="euclidean"
        The metric.
    names : array of str, optional
        Names of the columns of the data.

    See Also
    --------
    NeighborGraph : the neighbor graph of data in memory.
    """

    edges: list[Any]
    points: list[Any]
    order: RowOrder
    n_neighbors: int
    recall: float
    search: str
    metric: str = "euclidean"
    names: Array | None = None

    @classmethod
    def of(
        cls, graph: NeighborGraph, X: Array, bounds: IntArray, rows: IntArray | None = None
    ) -> DistributedGraph:
        """Return a graph that is in memory in parts, for tests and small data.

        Parameters
        ----------
        graph : NeighborGraph
            The graph.
        X : array of shape (n_samples, n_features)
            Its points.
        bounds : array of shape (n_parts + 1,)
            The first position of each part, and the number of all rows.
        rows : array of shape (n_samples,), optional
            The row at each position; by default their own order.

        Returns
        -------
        DistributedGraph
            The same graph.
        """
        rows = np.arange(len(X)) if rows is None else rows
        edges = _permuted(graph.matrix(), rows)
        parts = [slice(a, b) for a, b in pairwise(bounds)]
        order = RowOrder(_kept(rows[part] for part in parts), bounds, np.array([len(X)]))
        k = graph.n_neighbors or int(np.diff(graph.indptr).max())
        blocks = _kept(edges[part] for part in parts)
        points = _kept(X[rows[part]] for part in parts)
        return cls(blocks, points, order, k, graph.recall, graph.search, graph.metric)


def _kept(values: Iterable[Any]) -> list[Any]:
    return persist(delayed(_itself)(broadcast(value)) for value in values)


def _itself(value: Any) -> Any:
    return value


def _permuted(edges: Matrix, rows: IntArray) -> Matrix:
    """The edges between positions; the order of the neighbors of a row is kept."""
    position = np.empty(len(rows), dtype=np.intp)
    position[rows] = np.arange(len(rows))
    counts = np.diff(edges.indptr)[rows]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    entries = np.repeat(edges.indptr[rows] - indptr[:-1], counts) + np.arange(indptr[-1])
    columns = position[edges.indices[entries]]
    return sparse.csr_array((edges.data[entries], columns, indptr), shape=edges.shape)
