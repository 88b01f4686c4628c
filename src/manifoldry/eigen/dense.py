"""Dense eigendecomposition: the reference every other solver is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, qr
from scipy.linalg.lapack import dormqr

from manifoldry.eigen.gram import Gram
from manifoldry.eigen.solver import PairSolver
from manifoldry.eigen.standard import StandardProblem, orthonormal_basis
from manifoldry.util.typing import Array

# Eigenvalues of FᵀF above this share of the largest give vectors F w / σ that rounding spares.
_CLEAR = 1e-10
# Eigenvalues of a Gram operator below this fraction of the largest belong to its null space.
_NULL = 1e-14
# Through FᵀF alone they come with that much error, and dividing by σ would blow it up.
_NULL_IMPLICIT = 1e-11


@dataclass(frozen=True)
class Dense(PairSolver):
    """Solve with a dense n × n matrix, or with the short side of a Gram factor.

    Use it up to a few thousand points: n² memory, n³ time, no convergence to worry about.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import Dense, SpectralProblem
    >>> problem = SpectralProblem(np.diag([4.0, 1.0, 3.0]), end="largest")
    >>> Dense().solve(problem, 2, np.random.default_rng(0)).values
    array([4., 3.])
    """

    def _pairs(
        self, standard: StandardProblem, k: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        A = standard.A
        if isinstance(A, Gram) and A.factor.shape[1] < A.factor.shape[0]:
            return gram_pairs(standard, k, rng)
        return dense_pairs(standard, k)


def dense_pairs(standard: StandardProblem, k: int) -> tuple[Array, Array]:
    """Return k pairs of the dense operator in the orthogonal complement of Q.

    Householder reflections H send Q to the first q axes, so the trailing block of HᵀAH *is* the
    compressed operator. Adding τQQᵀ with a large τ would do as well, but at a rounding of eps·τ.
    """
    A, Q = standard.toarray(), standard.Q
    q = Q.shape[1]
    if q == 0:
        return _extreme(A, standard.end, k)
    (reflectors, tau), _ = qr(Q, mode="raw", check_finite=False)
    A = _reflect(reflectors, tau, _reflect(reflectors, tau, A, "T").T, "T")
    values, inner = _extreme(A[q:, q:], standard.end, k)
    padded = np.vstack([np.zeros((q, k)), inner])
    return values, _reflect(reflectors, tau, padded, "N")


def _reflect(reflectors: Array, tau: Array, C: Array, trans: str) -> Array:
    """Return Hᵀ C ("T") or H C ("N") for H stored as Householder reflectors."""
    C = np.asfortranarray(C)
    lwork = max(1, C.shape[1]) * 64
    out, _, info = dormqr("L", trans, reflectors, tau, C, lwork)
    if info != 0:
        raise np.linalg.LinAlgError(f"LAPACK dormqr returned {info}")
    return np.asarray(out)


def _extreme(A: Array, end: str, k: int) -> tuple[Array, Array]:
    """Return k pairs of a dense matrix from one end of its spectrum."""
    n = A.shape[0]
    first, last = (0, k - 1) if end == "smallest" else (n - k, n - 1)
    return eigh(A, subset_by_index=(first, last), check_finite=False)


def gram_pairs(standard: StandardProblem, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return k pairs of F Fᵀ from the short side of F (n > m)."""
    F = standard.A.projected(standard.Q)
    if standard.end == "largest" and k <= F.small_side:
        values, W = _extreme(F.small_matrix(), "largest", k)
        if values[0] > _CLEAR * values[-1]:
            return values, (F.factor @ W) / np.sqrt(values)
    values, U = _range_pairs(F)  # ascending
    missing = standard.dimension - len(values)
    if standard.end == "largest":
        zeros = min(missing, max(0, k - len(values)))
        values, U = values[::-1][:k], U[:, ::-1]
        kept = U[:, : len(values)]
    else:
        zeros = min(missing, k)
        values = values[: k - zeros]
        kept = U[:, : len(values)]
    null = _orthogonal_to(np.hstack([standard.Q, U]), zeros, rng)
    return np.concatenate([values, np.zeros(zeros)]), np.hstack([kept, null])


def _range_pairs(F: Gram) -> tuple[Array, Array]:
    """Return all pairs of F Fᵀ with a nonzero eigenvalue, ascending."""
    if F.explicit:
        # F = QR, so F Fᵀ = Q (R Rᵀ) Qᵀ: orthonormal vectors without a division by small σ.
        basis, R = qr(F.factor, mode="economic", check_finite=False)
        values, W = eigh(R @ R.T)
    else:
        values, W = eigh(F.small_matrix())
    kept = values > (_NULL if F.explicit else _NULL_IMPLICIT) * max(values[-1], 0.0)
    values, W = values[kept], W[:, kept]
    vectors = basis @ W if F.explicit else (F.factor @ W) / np.sqrt(values)
    return values, vectors


def _orthogonal_to(U: Array, count: int, rng: np.random.Generator) -> Array:
    """Return orthonormal columns orthogonal to the orthonormal columns of U."""
    X: Array = rng.standard_normal((U.shape[0], count))
    for _ in range(2):
        X = orthonormal_basis(X - U @ (U.T @ X))
    return X
