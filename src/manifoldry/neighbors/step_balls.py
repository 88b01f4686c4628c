"""Points within a few steps of each point of a graph, as sets of bits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.util.cached import cached_property
from manifoldry.util.typing import IntArray
from manifoldry.util.validation import row_blocks

Bits = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class StepBalls:
    """Points within 1, 2, ... steps of each point, itself included, for a few thousand points.

    Each set is a row of n bits, so that the union of the sets of all neighbors, which are the
    points one step farther, takes n/64 operations per edge.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Symmetric; its stored entries are the edges.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> path = sparse.csr_array(sparse.diags_array([np.ones(4), np.ones(4)], offsets=[-1, 1]))
    >>> balls = StepBalls(path)
    >>> balls.connects(np.array([0, 0]), np.array([2, 3]), 2)
    array([ True, False])
    """

    graph: sparse.csr_array

    def connects(self, start: IntArray, end: IntArray, steps: int) -> NDArray[np.bool_]:
        """Whether a path of at most `steps` edges connects each pair of points."""
        out = np.empty(len(start), dtype=bool)
        for block in row_blocks(len(start), self._single.shape[1] * (steps + 1), budget=2**18):
            near = self._ball(start[block], (steps + 1) // 2)
            out[block] = (near & self._ball(end[block], steps // 2)).any(axis=1)
        return out

    @cached_property
    def _single(self) -> Bits:
        """Each point's own bit."""
        n = self.graph.shape[0]
        bits = np.zeros((n, -(-n // 64)), dtype=np.uint64)
        points = np.arange(n)
        bits[points, points // 64] = np.uint64(1) << (points % 64).astype(np.uint64)
        return bits

    @cached_property
    def _levels(self) -> list[Bits]:
        """Sets of points within 0, 1, ... steps of all points; longer ones are appended."""
        return [self._single]

    def _ball(self, points: IntArray, steps: int) -> Bits:
        """Sets of points within `steps` steps of some points, (n_points, n/64)."""
        while len(self._levels) <= steps:
            self._levels.append(self._union_at_neighbors(self._levels[-1]))
        return self._levels[steps][points]

    def _union_at_neighbors(self, sets: Bits) -> Bits:
        """Union of the sets of each point and its neighbors."""
        indptr, indices = self.graph.indptr, self.graph.indices
        out = sets.copy()
        most = int(np.diff(indptr).max(initial=1))
        for block in row_blocks(len(sets), most * sets.shape[1], budget=2**18):
            first, last = indptr[block.start], indptr[block.stop]
            own = block.start + np.flatnonzero(np.diff(indptr[block.start : block.stop + 1]))
            if len(own):  # points without neighbors keep their set
                starts = indptr[own] - first
                union = np.bitwise_or.reduceat(sets[indices[first:last]], starts, axis=0)
                out[own] |= union
        return out
