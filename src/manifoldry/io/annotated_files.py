"""AnnData files (`.h5ad`): cells by genes, with what is known about both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.io.array_files import sparse_rows
from manifoldry.io.columns import ColumnChoice
from manifoldry.io.extras import optional_module
from manifoldry.io.table import Column, DataFileError, Table
from manifoldry.util.array_like import array_like

_MAX_CLASSES = 200


def read_h5ad(path: Path, choice: ColumnChoice, key: str | None = None) -> Table:
    """Cells with their names and annotations.

    Parameters
    ----------
    path : path
        The file.
    choice : ColumnChoice
        `features` are names of variables, `labels` columns of ``obs``.
    key : str, optional
        An entry of ``obsm`` or ``layers`` to read instead of ``X``.
    """
    try:
        return replace(annotated_table(open_h5ad(path), choice, key, str(path)), source=path)
    except DataFileError:
        raise
    except ValueError as error:
        raise DataFileError(f"{path}: {error}") from error


def annotated_table(
    adata: Any, choice: ColumnChoice, key: str | None = None, name: str = "the AnnData"
) -> Table:
    """The same of an AnnData in memory; `name` is for messages."""
    X = array_like(adata if key is None else (adata, key), name)
    X = sparse_rows(X) if sparse.issparse(X) else np.asarray(X)
    names = [str(name) for name in adata.var_names]
    if key is not None and X.shape[1] != len(names):
        names = [f"{key.removeprefix('X_')}{j + 1}" for j in range(X.shape[1])]
    kept = _kept(names, choice, name)
    labels, notes = _labels(adata, choice, name)
    return Table(
        X if kept == list(range(len(names))) else X[:, kept],
        tuple(names[j] for j in kept),
        np.array([str(name) for name in adata.obs_names]),
        labels,
        notes,
    )


def open_h5ad(path: Path) -> Any:
    """The AnnData of a file, in memory."""
    anndata = optional_module("anndata", "anndata", "reading and writing .h5ad")
    try:
        return anndata.read_h5ad(path)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # h5py and anndata raise many kinds
        reason = str(error).splitlines()[0][:120]
        raise DataFileError(f"{path} is damaged, or no AnnData file: {reason}") from error


def _kept(names: list[str], choice: ColumnChoice, file: str) -> list[int]:
    """Numbers of the variables that are features, in the order in which they were named."""
    choice.require_names((*(choice.features or ()), *choice.drop), names, file)
    if choice.features:
        places = {name: j for j, name in enumerate(names)}
        return [places[name] for name in choice.features]
    return [j for j, name in enumerate(names) if name not in set(choice.drop)]


def _labels(
    adata: Any, choice: ColumnChoice, file: str
) -> tuple[dict[str, Column], tuple[str, ...]]:
    """The columns of `obs` that were named, or those of categories."""
    present = [str(name) for name in adata.obs.columns]
    choice.require_names(choice.labels, present, f"obs of {file}")
    chosen = list(choice.labels)
    if not chosen:
        kinds = {name: str(adata.obs[name].dtype) for name in present}
        chosen = [name for name in present if kinds[name] in ("category", "object", "string")]
        chosen = [n for n in chosen if adata.obs[n].nunique() <= _MAX_CLASSES]
    notes = () if choice.labels or not chosen else (f"labels: {', '.join(map(repr, chosen))}",)
    return {name: _values(adata.obs[name]) for name in chosen}, notes


def _values(column: Any) -> Column:
    values = np.asarray(column)
    return values if values.dtype.kind in "biuf" else np.array([str(v) for v in values])
