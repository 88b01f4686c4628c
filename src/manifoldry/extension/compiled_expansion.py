"""Compiled loop for the distance of points from a kernel regression; imported only for many.

The training points are sorted into strips as in `objectives.compiled_positions`. Each row is
computed by itself, so results depend neither on the other rows nor on the number of threads.
"""

from math import log, sqrt

import numpy as np

from manifoldry.objectives.compiled import exp_minus64
from manifoldry.objectives.compiled_factors import inner_product
from manifoldry.objectives.compiled_positions import (
    cells_within,
    points_within,
    squared_distance,
)
from manifoldry.util.jit import cached_njit

_options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "reassoc"}}
GAUSSIAN, STUDENT = 0, -1  # in place of the power of a compact kernel
summing = cached_njit(**_options)


@summing
def find_near(z, limit, Y, starts, low, width, count, near, steps, D):
    """Fill points within the squared distance `limit` of z: indices, differences z − y, distances.

    Return their number.
    """
    d, found, radius = len(z), 0, sqrt(limit)
    a0, a1, b0, b1 = 0, 1, 0, 1
    if d > 1:
        a0, a1 = cells_within(z[0], radius, low[0], width[0], count[0])
    if d > 2:
        b0, b1 = cells_within(z[1], radius, low[1], width[1], count[1])
    for a in range(a0, a1):
        for b in range(b0, b1):
            strip = a * count[1] + b
            start, stop = starts[strip], starts[strip + 1]
            rest = limit
            if d > 1:
                rest -= squared_distance(z[0], a, low[0], width[0])
            if d > 2:
                rest -= squared_distance(z[1], b, low[1], width[1])
            start, stop = points_within(Y[d - 1], start, stop, z[d - 1], rest)
            for j in range(start, stop):
                square = 0.0
                for axis in range(d):
                    steps[axis, found] = z[axis] - Y[axis, j]
                    square += steps[axis, found] ** 2
                if square <= limit:
                    near[found], D[found] = j, square
                    found += 1
    return found


@summing
def weigh(D, power, tail, weights, first, second):
    """Fill κ, −κ′ and κ″ at squared distances, all divided by Σκ, and return log Σκ.

    As in `objectives.regression_kernels`, kernels are relative to the nearest point if that is
    beyond the range of a compact kernel, or if they are Gaussian.
    """
    nearest, unit = D.min(), 0.0
    if power == STUDENT:
        for e in range(len(D)):
            k = 1.0 / (1.0 + D[e])
            weights[e], first[e], second[e] = k, k * k, 2 * k * k * k
    else:
        relative = power == GAUSSIAN or nearest >= 1.0
        shift, factor = (nearest, 1.0) if relative else (0.0, tail)
        for e in range(len(D)):
            k = factor * exp_minus64(D[e] - shift)
            weights[e], first[e], second[e] = k, k, k
        if power > 0:
            for e in range(len(D)):
                if D[e] < 1.0:
                    left = 1.0 - D[e]
                    last = 1.0 if power == 2 else left
                    weights[e] += last * left * left
                    first[e] += power * last * left
                    second[e] += power * (power - 1) * last
        if relative:
            unit = (0.0 if power == GAUSSIAN else log(tail)) - nearest
    total = weights.sum()
    for e in range(len(D)):
        weights[e] *= 1.0 / total
        first[e] *= 1.0 / total
        second[e] *= 1.0 / total
    return log(total) + unit


@summing
def weighted_sums(coefficients, near, X, out):
    """Σₑ coefficients[r, e]·X[near[e]] for all r; four points at a time, to reuse the sums."""
    m, whole = len(near), len(near) // 4 * 4
    out[:] = 0.0
    for e in range(0, whole, 4):
        p, q, s, t = X[near[e]], X[near[e + 1]], X[near[e + 2]], X[near[e + 3]]
        for r in range(len(out)):
            a, b = coefficients[r, e], coefficients[r, e + 1]
            c, d = coefficients[r, e + 2], coefficients[r, e + 3]
            for f in range(len(p)):
                out[r, f] += (a * p[f] + b * q[f]) + (c * s[f] + d * t[f])
    for e in range(whole, m):
        p = X[near[e]]
        for r in range(len(out)):
            a = coefficients[r, e]
            for f in range(len(p)):
                out[r, f] += a * p[f]


