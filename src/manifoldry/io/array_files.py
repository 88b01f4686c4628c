"""Files of arrays: NumPy's `.npy` and `.npz`, scipy's sparse `.npz`, and Zarr."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.io.columns import unique_names
from manifoldry.io.store_checks import opened_zarr
from manifoldry.io.table import Column, DataFileError, Table

# What NumPy, scipy and Zarr raise for damaged files and for those that contain Python objects.
_UNREADABLE = (ArithmeticError, EOFError, LookupError, OSError, RuntimeError, SyntaxError,
               TypeError, ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile,
               zlib.error)  # fmt: skip
_LABEL_ENTRIES = ("y", "labels", "label", "target", "targets")
_ID_ENTRIES = ("ids", "id", "names", "index")
_NAME_ENTRIES = ("feature_names", "columns")


def read_npy(path: Path) -> Table:
    """A table whose features stay in the file, and are read when needed."""
    with _damaged(path, "NumPy file"):
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    return Table(checked_features(X, str(path)))


def read_npz(path: Path) -> Table:
    """The array ``X``, or the first of two dimensions, and labels and names beside it."""
    with _damaged(path, "npz file"):
        with np.load(path, allow_pickle=False) as file:
            is_sparse = {"format", "shape", "data"} <= set(file.files)
            arrays = {} if is_sparse else {name: file[name] for name in file.files}
        if is_sparse:
            return Table(sparse_rows(sparse.load_npz(path)))
    return _table(arrays, path)


def read_zarr(path: Path) -> Table:
    """An array of a Zarr store, or the entry ``X`` of a group with labels and names beside it."""
    with _damaged(path, "Zarr store"):
        store = opened_zarr(path)
        if hasattr(store, "shape"):
            return Table(checked_features(np.asarray(store), str(path)))
        arrays = {name: np.asarray(array) for name, array in store.arrays()}
    return _table(arrays, path)


def _table(arrays: Mapping[str, Column], path: Path) -> Table:
    name = "X" if "X" in arrays else next((k for k, a in arrays.items() if a.ndim == 2), None)
    if name is None:
        raise DataFileError(
            f"{path} has no array of two dimensions, only {_shapes(arrays)}; save the features as X"
        )
    X = checked_features(arrays[name], f"the array {name!r} of {path}")
    others = [k for k in arrays if k != name]

    def columns(names: tuple[str, ...], length: int) -> Iterator[str]:
        return (k for k in others if k.lower() in names and arrays[k].shape == (length,))

    labels = {k: arrays[k] for k in columns(_LABEL_ENTRIES, len(X))}
    ids = next((arrays[k].astype(str) for k in columns(_ID_ENTRIES, len(X))), None)
    features = next((arrays[k].astype(str) for k in columns(_NAME_ENTRIES, X.shape[1])), None)
    used = {name, *labels, *columns(_ID_ENTRIES, len(X)), *columns(_NAME_ENTRIES, X.shape[1])}
    notes = [f"the features are the array {name!r}"] if name != "X" else []
    if left := [k for k in others if k not in used]:
        notes.append(f"arrays that are not used: {', '.join(map(repr, left))}")
    unique = None if features is None else tuple(unique_names(features.tolist()))
    return Table(X, unique, ids, labels, tuple(notes))


def checked_features(X: Any, what: str) -> Any:
    """Return a matrix of real numbers; DataFileError if it is none."""
    if X.ndim != 2:
        raise DataFileError(
            f"{what} has the shape {X.shape}, but features need two dimensions, one row per point; "
            "reshape it"
        )
    if X.dtype.kind not in "biuf":
        raise DataFileError(f"{what} contains {X.dtype}, but features must be real numbers")
    return X


def sparse_rows(X: Any) -> Any:
    """A sparse matrix by rows, with indices that have been checked: compiled loops trust them."""
    if hasattr(X, "check_format"):
        X.check_format(full_check=True)
    return sparse.csr_array(X)


def _shapes(arrays: Mapping[str, Column]) -> str:
    shapes = [f"{name!r} of shape {array.shape}" for name, array in list(arrays.items())[:4]]
    return ", ".join(shapes) or "nothing"


@contextmanager
def _damaged(path: Path, what: str) -> Iterator[None]:
    """Report what fails while a file is interpreted; a file that cannot be opened is no damage."""
    try:
        yield
    except (DataFileError, FileNotFoundError, PermissionError):
        raise
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        if "allow_pickle" in str(error):
            raise DataFileError(
                f"{path} contains Python objects, which are not loaded, since they could run code; "
                "save an array of numbers"
            ) from error
        raise DataFileError(f"{path} is damaged, or no {what}: {reason}") from error
