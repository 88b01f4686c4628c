"""Constraints that exclude what a smoother predicts, in single precision if they are many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh

from manifoldry.eigen import SpectralProblem
from manifoldry.eigen.standard import orthonormal_basis
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale, row_blocks

# Number of functions from which on products with them dominate, so that half the time counts.
_SINGLE_FROM = 64
# Squared distances of unit functions from the other constraints: close to them, and dependent.
_CLOSE, _DEPENDENT = 1e-2, 1e-6


def excluding(problem: SpectralProblem, F: Array, values: Array) -> SpectralProblem:
    """The problem restricted to functions orthogonal to the columns of `F` and of `values`.

    If `values` (columns of about unit length) are in single precision and more than 64, so are the
    constraints. Functions within a distance of 0.001 of the span of `F` and the other constraints
    are then left out.
    """
    root = np.ones(problem.n) if problem.mass is None else np.sqrt(problem.mass)
    root = root / power_of_two_scale(root)  # single precision has a small range
    given = [C for C in (problem.constraint, F) if C is not None]
    if values.dtype != np.float32 or values.shape[1] < _SINGLE_FROM:
        return replace(problem, constraint=np.hstack([*given, values]))
    deflated = np.empty((problem.n, 0)) if problem.deflate is None else problem.deflate
    deflated = orthonormal_basis(root[:, None] * deflated)
    known = orthonormal_basis(root[:, None] * np.hstack(given), beyond=deflated)
    scale = root.astype(np.float32)[:, None]
    low, C = known.astype(np.float32), scale * values
    C -= low @ (low.T @ C)
    distances, V = eigh(_gram(C), check_finite=False)
    # What remains of functions close to the others is small: it is projected in double precision.
    close = (distances <= _CLOSE) & (distances > _DEPENDENT)
    remainders = (scale * (values @ V[:, close].astype(np.float32))).astype(np.float64)
    known = orthonormal_basis(remainders, beyond=known)[:, deflated.shape[1] :]
    kept = distances > _CLOSE
    C = C @ (V[:, kept] / np.sqrt(distances[kept])).astype(np.float32)
    columns = np.hstack([known.astype(np.float32), C])
    columns /= scale
    return replace(problem, constraint=columns)


def _gram(C: Array) -> Array:
    """CᵀC in double precision, from products of blocks of rows in single precision."""
    G = np.zeros((C.shape[1], C.shape[1]))
    for block in row_blocks(len(C), C.shape[1], budget=2**21):
        G += C[block].T @ C[block]
    return G
