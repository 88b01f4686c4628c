"""An interior-point method for semidefinite quadratic problems; symmetric matrices as vectors."""

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigvalsh

from manifoldry.util.typing import Array, IntArray


@lru_cache(maxsize=64)
def upper_triangle(m: int) -> tuple[IntArray, IntArray, Array]:
    """Row and column indices of the upper triangle, and the factor of each entry in `svec`."""
    a, b = np.triu_indices(m)
    return a, b, np.where(a == b, 1.0, np.sqrt(2.0))


def svec(P: Array) -> Array:
    """The upper triangle of symmetric `P`, times √2 off the diagonal: ⟨P, Q⟩ = svec(P)·svec(Q).

    Examples
    --------
    >>> import numpy as np
    >>> svec(np.array([[1.0, 3.0], [3.0, 2.0]])).round(3)
    array([1.   , 4.243, 2.   ])
    """
    a, b, factor = upper_triangle(P.shape[-1])
    return np.asarray(P[..., a, b] * factor)


def smat(p: Array) -> Array:
    """The symmetric matrix P with svec(P) = p: the inverse of `svec`."""
    m = order_of(len(p))
    a, b, factor = upper_triangle(m)
    P = np.empty((m, m))
    P[a, b] = P[b, a] = p / factor
    return P


def order_of(length: int) -> int:
    """The order m of a matrix whose upper triangle has `length` = m(m + 1)/2 entries."""
    return (isqrt(8 * length + 1) - 1) // 2


def svec_outer(Y: Array) -> Array:
    """svec(y·yᵀ) for every row y of `Y` (n, m): (n, m(m + 1)/2)."""
    a, b, factor = upper_triangle(Y.shape[-1])
    U = Y[..., a]
    U *= Y[..., b]
    U *= factor
    return U


def congruence(G: Array) -> Array:
    """The matrix K with K·svec(X) = svec(G·X·Gᵀ)."""
    a, b, factor = upper_triangle(len(G))
    left, right = G[a], G[b]
    K = left[:, a] * right[:, b] + left[:, b] * right[:, a]
    return np.asarray(factor[:, None] * K * (factor / 2))


@dataclass(frozen=True, eq=False)
class PrimalDualPoint:
    """Primal P and dual S, both positive definite, and the multiplier of the trace constraint."""

    P: Array
    S: Array
    trace_multiplier: float

    @property
    def gap(self) -> float:
        """The duality gap ⟨P, S⟩, which is zero at the optimum."""
        return float((self.P * self.S).sum())


