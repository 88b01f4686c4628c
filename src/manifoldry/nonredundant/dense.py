"""Factorizations of dense matrices in the memory that has them, by LAPACK or by a device."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, eigh, qr, solve_triangular

from manifoldry.device import device_of
from manifoldry.util.arrays import namespace
from manifoldry.util.typing import Array


def upper_factor(G: Array) -> Array:
    """R with G = RᵀR; LinAlgError if G is not positive definite."""
    device = device_of(G)
    return np.triu(cho_factor(G)[0]) if device is None else device.cholesky(G)


def triangular_solution(R: Array, B: Array, *, transposed: bool = False) -> Array:
    """R⁻¹B, or R⁻ᵀB, for an upper triangular R; on the CPU in place of B if its order allows it."""
    device = device_of(R)
    if device is not None:
        return device.solve_triangular(R, B, transposed=transposed)
    options = {"overwrite_b": True, "check_finite": False}
    return np.asarray(solve_triangular(R, B, trans=int(transposed), **options))


def ascending_pairs(G: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    if device_of(G) is None:
        return eigh(G, check_finite=False)
    values, vectors = namespace(G).linalg.eigh(G)
    return values, vectors


def orthonormal_range(A: Array) -> Array:
    """Orthonormal columns that span those of A."""
    if device_of(A) is None:
        return np.asarray(qr(A, mode="economic", check_finite=False)[0])
    return namespace(A).linalg.qr(A)[0]
