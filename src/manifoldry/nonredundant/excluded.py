"""Constraints that exclude what a smoother predicts, in single precision if they are many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from manifoldry.eigen import SpectralProblem
from manifoldry.eigen.standard import orthonormal_basis
from manifoldry.nonredundant.dense import ascending_pairs
from manifoldry.util.arrays import like, namespace, to_numpy
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
    are then left out. If they are on a device, the constraints are computed there.
    """
    root = np.ones(problem.n) if problem.mass is None else np.sqrt(problem.mass)
    root = root / power_of_two_scale(root)  # single precision has a small range
    given = [C for C in (problem.constraint, F) if C is not None]
    if values.dtype != np.float32 or values.shape[1] < _SINGLE_FROM:
        return replace(problem, constraint=np.hstack([*given, to_numpy(values)]))
    root, others = like(root, values), like(np.hstack(given), values)
    deflated = None
    if problem.deflate is not None:
        deflated = orthonormal_basis(root[:, None] * like(problem.deflate, values))
    known = orthonormal_basis(root[:, None] * others, beyond=deflated)
    scale = root.astype(np.float32)[:, None]
    low, C = known.astype(np.float32), scale * values
    C -= low @ (low.T @ C)
    distances, V = ascending_pairs(_gram(C))
    dependent, close = np.searchsorted(to_numpy(distances), (_DEPENDENT, _CLOSE), side="right")
    # What remains of functions close to the others is small: it is projected in double precision.
    if dependent < close:
        remainders = scale * (values @ V[:, dependent:close].astype(np.float32))
        known = orthonormal_basis(remainders.astype(np.float64), beyond=known)
    known = known[:, 0 if deflated is None else deflated.shape[1] :].astype(np.float32)
    C = C @ (V[:, close:] / namespace(V).sqrt(distances[close:])).astype(np.float32)
    columns = namespace(C).hstack([known, C])
    columns /= scale
    return replace(problem, constraint=columns)


def _gram(C: Array) -> Array:
    """CᵀC in double precision, from products of blocks of rows in single precision."""
    G = namespace(C).zeros((C.shape[1], C.shape[1]))
    for block in row_blocks(len(C), C.shape[1], budget=2**21):
        G += C[block].T @ C[block]
    return G
