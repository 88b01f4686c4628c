"""Neighbor graphs whose rows are on the workers of a cluster.

n rows of d features are divided into P parts of nearby rows, about as many as there are chunks
(`distributed_cells.py`), and neighbors are searched among the parts near a part
(`distributed_search.py`).

- Work: n·C·d products to find the cells of rows, for C = max(√n, 16·P) cells, twice, and
  m·n²·d/C to compare rows with the points of m cells. m is chosen for the recall, often 3 to 30.
  K-means of a sample takes 400·C²·d on one worker while the others wait. All pairs take n²·d.
- Network: the rows move to their parts once, or twice with more than about fifty chunks. Then
  each worker receives the parts that are near its own, at most w·n·d numbers for w workers.
- Memory: the cluster holds the rows, 2·m + 24·k bytes per row during the search (4·m with more than
  65 535 cells), and 12·k or 16·k afterwards. A task has two parts in memory, with copies in single
  precision, and each worker the centers. The sample, up to 2²⁷ values, is on one worker.
- Tasks: P² to move the rows, or 2·P^1.5 if these are more than 2500; one for each pair of near
  parts, or P² for all pairs; about 15·P others. Dask takes about a millisecond for each.

The client has the sizes of parts, and which parts have rows of a chunk or are near a part; never
rows, cells or edges.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.distributed.blocks import columns
from manifoldry.distributed.collections import is_collection
from manifoldry.distributed.exchange import Exchange
from manifoldry.distributed.order import RowOrder
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import broadcast, delayed, persist
from manifoldry.neighbors.choose import EXACT_WORK
from manifoldry.neighbors.distributed_cells import PartitionedRows
from manifoldry.neighbors.distributed_search import (
    NearbySearch,
    NearestRows,
    Searched,
    exact_search,
)
from manifoldry.neighbors.graph import NeighborGraph, resolve_neighbors
from manifoldry.util.checks import as_generator, check_option
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState

METRICS = ("euclidean", "cosine")


@dataclass(frozen=True, eq=False, repr=False)
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
    manifoldry.distributed.using_options : options of fits to distributed data.

    Examples
    --------
    >>> import dask.array as da
    >>> from manifoldry.neighbors import DistributedGraph
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(250, 3))
    >>> graph = DistributedGraph.build(X, n_neighbors=5)
    >>> graph
    DistributedGraph(1000 points in 4 parts, k=5, metric='euclidean', 5000 edges)
    >>> indices, distances = graph.neighbors()
    >>> indices.shape, distances.chunks
    ((1000, 5), ((250, 250, 250, 250), (5,)))
    """

    edges: list[Any]
    points: list[Any]
    order: RowOrder
    n_neighbors: int
    recall: float
    search: str
    metric: str = "euclidean"
    names: Array | None = None

    def __repr__(self) -> str:
        n, k = self.n_samples, self.n_neighbors
        return (
            f"DistributedGraph({n} points in {len(self.edges)} parts, k={k}, "
            f"metric={self.metric!r}, {n * k} edges"
            + (f", recall {self.recall:.3f})" if self.recall < 1 else ")")
        )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.order.n_samples

    @classmethod
    def build(
        cls,
        X: Any,
        n_neighbors: int | None = None,
        *,
        metric: str = "euclidean",
        search: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> DistributedGraph:
        """Find the neighbors of each row of distributed data among the other rows.

        The same seed gives the same graph for the same chunks. Of rows at the same distance the
        first in the data is nearer. So an exact graph does not depend on chunks, and is that of
        data in memory. An approximate search may miss rows that are as near as those it finds.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame, path or Rows
            The data, or the path of a Zarr or Parquet store.
        n_neighbors : int, default=None
            Number of neighbors; by default 10, or half the number of rows if that is smaller.
        metric : {"euclidean", "cosine"}, default="euclidean"
            The metric.
        search : {"auto", "exact", "approximate"}, default="auto"
            ``"exact"`` compares all pairs of rows, part by part. ``"approximate"`` compares a row
            with those in nearby cells; the recall is measured on a sample, and there is a
            warning if it is low. ``"auto"`` is exact where that takes seconds.
        random_state : int, RandomState or Generator, default=None
            Seed of the samples from which cells are computed, and their number per row chosen; 0
            if it is None.
        verbose : bool, default=False
            Whether progress is shown.

        Returns
        -------
        DistributedGraph
            The graph, on the workers.
        """
        check_option("search", search, ("auto", "exact", "approximate"))
        if metric not in METRICS:
            raise ValueError(
                f"metric={metric!r} is not supported for distributed data, only 'euclidean' and "
                "'cosine'; fit landmarks, which are in memory, with another metric: "
                "manifoldry.distributed.using_options(landmarks=20_000)"
            )
        if not (isinstance(X, Rows) or is_collection(X)):
            raise TypeError(
                f"X is of type {type(X).__name__}; DistributedGraph.build takes Dask collections "
                "and paths of .zarr and .parquet stores. NeighborGraph.build takes arrays in memory"
            )
        rows = X if isinstance(X, Rows) else Rows.read(X)
        n, d = rows.n_samples, rows.n_features
        rows.check_not_fewer(2)
        if d == 0:  # the message of scikit-learn
            raise ValueError(
                f"Found array with 0 feature(s) (shape={(n, d)}) while a minimum of 1 is required."
            )
        k = resolve_neighbors(n_neighbors, n)
        rng = as_generator(random_state, unset=0)
        parts = PartitionedRows.of(rows, metric, rng, verbose=verbose)
        work = float(n) ** 2 * d
        if search == "exact" or (search == "auto" and work <= EXACT_WORK):
            searched = exact_search(parts, k, metric, verbose=verbose)
        else:
            searched = NearbySearch()(parts, k, metric, rng, verbose=verbose)
        edges = persist(delayed(_edges)(each, n) for each in searched.found)
        reason = _reason(searched, search, work)
        return cls(edges, parts.points, parts.order, k, searched.recall, reason, metric, rows.names)

    def neighbors(self) -> tuple[Any, Any]:
        """Return the neighbors of each row in the order of the data, as Dask arrays.

        Parts exchange the numbers of their rows at once; the arrays are computed when they are
        used.

        Returns
        -------
        indices : dask.array.Array of shape (n_samples, n_neighbors)
            The rows that are neighbors, nearest first.
        distances : dask.array.Array of shape (n_samples, n_neighbors)
            Their distances; float64 for all data, as in memory.
        """
        k = self.n_neighbors
        exchange, local = Exchange.of(
            [delayed(columns)(block) for block in self.edges], self.order.bounds
        )
        known = exchange.gathered(self.order.rows)
        indices = [delayed(_numbers)(*each, k) for each in zip(known, local, strict=True)]
        distances = [delayed(_values)(block, k) for block in self.edges]
        return (
            self.order.restored(indices, k, np.int64),
            self.order.restored(distances, k, np.float64),
        )

    def to_zarr(
        self,
        path: str | os.PathLike[str],
        *,
        points: bool = True,
        overwrite: bool = False,
        verbose: bool = False,
    ) -> None:
        """Write the graph to a Zarr store, part by part, from the workers.

        All workers have to see the folder under the same path. The store has its name only when
        it is complete. Until then, a graph that it replaces stays as it was.

        Parameters
        ----------
        path : path
            The store, a folder.
        points : bool, default=True
            Whether the data are written, too, in the order of the graph. Without them the graph is
            smaller, but estimators cannot be fitted to it.
        overwrite : bool, default=False
            Whether a graph of this name is replaced; otherwise it is an error if there is one.
        verbose : bool, default=False
            Whether progress is shown.
        """
        from manifoldry.neighbors.distributed_store import write_graph

        write_graph(self, path, points=points, overwrite=overwrite, verbose=verbose)

    @classmethod
    def from_zarr(cls, path: str | os.PathLike[str]) -> DistributedGraph:
        """Open a graph that :meth:`to_zarr` wrote; nothing is read before it is used.

        Parameters
        ----------
        path : path
            The store.

        Returns
        -------
        DistributedGraph
            The graph. If its points were not written, ``points`` is empty.
        """
        from manifoldry.neighbors.distributed_store import read_graph

        return read_graph(path)

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


def _reason(searched: Searched, search: str, work: float) -> str:
    """How neighbors were found, and why."""
    why = f"all pairs take {work:.0e} products" if search == "auto" else "as requested"
    measured = f"; recall {searched.recall:.3f} on a sample" if searched.sampled else ""
    return f"{searched.how}: {why}{measured}"


def _edges(found: NearestRows, n: int) -> Matrix:
    """The neighbors as a sparse matrix, (rows of the part, n)."""
    rows, k = found.positions.shape
    ends = np.arange(rows + 1) * k
    entries = found.distances.ravel(), found.positions.ravel(), ends
    return sparse.csr_array(entries, shape=(rows, n))


def _numbers(rows: IntArray, local: IntArray, k: int) -> IntArray:
    return rows[local].reshape(-1, k)


def _values(block: Matrix, k: int) -> Array:
    return np.asarray(block.data).reshape(-1, k)


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
