"""An interior-point search for quadratic problems over semidefinite matrices."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigvalsh

from manifoldry.optimize.conic.symmetric import congruence, order_of, smat, svec
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Iterate:
    """A positive definite P, its multiplier S, and the multiplier of the trace."""

    P: Array
    S: Array
    of_trace: float

    @property
    def gap(self) -> float:
        """⟨P, S⟩, which is zero at the optimum."""
        return float((self.P * self.S).sum())


@dataclass(frozen=True, eq=False)
class InteriorPoint:
    """Newton steps along the path P·S = μI, μ falling to zero.

    Nesterov and Todd's scaling turns P and S into the same diagonal matrix D; the equations of a
    step are then those of a positive definite matrix I + KᵀHK, however ill-conditioned H is.
    Mehrotra's predictor says how far μ may fall. Fifteen steps or so do for any problem; where
    the optimum is not unique the path leads to the middle of all of them.

    Parameters
    ----------
    H, c, trace_one
        See :class:`~manifoldry.optimize.conic.quadratic.SemidefiniteQuadratic`.
    reach : float, default=0.98
        Share of the way to the nearest singular matrix that a step goes at most.
    """

    H: Array
    c: Array
    trace_one: bool
    reach: float = 0.98

    def start(self) -> Iterate:
        """The identity, or that over its trace, and a multiplier that is definite."""
        m = order_of(len(self.c))
        P = np.eye(m) / (m if self.trace_one else 1)
        gradient = self._gradient(P)
        lowest = float(eigvalsh(gradient)[0])
        unit = np.abs(gradient).max() or 1.0
        shift = unit - lowest if self.trace_one else max(unit - lowest, 0.0)
        return Iterate(P, gradient + shift * np.eye(m), -shift if self.trace_one else 0.0)

    def step(self, at: Iterate) -> Iterate | None:
        """The next iterate; None where rounding is all that is left to improve."""
        try:
            G, D = _scaling(at)
            newton = _Newton.of(self, at, G)
            x, s, _ = newton.solve(np.diag(-D))
            far = min(_room(D, x), _room(D, s))
            reached = float(((np.diag(D) + far * x) * (np.diag(D) + far * s)).sum())
            sigma = min(1.0, max(reached / at.gap, 0.0)) ** 3
            goal = sigma * at.gap / len(D) * np.eye(len(D)) - np.diag(D**2) - (x @ s + s @ x) / 2
            x, s, of_trace = newton.solve(2 * goal / np.add.outer(D, D))
        except (LinAlgError, FloatingPointError):
            return None
        length = min(1.0, self.reach * _room(D, x), self.reach * _room(D, s))
        return self._moved(at, length, G @ x @ G.T, of_trace)

    def _moved(self, at: Iterate, length: float, change: Array, of_trace: float) -> Iterate | None:
        # S from its own equation keeps the gradient's rounding out of the multipliers.
        dual = smat(self.H @ svec(change)) - of_trace * np.eye(len(change)) + self.residual(at)
        P = at.P + length * (change + change.T) / 2
        found = Iterate(P, at.S + length * dual, at.of_trace + length * of_trace)
        return found if np.isfinite(found.P).all() and np.isfinite(found.S).all() else None

    def residual(self, at: Iterate) -> Array:
        """How far S is from the gradient of the objective less the trace's multiplier."""
        return self._gradient(at.P) - at.of_trace * np.eye(len(at.P)) - at.S

    def _gradient(self, P: Array) -> Array:
        return smat(self.H @ svec(P) - self.c)


@dataclass(frozen=True, eq=False)
class _Newton:
    """The equations of a step in the scaled space, factorised."""

    factor: tuple[Array, bool]
    offset: Array  # what the multiplier still has to make up for
    trace: Array | None  # svec(GᵀG): the trace of a scaled matrix
    missing: float

    @classmethod
    def of(cls, problem: InteriorPoint, at: Iterate, G: Array) -> "_Newton":
        K = congruence(G)
        M = K.T @ problem.H @ K
        M[np.diag_indices_from(M)] += 1.0
        trace = svec(G.T @ G) if problem.trace_one else None
        offset = svec(G.T @ problem.residual(at) @ G)
        return cls(cho_factor(M), offset, trace, 1.0 - float(np.trace(at.P)))

    def solve(self, goal: Array) -> tuple[Array, Array, float]:
        """Scaled changes x, s with x + s = `goal`, and the change of the trace's multiplier."""
        x, of_trace = cho_solve(self.factor, svec(goal) - self.offset), 0.0
        if self.trace is not None:
            along = cho_solve(self.factor, self.trace)
            of_trace = float((self.missing - self.trace @ x) / (self.trace @ along))
            x = x + of_trace * along
        return smat(x), goal - smat(x), of_trace


def _scaling(at: Iterate) -> tuple[Array, Array]:
    """G and the diagonal D with GᵀSG = G⁻¹PG⁻ᵀ = D."""
    L, R = cholesky(at.P, lower=True), cholesky(at.S, lower=True)
    _, D, Vt = np.linalg.svd(R.T @ L)
    return L @ Vt.T / np.sqrt(D), D


def _room(D: Array, change: Array) -> float:
    """How many times `change` fits until D + change is singular, at most 1 / 1e-12."""
    lowest = float(eigvalsh(change / np.sqrt(np.outer(D, D)))[0])
    return 1 / max(-lowest, 1e-12)
