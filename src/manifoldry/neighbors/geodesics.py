"""Geodesic distances: shortest paths along a neighbor graph, also from new points."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry.device import say_on_cpu
from manifoldry.exceptions import DisconnectedGraphError
from manifoldry.neighbors.base import Edges
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.paths import Mask
from manifoldry.neighbors.shortest_paths import (
    CompiledPaths,
    path_lengths_from,
    uses_compiled_paths,
)
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.threads import map_threads, thread_count
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    canonical,
    plan_memory,
    power_of_two_scale,
    row_blocks,
    square_tiles,
)

# scipy treats a length of zero as a missing edge; edges between duplicates get this length.
_ZERO_LENGTH = 1e-300

# Number of distances above which they are stored in single precision. The distances between
# 4096 points take 128 MB in double precision.
SINGLE_ABOVE = 2**24

# Number of sums of two lengths above which compiled code is used, if numba is already loaded:
# loading it takes longer than the sums.
COMPILE_ABOVE_SUMS = 2**22


@dataclass(frozen=True, eq=False)
class Geodesics:
    """Geodesic distances from each training point to some targets, or to all points.

    A pickle does not contain the distances, which are computed again when they are needed.

    Parameters
    ----------
    graph : NeighborGraph
        The graph of the training points; its edges are used in both directions.
    targets : array of shape (n_targets,)
        Indices of the target points.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.neighbors import NeighborGraph
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [3.0], [6.0]]), n_neighbors=1)
    >>> Geodesics.of(graph).distances[0]
    array([0., 1., 3., 6.])
    """

    graph: NeighborGraph
    targets: IntArray

    @classmethod
    def of(cls, graph: NeighborGraph, targets: IntArray | None = None) -> "Geodesics":
        """Return the distances to `targets`, by default to all points."""
        return cls(graph, np.arange(graph.n_reference) if targets is None else targets)

    @classmethod
    def to_farthest(
        cls, graph: NeighborGraph, parts: list[IntArray], counts: list[int], starts: list[int]
    ) -> "Geodesics":
        """Compute the distances to targets chosen by farthest-point sampling.

        In part i, ``counts[i]`` targets are chosen: ``starts[i]``, then repeatedly the point
        farthest from those already chosen.
        """
        lengths, unit = edge_lengths(graph)
        choices = list(zip(parts, counts, starts, strict=True))
        if uses_compiled_paths(lengths, sum(counts)):
            # Choosing them does not take all distances, which are then found in parallel.
            search = CompiledPaths.of(lengths)
            chosen = [search.farthest_points(*choice) for choice in choices]
            geodesics = cls(graph, np.sort(np.concatenate(chosen)))
            D = _distances(geodesics.targets, lengths, unit, search)
        else:
            found = [_farthest_with_distances(lengths, *choice) for choice in choices]
            targets, D = (np.concatenate(column) for column in zip(*found, strict=True))
            order = np.argsort(targets)
            geodesics = cls(graph, targets[order])
            D = np.ascontiguousarray((D[order] * unit).T)
        vars(geodesics)["distances"] = D  # they need not be found again
        return geodesics

    def check(self) -> None:
        """Raise ValueError if a target is not a point of the graph; compiled loops rely on it."""
        targets, n = np.asarray(self.targets), self.graph.n_reference
        if targets.ndim != 1 or targets.dtype.kind not in "iu":
            raise ValueError("targets must be one row of integers")
        if len(targets) and not 0 <= targets.min() <= targets.max() < n:
            raise ValueError(f"a target is not one of the {n} points")

    @cached_property
    def distances(self) -> Array:
        """The distances, (n_samples, n_targets); infinite between connected components.

        More than 2²⁴ distances, as between 4097 points, are in single precision: sums along paths
        and results are rounded to a relative error of 6e-8 per edge. Between all points they are
        then exactly symmetric.
        """
        return _distances(self.targets, *edge_lengths(self.graph))

    __getstate__ = state_of_fields

    def from_new(self, X: Matrix) -> Array:
        """Distances from new points to the targets, (n_new, n_targets).

        Paths of a new point start with an edge to one of its neighbors; new points do not change
        the paths between training points. A new point identical to a training point has that
        point as a neighbor at distance zero.
        """
        return self.blocks_from_new(X)(slice(0, X.shape[0]))

    def blocks_from_new(self, X: Matrix) -> Callable[[slice], Array]:
        """Return the function of a block of the rows of `X` that returns `from_new` of them."""
        return self._via_neighbors_of(self._edges_of(X, self.graph.identical(X)))

    def _via_neighbors_of(self, edges: Edges) -> Callable[[slice], Array]:
        distances, n_targets = self.distances, len(self.targets)
        why = "it is one step from each of their neighbors"
        say_on_cpu("the search for paths of new points", why, len(edges.indices) * n_targets)
        compiled = "numba" in sys.modules and len(edges.indices) * n_targets > COMPILE_ABOVE_SUMS
        return lambda block: _via_neighbors(edges.of_rows(block), distances, compiled)

    def among(self, X: Matrix) -> Array:
        """Distances between new points, (n_new, n_new).

        A path leads from a new point to one of its neighbors, along the training graph, and from
        a neighbor of the other new point to that. Two new points that are neighbors of each other
        (:meth:`NeighborGraph.among`) also have a direct edge. Paths do not pass through a third
        new point. A row identical to a training row is that training point.
        """
        known = self.graph.identical(X)
        edges = self._edges_of(X, known)
        D = np.empty((len(known), len(known)))
        to_training = self._to_training(edges)
        for block in row_blocks(len(known), self.graph.n_reference + len(edges.indices)):
            D[block] = _via_neighbors(edges, to_training(block).T).T
        direct = self.graph.among(X)
        i, j = direct.rows, direct.indices
        both_new = (known[i] < 0) & (known[j] < 0)
        np.minimum.at(D, (i[both_new], j[both_new]), direct.distances[both_new])
        np.fill_diagonal(D, 0.0)
        return np.minimum(D, D.T)

    def _edges_of(self, X: Matrix, known: IntArray) -> Edges:
        """Edges from new points to training points, each once."""
        (own, reverse), n = self.graph.query(X), self.graph.n_reference
        identical_rows = np.flatnonzero(known >= 0)
        rows = np.concatenate([own.rows, reverse.rows, identical_rows])
        indices = np.concatenate([own.indices, reverse.indices, known[identical_rows]])
        lengths = np.concatenate([own.distances, reverse.distances, np.zeros(len(identical_rows))])
        # An edge in both directions occurs twice.
        code, first = np.unique(rows * n + indices, return_index=True)
        indptr = np.searchsorted(code, np.arange(own.n_query + 1) * n)
        return Edges(indptr, code % n, lengths[first])

    def _to_training(self, edges: Edges) -> Callable[[slice], Array]:
        """Return the function of a block of new points that returns their distances.

        These are the distances to all training points, (n_block, n_samples).
        """
        n, n_new = self.graph.n_reference, len(edges.indptr) - 1
        if _are_all_points(self.targets, n):
            return self._via_neighbors_of(edges)
        lengths, unit = edge_lengths(self.graph)
        start_lengths = np.maximum(edges.distances / unit, _ZERO_LENGTH)
        starts = sparse.csr_array((start_lengths, edges.indices, edges.indptr), shape=(n_new, n))
        whole = sparse.vstack([lengths, starts], format="csr")
        whole.resize((n + n_new, n + n_new))  # no edge leads to a new point
        whole = canonical(whole)
        search = CompiledPaths.of(whole) if uses_compiled_paths(whole, n_new) else None

        def paths_of(block: slice) -> Array:
            found = path_lengths_from(whole, n + np.arange(block.start, block.stop), search=search)
            return np.asarray(found[:, :n] * unit)

        return paths_of


@dataclass(frozen=True, eq=False)
class SampledGeodesics(Geodesics):
    """Geodesic distances of some points of a larger graph, along that graph.

    Paths of new points start with an edge to one of the points, which are farther apart than in the
    larger graph. So some edges lead to parts of a manifold that are close in space but far along
    it. Along a manifold, two points differ in their distances to any target by at most their own
    distance. So neighbors that differ by more from the nearest one are left out, and the new point
    itself does not differ by more: its distances tend to those of a point that it approaches.
    Distances between new points (:meth:`among`) are along the graph of the sample.

    Parameters
    ----------
    graph : NeighborGraph
        The graph of the sample.
    targets : array of shape (n_targets,)
        Indices of the target points, which are in the sample.
    given : array of shape (n_samples, n_targets)
        The distances along the larger graph.
    slack : float, default=1.2
        Factor of the largest difference. Paths along edges are longer than those along the
        manifold. Maps of a roll, with and without noise, and of digits by samples of 3 to 50 % of
        the rows had the smallest error with 1.2 of 1, 1.2, 1.5, 2 and 3: at most that of all
        neighbors, and an eighth of it where these led to other layers of the roll.

    Examples
    --------
    The second point is near, but a long way from the first one along the larger graph:

    >>> import numpy as np
    >>> from manifoldry.neighbors import NeighborGraph
    >>> from manifoldry.neighbors.geodesics import SampledGeodesics
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [3.0]]), n_neighbors=2)
    >>> given = np.array([[0.0], [9.0], [7.0]])
    >>> SampledGeodesics(graph, np.array([0]), given).from_new(np.array([[0.4], [0.6]])).ravel()
    array([0.4, 9.4])
    """

    given: Array
    slack: float = 1.2

    def check(self) -> None:
        super().check()
        if np.shape(self.given) != (self.graph.n_reference, len(self.targets)):
            raise ValueError("there must be one distance for each point and target")

    @property
    def distances(self) -> Array:
        return self.given

    def _edges_of(self, X: Matrix, known: IntArray) -> Edges:
        edges = super()._edges_of(X, known)
        if np.isinf(self.slack):
            return edges
        nearest = _shortest_edges(edges)[edges.rows]
        most = self.slack * (edges.distances + edges.distances[nearest])
        keep = np.empty(len(nearest), dtype=bool)
        for block in row_blocks(len(nearest), len(self.targets), budget=2**17):
            step = self.given[edges.indices[block]] - self.given[edges.indices[nearest[block]]]
            keep[block] = np.abs(step).max(axis=1) <= most[block]
        return edges.keep(keep)

    def _via_neighbors_of(self, edges: Edges) -> Callable[[slice], Array]:
        shortest = super()._via_neighbors_of(edges)
        if np.isinf(self.slack):
            return shortest
        nearest = _shortest_edges(edges)
        near, steps = edges.indices[nearest], self.slack * edges.distances[nearest, None]
        return lambda block: np.maximum(shortest(block), self.given[near[block]] - steps[block])


def _shortest_edges(edges: Edges) -> IntArray:
    """The shortest edge of each row, all of which must have edges."""
    order: IntArray = np.lexsort((edges.distances, edges.rows))
    return order[edges.indptr[:-1]]


def _via_neighbors(edges: Edges, distances: Array, compiled: bool = False) -> Array:
    """Shortest path from each row of `edges` via a neighbor, given the neighbors' distances."""
    n, n_targets = len(edges.indptr) - 1, distances.shape[1]
    # New points may be farther away than single precision can represent.
    out = np.full((n, n_targets), np.inf)
    if compiled:
        from manifoldry.neighbors.compiled_paths import shortest_via_neighbors

        shortest_via_neighbors(*edges, distances, out)
        return out
    order = np.argsort(np.diff(edges.indptr), kind="stable")  # similar numbers of neighbors
    for block in row_blocks(n, n_targets, budget=2**16):  # blocks stay in the cache
        rows = order[block]
        rows = rows[edges.indptr[rows] < edges.indptr[rows + 1]]
        first, last = edges.indptr[rows], edges.indptr[rows + 1] - 1
        best = np.full((len(rows), n_targets), np.inf)
        for rank in range(int((last - first).max(initial=-1)) + 1):
            edge = np.minimum(first + rank, last)  # the last one again where there are fewer
            through = np.take(distances, edges.indices[edge], axis=0)
            through = through.astype(np.float64, copy=False)
            through += edges.distances[edge, None]
            np.minimum(best, through, out=best)
        out[rows] = best
    return out


