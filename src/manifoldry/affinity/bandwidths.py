"""A Gaussian bandwidth for every point of a graph, and the weights that follow from it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks, split_by_label


def kernel_growth(
    squared: Array, own: float, counts: Array | None = None, *, n_widths: int = 60
) -> tuple[Array, Array]:
    """Widths ε on a logarithmic grid, and the slope of log Σ exp(−d²/ε) against log ε at each.

    Between widths that join nobody and widths that join all, the slope rises to about half the
    dimension of the data and falls again.

    Parameters
    ----------
    squared : array
        Squared distances d², all positive and in a unit near their size.
    own : float
        Sum of the weights of points to themselves: how many points there are.
    counts : array, default=None
        How often each squared distance occurs; by default once.
    n_widths : int, default=60
        Widths on the grid.
    """
    often = np.ones(len(squared)) if counts is None else counts
    ends = np.log10([squared.min(), squared.max()])
    widths = np.logspace(ends[0] - 1, ends[1] + 1, n_widths)
    sums = np.array([own + np.exp(-squared / width) @ often for width in widths])
    return widths, np.gradient(np.log(sums), np.log(widths))


_MAX_EXPONENT = 750.0  # exp(−750) is zero: what lies beyond has no part in any moment


class Entropy(NamedTuple):
    """Entropy of weights ∝ exp(−eᵅ·t) over each row of t, and its derivatives by α."""

    value: Array
    derivative: Array
    second_derivative: Array


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
    np.minimum(u, _MAX_EXPONENT, out=u)
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
    # Of the fraction q of the weight that is not on the ties, H ≤ log ties + √q·c by Fano's
    # inequality and −q·log q − (1 − q)·log(1 − q) ≤ 2·log 2·√q; and q/(1 − q) ≤ (k/ties −
    # 1)·exp(−β·t_next).
    others = k / ties - 1
    c = 2 * np.log(2) + np.maximum(np.log(others), 0)
    q = (np.log(perplexity / ties) / c) ** 2
    following = np.take_along_axis(t, ties[:, None], axis=1)[:, 0]
    high = np.log(np.log(others * (1 - q) / q)) - np.log(following)
    return low, np.maximum(high, low)


def solve(t: Array, perplexity: float, max_steps: int = 100) -> Roots:
    """The α at which the entropy of every row is log `perplexity`; see :func:`bracket` for `t`.

    Halley's steps, with bisection where they leave the bracket or do not halve the residual. They
    start where it is for an even density on a plane: β·t_K = e for the neighbor of rank K. All
    rows go in step, and those that have arrived drop out; bisection alone needs about 50 steps.
    """
    low, high = bracket(t, perplexity)
    rank = int(np.ceil(perplexity)) - 1
    alpha = np.clip(1 - np.log(t[:, rank]), low, high)
    found, steps = np.empty(len(t)), np.zeros(len(t), dtype=np.intp)
    active, last = np.arange(len(t)), np.full(len(t), np.inf)
    for _ in range(max_steps):
        at = entropy(alpha, t)
        steps[active] += 1
        residual = at.value - np.log(perplexity)
        low, high = np.where(residual > 0, alpha, low), np.where(residual > 0, high, alpha)
        alpha, done = _advance(alpha, low, high, residual, at, last)
        found[active] = alpha
        if done.all():
            break
        stay = ~done
        alpha, low, high, last = alpha[stay], low[stay], high[stay], np.abs(residual)[stay]
        active, t = active[stay], t[stay]
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
        newton = residual / at.derivative
        return np.asarray(newton / (1 - newton * at.second_derivative / (2 * at.derivative)))


# Distances that differ by no more than this fraction are equal but for rounding.
_TIE_TOLERANCE = 8 * float(np.finfo(float).eps)
# Squared distances that are nothing, or without end, beside one that matters.
_MIN_SQUARE, _MAX_SQUARE = 1e-300, 1e300
_BLOCK = 2**16  # numbers that fit the cache: four times as fast as large blocks


@dataclass(frozen=True, eq=False)
class Bandwidths:
    """Conditional probabilities exp(−(d² − nearest²)/width²)/total of each point's neighbors."""

    nearest: Array
    """Distance to the nearest neighbor: with it taken off, nothing underflows or cancels."""
    widths: Array
    """1/√β; zero where only the nearest count, infinite where all neighbors count the same."""
    log_totals: Array

    @classmethod
    def of(cls, graph: NeighborGraph, perplexity: float) -> "Bandwidths":
        """Bandwidths at which the neighbors of every point have the `perplexity`.

        Points with no more neighbors than that give all of them the same probability, and so do
        points with that many neighbors or more at the nearest distance, to those: no bandwidth
        comes nearer to the perplexity.
        """
        n = graph.n_query
        out = cls(np.zeros(n), np.full(n, np.inf), np.zeros(n))
        # Rows of equal length make a matrix without padding, so none depends on the others.
        by_count = split_by_label(np.diff(graph.indptr)) if n else []
        blocks = [
            rows[block]
            for k, rows in enumerate(by_count)
            for block in row_blocks(len(rows), k, _BLOCK)
            if k > 0
        ]
        parts = map_threads(lambda rows: _solve_rows(_lengths(graph, rows), perplexity), blocks)
        for rows, part in zip(blocks, parts, strict=True):
            out.nearest[rows], out.widths[rows], out.log_totals[rows] = part
        return out

    def exponents(self, distances: Array, points: IntArray) -> Array:
        """−log probability that each of `points` gives to something at its distance.

        Nearer than the nearest neighbor counts as nearest: the totals do not know of such a
        point, and without it in them its probability could be any number above one.
        """
        out = np.empty(len(distances))
        for block in row_blocks(len(distances), 1, _BLOCK):
            out[block] = self._exponents(distances[block], points[block])
        return out

    def _exponents(self, distances: Array, points: IntArray) -> Array:
        nearest, width = self.nearest[points], self.widths[points]
        excess = _excess(distances, nearest)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            squared = excess / width * ((distances + nearest) / width)
        return np.where(excess == 0, 0.0, squared) + self.log_totals[points]


