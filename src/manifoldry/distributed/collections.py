"""Dask arrays and data frames, and files that Dask reads, as one array."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifoldry.util.typing import Array

_NEEDS = "; install the extra: pip install 'manifoldry[dask]'"


class Collection(NamedTuple):
    """A Dask array of two dimensions, and the names of its columns, if they have names."""

    array: Any
    names: Array | None


def is_collection(X: Any) -> bool:
    """Whether `X` is a Dask array or data frame, or the path of a Zarr or Parquet store."""
    if hasattr(X, "__dask_graph__"):
        return True
    return isinstance(X, str | os.PathLike) and Path(X).suffix in (".zarr", ".parquet")


def as_collection(X: Any) -> Collection:
    """Return a Dask collection, or what a path names, as a Dask array with whole rows per chunk."""
    if isinstance(X, str | os.PathLike):
        X = _opened(Path(X))
    names = None
    if hasattr(X, "columns"):
        names = _checked_names(X)
        X = X.to_dask_array()
    if not hasattr(X, "chunks"):
        raise TypeError(f"X is a Dask {type(X).__name__}; pass a Dask array or data frame")
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions; pass an array of shape (n_samples, n_features)"
        )
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {X.dtype}, which is not of real numbers; convert it first")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return Collection(X, names)


def _opened(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; pass a Zarr or Parquet store")
    try:
        if path.suffix == ".zarr":
            import dask.array

            return dask.array.from_zarr(str(path))
        import dask.dataframe

        return dask.dataframe.read_parquet(str(path))
    except ImportError as error:
        raise ImportError(
            f"{path} is read by Dask, which is incomplete ({error}){_NEEDS}"
        ) from None


def _checked_names(frame: Any) -> Array | None:
    """Names of the columns of a data frame, all of which have to be numbers."""
    kinds = {name: getattr(dtype, "kind", "O") for name, dtype in frame.dtypes.items()}
    wrong = [name for name, kind in kinds.items() if kind not in "fiub"]
    if wrong:
        raise TypeError(
            f"column {wrong[0]!r} of X has dtype {frame.dtypes[wrong[0]]}, not numbers; convert "
            f"it, or leave it out: X.drop(columns={wrong!r})"
        )
    names = list(frame.columns)
    return np.array(names, dtype=object) if all(isinstance(n, str) for n in names) else None