def _distances(
    targets: IntArray, lengths: sparse.csr_array, unit: float, search: CompiledPaths | None = None
) -> Array:
    """Distances of all points to the targets, given the result of :func:`edge_lengths`."""
    n, n_targets = lengths.shape[0], len(targets)
    dtype = precision_of(n * n_targets, unit)
    _plan(n, n_targets, dtype().itemsize)
    D = np.empty((n, n_targets), dtype)
    if _are_all_points(targets, n):
        # Rows are filled faster than columns, since near sources are searched from together.
        path_lengths_from(lengths, targets, out=D, search=search)
        if D.size > SINGLE_ABOVE:
            _symmetrize(D)
        else:
            D = np.ascontiguousarray(D.T)
    else:
        path_lengths_from(lengths, targets, out=D.T, search=search)
    D *= unit
    return D


def _are_all_points(targets: IntArray, n: int) -> bool:
    """Whether the targets are all n points in their order, so that distances are symmetric."""
    return np.array_equal(targets, np.arange(n))


def precision_of(
    count: int, unit: float = 1.0, in_range: float = 2.0**64
) -> type[np.floating[Any]]:
    """Precision of `count` distances; single precision cannot store all units."""
    return np.float32 if count > SINGLE_ABOVE and 1 / in_range < unit < in_range else np.float64


