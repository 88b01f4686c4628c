"""Dask arrays and data frames, and files that Dask reads, as one array."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from manifoldry.util.lazy import is_lazy
from manifoldry.util.typing import Array, IntArray

# Codecs of Zarr that only compress or rearrange numbers.
_CODECS = {
    *("adler32", "astype", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta"),
    *("fixedscaleoffset", "fletcher32", "gzip", "lz4", "lzma", "packbits", "pcodec", "quantize"),
    *("sharding_indexed", "shuffle", "transpose", "zfpy", "zlib", "zstd"),
}
# Where metadata name codecs; those of shards have codecs of their own.
_WITH_CODECS = ("filters", "compressor", "codecs", "index_codecs", "configuration")


class Collection(NamedTuple):
    """A Dask array of two dimensions, and the names of its columns, if they have names."""

    array: Any
    names: Array | None


def is_collection(X: Any) -> bool:
    """Whether `X` is a Dask array or data frame, or the path of a Zarr or Parquet store."""
    if isinstance(X, str | os.PathLike):
        return Path(X).suffix in (".zarr", ".parquet")
    return is_lazy(X)


def as_collection(X: Any) -> Collection:
    """Return a Dask collection, or what a path names, as a Dask array with whole rows per chunk."""
    if isinstance(X, str | os.PathLike):
        X = _opened(os.fspath(X))
    import dask.array

    names = None
    if type(X).__name__ == "DataFrame":
        names = _checked_names(X)
        X = _with_one_type(X).to_dask_array()
    if not isinstance(X, dask.array.Array):
        kind = f"a Dask {type(X).__name__}" if is_lazy(X) else f"of type {type(X).__name__}"
        raise TypeError(f"X is {kind}; pass a Dask array or data frame")
    if X.ndim != 2:
        count = "1 dimension" if X.ndim == 1 else f"{X.ndim} dimensions"
        hint = ", such as X[:, None] for one feature" if X.ndim == 1 else ""
        raise ValueError(f"X has {count}; pass an array of shape (n_samples, n_features){hint}")
    if X.dtype.kind not in "fiub":
        remedy = "X.astype(float) if its entries are numbers" if X.dtype == object else "numbers"
        raise TypeError(f"X has dtype {X.dtype}, which is not of real numbers; pass {remedy}")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return Collection(X, names)


def from_parts(parts: Sequence[Any], counts: IntArray, columns: int | None, dtype: Any) -> Any:
    """Return delayed arrays as a Dask array that has a chunk for each, also for empty ones.

    Parameters
    ----------
    parts : list of Delayed
        Arrays of shape (count, columns), or (count,) without `columns`.
    counts : array of int of shape (n_parts,)
        Their numbers of rows.
    columns : int or None
        Number of columns.
    dtype : dtype
        Type of the entries.

    Returns
    -------
    dask.array.Array
        The array. Functions of Dask that join arrays leave empty chunks out.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from manifoldry.distributed.collections import from_parts
    >>> parts = [dask.delayed(np.ones(2)), dask.delayed(np.empty(0))]
    >>> from_parts(parts, np.array([2, 0]), None, float).chunks
    ((2, 0),)
    """
    import dask.array
    from dask.highlevelgraph import HighLevelGraph

    name = f"rows-{uuid4()}"
    width = () if columns is None else (columns,)
    layer: dict[Any, Any] = {(name, i, *[0] * len(width)): part.key for i, part in enumerate(parts)}
    graph = HighLevelGraph.from_collections(name, layer, dependencies=parts)
    chunks = (tuple(map(int, counts)), *((each,) for each in width))
    return dask.array.Array(graph, name, chunks, dtype=dtype)


def path_on_all_machines(path: str | os.PathLike[str]) -> str:
    """Return a path as workers need it, whose current folders are others; refuse addresses.

    Examples
    --------
    >>> path_on_all_machines("s3://bucket/data.zarr")
    Traceback (most recent call last):
    ValueError: 's3://bucket/data.zarr' is an address, not a path; open it yourself, ...
    """
    path = os.fspath(path)
    if "://" in path:
        raise ValueError(
            f"{path!r} is an address, not a path; open it yourself, such as with "
            "dask.array.from_zarr or dask.dataframe.read_parquet, and pass the collection"
        )
    return os.path.abspath(path)


def _opened(path: str) -> Any:
    path = path_on_all_machines(path)
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist; pass a Zarr or Parquet store")
    try:
        return _opened_zarr(path) if path.endswith(".zarr") else _opened_parquet(path)
    except ImportError as error:
        missing = {"dask": "Dask", "zarr": "Zarr"}.get(error.name or "")
        why = f"{missing}, which is not installed" if missing else f"a complete Dask ({error})"
        raise ImportError(f"{path} needs {why}; pip install 'manifoldry[dask]'") from None


def _opened_parquet(path: str) -> Any:
    import dask.dataframe

    with _explained_path(path, "a Parquet file, or a folder of them"):
        return dask.dataframe.read_parquet(path)


@contextmanager
def _explained_path(path: str, what: str) -> Iterator[None]:
    """Context of opening a store: errors name its path in one line."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:  # of several libraries
        said = str(error).rpartition("Original Message:")[2].strip().partition("\n")[0]
        raise ValueError(
            f"{path} cannot be opened as {what} ({type(error).__name__}: {said}); write it again, "
            "or pass another path"
        ) from error


