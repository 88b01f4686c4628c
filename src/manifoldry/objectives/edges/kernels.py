"""Compiled sums over edges; imported only where there are many."""

from functools import cache

from numba import njit


@cache
def student_rows(d):
    """The loop for d = 1, 2 or 3 coordinates, whose number the compiler has to know to be fast."""

    @njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
    def rows(Y, indptr, indices, weights, rate, heavy, force, degree, lo, hi):
        """Of rows lo to hi: Σ w (yᵢ − yⱼ)/h and Σ w/h with h = 1 + rate·d², and h of all edges."""
        first = indptr[lo]
        for i in range(lo, hi):
            x, y, z = Y[i, 0], Y[i, d // 2], Y[i, d - 1]
            total, total_x, total_y, total_z = 0.0, 0.0, 0.0, 0.0
            for edge in range(indptr[i], indptr[i + 1]):
                j = indices[edge]
                dx, dy, dz = x - Y[j, 0], y - Y[j, d // 2], z - Y[j, d - 1]
                square = dx * dx
                if d > 1:
                    square += dy * dy
                if d > 2:
                    square += dz * dz
                h = 1 + rate * square
                heavy[edge - first] = h
                pull = weights[edge] / h
                total += pull
                total_x += pull * dx
                if d > 1:
                    total_y += pull * dy
                if d > 2:
                    total_z += pull * dz
            degree[i] = total
            force[i, 0] = total_x
            if d > 1:
                force[i, 1] = total_y
            if d > 2:
                force[i, 2] = total_z

    return rows
