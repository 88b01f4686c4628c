"""Validation of data, memory checks, and splitting of rows into blocks."""

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.exceptions import LargeMatrixWarning, warn
from manifoldry.util.array_like import (
    Fetched,
    annotated_of,
    array_like,
    check_not_path,
    check_not_stacked,
    check_not_times,
    is_annotated,
    is_elsewhere,
    is_layer,
)
from manifoldry.util.memory import NotEnoughMemoryError, available_memory, replaced_remedy
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray, Matrix

# Tolerance of checks of symmetry and zero diagonals, relative to the largest entry.
ROUNDING = 1e-6
# A matrix of all pairs of more points is announced by a warning before it is computed.
ANNOUNCED_ABOVE = 20_000
# Plans of so few bytes (128 MB) are not compared with the free memory: to read how much is free
# takes half a millisecond, which is a quarter of the time of a fit to a hundred points.
SMALL_PLAN = 2**27


def check_not_masked(X: Any) -> None:
    """Raise ValueError if `X` has masked entries, which would be read as ordinary numbers."""
    if np.ma.is_masked(X):
        count = int(np.ma.count_masked(X))
        raise ValueError(
            f"X has {count} masked cells; fill or drop them first (see sklearn.impute)"
        )


def check_data(estimator: Any, X: Any, *, reset: bool, **options: Any) -> Matrix:
    """Validate `X` as scikit-learn does, keeping float32 and CSR; see `read_array`."""
    from sklearn.utils.validation import validate_data

    rows = numeric(X, "X")
    options = {"accept_sparse": "csr", "dtype": _float_types(rows), **_checked(rows), **options}
    annotated = annotated_of(X) if is_annotated(X) or is_layer(X) else None
    if not hasattr(annotated, "var_names"):
        return canonical(validate_data(estimator, rows, reset=reset, **options))
    with warnings.catch_warnings():
        # Its array has no names; those of the AnnData are checked below.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        rows = validate_data(estimator, rows, reset=reset, **options)
    _check_variable_names(estimator, annotated, reset)
    return canonical(rows)


def _check_variable_names(estimator: Any, annotated: Any, reset: bool) -> None:
    """Compare the names of an AnnData's variables with those of `fit`, or store them."""
    names = np.asarray(annotated.var_names, dtype=object)
    known = getattr(estimator, "feature_names_in_", None)
    if reset:
        estimator.feature_names_in_ = names
    elif known is not None and not np.array_equal(names, known):
        j = int(np.argmax(names != known))
        raise ValueError(
            f"the variables of X are not those of fit, or in another order: variable {j} is "
            f"{names[j]!r} and was {known[j]!r}; pass adata[:, model.feature_names_in_]"
        )


def read_rows(X: Any, least: int) -> Matrix:
    """Return `X` as a finite 2-D array or CSR matrix of floats, with at least `least` rows."""
    return canonical(read_array(X, accept_sparse="csr", ensure_min_samples=least))


def read_array(X: Any, name: str = "X", **options: Any) -> Matrix:
    """Return `X` as scikit-learn's ``check_array`` does, after the checks of `numeric`."""
    from sklearn.utils import check_array

    X = numeric(X, name)
    known = {"dtype": _float_types(X), "input_name": name, **_checked(X)}
    return check_array(X, **{**known, **options})


def _checked(X: Any, large: int = 2**22) -> dict[str, Any]:
    """Options of scikit-learn's checks, without that of large arrays that are known to be finite.

    It uses one thread.
    """
    if not (type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind == "f" and X.size >= large):
        return {}
    with np.errstate(over="ignore", invalid="ignore"):
        sums = map_threads(lambda rows: X[rows].sum(), row_blocks(len(X), X.shape[1], budget=2**20))
    return {"ensure_all_finite": False} if np.isfinite(sums).all() else {}


def _float_types(X: Any) -> Any:
    """Types that `X` may keep; other numbers become float64.

    scikit-learn does not know the types of a polars frame and would convert float32.
    """
    types = getattr(X, "dtypes", None)
    single = isinstance(types, list) and {str(kind) for kind in types} == {"Float32"}
    return np.float32 if single else [np.float64, np.float32]


def numeric(X: Any, name: str) -> Any:
    """Return an array-like, of an AnnData its array; refuse paths, stacks, masks and times."""
    check_not_path(X, name)
    X = array_like(X, name)
    check_not_stacked(X, name)
    check_not_masked(X)
    check_not_times(X, name)
    return _in_native_byte_order(X)


