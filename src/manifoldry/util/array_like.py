"""What is accepted as data, an embedding or labels: array-likes, and entries of an AnnData.

NumPy reads any object with a length and items one item at a time. For a large object that is not
an array this takes minutes and ends in an unrelated error, so everything that a caller passes as an
array is checked here first.
"""

import os
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from manifoldry.util.lazy import is_lazy, random_sample_of

# Arrays and sequences, and single values, for which other checks have their own messages.
_PLAIN = (np.ndarray, list, tuple, range, array, memoryview, str, bytes, type(None))
_NUMBERS = (int, float, complex, np.generic)
# How a type offers its values as an array.
_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__", "__buffer__")
# Kinds of memory that the host can read, in the standard DLPack.
_OF_HOST = (1, 3, 11)


class Fetched(np.ndarray):
    """A copy of an array of a device, which nobody else has and changes."""


def array_like(values: Any, name: str = "X") -> Any:
    """Return `values`, or the array that they name in an AnnData; refuse what is not an array.

    An AnnData stands for its ``X``, and a pair ``(adata, key)`` for ``adata.obsm[key]``, or for
    ``adata.layers[key]`` if there is none.

    Examples
    --------
    >>> array_like({"a": [1, 2]})
    Traceback (most recent call last):
    TypeError: X is of type dict; pass an array, a sparse matrix, a data frame or a list of numbers
    """
    if isinstance(values, Fetched):
        return values.view(np.ndarray)
    if is_elsewhere(values):
        return fetched(values)
    if is_lazy(values):
        raise TypeError(
            f"{name} is a Dask {type(values).__name__}, which would be gathered in memory; pass a "
            f"random sample of rows, such as {random_sample_of(values, name)}; take the same rows "
            "of all arguments"
        )
    if is_annotated(values):
        return array_like(_main_matrix(values, name), f"{name}.X")
    if _is_entry(values):
        annotated, key = values
        if is_layer(values):
            return array_like(annotated.layers[key], f"{name}.layers[{key!r}]")
        return array_like(obsm_entry(annotated, key, name), f"{name}.obsm[{key!r}]")
    if not _is_array_like(values):
        raise TypeError(
            f"{name} is of type {type(values).__name__}; pass an array, a sparse matrix, a data "
            "frame or a list of numbers"
        )
    if isinstance(values, list | tuple):
        _check_items(values, name)
    return values


def is_elsewhere(values: Any) -> bool:
    """Whether an array is in the memory of a GPU or another device."""
    if type(values) is np.ndarray or isinstance(values, list | tuple | str):
        return False
    if hasattr(values, "__dlpack_device__"):
        return int(values.__dlpack_device__()[0]) not in _OF_HOST
    # Sparse matrices of CuPy have no such interface.
    sparse_of_cupy = type(values).__module__.startswith("cupyx.")
    return sparse_of_cupy or hasattr(values, "__cuda_array_interface__")


def fetched(values: Any) -> Any:
    """Return a copy of an array of a device as one of numpy, in the way of its library."""
    if hasattr(values, "get"):  # CuPy
        found = values.get()
    elif hasattr(values, "cpu"):  # PyTorch
        found = values.detach().cpu().numpy()
    elif hasattr(values, "copy_to_host"):  # numba
        found = values.copy_to_host()
    else:  # JAX
        found = np.asarray(values)
    return found


def is_annotated(values: Any) -> bool:
    """Whether `values` is an AnnData, known by its attributes, so that none has to be installed."""
    # A frame with a column of this name has it as an attribute too, but not as a mapping.
    return isinstance(getattr(values, "obsm", None), Mapping) and hasattr(values, "obs")


def annotated_of(values: Any) -> Any:
    """Return the AnnData of ``adata`` or ``(adata, key)``; None for other values."""
    source = values[0] if _is_entry(values) else values
    return source if is_annotated(source) else None


