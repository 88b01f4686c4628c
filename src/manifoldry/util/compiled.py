"""Compiled loops over the rows of sparse matrices; imported only for large ones."""

from functools import cache

import numpy as np

from manifoldry.util.jit import cached_njit

_options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}


@cached_njit(**_options)
def kth_largest(indptr, data, k, out, lo, hi):
    """Fill the k-th largest entry of rows lo to hi, −∞ if a row has fewer.

    By insertion, since k is small; np.partition would take seven seconds to compile.
    """
    largest = np.empty(k, data.dtype)  # of a row so far, in ascending order
    for i in range(lo, hi):
        largest[:] = -np.inf
        for entry in range(indptr[i], indptr[i + 1]):
            place = 0
            while place < k and data[entry] > largest[place]:
                if place > 0:
                    largest[place - 1] = largest[place]
                place += 1
            if place > 0:
                largest[place - 1] = data[entry]
        out[i] = largest[0]


@cache
def product_rows(k):
    """Return the compiled loop that fills rows lo to hi of A·X for k columns.

    The number of columns is a constant, so that the sums of a row stay in registers.
    """

    @cached_njit(**_options)
    def rows(indptr, indices, data, X, out, lo, hi):
        sums = np.empty(k, data.dtype)
        for i in range(lo, hi):
            sums[:] = 0
            for entry in range(indptr[i], indptr[i + 1]):
                j = np.uint64(indices[entry])  # a signed index could be negative: a branch more
                for c in range(k):
                    sums[c] += data[entry] * X[j, c]
            for c in range(k):
                out[i, c] = sums[c]

    return rows


@cache
def chebyshev_rows(k):
    """Return the compiled loop over rows lo to hi of a step of Chebyshev's iteration, k columns.

    R ← R − A·step, new ← a·step + b·inverse∘R, X ← X + new. Separate passes over these arrays
    would take longer than the product.
    """

    @cached_njit(**_options)
    def rows(indptr, indices, data, inverse, step, a, b, R, X, new, lo, hi):
        sums = np.empty(k, data.dtype)
        for i in range(lo, hi):
            sums[:] = 0
            for entry in range(indptr[i], indptr[i + 1]):
                j = np.uint64(indices[entry])
                for c in range(k):
                    sums[c] += data[entry] * step[j, c]
            for c in range(k):
                R[i, c] -= sums[c]
                new[i, c] = a * step[i, c] + b * inverse[i] * R[i, c]
                X[i, c] += new[i, c]

    return rows
