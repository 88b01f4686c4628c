"""The same numbers in other formats and layouts in memory."""

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse


def names(X):
    return [f"feature {j}" for j in range(X.shape[1])]


def strided(X):
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def backwards(X):
    return X[::-1, ::-1].copy()[::-1, ::-1]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def other_byte_order(X):
    return X.astype(X.dtype.newbyteorder())


DENSE = {
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "backwards": backwards,
    "read-only": read_only,
    "byte order": other_byte_order,
    "pandas": lambda X: pd.DataFrame(X, columns=names(X)),
    "polars": lambda X: pl.DataFrame(dict(zip(names(X), X.T, strict=True))),
}
# Lists hold double precision.
LISTS = {"list": lambda X: X.tolist(), "tuple of rows": lambda X: tuple(map(tuple, X.tolist()))}
# Whole numbers only; they become double precision.
WHOLE = {"int64": lambda X: X.astype(np.int64), "int8": lambda X: X.astype(np.int8)}
BINARY = {"bool": lambda X: X.astype(bool), "uint8": lambda X: X.astype(np.uint8)}
SPARSE = {
    "csc_array": sparse.csc_array,
    "coo_matrix": sparse.coo_matrix,
    "csr_matrix": sparse.csr_matrix,
    "explicit zeros": lambda X: sparse.csr_array(
        (X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), np.arange(len(X) + 1) * X.shape[1]),
        shape=X.shape,
    ),
}


def dense_formats(X):
    """Names of the formats that hold the numbers of `X` without rounding."""
    whole = bool((np.round(X) == X).all() and np.abs(X).max() < 100)
    kinds = {**DENSE, **(LISTS if X.dtype == np.float64 else {})}
    if X.dtype == np.float64 and whole:
        kinds |= WHOLE
        kinds |= BINARY if np.isin(X, (0, 1)).all() else {}
    return kinds