def _opened_zarr(path: str) -> Any:
    import dask.array
    import zarr

    with _explained_path(path, "a Zarr array"):
        store = zarr.open(path, mode="r")
    if isinstance(store, zarr.Group):
        arrays = sorted(name for name, _ in store.arrays())
        which = f"the arrays {', '.join(arrays)}" if arrays else "no array at its top"
        example = arrays[0] if arrays else "X"
        raise ValueError(
            f"{path} is a Zarr group with {which}; pass one array, such as "
            f"dask.array.from_zarr({path!r}, component={example!r})"
        )
    check_codecs(store, path)
    return dask.array.from_zarr(store)


def check_codecs(array: Any, path: str) -> None:
    """Raise ValueError if an array of Zarr is stored with codecs that are not known to be safe.

    Some of them run code that is in the data, such as pickle.

    Parameters
    ----------
    array : zarr.Array
        The array, of which nothing has been read.
    path : str
        What the error calls it.
    """
    unknown = sorted(_codecs(array.metadata.to_dict()) - _CODECS)
    if unknown:
        raise ValueError(
            f"{path} is stored with {unknown[0]}, which is not among the codecs of numbers that "
            f"are read ({', '.join(sorted(_CODECS))}); write it with one of them"
        )


def _codecs(stored: Any) -> set[str]:
    """Names of codecs, filters and compressors in the metadata of Zarr 2 or 3."""
    if stored is None:
        return set()
    if isinstance(stored, list | tuple):
        return set().union(*map(_codecs, stored))
    if not isinstance(stored, dict):
        return {str(stored)}
    own = {stored[key] for key in ("id", "name") if isinstance(stored.get(key), str)}
    inner = [stored.get(key) for key in _WITH_CODECS]
    return {name.removeprefix("numcodecs.") for name in own}.union(*map(_codecs, inner))


def _with_one_type(frame: Any) -> Any:
    """The frame with columns of one type of numpy, the common one; missing values are NaN.

    Otherwise its values would be objects, in memory of their own.
    """
    kinds = list(frame.dtypes)
    nullable = not all(isinstance(kind, np.dtype) for kind in kinds)
    if not nullable and len(set(kinds)) <= 1:
        return frame
    common = np.result_type(*(getattr(kind, "numpy_dtype", kind) for kind in kinds))
    return frame.astype(np.float64 if nullable and common.kind != "f" else common)


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
