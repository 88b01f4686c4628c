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
from manifoldry.util.arrays import like, namespace, to_numpy
from manifoldry.util.typing import Array

BlockProduct = Callable[[Array], Array]  # of the operator with columns
# Maps A X − X Λ to new directions that meet the constraints, and to its part that does.
Preconditioner = Callable[[Array], tuple[Array, Array]]

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class RitzBlock:
    """Approximate eigenvectors of the smallest eigenvalues, at least two."""

    values: Array  # (b,), ascending
    vectors: Array  # (n, b), orthonormal
    residual: float  # of the first, an upper bound of the norm
    energy_error: float  # estimated relative error of the first value
    iterations: int

    @property
    def gap(self) -> float:
        """Distance of the first two values."""
        return float(self.values[1] - self.values[0])


def smallest_pairs(
    product: BlockProduct,
    precondition: Preconditioner,
    start: Array,
    *,
    tol: float,
    max_iter: int,
    shift: float | None = None,
) -> RitzBlock:
    """Return Ritz pairs of an operator, from the columns of `start`, which meet the constraints.

    On a device, only small matrices are copied in a step.

    The iteration stops when the estimated relative error of the first value is at most `tol`, or
    after `max_iter` steps. If the preconditioner is the inverse of an operator that is at most the
    given one plus `shift` times the identity, the estimate is sharper.
    """
    X, xp = orthonormal_basis(start), namespace(start)
    n, b = X.shape
    # Changes in the last step, vectors, new directions; and the products of the operator with them.
    Z = xp.zeros((n, 2, 3 * b))
    old, vectors, new = slice(2 * b), slice(b, 2 * b), slice(2 * b, 3 * b)
    Z[:, 0, vectors], Z[:, 1, vectors] = X, product(X)
    G = np.zeros((2, 3 * b, 3 * b))  # inner products of vectors, and with products
    products = to_numpy(xp.tensordot(X, Z[:, :, vectors], (0, 0)))
    G[:, vectors, vectors] = np.moveaxis(products, 1, 0)
    values, C = _ritz_pairs(G, vectors, b)
    C = np.hstack([np.zeros_like(C), C])
    for iterations in range(max_iter + 1):
        Z[:, :, old] = (Z.reshape(2 * n, 3 * b) @ like(C, Z)).reshape(n, 2, 2 * b)
        G[:, old, old] = C.T @ G @ C
        scaled = Z[:, 0, vectors] * like(values, Z)
        directions, residuals = precondition(Z[:, 1, vectors] - scaled)
        dual = np.inf
        if shift is not None:
            growth = 1 + shift / max(float(values[0]), _TINY)
            dual = growth * float(residuals[:, 0] @ directions[:, 0])
        residual = float(xp.linalg.norm(residuals[:, 0]))
        error = _value_error(values, residual, dual)
        if error <= tol * values[0]:
            break
        Z[:, 0, new], Z[:, 1, new] = directions, product(directions)
        products = to_numpy(directions.T @ Z.reshape(n, 6 * b))
        G[:, new] = products.reshape(b, 2, 3 * b).swapaxes(0, 1)
        G[:, old, new] = G[:, new, old].swapaxes(1, 2)
        values, C = _ritz_pairs(G, slice(b if iterations == 0 else 0, 3 * b), b)
        changes = C.copy()
        changes[vectors] = 0.0
        C = np.hstack([changes, C])
        C /= np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", C, G[0], C), _TINY))
    relative = error / max(float(values[0]), _TINY)
    return RitzBlock(values, Z[:, 0, vectors].copy(), residual, relative, iterations)


def _value_error(values: Array, residual: float, dual: float) -> float:
    """Estimated error of the first Ritz value λ.

    With the residual r it is within ‖r‖ of an eigenvalue, and to second order the error is
    rᵀ(A − λ)⁻¹r on the complement, which is at most ‖r‖²/gap. It is also at most rᵀA⁻¹r·λ₂/gap,
    of which `dual` is a bound: if T⁻¹ ≤ A + σ, rᵀA⁻¹r is at most (1 + σ/λ)·rᵀTr.
    """
    gap = max(float(values[1] - values[0]), _TINY)
    return min(residual, residual**2 / gap, dual * float(values[1]) / gap)


def _ritz_pairs(G: Array, used: slice, b: int, dependent: float = 1e-12) -> tuple[Array, Array]:
    """The b smallest Ritz values, and coefficients of the Ritz vectors among all columns.

    `G` has the inner products of the columns with each other and with their products.
    """
    scale = 1 / np.sqrt(np.maximum(np.diag(G[0])[used], _TINY))
    S, H = G[:, used, used] * np.outer(scale, scale)
    H = (H + H.T) / 2
    try:
        values, C = eigh(H, S, check_finite=False)
    except np.linalg.LinAlgError:  # columns are dependent
        squares, U = np.linalg.eigh(S)
        kept = squares > dependent * squares[-1]
        U = U[:, kept] / np.sqrt(squares[kept])
        values, C = np.linalg.eigh(U.T @ H @ U)
        C = U @ C
    coefficients = np.zeros((len(G[0]), b))
    coefficients[used] = scale[:, None] * C[:, :b]
    return values[:b], coefficients
