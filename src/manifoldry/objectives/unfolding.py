"""What one round of maximum variance unfolding minimizes."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from manifoldry.objectives.base import Objective, check_map
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.semidefinite.unfolding_problem import UnfoldingProblem


@dataclass(frozen=True, eq=False)
class Unfolding(Objective):
    """−variance/share, and what the edges' springs cost: an augmented Lagrangian.

    With c the change of an edge's squared length as a share of it, a spring costs
    maxᵤ u·c − h(u) − slack·u²/2 − (u − tension)²/(2·stiffness), where h is the support function
    of the band in which c is free. The maximiser u is the spring's tension at the map, and the
    gradient is that of the Laplacian Σ u/scale·‖rᵢ − rⱼ‖².

    Parameters
    ----------
    problem : UnfoldingProblem
        Edges, band, slack and masses.
    tension : array of shape (n_edges,)
        Tensions from which the springs pull; the last round's, positive where an edge is held
        together.
    stiffness : float
        Tension that a change by all of a squared length adds.
    share : float
        Variance that counts as one.
    """

    problem: "UnfoldingProblem"
    tension: Array
    stiffness: float
    share: float

    @property
    def n(self) -> int:
        return self.problem.n

    def value_and_gradient(self, R: Array) -> tuple[float, Array]:
        problem, R = self.problem, check_map(R, self.n)
        steps = problem.steps(R)
        c = problem.edges.changes(steps)
        u = self.pull(c)
        cost = (
            u * c - problem.support(u, problem.aim) - (u - self.tension) ** 2 / (2 * self.stiffness)
        )
        spread = problem.spread(R)
        value = float(cost.sum()) - float(np.einsum("nd,nd->", R, spread)) / self.share
        G = problem.gather((2 * u / problem.edges.scales)[:, None] * steps)
        G -= (2 / self.share) * spread
        return value, G.astype(R.dtype, copy=False)

    def pull(self, changes: Array) -> Array:
        """Tensions of the springs at given changes of squared lengths."""
        low, high = self.problem.aim
        t = self.tension + self.stiffness * changes
        free = np.clip(t, self.stiffness * low, self.stiffness * high)
        return (t - free) / (1 + self.stiffness * self.problem.slack)

    @cached_property
    def attraction(self) -> sparse.csr_array:
        return self.problem.edges.weights(self.stiffness / self.problem.edges.scales)

    def diagonal_curvature(self, Y: Array) -> Array:
        edges, Y = self.problem.edges, check_map(Y, self.n)
        steps = edges.steps(Y)
        u = self.pull(edges.changes(steps))
        yielding = self.stiffness / (1 + self.stiffness * self.problem.slack)
        stretched = 4 * yielding * ((u != 0) / edges.scales**2)[:, None] * steps**2
        per_edge = 2 * (np.maximum(u, 0.0) / edges.scales)[:, None] + stretched
        return np.asarray(abs(edges.incidence).T @ per_edge).astype(Y.dtype, copy=False)
