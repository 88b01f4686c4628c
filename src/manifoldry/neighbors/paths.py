"""Shortest-path trees from a few points, and the number of paths through each point and edge."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry.neighbors.shortest_paths import CompiledPaths, is_much_work
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import map_threads, run_on_rows
from manifoldry.util.typing import Array, IntArray

Mask = NDArray[np.bool_]

# Number of points above which paths are counted, and edges examined, by compiled code. It saves 0.1
# to 0.3 s there, but compiling it takes two seconds once, and loading it half a second in each
# process. The search for paths has its own limit, `COMPILE_ABOVE_WORK`.
COMPILE_ABOVE_POINTS = 3000


@dataclass(frozen=True, eq=False)
class PathTrees:
    """The shortest paths from some sources to all points.

    Parameters
    ----------
    distances : array of shape (n_sources, n)
        Lengths of the paths; infinite if there is none.
    predecessors : array of shape (n_sources, n)
        The point before the last on each path; negative at the source and if there is no path.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> chain = sparse.csr_array(np.diag([1.0, 2.0, 4.0], 1) + np.diag([1.0, 2.0, 4.0], -1))
    >>> trees = PathTrees.of(chain, np.array([0]))
    >>> trees.distances[0], trees.load()
    (array([0., 1., 3., 7.]), array([0., 3., 2., 1.]))
    """

    distances: Array
    predecessors: IntArray

    @classmethod
    def of(cls, lengths: sparse.csr_array, sources: IntArray) -> "PathTrees":
        """Compute the shortest paths for a symmetric matrix of edge lengths."""
        # By the work of this search alone: of equally short paths, scipy chooses others.
        if not is_much_work(lengths, len(sources)):
            return cls(*dijkstra(lengths, indices=sources, return_predecessors=True))
        search = CompiledPaths.of(lengths)
        found = map_threads(partial(search.tree, with_predecessors=True), sources)
        distances, predecessors = zip(*found, strict=True)
        return cls(np.array(distances), np.array(predecessors))

    @property
    def n_paths(self) -> int:
        """Number of paths: pairs of a source and another point connected to it."""
        return int((self.predecessors >= 0).sum())

    def load(self, counted: Mask | None = None) -> Array:
        """Number of paths through or to each point; only of those in `counted`, if given."""
        counts = self._all_counts if counted is None else self._path_counts(counted)
        return np.asarray(counts.sum(axis=0))

    def edge_loads(self, ends: IntArray) -> Array:
        """Number of paths through each edge of `ends`, (n_edges, 2)."""
        loads = np.zeros(len(ends))
        for parent, count in zip(self.predecessors, self._all_counts, strict=True):
            for one, other in (ends.T, ends.T[::-1]):
                loads += np.where(parent[other] == one, count[other], 0.0)
        return loads

    def using(self, ends: IntArray) -> Mask:
        """Mask of the paths, (n_sources, n), through at least one edge of `ends`, (n_edges, 2)."""
        child = np.broadcast_to(np.arange(self._shape[1]), self._shape)
        through = np.isin(self._codes(self.predecessors, child), self._codes(*ends.T))
        through &= self.predecessors >= 0
        used: Mask = through.ravel()
        for level in self._levels[1:]:  # from the sources outwards
            used[level] |= used[self._parents[level]]
        return used.reshape(self._shape)

    @cached_property
    def _all_counts(self) -> Array:
        return self._path_counts(None)

    @property
    def _shape(self) -> tuple[int, int]:
        n_trees, n = self.predecessors.shape
        return n_trees, n

    def _codes(self, one: IntArray, other: IntArray) -> IntArray:
        """A unique integer for each undirected edge."""
        n = self._shape[1]
        return np.asarray(np.minimum(one, other).astype(np.int64) * n + np.maximum(one, other))

    def _path_counts(self, counted: Mask | None) -> Array:
        """Number of paths through each node of each tree, (n_sources, n); zero at the roots.

        The counts are summed from the leaves to the roots, one level of all trees at a time, or by
        compiled code if there are many points.
        """
        ends = np.ones(self._shape) if counted is None else counted.astype(np.float64)
        if self._shape[1] > COMPILE_ABOVE_POINTS:
            from manifoldry.neighbors.compiled import sum_to_roots

            run_on_rows(sum_to_roots, len(ends), self.predecessors, ends)
            ends[self.predecessors < 0] = 0.0
            return ends
        count = ends.ravel()
        for level in self._levels[:0:-1]:
            np.add.at(count, self._parents[level], count[level])
        count[self._levels[0]] = 0.0
        return count.reshape(self._shape)

    @cached_property
    def _parents(self) -> IntArray:
        """Index of the parent of each node, in the flattened array; a root is its own parent."""
        n_trees, n = self._shape
        offset = (np.arange(n_trees) * n)[:, None]
        flat = np.where(self.predecessors >= 0, self.predecessors + offset, np.arange(n) + offset)
        return np.asarray(flat.ravel())

    @cached_property
    def _levels(self) -> list[IntArray]:
        """Nodes of all trees, grouped by depth."""
        ancestor = self._parents
        depth = (ancestor != np.arange(ancestor.size)).astype(np.intp)
        while (beyond := depth[ancestor]).any():
            depth, ancestor = depth + beyond, ancestor[ancestor]
        return np.split(np.argsort(depth, kind="stable"), np.cumsum(np.bincount(depth))[:-1])
