"""The search for edges that cross gaps of a manifold."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry._typing import IntArray
from manifoldry._validation import split_by_label
from manifoldry.neighbors.edge_list import EdgeList
from manifoldry.neighbors.paths import Mask, PathTrees

# Found on seeds 0 to 2 of the sheets in docs/studies/short_circuits.py, which draws others.
_DETOUR = 5.0  # a way round this many times as long means that a gap was crossed,
_MILD = 3.0  # and beside such an edge, this many times
_USED = 0.01  # share of all paths that run through a crossing worth the name
_LONGER = 1.6  # it is so much longer than every step on the way round,
_CROWDED = 1.3  # or so much more crowded,
_BROAD = 0.5  # or no more than this share of its paths meet anywhere on the way round,
_FARTHER = 2.0  # which then must be longer by this factor once more
_PASSES = 3  # times that edges with a short way round are put back
_ROUNDS = 5  # searches, from the second on without trust in the busiest points,
_BUSY, _FEWEST = 0.01, 3  # which are this share of all, and at least so many
_THRESHOLDS = 32  # lengths that the steps on ways round are compared with


def find_crossings(edges: EdgeList, trees: PathTrees, sources: IntArray) -> Mask:
    """Which edges cross gaps; `trees` are the shortest paths along all edges from `sources`.

    In every round the trusted edges, and the few that connect what those do not, are a first
    sketch of the manifold. Of the other edges those are suspects whose ends are far apart along
    it, and remain far apart along all edges but the suspects. From the second round on, the
    points that most paths run through are left out of the sketch: a chain of stray points across
    a gap consists of edges that look like any other, but is on every path across.
    """
    removed = np.zeros(len(edges.ends), dtype=bool)
    left_out = np.zeros(edges.n, dtype=bool)
    for number in range(_ROUNDS):
        suspects = _suspects(edges, removed, left_out, trees)
        found, after = _judged(edges, removed, suspects, trees, sources)
        if number > 0 and not found.any():
            break
        removed, trees = removed | found, after
        busiest = np.argsort(-trees.load(), kind="stable")[: max(_FEWEST, int(_BUSY * edges.n))]
        left_out = np.isin(np.arange(edges.n), busiest)
    return removed


def _suspects(edges: EdgeList, removed: Mask, left_out: Mask, trees: PathTrees) -> Mask:
    """Edges with a long way round, if all of them go, that enough paths use."""
    trusted = edges.trusted & ~removed & ~left_out[edges.ends].any(axis=1)
    sketch = edges.spanning(trusted, ~removed)
    # A step along the sketch is hardly longer than the spacing there: count steps first.
    others: IntArray = np.flatnonzero(~sketch & ~removed)
    rows = edges.beyond_steps(others, edges.matrix(sketch), int(_DETOUR))
    rest = edges.matrix(~removed & ~_mask(rows, removed))
    rows = edges.beyond_steps(rows, rest, int(_MILD))
    found = _used(edges, removed, _mask(rows, removed), trees)
    return _used(edges, removed, _with_long_ways_round(edges, removed, found), trees)


def _mask(rows: IntArray, like: Mask) -> Mask:
    out = np.zeros_like(like)
    out[rows] = True
    return out


def _used(edges: EdgeList, removed: Mask, found: Mask, trees: PathTrees) -> Mask:
    """Those of some edges that, with the others next to them, are on enough paths to matter."""
    rows = np.flatnonzero(found)
    share = trees.edge_load(edges.ends[rows]) / max(1, trees.n_paths)
    joined = joined_edges(edges, rows, edges.matrix(~removed & ~found))
    return _mask(rows[np.bincount(joined, weights=share)[joined] > _USED], removed)


def _with_long_ways_round(edges: EdgeList, removed: Mask, found: Mask) -> Mask:
    """Put back what has a short way round without the others; a few times, as they help along.

    Not for ever: next to an edge that is only just sound others would be, and next to those.
    """
    for _ in range(_PASSES):
        rows = np.flatnonzero(found)
        rest = edges.matrix(~found & ~removed)
        beyond = edges.beyond_steps(rows, rest, int(_MILD))
        far = beyond[np.isinf(edges.around(beyond, rest, _MILD))]
        found = _mask(far, removed)
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
        after = PathTrees.of(rest, sources)
        groups = _groups(edges, np.flatnonzero(found), rest)
        longer = _longer_than_the_way_round(edges, found, rest)
        sound = [
            (detour, group)
            for group, detour in groups
            if not (detour >= _DETOUR and np.mean(longer[group]) >= 0.5)
            and not (detour >= _FARTHER * _DETOUR and _narrower(edges, group, before, after))
        ]
        if not sound:
            return found, after
        last = max(_FARTHER * _DETOUR, float(np.median([detour for detour, _ in sound])))
        back = [group for detour, group in sound if detour <= last]
        found = found & ~_mask(np.concatenate(back), removed)
        found = _with_long_ways_round(edges, removed, found)
    return found, before


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


def _longer_than_the_way_round(edges: EdgeList, found: Mask, rest: sparse.csr_array) -> Mask:
    """Which suspects are longer, by far, than every step of some way round them."""
    out = np.zeros_like(found)
    rows = np.flatnonzero(found)
    order = rows[np.argsort(edges.lengths[rows], kind="stable")]
    for part in np.array_split(order, min(_THRESHOLDS, len(order))):
        steps = rest.copy()
        steps.data[steps.data > edges.lengths[part[0]] / _LONGER] = 0.0
        steps.eliminate_zeros()
        labels = connected_components(steps, directed=False)[1]
        out[part] = labels[edges.ends[part, 0]] == labels[edges.ends[part, 1]]
    return out


def _narrower(edges: EdgeList, group: IntArray, before: PathTrees, after: PathTrees) -> bool:
    """Whether the paths across go through a narrow place, and spread out on the way round."""
    across = before.using(edges.ends[group])
    at_crossing = before.load(across)[np.unique(edges.ends[group])].max()
    around = after.load(across).max()
    return bool(at_crossing > _CROWDED * around or around < _BROAD * across.sum())
