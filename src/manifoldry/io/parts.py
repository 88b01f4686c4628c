"""Zarr and Parquet stores whose parts are read by workers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.io.annotated_files import is_annotated_store
from manifoldry.io.columns import ColumnChoice, DividedColumns
from manifoldry.io.store_checks import opened_zarr
from manifoldry.io.table import DataFileError
from manifoldry.util.typing import Array

STORES = (".zarr", ".parquet")
_HEAD = 1000  # rows by which columns are recognized
_ROWS_OF_PIECE = 100_000  # small groups of rows are read together up to this number


class _Piece(NamedTuple):
    """Groups of rows of a Parquet file, and the types of its columns."""

    file: str
    groups: tuple[int, ...]
    n_rows: int
    kinds: dict[str, str]


@dataclass(frozen=True, eq=False)
class TableInParts:
    """Data on workers, and the columns that are kept beside them.

    Parameters
    ----------
    rows : Rows
        The features.
    names : tuple of str, optional
        Names of the features.
    kept : list of Delayed, optional
        Row names and labels, a pandas data frame for each block.
    row_names : str, optional
        The column of row names.
    labels : tuple of str
        The columns of labels.
    notes : tuple of str
        What was recognized.
    """

    rows: Rows
    names: tuple[str, ...] | None = None
    kept: list[Any] | None = None
    row_names: str | None = None
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n_samples

    @property
    def label(self) -> Any:
        """The first label as a Dask array, or None."""
        import dask.array

        if not (self.labels and self.kept):
            return None
        values = delayed(_column)
        parts = [
            dask.array.from_delayed(values(part, self.labels[0]), (int(count),), object)
            for part, count in zip(self.kept, self.rows.counts, strict=True)
        ]
        return dask.array.concatenate(parts)


def read_parts(path: Path, choice: ColumnChoice) -> TableInParts:
    """Return the data of a Zarr or Parquet store, which workers read.

    Parameters
    ----------
    path : pathlib.Path
        A Zarr array, a Zarr group with an array ``X``, or a Parquet file or folder.
    choice : ColumnChoice
        Which columns of a Parquet store are what.

    Returns
    -------
    TableInParts
        The data; numbers of rows are known, nothing else has been read.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix.lower() == ".zarr":
        return _read_zarr(path, choice)
    return _read_parquet(path, choice)


def _read_zarr(path: Path, choice: ColumnChoice) -> TableInParts:
    import dask.array

    if is_annotated_store(path):
        raise DataFileError(
            f"{path} is an AnnData, which workers do not read; write its features as an array: "
            "dask.array.from_array(adata.X).to_zarr('features.zarr')"
        )
    store = opened_zarr(path)
    if not hasattr(store, "shape") and "X" not in store:
        raise DataFileError(f"{path} is a Zarr group without an array X; write one array")
    component = None if hasattr(store, "shape") else "X"
    shape = store.shape if component is None else store["X"].shape
    if choice.labels or choice.drop or choice.id or (choice.features and not choice.unnamed):
        raise DataFileError(
            f"{path} is an array without names of columns; choose columns when you write it, or "
            "write Parquet"
        )
    if choice.features is not None and (len(shape) != 2 or shape[1] != len(choice.features)):
        raise DataFileError(f"{path} has shape {shape}, but the model has {len(choice.features)} "
                            "features")  # fmt: skip
    array = dask.array.from_zarr(str(path.resolve()), component=component)
    return TableInParts(Rows.read(array, str(path)))


def _read_parquet(path: Path, choice: ColumnChoice) -> TableInParts:
    import dask.array

    pieces = _pieces(path)
    task = delayed(_divided)(delayed(_read_piece)(pieces[0], None, _HEAD), choice, str(path))
    [found] = compute([task], "recognizing columns")
    kept = [*([found.row_names] if found.row_names else []), *found.labels]
    single = all(pieces[0].kinds[name] == "float" for name in found.features)
    dtype = np.float32 if single else np.float64
    read, shape = delayed(_features), len(found.features)
    blocks = [
        dask.array.from_delayed(read(piece, found.features, dtype), (piece.n_rows, shape), dtype)
        for piece in pieces
    ]
    frames = delayed(_kept)
    return TableInParts(
        Rows(dask.array.concatenate(blocks), None, str(path)),
        tuple(found.features),
        [frames(piece, kept) for piece in pieces] if kept else None,
        found.row_names,
        tuple(found.labels),
        tuple(found.notes),
    )


def _pieces(path: Path) -> list[_Piece]:
    """The files of a Parquet store, divided into groups of rows; only their ends are read."""
    import pyarrow.parquet
    from dask.utils import natural_sort_key

    within = [path] if path.is_file() else path.rglob("*.parquet")
    files = sorted(map(str, within), key=natural_sort_key)
    pieces = []
    for file in files:
        about = pyarrow.parquet.ParquetFile(file)
        kinds = {field.name: str(field.type) for field in about.schema_arrow}
        groups: list[int] = []
        for i in range(about.num_row_groups):
            n_rows = sum(about.metadata.row_group(j).num_rows for j in groups)
            if groups and n_rows + about.metadata.row_group(i).num_rows > _ROWS_OF_PIECE:
                pieces.append(_Piece(os.path.abspath(file), tuple(groups), n_rows, kinds))
                groups = []
            groups.append(i)
        n_rows = sum(about.metadata.row_group(j).num_rows for j in groups)
        pieces.append(_Piece(os.path.abspath(file), tuple(groups), n_rows, kinds))
    pieces = [piece for piece in pieces if piece.n_rows]
    if not pieces:
        raise DataFileError(f"{path} has no rows")
    return pieces


def _read_piece(piece: _Piece, columns: list[str] | None, most: int | None = None) -> Any:
    """An Arrow table; runs on a worker."""
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(piece.file)
    table = file.read_row_groups(list(piece.groups), columns=columns, use_threads=False)
    return table if most is None else table.slice(0, most)


def _features(piece: _Piece, columns: list[str], dtype: Any) -> Array:
    table = _read_piece(piece, columns)
    return np.column_stack([np.asarray(table[name].to_numpy(), dtype) for name in columns])


def _kept(piece: _Piece, columns: list[str]) -> Any:
    return _read_piece(piece, columns).to_pandas()


def _column(frame: Any, name: str) -> Array:
    return plain_texts(frame[name].to_numpy()).astype(object)


def _divided(head: Any, choice: ColumnChoice, file: str) -> DividedColumns:
    """Which columns are what, by the first rows; runs on a worker."""
    return choice.divide(head, file)


def plain_texts(column: Array) -> Array:
    """A column of objects as texts; missing ones are empty."""
    if column.dtype.kind != "O":
        return column
    return np.array(["" if each is None or each != each else str(each) for each in column])
