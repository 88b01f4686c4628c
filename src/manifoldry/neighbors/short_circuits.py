"""Edges that short-circuit a manifold: found, ranked, explained and removed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.csgraph import dijkstra

from manifoldry.exceptions import ShortCircuitWarning
from manifoldry.neighbors.crossings import CrossingSearch, edge_groups
from manifoldry.neighbors.edge_list import EdgeList, best_rank
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.paths import PathTrees
from manifoldry.neighbors.pruning import without_edges
from manifoldry.util.checks import check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import spread_rows
from manifoldry.util.warn import warn


@dataclass(frozen=True)
class ShortCircuitOptions:
    """What is looked at to find short circuits, and from when on they are reported.

    Parameters
    ----------
    n_sources : int
        Starting points of the paths that are looked at.
    min_changed : float
        Fraction of geodesics that must grow, else nothing is reported.
    min_neighbors : int
        Neighbors below which sheets come apart by chance: no fewer are advised.
    max_listed : int
        Edges, and points they meet in, that are named in words.
    warn_above : float
        Fraction of geodesics that suspicious edges must change to be worth a warning in a fit.
    search : CrossingSearch
        What counts as an edge across a gap.
    """

    n_sources: int = 16
    min_changed: float = 0.01
    min_neighbors: int = 4
    max_listed: int = 5
    warn_above: float = 0.1
    search: CrossingSearch = field(default_factory=CrossingSearch)


DEFAULT_OPTIONS = ShortCircuitOptions()


def find_short_circuits(
    X: Any,
    n_neighbors: int | None = None,
    *,
    radius: float | None = None,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    options: ShortCircuitOptions = DEFAULT_OPTIONS,
) -> "ShortCircuits":
    """Find the edges of a neighbor graph that cut a manifold short, and what removing them does.

    An edge from one layer of a rolled-up sheet to the next ruins every distance along the graph,
    and with it Isomap and unfolding, which therefore call this in each fit and warn. Call it
    yourself to see which edges those are, and to embed the graph without them: print the result,
    and pass what its :meth:`~ShortCircuits.prune` returns to the estimator instead of the data.

    An edge is a short circuit if, with all others like it gone, the way round is several times as
    long and yet the better road: made of much shorter steps, or less crowded by shortest paths. So
    a bridge between clusters is none, for there is no way round, and neither is any part of a
    ring. Edges that few shortest paths use are let be. Where noise is as large as the gaps, layers
    merge and many crossings are missed.

    Parameters
    ----------
    X : NeighborGraph, array, sparse matrix or frame of shape (n_samples, n_features)
        A ready graph, or data to build one on; see :meth:`NeighborGraph.build`.
    n_neighbors : int, default=None
        Neighbors per point; by default 10, or all that a ready graph has.
    radius, metric, metric_params, n_jobs
        As in :meth:`NeighborGraph.build`, for data.
    options : ShortCircuitOptions
        The thresholds of the search.

    Returns
    -------
    ShortCircuits

    Examples
    --------
    A horseshoe whose ends almost touch, and two stray points in the gap:

    >>> import numpy as np
    >>> from manifoldry.neighbors import find_short_circuits
    >>> angle = np.linspace(0.2, 2 * np.pi - 0.2, 200)
    >>> horseshoe = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.vstack([horseshoe, [[1.0, 0.05], [1.0, -0.05]]])
    >>> found = find_short_circuits(X, n_neighbors=4)
    >>> bool((found.edges >= 200).any(axis=1).all()), found.changed > 0.1
    (True, True)
    >>> print(find_short_circuits(found.prune()))
    no sign of short circuits among 410 edges between 202 points
    """
    if not isinstance(X, NeighborGraph):
        X = NeighborGraph.build(
            X,
            n_neighbors,
            radius=radius,
            metric=metric,
            metric_params=metric_params,
            n_jobs=n_jobs,
        )
    elif n_neighbors is not None and n_neighbors != X.n_neighbors:
        X = X.truncate(n_neighbors)
    return ShortCircuits.of(X, options)


@dataclass(frozen=True, eq=False, repr=False)
class ShortCircuits:
    """Edges that cut a manifold short, the most harmful first; see :func:`find_short_circuits`.

    Parameters
    ----------
    graph : NeighborGraph
        Where they were found.
    edges : array of shape (n_edges, 2)
        Their ends.
    score : array of shape (n_edges,)
        What they are ranked by: the length that shortest paths save by the edge, as a fraction of
        the length of all shortest paths; then by their detour. Edges that cross a gap in the same
        place stand together, the crossing that saves most first: only all of it gone has effect.
    detour : array of shape (n_edges,)
        Length of the way between the ends when all these edges are gone, relative to the edge.
    load : array of shape (n_edges,)
        Fraction of shortest paths that run through the edge.
    changed : Estimate
        Fraction of the distances along the graph that grow by more than a tenth without all edges.
    options : ShortCircuitOptions
        The thresholds they were found with.
    """

    graph: NeighborGraph
    edges: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.intp))
    score: Array = field(default_factory=lambda: np.empty(0))
    detour: Array = field(default_factory=lambda: np.empty(0))
    load: Array = field(default_factory=lambda: np.empty(0))
    changed: Estimate = field(default_factory=lambda: Estimate(0.0))
    options: ShortCircuitOptions = DEFAULT_OPTIONS

    @classmethod
    def of(
        cls, graph: NeighborGraph, options: ShortCircuitOptions = DEFAULT_OPTIONS
    ) -> "ShortCircuits":
        """Look for short circuits in the graph of the training points among themselves."""
        if graph.n_query != graph.n_reference:
            raise ValueError(
                f"short circuits are sought in the graph of the training points; this one has "
                f"{graph.n_query} query points among {graph.n_reference}"
            )
        empty = cls(graph, options=options)
        if not graph.distances.any():
            return empty
        edges, sources = EdgeList.of(graph), spread_rows(graph.n_query, options.n_sources)
        all_edges = np.ones(len(edges.ends), dtype=bool)
        trees = PathTrees.of(edges.matrix(all_edges), sources)
        found = options.search.find(edges, trees, sources)
        return cls._ranked(graph, options, edges, found, trees) if found.any() else empty

    @classmethod
    def _ranked(
        cls,
        graph: NeighborGraph,
        options: ShortCircuitOptions,
        edges: EdgeList,
        found: Any,
        trees: PathTrees,
    ) -> "ShortCircuits":
        """Report the edges that were found, unless they are harmless."""
        rest, rows = edges.matrix(~found), np.flatnonzero(found)
        sources = spread_rows(graph.n_query, options.n_sources)
        after = dijkstra(rest, indices=sources)
        changed = _fraction_longer(trees.distances, after, options.search.growth)
        if changed < options.min_changed:
            return cls(graph, options=options)
        lengths, alternative = edges.lengths[rows], edges.path_lengths(rows, rest)
        paths = trees.edge_loads(edges.ends[rows])
        total = trees.distances[np.isfinite(trees.distances)].sum()
        score, detour = paths * (alternative - lengths) / total, alternative / lengths
        crossing = edge_groups(edges, rows, rest)
        group_score = np.bincount(crossing, weights=score)[crossing]
        order = np.lexsort((-detour, -score, crossing, -group_score))
        load = paths / trees.n_paths
        ends = edges.ends[rows].astype(np.intp)
        ranked = ends[order], score[order], detour[order], load[order]
        return cls(graph, *ranked, changed, options)

    def __len__(self) -> int:
        return len(self.edges)

    def prune(self, count: int | None = None) -> NeighborGraph:
        """The graph without the first `count` of these edges, by default without any.

        All estimators take it in place of data. A point that loses a neighbor gets the next along
        the graph instead, at its distance along the graph, so that k stays k and no path changes.
        New points find their neighbors in the data as ever, but where two of them are the ends of
        a removed edge the farther is dropped; one so far between two layers that none of its
        neighbors is such an end can still be placed on the wrong one, or between them.

        Parameters
        ----------
        count : int, default=None
            How many edges, from the most harmful on.
        """
        return without_edges(self.graph, self.edges[: self._count(count)])

    def effect(self, count: int | None = None) -> Estimate:
        """Fraction of distances along the graph that grow by a tenth without the first `count`
        edges.

        Estimated on a few points, from which all distances are computed.
        """
        count = self._count(count)
        if count == len(self):
            return self.changed
        edges, sources = self._edge_list, spread_rows(self.graph.n_query, self.options.n_sources)
        removed = np.isin(edges.codes, edges.codes_of(self.edges[:count]))
        after = dijkstra(edges.matrix(~removed), indices=sources)
        return _fraction_longer(self._before, after, self.options.search.growth)

    def _count(self, count: int | None) -> int:
        return len(self) if count is None else min(check_count("count", count, 0), len(self))

    @cached_property
    def _edge_list(self) -> EdgeList:
        return EdgeList.of(self.graph)

    @cached_property
    def _before(self) -> Array:
        all_edges = np.ones(len(self._edge_list.ends), dtype=bool)
        sources = spread_rows(self.graph.n_query, self.options.n_sources)
        return np.asarray(dijkstra(self._edge_list.matrix(all_edges), indices=sources))

    @property
    def points(self) -> IntArray:
        """The few points that all these edges meet in, such as stray ones; none if they do not."""
        left = self.edges
        points: list[int] = []
        while len(left) and len(points) < self.options.max_listed:
            points.append(int(np.bincount(left.ravel()).argmax()))
            left = left[(left != points[-1]).all(axis=1)]
        meet = len(left) == 0 and 2 * len(points) <= len(self)
        return np.array(sorted(points) if meet else [], dtype=np.intp)

    @property
    def fewer_neighbors(self) -> int | None:
        """The most neighbors with which none of these edges would be there; None if too few."""
        if self.graph.n_neighbors is None or len(self) == 0:
            return None
        k = int(best_rank(self.graph, self.edges).min())
        if k < self.options.min_neighbors:
            return None
        connected = self.graph.truncate(k).components()[0] == self.graph.components()[0]
        return k if connected else None

    @property
    def advice(self) -> str:
        """What to do, in words."""
        remedies = []
        if self.fewer_neighbors is not None:
            remedies.append(f"pass n_neighbors={self.fewer_neighbors} or fewer")
        elif self.graph.radius is not None:
            remedies.append("pass a smaller radius")
        if len(self.points):
            named = ", ".join(map(str, self.points))
            remedies.append(f"drop the points they meet in ({named})")
        remedies.append("fit to find_short_circuits(...).prune(), the graph without them")
        return ", or ".join(remedies)

    def __repr__(self) -> str:
        return f"ShortCircuits({len(self)} edges, {self.changed:.0%} of distances changed)"

    def __str__(self) -> str:
        total = f"{len(self._edge_list.ends)} edges between {self.graph.n_query} points"
        if len(self) == 0:
            return f"no sign of short circuits among {total}"
        return "\n".join(
            [
                f"short circuits: {len(self)} of {total}",
                f"without them {self.changed:.0%} of the distances along the graph grow by more "
                "than a tenth",
                *self._table(),
                f"remedy: {self.advice}",
            ]
        )

    def _table(self) -> Iterator[str]:
        yield f"{'edge':>15} {'score':>7} {'detour':>7} {'load':>7} {'grow without these':>19}"
        shown = self.options.max_listed
        for row in range(min(shown, len(self))):
            i, j = self.edges[row]
            yield (
                f"{f'{i}-{j}':>15} {self.score[row]:7.3f} {self.detour[row]:7.1f} "
                f"{self.load[row]:7.1%} {self.effect(row + 1):19.0%}"
            )
        if len(self) > shown:
            yield f"{f'and {len(self) - shown} more':>15} {self.changed:43.0%}"


def _fraction_longer(before: Array, after: Array, growth: float) -> Estimate:
    """Fraction of finite distances, (n_sources, n), that have grown by more than this factor."""
    known = np.isfinite(before) & (before > 0)
    grown = known & (after > growth * before)
    counts = known.sum(axis=1)
    fractions = (grown.sum(axis=1) / np.maximum(counts, 1))[counts > 0]
    return Estimate.of_mean(fractions, before.shape[1])


def warn_of_short_circuits(
    graph: NeighborGraph, options: ShortCircuitOptions = DEFAULT_OPTIONS
) -> None:
    """Warn where suspicious edges change many distances along a graph."""
    found = ShortCircuits.of(graph, options)
    if found.changed > options.warn_above:
        shown = ", ".join(f"{i}-{j}" for i, j in found.edges[: options.max_listed])
        more = ", ..." if len(found) > options.max_listed else ""
        warn(
            f"edges {shown}{more} look like short circuits: without those {len(found)}, "
            f"{found.changed:.0%} of the distances along the graph grow by more than a tenth. "
            f"To mend that {found.advice} (manifoldry.neighbors)",
            ShortCircuitWarning,
        )
