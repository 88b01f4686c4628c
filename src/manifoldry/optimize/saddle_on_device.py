"""The smallest eigenvalue of a Hessian by LOBPCG where the embedding is: on a device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manifoldry.util.arrays import like, namespace, to_numpy
from manifoldry.util.typing import Array

Product = Callable[[Array], Array]  # of a displacement, (n, m)

_DEPENDENT = 1e-13
"""Squared length, relative to the longest, below which a combination of columns is left out."""


def smallest_pair(
    product: Product,
    precondition: Product,
    start: Array,
    motions: Array,
    tol: float,
    max_iter: int,
) -> tuple[float, Array]:
    """Return the smallest eigenvalue of a symmetric operator, and a unit eigenvector, (n, m).

    In an iteration only a few numbers are copied to the host.

    Parameters
    ----------
    product, precondition : callable
        The operator, and an approximate inverse.
    start : array of shape (b, n, m)
        Start vectors.
    motions : array of shape (r, n·m)
        Orthonormal vectors to which eigenvectors are orthogonal.
    tol : float
        Norm of the residual at which the iteration ends.
    max_iter : int
        Largest number of iterations.
    """
    b, xp, shape = len(start), namespace(start), start.shape[1:]

    def orthogonal(V: Array) -> Array:
        rows = V.reshape(len(V), -1)
        return rows - (rows @ motions.T) @ motions

    def applied(operator: Product, rows: Array) -> Array:
        return orthogonal(xp.stack([operator(row.reshape(shape)) for row in rows]))

    X = orthogonal(start)
    S, AS = X, applied(product, X)  # rows: vectors, new directions, changes in the last step
    for _ in range(max_iter + 1):
        values, C = _ritz_pairs(S, AS, b)
        changes = C.copy()
        changes[:, :b] = 0.0
        C = np.concatenate([C, changes[:, : len(S)]])
        S, AS = (like(C, part) @ part for part in (S, AS))
        X, AX = S[:b], AS[:b]
        R = AX - like(values[:, None], X) * X
        if float(xp.linalg.norm(R[0])) <= tol:
            break
        W = applied(precondition, R)
        W = W / xp.linalg.norm(W, axis=1, keepdims=True)
        S = xp.concatenate([X, W, S[b:]])
        AS = xp.concatenate([AX, applied(product, W), AS[b:]])
    return float(values[0]), (X[0] / xp.linalg.norm(X[0])).reshape(shape)


def _ritz_pairs(S: Array, AS: Array, b: int) -> tuple[Array, Array]:
    """The b smallest Ritz values in the span of the rows of `S`, and coefficients (b, rows)."""
    xp = namespace(S)
    G, H = to_numpy(xp.stack([S @ S.T, S @ AS.T]))
    scale = 1 / np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
    G, H = (part * np.outer(scale, scale) for part in (G, (H + H.T) / 2))
    squares, U = np.linalg.eigh(G)
    kept = squares > _DEPENDENT * squares[-1]
    U = U[:, kept] / np.sqrt(squares[kept])
    values, C = np.linalg.eigh(U.T @ H @ U)
    return values[:b], (scale[:, None] * (U @ C[:, :b])).T
