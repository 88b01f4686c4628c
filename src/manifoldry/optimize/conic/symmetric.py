"""Symmetric matrices as vectors, so that inner products stay what they are."""

from functools import lru_cache
from math import isqrt

import numpy as np

from manifoldry.util.typing import Array, IntArray


@lru_cache(maxsize=64)
def triangle(m: int) -> tuple[IntArray, IntArray, Array]:
    """Rows and columns of the upper triangle, and the factor of each entry in the vector."""
    a, b = np.triu_indices(m)
    return a, b, np.where(a == b, 1.0, np.sqrt(2.0))


def svec(P: Array) -> Array:
    """The upper triangle of symmetric `P`, off the diagonal times √2: ⟨P, Q⟩ = svec(P)·svec(Q).

    Examples
    --------
    >>> import numpy as np
    >>> svec(np.array([[1.0, 3.0], [3.0, 2.0]])).round(3)
    array([1.   , 4.243, 2.   ])
    """
    a, b, factor = triangle(P.shape[-1])
    return np.asarray(P[..., a, b] * factor)


def smat(p: Array) -> Array:
    """The symmetric matrix of a vector: the inverse of `svec`."""
    m = order_of(len(p))
    a, b, factor = triangle(m)
    P = np.empty((m, m))
    P[a, b] = P[b, a] = p / factor
    return P


def order_of(length: int) -> int:
    """The m whose triangle has `length` = m(m + 1)/2 entries."""
    return (isqrt(8 * length + 1) - 1) // 2


def squares(Y: Array) -> Array:
    """svec(y·yᵀ) for every row y of `Y` (n, m): (n, m(m + 1)/2)."""
    a, b, factor = triangle(Y.shape[-1])
    U = Y[..., a]
    U *= Y[..., b]
    U *= factor
    return U


def congruence(G: Array) -> Array:
    """The matrix that turns svec(X) into svec(G·X·Gᵀ)."""
    a, b, factor = triangle(len(G))
    left, right = G[a], G[b]
    K = left[:, a] * right[:, b] + left[:, b] * right[:, a]
    return np.asarray(factor[:, None] * K * (factor / 2))
