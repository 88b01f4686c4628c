"""Newton's method on matrices of one rank, to the last digits of a semidefinite optimum."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, lstsq

from manifoldry.optimize.conic.symmetric import smat, svec, triangle
from manifoldry.util.typing import Array

_ROUNDS = 5
_TURNS = 1e-11  # slopes below this belong to rotations of R, which change nothing


@dataclass(frozen=True, eq=False)
class Face:
    """Where the gradient of ½·pᵀHp − cᵀp is orthogonal to R, P = RRᵀ.

    Inside the cone an optimum is known only up to the distance that is left to its wall; on the
    wall, once its rank is known, these equations have it to the last digits.
    """

    H: Array
    c: Array
    trace_one: bool

    def polish(self, R: Array) -> Array:
        """A better `R` (m, rank), or the same where there is none near."""
        error, multiplier = self._error(R)
        for _ in range(_ROUNDS):
            try:
                change = lstsq(self._slope(R, multiplier), -error, cond=_TURNS)[0]
            except (LinAlgError, ValueError):
                break
            moved = R + change[: R.size].reshape(R.shape)
            error_there, multiplier_there = self._error(moved)
            if not np.linalg.norm(error_there) < 0.5 * np.linalg.norm(error):
                break
            R, error, multiplier = moved, error_there, multiplier_there
        return R

    def _error(self, R: Array) -> tuple[Array, float]:
        """(Γ − λI)R and what the trace is off, with the λ that makes the first smallest."""
        along = smat(self.H @ svec(R @ R.T) - self.c) @ R
        if not self.trace_one:
            return along.ravel(), 0.0
        multiplier = float((along * R).sum() / (R * R).sum())
        return np.append((along - multiplier * R).ravel(), (R * R).sum() - 1), multiplier

    def _slope(self, R: Array, multiplier: float) -> Array:
        """Derivatives of the error by the entries of R and by λ."""
        m, rank = R.shape
        a, b, factor = triangle(m)
        unit = np.eye(m)
        change = unit[a][:, :, None] * R[b][:, None] + unit[b][:, :, None] * R[a][:, None]
        pull = self.H @ (change * factor[:, None, None]).reshape(len(a), -1)
        bent = np.empty((m, m, m * rank))
        bent[a, b] = bent[b, a] = pull / factor[:, None]
        J = np.einsum("abx,bj->ajx", bent, R, optimize=True).reshape(m * rank, -1)
        gradient = smat(self.H @ svec(R @ R.T) - self.c) - multiplier * unit
        J += np.kron(gradient, np.eye(rank))
        if not self.trace_one:
            return J
        J = np.column_stack([J, -R.ravel()])
        return np.vstack([J, np.append(2 * R.ravel(), 0.0)])
