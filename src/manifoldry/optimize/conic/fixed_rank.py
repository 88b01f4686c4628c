"""Quadratic problems over semidefinite matrices of a given rank, which are not convex."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from manifoldry.optimize.conic.face import Face
from manifoldry.optimize.conic.symmetric import smat, svec
from manifoldry.util.typing import Array

_STEPS = 2000


@dataclass(frozen=True, eq=False)
class FixedRank:
    """Minimise svec(P)ᵀ·H·svec(P) over P = RRᵀ of trace one, R having as many columns as given.

    There may be several minima: start from the leading part of the optimum over all ranks, which
    also says how much there is to gain.
    """

    H: Array

    def minimise(self, R: Array) -> Array:
        """The minimiser near `R` (m, rank), turned to its principal axes."""
        H = self.H / (np.abs(self.H).max() or 1.0)
        start = R / np.linalg.norm(R)

        def goal(r: Array) -> tuple[float, Array]:
            # Homogeneous in R, so that the trace needs no constraint.
            R = r.reshape(start.shape)
            size, p = float((R * R).sum()), svec(R @ R.T)
            pull = H @ p
            value = float(p @ pull)
            slope = smat(pull) @ R - value / size * R
            return value / size**2, 4 * slope.ravel() / size**2

        options = {"maxiter": _STEPS, "gtol": 1e-10}
        found = minimize(goal, start.ravel(), jac=True, method="BFGS", options=options).x
        found = found.reshape(start.shape) / np.linalg.norm(found)
        found = Face(H, np.zeros(len(H)), trace_one=True).polish(found)
        turn = np.linalg.svd(found, full_matrices=False)
        return np.asarray(turn[0] * turn[1] / np.linalg.norm(turn[1]))
