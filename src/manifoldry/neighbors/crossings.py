"""Search for short-circuit edges: edges between points that are far apart along the manifold.

The *load* of a point or edge is the number of shortest paths through it. The *detour* of an edge
is the length of the shortest path between its ends without the candidate edges, relative to the
spacing of the points there.
"""

from dataclasses import dataclass

import numpy as np

from manifoldry.neighbors.crossing_groups import GroupCriteria, WithoutCandidates
from manifoldry.neighbors.edge_list import EdgeList
from manifoldry.neighbors.paths import Mask, PathTrees
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import split_by_label, spread_rows


@dataclass(frozen=True, eq=False)
class Crossings:
    """Result of the search.

    Parameters
    ----------
    found : array of shape (n_edges,)
        Mask of the short-circuit edges.
    unexamined : array of shape (n_edges,)
        Mask of the candidates that count as sound because a sample of their group is.
    """

    found: Mask
    unexamined: Mask


@dataclass(frozen=True)
class CrossingSearch(GroupCriteria):
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
        others only if some of these may be short circuits.
    large_group : int
        Larger groups are examined only if a sample does not show that they are mostly sound.
        In data of many dimensions up to half of all edges form one group, and examining it would
        take longer than the fit.
    max_passes : int
        Number of times that edges with a short detour are excluded.
    max_rounds : int
        Number of searches. From the second on, edges at points of high load are not trusted.
    high_load_fraction, min_high_load : float, int
        Fraction of the points that count as points of high load, and their smallest number.

    The other parameters are those of :class:`GroupCriteria`.
    """

    min_nearby_detour: float = 3.0
    min_load: float = 0.03
    max_sampled: int = 200
    large_group: int = 3000
    max_passes: int = 3
    max_rounds: int = 5
    high_load_fraction: float = 0.01
    min_high_load: int = 3

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
            candidates, skipped = self._candidates(edges, removed, trusted, trees, sources)
            found, restored_unseen, trees = self._confirmed(
                edges, removed, candidates, trees, sources
            )
            unexamined |= skipped | restored_unseen
            if round_number > 0 and not found.any():
                break
            removed = removed | found
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
    ) -> tuple[Mask, Mask]:
        """Masks of the edges with long detours that enough paths use, and of those not examined."""
        skeleton = edges.with_spanning_edges(trusted & ~removed, ~removed)
        # Edges of the skeleton are about as long as the spacing, so a path of few edges is short.
        # Counting edges is cheaper than computing path lengths.
        others: IntArray = np.flatnonzero(~skeleton & ~removed)
        rows = edges.not_within_steps(others, edges.matrix(skeleton), int(self.min_detour))
        rest = edges.matrix(~removed & ~_mask(rows, len(removed)))
        rows = edges.not_within_steps(rows, rest, int(self.min_nearby_detour))
        found, skipped = self._in_suspicious_groups(edges, removed, rows, trees, sources)
        rows = np.flatnonzero(self._with_long_detours(edges, removed, found))
        found, skipped_later = self._in_suspicious_groups(edges, removed, rows, trees, sources)
        return found, skipped | skipped_later

    def _in_suspicious_groups(
        self, edges: EdgeList, removed: Mask, rows: IntArray, trees: PathTrees, sources: IntArray
    ) -> tuple[Mask, Mask]:
        """Masks of the edges, of `rows`, in suspicious groups, and of those not examined.

        Enough shortest paths use a suspicious group, and if it is large, a sample does not show
        that most of it is sound. Detours are overestimated here: too many edges are missing.
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
            if self.mostly_sound(state, rows[sample]):
                suspicious[group] = False
                skipped[group] = True
                skipped[sample] = False
        return _mask(rows[suspicious], n_edges), _mask(rows[skipped], n_edges)

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
    ) -> tuple[Mask, Mask, PathTrees]:
        """Return the candidates that are short circuits, those not examined, and the paths left.

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
            kept, examined = self._kept(state, rows, edge_groups(edges, rows, ~removed))
            if kept.all():
                return found, unexamined, state.after
            unexamined[rows[~examined]] = True
            found = self._with_long_detours(edges, removed, _mask(rows[kept], len(removed)))
        return found, unexamined, before

    def _kept(self, state: WithoutCandidates, rows: IntArray, label: IntArray) -> tuple[Mask, Mask]:
        """Masks of the candidates, of `rows`, not to restore, and of those examined.

        Among very many candidates that are connected to each other, a sample is examined first. If
        all of it is to be restored, so are the others.
        """
        examined = _at_most_per_label(label, self.max_sampled)
        restored = self.to_restore(state, rows[examined], label[examined])
        undecided = np.isin(label, label[examined][~restored])
        if (undecided & ~examined).any():
            examined = examined | undecided
            restored = self.to_restore(state, rows[examined], label[examined])
        return _mask(np.flatnonzero(examined)[~restored], len(rows)), examined


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
