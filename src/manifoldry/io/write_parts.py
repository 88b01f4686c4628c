"""Values of distributed rows, written by workers as the parts of a Zarr or Parquet store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.io.columns import ColumnChoice, unique_names
from manifoldry.io.parts import STORES, TableInParts, plain_texts, read_parts
from manifoldry.io.table import DataFileError, Table
from manifoldry.io.write import write_table
from manifoldry.util.typing import Array
from manifoldry.util.writing import folder_replaced_at_once

PART_FORMATS = (*STORES, ".csv", ".tsv", ".npy")
# Files of other formats are written by the client, which then holds all values.
_MOST_ROWS_IN_ONE_FILE = 1_000_000


def write_parts(
    path: Path, array: Any, names: list[str], table: TableInParts | None, *, verbose: bool = False
) -> Any:
    """Write values of all rows; workers write the parts of a Zarr or Parquet store.

    The store, or file, appears under its name when it is complete.

    Parameters
    ----------
    path : pathlib.Path
        The output. A Zarr store has the values alone, a Parquet store also row names and labels.
    array : dask.array.Array of shape (n, n_columns)
        The values.
    names : list of str
        Names of the columns.
    table : TableInParts
        The data that they belong to.
    verbose : bool, default=False
        Whether progress is shown.

    Returns
    -------
    dask.array.Array or array
        What was written, so that it is not computed again.
    """
    if path.suffix.lower() == ".zarr":
        return _write_zarr(path, array, verbose)
    if path.suffix.lower() == ".parquet":
        return _write_parquet(path, array, names, table, verbose)
    return _write_file(path, array, names, table, verbose)


def check_fits_in_file(path: Path, n: int) -> None:
    """Raise DataFileError for a file of one piece that would have too many rows."""
    if path.suffix.lower() not in STORES and n > _MOST_ROWS_IN_ONE_FILE:
        raise DataFileError(
            f"{path} would have {n} rows, which this process would have to hold; name an output "
            f"that workers write in parts, such as {path.with_suffix('.parquet')}"
        )


def _write_zarr(path: Path, array: Any, verbose: bool) -> Any:
    import dask.array
    import zarr

    size = max(max(array.chunks[0]), 1)  # a task writes whole chunks of the store
    array = array.rechunk({0: size, 1: -1})
    write = delayed(_write_chunk)
    with folder_replaced_at_once(path) as folder:
        zarr.create_array(
            str(folder), shape=array.shape, chunks=(size, array.shape[1]), dtype=array.dtype,
            overwrite=True,
        )  # fmt: skip
        blocks = array.to_delayed().ravel()
        starts = range(0, max(len(blocks), 1) * size, size)
        tasks = [write(str(folder), start, b) for start, b in zip(starts, blocks, strict=True)]
        compute(tasks, f"writing {path.name}", verbose=verbose)
    return dask.array.from_zarr(str(path.resolve()))


def _write_chunk(folder: str, start: int, block: Array) -> None:
    """Write one chunk; runs on a worker."""
    import zarr

    _check_shared(folder)
    zarr.open_array(folder, mode="r+")[start : start + len(block)] = block


def _write_parquet(
    path: Path, array: Any, names: list[str], table: TableInParts | None, verbose: bool
) -> Any:
    blocks, kept = _blocks(array, table)
    digits, write = len(str(len(blocks))), delayed(_write_file_of_part)
    with folder_replaced_at_once(path) as folder:
        tasks = [
            write(str(folder), f"part-{i:0{digits}}.parquet", block, names, part, _kinds(table))
            for i, (block, part) in enumerate(zip(blocks, kept, strict=True))
        ]
        compute(tasks, f"writing {path.name}", verbose=verbose)
    return read_parts(path, ColumnChoice(names)).rows.array


def _blocks(array: Any, table: TableInParts | None) -> tuple[list[Any], list[Any]]:
    """The blocks of values, and of the columns that are kept beside them."""
    kept = None if table is None else table.kept
    if table is not None:
        array = array.rechunk({0: table.rows.array.chunks[0], 1: -1})
    blocks = list(array.to_delayed().ravel())
    return blocks, [None] * len(blocks) if kept is None else kept


def _kinds(table: TableInParts | None) -> tuple[str | None, tuple[str, ...]]:
    return (None, ()) if table is None else (table.row_names, table.labels)


def _frame(
    block: Array, names: list[str], kept: Any, kinds: tuple[str | None, tuple[str, ...]]
) -> Any:
    """A data frame of row names, values and labels."""
    import pandas

    row_names, labels = kinds
    ids = {} if row_names is None else {"id": kept[row_names].astype(str).to_numpy()}
    columns = [*ids.values(), *block.T, *(kept[name].to_numpy() for name in labels)]
    unique = unique_names([*ids, *names, *labels])
    return pandas.DataFrame(dict(zip(unique, columns, strict=True)))


def _write_file_of_part(
    folder: str,
    name: str,
    block: Array,
    names: list[str],
    kept: Any,
    kinds: tuple[str | None, tuple[str, ...]],
) -> None:
    """Write one file of a Parquet store; runs on a worker."""
    _check_shared(folder)
    _frame(block, names, kept, kinds).to_parquet(Path(folder, name), index=False)


def _check_shared(folder: str) -> None:
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"a worker does not see the folder {Path(folder).parent.parent}; name an output on a "
            "file system that this machine and all workers share"
        )


def _write_file(
    path: Path, array: Any, names: list[str], table: TableInParts | None, verbose: bool
) -> Array:
    """Write a file of one piece, which needs all values here."""
    check_fits_in_file(path, int(array.shape[0]))
    blocks, kept = _blocks(array, table)
    make = delayed(_frame)
    tasks = [make(b, names, part, _kinds(table)) for b, part in zip(blocks, kept, strict=True)]
    frames = compute(tasks, f"computing {path.name}", verbose=verbose)
    columns = {name: np.concatenate([f[name].to_numpy() for f in frames]) for name in frames[0]}
    row_names = _kinds(table)[0]
    ids = None if row_names is None else columns.pop("id")
    values = np.column_stack([columns.pop(name) for name in list(columns)[: len(names)]])
    texts = {name: plain_texts(column) for name, column in columns.items()}
    write_table(path, Table(values, tuple(names), ids, texts))
    return values
