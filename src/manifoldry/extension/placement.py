"""What new points minimize on a frozen map: attraction to neighbours, repulsion from all."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.objectives.new_points import NewPoints
from manifoldry.objectives.place_sums import dot, isotropic, second_moments, squares
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


class Local(NamedTuple):
    """A function and its derivatives at one place for each of several points."""

    value: Array  # (n,)
    gradient: Array  # (n, d)
    hessian: Array  # (n, d, d)
    value_noise: Array  # (n,): what rounding may have changed
    gradient_noise: Array  # (n,)

    def take(self, rows: Any) -> "Local":
        """The same of some of the points."""
        return Local(*(part[rows] for part in self))

    def put(self, rows: Any, other: "Local") -> None:
        """Overwrite some of the points."""
        for part, new in zip(self, other, strict=True):
            part[rows] = new


@dataclass(frozen=True, eq=False)
class RowObjective:
    """e(x) = Σₙ pₙ φ(‖x − xₙ‖²) + R(log Σₙ aₙ ψ(‖x − xₙ‖²)) for each of several new points.

    Parameters
    ----------
    Y : array of shape (n_train, d)
        The frozen map.
    P : sparse array of shape (n_new, n_train)
        Affinities of the new points.
    problem : NewPoints
        φ, ψ and R: what the map's own objective says of a point more.
    charges : array of shape (n_new, n_train), default=None
        The aₙ of every new point; one by default.
    index : NeighborIndex, default=None
        Neighbour search on the map, where there is one already.
    columns : int, default=1024
        Points of the map that sums work on at a time.
    cached : int, default=12288
        Numbers of one array of theirs: small ones stay in the cache, and the system hands out
        memory for large ones anew each time, which took two thirds of the time.
    share : int, default=2**20
        Pairs that are worth a thread.
    rounding : float, default=32 eps
        Error of sums, relative to the sum of the moduli.
    """

    Y: Array
    P: sparse.csr_array
    problem: NewPoints
    charges: Array | None = None
    index: NeighborIndex | None = None
    columns: int = 1024
    cached: int = 12 * 1024
    share: int = 2**20
    rounding: float = 32 * float(np.finfo(float).eps)

    def at(self, Z: Array, rows: IntArray) -> Local:
        """The objective of the new points `rows`, which may repeat, at the places `Z`."""
        parts = row_blocks(len(Z), len(self.Y), self.share)
        lists = map_threads(lambda part: self._part(Z[part], rows[part]), parts)
        blocks = [block for part in lists for block in part]
        return Local(*(np.concatenate(piece) for piece in zip(*blocks, strict=True)))

    @cached_property
    def weight(self) -> Array:
        """Sum of every new point's affinities."""
        return np.asarray(self.P.sum(axis=1)).ravel()

    @cached_property
    def neighbors(self) -> tuple[IntArray, Array]:
        """Columns and values of P's entries, (n_new, most entries of a row), zeros at the end."""
        counts = np.diff(self.P.indptr)
        filled = np.arange(counts.max(initial=1)) < counts[:, None]
        indices, values = np.zeros(filled.shape, dtype=np.intp), np.zeros(filled.shape)
        indices[filled], values[filled] = self.P.indices, self.P.data
        return indices, values

    @cached_property
    def _index(self) -> NeighborIndex:
        return self.index or choose_index(self.Y)

    def _part(self, Z: Array, rows: IntArray) -> list[Local]:
        blocks = row_blocks(len(Z), min(len(self.Y), self.columns), self.cached)
        return [self._at(Z[block], rows[block]) for block in blocks]

    def _at(self, Z: Array, rows: IntArray) -> Local:
        value, force, H, pull = self._attraction(Z, rows)
        charges = None if self.charges is None else self.charges[rows]
        nearest = self._index.nearest(Z, 1)[1][:, 0] ** 2
        problem = self.problem
        log_sum, u, V = problem.pair_sums.at_places(problem.potential, Z, self.Y, nearest, charges)
        R, slope, bend = problem.repulsion(log_sum, self.weight[rows])
        # With L = log S: ∇R = R′∇L and ∇²R = R′∇²L + R″∇L∇Lᵀ, where ∇²L = V − uuᵀ.
        outer = u[:, :, None] * u[:, None, :]
        H = H + slope[:, None, None] * V + (bend - slope)[:, None, None] * outer
        noise = self.rounding * (np.abs(value) + np.abs(R)), self.rounding * pull
        return Local(value + R, force + slope[:, None] * u, H, *noise)

    def _attraction(self, Z: Array, rows: IntArray) -> tuple[Array, Array, Array, Array]:
        """Σ pφ, its derivatives, and the sum of the lengths of all forces."""
        indices, P = self.neighbors[0][rows], self.neighbors[1][rows]
        steps = [z[:, None] - y[indices] for z, y in zip(Z.T, self.Y.T, strict=True)]
        D, kernel = squares(steps), self.problem.kernel
        P1 = P * kernel.slope(D)
        force = 2 * np.stack([dot(P1, step) for step in steps], axis=1)
        H = second_moments(P * (4 * kernel.bend(D)), steps)
        H += isotropic(2 * P1.sum(axis=1), len(steps))
        return dot(P, kernel.phi(D)), force, H, 2 * dot(P1, np.sqrt(D))
