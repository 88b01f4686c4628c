"""Writing maps, and data computed from them, with the names and labels of their rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manifoldry.io.annotated_files import open_annotated
from manifoldry.io.columns import unique_names
from manifoldry.io.extras import optional_module
from manifoldry.io.table import Column, DataFileError, Table
from manifoldry.util.typing import Array
from manifoldry.util.writing import (
    folder_replaced_at_once,
    replaced_at_once,
    written_at_once,
)

TABLE_FORMATS = (".csv", ".tsv", ".parquet", ".npy")
ANNOTATED_FORMATS = (".h5ad", ".zarr")
MAP_FORMATS = (*TABLE_FORMATS, *ANNOTATED_FORMATS)
# A spreadsheet runs a cell that begins with one of these as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_map(
    path: str | os.PathLike[str],
    embedding: Array,
    table: Table,
    *,
    method: str = "embedding",
    computed: Mapping[str, Column] | None = None,
) -> Path:
    """Write an embedding, with the names and labels of its rows, in the format of the suffix.

    The file appears under its name when it is complete.

    Parameters
    ----------
    path : str or path
        The file: ``.csv``, ``.tsv``, ``.parquet``, ``.npy`` (coordinates alone), or ``.h5ad`` or
        ``.zarr`` for an AnnData, where the coordinates are ``obsm["X_method"]`` and the rest is
        that of the data, if they were an AnnData too.
    embedding : array of shape (n, n_components)
        The coordinates.
    table : Table
        The data.
    method : str
        Name of the method; columns are its name and a number.
    computed : mapping from str to arrays of shape (n,), optional
        Columns to write beside the labels; one replaces a label of the same name.

    Returns
    -------
    pathlib.Path
        The file that was written.

    See Also
    --------
    write_table : writes data.
    manifoldry.save : writes a model.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from manifoldry.io import Table, write_map
    >>> table = Table(np.array([[0.0, 0.0], [3.0, 0.0]]), ids=np.array(["left", "right"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_map(f"{folder}/map.csv", np.array([[-1.5], [1.5]]), table, method="pca")
    ...     path.read_text().split()
    ['"id","pca0"', '"left",-1.5', '"right",1.5']
    """
    if len(embedding) != table.n:
        raise ValueError(f"embedding has {len(embedding)} rows, but the table has {table.n}")
    if Path(path).suffix.lower() in ANNOTATED_FORMATS:
        return _write_annotated(Path(path), embedding, table, f"X_{method}", computed or {})
    names = tuple(f"{method}{j}" for j in range(embedding.shape[1]))
    labels = {**table.labels, **(computed or {})}
    return write_table(path, replace(table, X=embedding, names=names, labels=labels))


def write_table(path: str | os.PathLike[str], table: Table) -> Path:
    """Write rows of numbers with their names and labels.

    The format is that of the suffix: ``.csv``, ``.tsv``, ``.parquet`` or ``.npy``. In the first
    two, texts that a spreadsheet would run as formulas begin with an apostrophe.

    Parameters
    ----------
    path : str or path
        The file.
    table : Table
        The rows.

    Returns
    -------
    pathlib.Path
        The file that was written.

    See Also
    --------
    read_table : reads it again.
    write_map : writes an embedding of a table.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from manifoldry.io import Table, read_table, write_table
    >>> table = Table(np.array([[1.5, 2.0], [0.5, 3.0]]), names=("width", "height"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = read_table(write_table(f"{folder}/flowers.parquet", table))
    >>> again.names, np.array_equal(again.X, table.X)
    (('width', 'height'), True)
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in TABLE_FORMATS:
        raise DataFileError(
            f"{path}: the format {suffix!r} cannot be written; choose {', '.join(TABLE_FORMATS)}"
        )
    if suffix == ".npy":
        with written_at_once(path) as file:
            np.save(file, _dense(table.X), allow_pickle=False)
        return path
    arrow = optional_module("pyarrow", "cli", f"writing {suffix} files")
    names, columns = _columns(table)
    if suffix == ".parquet":
        parquet = optional_module("pyarrow.parquet", "cli", "writing Parquet")
        with written_at_once(path) as file:
            parquet.write_table(arrow.table(columns, names), file)
        return path
    csv = optional_module("pyarrow.csv", "cli", "writing CSV")
    options = csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",", quoting_style="needed")
    safe = arrow.table([_safe(column) for column in columns], [_safe_text(n) for n in names])
    with written_at_once(path) as file:
        csv.write_csv(safe, file, options)
    return path


def _columns(table: Table) -> tuple[list[str], list[Column]]:
    """Names of rows, numbers and labels, by names that differ."""
    X = _dense(table.X)
    ids = {} if table.ids is None else {"id": table.ids}
    names = table.names or tuple(f"x{j}" for j in range(X.shape[1]))
    columns = [*ids.values(), *map(np.ascontiguousarray, X.T), *table.labels.values()]
    return unique_names([*ids, *names, *table.labels]), columns


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def _safe(column: Column) -> Column:
    if column.dtype.kind not in "UO":
        return column
    return np.array([_safe_text(str(text)) for text in column])


def _safe_text(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def without_apostrophe(text: str) -> str:
    """The text as it was before it was written to a text file, see `write_table`."""
    return text[1:] if text.startswith(tuple(f"'{sign}" for sign in _FORMULA_STARTS)) else text


def _write_annotated(
    path: Path, embedding: Array, table: Table, key: str, computed: Mapping[str, Column]
) -> Path:
    adata = _new_annotated(table) if table.source is None else open_annotated(table.source)
    adata.obsm[key] = np.asarray(embedding)
    for name, values in table.labels.items():
        if name not in adata.obs:
            adata.obs[name] = values
    for name, values in computed.items():
        adata.obs[name] = values
    if path.suffix.lower() == ".zarr":
        optional_module("zarr", "zarr", "writing Zarr")
        with folder_replaced_at_once(path) as folder:
            adata.write_zarr(folder)
        return path
    with replaced_at_once(path) as temporary:
        adata.write_h5ad(temporary)
    return path


def _new_annotated(table: Table) -> Any:
    anndata = optional_module("anndata", "anndata", "writing AnnData")
    pandas = optional_module("pandas", "anndata", "writing AnnData")
    ids = [str(i) for i in (range(table.n) if table.ids is None else table.ids)]
    names = table.names or [f"x{j}" for j in range(table.X.shape[1])]
    obs = pandas.DataFrame(dict(table.labels), index=ids)
    return anndata.AnnData(table.X, obs=obs, var=pandas.DataFrame(index=list(names)))
