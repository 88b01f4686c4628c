"""What a smoother can say of a function of given coordinates: a few functions that span it.

A kernel smoother on i coordinates is an n × n matrix P, numerically of low rank. The rows that
matter are found through a pivoted Cholesky factor of its kernel, K ≈ L Lᵀ with L of shape (n, m):
O(n·m²) time and O(n·m) memory. Only of a few hundred points is the matrix itself decomposed.
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
    """When a factor stands in for the kernel's matrix, and how good it is."""

    # Up to so many points the matrix itself is decomposed: the order of rows does not matter then.
    exact_up_to: int = 500
    # Columns of a factor at most: half the points of small data, as many as that takes, and fewer
    # of large ones, where more changed coordinates of MNIST, did not improve them, and doubled the
    # time.
    many: int = 3000  # points
    columns_of_many: int = 300
    # Fraction of the kernel's trace that a factor may leave out. At 1e-3 the next coordinate agrees
    # with that of the full matrix to 1e-4 (MNIST, strips, rolls; n = 3000); at 1e-2 only to 2e-2.
    left_out: float = 1e-3
    smallest_block: int = 16  # candidates looked at together
    kept: float = 0.25  # of a block's largest residual: whoever has less is explained by the others
    rounding: float = 1e-10  # fraction of the largest eigenvalue that is none

    def room(self, n: int) -> int:
        """Columns of a factor of `n` points at most."""
        return self.columns_of_many if n > self.many else n // 2


DEFAULT_FACTOR = FactorOptions()


@dataclass(frozen=True, eq=False)
class SmootherFunctions:
    """Functions of some coordinates: a smoother's, which can be evaluated anywhere.

    Each is a sum of Gaussians around `pivots`, for a local linear smoother times 1, z₁, z₂, ...
    """

    width: Array  # (q,): lengths in which coordinates are measured
    pivots: Array  # (m, q), in those lengths
    coefficients: Array  # (m, r), or ((q + 1)·m, r) where slopes count
    singular_values: Array  # of the smoother, falling: those beyond the cut as well

    def __call__(self, F: Array) -> Array:
        """Values (n, r) at coordinates `F` (n, q)."""
        Z = F / self.width
        return _with_slopes(_kernel(Z, self.pivots), Z, self.coefficients) @ self.coefficients

    @property
    def count(self) -> int:
        """How many functions there are."""
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
    """Functions spanning what a smoother on the columns of `F` can predict.

    The smoother has weights P_jk ∝ exp(−‖z_j − z_k‖²/2)·mass_k, where z are the coordinates over
    `bandwidth` times their root mean square. The functions are the right singular vectors of P
    under the mass, all with σ > cut·σ₁, the fraction of Blau & Michaeli: Σ mass·v·f = 0 for all of
    them says that P f is next to nothing. At most the `most` that say most.
    """
    n, q = F.shape
    width = bandwidth * np.sqrt(q * (mass @ F**2) / mass.sum())
    width[width == 0] = 1.0  # a coordinate that is constant
    Z, linear = F / width, smoother == "local_linear"
    if n <= factor.exact_up_to:
        return _exact(Z, mass, width, linear, cut, most)
    columns = max(2, factor.room(n) // (q + 1) if linear else factor.room(n))
    L, left, pivots = _pivoted_cholesky(Z, mass, columns, factor)
    constant, slope = _fit(lambda values: _smoothed(L, left, mass, values), Z, linear)
    A = np.hstack([constant[:, None] * L, *(b[:, None] * L for b in slope.T)])
    B = np.hstack([L, *(z[:, None] * L for z in Z.T[: slope.shape[1]])])
    # A (B·mass)ᵀ = P. In the basis B·T, orthonormal under the mass, singular vectors are E.
    w, U = eigh(B.T @ (mass[:, None] * B), check_finite=False)
    real = w > factor.rounding * w[-1]
    T, H = U[:, real] / np.sqrt(w[real]), U[:, real] * np.sqrt(w[real])
    squares, E = eigh(H.T @ (A.T @ A) @ H, check_finite=False)
    sigma = np.sqrt(np.maximum(squares, 0.0))
    few = len(sigma) if most is None else most
    kept = T @ E[:, sigma > cut * sigma[-1]][:, ::-1][:, :few]
    # L = K(·, pivots)·L_P⁻ᵀ, which holds at new points as well.
    blocks = [
        solve_triangular(L[pivots], part, lower=True, trans="T", check_finite=False)
        for part in np.split(kept, kept.shape[0] // L.shape[1])
    ]
    return SmootherFunctions(width, Z[pivots], np.vstack(blocks), sigma[::-1])


def _exact(
    Z: Array, mass: Array, width: Array, linear: bool, cut: float, most: int | None
) -> SmootherFunctions:
    """The same from the matrix itself, as sums of Gaussians around all points."""
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
    """[K, z₁·K, z₂·K, ...] where there are coefficients for them."""
    if coefficients.shape[0] == K.shape[1]:
        return K
    return np.hstack([K, *(Z[:, j : j + 1] * K for j in range(Z.shape[1]))])


def _pivoted_cholesky(
    Z: Array, mass: Array, most: int, options: FactorOptions
) -> tuple[Array, Array, IntArray]:
    """L (n, m), what it leaves of the diagonal, and the pivots, with K ≈ L Lᵀ.

    Randomly pivoted (Chen, Epperly, Tropp & Webber 2023), block by block: candidates are drawn
    with the probability of what is left of them, and those that others of the block explain are
    dropped.
    """
    n, rng = len(Z), np.random.default_rng(0)
    most = min(most, n)
    L, left = np.empty((n, most), order="F"), np.ones(n)
    pivots, fraction = np.empty(most, dtype=np.intp), mass / mass.sum()
    m = 0
    while m < most and fraction @ left > options.left_out:
        weight = fraction * left
        draws = min(max(options.smallest_block, m // 4), most - m)
        drawn = np.unique(rng.choice(n, draws, p=weight / weight.sum()))
        C = _kernel(Z, Z[drawn]) - L[:, :m] @ L[drawn, :m].T
        S = (C[drawn] + C[drawn].T) / 2
        R, order, rank, _ = dpstrf(S, tol=max(options.kept * S.diagonal().max(), 1e-12))
        order, R = order[:rank] - 1, np.triu(R[:rank, :rank])
        new = solve_triangular(R, C[:, order].T, trans="T", check_finite=False).T
        L[:, m : m + rank], pivots[m : m + rank] = new, drawn[order]
        left = np.maximum(left - (new**2).sum(axis=1), 0.0)
        left[drawn[order]] = 0.0
        m += rank
    return L[:, :m], left, pivots[:m]


def _smoothed(L: Array, left: Array, mass: Array, values: Array) -> Array:
    """Kernel sums of values; what the factor lacks of a point's own weight counts."""
    weighted = (mass * values.T).T
    return np.asarray((L @ (L.T @ weighted)).T + left * weighted.T).T


def _fit(
    smooth: Callable[[Array], Array], Z: Array, linear: bool, ridge: float = 1e-9
) -> tuple[Array, Array]:
    """Constants a (n,) and slopes b (n, q or 0) of P_jk = k_jk·mass_k·(a_j + b_jᵀ z_k).

    The ridge of local slopes is relative to the kernel's own width.
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
