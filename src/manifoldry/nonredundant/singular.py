"""Leading singular vectors of a matrix given by factors, by its Gram matrix, or sparse."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, eigh, qr, solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse.linalg import LinearOperator, eigsh

from manifoldry.util.typing import Array


def singular_coefficients(
    A: Array, X: Array, diagonal: Array, cut: float, most: int
) -> tuple[Array, Array]:
    """Squares of the singular values of M above `cut` times the largest, and coefficients E.

    M = A Xᵀ + diag(diagonal), restricted to the range of X, and X E are its right singular vectors,
    at most `most`. In single precision, for more than 300 columns of X, vectors may be missing:
    what remains of M without those found has singular values of up to 1.5 times the cutoff.
    """
    G = X.T @ X
    # Columns of unit length: rounding errors are then relative to each of them.
    scale = 1 / np.sqrt(np.maximum(G.diagonal(), np.finfo(X.dtype).tiny))
    R = _cholesky(scale[:, None] * G * scale)
    # Q = X diag(scale) R⁻¹ is orthonormal, and Xᵀ Q = diag(1/scale) Rᵀ.
    Q = solve_triangular(R, (X * scale).T, trans=1, overwrite_b=True, check_finite=False)
    Q *= diagonal.astype(X.dtype)
    Q += (R / scale) @ A.T
    H = Q @ Q.T
    squares, V = _leading_pairs(H, cut)
    kept = squares > cut**2 * squares[0]
    squares, V = squares[kept][:most], V[:, kept][:, :most]
    return squares, scale[:, None] * solve_triangular(R, V, check_finite=False)


def _cholesky(G: Array) -> Array:
    """Upper factor R of G + εI ≈ RᵀR for a correlation matrix G, with ε as small as possible."""
    ridge = 100 * float(np.finfo(G.dtype).eps)
    while True:
        try:
            R, _ = cho_factor(G + G.dtype.type(ridge) * np.eye(len(G), dtype=G.dtype))
            return np.triu(R)
        except np.linalg.LinAlgError:
            ridge *= 10


def _leading_pairs(H: Array, cut: float, *, small: int = 300) -> tuple[Array, Array]:
    """Eigenpairs of H, largest first: at least those above cut² times the largest one.

    For a large H in single precision, Ritz pairs of the range of its first half of columns, which
    are the most important ones, unless H is large outside of that range. With a largest eigenvalue
    of at most 1.25·cut²·λ₁ outside, H has at most 2.25·cut²·λ₁ outside of the pairs above cut²·λ₁.
    """
    if len(H) > small and H.dtype == np.float32:
        Q = qr(H[:, : len(H) // 2], mode="economic", check_finite=False)[0]
        values, V = eigh(Q.T @ (H @ Q), check_finite=False)
        if _largest_outside(H, Q) <= 1.25 * cut**2 * values[-1]:
            return values[::-1], Q @ V[:, ::-1]
    values, V = eigh(H, check_finite=False)
    return values[::-1], V[:, ::-1]


def _largest_outside(H: Array, Q: Array, *, block: int = 8, steps: int = 4) -> float:
    """Estimate of the largest eigenvalue of H on the complement of range(Q).

    By block power iterations. It is a lower bound, and was within 10 % of the eigenvalue.
    """
    X = np.random.default_rng(0).standard_normal((len(H), block)).astype(H.dtype)
    for _ in range(steps):
        X = np.linalg.qr(X - Q @ (Q.T @ X))[0]
        HX = H @ X
        largest = float(np.linalg.norm(X.T @ HX, 2))
        X = HX
    return largest


def leading_of_gram(G: Array, cut: float, most: int, *, large: int = 500) -> tuple[Array, Array]:
    """Eigenpairs of G above cut² times the largest eigenvalue, at most `most`, largest first.

    Above order `large`, directions below 1e-5 times the cutoff are removed first, which takes less
    time than a decomposition.
    """
    W = _rank_revealing(G, 1e-5 * cut**2) if len(G) > large else None
    values, V = eigh(G if W is None else W @ W.T, check_finite=False)
    kept = values > cut**2 * values[-1]
    values, V = values[kept][::-1][:most], V[:, kept][:, ::-1][:, :most]
    return values, V if W is None else W.T @ (V / np.sqrt(values))


def _rank_revealing(G: Array, rounding: float) -> Array:
    """W (k, m) with G ≈ WᵀW, from a Cholesky factor with pivoting."""
    R, order, rank, _ = dpstrf(G, tol=rounding * float(G.diagonal().max()))
    W = np.empty((rank, len(G)))
    W[:, order - 1] = np.triu(R)[:rank]
    return W


def leading_of_sparse(S: sparse.csr_array, cut: float, most: int) -> tuple[Array, Array]:
    """The same for SᵀS of a large sparse S, without forming it."""
    n, k, T = S.shape[0], 64, sparse.csr_array(S.T)
    gram = LinearOperator((n, n), matvec=lambda x: T @ (S @ x), dtype=np.float64)
    while True:
        k = min(k, n - 1)
        values, V = eigsh(gram, k, which="LA", v0=np.ones(n))
        kept = values > cut**2 * values[-1]
        if not kept[0] or k >= min(most, n - 1):
            return values[kept][::-1][:most], V[:, kept][:, ::-1][:, :most]
        k *= 2
