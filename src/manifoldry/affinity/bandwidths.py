"""Gaussian bandwidths: one per point, for a given perplexity."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifoldry.affinity.on_device import (
    LEAST_EDGES,
    edge_exponents,
    perplexity_bandwidths,
    row_length,
)
from manifoldry.device import Device, current_device
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks, split_by_label

_MAX_EXPONENT = 750.0  # exp(−750) underflows to zero


class Entropy(NamedTuple):
    """Entropy of weights ∝ exp(−eᵅ·t) in each row of t, and its derivatives with respect to α."""

    value: Array
    derivative: Array
    second_derivative: Array


class Roots(NamedTuple):
    """Logarithms of the precisions, and the number of evaluations of the entropy."""

    log_precision: Array
    steps: IntArray


def entropy(log_precision: Array, t: Array) -> Entropy:
    """Entropy at α = `log_precision` of each row of `t`, (n, k), whose minimum must be zero.

    The entropy is m₁ + log Z, where Z is the sum of the weights and mᵢ the moments of u = eᵅ·t
    under the weights. Its derivatives are −V and c − 2V, where V and c are the second and third
    central moments.
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
    """Bounds of the α at which the entropy of each row is log `perplexity`.

    Rows of `t`, (n, k), are ascending and start with one or more zeros, fewer than `perplexity`,
    which is less than k. The bounds are tighter than those of Vladymyrov and Carreira-Perpiñán
    (2013) and also hold if several neighbors are tied for the nearest.
    """
    k, ties = t.shape[1], (t == 0).sum(axis=1)
    excess = np.log(k / perplexity)
    # dH/dβ is −β·variance, and no variance on [0, t_k] exceeds t_k²/4: log k − H ≤ (β·t_k)²/8.
    low = np.log(max(np.sqrt(8 * excess), k * excess / (k - 1))) - np.log(t[:, -1])
    # Let q be the fraction of the weight that is not on the ties. H ≤ log ties + √q·c by Fano's
    # inequality and −q·log q − (1 − q)·log(1 − q) ≤ 2·log 2·√q. Furthermore,
    # q/(1 − q) ≤ (k/ties − 1)·exp(−β·t_next).
    others = k / ties - 1
    c = 2 * np.log(2) + np.maximum(np.log(others), 0)
    q = (np.log(perplexity / ties) / c) ** 2
    following = np.take_along_axis(t, ties[:, None], axis=1)[:, 0]
    high = np.log(np.log(others * (1 - q) / q)) - np.log(following)
    return low, np.maximum(high, low)


def solve(t: Array, perplexity: float, max_steps: int = 100) -> Roots:
    """The α at which the entropy of each row is log `perplexity`; see :func:`bracket` for `t`.

    Halley's method, with a bisection step if it leaves the bracket or does not halve the residual.
    The start β·t_K = e, for the neighbor of rank K, is the solution for a uniform density on a
    plane. All rows are iterated together, and converged rows are removed. Bisection alone needs
    about 50 steps.
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
    """Return the next α and which rows have converged; `last` holds the previous |residual|.

    Halley's method has cubic convergence: a step from an error of `close` leaves only rounding.
    """
    error, step = np.abs(residual), _halley(residual, at)
    good = (alpha - step > low) & (alpha - step < high) & (error <= last / 2)
    there = error <= rounding
    narrow = high - low <= rounding * np.maximum(1, np.abs(alpha))
    nearly = good & (np.maximum(error, np.abs(step)) < close)
    new = np.where(there, alpha, np.where(good, alpha - step, (low + high) / 2))
    return new, there | narrow | nearly


def _halley(residual: Array, at: Entropy) -> Array:
    """Halley's step, to be subtracted from α; NaN where the derivative is zero."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        newton = residual / at.derivative
        return np.asarray(newton / (1 - newton * at.second_derivative / (2 * at.derivative)))


# Distances that differ by at most this fraction count as equal.
_TIE_TOLERANCE = 8 * float(np.finfo(float).eps)
# Squared distances, relative to the unit, are set to zero below and clipped above these values.
_MIN_SQUARE, _MAX_SQUARE = 1e-300, 1e300
_BLOCK = 2**16  # block size in numbers that fits into the cache; four times as fast as large blocks


