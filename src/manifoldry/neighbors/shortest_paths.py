"""Lengths of the shortest paths from some points of a graph: by scipy, compiled or on a device."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra, reverse_cuthill_mckee

from manifoldry.device import current_device, say_on_cpu
from manifoldry.neighbors.paths_on_device import LEAST_WORK, path_lengths_on
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

# Number of sources times number of edges above which compiled code is used: scipy takes half a
# second for them. The compiled code takes a tenth, but a second to compile once and half a second
# to load in each process.
COMPILE_ABOVE_WORK = 2**25

# If all searches of this process together exceed that number, compiled code is used for further
# ones above this number, for which scipy takes about 10 ms. Threads may miss some of each other's
# work; lengths do not depend on it.
COMPILE_NEXT_ABOVE_WORK = 2**20
_work_of_scipy = 0.0

# Bytes of the distances of one point to the sources that are searched from at once. Two cache
# lines and eight were slower, for digits and for rolls.
BYTES_TOGETHER = 256


def is_much_work(lengths: sparse.csr_array, n_sources: int) -> bool:
    """Whether there are enough sources and edges in one call for compiled code."""
    return float(n_sources) * lengths.nnz > COMPILE_ABOVE_WORK


def uses_compiled_paths(lengths: sparse.csr_array, n_sources: int) -> bool:
    """Whether there are enough sources and edges for compiled code, in this and earlier calls.

    The lengths of the paths do not depend on it.
    """
    if is_much_work(lengths, n_sources):
        return True
    work = float(n_sources) * lengths.nnz
    return work > COMPILE_NEXT_ABOVE_WORK and work + _work_of_scipy > COMPILE_ABOVE_WORK


def path_lengths_from(
    lengths: sparse.csr_array,
    sources: IntArray,
    out: Array | None = None,
    threads: bool = True,
    search: "CompiledPaths | None" = None,
) -> Array:
    """Lengths of the shortest paths from each source to all points, (n_sources, n).

    Results do not depend on the way they are computed: in double precision they equal scipy's.

    Parameters
    ----------
    lengths : sparse array of shape (n, n)
        Lengths of the edges, from rows to columns.
    sources : array of shape (n_sources,)
        Points at which the paths start.
    out : array of shape (n_sources, n), optional
        Where to store the lengths, in its precision. By default, a new array.
    threads : bool
        Whether to use several threads; False in functions that several threads call.
    search : CompiledPaths, optional
        The compiled search of `lengths`, if it is known. By default it is prepared if there are
        enough sources and edges.
    """
    n, work = lengths.shape[0], float(len(sources)) * lengths.nnz
    out = np.empty((len(sources), n)) if out is None else out
    device = current_device()
    if device is not None and work > LEAST_WORK and path_lengths_on(device, lengths, sources, out):
        return out
    say_on_cpu("the search for shortest paths", "they have thousands of edges", work)
    if search is None and uses_compiled_paths(lengths, len(sources)):
        search = CompiledPaths.of(lengths)
    if search is not None:
        search.astype(out.dtype).fill(sources, out, threads)
        return out
    global _work_of_scipy
    _work_of_scipy += work
    for block in row_blocks(len(sources), n + lengths.nnz, budget=2**23):  # Ctrl-C interrupts
        out[block] = dijkstra(lengths, indices=sources[block])
    return out


@dataclass(frozen=True, eq=False)
class CompiledPaths:
    """Compiled search for shortest paths in a graph whose points are reordered.

    In the reverse Cuthill-McKee order neighbors are near each other in memory.

    Parameters
    ----------
    order : array of shape (n,)
        The points in the order of the search.
    indptr, indices, lengths : arrays
        The edges between the reordered points, in CSR format.
    """

    order: IntArray
    indptr: IntArray
    indices: IntArray
    lengths: Array

    @classmethod
    def of(cls, lengths: sparse.csr_array) -> "CompiledPaths":
        """Reorder the points of a graph."""
        order = reverse_cuthill_mckee(lengths, symmetric_mode=True)
        edges = lengths[order][:, order]
        return cls(order, edges.indptr, edges.indices, edges.data.astype(np.float64))

    def astype(self, dtype: Any) -> "CompiledPaths":
        """Return the same search with sums and results in the precision `dtype`."""
        return replace(self, lengths=self.lengths.astype(dtype, copy=False))

    @cached_property
    def position(self) -> IntArray:
        """Position of each point in the order of the search."""
        position = np.empty_like(self.order)
        position[self.order] = np.arange(len(self.order))
        return position

    def fill(self, sources: IntArray, out: Array, threads: bool = True) -> None:
        """Store the lengths of the shortest paths from each source in the rows of `out`.

        Many sources are searched from together. Where this visits points too often, as with
        sources all over a surface, the others are searched from one by one.
        """
        run: Callable[..., Any] = map_threads if threads else _one_by_one
        together = BYTES_TOGETHER // out.itemsize
        left = np.arange(len(sources))
        if len(sources) >= together:
            near = out.flags.c_contiguous  # near sources together; otherwise adjacent columns
            if near:
                left = left[np.argsort(self.position[sources])]
            groups = [left[first : first + together] for first in range(0, len(left), together)]
            # Dijkstra's algorithm takes as long as `together` / 2 visits of all points. With 64
            # sources anywhere, a million digits are visited 12 times, points of a surface more.
            max_visits = together // 2 if near else 16
            search = _GroupSearch(self, sources, out, together, max_visits)
            left = np.concatenate(run(search, groups))

        def search_alone(row: int) -> None:
            out[row] = self.tree(int(sources[row]))[0]

        run(search_alone, left)

    def tree(self, source: int, with_predecessors: bool = False) -> tuple[Array, IntArray]:
        """Lengths of the shortest paths from one source, and the last points but one on them.

        The latter, if wanted, are negative at the source and where there is no path.
        """
        n = len(self.order)
        reached = np.full(n, np.inf, dtype=self.lengths.dtype)
        before = np.full(n if with_predecessors else 0, -1, dtype=np.int32)
        self._settle(source, reached, before, self._scratch())
        reached = reached[self.position]
        if with_predecessors:
            before = before[self.position]
            before[before >= 0] = self.order[before[before >= 0]]
        return reached, before

    def farthest_points(self, rows: IntArray, count: int, start: int) -> IntArray:
        """Return `count` of the points `rows`, each the farthest from those already chosen.

        The first is `start`. The search from the next one visits only the points that are nearer
        to it than to the others, so that all searches together take as long as a few.
        """
        nearest, scratch = np.full(len(self.order), np.inf), self._scratch()
        places, found = self.position[rows], [start]
        for _ in range(count - 1):
            self._settle(found[-1], nearest, np.empty(0, np.int32), scratch)
            found.append(int(rows[np.argmax(nearest[places])]))
        return np.array(found)

    def _settle(self, source: int, reached: Array, before: IntArray, scratch: Any) -> None:
        from manifoldry.neighbors.compiled_paths import settle

        edges, start = (self.indptr, self.indices, self.lengths), self.position[source]
        reached[start] = 0
        settle(*edges, np.array([start]), reached, before, *scratch)

    def _scratch(self) -> tuple[IntArray, Array, IntArray]:
        n = len(self.order)
        return (
            np.empty(n, np.int32),
            np.empty(n, self.lengths.dtype),
            np.full(n, -1, np.int32),
        )


class _GroupSearch:
    """Search from groups of sources; called by several threads, it returns what is left."""

    def __init__(
        self, paths: CompiledPaths, sources: IntArray, out: Array, together: int, max_visits: int
    ) -> None:
        from manifoldry.neighbors.compiled_paths import settle_together

        self.search = settle_together(together)
        self.paths, self.sources, self.out, self.together = paths, sources, out, together
        self.max_visits = max_visits * len(paths.order)
        self.scratch: list[Any] = []
        self.gave_up = False

    def __call__(self, rows: IntArray) -> IntArray:
        """Fill the rows; return those that were not, to be searched from one by one."""
        if self.gave_up:
            return rows
        paths, n = self.paths, len(self.paths.order)
        try:
            reached, queue, waiting = self.scratch.pop()
        except IndexError:
            reached = np.empty((n, self.together), self.out.dtype)
            queue, waiting = np.empty(n + 1, np.int32), np.empty(n, bool)
        reached[:], waiting[:] = np.inf, False
        at = paths.position[self.sources[rows]]
        reached[at, np.arange(len(rows))] = 0
        starts = np.unique(at)
        queue[: len(starts)], waiting[starts] = starts, True
        edges = paths.indptr, paths.indices, paths.lengths
        if not self.search(*edges, reached, queue, waiting, len(starts), self.max_visits):
            self.gave_up = True
            return rows
        self._store(rows, reached)
        self.scratch.append((reached, queue, waiting))
        return rows[:0]

    def _store(self, rows: IntArray, reached: Array) -> None:
        """Copy the distances in the order of the points."""
        adjacent = (np.diff(rows) == 1).all()
        where: Any = slice(rows[0], rows[-1] + 1) if adjacent else rows  # a slice is faster
        for block in row_blocks(len(reached), self.together, budget=2**16):
            points = reached[self.paths.position[block], : len(rows)]
            self.out[where, block] = points.T


def _one_by_one(function: Callable[[Any], Any], items: Any) -> list[Any]:
    return [function(item) for item in items]