@summing
def expand_cost(Z, targets, limits, Y, X, starts, low, width, count, power, tail,
           values, gradients, hessians, logs, slopes, bends, lo, hi):  # fmt: skip
    """Expand ‖x − f(z)‖² and log ρ(z) to second order at positions lo to hi.

    The formulas are those of `RegressionDerivatives`. `Z` (n, d) are positions, `targets`
    (n, n_features) the points x, and `limits` (n,) squared distances beyond which training points
    are left out. Training points are `Y` (d, m) and centered data `X` (m, n_features), in strips;
    `power` and `tail` are those of a compact kernel. The rest are values, gradients and Hessians
    of the squared distance and of the logarithm of the density.
    """
    d, most = len(Y), Y.shape[1]
    near_of, D_of, c_of = np.empty(most, np.int64), np.empty(most), np.empty(most)
    steps_of, coefficients_of = np.empty((d, most)), np.empty((d + 1, most))
    kernel_of, sums, r = np.empty((3, most)), np.empty((d + 1, X.shape[1])), np.empty(X.shape[1])
    for i in range(lo, hi):
        m = find_near(Z[i], limits[i], Y, starts, low, width, count, near_of, steps_of, D_of)
        near, D, steps, coefficients = (
            near_of[:m],
            D_of[:m],
            steps_of[:, :m],
            coefficients_of[:, :m],
        )
        weights, first, second, c = kernel_of[0, :m], kernel_of[1, :m], kernel_of[2, :m], c_of[:m]
        logs[i] = weigh(D, power, tail, weights, first, second)
        nearest = D.argmin()
        x0 = X[near[nearest]]

        # Sums over xᵢ − x₀, whose large weight at the nearest point would cause rounding errors.
        for e in range(m):
            coefficients[0, e] = weights[e]
            for axis in range(d):
                coefficients[axis + 1, e] = first[e] * steps[axis, e]
        for axis in range(d):
            slopes[i, axis] = -2 * coefficients[axis + 1].sum()
        coefficients[:, nearest] = 0.0
        weighted_sums(coefficients, near, X, sums)
        offset, jacobian = sums[0], sums[1:]
        total = coefficients[0].sum()
        for f in range(len(r)):
            offset[f] -= total * x0[f]
            r[f] = (targets[i, f] - x0[f]) - offset[f]
        for axis in range(d):
            total = coefficients[axis + 1].sum()
            for f in range(len(r)):
                away = jacobian[axis, f] - total * x0[f]
                jacobian[axis, f] = -2 * away - slopes[i, axis] * offset[f]
        values[i] = inner_product(r, r)

        along = inner_product(r, offset)
        shift = inner_product(r, x0) + along
        for e in range(m):
            c[e] = inner_product(r, X[near[e]]) - shift
        c[nearest] = -along
        trace, density_trace = 0.0, 0.0
        for e in range(m):
            trace -= 2 * c[e] * first[e]
            density_trace -= 2 * first[e]
        for axis in range(d):
            gradients[i, axis] = -2 * inner_product(jacobian[axis], r)
        for j in range(d):
            for k in range(j + 1):
                curvature, bend = 0.0, 0.0
                for e in range(m):
                    outer = 4 * second[e] * steps[j, e] * steps[k, e]
                    curvature += c[e] * outer
                    bend += outer
                if j == k:
                    curvature += trace
                    bend += density_trace
                w, u = slopes[i, j], slopes[i, k]
                curvature += (gradients[i, j] * u + w * gradients[i, k]) / 2
                hessian = 2 * (inner_product(jacobian[j], jacobian[k]) - curvature)
                hessians[i, j, k] = hessians[i, k, j] = hessian
                bends[i, j, k] = bends[i, k, j] = bend - w * u
