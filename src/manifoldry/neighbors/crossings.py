"""The search for edges that cross gaps of a manifold."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.neighbors.edge_list import EdgeList
from manifoldry.neighbors.paths import Mask, PathTrees
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import split_by_label

GROWTH = 1.1  # a distance that grows by more than a tenth is another one
# Found on seeds below 30 of such data as docs/studies/short_circuits.py has, which draws others.
_DETOUR = 5.0  # a way round this many times as long means that a gap was crossed,
_MILD = 3.0  # and beside such an edge, this many times
_USED = 0.03  # share of all paths that a crossing worth the name is on,
_NEEDED = 0.6  # most of which are much longer without it;
_LONGER = 1.6  # it is so much longer than every step on the way round,
_CROWDED = 1.3  # or so much more crowded,
_BROAD = 0.5  # or no more than this share of its paths meet anywhere on the way round,
_FARTHER = 2.0  # which then must be longer by this factor once more
_PASSES = 3  # times that edges with a short way round are put back
_ROUNDS = 5  # searches, from the second on without trust in the busiest points,
_BUSY, _FEWEST = 0.01, 3  # which are this share of all, and at least so many


def find_crossings(edges: EdgeList, trees: PathTrees, sources: IntArray) -> Mask:
    """Which edges cross gaps; `trees` are the shortest paths along all edges from `sources`.

    In every round the trusted edges, and the few that connect what those do not, are a first
    sketch of the manifold. Of the other edges those are suspects whose ends are far apart along
    it, and remain far apart along all edges but the suspects. From the second round on, the
    points that most paths run through are left out of the sketch: a chain of stray points across
    a gap consists of edges that look like any other, but is on every path across.
    """
    removed = np.zeros(len(edges.ends), dtype=bool)
    trusted = edges.trusted
    for number in range(_ROUNDS):
        suspects = _suspects(edges, removed, trusted, trees)
        found, trees = _judged(edges, removed, suspects, trees, sources)
        if number > 0 and not found.any():
            break
        removed = removed | found
        trusted = _away_from_the_crowd(edges, trees.load())
    return removed


def _away_from_the_crowd(edges: EdgeList, load: Array) -> Mask:
    """All edges but those at the busiest points and, around them, those not trusted before."""
    count = max(_FEWEST, int(_BUSY * edges.n))
    busiest = np.argsort(-load, kind="stable")[:count]
    at_one = _mask(busiest, edges.n)[edges.ends].any(axis=1)
    around = _mask(edges.ends[at_one].ravel(), edges.n)[edges.ends].any(axis=1)
    return np.asarray(~at_one & (edges.trusted | ~around))


def _suspects(edges: EdgeList, removed: Mask, trusted: Mask, trees: PathTrees) -> Mask:
    """Edges with a long way round, if all of them go, that enough paths use."""
    sketch = edges.spanning(trusted & ~removed, ~removed)
    # A step along the sketch is hardly longer than the spacing there: count steps first.
    others: IntArray = np.flatnonzero(~sketch & ~removed)
    rows = edges.beyond_steps(others, edges.matrix(sketch), int(_DETOUR))
    rest = edges.matrix(~removed & ~_mask(rows, len(removed)))
    rows = edges.beyond_steps(rows, rest, int(_MILD))
    found = _used(edges, removed, _mask(rows, len(removed)), trees)
    return _used(edges, removed, _with_long_ways_round(edges, removed, found), trees)


def _mask(rows: IntArray, n: int) -> Mask:
    out = np.zeros(n, dtype=bool)
    out[rows] = True
    return out


def _used(edges: EdgeList, removed: Mask, found: Mask, trees: PathTrees) -> Mask:
    """Those of some edges that, with the others next to them, are on enough paths to matter."""
    rows = np.flatnonzero(found)
    share = trees.edge_load(edges.ends[rows]) / max(1, trees.n_paths)
    joined = joined_edges(edges, rows, edges.matrix(~removed & ~found))
    return _mask(rows[np.bincount(joined, weights=share)[joined] > _USED], len(removed))


def _with_long_ways_round(edges: EdgeList, removed: Mask, found: Mask) -> Mask:
    """Put back what has a short way round without the others; a few times, as they help along.

    Not for ever: next to an edge that is only just sound others would be, and next to those.
    """
    for _ in range(_PASSES):
        rows = np.flatnonzero(found)
        rest = edges.matrix(~found & ~removed)
        beyond = edges.beyond_steps(rows, rest, int(_MILD))
        far = beyond[np.isinf(edges.around(beyond, rest, _MILD))]
        found = _mask(far, len(removed))
        if len(far) in (0, len(rows)):
            break
    return found


def _judged(
    edges: EdgeList, removed: Mask, found: Mask, before: PathTrees, sources: IntArray
) -> tuple[Mask, PathTrees]:
    """The suspects that are worse than the way round them, and the paths without those.

    A ring that was cut open has a long way round too, and so has a sheet with a poorly sampled
    seam; but what was cut there is no longer and no more crowded than the rest of the ring.
    Groups found sound are put back, those with the longest ways round last: for as long as sound
    edges are missing the way round others may look worse than it is.
    """
    while found.any():
        rest = edges.matrix(~found & ~removed)
        groups = _groups(edges, np.flatnonzero(found), rest)
        long = [(d, g) for g, d in groups if d >= _DETOUR]
        after = PathTrees.of(rest, sources) if long else before
        sound = [(d, g) for d, g in long if not _is_worse(edges, g, d, rest, before, after)]
        if len(long) == len(groups) and not sound:
            return found, after
        last = max(_FARTHER * _DETOUR, float(np.median([d for d, _ in sound] or [0.0])))
        back = [g for g, d in groups if d < _DETOUR] + [g for d, g in sound if d <= last]
        found = found & ~_mask(np.concatenate(back), len(removed))
        found = _with_long_ways_round(edges, removed, found)
    return found, before


def _is_worse(
    edges: EdgeList,
    group: IntArray,
    detour: float,
    rest: sparse.csr_array,
    before: PathTrees,
    after: PathTrees,
) -> bool:
    """Whether paths need some edges that are longer than the steps round them or more crowded."""
    across = before.using(edges.ends[group])
    grown = after.distances[across] > GROWTH * before.distances[across]
    if grown.sum() <= _NEEDED * len(grown):
        return False
    if _longer(edges, group, rest):
        return True
    return detour >= _FARTHER * _DETOUR and _narrower(edges, group, across, before, after)


def _groups(
    edges: EdgeList, rows: IntArray, rest: sparse.csr_array
) -> list[tuple[IntArray, float]]:
    """Edges that cross the same gap in the same place, and their usual detour.

    Their ends are joined to each other, and the ways round are equally long, give or take.
    """
    joined = joined_edges(edges, rows, rest)
    farthest = 2 * _FARTHER * _DETOUR  # no need to know more
    detour = np.minimum(edges.around(rows, rest, farthest) / edges.spacing[rows], farthest)
    around = detour * edges.spacing[rows]
    longest = np.zeros(joined.max() + 1)
    np.maximum.at(longest, joined, around)
    halvings = np.floor(np.log2(longest[joined] / around))
    keys = np.column_stack([joined, halvings])
    labels = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    return [(rows[group], float(np.median(detour[group]))) for group in split_by_label(labels)]


def joined_edges(edges: EdgeList, rows: IntArray, rest: sparse.csr_array) -> IntArray:
    """A number for each of some edges, the same where their ends are joined to each other."""
    points, place = np.unique(edges.ends[rows], return_inverse=True)
    i, j = place.reshape(-1, 2).T
    near = rest[points][:, points]
    crossing = sparse.csr_array((np.ones(len(rows)), (i, j)), shape=near.shape)
    labels: IntArray = connected_components(near + crossing, directed=False)[1][i]
    return labels


def _longer(edges: EdgeList, group: IntArray, rest: sparse.csr_array) -> bool:
    """Whether a way round most of some edges has much shorter steps only."""
    steps = rest.copy()
    steps.data[steps.data > np.median(edges.lengths[group]) / _LONGER] = 0.0
    steps.eliminate_zeros()
    labels = connected_components(steps, directed=False)[1]
    i, j = edges.ends[group].T
    return bool(np.mean(labels[i] == labels[j]) >= 0.5)


def _narrower(
    edges: EdgeList, group: IntArray, across: Mask, before: PathTrees, after: PathTrees
) -> bool:
    """Whether the paths across go through a narrow place, and spread out on the way round."""
    at_crossing = before.load(across)[np.unique(edges.ends[group])].max()
    around = after.load(across).max()
    return bool(at_crossing > _CROWDED * around or around < _BROAD * across.sum())
