"""Compiled sums over pairs of points and over edges; imported only if there are many.

The sums of one point run over tiles of the other points: within a tile in the dtype of the points,
across tiles in double precision. Each row of the result is computed by one thread, so results do
not depend on the number of threads.

Branches on None and on the constants of `pair_sums` are resolved at compilation, so that one
function body serves all kernels, dimensions and moments.
"""

from functools import cache
from math import factorial, log

import numpy as np
from numba import types
from numba.extending import overload

from manifoldry.util.jit import cached_njit

_TILE = 1024  # points per tile; they fit into the L1 cache
_LN2, _LN2_REST = log(2), 2.3190468138462996e-17  # ln 2 and its rounding error
# Sums may be reordered for vectorization; the operations of a formula may not.
_options = {"nogil": True, "error_model": "numpy"}
formula = cached_njit(**_options, fastmath={"contract", "nsz"})
# Long formulas are not inlined, and then not vectorized, unless forced; short ones get slower.
forced = cached_njit(**_options, fastmath={"contract", "nsz"}, forceinline=True)
summing = cached_njit(**_options, fastmath={"contract", "nsz", "reassoc"})


@formula
def polynomial(coefficients, x):
    """Evaluate a polynomial by Horner's rule; the highest power comes first."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _exp_minus(real, integer, bits, bias, degree):
    """Build e⁻ᵗ for t ≥ 0; the result is exactly zero where it would be subnormal.

    Only plain arithmetic is vectorized: e⁻ᵗ = 2ᵏ·eᵍ with integer k and |g| ≤ ½ ln 2, and the
    Taylor series eᵍ = 1 + g + g²·q(g).
    """
    q = tuple(real(1 / factorial(k)) for k in range(degree, 1, -1))
    end, per, one, zero = real((bias - 1) * _LN2), real(1 / _LN2), real(1), real(0)
    whole = real(1.5 * 2.0**bits)  # adding it leaves the nearest integer in the lowest bits
    digits = 2.0 ** (bits // 2)
    coarse = real(round(_LN2 * digits) / digits)  # few digits, so that its multiples are exact
    fine = real(_LN2 - round(_LN2 * digits) / digits + _LN2_REST)
    shift = integer(bits)

    @formula
    def exp_minus(t):
        x = -end if t > end else -t
        shifted = x * per + whole
        k = shifted - whole
        g = (x - k * coarse) - k * fine
        power = polynomial(q, g) * g * g + g + one
        scaled = integer(real(power).view(integer) + (real(shifted).view(integer) << shift))
        return zero if t > end else scaled.view(real)

    return exp_minus


exp_minus32 = _exp_minus(np.float32, np.int32, 23, 127, degree=7)
exp_minus64 = _exp_minus(np.float64, np.int64, 52, 1023, degree=13)


def exp_minus(t):
    """e⁻ᵗ in the dtype of t; for compiled code only."""


@overload(exp_minus)
def _exp_minus_of_type(t):
    return (lambda t: exp_minus32(t)) if t == types.float32 else (lambda t: exp_minus64(t))


def _log_of(real, integer, bits, terms):
    """Build the logarithm of u ≥ 1: u = 2ᵏ·m with m from √½ to √2.

    It is k·log 2 + log m, and log m = 2·artanh((m − 1)/(m + 1)), summed as a series.
    """
    root, shift = real(0.5**0.5).view(integer), integer(bits)
    odd = tuple(real(1 / k) for k in range(2 * terms - 1, 0, -2))
    one, two, ln2 = real(1), real(2), real(_LN2)

    @forced
    def log_of(u):
        whole = real(u).view(integer)
        k = integer(integer(whole - root) >> shift)
        m = integer(whole - integer(k << shift)).view(real)
        s = (m - one) / (m + one)
        return two * s * polynomial(odd, s * s) + real(k) * ln2

    return log_of


log_of32 = _log_of(np.float32, np.int32, 23, terms=5)
log_of64 = _log_of(np.float64, np.int64, 52, terms=11)


def log_of(u):
    """Logarithm of u ≥ 1 in the dtype of u; for compiled code only."""


@overload(log_of)
def _log_of_type(u):
    return (lambda u: log_of32(u)) if u == types.float32 else (lambda u: log_of64(u))


@formula
def kernel(D, rate):
    """κ and 1/u at the squared distance D; Gaussian if `rate` is None, else κ = 1/(1 + rate·D)."""
    one = type(D)(1)
    if rate is None:
        return exp_minus(D), one
    inverse = one / (one + rate * D)
    return inverse, inverse


@forced
def student(D, rate, power):
    """κ = (1 + rate·D)^−power, and 1/u with u = 1 + rate·D."""
    one = type(D)(1)
    u = one + rate * D
    return type(D)(exp_minus64(power * log_of64(np.float64(u)))), one / u


@formula
def moment(weight, step, order):
    """weight·stepᵒʳᵈᵉʳ, multiplied in this order because the square alone might overflow."""
    return weight * step if order == 1 else weight * step * step


@cache
def pair_sums(d, order):
    """Return the compiled loop for d = 1, 2 or 3 coordinates and moments of order 1 or 2.

    Its arguments are the coordinates ``T`` (d, n); `weights` of shape (1, n), those of rows lo
    to hi, (hi − lo, n), or None; the constants of `kernel` or `student`; and the arrays to fill in
    rows lo to hi. A point is left out of its own sum.
    """

    @summing
    def sums(T, weights, rate, power, kernel_sums, moments, lo, hi):
        zero = T.dtype.type(0)
        for i in range(lo, hi):
            x, y, z = T[0, i], T[d // 2, i], T[d - 1, i]
            total, total_x, total_y, total_z = 0.0, 0.0, 0.0, 0.0
            start = 0
            while start < T.shape[1]:
                stop = min(start + _TILE, T.shape[1])
                if start <= i < stop:
                    stop = i
                X, Y, Z = T[0, start:stop], T[d // 2, start:stop], T[d - 1, start:stop]
                if weights is not None:
                    W = weights[(i - lo) % weights.shape[0], start:stop]
                m, mx, my, mz = zero, zero, zero, zero
                for j in range(X.shape[0]):
                    dx, dy, dz = x - X[j], y - Y[j], z - Z[j]
                    D = dx * dx
                    if d > 1:
                        D += dy * dy
                    if d > 2:
                        D += dz * dz
                    if power is None:
                        K, inverse = kernel(D, rate)
                    else:
                        K, inverse = student(D, rate, power)
                    if weights is not None:
                        K *= T.dtype.type(W[j])
                    m += K
                    K *= inverse if order == 1 else inverse * inverse
                    mx += moment(K, dx, order)
                    if d > 1:
                        my += moment(K, dy, order)
                    if d > 2:
                        mz += moment(K, dz, order)
                total += m
                total_x += mx
                total_y += my
                total_z += mz
                start = stop + (stop == i)
            kernel_sums[i] = total
            moments[i, 0] = total_x
            if d > 1:
                moments[i, 1] = total_y
            if d > 2:
                moments[i, 2] = total_z

    return sums


@cache
def cell_sums(d, order):
    """Return the compiled loop over the points of neighboring cells, for the Gaussian kernel.

    Its arguments are the sorted coordinates ``T`` (d, n) and `weights` (n,) or None; the cell of
    each point and the ranges of points around each cell; the indices of the points; and the arrays
    to fill for points lo to hi. A point is left out of its own sum.
    """

    @summing
    def sums(T, weights, cell, ranges, points, kernel_sums, moments, lo, hi):
        for i in range(lo, hi):
            x, y, z = T[0, i], T[d // 2, i], T[d - 1, i]
            m, mx, my, mz = 0.0, 0.0, 0.0, 0.0
            for row in range(ranges.shape[1]):
                start, stop = ranges[cell[i], row]
                X, Y, Z = T[0, start:stop], T[d // 2, start:stop], T[d - 1, start:stop]
                if weights is not None:
                    W = weights[start:stop]
                for j in range(X.shape[0]):
                    dx, dy, dz = x - X[j], y - Y[j], z - Z[j]
                    D = dx * dx
                    if d > 1:
                        D += dy * dy
                    if d > 2:
                        D += dz * dz
                    K = exp_minus64(D)
                    if weights is not None:
                        K *= W[j]
                    m += K
                    mx += moment(K, dx, order)
                    if d > 1:
                        my += moment(K, dy, order)
                    if d > 2:
                        mz += moment(K, dz, order)
            point = points[i]
            kernel_sums[point] = m - (1.0 if weights is None else weights[i])
            moments[point, 0] = mx
            if d > 1:
                moments[point, 1] = my
            if d > 2:
                moments[point, 2] = mz

    return sums


@formula
def longest_row(indptr, lo, hi):
    """Largest number of entries in rows lo to hi of a sparse matrix."""
    most = 0
    for i in range(lo, hi):
        most = max(most, indptr[i + 1] - indptr[i])
    return most


@cache
def student_rows(d):
    """Return the compiled loop over edges for d = 1, 2 or 3 coordinates."""

    @cached_njit(**_options, fastmath={"reassoc", "contract", "nsz", "arcp"})
    def rows(points, indptr, indices, weights, rate, force, degree, lo, hi):
        """Fill Σ w (yᵢ − yⱼ)/h and Σ w/h of rows lo to hi, h = 1 + rate·d²; return Σ w log h.

        The sums of a row are in the dtype of the points, which the weights share.
        """
        # The neighbors of a point are copied, since loops over scattered ones are not vectorized.
        near = np.empty((3, longest_row(indptr, lo, hi)), points.dtype)
        X, Y, Z = near[0], near[1], near[2]
        zero, one = points.dtype.type(0), points.dtype.type(1)
        cost = 0.0
        for i in range(lo, hi):
            start, count = indptr[i], indptr[i + 1] - indptr[i]
            for k in range(count):
                j = indices[start + k]
                X[k] = points[j, 0]
                if d > 1:
                    Y[k] = points[j, 1]
                if d > 2:
                    Z[k] = points[j, 2]
            W = weights[start : start + count]
            x, y, z = points[i, 0], points[i, d // 2], points[i, d - 1]
            total, total_x, total_y, total_z, logs = zero, zero, zero, zero, zero
            for k in range(count):
                dx, dy, dz = x - X[k], y - Y[k], z - Z[k]
                square = dx * dx
                if d > 1:
                    square += dy * dy
                if d > 2:
                    square += dz * dz
                h = one + rate * square
                w = W[k] / h
                logs += W[k] * log_of(h)
                total += w
                total_x += w * dx
                if d > 1:
                    total_y += w * dy
                if d > 2:
                    total_z += w * dz
            cost += logs
            degree[i] = total
            force[i, 0] = total_x
            if d > 1:
                force[i, 1] = total_y
            if d > 2:
                force[i, 2] = total_z
        return cost

    return rows
