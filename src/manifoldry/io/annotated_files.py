"""AnnData in files (`.h5ad`) and Zarr stores: cells by genes, with what is known about both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.io.array_files import checked_features, sparse_rows
from manifoldry.io.columns import ColumnChoice, unique_names
from manifoldry.io.extras import optional_module
from manifoldry.io.store_checks import opened_hdf5, opened_zarr
from manifoldry.io.table import Column, DataFileError, Table
from manifoldry.util.array_like import array_like

_MAX_CLASSES = 200
_KINDS = ("obsm", "layers", "obsp")
_PURPOSE = "reading and writing AnnData"


class AnnotatedParts(NamedTuple):
    """What is read of an AnnData: a matrix, where it is, and the tables of rows and columns."""

    X: Any
    place: str
    obs: Any
    var: Any


def read_annotated(path: Path, choice: ColumnChoice, key: str | None = None) -> Table:
    """Cells with their names and annotations; other entries of the file are not read.

    Parameters
    ----------
    path : path
        The file, or the folder of a Zarr store.
    choice : ColumnChoice
        `features` are names of variables, `labels` columns of ``obs``.
    key : str, optional
        An entry of ``obsm``, ``layers`` or ``obsp`` to read instead of ``X``.
    """
    parts = _read_parts(path, key)
    with _damaged(path):
        return replace(_table(parts, choice, key, str(path)), source=path)


def annotated_table(
    adata: Any, choice: ColumnChoice, key: str | None = None, name: str = "the AnnData"
) -> Table:
    """The same of an AnnData in memory, without ``obsp``; `name` is for messages."""
    X = array_like(adata if key is None else (adata, key), name)
    place = "X" if key is None else f"obsm/{key}" if key in adata.obsm else f"layers/{key}"
    return _table(AnnotatedParts(X, place, adata.obs, adata.var), choice, key, name)


def _table(parts: AnnotatedParts, choice: ColumnChoice, key: str | None, name: str) -> Table:
    X = sparse_rows(parts.X) if sparse.issparse(parts.X) else np.asarray(parts.X)
    X = checked_features(X, f"{parts.place} of {name}")
    names = unique_names([str(each) for each in parts.var.index])  # genes may have one symbol
    if not parts.place.startswith(("X", "layers")):
        names = [f"{str(key).removeprefix('X_')}{j}" for j in range(X.shape[1])]
    kept = _kept(names, choice, name)
    labels, notes = _labels(parts.obs, choice, name)
    return Table(
        X if kept == list(range(len(names))) else X[:, kept],
        tuple(names[j] for j in kept),
        np.array([str(each) for each in parts.obs.index]),
        labels,
        notes,
        is_graph=parts.place.startswith("obsp"),
    )


def is_annotated_store(path: Path) -> bool:
    """Whether a folder is a Zarr store that AnnData has written, known by its attributes."""
    for name, within in ((".zattrs", None), ("zarr.json", "attributes")):
        try:
            found = json.loads((path / name).read_bytes())
            found = found if within is None else found[within]
            if found.get("encoding-type") == "anndata":
                return True
        except (OSError, ValueError, LookupError, AttributeError):
            continue
    return False


def open_annotated(path: Path) -> Any:
    """The AnnData of a file or a Zarr store, in memory."""
    anndata = optional_module("anndata", "anndata", _PURPOSE)
    with _damaged(path), _opened(path) as store:
        return anndata.read_zarr(store) if path.is_dir() else anndata.read_h5ad(path)


def _read_parts(path: Path, key: str | None) -> AnnotatedParts:
    read = optional_module("anndata.io", "anndata", _PURPOSE).read_elem
    with _damaged(path), _opened(path) as store:
        if all("encoding-type" in store[name].attrs for name in ("obs", "var")):
            keys = {kind: list(store.get(kind) or ()) for kind in _KINDS}
            place = _place(keys, "X" in store, key, path)
            return AnnotatedParts(read(store[place]), place, read(store["obs"]), read(store["var"]))
    whole = open_annotated(path)  # a file of an old version of AnnData
    keys = {kind: list(getattr(whole, kind)) for kind in _KINDS}
    place = _place(keys, whole.X is not None, key, path)
    X = whole.X if place == "X" else getattr(whole, place.split("/")[0])[key]
    return AnnotatedParts(X, place, whole.obs, whole.var)


def _opened(path: Path) -> AbstractContextManager[Any]:
    """The entries of a file or a store, which are read when they are asked for."""
    return nullcontext(opened_zarr(path)) if path.is_dir() else opened_hdf5(path, _PURPOSE)


def _place(keys: Mapping[str, list[str]], has_x: bool, key: str | None, path: Path) -> str:
    """Where the matrix is: ``X``, or the entry with the key."""
    if key is None and has_x:
        return "X"
    for kind, present in keys.items():
        if key in present:
            return f"{kind}/{key}"
    listed = "; ".join(f"{kind}: {', '.join(each) or 'nothing'}" for kind, each in keys.items())
    missing = "X" if key is None else f"entry {key!r}"
    raise DataFileError(f"{path} has no {missing}; name an entry with --key ({listed})")


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    try:
        yield
    except (DataFileError, FileNotFoundError, PermissionError, ImportError):
        raise
    except Exception as error:  # h5py, zarr and anndata raise many kinds
        reason = (str(error) or type(error).__name__).splitlines()[0][:120]
        raise DataFileError(f"{path} is damaged, or no AnnData: {reason}") from error


def _kept(names: list[str], choice: ColumnChoice, file: str) -> list[int]:
    """Numbers of the variables that are features, in the order in which they were named."""
    choice.require_names((*(choice.features or ()), *choice.drop), names, file)
    if choice.features:
        places = {name: j for j, name in enumerate(names)}
        return [places[name] for name in choice.features if name not in choice.drop]
    return [j for j, name in enumerate(names) if name not in set(choice.drop)]


def _labels(obs: Any, choice: ColumnChoice, file: str) -> tuple[dict[str, Column], tuple[str, ...]]:
    """The columns of `obs` that were named, or those of categories."""
    present = [str(name) for name in obs.columns]
    choice.require_names(choice.labels, present, f"obs of {file}")
    chosen = list(choice.labels)
    if not chosen:
        kinds = {name: str(obs[name].dtype) for name in present}
        chosen = [name for name in present if kinds[name] in ("category", "object", "string")]
        chosen = [n for n in chosen if obs[n].nunique() <= _MAX_CLASSES]
    notes = () if choice.labels or not chosen else (f"labels: {', '.join(map(repr, chosen))}",)
    return {name: _values(obs[name]) for name in chosen}, notes


def _values(column: Any) -> Column:
    values = np.asarray(column)
    return values if values.dtype.kind in "biuf" else np.array([str(v) for v in values])
