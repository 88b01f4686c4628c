"""Rows with names of their columns, which scikit-learn expects of models of named columns."""

from typing import Any

from scipy import sparse

from manifoldry.util.typing import Array, Matrix


def rows_for(model: Any, rows: Matrix) -> Any:
    """`rows` with the names of the columns that a fitted model knows, if it knows any.

    Without them scikit-learn warns, and its warnings can be silenced only for all threads.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != rows.shape[1]:
        return rows  # the model says what is wrong
    return named_rows(rows, names)


def named_rows(rows: Matrix, names: Array | None) -> Any:
    """The rows as a data frame if their columns have names."""
    if names is None:
        return rows
    try:
        import pandas as pd
    except ImportError:  # the names are those of a polars frame
        import polars as pl

        return pl.DataFrame(rows.toarray() if sparse.issparse(rows) else rows, schema=list(names))
    if sparse.issparse(rows):
        return pd.DataFrame.sparse.from_spmatrix(rows, columns=names)
    return pd.DataFrame(rows, columns=names)
