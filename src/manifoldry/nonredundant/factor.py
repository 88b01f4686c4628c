"""Pivoted Cholesky factor of a Gaussian kernel, accurate for a smoother with that kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from manifoldry.util.typing import Array, IntArray

# Factors that may leave out at least this fraction are computed in single precision, which takes a
# third of the time.
_SINGLE_FROM = 1e-3
# Minimum number of pivot candidates drawn together. Those with less than `_MIN_PIVOT` of the
# block's largest residual are dropped.
_SMALLEST_BLOCK, _MIN_PIVOT = 16, 0.25


@dataclass(frozen=True, eq=False)
class KernelFactor:
    """K ≈ L Lᵀ for a Gaussian kernel K, with the residual diagonal."""

    L: Array  # (n, m)
    residual: Array  # (n,): diagonal of K − L Lᵀ
    left_out: float
    """Estimate of the largest eigenvalue of diag(K w)⁻¹ (K − L Lᵀ) diag(w)."""

    def smoothed(self, weights: Array, values: Array) -> Array:
        """Kernel sums K diag(w) X, with the residual diagonal added to L Lᵀ."""
        weighted = (weights * values.T).T
        low = self.L @ (self.L.T @ weighted.astype(self.L.dtype))
        return np.asarray(low.T.astype(np.float64) + self.residual * weighted.T).T


def gaussian_kernel(Z: Array, centers: Array, dtype: type = np.float64) -> Array:
    """exp(−‖z − c‖²/2), (n, m); exponents are computed in double precision."""
    squares = (Z**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1) - 2 * (Z @ centers.T)
    np.maximum(squares, 0.0, out=squares)
    squares *= -0.5
    squares = squares.astype(dtype, copy=False)
    return np.asarray(np.exp(squares, out=squares))


def kernel_factor(Z: Array, weights: Array, tol: float, max_columns: int) -> KernelFactor:
    """Factor of the kernel of `Z` (n, q) that leaves out `tol`, or that has `max_columns` columns.

    What is left out of the smoother diag(K w)⁻¹ K diag(w) has no eigenvalue above `tol`, as far as
    a random sample of it shows. (The trace is a worse measure: it consists of thousands of small
    eigenvalues.)

    Randomly pivoted (Chen, Epperly, Tropp & Webber 2023) in blocks: candidates are drawn with
    probabilities proportional to their residual in the smoother, and those that other candidates of
    the block approximate well are dropped.
    """
    n, rng = len(Z), np.random.default_rng(0)
    dtype = np.float32 if tol >= _SINGLE_FROM else np.float64
    L, residual = np.empty((n, max_columns), dtype=dtype, order="F"), np.ones(n)
    m = 0
    total = np.full(n, weights.sum())
    while True:
        share = weights * residual / total  # diagonal of what is left out of the smoother
        left_out, draws = float(share.sum()), max(_SMALLEST_BLOCK, m // 4)
        if left_out <= tol:  # the sum of all eigenvalues
            break
        drawn = rng.choice(n, draws, p=share / left_out)
        distinct, counts = np.unique(drawn, return_counts=True)
        S = gaussian_kernel(Z[distinct], Z[distinct]) - (L[distinct, :m] @ L[distinct, :m].T)
        # No eigenvalue of the smoother exceeds one.
        left_out = min(1.0, sampled_norm(S, residual[distinct], counts, left_out))
        room = max_columns - m
        if left_out <= tol or room == 0:
            break
        S = (S + S.T) / 2
        R, order, rank, _ = dpstrf(S, tol=max(_MIN_PIVOT * S.diagonal().max(), 1e-12))
        rank = min(rank, room)
        new, R = distinct[order[:rank] - 1], np.triu(R[:rank, :rank]).astype(dtype)
        C = gaussian_kernel(Z, Z[new], dtype) - L[:, :m] @ L[new, :m].T
        columns = solve_triangular(R, C.T, trans="T", check_finite=False).T
        L[:, m : m + rank] = columns
        explained = np.einsum("ij,ij->i", columns, columns, dtype=np.float64)
        residual = np.maximum(residual - explained, 0.0)
        residual[new] = 0.0
        m += rank
        sums = L[:, :m] @ (L[:, :m].T @ weights.astype(dtype))
        total = np.maximum(sums + residual * weights, weights)  # each point counts for itself
    return KernelFactor(L[:, :m], residual, left_out)


def sampled_norm(S: Array, diagonal: Array, counts: IntArray, trace: float) -> float:
    """Estimate of the largest eigenvalue of a matrix from its entries `S` at random points.

    The points are drawn, `counts` times each, with probabilities proportional to the diagonal of
    the matrix, which sums to `trace`; `S` and `diagonal` may have other scales in each row and
    column than the matrix. The estimate is too high rather than too low: the more draws there are
    for the trace, the less.
    """
    scale = np.sqrt(counts / np.maximum(diagonal, np.finfo(float).tiny))
    values = np.linalg.eigvalsh(scale[:, None] * S * scale)
    return float(values[-1]) * trace / counts.sum()
