"""The inverse of a sparse positive definite matrix, by whichever route is cheapest."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from manifoldry.eigen.inverse import NotDefiniteError, ShiftedInverse, estimated_fill
from manifoldry.eigen.preconditioner import Preconditioner, inverse_diagonal, multigrid
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import available_memory

Solve = Callable[[Array], Array]

# Order up to which factorising needs no thought, and the share of entries from which it is dense.
_SMALL, _DENSE = 1500, 0.1
# Order up to which a dense factor (200 MB) beats conjugate gradients after some 40 solves.
_MEDIUM = 5000
# Conjugate gradients stop at this residual, relative to the right-hand side.
_RESIDUAL = 1e-4
# Iterations with the bare diagonal that cost less than solving with factors.
_QUICK = 40
# Entries of a factor, as a multiple of the matrix's own, beyond which it is not made.
_FILL = 20.0
_BYTES_PER_ENTRY = 26  # of a factor and its mirror
_MOST = 200  # iterations at all


@dataclass(frozen=True, eq=False)
class DefiniteInverse:
    """A way to solve with a matrix, and why that one."""

    solve: Solve  # (n, d) to (n, d), in double precision
    reason: str


def definite_inverse(A: sparse.csr_array) -> DefiniteInverse:
    """Return how to solve with A, positive definite, for many right-hand sides to come.

    Graphs of low-dimensional manifolds are badly conditioned, but their factors hardly fill in,
    with 90 neighbours as little as with 10 (roll of 20 000 points: 1 s, then 0.02 s a solve).
    Graphs of high-dimensional data, known by how few iterations conjugate gradients need with no
    better preconditioner than the diagonal, fill in completely: so up to 5000 points they get a
    dense factor (MNIST, 5000 points, 90 neighbours, one core: 2.4 s, then 21 ms a solve, iterations
    76 ms), beyond that the iterations. Multigrid is for the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> inverse = definite_inverse(sparse.csr_array(np.diag([1.0, 2.0])))
    >>> inverse.solve(np.ones((2, 1))).ravel()
    array([1. , 0.5])
    """
    n = A.shape[0]
    if n <= _SMALL:
        return _factorised(A, f"{n} points")
    rng = np.random.default_rng(0)
    needed = _iterations(A, inverse_diagonal(A), rng)
    if needed <= _QUICK and n <= _MEDIUM and _fits(8.0 * n * n):
        return _dense_factor(A, f"{n} points of many dimensions")
    if needed <= _QUICK:
        why = f"conjugate gradients: {needed} iterations suffice with the diagonal"
        return _iterated(A, inverse_diagonal(A), why)
    fill = estimated_fill(A)
    sizes = f"{fill:.1e} entries expected in a factor of {A.nnz:.1e}"
    if fill <= _FILL * A.nnz and _fits(fill * _BYTES_PER_ENTRY):
        return _factorised(A, sizes)
    cycle = multigrid(A, rng)
    if cycle is None:
        why = f"conjugate gradients with the diagonal, {_MOST} iterations at most: {sizes}"
        return _iterated(A, inverse_diagonal(A), f"{why}, and no multigrid (install pyamg)")
    return _iterated(A, cycle, f"conjugate gradients with multigrid: {sizes}")


def conjugate_gradients(
    A: Matrix, B: Array, precondition: Preconditioner, most: int
) -> tuple[Array, int]:
    """Return X with A·X ≈ B, every column on its own, and the number of iterations.

    However early it stops, ⟨b, x⟩ > 0 for every column b ≠ 0, since x minimises the energy on a
    space that holds the preconditioned b.
    """
    scale = np.abs(B).max(axis=0)
    scale[scale == 0] = 1.0
    R = B / scale
    X, P, energy = np.zeros_like(R), np.zeros_like(R), np.ones(R.shape[1])
    wanted = _RESIDUAL * np.linalg.norm(R, axis=0)
    for iteration in range(most):
        open_ = np.linalg.norm(R, axis=0) > wanted
        if not open_.any():
            return X * scale, iteration
        Z = precondition(R)
        before, energy = energy, np.where(open_, (R * Z).sum(axis=0), 1.0)
        P = Z + (energy / before if iteration else 0.0) * P
        AP = A @ P
        curvature = (P * AP).sum(axis=0)
        length = np.where(open_, energy / np.where(open_, curvature, 1.0), 0.0)
        X += length * P
        R -= length * AP
    return X * scale, most


def _iterations(A: Matrix, precondition: Preconditioner, rng: np.random.Generator) -> int:
    """Number of iterations on a random right-hand side, or one more than are quick."""
    B = rng.standard_normal((A.shape[0], 1))
    return conjugate_gradients(A, B - B.mean(), precondition, most=_QUICK + 1)[1]


def _fits(n_bytes: float) -> bool:
    available = available_memory()
    return available is None or n_bytes <= available


def _factorised(A: sparse.csr_array, why: str) -> DefiniteInverse:
    if A.nnz > _DENSE * A.shape[0] ** 2:
        return _dense_factor(A, why)
    factor = ShiftedInverse(A, 0.0, "smallest", trusted=True)
    return DefiniteInverse(factor.solve, f"sparse factor: {why}")


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


def _iterated(A: Matrix, precondition: Preconditioner, why: str) -> DefiniteInverse:
    return DefiniteInverse(lambda B: conjugate_gradients(A, B, precondition, _MOST)[0], why)
