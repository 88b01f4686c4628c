"""Exact sums over a map at other places than its points, with derivatives: for new points.

Every row is treated by itself: a matrix product would round a row differently in another batch, and
two places of nearly equal value could swap.
"""

import numpy as np

from manifoldry.objectives.pair_kernel import Kernel
from manifoldry.objectives.pair_sums import LogSums
from manifoldry.util.typing import Array


def place_sums(
    kernel: Kernel, Z: Array, Y: Array, nearest: Array, charges: Array | None, columns: int
) -> LogSums:
    """See :meth:`PairSums.at_places`; `columns` points of the map are worked on at a time."""
    # The largest κ counts as one, so that not all of them underflow.
    smallest = kernel.phi(nearest)[:, None]
    parts = []
    for start in range(0, len(Y), columns):
        block = slice(start, start + columns)
        a = None if charges is None else charges[:, block]
        parts.append(_part(kernel, Z, Y[block], smallest, a))
    S, dS, ddS = (sum(part) for part in zip(*parts, strict=True))
    scale = np.where(S > 0, S, 1.0)  # no charge may count
    with np.errstate(divide="ignore"):
        log_sum = np.log(S) - smallest[:, 0]
    return LogSums(log_sum, dS / scale[:, None], ddS / scale[:, None, None])


def _part(
    kernel: Kernel, Z: Array, Y: Array, smallest: Array, charges: Array | None
) -> tuple[Array, Array, Array]:
    """What some points of the map contribute to S, ∇S and ∇²S."""
    steps = [z[:, None] - y for z, y in zip(Z.T, Y.T, strict=True)]
    D = squares(steps)
    slope, bend = kernel.slope(D), kernel.bend(D)
    K = np.exp(smallest - kernel.phi(D))
    if charges is not None:
        K *= charges
    Q = K * slope
    dS = -2 * np.stack([dot(Q, step) for step in steps], axis=1)
    ddS = second_moments(K * (4 * (slope * slope - bend)), steps)
    return K.sum(axis=1), dS, ddS - isotropic(2 * Q.sum(axis=1), len(steps))


def dot(A: Array, B: Array) -> Array:
    """Σⱼ AᵢⱼBᵢⱼ."""
    return np.asarray(np.einsum("ij,ij->i", A, B))


def squares(steps: list[Array]) -> Array:
    """Squared lengths of steps, given coordinate by coordinate."""
    D = steps[0] * steps[0]
    for step in steps[1:]:
        D += step * step
    return D


def second_moments(W: Array, steps: list[Array]) -> Array:
    """Σⱼ Wᵢⱼ·δᵢⱼδᵢⱼᵀ, (n, d, d)."""
    d = len(steps)
    M = np.empty((len(W), d, d))
    for i in range(d):
        weighted = W * steps[i]
        for j in range(i, d):
            M[:, i, j] = M[:, j, i] = dot(weighted, steps[j])
    return M


def isotropic(a: Array, d: int) -> Array:
    """Multiples aᵢ of the identity, (n, d, d)."""
    return np.asarray(a[:, None, None] * np.eye(d))
