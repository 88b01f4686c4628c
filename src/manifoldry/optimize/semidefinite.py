"""Quadratic problems over positive semidefinite matrices of any rank or of a given one."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, lstsq
from scipy.optimize import minimize

from manifoldry.optimize.interior_point import (
    InteriorPoint,
    PrimalDualPoint,
    order_of,
    smat,
    svec,
    upper_triangle,
)
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class SemidefiniteSolution:
    """The optimum of a quadratic problem, with what proves it.

    Parameters
    ----------
    P : array of shape (m, m)
        The matrix found; eigenvalues that are zero up to the accuracy of the search are zero.
    value : float
        The objective there.
    certificate : float
        How far the optimality conditions are from holding. On matrices of trace one
        ⟨Γ, P⟩ − λ_min(Γ) relative to the gradient Γ: times that, the optimum is no farther below
        ``value``. Else the larger of −λ_min(Γ) and the modulus of ⟨Γ, P⟩ over tr P, relative to c.
    n_iter : int
        Steps taken.
    converged : bool
        Whether the certificate is below the tolerance.
    """

    P: Array
    value: float
    certificate: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class SemidefiniteQuadratic:
    """Minimize ½·pᵀHp − cᵀp over positive semidefinite P, p = svec(P), if asked of trace one.

    ``svec`` lists the upper triangle of P row by row, off the diagonal times √2. The search takes
    O(m⁶) operations a step: a few milliseconds for m = 10, half a second for m = 30.

    Parameters
    ----------
    H : array of shape (m(m + 1)/2, m(m + 1)/2)
        Positive semidefinite matrix of the objective.
    c : array of shape (m(m + 1)/2,), optional
        Its linear part; zero by default.
    trace_one : bool, default=False
        Whether P must have trace one.
    rank_tol : float, default=1e-8
        An eigenvalue of P that small beside the largest is none: the search stays inside the cone.
    gradient_floor : float, default=1e-5
        Below this fraction of H's size a gradient is next to nothing.

    Examples
    --------
    The matrix nearest to one that is not positive semidefinite:

    >>> import numpy as np
    >>> from manifoldry.optimize.semidefinite import SemidefiniteQuadratic
    >>> problem = SemidefiniteQuadratic(np.eye(3), np.array([1.0, 0.0, -2.0]))
    >>> solution = problem.solve()
    >>> solution.P.round(6), solution.converged
    (array([[1., 0.],
           [0., 0.]]), True)
    """

    H: Array
    c: Array | None = None
    trace_one: bool = False
    rank_tol: float = field(default=1e-8, kw_only=True)
    gradient_floor: float = field(default=1e-5, kw_only=True)

    def __post_init__(self) -> None:
        H = np.asarray(self.H, dtype=np.float64)
        c = np.zeros(len(H)) if self.c is None else np.asarray(self.c, dtype=np.float64)
        m = order_of(len(H))
        if H.shape != (len(c), len(c)) or m * (m + 1) // 2 != len(c) or m == 0:
            raise ValueError(
                f"H of shape {H.shape} and c of shape {c.shape} must be of order m(m + 1)/2, "
                "one row for each entry of the upper triangle of P"
            )
        if not (np.isfinite(H).all() and np.isfinite(c).all()):
            raise ValueError("H and c must be finite; they contain NaN or infinity")
        object.__setattr__(self, "H", (H + H.T) / 2)
        object.__setattr__(self, "c", c)

    def solve(
        self, tol: float = 1e-9, max_iter: int = 100, interior_tol: float = 1e-3
    ) -> SemidefiniteSolution:
        """The optimum, up to a certificate of `tol`, in at most `max_iter` steps.

        The search inside the cone ends at `interior_tol` times the tolerance.
        """
        size, unit = self._scale
        if size == 0:
            return self._solution(self._any_feasible(), 0, tol)
        H, c = self.H / size, self._linear / size / unit
        search = InteriorPoint(H, c, self.trace_one)
        point, n_iter = search.start(), 0
        while n_iter < max_iter and not self._is_optimal(search, point, interior_tol * tol):
            found = search.step(point)
            if found is None:
                break
            point, n_iter = found, n_iter + 1
        R = FaceRefinement(H, c, self.trace_one).refine(self._root(point.P))
        return self._more_accurate(R @ R.T * unit, point.P * unit, n_iter, tol)

    def _root(self, P: Array) -> Array:
        """R with P = RRᵀ, less what is positive only because the search stays inside."""
        values, vectors = np.linalg.eigh(P)
        kept = values > self.rank_tol * (values[-1] if self.trace_one else max(values[-1], 1.0))
        R = vectors[:, kept] * np.sqrt(values[kept])
        return np.asarray(R / np.linalg.norm(R) if self.trace_one else R)

    def _more_accurate(
        self, on: Array, inside: Array, n_iter: int, tol: float
    ) -> SemidefiniteSolution:
        """The matrix on the face, unless small eigenvalues do matter."""
        found = self._solution(on, n_iter, tol)
        if found.converged:
            return found
        return min(found, self._solution(inside, n_iter, tol), key=lambda s: s.certificate)

    @property
    def _linear(self) -> Array:
        assert self.c is not None  # __post_init__ saw to that
        return self.c

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """The size of the problem and that of P, which the search takes for units."""
        quadratic, linear = np.abs(self.H).max(), np.abs(self._linear).max()
        if self.trace_one or quadratic == 0:
            return float(max(quadratic, linear)), 1.0
        return float(quadratic), float(linear / quadratic) or 1.0

    def _any_feasible(self) -> Array:
        m = order_of(len(self.H))
        return np.eye(m) / m if self.trace_one else np.zeros((m, m))

    def _is_optimal(self, search: InteriorPoint, point: PrimalDualPoint, tol: float) -> bool:
        scale = self._gradient_scale(search.H, search.c, point.P)
        weight = 1.0 if self.trace_one else max(float(np.trace(point.P)), 1.0)
        off = np.abs(search.residual(point)).max()
        return bool(max(point.gap / weight, off) <= tol * scale)

    def _gradient_scale(self, H: Array, c: Array, P: Array) -> float:
        """What counts as large in a gradient."""
        if not self.trace_one and c.any():
            return float(np.abs(c).max())  # the other part grows without end where there is none
        Hp = np.abs(H @ svec(P)).max()
        least = self.gradient_floor * np.abs(H).max() * np.abs(P).max()
        return float(max(Hp, np.abs(c).max(), least))

    def _solution(self, P: Array, n_iter: int, tol: float) -> SemidefiniteSolution:
        p, certificate = svec(P), self._certificate(P)
        value = float(p @ self.H @ p / 2 - self._linear @ p)
        return SemidefiniteSolution(P, value, certificate, n_iter, certificate <= tol)

    def _certificate(self, P: Array) -> float:
        gradient = smat(self.H @ svec(P) - self._linear)
        lowest = float(np.linalg.eigvalsh(gradient)[0])
        along = float((gradient * P).sum())
        off = along - lowest
        if not self.trace_one:
            off = max(-lowest, abs(along) / max(float(np.trace(P)), self._scale[1]))
        scale = self._gradient_scale(self.H, self._linear, P)
        return max(off, 0.0) / scale if scale > 0 else 0.0


@dataclass(frozen=True, eq=False)
class FaceRefinement:
    """Where the gradient of ½·pᵀHp − cᵀp is orthogonal to R, P = RRᵀ.

    Inside the cone an optimum is known only up to the distance that is left to its wall; on the
    wall, once its rank is known, these equations have it to the last digits, by Newton's method.

    Parameters
    ----------
    H, c, trace_one
        See :class:`SemidefiniteQuadratic`.
    max_iter : int, default=5
        Newton steps, at most; each halves the error, or it is the last.
    singular_tol : float, default=1e-11
        Relative slopes below this belong to rotations of R, which change nothing.
    """

    H: Array
    c: Array
    trace_one: bool
    max_iter: int = 5
    singular_tol: float = 1e-11

    def refine(self, R: Array) -> Array:
        """A better `R` (m, rank), or the same where there is none near."""
        error, multiplier = self._residual(R)
        for _ in range(self.max_iter):
            try:
                change = lstsq(self._jacobian(R, multiplier), -error, cond=self.singular_tol)[0]
            except (LinAlgError, ValueError):
                break
            moved = R + change[: R.size].reshape(R.shape)
            error_there, multiplier_there = self._residual(moved)
            if not np.linalg.norm(error_there) < 0.5 * np.linalg.norm(error):
                break
            R, error, multiplier = moved, error_there, multiplier_there
        return R

    def _residual(self, R: Array) -> tuple[Array, float]:
        """(Γ − λI)R and what the trace is off, with the λ that makes the first smallest."""
        along = smat(self.H @ svec(R @ R.T) - self.c) @ R
        if not self.trace_one:
            return along.ravel(), 0.0
        multiplier = float((along * R).sum() / (R * R).sum())
        return np.append((along - multiplier * R).ravel(), (R * R).sum() - 1), multiplier

    def _jacobian(self, R: Array, multiplier: float) -> Array:
        """Derivatives of the error by the entries of R and by λ."""
        m, rank = R.shape
        a, b, factor = upper_triangle(m)
        unit = np.eye(m)
        change = unit[a][:, :, None] * R[b][:, None] + unit[b][:, :, None] * R[a][:, None]
        Hp = self.H @ (change * factor[:, None, None]).reshape(len(a), -1)
        derivative = np.empty((m, m, m * rank))
        derivative[a, b] = derivative[b, a] = Hp / factor[:, None]
        J = np.einsum("abx,bj->ajx", derivative, R, optimize=True).reshape(m * rank, -1)
        gradient = smat(self.H @ svec(R @ R.T) - self.c) - multiplier * unit
        J += np.kron(gradient, np.eye(rank))
        if not self.trace_one:
            return J
        J = np.column_stack([J, -R.ravel()])
        return np.vstack([J, np.append(2 * R.ravel(), 0.0)])


@dataclass(frozen=True, eq=False)
class FixedRank:
    """Minimize svec(P)ᵀ·H·svec(P) over P = RRᵀ of trace one, R having as many columns as given.

    There may be several minima: start from the leading part of the optimum over all ranks, which
    also says how much there is to gain. The problem is not convex.

    Parameters
    ----------
    H : array of shape (m(m + 1)/2, m(m + 1)/2)
        Matrix of the objective.
    max_iter : int, default=2000
        Steps of the search, at most.
    gradient_tol : float, default=1e-10
        Largest entry of the gradient, H being scaled to a largest entry of one, at which it ends.
    """

    H: Array
    max_iter: int = 2000
    gradient_tol: float = 1e-10

    def minimize(self, R: Array) -> Array:
        """The minimizer near `R` (m, rank), turned to its principal axes."""
        H = self.H / (np.abs(self.H).max() or 1.0)
        start = R / np.linalg.norm(R)

        def goal(r: Array) -> tuple[float, Array]:
            # Homogeneous in R, so that the trace needs no constraint.
            R = r.reshape(start.shape)
            size, p = float((R * R).sum()), svec(R @ R.T)
            Hp = H @ p
            value = float(p @ Hp)
            slope = smat(Hp) @ R - value / size * R
            return value / size**2, 4 * slope.ravel() / size**2

        options = {"maxiter": self.max_iter, "gtol": self.gradient_tol}
        found = minimize(goal, start.ravel(), jac=True, method="BFGS", options=options).x
        found = found.reshape(start.shape) / np.linalg.norm(found)
        found = FaceRefinement(H, np.zeros(len(H)), trace_one=True).refine(found)
        turn = np.linalg.svd(found, full_matrices=False)
        return np.asarray(turn[0] * turn[1] / np.linalg.norm(turn[1]))
