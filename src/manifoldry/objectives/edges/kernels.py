"""Compiled sums over edges; imported only where there are many."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def student_rows(Y, indptr, indices, weights, dof, cost, force, degree, lo, hi):
    """Of rows lo to hi: Σ w log(1 + d²/α), Σ w (yᵢ − yⱼ)/(1 + d²/α) and Σ w/(1 + d²/α)."""
    for i in range(lo, hi):
        for edge in range(indptr[i], indptr[i + 1]):
            j = indices[edge]
            square = 0.0
            for f in range(Y.shape[1]):
                square += (Y[i, f] - Y[j, f]) ** 2
            heavy = 1 + square / dof
            pull = weights[edge] / heavy
            cost[i] += weights[edge] * np.log(heavy)
            degree[i] += pull
            for f in range(Y.shape[1]):
                force[i, f] += pull * (Y[i, f] - Y[j, f])
