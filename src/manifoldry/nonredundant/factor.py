"""Pivoted Cholesky factor of a Gaussian kernel, accurate for a smoother with that kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.sparse.linalg import svds

from manifoldry.nonredundant.dense import triangular_solution
from manifoldry.util.arrays import like, namespace, to_numpy
from manifoldry.util.typing import Array, IntArray

# Factors that may leave out at least this fraction are computed in single precision, which takes a
# third of the time.
_SINGLE_FROM = 1e-3
# Largest ‖z‖²/2 for which exponents are computed in single precision.
_SINGLE_EXPONENT = 500.0
# Minimum number of pivot candidates drawn together. Those with less than `_MIN_PIVOT` of the
# block's largest residual are dropped.
_SMALLEST_BLOCK, _MIN_PIVOT = 16, 0.25
# Number of columns beyond which a larger tolerance may hold.
_MANY_COLUMNS = 500
# Minimum number of points drawn to estimate what is left out.
_FEWEST_DRAWS = 256


@dataclass(frozen=True, eq=False)
class KernelFactor:
    """K ≈ L Lᵀ for a Gaussian kernel K, with the residual diagonal.

    On a device these are arrays of it, except the pivots.
    """

    L: Array  # (n, m)
    pivots: IntArray  # (m,): points at whose columns K = L Lᵀ, in the order of the columns of L
    residual: Array  # (n,): diagonal of K − L Lᵀ
    left_out: float
    """Estimate of the largest eigenvalue of diag(K w)⁻¹ (K − L Lᵀ) diag(w)."""

    def smoothed(self, weights: Array, values: Array) -> Array:
        """Kernel sums K diag(w) X, with the residual diagonal added to L Lᵀ."""
        weighted = (weights * values.T).T
        low = self.L @ (self.L.T @ weighted.astype(self.L.dtype))
        return (low.T.astype(np.float64) + self.residual * weighted.T).T


def gaussian_kernel(Z: Array, centers: Array, dtype: type = np.float64) -> Array:
    """exp(−‖z − c‖²/2), (n, m).

    Exponents are computed in double precision if points are so far away that the error in single
    precision could exceed about 1e-4.
    """
    xp = namespace(Z)
    near, far = (-0.5 * (points**2).sum(axis=1) for points in (Z, centers))
    single = dtype is np.float64 or min(map(_least, (near, far))) > -_SINGLE_EXPONENT
    precision = dtype if single else np.float64
    # zᵀc − ‖z‖²/2 − ‖c‖²/2 as one matrix product
    left: Array = xp.column_stack([Z, near, xp.ones(len(Z))]).astype(precision, copy=False)
    right: Array = xp.column_stack([centers, xp.ones(len(centers)), far]).astype(
        precision, copy=False
    )
    exponents = left @ right.T
    xp.minimum(exponents, 0.0, out=exponents)
    exponents = exponents.astype(dtype, copy=False)
    return xp.exp(exponents, out=exponents)


def _least(values: Array) -> float:
    """The smallest value, or zero if there is none."""
    return float(values.min()) if len(values) else 0.0


def kernel_factor(
    Z: Array, weights: Array, tol: float, max_columns: int, *, tol_of_many: float = 0.0
) -> KernelFactor:
    """Factor of the kernel of `Z` (n, q) that leaves out `tol`, or that has `max_columns` columns.

    What is left out of the smoother diag(K w)⁻¹ K diag(w) has no eigenvalue above `tol` (above
    `tol_of_many`, if that is larger, for more than 500 columns), as far as random samples of its
    rows and columns show. (The trace is a worse measure: it consists of thousands of small
    eigenvalues.)

    Randomly pivoted (Chen, Epperly, Tropp & Webber 2023) in blocks: candidates are drawn with
    probabilities proportional to their residual in the smoother, and those that other candidates of
    the block approximate well are dropped.
    """
    n, rng, xp = len(Z), np.random.default_rng(0), namespace(Z)
    dtype = np.float32 if tol >= _SINGLE_FROM else np.float64
    L, residual = xp.empty((n, max_columns), dtype=dtype, order="F"), xp.ones(n)
    pivots, m = np.empty(max_columns, dtype=np.intp), 0
    total, checked_from = xp.full(n, float(weights.sum())), 1.0
    while True:
        if m > _MANY_COLUMNS:
            tol = max(tol, tol_of_many)
        # Diagonal of what is left out of the smoother; samples are drawn on the host.
        share = to_numpy(weights * residual / total)
        left_out, draws = float(share.sum()), max(_FEWEST_DRAWS, m // 2)
        if m and left_out <= tol:  # the sum of all eigenvalues; without columns totals are unknown
            break
        drawn = rng.choice(n, draws, p=share / left_out)
        room = max_columns - m
        if m >= checked_from or room == 0:
            left_out = _left_out(Z, L[:, :m], residual, drawn, share)
            if left_out <= tol or room == 0:
                break
            # One more block does not reduce it to a quarter.
            checked_from = (1.5 if left_out > 4 * tol else 1.0) * m
        candidates = np.unique(drawn[: max(_SMALLEST_BLOCK, m // 4)])
        R, kept = _pivots(Z, L[:, :m], like(candidates, Z), room)
        rank, pivots[m : m + len(kept)] = len(kept), candidates[kept]
        new, R = like(candidates[kept], Z), like(R.astype(dtype), Z)
        C = _residual_kernel(Z, Z[new], L[:, :m], L[new, :m], dtype)
        columns = triangular_solution(R, C.T, transposed=True).T
        L[:, m : m + rank] = columns
        explained = xp.einsum("ij,ij->i", columns, columns, dtype=np.float64)
        residual = xp.maximum(residual - explained, 0.0)
        residual[new] = 0.0
        m += rank
        sums = L[:, :m] @ (L[:, :m].T @ weights.astype(dtype))
        total = xp.maximum(sums + residual * weights, weights)  # each point counts for itself
    return KernelFactor(L[:, :m], pivots[:m], residual, left_out)


def _residual_kernel(
    Z: Array, centers: Array, L: Array, of_centers: Array, dtype: type = np.float64
) -> Array:
    """The kernel without what the rows of L of both explain."""
    K = gaussian_kernel(Z, centers, dtype)
    return K - L @ of_centers.T if L.shape[1] else K


def _pivots(Z: Array, L: Array, candidates: Array, room: int) -> tuple[Array, IntArray]:
    """Factor of the residual kernel of some candidates, and their positions, in this order.

    The small matrix is factorized on the host.
    """
    near, known = Z[candidates], L[candidates]
    S = _residual_kernel(near, near, known, known)
    S = to_numpy((S + S.T) / 2)
    R, order, rank, _ = dpstrf(S, tol=max(_MIN_PIVOT * S.diagonal().max(), 1e-12))
    rank = min(rank, room)
    return np.triu(R[:rank, :rank]), order[:rank] - 1


def _left_out(Z: Array, L: Array, residual: Array, drawn: IntArray, share: Array) -> float:
    """Estimate of the largest eigenvalue of what L leaves out, from points drawn at random.

    It is at least the largest entry of the diagonal, `share`. Samples alone would miss what is left
    out at isolated points, since few points are drawn both as rows and as columns.
    """
    half = len(drawn) // 2
    rows, columns = (np.unique(d, return_counts=True) for d in (drawn[:half], drawn[half:]))
    i, j = like(rows[0], Z), like(columns[0], Z)
    S = to_numpy(_residual_kernel(Z[i], Z[j], L[i], L[j], L.dtype.type))
    left, right = (
        Draws(to_numpy(residual[k]), counts).scale for k, (_, counts) in ((i, rows), (j, columns))
    )
    scaled = left[:, None] * S * right
    # No eigenvalue of the smoother exceeds one.
    estimate = float(share.sum()) * largest_singular_value(scaled)
    return min(1.0, max(estimate, float(share.max())))


@dataclass(frozen=True, eq=False)
class Draws:
    """Rows of a matrix drawn with probabilities proportional to its diagonal."""

    diagonal: Array
    counts: IntArray

    @property
    def scale(self) -> Array:
        """Factor of each row."""
        tiny = np.finfo(float).tiny
        return np.sqrt(self.counts / np.maximum(self.diagonal, tiny) / self.counts.sum())


def largest_singular_value(S: Array) -> float:
    """Largest singular value, to 5 %."""
    if not S.any():  # svds refuses it
        return 0.0
    if min(S.shape) < 8:
        return float(np.linalg.norm(S, 2))
    start = np.ones(min(S.shape), dtype=S.dtype)
    return float(svds(S, 1, tol=0.05, ncv=8, v0=start, return_singular_vectors=False)[0])
