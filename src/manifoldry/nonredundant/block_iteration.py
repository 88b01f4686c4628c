"""A locally optimal block iteration (LOBPCG) that stops at a stated accuracy of the energy.

`eigen.Lobpcg` computes eigenvectors accurately. Here vectors and their products are updated
together, without new products and with little orthogonalization: enough for a few digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from manifoldry.eigen.standard import orthonormal_basis
from manifoldry.util.typing import Array

Product = Callable[[Array], Array]
# Maps A X − X Λ to new directions that meet the constraints, and to its part that does.
Preconditioner = Callable[[Array], tuple[Array, Array]]

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class RitzBlock:
    """Approximate eigenvectors of the smallest eigenvalues, at least two."""

    values: Array  # (b,), ascending
    vectors: Array  # (n, b), orthonormal
    residuals: Array  # (b,), upper bounds of the norms
    iterations: int

    @property
    def gap(self) -> float:
        """Distance of the first two values."""
        return float(self.values[1] - self.values[0])

    @property
    def energy_error(self) -> float:
        """Estimated relative error of the first value.

        A Ritz value is within its residual r of an eigenvalue, and within r²/gap.
        """
        r = float(self.residuals[0])
        return min(r, r**2 / max(self.gap, _TINY)) / max(float(self.values[0]), _TINY)


def smallest_pairs(
    product: Product, precondition: Preconditioner, start: Array, *, tol: float, max_iter: int
) -> RitzBlock:
    """Return Ritz pairs of an operator, from the columns of `start`, which meet the constraints.

    The iteration stops when the estimated relative error of the first value is at most `tol`, or
    after `max_iter` steps.
    """
    X = orthonormal_basis(start)
    n, b = X.shape
    S, AS = np.empty((n, 3 * b)), np.empty((n, 3 * b))  # vectors, new directions, last changes
    AX = product(X)
    values, C = _ritz_pairs(X, AX, b)
    S[:, :b], AS[:, :b] = X @ C, AX @ C
    used = 2 * b
    for iterations in range(max_iter + 1):
        X, AX = S[:, :b], AS[:, :b]
        directions, residuals = precondition(AX - X * values)
        block = RitzBlock(values, X, _norms(residuals), iterations)
        if block.energy_error <= tol:
            break
        directions -= X @ (X.T @ directions)
        directions /= np.maximum(_norms(directions), _TINY)
        S[:, b : 2 * b], AS[:, b : 2 * b] = directions, product(directions)
        values, C = _ritz_pairs(S[:, :used], AS[:, :used], b)
        changes = C.copy()
        changes[:b] = 0.0
        changes /= np.maximum(_norms(changes), _TINY)
        C = np.hstack([C, changes])
        for block_of_rows in (S, AS):
            block_of_rows[:, [*range(b), *range(2 * b, 3 * b)]] = block_of_rows[:, :used] @ C
        used = 3 * b
    return block


def _ritz_pairs(S: Array, AS: Array, b: int, dependent: float = 1e-12) -> tuple[Array, Array]:
    """The b smallest Ritz values of the columns of S, and coefficients of the Ritz vectors."""
    G, H = S.T @ S, S.T @ AS
    H = (H + H.T) / 2
    try:
        values, C = eigh(H, G, check_finite=False)
    except np.linalg.LinAlgError:  # columns are dependent
        squares, U = np.linalg.eigh(G)
        kept = squares > dependent * squares[-1]
        U = U[:, kept] / np.sqrt(squares[kept])
        values, C = np.linalg.eigh(U.T @ H @ U)
        C = U @ C
    return values[:b], C[:, :b]


def _norms(X: Array) -> Array:
    return np.sqrt(np.einsum("ij,ij->j", X, X))
