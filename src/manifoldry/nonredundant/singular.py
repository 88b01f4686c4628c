"""Leading singular vectors of a matrix given by factors, by its Gram matrix, or sparse."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.linalg.lapack import dpstrf
from scipy.sparse.linalg import LinearOperator, eigsh

from manifoldry.nonredundant.dense import (
    ascending_pairs,
    orthonormal_range,
    triangular_solution,
    upper_factor,
)
from manifoldry.util.arrays import like, namespace, to_numpy
from manifoldry.util.typing import Array


def singular_coefficients(
    A: Array, X: Array, diagonal: Array, cut: float, most: int
) -> tuple[Array, Array]:
    """Squares of the singular values of M above `cut` times the largest, and coefficients E.

    Arguments and coefficients may be arrays of a device; the squares are on the host.
    M = A Xᵀ + diag(diagonal), restricted to the range of X, and X E are its right singular vectors,
    at most `most`. In single precision, for more than 300 columns of X, vectors may be missing:
    what remains of M without those found has singular values of up to 1.5 times the cutoff.
    """
    G, xp = X.T @ X, namespace(X)
    # Columns of unit length: rounding errors are then relative to each of them.
    scale = 1 / xp.sqrt(xp.maximum(G.diagonal(), np.finfo(X.dtype).tiny))
    R = _cholesky(scale[:, None] * G * scale)
    # Q = X diag(scale) R⁻¹ is orthonormal, and Xᵀ Q = diag(1/scale) Rᵀ.
    Q = triangular_solution(R, (X * scale).T, transposed=True)
    Q *= diagonal.astype(X.dtype)
    Q += (R / scale) @ A.T
    H = Q @ Q.T
    squares, V = _leading_pairs(H, cut)
    count = min(most, int((squares > cut**2 * squares[0]).sum()))
    return squares[:count], scale[:, None] * triangular_solution(R, V[:, :count].copy())


def _cholesky(G: Array) -> Array:
    """Upper factor R of G + εI ≈ RᵀR for a correlation matrix G, with ε as small as possible."""
    ridge = 100 * float(np.finfo(G.dtype).eps)
    while True:
        try:
            return upper_factor(G + G.dtype.type(ridge) * namespace(G).eye(len(G), dtype=G.dtype))
        except np.linalg.LinAlgError:
            ridge *= 10


def _leading_pairs(H: Array, cut: float, *, small: int = 300) -> tuple[Array, Array]:
    """Eigenpairs of H, largest first: at least those above cut² times the largest one.

    For a large H in single precision, Ritz pairs of the range of its first half of columns, which
    are the most important ones, unless H is large outside of that range. With a largest eigenvalue
    of at most 1.25·cut²·λ₁ outside, H has at most 2.25·cut²·λ₁ outside of the pairs above cut²·λ₁.
    """
    if len(H) > small and H.dtype == np.float32:
        Q = orthonormal_range(H[:, : len(H) // 2])
        values, V = _on_host(*ascending_pairs(Q.T @ (H @ Q)))
        if _largest_outside(H, Q) <= 1.25 * cut**2 * values[-1]:
            return values[::-1], Q @ V[:, ::-1]
    values, V = _on_host(*ascending_pairs(H))
    return values[::-1], V[:, ::-1]


def _on_host(values: Array, vectors: Array) -> tuple[Array, Array]:
    return to_numpy(values), vectors


def _largest_outside(H: Array, Q: Array, *, block: int = 8, steps: int = 4) -> float:
    """Estimate of the largest eigenvalue of H on the complement of range(Q).

    By block power iterations. It is a lower bound, and was within 10 % of the eigenvalue.
    """
    X = np.random.default_rng(0).standard_normal((len(H), block)).astype(H.dtype)
    X = like(X, H)
    for _ in range(steps):
        X = namespace(H).linalg.qr(X - Q @ (Q.T @ X))[0]
        HX = H @ X
        largest = float(np.linalg.norm(to_numpy(X.T @ HX), 2))
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
