"""Quadratic problems over positive semidefinite matrices of moderate order."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manifoldry.optimize.conic.face import Face
from manifoldry.optimize.conic.interior import InteriorPoint, Iterate
from manifoldry.optimize.conic.symmetric import order_of, smat, svec
from manifoldry.util.typing import Array

_NO_GRADIENT = 1e-5  # of H's size: below it a gradient is next to nothing
_ZERO = 1e-8  # an eigenvalue that small beside the largest is none
_BEYOND = 1e-3  # the search ends this much below the tolerance


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
    """Minimise ½·pᵀHp − cᵀp over positive semidefinite P, p = svec(P), if asked of trace one.

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

    Examples
    --------
    The matrix nearest to one that is not positive semidefinite:

    >>> import numpy as np
    >>> from manifoldry.optimize.conic.quadratic import SemidefiniteQuadratic
    >>> problem = SemidefiniteQuadratic(np.eye(3), np.array([1.0, 0.0, -2.0]))
    >>> solution = problem.solve()
    >>> solution.P.round(6), solution.converged
    (array([[1., 0.],
           [0., 0.]]), True)
    """

    H: Array
    c: Array | None = None
    trace_one: bool = False

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

    def solve(self, tol: float = 1e-9, max_iter: int = 100) -> SemidefiniteSolution:
        """The optimum, up to a certificate of `tol`, in at most `max_iter` steps."""
        size, unit = self._scale
        if size == 0:
            return self._solution(self._indifferent(), 0, tol)
        H, c = self.H / size, self._linear / size / unit
        search = InteriorPoint(H, c, self.trace_one)
        at, n_iter = search.start(), 0
        while n_iter < max_iter and not self._arrived(search, at, _BEYOND * tol):
            found = search.step(at)
            if found is None:
                break
            at, n_iter = found, n_iter + 1
        R = Face(H, c, self.trace_one).polish(self._root(at.P))
        return self._better(R @ R.T * unit, at.P * unit, n_iter, tol)

    def _root(self, P: Array) -> Array:
        """R with P = RRᵀ, less what is positive only because the search stays inside."""
        values, vectors = np.linalg.eigh(P)
        kept = values > _ZERO * (values[-1] if self.trace_one else max(values[-1], 1.0))
        R = vectors[:, kept] * np.sqrt(values[kept])
        return np.asarray(R / np.linalg.norm(R) if self.trace_one else R)

    def _better(self, on: Array, inside: Array, n_iter: int, tol: float) -> SemidefiniteSolution:
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

    def _indifferent(self) -> Array:
        m = order_of(len(self.H))
        return np.eye(m) / m if self.trace_one else np.zeros((m, m))

    def _arrived(self, search: InteriorPoint, at: Iterate, tol: float) -> bool:
        scale = self._size_of_gradient(search.H, search.c, at.P)
        weight = 1.0 if self.trace_one else max(float(np.trace(at.P)), 1.0)
        off = np.abs(search.residual(at)).max()
        return bool(max(at.gap / weight, off) <= tol * scale)

    def _size_of_gradient(self, H: Array, c: Array, P: Array) -> float:
        """What counts as large in a gradient."""
        if not self.trace_one and c.any():
            return float(np.abs(c).max())  # the other part grows without end where there is none
        pull, least = np.abs(H @ svec(P)).max(), _NO_GRADIENT * np.abs(H).max() * np.abs(P).max()
        return float(max(pull, np.abs(c).max(), least))

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
        scale = self._size_of_gradient(self.H, self._linear, P)
        return max(off, 0.0) / scale if scale > 0 else 0.0
