"""Compiled loops over dense matrices of distances; imported only for many points."""

import numpy as np

from manifoldry.util.jit import cached_njit


@cached_njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def products_with_squares(D, scale, X, out, lo, hi):
    """Fill rows lo to hi of the products of (scale·d)² with the rows of X, in double precision.

    Four products at a time share the squares.
    """
    whole = len(X) - len(X) % 4
    for i in range(lo, hi):
        for c in range(0, whole, 4):
            a, b, d, e = 0.0, 0.0, 0.0, 0.0
            for j in range(D.shape[1]):
                square = (np.float64(D[i, j]) * scale) ** 2
                a += square * X[c, j]
                b += square * X[c + 1, j]
                d += square * X[c + 2, j]
                e += square * X[c + 3, j]
            out[i, c], out[i, c + 1], out[i, c + 2], out[i, c + 3] = a, b, d, e
        for c in range(whole, len(X)):
            total = 0.0
            for j in range(D.shape[1]):
                total += (np.float64(D[i, j]) * scale) ** 2 * X[c, j]
            out[i, c] = total
