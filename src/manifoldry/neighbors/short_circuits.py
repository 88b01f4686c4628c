"""Detection, ranking, description and removal of short-circuit edges of a neighbor graph."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from manifoldry.device import say_on_cpu
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.exceptions import ShortCircuitWarning, warn
from manifoldry.neighbors.crossings import CrossingSearch, edge_groups
from manifoldry.neighbors.edge_list import EdgeList, best_rank
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.paths import Mask, PathTrees
from manifoldry.neighbors.pruning import without_edges
from manifoldry.neighbors.shortest_paths import path_lengths_from
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import spread_rows


@dataclass(frozen=True)
class ShortCircuitOptions:
    """Options of the detection of short circuits.

    Parameters
    ----------
    n_sources, min_sources : int, default=16, 6
        Number of points from which shortest paths are computed, and their smallest number in large
        data.
    max_paths : int, default=320000
        Number of shortest paths above which fewer sources are used.
    min_changed : float, default=0.01
        Short circuits are reported only if removing them changes at least this fraction of the
        geodesic distances.
    min_neighbors : int, default=4
        Smallest number of neighbors that is recommended; with fewer, graphs may become
        disconnected.
    max_listed : int, default=5
        Largest number of edges, and of common points, that are listed in messages.
    warn_above : float, default=0.1
        Estimators warn if short circuits change more than this fraction of geodesic distances.
    search : CrossingSearch, optional
        Thresholds of the search.

    See Also
    --------
    find_short_circuits : takes these options.
    ShortCircuits : its result.

    Examples
    --------
    A larger sample of shortest paths, which takes longer:

    >>> from manifoldry import find_short_circuits
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.neighbors import ShortCircuitOptions
    >>> X = make_swiss_roll(200, random_state=0).X
    >>> found = find_short_circuits(X, options=ShortCircuitOptions(n_sources=64))
    >>> found.options.n_sources
    64
    """

    n_sources: int = 16
    min_sources: int = 6
    max_paths: int = 320_000
    min_changed: float = 0.01
    min_neighbors: int = 4
    max_listed: int = 5
    warn_above: float = 0.1
    search: CrossingSearch = field(default_factory=CrossingSearch)

    def sources(self, n: int) -> IntArray:
        """Return the points from which shortest paths are computed, evenly spaced over n rows.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        array of int
            The points.
        """
        affordable = max(self.max_paths // n, self.min_sources)
        return spread_rows(n, min(self.n_sources, affordable))


DEFAULT_OPTIONS = ShortCircuitOptions()


@on_device_of_arguments
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
    """Find short-circuit edges of a neighbor graph and the effect of removing them.

    A short-circuit edge connects points that are close in space but far apart along the manifold,
    such as neighboring layers of a rolled-up sheet. It makes geodesic distances far too short.
    Isomap and maximum variance unfolding call this function in each fit and warn. Print the result
    to see the edges; to embed the graph without them, pass the graph returned by
    :meth:`~ShortCircuits.prune` to the estimator instead of the data.

    A group of edges is a short circuit if, without it, the shortest path between its ends is
    several times as long, and consists of much shorter edges or carries a lower load of shortest
    paths. A bridge between clusters is therefore no short circuit, since there is no other path,
    and neither is any part of a ring. Edges that few shortest paths use are ignored. If the noise
    is as large as the gap between layers, many short circuits are missed.

    The shortest paths are a sample: those from 16 points to all others, or from 320 000/n points,
    but at least 6, if there are n > 20 000. Where more than 200 suspicious edges are connected to
    each other, a sample of 200 is examined first, and the others only if some of these may be short
    circuits. Where they are more than 300, the others are examined only if more than a quarter of
    the sample have long detours, or if the sample's edges are longer than those of their detours.
    So a few short circuits among thousands of suspicious edges, which are common in data of many
    dimensions, may be missed.
    The number of edges that were not examined is `n_unexamined`, and part of the printed result.

    Parameters
    ----------
    X : NeighborGraph, array, sparse matrix or frame of shape (n_samples, n_features)
        A neighbor graph, or data to build one from; see :meth:`NeighborGraph.build`.
    n_neighbors : int, default=None
        Number of neighbors; by default 10, or the number of the given graph.
    radius : float, default=None
        Use all points within this distance instead of a fixed number; only for data.
    metric : str or callable, default="euclidean"
        Metric of the neighbor search; only for data.
    metric_params : dict, default=None
        Additional arguments of the metric.
    n_jobs : int, default=None
        Number of threads, by default one per core.
    options : ShortCircuitOptions, optional
        Thresholds of the search.

    Returns
    -------
    ShortCircuits
        The edges, the most harmful first.

    See Also
    --------
    manifoldry.neighbors.ShortCircuits : the result, and the graph without these edges.
    manifoldry.NeighborGraph : the graph.
    manifoldry.Isomap, manifoldry.MVU : methods that short circuits spoil.

    Examples
    --------
    A horseshoe whose ends almost touch, and two outliers in the gap:

    >>> import numpy as np
    >>> from manifoldry.neighbors import find_short_circuits
    >>> angle = np.linspace(0.2, 2 * np.pi - 0.2, 200)
    >>> horseshoe = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.vstack([horseshoe, [[1.0, 0.05], [1.0, -0.05]]])
    >>> found = find_short_circuits(X, n_neighbors=4)
    >>> bool((found.edges >= 200).any(axis=1).all()), found.changed > 0.1
    (True, True)
    >>> print(find_short_circuits(found.prune()))
    no short circuits among 410 edges between 202 points
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
    """Short-circuit edges, the most harmful first; see :func:`find_short_circuits`.

    Edges that cross a gap at the same place form a group, since only removing all of them has an
    effect. Groups are sorted by total score, edges within a group by score, then by detour.

    Parameters
    ----------
    graph : NeighborGraph
        The graph that was searched.
    edges : array of shape (n_edges, 2), optional
        The two points of each edge.
    score : array of shape (n_edges,), optional
        Length that the edge saves summed over shortest paths, as a fraction of the total length of
        all shortest paths.
    detour : array of shape (n_edges,), optional
        Length of the shortest path between the two points without all these edges, relative to
        the length of the edge.
    load : array of shape (n_edges,), optional
        Fraction of the shortest paths that use the edge.
    changed : Estimate, optional
        Fraction of the geodesic distances that grow by more than 10 % without these edges.
    options : ShortCircuitOptions, optional
        The options used.
    n_unexamined : int, default=0
        Number of suspicious edges that were not examined, since a sample of the edges they are
        connected to has no short circuits.

    See Also
    --------
    find_short_circuits : finds them.
    manifoldry.Isomap, manifoldry.MVU : methods that they spoil.

    Examples
    --------
    Few points of a rolled-up sheet: some edges connect neighboring layers. The graph without them
    is passed to an estimator in place of the data:

    >>> from manifoldry import Isomap, find_short_circuits
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X = make_swiss_roll(400, random_state=0).X
    >>> found = find_short_circuits(X, n_neighbors=10)
    >>> found
    ShortCircuits(14 edges, 38% of distances changed)
    >>> Isomap().fit(found.prune()).embedding_.shape
    (400, 2)
    """

    graph: NeighborGraph
    edges: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.intp))
    score: Array = field(default_factory=lambda: np.empty(0))
    detour: Array = field(default_factory=lambda: np.empty(0))
    load: Array = field(default_factory=lambda: np.empty(0))
    changed: Estimate = field(default_factory=lambda: Estimate(0.0))
    options: ShortCircuitOptions = DEFAULT_OPTIONS
    n_unexamined: int = 0

    @classmethod
    def of(
        cls, graph: NeighborGraph, options: ShortCircuitOptions = DEFAULT_OPTIONS
    ) -> "ShortCircuits":
        """Find the short circuits of a training graph.

        Parameters
        ----------
        graph : NeighborGraph
            The training graph.
        options : ShortCircuitOptions, optional
            Thresholds of the search.

        Returns
        -------
        ShortCircuits
            The edges found.
        """
        if graph.n_query != graph.n_reference:
            raise ValueError(
                f"short circuits are defined for the graph of the training points; this one has "
                f"{graph.n_query} query points among {graph.n_reference}"
            )
        empty = cls(graph, options=options)
        if not graph.distances.any():
            return empty
        edges, sources = EdgeList.of(graph), options.sources(graph.n_query)
        all_edges = np.ones(len(edges.ends), dtype=bool)
        trees = PathTrees.of(edges.matrix(all_edges), sources)
        result = options.search.find(edges, trees, sources)
        empty = replace(empty, n_unexamined=int(result.unexamined.sum()))
        return empty.with_edges(edges, result.found, trees) if result.found.any() else empty

    def with_edges(self, edges: EdgeList, found: Mask, trees: PathTrees) -> "ShortCircuits":
        """Rank the edges in `found`; none are added if removing them changes too few distances.

        Parameters
        ----------
        edges : EdgeList
            All edges of the graph.
        found : array of bool
            Which of them are short circuits.
        trees : PathTrees
            Shortest paths from a sample of points.

        Returns
        -------
        ShortCircuits
            The result with these edges.
        """
        rest, rows = edges.matrix(~found), np.flatnonzero(found)
        after = path_lengths_from(rest, self.options.sources(self.graph.n_query))
        changed = _fraction_longer(trees.distances, after, self.options.search.criteria.growth)
        if changed < self.options.min_changed:
            return self
        lengths, alternative = edges.lengths[rows], edges.path_lengths(rows, rest)
        paths = trees.edge_loads(edges.ends[rows])
        total = trees.distances[np.isfinite(trees.distances)].sum()
        score, detour = paths * (alternative - lengths) / total, alternative / lengths
        crossing = edge_groups(edges, rows, np.ones(len(found), dtype=bool))
        group_score = np.bincount(crossing, weights=score)[crossing]
        order = np.lexsort((-detour, -score, crossing, -group_score))
        load = paths / trees.n_paths
        return replace(
            self,
            edges=edges.ends[rows[order]].astype(np.intp),
            score=score[order],
            detour=detour[order],
            load=load[order],
            changed=changed,
        )

    def __len__(self) -> int:
        return len(self.edges)

    def prune(self, count: int | None = None) -> NeighborGraph:
        """Return the graph without the first `count` of these edges, by default without all.

        All estimators accept it in place of data. A point that loses a neighbor gets its nearest
        other point along the graph instead, at the geodesic distance, so that each point keeps k
        neighbors and no other path changes. New points get their nearest neighbors in the data; if
        two of them are the ends of a removed edge, the farther one is dropped. A new point between
        two layers without such a pair among its neighbors may still be placed on the wrong layer
        or between them.

        Parameters
        ----------
        count : int, default=None
            Number of edges to remove, starting with the most harmful one.

        Returns
        -------
        NeighborGraph
            The graph without these edges.
        """
        return without_edges(self.graph, self.edges[: self._count(count)])

    def effect(self, count: int | None = None) -> Estimate:
        """Estimate the fraction of geodesic distances that removing edges makes over 10 % longer.

        It is estimated from the distances to a sample of points.

        Parameters
        ----------
        count : int, default=None
            Number of edges to remove, starting with the most harmful one; by default all.

        Returns
        -------
        Estimate
            The fraction, with a 95 % confidence interval.
        """
        count = self._count(count)
        if count == len(self):
            return self.changed
        edges, sources = self._edge_list, self.options.sources(self.graph.n_query)
        removed = np.isin(edges.codes, edges.codes_of(self.edges[:count]))
        after = path_lengths_from(edges.matrix(~removed), sources)
        return _fraction_longer(self._before, after, self.options.search.criteria.growth)

    def _count(self, count: int | None) -> int:
        return len(self) if count is None else min(check_count("count", count, 0), len(self))

    @cached_property
    def _edge_list(self) -> EdgeList:
        return EdgeList.of(self.graph)

    @cached_property
    def _before(self) -> Array:
        all_edges = np.ones(len(self._edge_list.ends), dtype=bool)
        sources = self.options.sources(self.graph.n_query)
        return path_lengths_from(self._edge_list.matrix(all_edges), sources)

    @property
    def points(self) -> IntArray:
        """Points that together touch all these edges, such as outliers; empty if there are many."""
        left = self.edges
        points: list[int] = []
        while len(left) and len(points) < self.options.max_listed:
            points.append(int(np.bincount(left.ravel()).argmax()))
            left = left[(left != points[-1]).all(axis=1)]
        meet = len(left) == 0 and 2 * len(points) <= len(self)
        return np.array(sorted(points) if meet else [], dtype=np.intp)

    @property
    def fewer_neighbors(self) -> int | None:
        """Largest n_neighbors without any of these edges, or None if that is too few neighbors."""
        if self.graph.n_neighbors is None or len(self) == 0:
            return None
        k = int(best_rank(self.graph, self.edges).min())
        if k < self.options.min_neighbors:
            return None
        connected = self.graph.truncate(k).components()[0] == self.graph.components()[0]
        return k if connected else None

    @property
    def advice(self) -> str:
        """The remedy, as text."""
        remedies = []
        if self.fewer_neighbors is not None:
            remedies.append(f"pass n_neighbors={self.fewer_neighbors} or fewer")
        elif self.graph.radius is not None:
            remedies.append("pass a smaller radius")
        if len(self.points):
            named = ", ".join(map(str, self.points))
            remedies.append(f"remove the points that together touch all these edges ({named})")
        remedies.append("fit to find_short_circuits(...).prune(), the graph without these edges")
        return ", or ".join(remedies)

    def __repr__(self) -> str:
        return f"ShortCircuits({len(self)} edges, {self.changed:.0%} of distances changed)"

    def __str__(self) -> str:
        total = f"{len(self._edge_list.ends)} edges between {self.graph.n_query} points"
        if len(self) == 0:
            return f"no short circuits among {total}{self.caveat}"
        return "\n".join(
            [
                f"short circuits: {len(self)} of {total}{self.caveat}",
                f"without them {self.changed:.0%} of the geodesic distances grow by more than 10%",
                *self._table(),
                f"remedy: {self.advice}",
            ]
        )

    @property
    def caveat(self) -> str:
        """What was not examined, as text; empty if everything was."""
        if self.n_unexamined == 0:
            return ""
        return f" ({self.n_unexamined} suspicious edges were judged by a sample of them)"

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
    """Fraction of the finite distances, (n_sources, n), that grow by more than `growth`."""
    known = np.isfinite(before) & (before > 0)
    grown = known & (after > growth * before)
    counts = known.sum(axis=1)
    fractions = (grown.sum(axis=1) / np.maximum(counts, 1))[counts > 0]
    return Estimate.of_mean(fractions, before.shape[1])


def warn_of_short_circuits(
    graph: NeighborGraph, options: ShortCircuitOptions = DEFAULT_OPTIONS
) -> None:
    """Warn if short circuits change many geodesic distances of a graph."""
    numbers = len(options.sources(graph.n_query)) * float(len(graph.indices))
    why = "it follows single paths; short_circuits='ignore' skips it"
    say_on_cpu("the search for short circuits", why, numbers)
    found = ShortCircuits.of(graph, options)
    if found.changed > options.warn_above:
        shown = ", ".join(f"{i}-{j}" for i, j in found.edges[: options.max_listed])
        more = ", ..." if len(found) > options.max_listed else ""
        warn(
            f"edges that look like short circuits: {len(found)} ({shown}{more}). Without them, "
            f"{found.changed:.0%} of the geodesic distances grow by more than 10%{found.caveat}. "
            "To avoid this, "
            f"{found.advice} (see manifoldry.neighbors)",
            ShortCircuitWarning,
        )
