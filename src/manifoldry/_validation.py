"""Checks of data that every public entry point shares, and planning of memory."""

import os
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry._typing import Array, Matrix


def refuse_masked(X: Any) -> None:
    """Masked cells would be read as ordinary numbers further down; refuse them here."""
    if np.ma.is_masked(X):
        count = int(np.ma.count_masked(X))
        raise ValueError(
            f"X has {count} masked cells, whose values are unknown; "
            "fill or drop them first (sklearn.impute has imputers)"
        )


def check_data(estimator: Any, X: Any, *, reset: bool, **options: Any) -> Matrix:
    """Validate `X` as scikit-learn does, keeping float32 and CSR, and refusing masked cells."""
    from sklearn.utils.validation import validate_data

    refuse_masked(X)
    options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], **options}
    return _short_indices(validate_data(estimator, X, reset=reset, **options))


def _short_indices(X: Matrix) -> Matrix:
    """Sparse data with 32-bit indices where those suffice: not every metric takes 64-bit ones."""
    if sparse.issparse(X) and max(*X.shape, X.nnz) < 2**31:
        short = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        return type(X)(short, shape=X.shape)
    return X


def owned(X: Matrix, original: Any) -> Matrix:
    """Copy `X` if it still shares memory with what the caller holds.

    A fitted model must not change when the caller overwrites the array later. A read-only memory
    map cannot be overwritten through the caller's handle and may be larger than memory: it stays.
    """
    if sparse.issparse(X):
        return X.copy()
    if isinstance(X, np.memmap) and not X.flags.writeable:
        return X
    source = original.to_numpy() if hasattr(original, "to_numpy") else original
    shared = not isinstance(source, np.ndarray) or np.may_share_memory(X, source)
    return np.array(X) if shared else X


def check_square(X: Matrix, what: str) -> None:
    """Refuse anything but a square matrix, naming its shape."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"precomputed {what} must be a square matrix; got shape {X.shape}")


def check_non_negative(X: Matrix, what: str) -> None:
    """Refuse negative entries, naming the smallest one."""
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(f"precomputed {what} must not be negative; the smallest is {values.min()}")


def check_symmetric(X: Matrix, what: str) -> None:
    """Refuse a matrix that differs from its transpose by more than rounding."""
    difference = abs(X - X.T).max() if X.shape[0] else 0.0
    largest = abs(X).max() if X.shape[0] else 0.0
    if difference > 1e-6 * largest:
        raise ValueError(
            f"precomputed {what} must be symmetric; entries differ from their mirror image by up "
            f"to {difference:.3g}; pass (A + A.T) / 2 if the difference is noise"
        )


def check_zero_diagonal(D: Array) -> None:
    """Refuse distances from points to themselves, naming the largest."""
    if np.diagonal(D).any():
        raise ValueError(
            "precomputed distances must have a zero diagonal; the largest entry there is "
            f"{np.diagonal(D).max()}; if these are similarities, turn them into distances"
        )


def available_memory() -> int | None:
    """Bytes of memory this process may still take, or None where the system does not say."""
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def plan_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Refuse up front what cannot fit, instead of dying half-way."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs about {n_bytes / 2**30:.1f} GiB and {available / 2**30:.1f} GiB are "
            f"free; {remedy}"
        )


def row_blocks(n_rows: int, floats_per_row: int, budget: int = 2**23) -> list[slice]:
    """Cut `n_rows` into slices whose blocks hold at most `budget` numbers (64 MiB)."""
    step = max(1, min(n_rows, budget // max(1, floats_per_row)))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def power_of_two_scale(X: Array) -> float:
    """Smallest power of two no less than ``max |X|``: dividing by it loses no digits."""
    largest = float(np.abs(X).max(initial=0.0))
    return float(2.0 ** np.ceil(np.log2(largest))) if largest > 0 else 1.0
