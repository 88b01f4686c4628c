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
    dual_square: float = np.inf  # rᵀTr of the first residual, if T⁻¹ is at most the operator

    @property
    def gap(self) -> float:
        """Distance of the first two values."""
        return float(self.values[1] - self.values[0])

    @property
    def energy_error(self) -> float:
        """Estimated relative error of the first value λ.

        With the residual r it is within ‖r‖ of an eigenvalue, and to second order the error is
        rᵀ(A − λ)⁻¹r on the complement, which is at most ‖r‖²/gap. For T⁻¹ ≤ A it is also at most
        rᵀTr·λ₂/gap.
        """
        r, gap = float(self.residuals[0]), max(self.gap, _TINY)
        error = min(r, r**2 / gap, self.dual_square * float(self.values[1]) / gap)
        return error / max(float(self.values[0]), _TINY)


def smallest_pairs(
    product: Product,
    precondition: Preconditioner,
    start: Array,
    *,
    tol: float,
    max_iter: int,
    is_bound: bool = False,
) -> RitzBlock:
    """Return Ritz pairs of an operator, from the columns of `start`, which meet the constraints.

    The iteration stops when the estimated relative error of the first value is at most `tol`, or
    after `max_iter` steps. `is_bound` says that the preconditioner is the inverse of an operator
    that is at most the given one, which makes the estimate sharper.
    """
    X = orthonormal_basis(start)
    n, b = X.shape
    S, AS = np.empty((n, 3 * b)), np.empty((n, 3 * b))  # last changes, vectors, new directions
    vectors, new = slice(b, 2 * b), slice(2 * b, 3 * b)
    AX = product(X)
    values, C = _ritz_pairs(X, AX, b)
    S[:, vectors], AS[:, vectors] = X @ C, AX @ C
    used = slice(b, 3 * b)  # without changes in the first step
    for iterations in range(max_iter + 1):
        X = S[:, vectors]
        directions, residuals = precondition(AS[:, vectors] - X * values)
        dual = float(residuals[:, 0] @ directions[:, 0]) if is_bound else np.inf
        block = RitzBlock(values, X.copy(), _norms(residuals), iterations, dual)
        if block.energy_error <= tol:
            break
        directions -= X @ (X.T @ directions)
        directions /= np.maximum(_norms(directions), _TINY)
        S[:, new], AS[:, new] = directions, product(directions)
        values, C = _ritz_pairs(S[:, used], AS[:, used], b)
        without = C.copy()  # the vectors without their last values
        without[-2 * b : -b] = 0.0
        without /= np.maximum(_norms(without), _TINY)
        C = np.hstack([without, C])
        S[:, : 2 * b], AS[:, : 2 * b] = S[:, used] @ C, AS[:, used] @ C
        used = slice(3 * b)
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
