"""The bandwidth at which Gaussian weights of given distances have a given entropy."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifoldry.util.typing import Array, IntArray

_FAR = 750.0  # exp(−750) is zero: what lies beyond has no part in any moment


class Entropy(NamedTuple):
    """Entropy of weights ∝ exp(−eᵅ·t) over each row of t, and its derivatives by α."""

    value: Array
    slope: Array
    curvature: Array


class Roots(NamedTuple):
    """Logarithms of the precisions that were sought, and how often the entropy was computed."""

    log_precision: Array
    steps: IntArray


def entropy(log_precision: Array, t: Array) -> Entropy:
    """Entropy at α = `log_precision` of every row of `t`, (n, k), with zero as its minimum.

    With the moments m of u = eᵅ·t under the weights and their sum Z it is m₁ + log Z; its
    derivatives are −V and c − 2V, V and c being the second and third central moments.
    """
    u = np.exp(log_precision)[:, None] * t
    np.minimum(u, _FAR, out=u)
    w = np.exp(-u)
    Z = w.sum(axis=1)
    m1 = np.einsum("ij,ij->i", w, u) / Z
    w *= u
    m2 = np.einsum("ij,ij->i", w, u) / Z
    w *= u
    m3 = np.einsum("ij,ij->i", w, u) / Z
    V = m2 - m1**2
    return Entropy(m1 + np.log(Z), -V, m3 - 3 * m1 * m2 + 2 * m1**3 - 2 * V)


def bracket(t: Array, perplexity: float) -> tuple[Array, Array]:
    """Bounds of the α at which the entropy of every row is log `perplexity`.

    Rows of `t`, (n, k), ascend from zero, of which they have fewer than `perplexity`; that is less
    than k. Sharper than the bounds of Vladymyrov and Carreira-Perpiñán (2013), and ties for the
    nearest place are no exception.
    """
    k, ties = t.shape[1], (t == 0).sum(axis=1)
    excess = np.log(k / perplexity)
    # dH/dβ is −β·variance, and no variance on [0, t_k] exceeds t_k²/4: log k − H ≤ (β·t_k)²/8.
    low = np.log(max(np.sqrt(8 * excess), k * excess / (k - 1))) - np.log(t[:, -1])
    # Of the share q of the weight that is not on the ties, H ≤ log ties + √q·c by Fano's inequality
    # and −q·log q − (1 − q)·log(1 − q) ≤ 2·log 2·√q; and q/(1 − q) ≤ (k/ties − 1)·exp(−β·t_next).
    others = k / ties - 1
    c = 2 * np.log(2) + np.maximum(np.log(others), 0)
    q = (np.log(perplexity / ties) / c) ** 2
    following = np.take_along_axis(t, ties[:, None], axis=1)[:, 0]
    high = np.log(np.log(others * (1 - q) / q)) - np.log(following)
    return low, np.maximum(high, low)


def solve(t: Array, perplexity: float, max_steps: int = 100) -> Roots:
    """The α at which the entropy of every row is log `perplexity`; see :func:`bracket` for `t`.

    Halley's steps, with bisection where they leave the bracket or do not halve the residual. They
    start where it is for an even density on a plane: β·t_K = e for the neighbour of rank K. All
    rows go in step, and those that have arrived drop out; bisection alone needs about 50 steps.
    """
    low, high = bracket(t, perplexity)
    rank = int(np.ceil(perplexity)) - 1
    alpha = np.clip(1 - np.log(t[:, rank]), low, high)
    found, steps = np.empty(len(t)), np.zeros(len(t), dtype=np.intp)
    going, last = np.arange(len(t)), np.full(len(t), np.inf)
    for _ in range(max_steps):
        at = entropy(alpha, t)
        steps[going] += 1
        residual = at.value - np.log(perplexity)
        low, high = np.where(residual > 0, alpha, low), np.where(residual > 0, high, alpha)
        alpha, arrived = _advance(alpha, low, high, residual, at, last)
        found[going] = alpha
        if arrived.all():
            break
        stay = ~arrived
        alpha, low, high, last = alpha[stay], low[stay], high[stay], np.abs(residual)[stay]
        going, t = going[stay], t[stay]
    return Roots(found, steps)


def _advance(
    alpha: Array,
    low: Array,
    high: Array,
    residual: Array,
    at: Entropy,
    last: Array,
    *,
    close: float = 1e-5,
    rounding: float = 1e-14,
) -> tuple[Array, NDArray[np.bool_]]:
    """The next α, and where nothing is left to gain; `last` is how large residuals were before.

    Halley's step triples the number of right digits: one from `close` leaves nothing but rounding.
    """
    error, step = np.abs(residual), _halley(residual, at)
    good = (alpha - step > low) & (alpha - step < high) & (error <= last / 2)
    there = error <= rounding
    narrow = high - low <= rounding * np.maximum(1, np.abs(alpha))
    nearly = good & (np.maximum(error, np.abs(step)) < close)
    new = np.where(there, alpha, np.where(good, alpha - step, (low + high) / 2))
    return new, there | narrow | nearly


def _halley(residual: Array, at: Entropy) -> Array:
    """Halley's step to the left; not a number where the entropy is flat."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        newton = residual / at.slope
        return np.asarray(newton / (1 - newton * at.curvature / (2 * at.slope)))
