"""Functions that span the row space of a kernel smoother.

A kernel smoother on given coordinates is an n × n matrix P of numerically low rank (Blau & Michaeli
2017). Its right singular vectors are computed from a pivoted Cholesky factor of the kernel,
K ≈ L Lᵀ with L of shape (n, m), in O(n·m²) time and O(n·m) memory. For up to a few hundred points
the matrix itself is decomposed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import eigh, solve_triangular, svd
from scipy.linalg.lapack import dpstrf

from manifoldry.util.typing import Array, IntArray

Smoother = Literal["nadaraya_watson", "local_linear"]
SMOOTHERS = ("nadaraya_watson", "local_linear")

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class FactorOptions:
    """When to use a low-rank factor of the kernel matrix, and how accurate it is."""

    # Number of points up to which the full matrix is decomposed, which does not depend on the order
    # of rows.
    exact_up_to: int = 500
    # Maximum number of columns of a factor: half the number of points for at most
    # `half_columns_up_to` points, else `column_limit`. On MNIST more columns doubled the time and
    # changed the coordinates without improving them.
    half_columns_up_to: int = 3000
    column_limit: int = 300
    # Fraction of the trace of the kernel that a factor may leave out. At 1e-3 the next coordinate
    # agrees with that of the full matrix to 1e-4 (MNIST, strips, rolls; n = 3000); at 1e-2 only to
    # 2e-2.
    trace_tolerance: float = 1e-3
    smallest_block: int = 16  # minimum number of pivot candidates drawn together
    # Candidates with less than this fraction of the block's largest residual are dropped.
    min_pivot_ratio: float = 0.25
    rounding: float = 1e-10  # eigenvalues below this fraction of the largest are zero

    def max_columns(self, n: int) -> int:
        """Maximum number of columns of a factor for `n` points."""
        return self.column_limit if n > self.half_columns_up_to else n // 2


DEFAULT_FACTOR = FactorOptions()


@dataclass(frozen=True, eq=False)
class SmootherFunctions:
    """Functions of the coordinates that span what a smoother can predict.

    Each is a sum of Gaussians around `pivots`, multiplied by 1, z₁, z₂, ... for a local linear
    smoother, so that it can be evaluated anywhere.
    """

    width: Array  # (q,): units of the coordinates
    pivots: Array  # (m, q), in these units
    coefficients: Array  # (m, r), or ((q + 1)·m, r) for a local linear smoother
    singular_values: Array  # of the smoother, decreasing, including those below the cutoff

    def __call__(self, F: Array) -> Array:
        """Values (n, r) at coordinates `F` (n, q)."""
        Z = F / self.width
        return _with_slopes(_kernel(Z, self.pivots), Z, self.coefficients) @ self.coefficients

    @property
    def count(self) -> int:
        """Number of functions."""
        return int(self.coefficients.shape[1])


def smoother_functions(
    F: Array,
    mass: Array,
    bandwidth: float,
    smoother: Smoother = "nadaraya_watson",
    *,
    cut: float = 0.03,
    most: int | None = None,
    factor: FactorOptions = DEFAULT_FACTOR,
) -> SmootherFunctions:
    """Functions that span what a smoother on the columns of `F` can predict.

    The smoother has weights P_jk ∝ exp(−‖z_j − z_k‖²/2)·mass_k, where z are the coordinates over
    `bandwidth` times their root mean square. The functions v are the right singular vectors of P
    with respect to the mass with σ > cut·σ₁ (Blau & Michaeli's cutoff), at most the `most` leading
    ones. If Σ mass·v·f = 0 for all of them, P f is nearly zero.
    """
    n, q = F.shape
    width = bandwidth * np.sqrt(q * (mass @ F**2) / mass.sum())
    width[width == 0] = 1.0  # a coordinate that is constant
    Z, linear = F / width, smoother == "local_linear"
    if n <= factor.exact_up_to:
        return _exact(Z, mass, width, linear, cut, most)
    columns = max(2, factor.max_columns(n) // (q + 1) if linear else factor.max_columns(n))
    L, left, pivots = _pivoted_cholesky(Z, mass, columns, factor)
    constant, slope = _fit(lambda values: _smoothed(L, left, mass, values), Z, linear)
    A = np.hstack([constant[:, None] * L, *(b[:, None] * L for b in slope.T)])
    B = np.hstack([L, *(z[:, None] * L for z in Z.T[: slope.shape[1]])])
    # A (B·mass)ᵀ = P. B·T is an orthonormal basis with respect to the mass, in which the singular
    # vectors are E.
    w, U = eigh(B.T @ (mass[:, None] * B), check_finite=False)
    real = w > factor.rounding * w[-1]
    T, H = U[:, real] / np.sqrt(w[real]), U[:, real] * np.sqrt(w[real])
    squares, E = eigh(H.T @ (A.T @ A) @ H, check_finite=False)
    sigma = np.sqrt(np.maximum(squares, 0.0))
    few = len(sigma) if most is None else most
    kept = T @ E[:, sigma > cut * sigma[-1]][:, ::-1][:, :few]
    # L = K(·, pivots)·L_P⁻ᵀ holds at new points too.
    blocks = [
        solve_triangular(L[pivots], part, lower=True, trans="T", check_finite=False)
        for part in np.split(kept, kept.shape[0] // L.shape[1])
    ]
    return SmootherFunctions(width, Z[pivots], np.vstack(blocks), sigma[::-1])


def _exact(
    Z: Array, mass: Array, width: Array, linear: bool, cut: float, most: int | None
) -> SmootherFunctions:
    """The functions from the full matrix, as sums of Gaussians around all points."""
    K = _kernel(Z, Z)
    constant, slope = _fit(lambda values: K @ (mass * values.T).T, Z, linear)
    fits = constant[:, None] + slope @ Z.T[: slope.shape[1]] if linear else constant[:, None]
    U, sigma, _ = svd(K * fits * np.sqrt(mass), full_matrices=False, check_finite=False)
    few = len(sigma) if most is None else most
    kept = (U / np.maximum(sigma, _TINY))[:, sigma > cut * sigma[0]][:, :few]
    blocks = [constant[:, None] * kept, *(b[:, None] * kept for b in slope.T)]
    return SmootherFunctions(width, Z, np.vstack(blocks), sigma)


def _kernel(Z: Array, pivots: Array) -> Array:
    squares = (Z**2).sum(axis=1)[:, None] + (pivots**2).sum(axis=1) - 2 * (Z @ pivots.T)
    np.maximum(squares, 0.0, out=squares)
    squares *= -0.5
    return np.asarray(np.exp(squares, out=squares))


def _with_slopes(K: Array, Z: Array, coefficients: Array) -> Array:
    """[K, z₁·K, z₂·K, ...] if there are coefficients for a local linear smoother, else K."""
    if coefficients.shape[0] == K.shape[1]:
        return K
    return np.hstack([K, *(Z[:, j : j + 1] * K for j in range(Z.shape[1]))])


def _pivoted_cholesky(
    Z: Array, mass: Array, most: int, options: FactorOptions
) -> tuple[Array, Array, IntArray]:
    """L (n, m) with K ≈ L Lᵀ, the residual diagonal, and the pivots.

    Randomly pivoted (Chen, Epperly, Tropp & Webber 2023) in blocks: candidates are drawn with
    probabilities proportional to mass times residual, and those that other candidates of the block
    approximate well are dropped.
    """
    n, rng = len(Z), np.random.default_rng(0)
    most = min(most, n)
    L, left = np.empty((n, most), order="F"), np.ones(n)
    pivots, fraction = np.empty(most, dtype=np.intp), mass / mass.sum()
    m = 0
    while m < most and fraction @ left > options.trace_tolerance:
        weight = fraction * left
        draws = min(max(options.smallest_block, m // 4), most - m)
        drawn = np.unique(rng.choice(n, draws, p=weight / weight.sum()))
        C = _kernel(Z, Z[drawn]) - L[:, :m] @ L[drawn, :m].T
        S = (C[drawn] + C[drawn].T) / 2
        R, order, rank, _ = dpstrf(S, tol=max(options.min_pivot_ratio * S.diagonal().max(), 1e-12))
        order, R = order[:rank] - 1, np.triu(R[:rank, :rank])
        new = solve_triangular(R, C[:, order].T, trans="T", check_finite=False).T
        L[:, m : m + rank], pivots[m : m + rank] = new, drawn[order]
        left = np.maximum(left - (new**2).sum(axis=1), 0.0)
        left[drawn[order]] = 0.0
        m += rank
    return L[:, :m], left, pivots[:m]


def _smoothed(L: Array, left: Array, mass: Array, values: Array) -> Array:
    """Kernel sums of values, with the residual diagonal of the factor added."""
    weighted = (mass * values.T).T
    return np.asarray((L @ (L.T @ weighted)).T + left * weighted.T).T


def _fit(
    smooth: Callable[[Array], Array], Z: Array, linear: bool, ridge: float = 1e-9
) -> tuple[Array, Array]:
    """Constants a (n,) and slopes b (n, q or 0) of P_jk = k_jk·mass_k·(a_j + b_jᵀ z_k).

    `ridge` regularizes the local covariances; it is relative to the squared width of the kernel.
    """
    n, q = Z.shape
    total = smooth(np.ones(n))
    if not linear:
        return 1 / total, np.empty((n, 0))
    first = smooth(Z)
    pairs = [(i, j) for i in range(q) for j in range(i, q)]
    second = smooth(np.stack([Z[:, i] * Z[:, j] for i, j in pairs], axis=1))
    mean = first / total[:, None]
    cov = np.empty((n, q, q))
    for column, (i, j) in enumerate(pairs):
        cov[:, i, j] = cov[:, j, i] = second[:, column] / total - mean[:, i] * mean[:, j]
    # The fit at z_j weighs z_k by 1 + (z_j − mean)ᵀ cov⁻¹ (z_k − mean), over the total.
    cov[:, np.arange(q), np.arange(q)] += ridge
    slope = np.linalg.solve(cov, (Z - mean)[:, :, None])[:, :, 0]
    return (1 - (slope * mean).sum(axis=1)) / total, slope / total[:, None]
