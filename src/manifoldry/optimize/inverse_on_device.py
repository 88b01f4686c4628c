"""Solvers for shifted graph Laplacians on a device.

There is no sparse factorization: small matrices are inverted densely. For larger ones, as on the
CPU, a polynomial approximates the inverse if the matrix is well-conditioned; otherwise conjugate
gradients are used, with the diagonal as preconditioner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.device import Device
from manifoldry.device.primitives import DeviceMatrix
from manifoldry.optimize.definite_inverse import AutoInverse, DefiniteInverse
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array

DENSE_UP_TO = 12_000
"""Order up to which the inverse is a dense matrix, which takes 0.1 s and 1 GB on an H200."""
_CHECKED = 10  # iterations of conjugate gradients between tests of convergence, which wait


@dataclass(frozen=True, eq=False)
class ShiftedLaplacian:
    """L/unit + μ·I for the Laplacian L of symmetric weights in the memory of a device."""

    device: Device
    W: sparse.csr_array
    shift: float

    @cached_property
    def unit(self) -> float:
        """The mean degree."""
        return float(self.device.array(self.W.data).sum()) / self.W.shape[0] or 1.0

    @cached_property
    def _known(self) -> dict[str, tuple[DeviceMatrix, Array]]:
        return {}

    def parts(self, dtype: type) -> tuple[DeviceMatrix, Array]:
        """The weights, divided by the unit, and the diagonal, (n, 1), in a precision."""
        known = self._known.get(dtype.__name__)
        if known is None:
            W = self.device.rows(self.W, np.float64)
            rows = W._replace(data=(W.data / self.unit).astype(dtype, copy=False))
            ones = self.device.xp.ones((rows.n_rows, 1), dtype=dtype)
            known = rows, self.device.product(rows, ones) + dtype(self.shift)
            self._known[dtype.__name__] = known
        return known

    @property
    def diagonal(self) -> Array:
        """The diagonal, (n, 1), in double precision."""
        return self.parts(np.float64)[1]

    def product(self, X: Array) -> Array:
        """The matrix times the columns of `X`, in double precision."""
        rows, diagonal = self.parts(np.float64)
        return diagonal * X - self.device.product(rows, X)

    def dense(self) -> Array:
        """The matrix as an array, in double precision."""
        rows, diagonal = self.parts(np.float64)
        xp, n = self.device.xp, rows.n_rows
        A = xp.zeros((n, n))
        A[rows.row_numbers(xp), rows.indices] = -rows.data
        A[xp.arange(n), xp.arange(n)] += diagonal[:, 0]
        return A


def invert_on_device(A: ShiftedLaplacian, rule: AutoInverse) -> DefiniteInverse:
    """Return a solver for `A`, and why it was chosen."""
    n, name = A.W.shape[0], A.device.name
    if n <= DENSE_UP_TO:
        inverse = A.device.xp.linalg.inv(A.dense())
        inverse = (inverse + inverse.T) / 2
        return DefiniteInverse(lambda B: inverse @ B, f"dense inverse on {name}: {n} points")
    B = A.device.array(np.random.default_rng(0).standard_normal((n, 1)))
    quick, enough = rule.quick_iterations + 1, max(1e-4, rule.tol)
    if _conjugate_gradients(A, B - B.mean(), quick, enough, checked=1)[1] < quick:
        degree, condition = rule.polynomial.degree, rule.polynomial.condition
        why = f"polynomial of degree {degree} on {name}: conjugate gradients would converge fast"
        return DefiniteInverse(_polynomial(A, degree, condition), why)
    why = f"conjugate gradients with at most {rule.max_iter} iterations on {name}"
    return DefiniteInverse(lambda B: _conjugate_gradients(A, B, rule.max_iter, rule.tol)[0], why)


def _polynomial(A: ShiftedLaplacian, degree: int, condition: float) -> Callable[[Array], Array]:
    """Chebyshev's iteration in single precision; see `ChebyshevInverse`."""
    middle, half = 1 + 1 / condition, 1 - 1 / condition
    W, diagonal = A.parts(np.float32)
    diagonals = diagonal, 1 / diagonal

    def solve(B: Array) -> Array:
        xp, scale = A.device.xp, A.device.xp.abs(B).max()
        R = xp.ascontiguousarray(B / xp.where(scale > 0, scale, 1.0), dtype=np.float32)
        step, ratio = diagonals[1] * R / np.float32(middle), half / middle
        X = step.copy()
        for _ in range(degree - 1):
            last, ratio = ratio, 1 / (2 * middle / half - ratio)
            factors = ratio * last, 2 * ratio / half
            step = A.device.chebyshev_step(W, diagonals, factors, (step, R, X))
        return X.astype(float) * scale

    return solve


def _conjugate_gradients(
    A: ShiftedLaplacian, B: Array, max_iter: int, tol: float, checked: int = _CHECKED
) -> tuple[Array, int]:
    """Return X with A·X ≈ B, solved column by column, and the number of iterations.

    A column has converged when its residual is at most `tol` times the right-hand side.
    """
    xp, inverse = A.device.xp, 1 / A.diagonal
    X, R = xp.zeros_like(B), B.copy()
    P, energy = xp.zeros_like(B), xp.ones(B.shape[1])
    target = tol**2 * (B * B).sum(axis=0)
    for iteration in range(max_iter):
        active = (R * R).sum(axis=0) > target
        if iteration % checked == 0 and not bool(active.any()):
            return X, iteration
        Z = inverse * R
        before, energy = energy, xp.where(active, (R * Z).sum(axis=0), 1.0)
        P = Z + (energy / before if iteration else 0.0) * P
        AP = A.product(P)
        curvature = xp.where(active, (P * AP).sum(axis=0), 1.0)
        length = xp.where(active, energy / curvature, 0.0)
        X += length * P
        R -= length * AP
    return X, max_iter
