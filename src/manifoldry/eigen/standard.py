"""The ordinary eigenproblem that solvers see: one symmetric operator, one subspace to avoid."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, qr, solve_triangular

from manifoldry.eigen.gram import Gram
from manifoldry.util.typing import Array, Matrix


class SpectrumEnd(StrEnum):
    """One end of a spectrum: solvers ask it for signs, orders and bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen.standard import SpectrumEnd
    >>> SpectrumEnd("largest").from_end(np.array([1.0, 2.0, 5.0]))
    array([5., 2., 1.])
    """

    SMALLEST = "smallest"
    LARGEST = "largest"

    @property
    def other(self) -> SpectrumEnd:
        """The end that is not wanted."""
        ends = SpectrumEnd
        return ends.LARGEST if self is ends.SMALLEST else ends.SMALLEST

    @property
    def sign(self) -> float:
        """Direction out of the spectrum, 1 or −1: times it, the wanted end is the top."""
        return 1.0 if self is SpectrumEnd.LARGEST else -1.0

    def edge(self, bounds: tuple[float, float] | None) -> float | None:
        """Return the bound (low, high) on this side, or None where it is unknown or infinite."""
        if bounds is None:
            return None
        edge = bounds[self is SpectrumEnd.LARGEST]
        return edge if np.isfinite(edge) else None

    def from_end(self, ascending: Array) -> Array:
        """Return values, or columns, that came in ascending order, from this end inwards."""
        return ascending if self is SpectrumEnd.SMALLEST else ascending[..., ::-1]


@dataclass(frozen=True, eq=False)
class StandardProblem:
    """Eigenpairs of P A P inside range(P), P = I − QQᵀ.

    Parameters
    ----------
    A : ndarray, csr_array, LinearOperator or Gram of shape (n, n)
        A symmetric operator in double precision.
    Q : array of shape (n, q)
        Orthonormal columns that eigenvectors must be orthogonal to; q may be 0.
    end : SpectrumEnd
        Which end of the spectrum.
    bounds : (float, float), optional
        An interval known to hold the spectrum of A.
    n_deflated : int
        How many of the first columns of Q are said to be eigenvectors.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import SpectralProblem
    >>> SpectralProblem(np.eye(5), end="largest", deflate=np.ones(5)).standard().dimension
    4
    """

    A: Matrix
    Q: Array
    end: SpectrumEnd
    bounds: tuple[float, float] | None = None
    n_deflated: int = 0

    @property
    def n(self) -> int:
        """Order of A."""
        return int(self.A.shape[0])

    @property
    def dimension(self) -> int:
        """Dimension of the space left by the constraints: the number of eigenpairs there are."""
        return self.n - self.Q.shape[1]

    @property
    def sparse(self) -> bool:
        """Whether A is an explicit sparse matrix."""
        return bool(sp.issparse(self.A))

    @property
    def semidefinite(self) -> bool:
        """Whether A is known to have no eigenvalue below zero."""
        return isinstance(self.A, Gram) or (self.bounds is not None and self.bounds[0] >= 0)

    def apply(self, X: Array) -> Array:
        """Return A X."""
        return np.asarray(self.A @ X)

    def project(self, X: Array) -> Array:
        """Return P X; twice is enough, so that columns almost inside Q are clean as well."""
        if self.Q.shape[1] == 0:
            return X
        X = X - self.Q @ (self.Q.T @ X)
        return X - self.Q @ (self.Q.T @ X)

    @cached_property
    def norm(self) -> float:
        """Estimate of ‖A‖ from below, mostly within 20 %; see :func:`estimated_norm`."""
        return estimated_norm(self.A)

    @cached_property
    def opposite_bound(self) -> float:
        """A number at or beyond the end of the spectrum that is not wanted."""
        edge = self.end.other.edge(self.bounds)
        if edge is not None:
            return edge
        if self.end is SpectrumEnd.LARGEST and self.semidefinite:
            return 0.0
        # The estimate of the norm is from below: leave room for what it missed.
        return -1.5 * self.end.sign * self.norm

    def toarray(self) -> Array:
        """Return A as a dense array (never a view that may be overwritten)."""
        if isinstance(self.A, np.ndarray):
            return self.A.copy()
        if self.sparse or isinstance(self.A, Gram):
            return np.asarray(self.A.toarray())
        dense = self.apply(np.eye(self.n))
        return (dense + dense.T) / 2


def estimated_norm(
    A: Matrix, *, steps: int = 12, block: int = 4, large: int = 3000, small_side: int = 2000
) -> float:
    """Return an estimate of ‖A‖ from below by a short power iteration on a block of columns.

    Row sums and the Frobenius norm bound ‖A‖ from above but can be √n times too large, and an
    implicit operator has neither; rounding thresholds only need the order of magnitude. Dense
    matrices beyond the order `large`, whose products take long, have to do with half the steps;
    factors whose short side is at most `small_side` are decomposed instead.
    """
    if isinstance(A, Gram) and A.explicit and A.small_side <= small_side:
        return A.norm
    n = A.shape[0]
    # A fixed start: the estimate belongs to the problem, not to a run of a solver.
    X: Array = np.random.default_rng(0).standard_normal((n, min(block, n)))
    estimate = 0.0
    for _ in range(steps // 2 if isinstance(A, np.ndarray) and n > large else steps):
        X /= np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny)
        X = np.asarray(A @ X)
        estimate = max(estimate, float(np.linalg.norm(X, axis=0).max()))
    return estimate


def orthonormal_basis(C: Array, beyond: Array | None = None, *, tolerance: float = 1e-13) -> Array:
    """Return an orthonormal basis of range(C), without the columns that add no direction.

    Orthonormal columns `beyond` which C is to add something come first. Columns whose products are
    at most `tolerance` are orthogonal to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen.standard import orthonormal_basis
    >>> orthonormal_basis(np.array([[1.0, 2.0], [1.0, 2.0]])).shape
    (2, 1)
    """
    length = np.linalg.norm(C, axis=0)
    C = C[:, length > 0] / length[length > 0]
    known = np.empty((C.shape[0], 0)) if beyond is None else beyond
    if C.shape[1] == 0:
        return known
    C = _independent(C - known @ (known.T @ C), tolerance)
    inside = known.T @ C
    if np.abs(inside).max(initial=0.0) > tolerance:  # some columns were nearly inside `known`
        C = _independent(C - known @ inside, tolerance)
    return np.ascontiguousarray(np.hstack([known, C]))


def _independent(
    C: Array, tolerance: float, *, well_conditioned: float = 1e-8, dependent: float = 1e-10
) -> Array:
    """Return an orthonormal basis of unit columns or shorter ones, by the cheapest way that does.

    Columns that are far from dependent, as most constraints are, take two matrix products; the
    others column pivoting, which makes the diagonal of R fall and so reveals the rank. A ratio
    of squared singular values tells the former, and a new direction below a fraction of a
    column's length that it is dependent.
    """
    G, Q = C.T @ C, C
    # Against one, not only against the largest: of columns that were inside another space nothing
    # but rounding is left, and that may look well conditioned.
    values = np.linalg.eigvalsh(G)
    if values[0] < well_conditioned * max(1.0, values[-1]):
        Q, R, _ = qr(C, mode="economic", pivoting=True, check_finite=False)
        return np.asarray(Q[:, np.abs(np.diag(R)) > dependent])
    for _ in range(3):  # a second pass wins back what one has lost
        if np.abs(G - np.eye(len(G))).max() <= tolerance:
            break
        Q = solve_triangular(cholesky(G), Q.T, trans="T", check_finite=False).T
        G = Q.T @ Q
    return Q
