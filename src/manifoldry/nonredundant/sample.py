"""A weighted sample of the points from which a kernel smoother is computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manifoldry.nonredundant.factor import gaussian_kernel
from manifoldry.util.arrays import like, to_numpy
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

# Points drawn to estimate the totals of the kernel: first by weight, then by their share.
_DRAWS = (300, 1000)
# Number of sampled points per unit of the smoother's trace, and the smallest number.
_PER_TRACE, _SMALLEST_SAMPLE = 40, 4000
# Part of the sample drawn by weight, so that no sampled point represents too many others.
_BY_WEIGHT = 0.2


@dataclass(frozen=True, eq=False)
class PointSample:
    """Some of the points, and how many points each of them represents."""

    rows: IntArray
    counts: Array

    @classmethod
    def all(cls, n: int) -> PointSample:
        """All of n points."""
        return cls(np.arange(n), np.ones(n))


def sampled_points(Z: Array, weights: Array, size: int | None = None) -> PointSample:
    """A sample of about `size` points for a smoother with a Gaussian kernel.

    Points are drawn with probabilities mostly proportional to their share in the smoother's trace,
    w_j / Σ_k k_jk w_k, so that isolated points, which have functions of their own, are not missed.
    None means 40 times the trace (the number of functions above the cutoff is three to five times
    the trace), at least 4000.
    """
    n, weights, rng = len(Z), to_numpy(weights), np.random.default_rng(0)
    if n <= (_SMALLEST_SAMPLE if size is None else size):
        return PointSample.all(n)
    shares = smoother_shares(Z, weights, rng)
    trace = float(shares.sum())
    size = max(_SMALLEST_SAMPLE, int(_PER_TRACE * trace)) if size is None else size
    if size >= n:
        return PointSample.all(n)
    mixed = (1 - _BY_WEIGHT) * shares / trace + _BY_WEIGHT * weights / weights.sum()
    p = np.minimum(1.0, size * mixed)
    for _ in range(20):  # others make up for the points whose probability is 1
        p = np.minimum(1.0, p * (size / p.sum()))
    rows = np.flatnonzero(rng.random(n) < p)
    return PointSample(rows, 1 / p[rows])


def smoother_shares(Z: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Estimate of the diagonal of the smoother, w_j / Σ_k k_jk w_k, from few points k."""
    n, totals = len(Z), np.full(len(Z), weights.sum())
    for draws in _DRAWS:
        p = weights / totals
        p /= p.sum()
        drawn = rng.choice(n, draws, p=p)
        represented = (weights[drawn] / (draws * p[drawn])).astype(np.float32)
        for block in row_blocks(n, 2 * draws):
            sums = gaussian_kernel(Z[block], Z[like(drawn, Z)], np.float32) @ like(represented, Z)
            totals[block] = to_numpy(sums)
        totals = np.maximum(totals, weights)  # each point counts for itself
    return np.asarray(weights / totals)
