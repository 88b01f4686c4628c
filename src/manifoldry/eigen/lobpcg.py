"""LOBPCG solver with a multigrid preconditioner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

from manifoldry.eigen.dense import dense_basis
from manifoldry.eigen.krylov import start_block, too_small
from manifoldry.eigen.solver import PairSolver, converged, small_pairs
from manifoldry.eigen.standard import SpectrumEnd, StandardProblem, orthonormal_basis
from manifoldry.util.arrays import like, namespace, to_numpy
from manifoldry.util.threads import ForkSafeLock
from manifoldry.util.typing import Array, Matrix

# pyamg draws from numpy's global generator; this lock serializes its use.
_GLOBAL_GENERATOR = ForkSafeLock()

Preconditioner = Callable[[Array], Array]


def multigrid(M: Matrix, rng: np.random.Generator) -> Preconditioner | None:
    """Return a V-cycle of smoothed aggregation for M, or None without pyamg."""
    try:
        import pyamg
    except ImportError:
        return None
    M = sp.csr_matrix(M)
    # scipy returns 64-bit indices for some sums, which pyamg does not accept.
    M.indices, M.indptr = M.indices.astype(np.int32), M.indptr.astype(np.int32)
    # pyamg estimates spectral radii with numpy's global generator. Seeding that generator is the
    # only way to make pyamg reproducible (hence the exceptions to NPY002); its state is restored.
    with _GLOBAL_GENERATOR:
        state = np.random.get_state()  # noqa: NPY002 (see above)
        np.random.seed(rng.integers(2**32))  # noqa: NPY002 (see above)
        try:
            cycle = pyamg.smoothed_aggregation_solver(M).aspreconditioner(cycle="V")
        finally:
            np.random.set_state(state)  # noqa: NPY002 (see above)
    return lambda R: np.asarray(cycle @ R)


def inverse_diagonal(M: Matrix) -> Preconditioner:
    """Return the Jacobi preconditioner of M."""
    diagonal = M.diagonal()
    inverse = 1 / namespace(diagonal).maximum(diagonal, np.finfo(float).tiny)
    return lambda R: inverse[:, None] * R


@dataclass(frozen=True)
class Lobpcg(PairSolver):
    """Locally optimal block preconditioned conjugate gradients (LOBPCG).

    Suitable for the smallest eigenvalues of sparse semidefinite operators too large to factorize.
    The preconditioner is smoothed-aggregation multigrid if pyamg is installed, otherwise the
    inverse diagonal. There is none if the operator is not known to be semidefinite.

    scipy's ``lobpcg`` breaks down close to convergence, where its basis of iterates, residuals
    and directions becomes linearly dependent; here that basis is orthonormal at every step.

    Parameters
    ----------
    oversampling : int, default=5
        Block columns in addition to the wanted pairs; they speed up convergence.
    max_iter : int, default=200
        Largest number of iterations.
    shift : float, default=1e-10
        Multigrid is built on A + sI. The shift s, relative to ‖A‖, keeps the coarsest grid
        nonsingular.

    See Also
    --------
    ShiftInvertLanczos : for matrices that can be factorized.
    Auto : chooses a solver by the size and structure of the problem.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.eigen import Lobpcg, SpectralProblem
    >>> A = sp.diags_array(np.arange(300.0) + 1)
    >>> problem = SpectralProblem(A, end="smallest", bounds=(0, np.inf))
    >>> Lobpcg().solve(problem, 2, np.random.default_rng(0)).values.round(6)
    array([1., 2.])
    """

    extra_pairs_are_cheap = True
    any_namespace = True

    oversampling: int = 5
    max_iter: int = 200
    shift: float = 1e-10

    def _why_on_host(self, standard: StandardProblem) -> str | None:
        multigrid = _is_preconditioned(standard) and find_spec("pyamg") is not None
        return "its multigrid preconditioner does" if multigrid else None

    def _basis(self, standard: StandardProblem, k: int, rng: np.random.Generator) -> Array:
        block = k + self.oversampling
        if too_small(standard, block):
            return dense_basis(standard, k)
        precondition = _preconditioner(standard, rng, self.shift)
        X = orthonormal_basis(start_block(standard, block, rng))
        values, X, directions = _step(standard, X, X[:, :0], X[:, :0])
        for _ in range(self.max_iter):
            AX = standard.project(standard.apply(X))
            R = AX - X * like(values, X)
            lengths = namespace(R).linalg.norm(R[:, :k], axis=0)
            if converged(standard.norm, values[:k], to_numpy(lengths)):
                break
            values, X, directions = _step(standard, X, precondition(R), directions)
        return X[:, :k]


def _step(
    standard: StandardProblem, X: Array, W: Array, directions: Array
) -> tuple[Array, Array, Array]:
    """Return Ritz values, iterates and directions from the span of X, W and the directions."""
    W = _new_directions(standard, X, W)
    hstack = namespace(X).hstack
    basis = hstack([X, W])
    basis = hstack([basis, _new_directions(standard, basis, directions)])
    values, C = small_pairs(standard, basis.T @ standard.apply(basis))
    b = X.shape[1]
    return values[:b], basis @ C[:, :b], basis[:, b:] @ C[b:, :b]


def _new_directions(standard: StandardProblem, basis: Array, Y: Array) -> Array:
    """Return an orthonormal basis of Y orthogonal to `basis` and to the constraints."""
    for _ in range(2 if Y.shape[1] else 0):
        Y = standard.project(Y)
        Y = orthonormal_basis(Y - basis @ (basis.T @ Y))
    return Y


def _preconditioner(
    standard: StandardProblem, rng: np.random.Generator, shift: float
) -> Preconditioner:
    if not _is_preconditioned(standard):
        return lambda R: R
    if standard.device is not None:
        return inverse_diagonal(standard.A)
    M = standard.A + shift * standard.norm * sp.eye_array(standard.n)
    return multigrid(M, rng) or inverse_diagonal(M)


def _is_preconditioned(standard: StandardProblem) -> bool:
    return standard.end is SpectrumEnd.SMALLEST and standard.sparse and standard.semidefinite
