"""Search for short-circuit edges: edges between points that are far apart along the manifold.

The *load* of a point or edge is the number of shortest paths through it. The *detour* of an edge
is the length of the shortest path between its ends without the candidate edges, relative to the
spacing of the points there.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from manifoldry.neighbors.crossing_groups import GroupCriteria, WithoutCandidates
from manifoldry.neighbors.edge_list import EdgeList
from manifoldry.neighbors.paths import Mask, PathTrees
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import split_by_label, spread_rows


class Crossings(NamedTuple):
    """Result of the search, or of one of its steps."""

    found: Mask
    """The short-circuit edges, or the edges that may still be some."""
    unexamined: Mask
    """Candidates that are no short circuits because a sample of their group has none, or few."""


@dataclass(frozen=True)
class CrossingSearch:
    """Thresholds of the search for short-circuit edges, and the search itself.

    The defaults were chosen on the data of docs/studies/short_circuits.py with seeds below 30; the
    study uses other seeds.

    Parameters
    ----------
    min_nearby_detour : float
        Smallest detour of a single edge of a group of short-circuit edges.
    min_load : float
        Smallest fraction of all shortest paths that use a group of edges.
    max_sampled : int
        Of candidates that are connected to each other, at most this many are examined first; the
        others only if some of these may be short circuits. With 200 a fraction of a quarter has a
        standard error of 0.03.
    max_examined : int
        At most this many of those are examined in the end, if most of the sample are no short
        circuits; the others are none either. Without this limit, a group of 88 000 among a million
        points in many dimensions takes hours.
    large_group : int
        Groups of more candidates are examined only if such a sample has possible short circuits,
        as decided by :meth:`GroupCriteria.has_few_suspicious`. In data of many dimensions up to
        half of all edges form one group, and examining it would take longer than the fit.
        Thresholds of 100 and 3000 give the same results: docs/decisions.md. The search of 6000
        digits takes 0.08 s with 300, 0.6 s with 3000.
    max_passes : int
        Number of times that edges with a short detour are excluded.
    max_rounds : int
        Number of searches. From the second on, edges at points of high load are not trusted.
    high_load_fraction, min_high_load : float, int
        Fraction of the points that count as points of high load, and their smallest number.
    criteria : GroupCriteria
        Which groups of candidates are short circuits.
    """

    min_nearby_detour: float = 3.0
    min_load: float = 0.03
    max_sampled: int = 200
    max_examined: int = 3000
    large_group: int = 300
    max_passes: int = 3
    max_rounds: int = 5
    high_load_fraction: float = 0.01
    min_high_load: int = 3
    criteria: GroupCriteria = field(default_factory=GroupCriteria)

    def find(self, edges: EdgeList, trees: PathTrees, sources: IntArray) -> Crossings:
        """Find the short-circuit edges.

        In each round, the trusted edges and a spanning tree of the others form a skeleton of the
        manifold. Candidates are the edges outside the skeleton whose ends are far apart along it,
        and also far apart along all edges that are not candidates. From the second round on, the
        skeleton excludes edges at points of high load: edges between outliers in a gap look like
        any other edge, but all shortest paths across the gap use them.

        Parameters
        ----------
        edges : EdgeList
            All edges of the graph.
        trees : PathTrees
            Shortest paths from `sources` along all edges.
        sources : array of shape (n_sources,)
            Start points of the paths.
        """
        removed, unexamined = np.zeros((2, len(edges.ends)), dtype=bool)
        trusted = edges.trusted
        for round_number in range(self.max_rounds):
            candidates = self._candidates(edges, removed, trusted, trees, sources)
            confirmed, trees = self._confirmed(edges, removed, candidates.found, trees, sources)
            unexamined |= candidates.unexamined | confirmed.unexamined
            if round_number > 0 and not confirmed.found.any():
                break
            removed = removed | confirmed.found
            trusted = self._away_from_high_load(edges, trees.load())
        return Crossings(removed, unexamined & ~removed)

    def _away_from_high_load(self, edges: EdgeList, load: Array) -> Mask:
        """Mask of all edges except those at points of high load and untrusted ones next to them."""
        count = max(self.min_high_load, int(self.high_load_fraction * edges.n))
        highest = np.argsort(-load, kind="stable")[:count]
        touching = _mask(highest, edges.n)[edges.ends].any(axis=1)
        adjacent = _mask(edges.ends[touching].ravel(), edges.n)[edges.ends].any(axis=1)
        return np.asarray(~touching & (edges.trusted | ~adjacent))

    def _candidates(
        self, edges: EdgeList, removed: Mask, trusted: Mask, trees: PathTrees, sources: IntArray
    ) -> Crossings:
        """Find the edges with long detours that enough paths use."""
        skeleton = edges.with_spanning_edges(trusted & ~removed, ~removed)
        # Edges of the skeleton are about as long as the spacing, so a path of few edges is short.
        # Counting edges is cheaper than computing path lengths.
        others: IntArray = np.flatnonzero(~skeleton & ~removed)
        rows = edges.not_within_steps(others, edges.matrix(skeleton), int(self.criteria.min_detour))
        rest = edges.matrix(~removed & ~_mask(rows, len(removed)))
        rows = edges.not_within_steps(rows, rest, int(self.min_nearby_detour))
        first = self._in_suspicious_groups(edges, removed, rows, trees, sources)
        rows = np.flatnonzero(self._with_long_detours(edges, removed, first.found))
        second = self._in_suspicious_groups(edges, removed, rows, trees, sources)
        return Crossings(second.found, first.unexamined | second.unexamined)

    def _in_suspicious_groups(
        self, edges: EdgeList, removed: Mask, rows: IntArray, trees: PathTrees, sources: IntArray
    ) -> Crossings:
        """Find the edges, of `rows`, in suspicious groups.

        Enough shortest paths use a suspicious group, and if it is large, a sample has possible
        short circuits. Detours are overestimated here: too many edges are missing.
        """
        n_edges = len(removed)
        fraction = trees.edge_loads(edges.ends[rows]) / max(1, trees.n_paths)
        label = edge_groups(edges, rows, ~removed)
        suspicious = np.bincount(label, weights=fraction)[label] > self.min_load
        skipped = np.zeros(len(rows), dtype=bool)
        kept = ~removed & ~_mask(rows, n_edges)
        state = WithoutCandidates(edges, kept, trees, sources)
        for large in np.flatnonzero(np.bincount(label[suspicious]) > self.large_group):
            group = np.flatnonzero(label == large)
            sample = group[spread_rows(len(group), self.max_sampled)]
            if self.criteria.has_few_suspicious(state, rows[sample]):
                suspicious[group] = False
                skipped[group] = True
                skipped[sample] = False
        return Crossings(_mask(rows[suspicious], n_edges), _mask(rows[skipped], n_edges))

    def _with_long_detours(self, edges: EdgeList, removed: Mask, found: Mask) -> Mask:
        """Exclude edges with a short detour from the mask `found`, in a few passes.

        An excluded edge can shorten the detours of other edges, hence several passes. Their number
        is limited, or exclusions would propagate from one edge to the next along the whole gap.
        """
        for _ in range(self.max_passes if found.any() else 0):
            rows = np.flatnonzero(found)
            rest = edges.matrix(~found & ~removed)
            beyond = edges.not_within_steps(rows, rest, int(self.min_nearby_detour))
            detours = edges.path_lengths(beyond, rest, self.min_nearby_detour, shortest=False)
            far = beyond[np.isinf(detours)]
            found = _mask(far, len(removed))
            if len(far) in (0, len(rows)):
                break
        return found

    def _confirmed(
        self, edges: EdgeList, removed: Mask, found: Mask, before: PathTrees, sources: IntArray
    ) -> tuple[Crossings, PathTrees]:
        """Return the candidates that are short circuits, and shortest paths without them.

        Removing all edges at one place of a ring, or along a poorly sampled line of a sheet, also
        leaves a long detour; but these edges are no longer, and have no higher load, than those of
        the detour. Groups of edges that are not short circuits are restored, those with the
        longest detours last: while legitimate edges are missing, other detours may be
        overestimated.
        """
        unexamined = np.zeros(len(removed), dtype=bool)
        while found.any():
            state = WithoutCandidates(edges, ~found & ~removed, before, sources)
            rows = np.flatnonzero(found)
            kept = self._kept(state, rows, edge_groups(edges, rows, ~removed))
            if kept.found.all():
                return Crossings(found, unexamined), state.after
            unexamined[rows[kept.unexamined]] = True
            found = self._with_long_detours(edges, removed, _mask(rows[kept.found], len(removed)))
        return Crossings(found, unexamined), before

    def _kept(self, state: WithoutCandidates, rows: IntArray, label: IntArray) -> Crossings:
        """Find the candidates not to restore; the masks are those of `rows`.

        Among very many candidates that are connected to each other, a sample is examined first. If
        all of it is to be restored, so are the others; otherwise more are examined.
        """
        examined = _at_most_per_label(label, self.max_sampled)
        restored = self.criteria.to_restore(state, rows[examined], label[examined])
        undecided = np.isin(label, label[examined][~restored])
        fraction = np.bincount(label[examined], restored) / np.bincount(label[examined])
        undecided &= (fraction < 0.5)[label] | _at_most_per_label(label, self.max_examined)
        if (undecided & ~examined).any():
            examined = examined | undecided
            restored = self.criteria.to_restore(state, rows[examined], label[examined])
        return Crossings(_mask(np.flatnonzero(examined)[~restored], len(rows)), ~examined)


def _at_most_per_label(label: IntArray, most: int) -> Mask:
    """Mask of at most `most` rows of each label, evenly spaced."""
    return _mask(
        np.concatenate([rows[spread_rows(len(rows), most)] for rows in split_by_label(label)]),
        len(label),
    )


def _mask(rows: IntArray, n: int) -> Mask:
    out = np.zeros(n, dtype=bool)
    out[rows] = True
    return out


def edge_groups(edges: EdgeList, rows: IntArray, present: Mask) -> IntArray:
    """Return a label for each edge of `rows`, equal if their ends are connected to each other.

    They are connected by the edges in the mask `present` between ends of edges of `rows`.
    """
    inside = _mask(edges.ends[rows].ravel(), edges.n)[edges.ends].all(axis=1)
    parts = edges.parts(present & inside)
    labels: IntArray = np.unique(parts[edges.ends[rows, 0]], return_inverse=True)[1]
    return labels
