"""Edges that were taken out of a neighbor graph, and that new points may not bridge."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manifoldry.neighbors.base import Edges, compress
from manifoldry.neighbors.paths import Mask
from manifoldry.util.typing import IntArray


@dataclass(frozen=True, eq=False)
class RemovedEdges:
    """Pairs of training points that no new point may join again.

    A new point that has both ends of a removed edge among its neighbors lies between two layers:
    neighbors that were parted from a nearer one are dropped.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        The ends of the edges that were removed.
    """

    pairs: IntArray

    def union(self, pairs: IntArray) -> "RemovedEdges":
        """These pairs and some more."""
        return RemovedEdges(np.unique(np.sort(np.vstack([self.pairs, pairs]), axis=1), axis=0))

    def neighbors_removed_from(self, point: int) -> IntArray:
        """Training points that an edge from `point` was removed to."""
        return np.array(sorted(self._partners.get(point, ())), dtype=np.intp)

    def apply(self, own: Edges, reverse: Edges, known: IntArray) -> tuple[Edges, Edges]:
        """Neighbors of new points, in both directions, without those across a cut.

        A new point that stands for the training point ``known[row]`` has that point's edges.
        """
        rows, indices = (
            np.concatenate([own.rows, reverse.rows]),
            np.r_[own.indices, reverse.indices],
        )
        both = compress(rows, indices, np.r_[own.distances, reverse.distances], len(known))
        conflicts = self.conflicts(both, known)
        n = max(1, int(indices.max(initial=0)) + 1)
        dropped = both.rows[conflicts] * n + both.indices[conflicts]
        kept = (~np.isin(edges.rows * n + edges.indices, dropped) for edges in (own, reverse))
        return own.keep(next(kept)), reverse.keep(next(kept))

    def conflicts(self, edges: Edges, known: IntArray | None = None) -> Mask:
        """Which edges of new points, each row nearest first, join a pair that was parted."""
        conflicts = np.zeros(len(edges.indices), dtype=bool)
        touched = np.isin(edges.indices, self.pairs)
        for row in np.unique(edges.rows[touched]):
            part = slice(edges.indptr[row], edges.indptr[row + 1])
            itself = -1 if known is None else int(known[row])
            conflicts[part] = self._row_conflicts(edges.indices[part].tolist(), itself)
        return conflicts

    def _row_conflicts(self, nearest_first: list[int], itself: int) -> list[bool]:
        if itself >= 0:
            return [j in self._partners.get(itself, ()) for j in nearest_first]
        kept: set[int] = set()
        out = []
        for j in nearest_first:
            out.append(not kept.isdisjoint(self._partners.get(j, ())))
            if not out[-1]:
                kept.add(j)
        return out

    @cached_property
    def _partners(self) -> dict[int, set[int]]:
        partners: dict[int, set[int]] = defaultdict(set)
        for i, j in self.pairs.tolist():
            partners[i].add(j)
            partners[j].add(i)
        return dict(partners)
