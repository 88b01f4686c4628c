"""ARPACK behind one door: start vector, random source, partial results."""

from __future__ import annotations

from inspect import signature

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from manifoldry._typing import Array
from manifoldry.eigen.solver import SolverFailed
from manifoldry.eigen.standard import StandardProblem

# scipy 1.17 draws ARPACK's restart vectors from `rng`; earlier ones have a fixed source.
_TAKES_RNG = "rng" in signature(eigsh).parameters
# ARPACK needs room beyond the wanted pairs; below this a dense solve is cheaper anyway.
SMALLEST_ORDER = 50


def too_small(standard: StandardProblem, k: int) -> bool:
    """Whether an iteration for k pairs would span most of the space: then it is solved densely."""
    return standard.dimension <= max(SMALLEST_ORDER, 4 * k)


def start_block(standard: StandardProblem, columns: int, rng: np.random.Generator) -> Array:
    """Return random columns (n, columns) inside the complement of Q."""
    return standard.project(rng.standard_normal((standard.n, columns)))


def largest_vectors(
    operator: LinearOperator,
    k: int,
    start: Array,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    basis: int | None = None,
) -> Array:
    """Return k vectors for the largest eigenvalues; some may be random if not all converge."""
    options = {"rng": rng} if _TAKES_RNG else {}
    ncv = None if basis is None else min(operator.shape[0], basis)
    try:
        _, V = eigsh(
            operator, k, which="LA", v0=start, tol=tol, maxiter=max_iter, ncv=ncv, **options
        )
    except ArpackNoConvergence as partial:
        V = partial.eigenvectors
        if V.shape[1] == 0:
            raise SolverFailed(
                f"Lanczos found none of {k} pairs of order {operator.shape[0]} in "
                f'max_iter={max_iter} restarts; allow more, or pass eigen_solver="auto"'
            ) from partial
        # Random columns leave a large residual behind: the check downstream will see it.
        return np.hstack([V, rng.standard_normal((V.shape[0], k - V.shape[1]))])
    return np.asarray(V)


def locked(operator: LinearOperator, V: Array) -> LinearOperator:
    """Return the operator with the eigenvectors V taken out (their eigenvalue becomes 0)."""

    def product(X: Array) -> Array:
        Y = operator @ (X - V @ (V.T @ X))
        return Y - V @ (V.T @ Y)

    return LinearOperator(operator.shape, matvec=product, matmat=product, dtype=np.float64)


def with_missed_copies(
    operator: LinearOperator,
    V: Array,
    standard: StandardProblem,
    max_iter: int,
    rng: np.random.Generator,
) -> Array:
    """Return V together with eigenvectors of larger eigenvalues that V lacks.

    A Krylov space of one start vector holds one vector per eigenspace; further copies come in by
    rounding only, and plain Lanczos was seen to stop before they did (10 equal components: 4 runs
    of 10). A run on the rest of the space sees such a copy at its very top. The operator must be
    positive, so that what is locked cannot pass for a top eigenvalue.
    """
    k = V.shape[1]
    for _ in range(k):
        V = np.linalg.qr(V)[0]
        kth = np.linalg.eigvalsh(V.T @ (operator @ V))[-k]
        start = start_block(standard, 1, rng)[:, 0]
        rest = locked(operator, V)
        try:
            extra = largest_vectors(rest, 1, start - V @ (V.T @ start), 1e-7, max_iter, rng)
        except SolverFailed:
            break  # nothing stands out of the rest
        extra = extra - V @ (V.T @ extra)
        extra /= np.linalg.norm(extra)
        if float((extra.T @ (operator @ extra)).item()) <= kth * (1 + 1e-12):
            break
        V = np.hstack([V, extra])
    return V
