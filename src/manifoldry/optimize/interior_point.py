"""Symmetric matrices as vectors, so that inner products stay what they are."""

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigvalsh

from manifoldry.util.typing import Array, IntArray


@lru_cache(maxsize=64)
def triangle(m: int) -> tuple[IntArray, IntArray, Array]:
    """Rows and columns of the upper triangle, and the factor of each entry in the vector."""
    a, b = np.triu_indices(m)
    return a, b, np.where(a == b, 1.0, np.sqrt(2.0))


def svec(P: Array) -> Array:
    """The upper triangle of symmetric `P`, off the diagonal times √2: ⟨P, Q⟩ = svec(P)·svec(Q).

    Examples
    --------
    >>> import numpy as np
    >>> svec(np.array([[1.0, 3.0], [3.0, 2.0]])).round(3)
    array([1.   , 4.243, 2.   ])
    """
    a, b, factor = triangle(P.shape[-1])
    return np.asarray(P[..., a, b] * factor)


def smat(p: Array) -> Array:
    """The symmetric matrix of a vector: the inverse of `svec`."""
    m = order_of(len(p))
    a, b, factor = triangle(m)
    P = np.empty((m, m))
    P[a, b] = P[b, a] = p / factor
    return P


def order_of(length: int) -> int:
    """The m whose triangle has `length` = m(m + 1)/2 entries."""
    return (isqrt(8 * length + 1) - 1) // 2


def squares(Y: Array) -> Array:
    """svec(y·yᵀ) for every row y of `Y` (n, m): (n, m(m + 1)/2)."""
    a, b, factor = triangle(Y.shape[-1])
    U = Y[..., a]
    U *= Y[..., b]
    U *= factor
    return U


def congruence(G: Array) -> Array:
    """The matrix that turns svec(X) into svec(G·X·Gᵀ)."""
    a, b, factor = triangle(len(G))
    left, right = G[a], G[b]
    K = left[:, a] * right[:, b] + left[:, b] * right[:, a]
    return np.asarray(factor[:, None] * K * (factor / 2))


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
        See :class:`~manifoldry.optimize.semidefinite.SemidefiniteQuadratic`.
    reach : float, default=0.98
        Fraction of the way to the nearest singular matrix that a step goes at most.
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
    """The equations of a step in the scaled space, factorized."""

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