def _in_native_byte_order(X: Any) -> Any:
    """Return an array in the byte order of this machine, so that float32 is known as float32."""
    dtype = getattr(X, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.isnative:
        return X
    return X.astype(dtype.newbyteorder("="))


def canonical(X: Matrix) -> Matrix:
    """Return dense data in C order, sparse data without duplicates and with 32-bit indices.

    The order of numbers in memory changes the rounding of sums, and with it an iterative map.
    Duplicate entries would be read as several neighbors or features, and some metrics do not
    accept 64-bit indices.
    """
    if not sparse.issparse(X):
        # A read-only memory map may be larger than memory.
        return X if _is_read_only_map(X) else np.ascontiguousarray(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype == np.int32 or max(*X.shape, X.nnz) >= 2**31:
        return X
    short = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(short, shape=X.shape)


def copy_if_shared(X: Matrix, original: Any) -> Matrix:
    """Return a copy of `X` if it shares memory with the caller's array `original`.

    A fitted model must not change when the caller modifies the array later. A read-only memory
    map cannot be modified by the caller and may be larger than memory, so it is not copied.
    """
    if is_elsewhere(original) or isinstance(original, Fetched):
        return X  # a copy already
    original = array_like(original)
    if sparse.issparse(X):
        return X.copy()
    if isinstance(original, list | tuple) or _is_read_only_map(X):
        return X
    source = original.to_numpy() if hasattr(original, "to_numpy") else original
    shared = not isinstance(source, np.ndarray) or np.may_share_memory(X, source)
    return _copied(X) if shared else X


def _copied(X: Array, large: int = 2**22) -> Array:
    """A copy, made by several threads if it is large: most of the time is for new memory."""
    if X.size < large or X.ndim != 2 or not X.flags.c_contiguous:
        return np.array(X)
    copy = np.empty(X.shape, dtype=X.dtype)

    def fill(rows: slice) -> None:
        copy[rows] = X[rows]

    map_threads(fill, row_blocks(len(X), X.shape[1], budget=2**20))
    return copy


def _is_read_only_map(X: Any) -> bool:
    """Whether `X` is a view of a read-only memory map."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and X.mode == "r":
            return True
        X = X.base
    return False


def in_precision(values: Array, dtype: Any) -> Array:
    """Return `values` in the precision of the data; raise ValueError if they leave its range."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype, copy=False)
    if np.isinf(cast).any():
        rows = np.flatnonzero(np.isinf(cast.reshape(len(cast), -1)).any(axis=1))
        some = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
        remedy = "" if cast.dtype == np.float64 else "pass double precision, "
        raise ValueError(
            f"results leave the range of {cast.dtype} in {len(rows)} of {len(cast)} rows ({some}), "
            "because values of the data are near its end, or rows are very far from the training "
            f"data; {remedy}divide the data by a constant before fitting, or leave out such rows"
        )
    return cast


def check_square(X: Matrix, what: str) -> None:
    """Raise ValueError unless `X` is a square matrix."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"precomputed {what} must be a square matrix; got shape {X.shape}")


def check_nonnegative_entries(X: Matrix, what: str) -> None:
    """Raise ValueError if `X` has negative entries."""
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(
            f"Negative values in data: precomputed {what} must not be negative; "
            f"the smallest is {values.min()}"
        )


def check_symmetric(X: Matrix, what: str, rounding: float = ROUNDING) -> None:
    """Raise ValueError if a matrix differs from its transpose by more than rounding."""
    largest = largest_modulus(X)
    if sparse.issparse(X):
        difference = largest_asymmetry(X)
    else:
        tiles = square_tiles(len(X))
        difference = max((largest_modulus(X[i, j] - X[j, i].T) for i, j in tiles), default=0.0)
    if difference > rounding * largest:
        raise ValueError(
            f"precomputed {what} must be symmetric; entries differ from the transpose by up to "
            f"{difference:.3g}; pass (A + A.T) / 2 if the difference is noise"
        )


def largest_asymmetry(X: Matrix, compile_above: float = 1e6) -> float:
    """Largest difference between a sparse matrix and its transpose."""
    if X.nnz <= compile_above:
        return largest_modulus(X - X.T)
    from manifoldry.util.compiled import asymmetry

    X = canonical(sparse.csr_array(X))  # compared without a transpose in memory
    return float(asymmetry(X.indptr, X.indices, X.data, X.indptr[:-1].copy()))


def asymmetric_product(A: Matrix) -> float:
    """Largest modulus of (A − Aᵀ) x for a random x, in less time than a comparison takes.

    If entries differ from the transpose by at most ε, it is at most 2 n ε, up to the rounding of
    the products. Entries of x have moduli from 1 to 2, so that a difference of more than ε gives
    more than ε, unless it cancels with others of its row.
    """
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], A.shape[0]) * rng.uniform(1, 2, A.shape[0])
    return largest_modulus(A @ x - A.T @ x)


def check_zero_diagonal(D: Array, rounding: float = ROUNDING) -> None:
    """Raise ValueError if distances of points to themselves exceed rounding."""
    largest = largest_modulus(np.diagonal(D))
    if largest > rounding * largest_modulus(D):
        raise ValueError(
            "precomputed distances must have a zero diagonal; the largest entry there is "
            f"{largest}; if these are similarities, convert them to distances"
        )


def largest_modulus(X: Matrix) -> float:
    """Largest absolute value in `X`, without a copy of `X`."""
    values = X.data if sparse.issparse(X) else X
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def plan_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise MemoryError if `n_bytes`, unless they are few, exceed the available memory."""
    if n_bytes <= SMALL_PLAN:
        return
    available = available_memory()
    if available is not None and n_bytes > available:
        need = (
            f"{what} needs about {n_bytes / 2**30:.1f} GiB and {available / 2**30:.1f} GiB are free"
        )
        raise NotEnoughMemoryError(need, remedy)


def plan_matrix(shape: tuple[int, int], bytes_per_entry: float, what: str, remedy: str) -> None:
    """Plan memory for a dense matrix, and warn if it is large, with its size and the remedy.

    Large are those with more entries than there are pairs of `ANNOUNCED_ABOVE` points.
    """
    n_bytes = bytes_per_entry * float(shape[0]) * shape[1]
    plan_memory(n_bytes, what, remedy)
    if float(shape[0]) * shape[1] > ANNOUNCED_ABOVE**2:
        size = f"{what} needs about {n_bytes / 2**30:.1f} GiB of memory"
        warn(f"{size}; if that is too much, {replaced_remedy(remedy)}", LargeMatrixWarning)


def square_tiles(n: int, side: int = 512) -> list[tuple[slice, slice]]:
    """Split the upper triangle of a square matrix into tiles that fit the processor cache."""
    cuts = [slice(start, min(start + side, n)) for start in range(0, n, side)]
    return [(rows, columns) for i, rows in enumerate(cuts) for columns in cuts[i:]]


def row_blocks(n_rows: int, floats_per_row: int, budget: int = 2**23) -> list[slice]:
    """Split `n_rows` into slices of at most `budget` numbers (64 MiB by default)."""
    step = max(1, min(n_rows, budget // max(1, floats_per_row)))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def streaming_blocks(X: Matrix, least: int = 1024) -> list[slice]:
    """Split the rows of data into blocks whose temporary arrays take about 100 MB.

    Blocks have up to 65536 rows, and at least `least`, to be worth their fixed costs.
    """
    n = X.shape[0]
    per_row = X.nnz // max(1, n) if sparse.issparse(X) else X.shape[1]
    return row_blocks(n, min(max(per_row, 64), 2**22 // least), budget=2**22)


def spread_rows(n_rows: int, most: int) -> IntArray:
    """At most `most` row indices, evenly spaced over all rows."""
    count = min(n_rows, most)
    return np.arange(count) * n_rows // max(1, count)


def split_by_label(labels: IntArray) -> list[IntArray]:
    """Rows of each label 0, 1, ..., ascending; rows labeled -1 are left out."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 2))
    return [order[a:b] for a, b in pairwise(starts)]


def power_of_two_scale(X: Array) -> float:
    """Smallest power of two that is at least ``max |X|``, so that dividing by it is exact.

    It is limited to the range in which its reciprocal is finite.
    """
    largest = largest_modulus(X)
    if largest == 0:
        return 1.0
    mantissa, exponent = np.frexp(largest)  # largest = mantissa · 2^exponent, 0.5 ≤ mantissa < 1
    exponent -= mantissa == 0.5
    return float(np.ldexp(1.0, min(max(int(exponent), -1022), 1023)))
