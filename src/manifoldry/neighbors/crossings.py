"""Search for short-circuit edges: edges between points that are far apart along the manifold.

The *load* of a point or edge is the number of shortest paths through it. The *detour* of an edge
is the length of the shortest path between its ends without the candidate edges, relative to the
spacing of the points there.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.neighbors.edge_list import EdgeList
from manifoldry.neighbors.paths import Mask, PathTrees
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import split_by_label, spread_rows


@dataclass(frozen=True)
class CrossingSearch:
    """Thresholds of the search for short-circuit edges, and the search itself.

    The defaults were chosen on the data of docs/studies/short_circuits.py with seeds below 30; the
    study uses other seeds.

    Parameters
    ----------
    growth : float
        A path counts as changed if it becomes longer by more than this factor.
    min_detour : float
        Smallest detour of a group of short-circuit edges.
    min_nearby_detour : float
        Smallest detour of a single edge of such a group.
    min_load : float
        Smallest fraction of all shortest paths that use a group of edges.
    min_longer : float
        Smallest fraction of these paths that change without the group.
    length_ratio : float
        A group is a short circuit if its edges are longer by this factor than all edges of the
        detour. Otherwise one of the two conditions on the load must hold.
    load_ratio : float
        The load at the group exceeds the largest load on the detour by this factor.
    max_detour_load : float
        At most this fraction of the paths through the group share a point of the detour.
    long_detour_factor : float
        With the conditions on the load, the detour must be this many times `min_detour`.
    max_sampled : int
        Of candidates that are connected to each other, at most this many are examined first; the
        others only if some of these may be short circuits.
    max_passes : int
        Number of times that edges with a short detour are excluded.
    max_rounds : int
        Number of searches. From the second on, edges at points of high load are not trusted.
    high_load_fraction, min_high_load : float, int
        Fraction of the points that count as points of high load, and their smallest number.
    """

    growth: float = 1.1
    min_detour: float = 5.0
    min_nearby_detour: float = 3.0
    min_load: float = 0.03
    min_longer: float = 0.6
    length_ratio: float = 1.6
    load_ratio: float = 1.3
    max_detour_load: float = 0.5
    long_detour_factor: float = 2.0
    max_sampled: int = 200
    max_passes: int = 3
    max_rounds: int = 5
    high_load_fraction: float = 0.01
    min_high_load: int = 3

    def find(self, edges: EdgeList, trees: PathTrees, sources: IntArray) -> Mask:
        """Return the mask of short-circuit edges.

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
        removed = np.zeros(len(edges.ends), dtype=bool)
        trusted = edges.trusted
        for round_number in range(self.max_rounds):
            candidates = self._candidates(edges, removed, trusted, trees)
            found, trees = self._confirmed(edges, removed, candidates, trees, sources)
            if round_number > 0 and not found.any():
                break
            removed = removed | found
            trusted = self._away_from_high_load(edges, trees.load())
        return removed

    def _away_from_high_load(self, edges: EdgeList, load: Array) -> Mask:
        """Mask of all edges except those at points of high load and untrusted ones next to them."""
        count = max(self.min_high_load, int(self.high_load_fraction * edges.n))
        highest = np.argsort(-load, kind="stable")[:count]
        touching = _mask(highest, edges.n)[edges.ends].any(axis=1)
        adjacent = _mask(edges.ends[touching].ravel(), edges.n)[edges.ends].any(axis=1)
        return np.asarray(~touching & (edges.trusted | ~adjacent))

    def _candidates(self, edges: EdgeList, removed: Mask, trusted: Mask, trees: PathTrees) -> Mask:
        """Mask of the edges that have a long detour and are used by enough shortest paths."""
        skeleton = edges.with_spanning_edges(trusted & ~removed, ~removed)
        # Edges of the skeleton are about as long as the spacing, so a path of few edges is short.
        # Counting edges is cheaper than computing path lengths.
        others: IntArray = np.flatnonzero(~skeleton & ~removed)
        rows = edges.not_within_steps(others, edges.matrix(skeleton), int(self.min_detour))
        rest = edges.matrix(~removed & ~_mask(rows, len(removed)))
        rows = edges.not_within_steps(rows, rest, int(self.min_nearby_detour))
        found = self._on_enough_paths(edges, removed, _mask(rows, len(removed)), trees)
        return self._on_enough_paths(
            edges, removed, self._with_long_detours(edges, removed, found), trees
        )

    def _on_enough_paths(
        self, edges: EdgeList, removed: Mask, found: Mask, trees: PathTrees
    ) -> Mask:
        """Mask of the edges in `found` whose group is used by enough shortest paths."""
        rows = np.flatnonzero(found)
        fraction = trees.edge_loads(edges.ends[rows]) / max(1, trees.n_paths)
        label = edge_groups(edges, rows, edges.matrix(~removed & ~found))
        return _mask(
            rows[np.bincount(label, weights=fraction)[label] > self.min_load], len(removed)
        )

    def _with_long_detours(self, edges: EdgeList, removed: Mask, found: Mask) -> Mask:
        """Exclude edges with a short detour from the mask `found`, in a few passes.

        An excluded edge can shorten the detours of other edges, hence several passes. Their number
        is limited, or exclusions would propagate from one edge to the next along the whole gap.
        """
        for _ in range(self.max_passes):
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
    ) -> tuple[Mask, PathTrees]:
        """Return the candidates that are short circuits, and the shortest paths without them.

        Removing all edges at one place of a ring, or along a poorly sampled line of a sheet, also
        leaves a long detour; but these edges are no longer, and have no higher load, than those of
        the detour. Groups of edges that are not short circuits are restored, those with the
        longest detours last: while legitimate edges are missing, other detours may be
        overestimated.
        """
        while found.any():
            state = _WithoutCandidates(edges, edges.matrix(~found & ~removed), before, sources)
            restored = self._restored(state, np.flatnonzero(found))
            if len(restored) == 0:
                return found, state.after
            found = found & ~_mask(restored, len(removed))
            found = self._with_long_detours(edges, removed, found)
        return found, before

    def _restored(self, state: "_WithoutCandidates", rows: IntArray) -> IntArray:
        """Return the candidates, of `rows`, to restore; none if all are short circuits.

        Among very many candidates that are connected to each other, a sample is examined first. If
        all of it is to be restored, so are the others.
        """
        label = edge_groups(state.edges, rows, state.rest)
        examined = _at_most_per_label(label, self.max_sampled)
        restored = self._to_restore(state, rows[examined], label[examined])
        undecided = np.isin(label, label[examined][~restored])
        if (undecided & ~examined).any():
            examined = examined | undecided
            restored = self._to_restore(state, rows[examined], label[examined])
        kept = np.zeros(len(rows), dtype=bool)
        kept[np.flatnonzero(examined)[~restored]] = True
        return rows[~kept]

    def _to_restore(self, state: "_WithoutCandidates", rows: IntArray, label: IntArray) -> Mask:
        """Mask of the candidates, of `rows`, to restore, given the labels of their groups."""
        out = np.zeros(len(rows), dtype=bool)
        rejected = []
        for group, detour in self._groups(state, rows, label):
            if detour < self.min_detour:
                out[group] = True
            elif not self._is_short_circuit(state, rows[group], detour):
                rejected.append((group, detour))
        last = max(
            self.long_detour_factor * self.min_detour,
            float(np.median([detour for _, detour in rejected] or [0.0])),
        )
        for group, detour in rejected:
            out[group] |= detour <= last
        return out

    def _is_short_circuit(
        self, state: "_WithoutCandidates", group: IntArray, detour: float
    ) -> bool:
        """Whether paths need the group and its edges are longer or carry more load than the detour.

        The shortest paths without the candidates take longest to compute, so they come last.
        """
        longer = self._longer_than_detour(state.edges, group, state.rest)
        if not longer and detour < self.long_detour_factor * self.min_detour:
            return False
        across = state.before.using(state.edges.ends[group])
        grown = state.after.distances[across] > self.growth * state.before.distances[across]
        if grown.sum() <= self.min_longer * len(grown):
            return False
        return longer or self._is_bottleneck(state, group, across)

    def _groups(
        self, state: "_WithoutCandidates", rows: IntArray, label: IntArray
    ) -> list[tuple[IntArray, float]]:
        """Return groups of edges that cross a gap at the same place, with their median detours.

        The ends of the edges of a group are connected, that is, have the same `label`, and the
        detours differ by less than a factor of two. Edges are given by their positions in `rows`.
        """
        spacing = state.edges.spacing[rows]
        farthest = 2 * self.long_detour_factor * self.min_detour  # larger values make no difference
        lengths = state.edges.path_lengths(rows, state.rest, farthest)
        detour = np.minimum(lengths / spacing, farthest)
        length = detour * spacing
        longest = np.zeros(label.max() + 1)
        np.maximum.at(longest, label, length)
        halvings = np.floor(np.log2(longest[label] / length))
        keys = np.column_stack([label, halvings])
        labels = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        return [(group, float(np.median(detour[group]))) for group in split_by_label(labels)]

    def _longer_than_detour(self, edges: EdgeList, group: IntArray, rest: sparse.csr_array) -> bool:
        """Whether for most edges of the group there is a detour of much shorter edges."""
        steps = rest.copy()
        steps.data[steps.data > np.median(edges.lengths[group]) / self.length_ratio] = 0.0
        steps.eliminate_zeros()
        labels = connected_components(steps, directed=False)[1]
        i, j = edges.ends[group].T
        return bool(np.mean(labels[i] == labels[j]) >= 0.5)

    def _is_bottleneck(self, state: "_WithoutCandidates", group: IntArray, across: Mask) -> bool:
        """Whether the load at the group is high and the paths spread out on the detour."""
        at_crossing = state.before.load(across)[np.unique(state.edges.ends[group])].max()
        on_detour = state.after.load(across).max()
        return bool(
            at_crossing > self.load_ratio * on_detour
            or on_detour < self.max_detour_load * across.sum()
        )


@dataclass(frozen=True, eq=False)
class _WithoutCandidates:
    """The graph without the candidates, and shortest paths with and without them."""

    edges: EdgeList
    rest: sparse.csr_array
    before: PathTrees
    sources: IntArray

    @cached_property
    def after(self) -> PathTrees:
        return PathTrees.of(self.rest, self.sources)


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


def edge_groups(edges: EdgeList, rows: IntArray, rest: sparse.csr_array) -> IntArray:
    """Return a label for each edge, equal for edges whose ends are connected to each other."""
    points, place = np.unique(edges.ends[rows], return_inverse=True)
    i, j = place.reshape(-1, 2).T
    near = rest[points][:, points]
    crossing = sparse.csr_array((np.ones(len(rows)), (i, j)), shape=near.shape)
    labels: IntArray = connected_components(near + crossing, directed=False)[1][i]
    return labels