def is_layer(values: Any) -> bool:
    """Whether `values` is a pair of an AnnData and the key of one of its layers, not of obsm."""
    if not _is_entry(values):
        return False
    annotated, key = values
    return key not in annotated.obsm and key in _layers(annotated)


def _layers(annotated: Any) -> Any:
    return getattr(annotated, "layers", None) or {}


def named_values(annotated: Any, name: str) -> Any:
    """Return a column of ``obs``, or of ``X`` by its name in ``var_names``; None if neither."""
    if name in annotated.obs:
        return annotated.obs[name]
    places = np.flatnonzero(np.asarray(getattr(annotated, "var_names", ())) == name)
    if len(places) > 1:
        raise ValueError(
            f"{name!r} occurs {len(places)} times in var_names; call adata.var_names_make_unique()"
        )
    if not len(places):
        return None
    column = _main_matrix(annotated, "adata")[:, places]
    dense = column.toarray() if hasattr(column, "toarray") else np.asarray(column)
    return dense.astype(float).ravel()  # counts are amounts, not labels


def embedding_like(values: Any, name: str = "embedding") -> Any:
    """Return an array-like as `array_like` does, but refuse an AnnData without a key."""
    if is_annotated(values):
        raise TypeError(
            f"{name} is an AnnData; pass (adata, key) with a key of its obsm, which has "
            f"{_keys(values.obsm)}, or adata.X"
        )
    check_not_stacked(values, name)
    return array_like(values, name)


def obsm_entry(annotated: Any, key: str, name: str) -> Any:
    """Return ``annotated.obsm[key]``; `name` is the argument that contains the key."""
    if key in annotated.obsm:
        return annotated.obsm[key]
    remedy = f"; pass adata.obsp[{key!r}]" if key in getattr(annotated, "obsp", ()) else ""
    raise ValueError(
        f"{name}={key!r} is not in obsm, which has {_keys(annotated.obsm)}, nor in layers, which "
        f"has {_keys(_layers(annotated))}{remedy}"
    )


def labels_of(labels: Any, *sources: Any, name: str = "labels") -> Any:
    """Return labels: an array-like, or a column of ``obs`` of the first source that has one."""
    found = [each for each in map(annotated_of, sources) if each is not None]
    if not isinstance(labels, str):
        for source in sources:
            _check_same_order(labels, source, name)
        return array_like(labels, name)
    if not found:
        raise TypeError(
            f"{name}={labels!r} is a string, which requires data or an embedding from an AnnData "
            "with this column in obs; pass one label per point"
        )
    if labels not in found[0].obs:
        raise ValueError(f"{name}={labels!r} is not in obs, which has {_keys(found[0].obs)}")
    return found[0].obs[labels]


def _check_same_order(labels: Any, source: Any, name: str) -> None:
    """Raise ValueError if two pandas indexes have the same entries in different orders."""
    annotated = annotated_of(source)
    ours: Any = getattr(labels, "index", None)
    theirs: Any = getattr(source if annotated is None else annotated.obs, "index", None)
    if not (hasattr(ours, "sort_values") and hasattr(theirs, "sort_values")):
        return
    if not ours.equals(theirs) and ours.sort_values().equals(theirs.sort_values()):
        raise ValueError(
            f"the index of {name} has the entries of that of the data in another order; pass "
            f"{name}.loc[X.index], or {name}.to_numpy() if the rows correspond"
        )


def check_not_path(values: Any, name: str = "X") -> None:
    """Raise ValueError for a path, or another text: only stores of Dask are opened.

    Examples
    --------
    >>> check_not_path("data.csv")
    Traceback (most recent call last):
    ValueError: X is the text 'data.csv'; only paths that end in .zarr or .parquet are opened. ...
    """
    if isinstance(values, str | os.PathLike):
        path = os.fspath(values)
        raise ValueError(
            f"{name} is the text {path!r}; only paths that end in .zarr or .parquet are opened. "
            f"Read another file before: manifoldry.io.read_table({path!r}).X"
        )


