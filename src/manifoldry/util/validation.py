"""Checks of data that every public entry point shares, and planning of memory."""

import os
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.util.typing import Array, IntArray, Matrix

# Fraction of the largest entry up to which a matrix may fail to be what it should be.
ROUNDING = 1e-6


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
    return canonical(validate_data(estimator, X, reset=reset, **options))


def read_rows(X: Any, least: int) -> Matrix:
    """Finite rows, dense or CSR."""
    from sklearn.utils import check_array

    refuse_masked(X)
    dtypes = [np.float64, np.float32]
    return canonical(
        check_array(X, accept_sparse="csr", dtype=dtypes, ensure_min_samples=least, input_name="X")
    )


def canonical(X: Matrix) -> Matrix:
    """Sparse data with every entry stored once, and 32-bit indices where those suffice.

    Repeated entries, which stand for their sum, would be read as several neighbors or several
    features further down; and not every metric takes 64-bit indices.
    """
    if not sparse.issparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype == np.int32 or max(*X.shape, X.nnz) >= 2**31:
        return X
    short = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(short, shape=X.shape)


def owned(X: Matrix, original: Any) -> Matrix:
    """Copy `X` if it still shares memory with what the caller holds.

    A fitted model must not change when the caller overwrites the array later. A read-only memory
    map cannot be overwritten through the caller's handle and may be larger than memory: it stays.
    """
    if sparse.issparse(X):
        return X.copy()
    if isinstance(original, list | tuple) or _is_read_only_map(X):
        return X
    source = original.to_numpy() if hasattr(original, "to_numpy") else original
    shared = not isinstance(source, np.ndarray) or np.may_share_memory(X, source)
    return np.array(X) if shared else X


def _is_read_only_map(X: Any) -> bool:
    """Whether `X` is a view of a file that was opened for reading only."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and X.mode == "r":
            return True
        X = X.base
    return False


def check_square(X: Matrix, what: str) -> None:
    """Refuse anything but a square matrix, naming its shape."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"precomputed {what} must be a square matrix; got shape {X.shape}")


def check_non_negative(X: Matrix, what: str) -> None:
    """Refuse negative entries, naming the smallest one."""
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(
            f"Negative values in data: precomputed {what} must not be negative; "
            f"the smallest is {values.min()}"
        )


def check_symmetric(X: Matrix, what: str, rounding: float = ROUNDING) -> None:
    """Refuse a matrix that differs from its transpose by more than rounding."""
    largest = largest_modulus(X)
    if sparse.issparse(X):
        difference = largest_modulus(X - X.T)
    else:
        tiles = square_tiles(len(X))
        difference = max((largest_modulus(X[i, j] - X[j, i].T) for i, j in tiles), default=0.0)
    if difference > rounding * largest:
        raise ValueError(
            f"precomputed {what} must be symmetric; entries differ from their mirror image by up "
            f"to {difference:.3g}; pass (A + A.T) / 2 if the difference is noise"
        )


def check_zero_diagonal(D: Array, rounding: float = ROUNDING) -> None:
    """Refuse distances from points to themselves, beyond rounding, naming the largest."""
    largest = largest_modulus(np.diagonal(D))
    if largest > rounding * largest_modulus(D):
        raise ValueError(
            "precomputed distances must have a zero diagonal; the largest entry there is "
            f"{largest}; if these are similarities, turn them into distances"
        )


def largest_modulus(X: Matrix) -> float:
    """Largest modulus in `X`, without a copy of `X`."""
    values = X.data if sparse.issparse(X) else X
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def available_memory() -> int | None:
    """Bytes of memory this process may still take, or None where the system does not say."""
    known = [amount for amount in (_system_memory(), _group_memory()) if amount is not None]
    return min(known) if known else None


def _system_memory() -> int | None:
    """What the machine has left; on Linux that includes the files it caches and can drop."""
    try:
        with open("/proc/meminfo") as lines:
            sizes = {line.split(":")[0]: line.split()[1] for line in lines}
        return 1024 * int(sizes["MemAvailable"])
    except (OSError, KeyError, ValueError, IndexError):
        pass
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def _group_memory(folder: str = "/sys/fs/cgroup") -> int | None:
    """What a container has left of its limit, where it has one."""
    try:
        with open(f"{folder}/memory.max") as limit, open(f"{folder}/memory.current") as used:
            left = int(limit.read()) - int(used.read())
        with open(f"{folder}/memory.stat") as lines:
            return left + int(dict(line.split() for line in lines)["inactive_file"])
    except (OSError, KeyError, ValueError):
        return None


def plan_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Refuse up front what cannot fit, instead of dying half-way."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs about {n_bytes / 2**30:.1f} GiB and {available / 2**30:.1f} GiB are "
            f"free; {remedy}"
        )


def square_tiles(n: int, side: int = 512) -> list[tuple[slice, slice]]:
    """Cut the upper triangle of a square matrix into tiles that fit the cache with their mirror."""
    cuts = [slice(start, min(start + side, n)) for start in range(0, n, side)]
    return [(rows, columns) for i, rows in enumerate(cuts) for columns in cuts[i:]]


def row_blocks(n_rows: int, floats_per_row: int, budget: int = 2**23) -> list[slice]:
    """Cut `n_rows` into slices whose blocks hold at most `budget` numbers (64 MiB)."""
    step = max(1, min(n_rows, budget // max(1, floats_per_row)))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def spread_rows(n_rows: int, most: int) -> IntArray:
    """At most `most` rows, evenly spread over all of them, to take figures on."""
    count = min(n_rows, most)
    return np.arange(count) * n_rows // max(1, count)


def split_by_label(labels: IntArray) -> list[IntArray]:
    """Rows of every label 0, 1, ..., ascending; rows labeled -1 belong nowhere."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 2))
    return [order[a:b] for a, b in pairwise(starts)]


def power_of_two_scale(X: Array) -> float:
    """Smallest power of two no less than ``max |X|``: dividing by it loses no digits.

    It stays within the range in which its reciprocal is finite, too.
    """
    largest = largest_modulus(X)
    if largest == 0:
        return 1.0
    mantissa, exponent = np.frexp(largest)  # largest = mantissa · 2^exponent, 0.5 ≤ mantissa < 1
    exponent -= mantissa == 0.5
    return float(np.ldexp(1.0, min(max(int(exponent), -1022), 1023)))
