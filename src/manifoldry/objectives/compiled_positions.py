"""Compiled loop for exact kernel sums over fixed points at other positions."""

from functools import cache
from math import exp, log1p

from manifoldry.util.jit import cached_njit

_options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "reassoc"}}
_NEGLIGIBLE = -45.0  # logarithm of a kernel relative to the largest one, below the rounding error


@cache
def position_loop(d):
    """Return the compiled loop that adds up kernels and two derivatives at positions.

    Its arguments are the positions (n, d); the points (d, m); the squared distances (n,) to the
    nearest point, by whose kernel sums are divided; weights (n, m), or None for one; `rate` and
    `power` of the kernel (1 + rate·D)^−power, both None for the Gaussian; and the arrays to fill:
    sums (n,), gradients (n, d) and Hessians (n, d, d).
    """

    @cached_njit(**_options)
    def add_up(Z, Y, nearest, weights, rate, power, sums, gradients, hessians):
        m = Y.shape[1]
        for i in range(len(Z)):
            x, y, z = Z[i, 0], Z[i, 1 if d > 1 else 0], Z[i, d - 1]
            f, fx, fy, fz, slope = 0.0, 0.0, 0.0, 0.0, 0.0
            fxx, fyy, fzz, fxy, fxz, fyz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            least = nearest[i] if rate is None else log1p(rate * nearest[i])
            for j in range(m):
                dx = x - Y[0, j]
                dy = y - Y[1, j] if d > 1 else 0.0
                dz = z - Y[2, j] if d > 2 else 0.0
                D = dx * dx + dy * dy + dz * dz
                if rate is None:
                    if least - D < _NEGLIGIBLE:
                        continue
                    k = exp(least - D)
                    first, second = k, k
                else:
                    t = 1.0 / (1.0 + rate * D)
                    if power is None:  # one degree of freedom
                        k = (1.0 + nearest[i]) * t
                        first, second = k * t, 2 * k * t * t
                    else:
                        k = exp(power * (least - log1p(rate * D)))
                        first = power * rate * k * t
                        second = (power + 1) * rate * first * t
                if weights is not None:
                    a = weights[i, j]
                    k, first, second = a * k, a * first, a * second
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
