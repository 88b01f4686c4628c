"""The standard eigenproblem solved by all solvers: a symmetric operator and constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import sqrt

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, eigvalsh_tridiagonal, qr, solve_triangular
from scipy.linalg.blas import dsymv
from scipy.sparse.linalg import LinearOperator

from manifoldry.device import Device
from manifoldry.eigen.gram import Gram
from manifoldry.util.arrays import like, namespace, on_cpu, to_numpy
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, Matrix


class SpectrumEnd(StrEnum):
    """One end of a spectrum, with its sign, sort order and bound.

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
        """The opposite end."""
        ends = SpectrumEnd
        return ends.LARGEST if self is ends.SMALLEST else ends.SMALLEST

    @property
    def sign(self) -> float:
        """1 for the largest end, −1 for the smallest: the wanted eigenvalues maximize sign·λ."""
        return 1.0 if self is SpectrumEnd.LARGEST else -1.0

    def edge(self, bounds: tuple[float, float] | None) -> float | None:
        """Return the bound at this end of (low, high), or None if unknown or infinite."""
        if bounds is None:
            return None
        edge = bounds[self is SpectrumEnd.LARGEST]
        return edge if np.isfinite(edge) else None

    def from_end(self, ascending: Array) -> Array:
        """Return ascending values (or columns) in the order starting at this end."""
        return ascending if self is SpectrumEnd.SMALLEST else ascending[..., ::-1]


@dataclass(frozen=True, eq=False)
class Product:
    """A symmetric map of order n, given by its product with arrays (n,) and (n, columns).

    The checks of scipy's LinearOperator take longer than the product with a small matrix.
    """

    n: int
    product: Callable[[Array], Array]

    def __matmul__(self, X: Array) -> Array:
        return self.product(X)


