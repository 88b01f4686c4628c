"""Quadratic problems over positive semidefinite matrices, of any rank or of a given rank."""

from dataclasses import dataclass, field

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
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class SemidefiniteSolution:
    """The solution of a quadratic problem, with a certificate of optimality.

    Parameters
    ----------
    P : array of shape (m, m)
        The solution; eigenvalues that vanish within the accuracy of the solver are set to zero.
    value : float
        The objective at P.
    certificate : float
        Violation of the optimality conditions, with the gradient Γ. If the trace is one,
        ⟨Γ, P⟩ − λ_min(Γ) relative to the largest entry of Γ's terms; times that entry it bounds
        the difference of ``value`` from the optimum. Otherwise the larger of −λ_min(Γ) and
        |⟨Γ, P⟩|/tr P, relative to the largest entry of c.
    n_iter : int
        Number of steps.
    converged : bool
        Whether the certificate is at most the tolerance.
    """

    P: Array
    value: float
    certificate: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class SemidefiniteQuadratic:
    """Minimize ½·pᵀHp − cᵀp over positive semidefinite P, p = svec(P), optionally of trace one.

    ``svec`` lists the upper triangle of P row by row, times √2 off the diagonal. A step takes O(m⁶)
    operations: a few milliseconds for m = 10, half a second for m = 30.

    Parameters
    ----------
    H : array of shape (m(m + 1)/2, m(m + 1)/2)
        Positive semidefinite matrix of the quadratic term.
    c : array of shape (m(m + 1)/2,), optional
        Coefficients of the linear term; zero by default.
    trace_one : bool, default=False
        Whether P must have trace one.
    rank_tol : float, default=1e-8
        Eigenvalues of P up to this fraction of the largest are set to zero; the interior-point
        method keeps all of them positive.
    gradient_floor : float, default=1e-5
        Lower bound on the scale to which the certificate is relative, as a fraction of the largest
        entries of H times P.

    Examples
    --------
    The positive semidefinite matrix nearest to a matrix that is indefinite:

    >>> import numpy as np
    >>> from manifoldry.optimize.semidefinite_quadratic import SemidefiniteQuadratic
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
        """The optimum, with a certificate of at most `tol`, in at most `max_iter` steps.

        The interior-point method stops at `interior_tol` times `tol`.
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
        """R with P ≈ RRᵀ, without the eigenvalues below `rank_tol`."""
        values, vectors = np.linalg.eigh(P)
        kept = values > self.rank_tol * (values[-1] if self.trace_one else max(values[-1], 1.0))
        R = vectors[:, kept] * np.sqrt(values[kept])
        return np.asarray(R / np.linalg.norm(R) if self.trace_one else R)

    def _more_accurate(
        self, on: Array, inside: Array, n_iter: int, tol: float
    ) -> SemidefiniteSolution:
        """The refined solution of lower rank, unless the interior one has a smaller certificate."""
        found = self._solution(on, n_iter, tol)
        if found.converged:
            return found
        return min(found, self._solution(inside, n_iter, tol), key=lambda s: s.certificate)

    @property
    def _linear(self) -> Array:
        assert self.c is not None  # set by __post_init__
        return self.c

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """Scales of the objective and of P, by which the solver divides."""
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
        residual = np.abs(search.residual(point)).max()
        return bool(max(point.gap / weight, residual) <= tol * scale)

    def _gradient_scale(self, H: Array, c: Array, P: Array) -> float:
        """The scale to which residuals of the gradient are relative."""
        if not self.trace_one and c.any():
            return float(np.abs(c).max())  # H·p diverges if there is no optimum
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
        violation = along - lowest
        if not self.trace_one:
            violation = max(-lowest, abs(along) / max(float(np.trace(P)), self._scale[1]))
        scale = self._gradient_scale(self.H, self._linear, P)
        return max(violation, 0.0) / scale if scale > 0 else 0.0