@dataclass(frozen=True, eq=False)
class InteriorPoint:
    """Primal-dual interior-point method: Newton steps along the central path P·S = μI, μ → 0.

    Nesterov and Todd's scaling transforms P and S to the same diagonal matrix D; the matrix of a
    Newton step is then I + KᵀHK, which is positive definite however ill-conditioned H is.
    Mehrotra's predictor determines the decrease of μ. About fifteen steps suffice for any problem;
    if the optimum is not unique, the path converges to the center of the optimal set.

    Parameters
    ----------
    H, c, trace_one
        See :class:`~manifoldry.optimize.semidefinite_quadratic.SemidefiniteQuadratic`.
    boundary_fraction : float, default=0.98
        Largest step length as a fraction of the distance to the boundary of the cone.
    """

    H: Array
    c: Array
    trace_one: bool
    boundary_fraction: float = 0.98

    def start(self) -> PrimalDualPoint:
        """The identity, divided by its trace if that must be one, and a positive definite S."""
        m = order_of(len(self.c))
        P = np.eye(m) / (m if self.trace_one else 1)
        gradient = self._gradient(P)
        lowest = float(eigvalsh(gradient)[0])
        unit = np.abs(gradient).max() or 1.0
        shift = unit - lowest if self.trace_one else max(unit - lowest, 0.0)
        return PrimalDualPoint(P, gradient + shift * np.eye(m), -shift if self.trace_one else 0.0)

    def step(self, point: PrimalDualPoint) -> PrimalDualPoint | None:
        """The next iterate; None if rounding errors prevent a step."""
        try:
            G, D = _scaling(point)
            newton = _NewtonSystem.build(self, point, G)
            x, s, _ = newton.solve(np.diag(-D))
            affine_length = min(_max_length(D, x), _max_length(D, s))
            affine_gap = float(
                ((np.diag(D) + affine_length * x) * (np.diag(D) + affine_length * s)).sum()
            )
            sigma = min(1.0, max(affine_gap / point.gap, 0.0)) ** 3
            target = (
                sigma * point.gap / len(D) * np.eye(len(D)) - np.diag(D**2) - (x @ s + s @ x) / 2
            )
            x, s, trace_multiplier = newton.solve(2 * target / np.add.outer(D, D))
        except (LinAlgError, FloatingPointError):
            return None
        length = min(
            1.0,
            self.boundary_fraction * _max_length(D, x),
            self.boundary_fraction * _max_length(D, s),
        )
        return self._updated(point, length, G @ x @ G.T, trace_multiplier)

    def _updated(
        self, point: PrimalDualPoint, length: float, change: Array, trace_multiplier: float
    ) -> PrimalDualPoint | None:
        # S is updated by its own equation to keep rounding errors of the gradient out of it.
        dual = (
            smat(self.H @ svec(change))
            - trace_multiplier * np.eye(len(change))
            + self.residual(point)
        )
        P = point.P + length * (change + change.T) / 2
        found = PrimalDualPoint(
            P, point.S + length * dual, point.trace_multiplier + length * trace_multiplier
        )
        return found if np.isfinite(found.P).all() and np.isfinite(found.S).all() else None

    def residual(self, point: PrimalDualPoint) -> Array:
        """The dual residual: the gradient of the objective minus trace_multiplier·I minus S."""
        return self._gradient(point.P) - point.trace_multiplier * np.eye(len(point.P)) - point.S

    def _gradient(self, P: Array) -> Array:
        return smat(self.H @ svec(P) - self.c)


@dataclass(frozen=True, eq=False)
class _NewtonSystem:
    """The factorized linear system of a Newton step in the scaled space."""

    factor: tuple[Array, bool]
    dual_residual: Array  # scaled, as a vector
    trace: Array | None  # svec(GᵀG), whose product with a scaled matrix is its trace
    trace_residual: float

    @classmethod
    def build(cls, problem: InteriorPoint, point: PrimalDualPoint, G: Array) -> "_NewtonSystem":
        K = congruence(G)
        M = K.T @ problem.H @ K
        M[np.diag_indices_from(M)] += 1.0
        trace = svec(G.T @ G) if problem.trace_one else None
        dual_residual = svec(G.T @ problem.residual(point) @ G)
        return cls(cho_factor(M), dual_residual, trace, 1.0 - float(np.trace(point.P)))

    def solve(self, target: Array) -> tuple[Array, Array, float]:
        """Scaled changes x, s with x + s = `target`, and the change of the trace multiplier."""
        x, trace_multiplier = cho_solve(self.factor, svec(target) - self.dual_residual), 0.0
        if self.trace is not None:
            along = cho_solve(self.factor, self.trace)
            trace_multiplier = float((self.trace_residual - self.trace @ x) / (self.trace @ along))
            x = x + trace_multiplier * along
        return smat(x), target - smat(x), trace_multiplier


def _scaling(point: PrimalDualPoint) -> tuple[Array, Array]:
    """Nesterov and Todd's scaling: G and diagonal D with GᵀSG = G⁻¹PG⁻ᵀ = D."""
    L, R = cholesky(point.P, lower=True), cholesky(point.S, lower=True)
    _, D, Vt = np.linalg.svd(R.T @ L)
    return L @ Vt.T / np.sqrt(D), D


def _max_length(D: Array, change: Array) -> float:
    """Largest t with D + t·change positive semidefinite, at most 1e12."""
    lowest = float(eigvalsh(change / np.sqrt(np.outer(D, D)))[0])
    return 1 / max(-lowest, 1e-12)
