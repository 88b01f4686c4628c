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
    detour : float
        A way round this many times as long means that a gap was crossed.
    mild_detour : float
        The same beside an edge that crosses one.
    used : float
        Fraction of all paths that a crossing worth the name is on.
    needed : float
        Fraction of those paths that are much longer without it.
    longer : float
        A crossing is so many times longer than every step on the way round,
    crowded : float
        or so many times more crowded,
    broad : float
        or no more than this fraction of its paths meet anywhere on the way round,
    farther : float
        which then must be longer by this factor once more.
    passes : int
        Times that edges with a short way round are put back.
    rounds : int
        Searches, from the second on without trust in the busiest points.
    busiest, fewest_busy : float, int
        Those are this fraction of all points, and at least so many.
    """

    growth: float = 1.1
    detour: float = 5.0
    mild_detour: float = 3.0
    used: float = 0.03
    needed: float = 0.6
    longer: float = 1.6
    crowded: float = 1.3
    broad: float = 0.5
    farther: float = 2.0
    passes: int = 3
    rounds: int = 5
    busiest: float = 0.01
    fewest_busy: int = 3

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
        for number in range(self.rounds):
            suspects = self._suspects(edges, removed, trusted, trees)
            found, trees = self._judged(edges, removed, suspects, trees, sources)
            if number > 0 and not found.any():
                break
            removed = removed | found
            trusted = self._away_from_the_crowd(edges, trees.load())
        return removed

    def _away_from_the_crowd(self, edges: EdgeList, load: Array) -> Mask:
        """All edges but those at the busiest points and, around them, those not trusted before."""
        count = max(self.fewest_busy, int(self.busiest * edges.n))
        busiest = np.argsort(-load, kind="stable")[:count]
        at_one = _mask(busiest, edges.n)[edges.ends].any(axis=1)
        around = _mask(edges.ends[at_one].ravel(), edges.n)[edges.ends].any(axis=1)
        return np.asarray(~at_one & (edges.trusted | ~around))

    def _suspects(self, edges: EdgeList, removed: Mask, trusted: Mask, trees: PathTrees) -> Mask:
        """Edges with a long way round, if all of them go, that enough paths use."""
        sketch = edges.spanning(trusted & ~removed, ~removed)
        # A step along the sketch is hardly longer than the spacing there: count steps first.
        others: IntArray = np.flatnonzero(~sketch & ~removed)
        rows = edges.beyond_steps(others, edges.matrix(sketch), int(self.detour))
        rest = edges.matrix(~removed & ~_mask(rows, len(removed)))
        rows = edges.beyond_steps(rows, rest, int(self.mild_detour))
        found = self._used(edges, removed, _mask(rows, len(removed)), trees)
        return self._used(edges, removed, self._with_long_ways_round(edges, removed, found), trees)

    def _used(self, edges: EdgeList, removed: Mask, found: Mask, trees: PathTrees) -> Mask:
        """Those of some edges that, with the others next to them, are on enough paths to matter."""
        rows = np.flatnonzero(found)
        fraction = trees.edge_load(edges.ends[rows]) / max(1, trees.n_paths)
        joined = joined_edges(edges, rows, edges.matrix(~removed & ~found))
        return _mask(rows[np.bincount(joined, weights=fraction)[joined] > self.used], len(removed))

    def _with_long_ways_round(self, edges: EdgeList, removed: Mask, found: Mask) -> Mask:
        """Put back what has a short way round without the others; a few times, as they help along.

        Not for ever: next to an edge that is only just sound others would be, and next to those.
        """
        for _ in range(self.passes):
            rows = np.flatnonzero(found)
            rest = edges.matrix(~found & ~removed)
            beyond = edges.beyond_steps(rows, rest, int(self.mild_detour))
            far = beyond[np.isinf(edges.around(beyond, rest, self.mild_detour))]
            found = _mask(far, len(removed))
            if len(far) in (0, len(rows)):
                break
        return found

    def _judged(
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
            long = [(d, g) for g, d in groups if d >= self.detour]
            after = PathTrees.of(rest, sources) if long else before
            sound = [
                (d, g) for d, g in long if not self._is_worse(edges, g, d, rest, before, after)
            ]
            if len(long) == len(groups) and not sound:
                return found, after
            last = max(self.farther * self.detour, float(np.median([d for d, _ in sound] or [0.0])))
            back = [g for g, d in groups if d < self.detour] + [g for d, g in sound if d <= last]
            found = found & ~_mask(np.concatenate(back), len(removed))
            found = self._with_long_ways_round(edges, removed, found)
        return found, before

    def _is_worse(
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
        if grown.sum() <= self.needed * len(grown):
            return False
        if self._longer(edges, group, rest):
            return True
        return detour >= self.farther * self.detour and self._narrower(
            edges, group, across, before, after
        )

    def _groups(
        self, edges: EdgeList, rows: IntArray, rest: sparse.csr_array
    ) -> list[tuple[IntArray, float]]:
        """Edges that cross the same gap in the same place, and their usual detour.

        Their ends are joined to each other, and the ways round are equally long, give or take.
        """
        joined = joined_edges(edges, rows, rest)
        farthest = 2 * self.farther * self.detour  # no need to know more
        detour = np.minimum(edges.around(rows, rest, farthest) / edges.spacing[rows], farthest)
        around = detour * edges.spacing[rows]
        longest = np.zeros(joined.max() + 1)
        np.maximum.at(longest, joined, around)
        halvings = np.floor(np.log2(longest[joined] / around))
        keys = np.column_stack([joined, halvings])
        labels = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        return [(rows[group], float(np.median(detour[group]))) for group in split_by_label(labels)]

    def _longer(self, edges: EdgeList, group: IntArray, rest: sparse.csr_array) -> bool:
        """Whether a way round most of some edges has much shorter steps only."""
        steps = rest.copy()
        steps.data[steps.data > np.median(edges.lengths[group]) / self.longer] = 0.0
        steps.eliminate_zeros()
        labels = connected_components(steps, directed=False)[1]
        i, j = edges.ends[group].T
        return bool(np.mean(labels[i] == labels[j]) >= 0.5)

    def _narrower(
        self, edges: EdgeList, group: IntArray, across: Mask, before: PathTrees, after: PathTrees
    ) -> bool:
        """Whether the paths across go through a narrow place, and spread out on the way round."""
        at_crossing = before.load(across)[np.unique(edges.ends[group])].max()
        around = after.load(across).max()
        return bool(at_crossing > self.crowded * around or around < self.broad * across.sum())


def _mask(rows: IntArray, n: int) -> Mask:
    out = np.zeros(n, dtype=bool)
    out[rows] = True
    return out


def joined_edges(edges: EdgeList, rows: IntArray, rest: sparse.csr_array) -> IntArray:
    """A number for each of some edges, the same where their ends are joined to each other."""
    points, place = np.unique(edges.ends[rows], return_inverse=True)
    i, j = place.reshape(-1, 2).T
    near = rest[points][:, points]
    crossing = sparse.csr_array((np.ones(len(rows)), (i, j)), shape=near.shape)
    labels: IntArray = connected_components(near + crossing, directed=False)[1][i]
    return labels
