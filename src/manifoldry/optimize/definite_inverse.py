"""The inverse of a sparse positive definite matrix, by whichever route is cheapest."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from manifoldry.eigen.inverse import NotDefiniteError, ShiftedInverse, estimated_fill
from manifoldry.eigen.lobpcg import Preconditioner, inverse_diagonal, multigrid
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import available_memory

Solve = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class DefiniteInverse:
    """A way to solve with a matrix, and why that one."""

    solve: Solve  # (n, d) to (n, d), in double precision
    reason: str


@dataclass(frozen=True)
class AutoInverse:
    """How to solve with positive definite matrices of graphs for many right-hand sides.

    Graphs of low-dimensional manifolds are badly conditioned, but their factors hardly fill in,
    with 90 neighbors as little as with 10 (roll of 20 000 points: 1 s, then 0.02 s a solve).
    Graphs of high-dimensional data, known by how few iterations conjugate gradients need with no
    better preconditioner than the diagonal, fill in completely: so up to 5000 points they get a
    dense factor (MNIST, 5000 points, 90 neighbors, one core: 2.4 s, then 21 ms a solve, iterations
    76 ms), beyond that the iterations. Multigrid is for the rest.

    Parameters
    ----------
    factor_up_to : int, default=1500
        Order up to which factorizing needs no thought.
    dense_fraction : float, default=0.1
        Fraction of entries that are not zero from which such a factor is dense.
    dense_up_to : int, default=5000
        Order up to which a dense factor (200 MB) beats conjugate gradients after some 40 solves.
    quick_iterations : int, default=40
        Iterations with the bare diagonal that cost less than solving with factors.
    max_fill : float, default=20.0
        Entries of a factor, as a multiple of the matrix's own, beyond which it is not made.
    bytes_per_entry : float, default=26.0
        Memory of a sparse factor and its mirror, as `scipy.sparse.linalg.splu` takes it.
    tol : float, default=1e-4
        At which conjugate gradients stop, relative to the right-hand side.
    max_iter : int, default=200
        Iterations of a solve, at most.

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
    dense_up_to: int = 5000
    quick_iterations: int = 40
    max_fill: float = 20.0
    bytes_per_entry: float = 26.0
    tol: float = 1e-4
    max_iter: int = 200

    def invert(self, A: sparse.csr_array) -> DefiniteInverse:
        """Return how to solve with `A`, and why so."""
        n = A.shape[0]
        if n <= self.factor_up_to:
            return self._factorized(A, f"{n} points")
        rng = np.random.default_rng(0)
        needed = self._iterations(A, rng)
        if needed > self.quick_iterations:
            return self._ill_conditioned(A, rng)
        if n <= self.dense_up_to and _fits(8.0 * n * n):
            return _dense_factor(A, f"{n} points of many dimensions")
        why = f"conjugate gradients: {needed} iterations suffice with the diagonal"
        return self._iterated(A, inverse_diagonal(A), why)

    def _ill_conditioned(self, A: sparse.csr_array, rng: np.random.Generator) -> DefiniteInverse:
        """By a factor that hardly fills in, or by multigrid."""
        fill = estimated_fill(A)
        sizes = f"{fill:.1e} entries expected in a factor of {A.nnz:.1e}"
        if fill <= self.max_fill * A.nnz and _fits(fill * self.bytes_per_entry):
            return self._factorized(A, sizes)
        cycle = multigrid(A, rng)
        if cycle is not None:
            return self._iterated(A, cycle, f"conjugate gradients with multigrid: {sizes}")
        why = f"conjugate gradients with the diagonal, {self.max_iter} iterations at most: {sizes}"
        return self._iterated(A, inverse_diagonal(A), f"{why}, and no multigrid (install pyamg)")

    def _iterations(self, A: Matrix, rng: np.random.Generator) -> int:
        """Number of iterations on a random right-hand side, or one more than are quick."""
        B = rng.standard_normal((A.shape[0], 1))
        quick, tol = self.quick_iterations + 1, self.tol
        return conjugate_gradients(A, B - B.mean(), inverse_diagonal(A), quick, tol)[1]

    def _factorized(self, A: sparse.csr_array, why: str) -> DefiniteInverse:
        if A.nnz > self.dense_fraction * A.shape[0] ** 2:
            return _dense_factor(A, why)
        factor = ShiftedInverse(A, 0.0, "smallest", trusted=True)
        return DefiniteInverse(factor.solve, f"sparse factor: {why}")

    def _iterated(self, A: Matrix, precondition: Preconditioner, why: str) -> DefiniteInverse:
        max_iter, tol = self.max_iter, self.tol
        return DefiniteInverse(
            lambda B: conjugate_gradients(A, B, precondition, max_iter, tol)[0], why
        )


def conjugate_gradients(
    A: Matrix, B: Array, precondition: Preconditioner, max_iter: int, tol: float = 1e-4
) -> tuple[Array, int]:
    """Return X with A·X ≈ B, every column on its own, and the number of iterations.

    Columns whose residual is at most `tol` times the right-hand side are done. However early
    it stops, ⟨b, x⟩ > 0 for every column b ≠ 0, since x minimizes the energy on a space that holds
    the preconditioned b.
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
        AP = A @ P
        curvature = (P * AP).sum(axis=0)
        length = np.where(active, energy / np.where(active, curvature, 1.0), 0.0)
        X += length * P
        R -= length * AP
    return X * scale, max_iter


def _fits(n_bytes: float) -> bool:
    available = available_memory()
    return available is None or n_bytes <= available


def _dense_factor(A: sparse.csr_array, why: str) -> DefiniteInverse:
    """By Cholesky's factor in the place of the matrix."""
    try:
        factor = cho_factor(A.toarray().T, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        raise NotDefiniteError("rounding hides the shift of the matrix; raise shift") from error

    def solve(B: Array) -> Array:
        with one_blas_thread():  # memory is what limits it, and threads wait for each other
            return np.asarray(cho_solve(factor, B, check_finite=False))

    return DefiniteInverse(solve, f"dense factor: {why}")