@dataclass(frozen=True, eq=False)
class Bandwidths:
    """Probabilities exp(−(d² − nearest²)/width²)/total of the neighbors of each point."""

    nearest: Array
    """Distance to the nearest neighbor; subtracting its square avoids underflow."""
    widths: Array
    """1/√β; zero if only the nearest have weight, infinite if all neighbors have equal weights."""
    log_totals: Array

    @classmethod
    def of(cls, graph: NeighborGraph, perplexity: float) -> "Bandwidths":
        """Compute the bandwidths at which each point has the given perplexity.

        A point with at most `perplexity` neighbors gives all of them equal probability. A point
        with at least `perplexity` neighbors tied at the nearest distance gives those equal
        probability. In these cases no bandwidth comes closer to the perplexity.
        """
        n = graph.n_query
        device, k = current_device(), row_length(graph)
        if device is not None and k is not None and n * k >= LEAST_EDGES:
            lengths, limits = graph.distances.reshape(n, k), (_MIN_SQUARE, _MAX_SQUARE)
            return cls(*perplexity_bandwidths(device, lengths, perplexity, _TIE_TOLERANCE, limits))
        out = cls(np.zeros(n), np.full(n, np.inf), np.zeros(n))
        # Rows of equal length form a matrix without padding, so rows do not affect each other.
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

    def interpolated(self, own: NeighborGraph, known: IntArray) -> "Bandwidths":
        """Bandwidths of the query points of `own`, from those of their neighbors.

        They are means with weights 1/d² (of the widths: geometric means), and those of the training
        point ``known[i]`` if query point i is identical to one; `known` is -1 otherwise. Neighbors
        of width zero, such as duplicates, or infinity say nothing about the scale of the data and
        are left out; if no neighbor is left, the means are those of all training points. If no
        training point has a width, all neighbors get equal weights.
        """
        usable = (self.widths > 0) & np.isfinite(self.widths)
        if not usable.any():
            usable[:] = True
            widths = np.full(len(self.widths), np.inf)
        else:
            widths = np.where(usable, self.widths, 1.0)
        values = np.stack([self.nearest, np.log(widths), self.log_totals], axis=1)
        nearest, log_widths, log_totals = neighbor_means(own, values, usable).T.copy()
        out = Bandwidths(nearest, np.exp(log_widths), log_totals)
        same = np.flatnonzero(known >= 0)
        for mine, theirs in zip(vars(out).values(), vars(self).values(), strict=True):
            mine[same] = theirs[known[same]]
        return out

    def exponents(self, distances: Array, points: IntArray) -> Array:
        """−log of the probability that each of `points` assigns to a neighbor at each distance.

        Distances smaller than that to the nearest neighbor are replaced by the latter: a new point
        that close is not included in the totals, so its probability could exceed one.
        """
        out = np.empty(len(distances))
        for block in row_blocks(len(distances), 1, _BLOCK):
            out[block] = self._exponents(distances[block], points[block])
        return out

    def edge_exponents(self, graph: NeighborGraph) -> Array:
        """−log of the probability of each edge of a graph whose query points have these widths."""
        out, counts = np.empty(len(graph.distances)), np.diff(graph.indptr)
        device = current_device()
        on_device = None if device is None else self.exponents_on(device, graph)
        if device is not None and on_device is not None:
            return device.host(on_device)

        def fill(rows: slice) -> None:
            edges = slice(int(graph.indptr[rows.start]), int(graph.indptr[rows.stop]))
            points = np.repeat(np.arange(rows.start, rows.stop), counts[rows])
            out[edges] = self._exponents(graph.distances[edges], points)

        per_row = len(out) // max(1, len(counts))
        map_threads(fill, row_blocks(len(counts), per_row, _BLOCK))
        return out

    def exponents_on(self, device: Device, graph: NeighborGraph) -> Array | None:
        """The same in the memory of a device; None for few edges, and rows of unequal length."""
        k = row_length(graph)
        if k is None or len(graph.distances) < LEAST_EDGES:
            return None
        own = self.nearest, self.widths, self.log_totals
        lengths = graph.distances.reshape(graph.n_query, k)
        return edge_exponents(device, lengths, *own, _TIE_TOLERANCE)

    def _exponents(self, distances: Array, points: IntArray) -> Array:
        nearest, width = self.nearest[points], self.widths[points]
        excess = _excess(distances, nearest)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            squared = excess / width * ((distances + nearest) / width)
        return np.where(excess == 0, 0.0, squared) + self.log_totals[points]


def neighbor_means(own: NeighborGraph, values: Array, usable: NDArray[np.bool_]) -> Array:
    """Means of `values`, (n_reference, m), over the neighbors in `own`, with weights 1/d².

    Only `usable` neighbors count; without any, the mean is that of all usable training points.
    """
    kept = usable[own.indices]
    nearest = np.full(own.n_query, np.inf)
    np.minimum.at(nearest, own.rows[kept], own.distances[kept])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(own.distances > 0, nearest[own.rows] / own.distances, 1.0)
    S = own.matrix(np.where(kept, ratio, 0.0) ** 2)
    total = S.sum(axis=1)
    means = S @ np.where(usable[:, None], values, 0.0) / np.maximum(total, 1.0)[:, None]
    means[total == 0] = values[usable].mean(axis=0)
    return np.asarray(means)


def _lengths(graph: NeighborGraph, rows: IntArray) -> Array:
    """Ascending distances (len(rows), k) of rows with the same number k of edges."""
    first = graph.indptr[rows][:, None]
    k = int(graph.indptr[rows[0] + 1] - graph.indptr[rows[0]])
    return np.asarray(graph.distances[first + np.arange(k)], dtype=np.float64)


def _solve_rows(D: Array, perplexity: float) -> tuple[Array, Array, Array]:
    """Nearest distance, width and log of the total for each row of distances."""
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
    """Return (d² − nearest²)/unit², and the unit that makes it one for the neighbor of this rank.

    The bandwidth is of the size of this unit, so that data of any scale do not over- or underflow.
    """
    nearest = D[:, :1]
    excess, both = _excess(D, nearest), D + nearest
    across = excess[:, rank, None] > 0  # otherwise at least `perplexity` neighbors are tied
    near, far = (np.where(across, part[:, rank, None], 1.0) for part in (excess, both))
    with np.errstate(over="ignore"):
        t = np.minimum(excess / near * (both / far), _MAX_SQUARE)
    t[t < _MIN_SQUARE] = 0.0
    return t, (np.sqrt(near) * np.sqrt(far))[:, 0]


def _excess(distances: Array, nearest: Array) -> Array:
    """Distances minus the nearest one; zero if the difference is rounding."""
    excess = distances - nearest
    excess *= excess > _TIE_TOLERANCE * nearest
    return excess