def check_not_times(values: Any, name: str = "X") -> None:
    """Raise TypeError for dates and durations, which would be read as counts since 1970."""
    if _has_times(values):
        raise TypeError(
            f"{name} has dates or durations, whose unit is arbitrary; convert them to numbers, for "
            "example (column - column.min()) / numpy.timedelta64(1, 'D')"
        )


def check_not_stacked(values: Any, name: str = "X") -> None:
    """Raise ValueError for a stack of images or other arrays of more than two dimensions.

    Examples
    --------
    >>> check_not_stacked(np.zeros((5, 8, 8)))
    Traceback (most recent call last):
    ValueError: X has shape (5, 8, 8), a stack of 5 arrays; pass X.reshape(len(X), -1), ...
    """
    shape = tuple(getattr(values, "shape", ()))
    call = f"{name}.reshape(len({name}), -1)"
    if isinstance(values, list | tuple) and len(values):  # a list of images, or of lists
        first = np.shape(values[0]) if _is_nested(values[0]) else ()
        shape, call = (len(values), *first), f"numpy.reshape({name}, (len({name}), -1))"
    if len(shape) > 2:
        raise ValueError(
            f"{name} has shape {shape}, a stack of {shape[0]} arrays; pass {call}, one row for each"
        )


def _is_nested(row: Any) -> bool:
    """Whether an item of a list has items with items; only the first of each is looked at."""
    if not isinstance(row, list | tuple):
        return getattr(row, "ndim", 0) > 1
    return len(row) > 0 and (isinstance(row[0], list | tuple) or getattr(row[0], "ndim", 0) > 0)


def _main_matrix(annotated: Any, name: str) -> Any:
    if getattr(annotated, "isbacked", False):
        raise TypeError(f"{name} is an AnnData whose X is in a file; pass {name}.to_memory()")
    if getattr(annotated, "X", None) is None:
        raise ValueError(
            f"{name} is an AnnData without X; pass (adata, key) with a key of its obsm, which has "
            f"{_keys(annotated.obsm)}"
        )
    return annotated.X


def _is_entry(values: Any) -> bool:
    """Whether `values` is a pair of an AnnData and a key."""
    pair = isinstance(values, tuple) and len(values) == 2
    return pair and isinstance(values[1], str) and is_annotated(values[0])


def _is_array_like(values: Any) -> bool:
    from scipy import sparse  # late, so that plots do not import scipy

    if isinstance(values, _PLAIN + _NUMBERS) or sparse.issparse(values):
        return True
    return any(hasattr(type(values), protocol) for protocol in _PROTOCOLS)


def _check_items(values: Any, name: str) -> None:
    """Refuse items that NumPy would read one by one, at any depth of a nested list."""
    if set(map(type, values)) <= {float, int, str}:
        return
    for item in values:
        if isinstance(item, list | tuple):
            _check_items(item, name)
        elif hasattr(item, "__getitem__") and not _is_array_like(item):
            kind = type(item).__name__
            raise TypeError(f"{name} contains a {kind}; pass numbers, or rows of numbers")


def _has_times(values: Any) -> bool:
    if isinstance(values, list | tuple):
        numbers = set(map(type, values)) <= {float, int}
        return not numbers and any(map(_has_times, values))
    if isinstance(values, np.ndarray) and values.dtype == object:
        return any(map(_has_times, values.ravel()))
    if hasattr(type(values), "columns"):  # a frame, which has a type for each column
        return any(map(_is_time, getattr(values, "dtypes", ())))
    return _is_time(getattr(values, "dtype", None))


def _is_time(dtype: Any) -> bool:
    if hasattr(dtype, "is_temporal"):  # polars
        return bool(dtype.is_temporal())
    return getattr(dtype, "kind", "") in ("m", "M")


def _keys(mapping: Any) -> str:
    return ", ".join(map(repr, mapping)) or "no entries"
