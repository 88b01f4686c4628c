"""The search for edges that cross gaps of a manifold."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.neighbors.edge_list import EdgeList
from manifoldry.neighbors.paths import Mask, PathTrees
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import split_by_label


@dataclass(frozen=True)
class CrossingSearch:
    """The search for edges that cross gaps, and what counts as one.

    The defaults were found on seeds below 30 of such data as docs/studies/short_circuits.py has,
    which draws others.

    Parameters
    ----------
    growth : float
        A distance along the graph that grows by more than this factor is another one.
    min_detour : float
        A way round this many times as long means that a gap was crossed.
    min_nearby_detour : float
        The same beside an edge that crosses one.
    min_load : float
        Fraction of all paths that a crossing worth the name is on.
    min_longer : float
        Fraction of those paths that are much longer without it.
    length_ratio : float
        A crossing is so many times longer than every step on the way round,
    load_ratio : float
        or so many times more crowded,
    max_bottleneck : float
        or no more than this fraction of its paths meet anywhere on the way round,
    long_detour_factor : float
        which then must be longer by this factor once more.
    max_passes : int
        Times that edges with a short way round are put back.
    max_rounds : int
        Searches, from the second on without trust in the busiest points.
    high_load_fraction, min_high_load : float, int
        Those are this fraction of all points, and at least so many.
    """

    growth: float = 1.1
    min_detour: float = 5.0
    min_nearby_detour: float = 3.0
    min_load: float = 0.03
    min_longer: float = 0.6
    length_ratio: float = 1.6
    load_ratio: float = 1.3
    max_bottleneck: float = 0.5
    long_detour_factor: float = 2.0
    max_passes: int = 3
    max_rounds: int = 5
    high_load_fraction: float = 0.01
    min_high_load: int = 3

    def find(self, edges: EdgeList, trees: PathTrees, sources: IntArray) -> Mask:
        """Which edges cross gaps; `trees` are the shortest paths along all edges from `sources`.

        In every round the trusted edges, and the few that connect what those do not, are a first
        sketch of the manifold. Of the other edges those are suspects whose ends are far apart
        along it, and remain far apart along all edges but the suspects. From the second round on,
        the points that most paths run through are left out of the sketch: a chain of stray points
        across a gap consists of edges that look like any other, but is on every path across.
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
        """All edges but those at the busiest points and, around them, those not trusted before."""
        count = max(self.min_high_load, int(self.high_load_fraction * edges.n))
        busiest = np.argsort(-load, kind="stable")[:count]
        touching = _mask(busiest, edges.n)[edges.ends].any(axis=1)
        around = _mask(edges.ends[touching].ravel(), edges.n)[edges.ends].any(axis=1)
        return np.asarray(~touching & (edges.trusted | ~around))

    def _candidates(self, edges: EdgeList, removed: Mask, trusted: Mask, trees: PathTrees) -> Mask:
        """Edges with a long way round, if all of them go, that enough paths use."""
        skeleton = edges.with_spanning_edges(trusted & ~removed, ~removed)
        # A step along the sketch is hardly longer than the spacing there: count steps first.
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
        """Those of some edges that, with the others next to them, are on enough paths to matter."""
        rows = np.flatnonzero(found)
        fraction = trees.edge_loads(edges.ends[rows]) / max(1, trees.n_paths)
        label = edge_groups(edges, rows, edges.matrix(~removed & ~found))
        return _mask(
            rows[np.bincount(label, weights=fraction)[label] > self.min_load], len(removed)
        )

    def _with_long_detours(self, edges: EdgeList, removed: Mask, found: Mask) -> Mask:
        """Put back what has a short way round without the others; a few times, as they help along.

        Not for ever: next to an edge that is only just sound others would be, and next to those.
        """
        for _ in range(self.max_passes):
            rows = np.flatnonzero(found)
            rest = edges.matrix(~found & ~removed)
            beyond = edges.not_within_steps(rows, rest, int(self.min_nearby_detour))
            far = beyond[np.isinf(edges.path_lengths(beyond, rest, self.min_nearby_detour))]
            found = _mask(far, len(removed))
            if len(far) in (0, len(rows)):
                break
        return found

    def _confirmed(
        self, edges: EdgeList, removed: Mask, found: Mask, before: PathTrees, sources: IntArray
    ) -> tuple[Mask, PathTrees]:
        """The suspects that are worse than the way round them, and the paths without those.

        A ring that was cut open has a long way round too, and so has a sheet with a poorly sampled
        seam; but what was cut there is no longer and no more crowded than the rest of the ring.
        Groups found sound are put back, those with the longest ways round last: for as long as
        sound edges are missing the way round others may look worse than it is.
        """
        while found.any():
            rest = edges.matrix(~found & ~removed)
            groups = self._groups(edges, np.flatnonzero(found), rest)
            long = [(d, g) for g, d in groups if d >= self.min_detour]
            after = PathTrees.of(rest, sources) if long else before
            rejected = [
                (d, g)
                for d, g in long
                if not self._is_short_circuit(edges, g, d, rest, before, after)
            ]
            if len(long) == len(groups) and not rejected:
                return found, after
            last = max(
                self.long_detour_factor * self.min_detour,
                float(np.median([d for d, _ in rejected] or [0.0])),
            )
            restored = [g for g, d in groups if d < self.min_detour] + [
                g for d, g in rejected if d <= last
            ]
            found = found & ~_mask(np.concatenate(restored), len(removed))
            found = self._with_long_detours(edges, removed, found)
        return found, before

    def _is_short_circuit(
        self,
        edges: EdgeList,
        group: IntArray,
        detour: float,
        rest: sparse.csr_array,
        before: PathTrees,
        after: PathTrees,
    ) -> bool:
        """Whether paths need edges that are longer than the steps round them or more crowded."""
        across = before.using(edges.ends[group])
        grown = after.distances[across] > self.growth * before.distances[across]
        if grown.sum() <= self.min_longer * len(grown):
            return False
        if self._longer_than_detour(edges, group, rest):
            return True
        return detour >= self.long_detour_factor * self.min_detour and self._is_bottleneck(
            edges, group, across, before, after
        )

    def _groups(
        self, edges: EdgeList, rows: IntArray, rest: sparse.csr_array
    ) -> list[tuple[IntArray, float]]:
        """Edges that cross the same gap in the same place, and their usual detour.

        Their ends are joined to each other, and the ways round are equally long, give or take.
        """
        label = edge_groups(edges, rows, rest)
        farthest = 2 * self.long_detour_factor * self.min_detour  # no need to know more
        detour = np.minimum(
            edges.path_lengths(rows, rest, farthest) / edges.spacing[rows], farthest
        )
        around = detour * edges.spacing[rows]
        longest = np.zeros(label.max() + 1)
        np.maximum.at(longest, label, around)
        halvings = np.floor(np.log2(longest[label] / around))
        keys = np.column_stack([label, halvings])
        labels = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        return [(rows[group], float(np.median(detour[group]))) for group in split_by_label(labels)]

    def _longer_than_detour(self, edges: EdgeList, group: IntArray, rest: sparse.csr_array) -> bool:
        """Whether a way round most of some edges has much shorter steps only."""
        steps = rest.copy()
        steps.data[steps.data > np.median(edges.lengths[group]) / self.length_ratio] = 0.0
        steps.eliminate_zeros()
        labels = connected_components(steps, directed=False)[1]
        i, j = edges.ends[group].T
        return bool(np.mean(labels[i] == labels[j]) >= 0.5)

    def _is_bottleneck(
        self, edges: EdgeList, group: IntArray, across: Mask, before: PathTrees, after: PathTrees
    ) -> bool:
        """Whether the paths across go through a narrow place, and spread out on the way round."""
        at_crossing = before.load(across)[np.unique(edges.ends[group])].max()
        around = after.load(across).max()
        return bool(
            at_crossing > self.load_ratio * around or around < self.max_bottleneck * across.sum()
        )


def _mask(rows: IntArray, n: int) -> Mask:
    out = np.zeros(n, dtype=bool)
    out[rows] = True
    return out


def edge_groups(edges: EdgeList, rows: IntArray, rest: sparse.csr_array) -> IntArray:
    """A number for each of some edges, the same where their ends are joined to each other."""
    points, place = np.unique(edges.ends[rows], return_inverse=True)
    i, j = place.reshape(-1, 2).T
    near = rest[points][:, points]
    crossing = sparse.csr_array((np.ones(len(rows)), (i, j)), shape=near.shape)
    labels: IntArray = connected_components(near + crossing, directed=False)[1][i]
    return labels