@dataclass(frozen=True, eq=False)
class FaceRefinement:
    """Newton's method for the optimality conditions of P = RRᵀ at fixed rank.

    The condition is Γ R = 0, where Γ is the gradient of ½·pᵀHp − cᵀp with p = svec(P) as a matrix,
    or (Γ − λI) R = 0 with a multiplier λ if the trace must be one. Interior points approximate an
    optimum of low rank only up to their distance from the boundary of the cone; once the rank is
    known, this method finds the optimum to machine precision.

    Parameters
    ----------
    H, c, trace_one
        See :class:`SemidefiniteQuadratic`.
    max_iter : int, default=5
        Maximum number of Newton steps; iteration stops at a step that does not halve the residual.
    singular_tol : float, default=1e-11
        Singular values of the Jacobian below this fraction of the largest count as zero; they
        belong to rotations of R, which leave P unchanged.
    """

    H: Array
    c: Array
    trace_one: bool
    max_iter: int = 5
    singular_tol: float = 1e-11

    def refine(self, R: Array) -> Array:
        """`R` (m, rank) after steps that halve the residual; unchanged if the first does not."""
        error, multiplier = self._residual(R)
        for _ in range(self.max_iter):
            try:
                change = lstsq(self._jacobian(R, multiplier), -error, cond=self.singular_tol)[0]
            except (LinAlgError, ValueError):
                break
            moved = R + change[: R.size].reshape(R.shape)
            new_error, new_multiplier = self._residual(moved)
            if not np.linalg.norm(new_error) < 0.5 * np.linalg.norm(error):
                break
            R, error, multiplier = moved, new_error, new_multiplier
        return R

    def _residual(self, R: Array) -> tuple[Array, float]:
        """(Γ − λI)R and the error of the trace, with the λ that minimizes ‖(Γ − λI)R‖."""
        along = smat(self.H @ svec(R @ R.T) - self.c) @ R
        if not self.trace_one:
            return along.ravel(), 0.0
        multiplier = float((along * R).sum() / (R * R).sum())
        return np.append((along - multiplier * R).ravel(), (R * R).sum() - 1), multiplier

    def _jacobian(self, R: Array, multiplier: float) -> Array:
        """Derivatives of the residual with respect to the entries of R and to λ."""
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
    """Minimize svec(P)ᵀ·H·svec(P) over P = RRᵀ of trace one and given rank.

    The problem is not convex and may have several minima. Start from the leading eigenvectors of
    the optimum over all ranks, whose value is a lower bound.

    Parameters
    ----------
    H : array of shape (m(m + 1)/2, m(m + 1)/2)
        Matrix of the objective.
    max_iter : int, default=2000
        Maximum number of BFGS steps.
    gradient_tol : float, default=1e-10
        Largest entry of the gradient at convergence, with H scaled to a largest entry of one.
    """

    H: Array
    max_iter: int = 2000
    gradient_tol: float = 1e-10

    def minimize(self, R: Array) -> Array:
        """A local minimizer from the start `R` (m, rank), rotated to its principal axes."""
        H = self.H / (np.abs(self.H).max() or 1.0)
        start = R / np.linalg.norm(R)

        def value_and_gradient(r: Array) -> tuple[float, Array]:
            # Invariant to the scale of R, so that the trace needs no constraint.
            R = r.reshape(start.shape)
            size, p = float((R * R).sum()), svec(R @ R.T)
            Hp = H @ p
            value = float(p @ Hp)
            gradient = smat(Hp) @ R - value / size * R
            return value / size**2, 4 * gradient.ravel() / size**2

        options = {"maxiter": self.max_iter, "gtol": self.gradient_tol}
        found = minimize(
            value_and_gradient, start.ravel(), jac=True, method="BFGS", options=options
        ).x
        found = found.reshape(start.shape) / np.linalg.norm(found)
        found = FaceRefinement(H, np.zeros(len(H)), trace_one=True).refine(found)
        U, s, _ = np.linalg.svd(found, full_matrices=False)
        return np.asarray(U * s / np.linalg.norm(s))
