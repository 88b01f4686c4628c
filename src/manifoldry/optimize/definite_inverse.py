"""Solvers for sparse positive definite systems, chosen by estimated cost."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from manifoldry.eigen.inverse import NotDefiniteError, ShiftedInverse, estimated_fill
from manifoldry.eigen.lobpcg import Preconditioner, inverse_diagonal, multigrid
from manifoldry.optimize.polynomial_inverse import ChebyshevInverse
from manifoldry.util.local_matrix import LocalMatrix
from manifoldry.util.memory import available_memory
from manifoldry.util.sparse_products import product
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array, Matrix

Solve = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class DefiniteInverse:
    """A solver for linear systems with one matrix, and why it was chosen."""

    solve: Solve  # (n, d) to (n, d), in double precision
    reason: str


@dataclass(frozen=True)
class AutoInverse:
    """Chooses a solver for graph matrices, positive definite, and many right-hand sides.

    Laplacians of low-dimensional manifolds are ill-conditioned, but their factors have little
    fill-in, with 90 neighbors as with 10 (roll of 20 000 points: 1 s, then 0.02 s per solve).
    Laplacians of high-dimensional data have full factors, but are well-conditioned: a polynomial
    approximates the inverse well enough for a search direction. All others are solved by conjugate
    gradients with multigrid.

    Parameters
    ----------
    factor_up_to : int, default=1500
        Order up to which the matrix is always factorized.
    dense_fraction : float, default=0.1
        Fraction of nonzero entries above which the factor is dense.
    quick_iterations : int, default=40
        Number of conjugate gradient iterations with a diagonal preconditioner up to which a matrix
        is well-conditioned: to a residual of 1e-4, or of `tol` if its factor has too many entries.
    max_fill : float, default=6.0
        Largest number of entries of a sparse factor, as a multiple of those of the matrix. Rolls
        have about 4, 10 000 digits 18.
    ball : int, default=3000
        Number of points from which the entries of the factor are estimated; 8000 take 9 s.
    bytes_per_entry : float, default=26.0
        Memory of a sparse factor and its transpose in `scipy.sparse.linalg.splu`.
    tol : float, default=0.1
        Residual norm at which conjugate gradients stop, relative to the right-hand side. As a
        filter of the gradient a rough solution serves as well: for the elastic embedding of 8000
        digits 1e-4 takes 102 steps to the same minimum as 0.1 takes 106, and three times as long.
    max_iter : int, default=200
        Maximum number of iterations per solve.
    polynomial : ChebyshevInverse, default=ChebyshevInverse()
        The approximation for well-conditioned matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> inverse = AutoInverse().invert(sparse.csr_array(np.diag([1.0, 2.0])))
    >>> inverse.solve(np.ones((2, 1))).ravel()
    array([1. , 0.5])
    """

    factor_up_to: int = 1500
    dense_fraction: float = 0.1
    quick_iterations: int = 40
    max_fill: float = 6.0
    ball: int = 3000
    bytes_per_entry: float = 26.0
    tol: float = 0.1
    max_iter: int = 200
    polynomial: ChebyshevInverse = field(default=ChebyshevInverse())

    def invert(self, A: sparse.csr_array) -> DefiniteInverse:
        """Return a solver for `A`, and why it was chosen."""
        n, local = A.shape[0], LocalMatrix.of(A)
        if n <= self.factor_up_to:
            return self._factorized(A, f"{n} points")
        found = self._for_many_points(local.matrix)
        if local.order is None:
            return found
        return replace(found, solve=lambda B: local.restored(found.solve(local.sorted(B))))

    def _for_many_points(self, A: sparse.csr_array) -> DefiniteInverse:
        if self.iterations(A) > self.quick_iterations:
            fill = estimated_fill(A, ball=self.ball)
            sizes = f"a sparse factor has about {fill:.1e} entries, the matrix {A.nnz:.1e}"
            if fill <= self.max_fill * A.nnz and _fits(fill * self.bytes_per_entry):
                return self._factorized(A, sizes)
            if self.iterations(A, self.tol) > self.quick_iterations:
                return self._ill_conditioned(A, sizes)
        degree = self.polynomial.degree
        why = f"polynomial of degree {degree}: conjugate gradients would need few iterations"
        return DefiniteInverse(self.polynomial.solver(A), why)

    def _ill_conditioned(self, A: sparse.csr_array, sizes: str) -> DefiniteInverse:
        """By multigrid, if pyamg is installed."""
        cycle = multigrid(A, np.random.default_rng(0))
        if cycle is not None:
            return self._iterated(A, cycle, f"conjugate gradients with multigrid: {sizes}")
        why = f"conjugate gradients with at most {self.max_iter} iterations: {sizes}"
        return self._iterated(A, inverse_diagonal(A), f"{why}; install pyamg to use multigrid")

    def iterations(self, A: Matrix, tol: float = 1e-4) -> int:
        """Conjugate gradient steps for a random right-hand side, at most `quick_iterations` + 1.

        The preconditioner is the diagonal.
        """
        B = np.random.default_rng(0).standard_normal((A.shape[0], 1))
        quick = self.quick_iterations + 1
        return conjugate_gradients(A, B - B.mean(), inverse_diagonal(A), quick, tol)[1]

    def _factorized(self, A: sparse.csr_array, why: str) -> DefiniteInverse:
        if A.nnz > self.dense_fraction * A.shape[0] ** 2:
            return _dense_factor(A, why)
        factor = ShiftedInverse(A, 0.0, "smallest", skip_pivot_check=True)
        return DefiniteInverse(factor.solve, f"sparse factor: {why}")

    def _iterated(self, A: Matrix, precondition: Preconditioner, why: str) -> DefiniteInverse:
        max_iter, tol = self.max_iter, self.tol
        return DefiniteInverse(
            lambda B: conjugate_gradients(A, B, precondition, max_iter, tol)[0], why
        )


def conjugate_gradients(
    A: Matrix, B: Array, precondition: Preconditioner, max_iter: int, tol: float = 1e-4
) -> tuple[Array, int]:
    """Return X with A·X ≈ B, solved column by column, and the number of iterations.

    A column has converged when its residual is at most `tol` times the right-hand side. After any
    number of iterations ⟨b, x⟩ > 0 for every column b ≠ 0, since x minimizes ½⟨x, Ax⟩ − ⟨b, x⟩ on
    a subspace that contains the preconditioned b.
    """
    scale = np.abs(B).max(axis=0)
    scale[scale == 0] = 1.0
    R = B / scale
    X, P, energy = np.zeros_like(R), np.zeros_like(R), np.ones(R.shape[1])
    target = tol * np.linalg.norm(R, axis=0)
    for iteration in range(max_iter):
        active = np.linalg.norm(R, axis=0) > target
        if not active.any():
            return X * scale, iteration
        Z = precondition(R)
        before, energy = energy, np.where(active, (R * Z).sum(axis=0), 1.0)
        P = Z + (energy / before if iteration else 0.0) * P
        AP = product(A, P)
        curvature = (P * AP).sum(axis=0)
        length = np.where(active, energy / np.where(active, curvature, 1.0), 0.0)
        X += length * P
        R -= length * AP
    return X * scale, max_iter


def _fits(n_bytes: float) -> bool:
    available = available_memory()
    return available is None or n_bytes <= available


def _dense_factor(A: sparse.csr_array, why: str) -> DefiniteInverse:
    """By a dense Cholesky factor, computed in place."""
    try:
        factor = cho_factor(A.toarray().T, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        raise NotDefiniteError(
            "the shifted matrix is not numerically positive definite; pass a larger shift"
        ) from error

    def solve(B: Array) -> Array:
        with one_blas_thread():  # limited by memory bandwidth; more threads are slower
            return np.asarray(cho_solve(factor, B, check_finite=False))

    return DefiniteInverse(solve, f"dense factor: {why}")
