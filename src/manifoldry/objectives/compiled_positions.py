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
def off(x, start, width):
    """Distance of x from the interval that begins at `start`."""
    return max(start - x, x - start - width, 0.0)


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
            last = Z[i, d - 1]
            near = nearest[i]
            f, fx, fy, fz, slope = 0.0, 0.0, 0.0, 0.0, 0.0
            fxx, fyy, fzz, fxy, fxz, fyz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            least = near if rate is None else log1p(rate * near)
            radius = sqrt(near + _NEGLIGIBLE) if rate is None else np.inf
            a0, a1, b0, b1 = 0, 1, 0, 1
            if d > 1:
                a0 = int(min(max((x - radius - low[0]) / width[0], 0.0), count[0]))
                a1 = int(min(max((x + radius - low[0]) / width[0] + 1, 0.0), count[0]))
            if d > 2:
                b0 = int(min(max((y - radius - low[1]) / width[1], 0.0), count[1]))
                b1 = int(min(max((y + radius - low[1]) / width[1] + 1, 0.0), count[1]))
            for a in range(a0, a1):
                for b in range(b0, b1):
                    strip = a * count[1] + b
                    start, stop = starts[strip], starts[strip + 1]
                    if rate is None:
                        reach = near + _NEGLIGIBLE
                        if d > 1:
                            gap = off(x, low[0] + a * width[0], width[0])
                            reach -= gap * gap
                        if d > 2:
                            gap = off(y, low[1] + b * width[1], width[1])
                            reach -= gap * gap
                        half, along = sqrt(max(reach, 0.0)), Y[d - 1, start:stop]
                        stop = start + np.searchsorted(along, last + half, "right")
                        start = start + np.searchsorted(along, last - half)
                    for j in range(start, stop):
                        dx = x - Y[0, j]
                        dy = y - Y[1, j] if d > 1 else 0.0
                        dz = z - Y[2, j] if d > 2 else 0.0
                        D = dx * dx + dy * dy + dz * dz
                        if rate is None:
                            k = exp_minus64(max(D - least, 0.0))
                            first, second = k, k
                        else:
                            t = 1.0 / (1.0 + rate * D)
                            if power is None:  # one degree of freedom
                                k = (1.0 + near) * t
                                first, second = k * t, 2 * k * t * t
                            else:
                                k = exp_minus64(max(power * (log_of(1.0 + rate * D) - least), 0.0))
                                first = power * rate * k * t
                                second = (power + 1) * rate * first * t
                        if weights is not None:
                            w = weights[rows[i], order[j]]
                            k, first, second = w * k, w * first, w * second
                        f += k
                        slope += first
                        fx += first * dx
                        fxx += second * dx * dx
                        if d > 1:
                            fy += first * dy
                            fyy += second * dy * dy
                            fxy += second * dx * dy
                        if d > 2:
                            fz += first * dz
                            fzz += second * dz * dz
                            fxz += second * dx * dz
                            fyz += second * dy * dz
            sums[i] = f
            gradients[i, 0], hessians[i, 0, 0] = -2 * fx, 4 * fxx - 2 * slope
            if d > 1:
                gradients[i, 1], hessians[i, 1, 1] = -2 * fy, 4 * fyy - 2 * slope
                hessians[i, 0, 1] = hessians[i, 1, 0] = 4 * fxy
            if d > 2:
                gradients[i, 2], hessians[i, 2, 2] = -2 * fz, 4 * fzz - 2 * slope
                hessians[i, 0, 2] = hessians[i, 2, 0] = 4 * fxz
                hessians[i, 1, 2] = hessians[i, 2, 1] = 4 * fyz

    return add_up
