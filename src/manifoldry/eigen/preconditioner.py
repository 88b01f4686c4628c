"""Cheap approximate inverses of sparse positive definite matrices."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np
import scipy.sparse as sp

from manifoldry.util.typing import Array, Matrix

# pyamg draws from numpy's global generator, which one thread at a time may borrow.
_GLOBAL_GENERATOR = Lock()

Preconditioner = Callable[[Array], Array]


def multigrid(M: Matrix, rng: np.random.Generator) -> Preconditioner | None:
    """Return a V-cycle of smoothed aggregation for M, or None without pyamg."""
    try:
        import pyamg
    except ImportError:
        return None
    M = sp.csr_matrix(M)
    # scipy widens the indices of some sums to 64 bits, which pyamg does not take.
    M.indices, M.indptr = M.indices.astype(np.int32), M.indptr.astype(np.int32)
    # pyamg estimates spectral radii from numpy's global generator; lend it one of ours.
    # There is no other way to seed it (hence the exceptions to NPY002), and the lock keeps
    # threads from seeing each other's.
    with _GLOBAL_GENERATOR:
        state = np.random.get_state()  # noqa: NPY002 (see above)
        np.random.seed(rng.integers(2**32))  # noqa: NPY002 (see above)
        try:
            cycle = pyamg.smoothed_aggregation_solver(M).aspreconditioner(cycle="V")
        finally:
            np.random.set_state(state)  # noqa: NPY002 (see above)
    return lambda R: np.asarray(cycle @ R)


def inverse_diagonal(M: Matrix) -> Preconditioner:
    """Return the division by the diagonal of M."""
    inverse = 1 / np.maximum(M.diagonal(), np.finfo(float).tiny)
    return lambda R: inverse[:, None] * R
