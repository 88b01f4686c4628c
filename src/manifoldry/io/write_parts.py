"""Values of distributed rows, written by workers as the parts of a Zarr or Parquet store."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.io.columns import ColumnChoice
from manifoldry.io.parts import STORES, KeptValues, TableInParts, read_parts
from manifoldry.io.table import DataFileError, Table
from manifoldry.io.write import write_table
from manifoldry.util.typing import Array
from manifoldry.util.writing import folder_replaced_at_once

PART_FORMATS = (*STORES, ".csv", ".tsv", ".npy")
# Files of other formats are written by the client, which then holds all values.
_MOST_VALUES_IN_ONE_FILE = 10_000_000
# Folders of files that stand for tasks which are writing, before and after one of them has failed.
_RUNNING, _STOPPED = "running", "stopped"
_SECONDS_TO_END = 30


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


def check_fits_in_file(path: Path, n: int, columns: int) -> None:
    """Raise DataFileError for a file of one piece that would have too many values."""
    if path.suffix.lower() not in STORES and n * columns > _MOST_VALUES_IN_ONE_FILE:
        raise DataFileError(
            f"{path} would have {n} rows of {columns} columns, which this process would have to "
            f"hold (at most {_MOST_VALUES_IN_ONE_FILE} values); name an output that workers write "
            f"in parts, such as {path.with_suffix('.parquet')}"
        )


def _write_zarr(path: Path, array: Any, verbose: bool) -> Any:
    import dask.array
    import zarr

    size = max(max(array.chunks[0]), 1)  # a task writes whole chunks of the store
    array = array.rechunk({0: size, 1: -1})
    write = delayed(_write_chunk)
    with folder_replaced_at_once(path) as folder, _writes_ended(folder):
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

    with _write_into(folder):
        zarr.open_array(folder, mode="r+")[start : start + len(block)] = block


def _write_parquet(
    path: Path, array: Any, names: list[str], table: TableInParts | None, verbose: bool
) -> Any:
    blocks, kept = _blocks(array, table)
    digits, write = len(str(len(blocks))), delayed(_write_file_of_part)
    with folder_replaced_at_once(path) as folder, _writes_ended(folder):
        tasks = [
            write(str(folder), f"part-{i:0{digits}}.parquet", block, names, part)
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


def _table(block: Array, names: list[str], kept: KeptValues | None) -> Table:
    """Row names, values and labels, as in memory."""
    if kept is None:
        return Table(block, tuple(names))
    return Table(block, tuple(names), kept.ids, kept.labels)


def _write_file_of_part(
    folder: str, name: str, block: Array, names: list[str], kept: KeptValues | None
) -> None:
    """Write one file of a Parquet store; runs on a worker."""
    with _write_into(folder):
        write_table(Path(folder, name), _table(block, names, kept))


@contextmanager
def _writes_ended(folder: Path) -> Iterator[None]:
    """Context of tasks that write into a folder: if it raises, it waits for those that are running.

    They would otherwise write while the folder is removed. Each has a file in a folder beside it,
    so that it does not matter where they run.
    """
    running = folder.parent / _RUNNING
    running.mkdir()
    try:
        yield
    except BaseException:
        running.rename(folder.parent / _STOPPED)  # no other task begins to write
        until = time.monotonic() + _SECONDS_TO_END
        while any((folder.parent / _STOPPED).iterdir()) and time.monotonic() < until:
            time.sleep(0.05)
        raise


@contextmanager
def _write_into(folder: str) -> Iterator[None]:
    """Context of a task that writes; what it writes after the command has given up is removed."""
    parts = Path(folder).parent
    if not parts.is_dir():
        raise FileNotFoundError(
            f"a worker does not see the folder {parts.parent}; name an output on a file system "
            "that this machine and all workers share"
        )
    name = uuid4().hex
    (parts / _RUNNING / name).touch()  # fails once the folder is that of stopped tasks
    try:
        yield
    finally:
        if not any((parts / state).exists() for state in (_RUNNING, _STOPPED)):
            shutil.rmtree(parts, ignore_errors=True)
        for state in (_RUNNING, _STOPPED):
            (parts / state / name).unlink(missing_ok=True)


def _write_file(
    path: Path, array: Any, names: list[str], table: TableInParts | None, verbose: bool
) -> Array:
    """Write a file of one piece, which needs all values here."""
    kept_columns = 0 if table is None else len(table.labels) + (table.row_names is not None)
    check_fits_in_file(path, int(array.shape[0]), len(names) + kept_columns)
    blocks, kept = _blocks(array, table)
    pieces = compute(
        [delayed(_table)(block, names, part) for block, part in zip(blocks, kept, strict=True)],
        f"computing {path.name}",
        verbose=verbose,
    )
    first = pieces[0]
    values = np.concatenate([piece.X for piece in pieces])
    ids = None if first.ids is None else np.concatenate([piece.ids for piece in pieces])
    labels = {name: np.concatenate([p.labels[name] for p in pieces]) for name in first.labels}
    write_table(path, Table(values, tuple(names), ids, labels))
    return values
