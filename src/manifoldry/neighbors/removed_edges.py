"""Edges removed from a neighbor graph, which new points must not reconnect."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.neighbors.base import Edges, compress
from manifoldry.neighbors.paths import Mask
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import IntArray


@dataclass(frozen=True, eq=False)
class RemovedEdges:
    """Pairs of training points whose edge was removed.

    If both ends of a removed edge are neighbors of a new point, the farther one is dropped, so
    that the new point does not reconnect them.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        The ends of the removed edges.
    """

    pairs: IntArray

    def union(self, pairs: IntArray) -> "RemovedEdges":
        """The union of these pairs and others."""
        return RemovedEdges(np.unique(np.sort(np.vstack([self.pairs, pairs]), axis=1), axis=0))

    def neighbors_removed_from(self, point: int) -> IntArray:
        """Training points whose edge with `point` was removed."""
        return np.array(sorted(self._partners.get(point, ())), dtype=np.intp)

    def apply(self, own: Edges, reverse: Edges, known: IntArray) -> tuple[Edges, Edges]:
        """Return the edges of new points in both directions, without conflicting ones.

        A new point identical to the training point ``known[row]`` is treated as that point.
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

    def separate(self, near: sparse.csr_array, edges: Edges) -> Mask:
        """Mask of the edges between new points to be dropped.

        An edge is dropped if neighbors of its two ends form a removed pair; `near` (n_new,
        n_train) has nonzeros at the neighbors of each new point.
        """
        n = near.shape[1]
        i, j = self.pairs.T
        removed = sparse.coo_array((np.ones(len(i)), (i, j)), shape=(n, n))
        cut = near @ (removed + removed.T) @ near.T
        found = sparse.coo_array(cut)
        count = near.shape[0]
        return np.isin(edges.rows * count + edges.indices, found.row * count + found.col)

    def conflicts(self, edges: Edges, known: IntArray | None = None) -> Mask:
        """Mask of the edges of new points (each row nearest first) to be dropped.

        An edge is dropped if its neighbor forms a removed pair with a nearer neighbor in the row.
        """
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
