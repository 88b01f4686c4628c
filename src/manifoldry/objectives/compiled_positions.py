"""Compiled loop for kernel sums over fixed points at other positions.

Points are sorted into strips: cells of all axes but the last, and along the last axis within each
cell, so that the points near a position are a few ranges.
"""

from functools import cache
from math import log1p, sqrt

import numpy as np

from manifoldry.objectives.compiled import exp_minus64, log_of
from manifoldry.util.jit import cached_njit

_options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "reassoc"}}
# Gaussian kernels below e^−36 of that of the nearest point, the rounding error, are left out.
_NEGLIGIBLE = 36.0


@cached_njit(**_options)
def cells_within(x, radius, low, width, count):
    """The range of cells of an axis that have points within the radius of x."""
    first, stop = (x - radius - low) / width, (x + radius - low) / width + 1
    return int(min(max(first, 0.0), count)), int(min(max(stop, 0.0), count))


@cached_njit(**_options)
def squared_distance(x, cell, low, width):
    """Squared distance of x from a cell of an axis, zero within it."""
    start = low + cell * width
    apart = max(start - x, x - start - width, 0.0)
    return apart * apart


@cached_njit(**_options)
def points_within(along, start, stop, x, reach):
    """The range of the sorted points `along` an axis, from start to stop, with (y − x)² ≤ reach."""
    half, strip = sqrt(max(reach, 0.0)), along[start:stop]
    return start + np.searchsorted(strip, x - half), start + np.searchsorted(
        strip, x + half, "right"
    )


@cached_njit(**_options, forceinline=True)  # otherwise the loop over points is not vectorized
def kernel_derivatives(D, near, least, rate, power):
    """κ, −κ′ and κ″ at the squared distance D, divided by κ(near) = exp(−power·least)."""
    if rate is None:
        k = exp_minus64(max(D - least, 0.0))
        return k, k, k
    t = 1.0 / (1.0 + rate * D)
    if power is None:  # one degree of freedom
        k = (1.0 + near) * t
        return k, k * t, 2 * k * t * t
    k = exp_minus64(max(power * (log_of(1.0 + rate * D) - least), 0.0))
    first = power * rate * k * t
    return k, first, (power + 1) * rate * first * t


@cached_njit(**_options)
def store_sums(i, f, slope, first, second, sums, gradients, hessians):
    """Write the sums of a position; `second` are those of xx, xy, yy, xz, yz and zz."""
    sums[i] = f
    for c in range(gradients.shape[1]):
        gradients[i, c] = -2 * first[c]
        for e in range(c + 1):
            hessians[i, c, e] = hessians[i, e, c] = 4 * second[c * (c + 1) // 2 + e]
        hessians[i, c, c] -= 2 * slope


@cache
def position_loop(d):
    """Return the compiled loop that adds up kernels and two derivatives at positions lo to hi.

    Its arguments are the positions `Z` (n, d); the points `Y` (d, m) sorted into strips, with the
    `order` of their indices; where the strips start, and the lowest corner, the width and the
    number of strips along the axes; the squared distances (n,) to the nearest point, by whose
    kernel sums are divided; `weights` (n_rows, m) with the row of each position, or None for one;
    `rate` and `power` of the kernel (1 + rate·D)^−power, both None for the Gaussian; and the arrays
    to fill: sums (n,), gradients (n, d) and Hessians (n, d, d).
    """

    @cached_njit(**_options)
    def add_up(Z, Y, order, starts, low, width, count, nearest, weights, rows, rate, power,
               sums, gradients, hessians, lo, hi):  # fmt: skip
        for i in range(lo, hi):
            x, y, z = Z[i, 0], Z[i, 1 if d > 1 else 0], Z[i, 2 if d > 2 else 0]
            near = nearest[i]
            least = near if rate is None else log1p(rate * near)
            radius = sqrt(near + _NEGLIGIBLE) if rate is None else np.inf
            a0, a1 = cells_within(x, radius, low[0], width[0], count[0]) if d > 1 else (0, 1)
            b0, b1 = cells_within(y, radius, low[1], width[1], count[1]) if d > 2 else (0, 1)
            f, fx, fy, fz, slope = 0.0, 0.0, 0.0, 0.0, 0.0
            fxx, fxy, fyy, fxz, fyz, fzz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for a in range(a0, a1):
                for b in range(b0, b1):
                    strip = a * count[1] + b
                    start, stop = starts[strip], starts[strip + 1]
                    if rate is None:
                        reach = near + _NEGLIGIBLE
                        if d > 1:
                            reach -= squared_distance(x, a, low[0], width[0])
                        if d > 2:
                            reach -= squared_distance(y, b, low[1], width[1])
                        start, stop = points_within(Y[d - 1], start, stop, Z[i, d - 1], reach)
                    for j in range(start, stop):
                        dx = x - Y[0, j]
                        dy = y - Y[1, j] if d > 1 else 0.0
                        dz = z - Y[2, j] if d > 2 else 0.0
                        D = dx * dx + dy * dy + dz * dz
                        k, first, second = kernel_derivatives(D, near, least, rate, power)
                        if weights is not None:
                            w = weights[rows[i], order[j]]
                            k, first, second = w * k, w * first, w * second
                        f += k
                        slope += first
                        fx += first * dx
                        fxx += second * dx * dx
                        if d > 1:
                            fy += first * dy
                            fxy += second * dx * dy
                            fyy += second * dy * dy
                        if d > 2:
                            fz += first * dz
                            fxz += second * dx * dz
                            fyz += second * dy * dz
                            fzz += second * dz * dz
            squares = (fxx, fxy, fyy, fxz, fyz, fzz)
            store_sums(i, f, slope, (fx, fy, fz), squares, sums, gradients, hessians)

    return add_up