def _symmetrize(D: Array) -> None:
    """Replace D by the smaller of D and Dᵀ, which are sums of the same lengths in two orders."""

    def fill(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        smaller = np.minimum(D[rows, columns], D[columns, rows].T)
        D[rows, columns], D[columns, rows] = smaller, smaller.T

    map_threads(fill, square_tiles(len(D)))


def farthest_points(lengths: sparse.csr_array, rows: IntArray, count: int, start: int) -> IntArray:
    """Return points chosen from `rows` by farthest-point sampling.

    The first is `start`; each next point is the one farthest from those already chosen.
    """
    if uses_compiled_paths(lengths, count):
        return CompiledPaths.of(lengths).farthest_points(rows, count, start)
    return _farthest_with_distances(lengths, rows, count, start)[0]


def _farthest_with_distances(
    lengths: sparse.csr_array, rows: IntArray, count: int, start: int
) -> tuple[IntArray, Array]:
    """Return the same and the distances of all points to them, (count, n), which it computes."""
    targets = [start]
    found = [dijkstra(lengths, indices=start)]
    nearest = found[0][rows]
    for _ in range(count - 1):
        targets.append(int(rows[np.argmax(nearest)]))
        found.append(dijkstra(lengths, indices=targets[-1]))
        nearest = np.minimum(nearest, found[-1][rows])
    return np.array(targets), np.array(found)


def shortest_path(
    graph: NeighborGraph, start: int, stop: int, allowed: Mask | None = None
) -> tuple[IntArray, Array]:
    """Return the points on the shortest path between two points and their distances from `start`.

    The path visits only points in the mask `allowed`, by default all.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.neighbors import NeighborGraph
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [3.0], [6.0]]), n_neighbors=1)
    >>> shortest_path(graph, 3, 0)
    (array([3, 2, 1, 0]), array([0., 3., 5., 6.]))
    """
    lengths, unit = edge_lengths(graph)
    if allowed is not None and not allowed.all():
        inside = sparse.diags_array(allowed.astype(float))
        lengths = sparse.csr_array(inside @ lengths @ inside)
        lengths.eliminate_zeros()
    found, before = dijkstra(lengths, indices=start, return_predecessors=True)
    if np.isinf(found[stop]):
        raise DisconnectedGraphError(_no_path(graph, start, stop, int(np.isfinite(found).sum())))
    path = [stop]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    rows = np.array(path[::-1])
    return rows, found[rows] * unit


def _no_path(graph: NeighborGraph, start: int, stop: int, n_reached: int) -> str:
    k = graph.n_neighbors
    remedy = "raise the radius" if k is None else f"pass n_neighbors above {k}"
    return (
        f"no path along the neighbor graph leads from row {start} to row {stop}: they lie in "
        f"different connected components, that of row {start} has {n_reached} of "
        f"{graph.n_reference} points; {remedy}, or choose two rows of one component"
    )


def edge_lengths(graph: NeighborGraph) -> tuple[sparse.csr_array, float]:
    """Symmetric edge lengths divided by a power of two, and that unit; zeros become tiny."""
    unit = power_of_two_scale(graph.distances)
    lengths = graph.matrix(np.maximum(graph.distances / unit, _ZERO_LENGTH))
    # Older versions of scipy's graph routines require 32-bit indices.
    return canonical(sparse.csr_array(lengths.maximum(lengths.T))), unit


def _plan(n: int, n_targets: int, itemsize: int) -> None:
    """Check the memory for the distances and for the compiled search of each thread."""
    search = 300.0 * n * thread_count() if n * n_targets > SINGLE_ABOVE else 0.0
    plan_memory(
        1.0 * itemsize * n * n_targets + search,
        f"geodesic distances between {n} points and {n_targets} targets",
        "pass n_landmarks to use fewer targets",
    )
