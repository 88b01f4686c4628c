"""Compiled sums over edges; imported only where there are many."""

from numba import njit


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def student_rows(Y, indptr, indices, weights, dof, heavy, force, degree, lo, hi):
    """Of rows lo to hi: Σ w (yᵢ − yⱼ)/h and Σ w/h with h = 1 + d²/α, and h of all their edges."""
    first = indptr[lo]
    for i in range(lo, hi):
        degree[i] = 0
        force[i] = 0
        for edge in range(indptr[i], indptr[i + 1]):
            j = indices[edge]
            square = 0.0
            for f in range(Y.shape[1]):
                square += (Y[i, f] - Y[j, f]) ** 2
            heavy[edge - first] = 1 + square / dof
            pull = weights[edge] / heavy[edge - first]
            degree[i] += pull
            for f in range(Y.shape[1]):
                force[i, f] += pull * (Y[i, f] - Y[j, f])
