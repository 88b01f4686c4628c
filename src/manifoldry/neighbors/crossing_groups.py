"""Tests of groups of edges that cross a gap at the same place, as short circuits or not."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.neighbors.edge_list import EdgeList
from manifoldry.neighbors.paths import Mask, PathTrees
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import IntArray
from manifoldry.util.validation import split_by_label


@dataclass(frozen=True, eq=False)
class WithoutCandidates:
    """The graph without the candidates, and shortest paths with and without them."""

    edges: EdgeList
    kept: Mask
    before: PathTrees
    sources: IntArray

    @cached_property
    def rest(self) -> sparse.csr_array:
        return self.edges.matrix(self.kept)

    @cached_property
    def after(self) -> PathTrees:
        return PathTrees.of(self.rest, self.sources)


@dataclass(frozen=True)
class GroupCriteria:
    """Thresholds that distinguish short circuits from other groups of edges.

    Parameters
    ----------
    growth : float
        A path counts as changed if it becomes longer by more than this factor.
    min_detour : float
        Smallest detour of a group of short-circuit edges.
    min_longer : float
        Smallest fraction of the paths through a group that change without it.
    length_ratio : float
        A group is a short circuit if its edges are longer by this factor than all edges of the
        detour. Otherwise one of the two conditions on the load must hold.
    load_ratio : float
        The load at the group exceeds the largest load on the detour by this factor.
    max_detour_load : float
        At most this fraction of the paths through the group share a point of the detour.
    long_detour_factor : float
        With the conditions on the load, the detour must be this many times `min_detour`.
    max_suspicious : float
        Largest fraction of a sample with suspicious detours if the group is not examined. The
        value is a margin: digits, word vectors and Gaussian clouds had none in any sample. Rolls
        have between none and all, but are examined in any case since their edges are long.
    """

    growth: float = 1.1
    min_detour: float = 5.0
    min_longer: float = 0.6
    length_ratio: float = 1.6
    load_ratio: float = 1.3
    max_detour_load: float = 0.5
    long_detour_factor: float = 2.0
    max_suspicious: float = 0.25

    def to_restore(self, state: WithoutCandidates, rows: IntArray, label: IntArray) -> Mask:
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

    def has_few_suspicious(self, state: WithoutCandidates, rows: IntArray) -> bool:
        """Whether a sample of a large group has so few suspicious edges that the group is left.

        Edges longer than those of the detour may be short circuits, however few they are. In data
        of many dimensions there are hardly any, since all edges have similar lengths.
        """
        if self._longer_than_detour(state, rows):
            return False
        one_group, suspicious = np.zeros(len(rows), dtype=int), 0
        for group, detour in self._groups(state, rows, one_group):
            longer = self._longer_than_detour(state, rows[group])
            suspicious += len(group) * self._is_suspicious(detour, longer)
        return suspicious <= self.max_suspicious * len(rows)

    def _is_suspicious(self, detour: float, longer: bool) -> bool:
        return detour >= self.min_detour * (1.0 if longer else self.long_detour_factor)

    def _is_short_circuit(self, state: WithoutCandidates, group: IntArray, detour: float) -> bool:
        """Whether paths need the group and its edges are longer or carry more load than the detour.

        The shortest paths without the candidates take longest to compute, so they come last.
        """
        longer = self._longer_than_detour(state, group)
        if not self._is_suspicious(detour, longer):
            return False
        across = state.before.using(state.edges.ends[group])
        grown = state.after.distances[across] > self.growth * state.before.distances[across]
        if grown.sum() <= self.min_longer * len(grown):
            return False
        return longer or self._is_bottleneck(state, group, across)

    def _groups(
        self, state: WithoutCandidates, rows: IntArray, label: IntArray
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

    def _longer_than_detour(self, state: WithoutCandidates, group: IntArray) -> bool:
        """Whether for most edges of the group there is a detour of much shorter edges."""
        edges = state.edges
        much_shorter = edges.lengths <= np.median(edges.lengths[group]) / self.length_ratio
        i, j = edges.parts(state.kept & much_shorter)[edges.ends[group]].T
        return bool(np.mean(i == j) >= 0.5)

    def _is_bottleneck(self, state: WithoutCandidates, group: IntArray, across: Mask) -> bool:
        """Whether the load at the group is high and the paths spread out on the detour."""
        at_crossing = state.before.load(across)[np.unique(state.edges.ends[group])].max()
        on_detour = state.after.load(across).max()
        return bool(
            at_crossing > self.load_ratio * on_detour
            or on_detour < self.max_detour_load * across.sum()
        )