@dataclass(frozen=True, eq=False)
class StandardProblem:
    """Eigenpairs of P A P inside range(P), P = I − QQᵀ.

    Parameters
    ----------
    A : ndarray, csr_array, LinearOperator or Gram of shape (n, n)
        A symmetric operator in double precision.
    Q : array of shape (n, q)
        Orthonormal columns; eigenvectors are orthogonal to them. q may be 0.
    end : SpectrumEnd
        Which end of the spectrum.
    bounds : (float, float), optional
        An interval that contains the spectrum of A.
    n_deflated : int, default=0
        Number of leading columns of Q that are declared to be eigenvectors.
    single : bool, default=False
        Whether the other columns of Q are orthonormal only to single precision, in which products
        with them are then computed.
    device : Device, optional
        The device that has A and Q in its memory; the CPU by default.

    See Also
    --------
    SpectralProblem : its method `standard` makes it.
    PairSolver : its subclasses solve it.

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
    single: bool = False
    device: Device | None = None

    @property
    def n(self) -> int:
        """Order of A."""
        return int(self.A.shape[0])

    @property
    def dimension(self) -> int:
        """Dimension of the constrained space, which is the number of eigenpairs."""
        return self.n - self.Q.shape[1]

    @property
    def sparse(self) -> bool:
        """Whether A is an explicit sparse matrix."""
        return bool(sp.issparse(self.A) or (self.device is not None and hasattr(self.A, "nnz")))

    def placed(self, X: Array) -> Array:
        """Return an array in the memory that has the operator.

        Parameters
        ----------
        X : array
            An array of the host.

        Returns
        -------
        array
            The array, on the device if there is one.
        """
        return X if self.device is None else self.device.array(X, keep=False)

    @property
    def semidefinite(self) -> bool:
        """Whether A is known to have no eigenvalue below zero."""
        return isinstance(self.A, Gram) or (self.bounds is not None and self.bounds[0] >= 0)

    def apply(self, X: Array) -> Array:
        """Return A X.

        Parameters
        ----------
        X : array of shape (n,) or (n, k)
            A vector or several columns.

        Returns
        -------
        array of the shape of `X`
            The product.
        """
        return symmetric_product(self.A, X)

    def project(self, X: Array) -> Array:
        """Return P X; projecting twice is accurate even for columns almost in range(Q).

        Parameters
        ----------
        X : array of shape (n,) or (n, k)
            A vector or several columns.

        Returns
        -------
        array of the shape of `X`
            The part orthogonal to Q.
        """
        if self.Q.shape[1] == 0:
            return X
        return self.project_once(self.project_once(X))

    def project_once(self, X: Array) -> Array:
        """Return X − QQᵀX, in single precision if the problem allows it.

        Parameters
        ----------
        X : array of shape (n,) or (n, k)
            A vector or several columns.

        Returns
        -------
        array of the shape of `X`
            The part orthogonal to Q, up to rounding.
        """
        if self.Q.shape[1] == 0:
            return X
        Q = self._factor
        return X - Q @ (Q.T @ X.astype(Q.dtype, copy=False))

    @cached_property
    def _factor(self) -> Array:
        """Q in the precision of products with it."""
        return self.Q.astype(np.float32) if self.single else self.Q

    def in_double(self) -> StandardProblem:
        """Return the problem with all columns of Q orthonormal in double precision.

        Returns
        -------
        StandardProblem
            The problem.
        """
        if not self.single:
            return self
        known, others = self.Q[:, : self.n_deflated], self.Q[:, self.n_deflated :]
        return replace(self, Q=orthonormal_basis(others, beyond=known), single=False)

    @cached_property
    def norm(self) -> float:
        """Lower estimate of ‖A‖, mostly within 20 %.

        For an operator given by its product, whose products may be slow, it is the larger of two
        finite bounds.
        """
        if isinstance(self.A, LinearOperator) and self.bounds and np.isfinite(self.bounds).all():
            return float(np.abs(self.bounds).max())
        return estimated_norm(self.A, self.placed)

    @cached_property
    def opposite_bound(self) -> float:
        """A bound on the spectrum at the opposite end."""
        edge = self.end.other.edge(self.bounds)
        if edge is not None:
            return edge
        if self.end is SpectrumEnd.LARGEST and self.semidefinite:
            return 0.0
        # The norm is a lower estimate, hence the factor 1.5.
        return -1.5 * self.end.sign * self.norm

    def toarray(self) -> Array:
        """Return A as a dense array that is always a copy.

        Returns
        -------
        array of shape (n, n)
            The matrix.
        """
        if isinstance(self.A, np.ndarray):
            return self.A.copy()
        if self.device is not None:
            return self.A.toarray()
        if hasattr(self.A, "toarray"):
            return np.asarray(self.A.toarray())
        dense = self.apply(np.eye(self.n))
        return (dense + dense.T) / 2


def symmetric_product(A: Matrix, X: Array, few: int = 4) -> Array:
    """Return A X for a symmetric operator A."""
    if not on_cpu(A):
        return A @ X
    if X.ndim == 1:
        return _dense_product(A, X)
    if X.shape[1] <= few:
        return np.stack([_dense_product(A, x) for x in X.T], axis=1)
    # For few columns BLAS computes the transpose in little more than half the time.
    return np.asarray((X.T @ A).T)


def _dense_product(A: Array, x: Array) -> Array:
    """Return A x, reading half of the matrix: at order 1800 in .4 of the time of ``A @ x``."""
    # The transpose has the order of Fortran, so that scipy makes no copy.
    return np.asarray(dsymv(1.0, A.T if A.flags.c_contiguous else A, x))


def estimated_norm(
    A: Matrix,
    placed: Callable[[Array], Array] = lambda X: X,
    *,
    steps: int = 12,
    large: int = 1000,
    large_sparse: int = 20_000,
    small_side: int = 2000,
) -> float:
    """Return a lower estimate of ‖A‖ from a few steps of Lanczos' iteration.

    Row sums and the Frobenius norm are upper bounds but can be √n times too large, and they are
    not available for implicit operators. Tolerances only need the order of magnitude. Dense
    matrices and implicit operators above order `large` use two thirds of the steps, sparse matrices
    above `large_sparse` a third of them, from a vector that includes the largest diagonal entry.
    For explicit Gram factors with fewer columns than rows, at most `small_side`, the products are
    those with FᵀF. `placed` copies an array to the memory of A.
    """
    if isinstance(A, Gram) and A.explicit and A.factor.shape[1] <= min(A.shape[0], small_side):
        A = A.small_matrix()
    n = A.shape[0]
    # A fixed seed: the estimate must not depend on the random state of the solver.
    v: Array = np.random.default_rng(0).standard_normal(n)
    if hasattr(A, "nnz") and n > large_sparse:
        steps //= 3
        largest = int(abs(A.diagonal()).argmax())
        v[largest] += np.sqrt(n)  # it may be concentrated in a few rows
    elif not isinstance(A, Gram) and not hasattr(A, "nnz") and n > large:
        steps = 2 * steps // 3
    v = placed(v / np.linalg.norm(v))
    before = 0.0 * v
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(min(n, steps)):
        w = symmetric_product(A, v)
        diagonal.append(float(v @ w))
        w = w - diagonal[-1] * v - (beside[-1] if beside else 0.0) * before
        beside.append(sqrt(float(w @ w)))
        if beside[-1] <= np.finfo(float).eps * abs(diagonal[0]):
            break  # the vectors span an invariant subspace
        before, v = v, w / beside[-1]
    values = eigvalsh_tridiagonal(diagonal, beside[: len(diagonal) - 1])
    return float(np.abs(values).max())


def orthonormal_basis(
    C: Array, beyond: Array | None = None, *, tolerance: float | None = None
) -> Array:
    """Return an orthonormal basis of range([beyond, C]), skipping dependent columns of C.

    The columns of `beyond` must be orthonormal and come first. Columns whose inner products are at
    most `tolerance` count as orthogonal: by default 1e-13, or 1e-4 if `C` is in single precision,
    which the basis then is, too.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen.standard import orthonormal_basis
    >>> orthonormal_basis(np.array([[1.0, 2.0], [1.0, 2.0]])).shape
    (2, 1)
    """
    if tolerance is None:
        tolerance = 1e-4 if C.dtype == np.float32 else 1e-13
    xp = namespace(C)
    length = to_numpy(xp.linalg.norm(C, axis=0))
    if not (length > 0).all():
        C, length = C[:, like(np.flatnonzero(length), C)], length[length > 0]
    C = C / like(length, C)
    known = C[:, :0] if beyond is None else beyond
    known = known.astype(C.dtype, copy=False)
    if C.shape[1] == 0:
        return known
    if known.shape[1] == 0:
        return xp.ascontiguousarray(_independent(C, tolerance))
    C = _independent(C - known @ (known.T @ C), tolerance)
    inside = known.T @ C
    if C.shape[1] > 0 and float(abs(inside).max()) > tolerance:
        # Some columns were nearly inside `known`.
        C = _independent(C - known @ inside, tolerance)
    return xp.ascontiguousarray(xp.hstack([known, C]))


def _independent(
    C: Array, tolerance: float, *, well_conditioned: float = 1e-8, dependent: float = 1e-10
) -> Array:
    """Return an orthonormal basis of range(C), for columns of norm at most one.

    If the smallest eigenvalue of CᵀC is at least `well_conditioned` times the largest, Cholesky QR
    is used, which needs only matrix products. Otherwise QR with column pivoting reveals the rank:
    columns with a diagonal entry of R of at most `dependent` are dropped.
    """
    G, Q = to_numpy(C.T @ C), C
    if np.abs(G - np.eye(len(G))).max() <= tolerance:
        return C
    # Compare with max(1, largest): columns that are only rounding errors after a projection may
    # look well conditioned relative to each other.
    values = np.linalg.eigvalsh(G)
    if values[0] < well_conditioned * max(1.0, values[-1]):
        return _range(C, dependent)
    for _ in range(3):  # a second pass restores orthogonality lost in the first
        if np.abs(G - np.eye(len(G))).max() <= tolerance:
            break
        Q = _solved_by(cholesky(G), Q)
        G = to_numpy(Q.T @ Q)
    return Q


def _range(C: Array, dependent: float) -> Array:
    """An orthonormal basis of the range of columns that may be dependent."""
    if on_cpu(C):
        Q, R, _ = qr(C, mode="economic", pivoting=True, check_finite=False)
        return np.asarray(Q[:, np.abs(np.diag(R)) > dependent])
    U, sizes, _ = namespace(C).linalg.svd(C, full_matrices=False)
    return U[:, : int((sizes > dependent).sum())]


def _solved_by(R: Array, Q: Array) -> Array:
    """Q R⁻¹ for a small triangular matrix on the host."""
    if on_cpu(Q):
        return solve_triangular(R, Q.T, trans="T", check_finite=False).T
    return Q @ like(solve_triangular(R, np.eye(len(R), dtype=R.dtype), check_finite=False), Q)
