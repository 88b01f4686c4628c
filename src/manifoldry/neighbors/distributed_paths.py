"""Lengths of the shortest paths along a neighbor graph whose rows are on workers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.distributed.blocks import row_numbers
from manifoldry.distributed.exchange import DistributedMatrix, Exchange
from manifoldry.distributed.scheduler import compute, delayed, persist
from manifoldry.distributed.transpose import transposed
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

# Number of distances of a part that are computed at once, 64 MB.
MOST_AT_ONCE = 2**23


class Border(NamedTuple):
    """The rows of a part that have neighbors in others, and the edges that lead there."""

    rows: IntArray
    indptr: IntArray
    indices: IntArray
    lengths: Array


@dataclass(frozen=True, eq=False)
class DistributedPaths:
    """Search for shortest paths along the edges of a distributed graph, in both directions.

    Each part searches among its own rows, then parts exchange the distances of the rows that have
    neighbors elsewhere, and search on from those that became nearer, until no distance changes.
    The results are those of a search of the whole graph, in all digits. There are about as many
    rounds as a shortest path visits parts.

    Parameters
    ----------
    inside : list of Delayed
        For each part, the lengths of the edges between its rows, a sparse array.
    borders : list of Delayed
        For each part, the edges that lead to other parts.
    exchange : Exchange
        The rows at the ends of these edges.
    bounds : array of shape (n_parts + 1,)
        The first position of each part, and the number of all rows.

    See Also
    --------
    manifoldry.neighbors.geodesics.Geodesics : the same in memory.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from manifoldry import NeighborGraph
    >>> from manifoldry.neighbors.distributed_graph import DistributedGraph
    >>> from manifoldry.neighbors.distributed_paths import DistributedPaths, symmetric_edges
    >>> X = np.array([[0.0], [1.0], [3.0], [6.0]])
    >>> graph = NeighborGraph.build(X, n_neighbors=1)
    >>> bounds = np.array([0, 2, 4])
    >>> edges = symmetric_edges(DistributedGraph.of(graph, X, bounds))
    >>> paths = DistributedPaths.of(edges, bounds)
    >>> np.concatenate(dask.compute(*paths.lengths_from(np.array([0])))).ravel()
    array([0., 1., 3., 6.])
    """

    inside: list[Any]
    borders: list[Any]
    exchange: Exchange
    bounds: IntArray

    @classmethod
    def of(cls, edges: DistributedMatrix, bounds: IntArray) -> DistributedPaths:
        """Return the search along the edges of a graph.

        Parameters
        ----------
        edges : DistributedMatrix
            Their lengths, in both directions; see :func:`symmetric_edges`.
        bounds : array of shape (n_parts + 1,)
            The first position of each part, and the number of all rows.

        Returns
        -------
        DistributedPaths
            The search.
        """
        cuts = delayed(_inside), delayed(_border)
        inside, borders = (persist(cut(block) for block in edges.blocks) for cut in cuts)
        return cls(inside, borders, edges.exchange, bounds)

    def lengths_from(
        self, sources: IntArray, dtype: Any = np.float64, *, verbose: bool = False
    ) -> list[Any]:
        """Return the lengths of the shortest paths from some rows to all rows.

        Parameters
        ----------
        sources : array of shape (n_sources,)
            Positions at which the paths start.
        dtype : dtype, default=float64
            Precision of the result; sums are in double precision.
        verbose : bool, default=False
            Whether progress is shown.

        Returns
        -------
        list of Delayed
            Arrays of shape (rows of a part, n_sources); infinite where there is no path.
        """
        largest, convert, join = np.diff(self.bounds).max(), delayed(_rounded), delayed(_joined)
        found = []
        for block in row_blocks(len(sources), int(largest), budget=MOST_AT_ONCE):
            searched = self._search(sources[block], f"paths from {block.stop} rows", verbose)
            found.append(persist(convert(part, dtype) for part in searched))
        return persist(join(*blocks) for blocks in zip(*found, strict=True))

    def _search(self, sources: IntArray, what: str, verbose: bool) -> list[Any]:
        """The same for a block of sources: rounds of searches inside parts and of exchanges."""
        start, value, flag = delayed(_started), delayed(_first), delayed(_second)
        owner = np.searchsorted(self.bounds, sources, side="right") - 1
        local = sources - self.bounds[owner]
        at = [(local[owner == p], np.flatnonzero(owner == p)) for p in range(len(self.inside))]
        pairs = zip(self.inside, at, strict=True)
        searched = persist(start(block, *starts, len(sources)) for block, starts in pairs)
        found = [value(each) for each in searched]
        changed = [len(rows) > 0 for rows, _ in at]
        for number in count(1):
            ready = [p for p, of in enumerate(self.exchange.sources) if any(changed[q] for q in of)]
            if not ready:
                return found
            searched = persist(self._continued(p, found) for p in ready)
            flags = compute(map(flag, searched), f"{what}, round {number}", verbose=verbose)
            changed = [False] * len(found)
            for p, each, now in zip(ready, searched, flags, strict=True):
                found[p], changed[p] = value(each), now
        return found

    def _continued(self, part: int, found: list[Any]) -> Any:
        received = self.exchange.received(part, found)
        search = delayed(_continued)
        return search(found[part], self.inside[part], self.borders[part], *received)


def symmetric_edges(graph: DistributedGraph) -> DistributedMatrix:
    """Return the lengths of the edges of a graph in both directions; zeros are stored.

    Parameters
    ----------
    graph : DistributedGraph
        The graph.

    Returns
    -------
    DistributedMatrix
        The lengths.
    """
    bounds = graph.order.bounds
    pairs = zip(graph.edges, transposed(graph.edges, bounds), strict=True)
    return DistributedMatrix.of(persist(delayed(_symmetric)(*pair) for pair in pairs), bounds)


def _symmetric(edges: Matrix, others: Matrix) -> Matrix:
    """The edges of a part in both directions: `others` are those of other rows to these.

    Of two lengths the larger is taken, as in memory; they differ by rounding. Zeros stay.
    """
    n = edges.shape[1]
    code = np.concatenate([row_numbers(block) * n + block.indices for block in (edges, others)])
    lengths = np.concatenate([edges.data, others.data]).astype(np.float64)
    order = np.argsort(code, kind="stable")
    known, first = np.unique(code[order], return_index=True)
    longest = np.maximum.reduceat(lengths[order], first) if len(first) else lengths
    indptr = np.searchsorted(known, np.arange(edges.shape[0] + 1) * n)
    return sparse.csr_array((longest, known % n, indptr), shape=edges.shape)


def _inside(block: Matrix) -> Matrix:
    """The edges between rows of the part, which have the first numbers."""
    return block[:, : block.shape[0]]


def _border(block: Matrix) -> Border:
    outside = block[:, block.shape[0] :]
    rows = np.flatnonzero(np.diff(outside.indptr))
    edges = outside[rows]
    return Border(rows, edges.indptr, edges.indices, edges.data)


def _first(pair: tuple[Array, bool]) -> Array:
    return pair[0]


def _second(pair: tuple[Array, bool]) -> bool:
    return pair[1]


def _rounded(found: Array, dtype: Any) -> Array:
    return np.ascontiguousarray(found, dtype)


def _joined(*blocks: Array) -> Array:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def _started(inside: Matrix, rows: IntArray, columns: IntArray, n: int) -> tuple[Array, bool]:
    """Distances inside a part from some of its rows, each in its column of n."""
    found = np.full((inside.shape[0], n), np.inf, order="F")
    search = _Search(inside, found)
    for row, column in zip(rows, columns, strict=True):
        found[row, column] = 0.0
        search.go_on(np.array([row]), column)
    return found, len(rows) > 0


def _continued(
    found: Array, inside: Matrix, border: Border, *received: Array
) -> tuple[Array, bool]:
    """Shorter distances by paths that come from other parts, and whether there are any."""
    from manifoldry.neighbors.compiled_paths import shortest_via_neighbors

    known = np.ascontiguousarray(found[border.rows])
    now, elsewhere = known.copy(), np.ascontiguousarray(np.concatenate(received))
    shortest_via_neighbors(border.indptr, border.indices, border.lengths, elsewhere, now)
    shorter = now < known
    if not shorter.any():
        return found, False
    found = found.copy(order="F")  # results of tasks are not modified
    search = _Search(inside, found)
    for column in map(int, np.flatnonzero(shorter.any(axis=0))):
        nearer = np.flatnonzero(shorter[:, column])
        nearer = nearer[np.argsort(now[nearer, column])]
        found[border.rows[nearer], column] = now[nearer, column]
        search.go_on(border.rows[nearer], column)
    return found, True


class _Search:
    """Dijkstra's algorithm in one part, column by column of `found`."""

    def __init__(self, inside: Matrix, found: Array) -> None:
        n = inside.shape[0]
        self.edges = inside.indptr, inside.indices, inside.data
        self.found = found
        self.scratch = np.empty(n, np.int32), np.empty(n), np.full(n, -1, np.int32)

    def go_on(self, rows: IntArray, column: int) -> None:
        """Continue from rows whose distances are new, the nearest first."""
        from manifoldry.neighbors.compiled_paths import settle

        settle(*self.edges, rows, self.found[:, column], np.empty(0, np.int32), *self.scratch)