def _lengths(graph: NeighborGraph, rows: IntArray) -> Array:
    """Distances of rows with the same number of edges, (len(rows), k), ascending."""
    first = graph.indptr[rows][:, None]
    k = int(graph.indptr[rows[0] + 1] - graph.indptr[rows[0]])
    return np.asarray(graph.distances[first + np.arange(k)], dtype=np.float64)


def _solve_rows(D: Array, perplexity: float) -> tuple[Array, Array, Array]:
    """Nearest distance, width and logarithm of the total, for every row of distances."""
    k, nearest = D.shape[1], D[:, 0].copy()
    t, unit = _relative_squares(D, min(k, int(np.ceil(perplexity))) - 1)
    ties = (t == 0).sum(axis=1)
    tied = ties >= perplexity
    widths, log_totals = np.where(tied, 0.0, np.inf), np.log(np.where(tied, ties, k))
    rest = np.flatnonzero(~tied)
    if k > perplexity and len(rest):
        t, log_precision = t[rest], solve(t[rest], perplexity).log_precision
        widths[rest] = unit[rest] * np.exp(-log_precision / 2)
        log_totals[rest] = np.log(np.exp(-np.exp(log_precision)[:, None] * t).sum(axis=1))
    return nearest, widths, log_totals


def _relative_squares(D: Array, rank: int) -> tuple[Array, Array]:
    """(d² − nearest²)/unit², and the unit that makes it one for the neighbor of this rank.

    The bandwidth is of that unit's size, so that neither data of any scale, nor neighbors of
    many scales, leave the range of numbers where it matters.
    """
    nearest = D[:, :1]
    excess, both = _excess(D, nearest), D + nearest
    across = excess[:, rank, None] > 0  # else as many as the perplexity are tied
    near, far = (np.where(across, part[:, rank, None], 1.0) for part in (excess, both))
    with np.errstate(over="ignore"):
        t = np.minimum(excess / near * (both / far), _MAX_SQUARE)
    t[t < _MIN_SQUARE] = 0.0
    return t, (np.sqrt(near) * np.sqrt(far))[:, 0]


def _excess(distances: Array, nearest: Array) -> Array:
    """By how much distances exceed the nearest one; not at all where that is but rounding."""
    excess = distances - nearest
    excess *= excess > _TIE_TOLERANCE * nearest
    return excess
