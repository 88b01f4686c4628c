"""Zarr and Parquet stores whose parts are read by workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifoldry.distributed.collections import from_parts
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.io.annotated_files import is_annotated_store
from manifoldry.io.columns import ColumnChoice, DividedColumns, label_values, numbers, texts
from manifoldry.io.parquet_files import (
    MISSING_PARTITION,
    ParquetPart,
    common_schema,
    parquet_parts,
    require_columns,
)
from manifoldry.io.store_checks import opened_zarr
from manifoldry.io.table import DataFileError
from manifoldry.util.typing import Array

STORES = (".zarr", ".parquet")
_HEAD = 1000  # rows by which columns are recognized
_ROWS_OF_PIECE = 100_000  # small groups of rows are read together up to this number


class _Piece(NamedTuple):
    """Groups of rows of a Parquet file."""

    part: ParquetPart
    groups: tuple[int, ...]
    n_rows: int


class _KeptColumns(NamedTuple):
    """Columns beside the features, and the labels that are texts, as a part lacks some values."""

    row_names: str | None
    labels: tuple[str, ...]
    as_texts: frozenset[str]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(dict.fromkeys([*([self.row_names] if self.row_names else []), *self.labels]))


class KeptValues(NamedTuple):
    """Row names and labels of a block, as of a table in memory."""

    ids: Array | None
    labels: dict[str, Array]


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
        Row names and labels, a `KeptValues` for each block.
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
        return self._kept_array(partial(_label, name=self.labels[0])) if self.labels else None

    @property
    def ids(self) -> Any:
        """The row names as a Dask array, or None."""
        return None if self.row_names is None else self._kept_array(_ids)

    def _kept_array(self, values: Any) -> Any:
        if not self.kept:
            return None
        get = delayed(values)
        return from_parts([get(part) for part in self.kept], self.rows.counts, None, object)


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
    parts = [part._replace(file=part.file.absolute()) for part in parquet_parts(path)]
    schema = _schema(path, parts)
    pieces = _pieces(path, parts)
    heads = [delayed(_read_head)(piece, schema) for piece in _first(pieces, _HEAD)]
    [found] = compute([delayed(_divided)(heads, choice, str(path))], "recognizing columns")
    require_columns(parts, found.features)
    single = all(str(schema.field(name).type) == "float" for name in found.features)
    dtype, read = np.float32 if single else np.float64, delayed(_features)
    blocks = [read(piece, schema, found.features, dtype, str(path)) for piece in pieces]
    counts = np.array([piece.n_rows for piece in pieces])
    array = from_parts(blocks, counts, len(found.features), dtype)
    lacking = frozenset(name for name in found.labels if _may_lack_values(parts, name))
    kept = _KeptColumns(found.row_names, tuple(found.labels), lacking)
    values = delayed(_kept)
    return TableInParts(
        Rows(array, None, str(path)),
        tuple(found.features),
        [values(piece, schema, kept) for piece in pieces] if kept.names else None,
        found.row_names,
        tuple(found.labels),
        tuple(found.notes),
    )


def _schema(path: Path, parts: list[ParquetPart]) -> Any:
    found = common_schema(parts)
    if len(set(found.names)) < len(found.names):
        repeated = next(name for name in found.names if found.names.count(name) > 1)
        raise DataFileError(f"{path} has several columns {repeated!r}; give them different names")
    return found


def _pieces(path: Path, parts: list[ParquetPart]) -> list[_Piece]:
    """The files of a Parquet store, divided into groups of rows; only their ends are read."""
    pieces = []
    for part in parts:
        about = part.opened().metadata
        counts = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        groups: list[int] = []
        for i, count in enumerate(counts):
            n_rows = sum(counts[j] for j in groups)
            if groups and n_rows + count > _ROWS_OF_PIECE:
                pieces.append(_Piece(part, tuple(groups), n_rows))
                groups = []
            groups.append(i)
        pieces.append(_Piece(part, tuple(groups), sum(counts[j] for j in groups)))
    pieces = [piece for piece in pieces if piece.n_rows]
    if not pieces:
        raise DataFileError(f"{path} has no rows")
    return pieces


def _first(pieces: list[_Piece], count: int) -> list[_Piece]:
    """The first pieces that have so many rows together."""
    ends = np.cumsum([piece.n_rows for piece in pieces])
    return pieces[: int(np.searchsorted(ends, count)) + 1]


def _may_lack_values(parts: list[ParquetPart], name: str) -> bool:
    """Whether values of a column may be missing, by what the ends of the files say."""
    for part in parts:
        if name in part.partition:
            if part.partition[name] == MISSING_PARTITION:
                return True
            continue
        about = part.opened().metadata
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        if not all(_is_complete(group, name) for group in groups):
            return True
    return False


def _is_complete(group: Any, name: str) -> bool:
    """Whether a group of rows is known to have all values of a column."""
    columns = (group.column(j) for j in range(group.num_columns))
    known = [each.statistics for each in columns if each.path_in_schema == name]
    return bool(known and known[0] and known[0].has_null_count and known[0].null_count == 0)


def _read_head(piece: _Piece, schema: Any) -> Any:
    """The first rows of a piece; runs on a worker."""
    return piece.part.read(schema, groups=piece.groups).slice(0, _HEAD)


def _features(piece: _Piece, schema: Any, columns: list[str], dtype: Any, file: str) -> Array:
    """The features of a piece; runs on a worker."""
    table = piece.part.read(schema, columns, piece.groups)
    return np.column_stack([numbers(n, table[n], file).astype(dtype) for n in columns])


def _kept(piece: _Piece, schema: Any, kept: _KeptColumns) -> KeptValues:
    """Row names and labels of a piece; runs on a worker."""
    table = piece.part.read(schema, kept.names, piece.groups)
    ids = None if kept.row_names is None else texts(table[kept.row_names])
    labels = {name: label_values(table[name], name in kept.as_texts) for name in kept.labels}
    return KeptValues(ids, labels)


def _label(kept: KeptValues, *, name: str) -> Array:
    return kept.labels[name].astype(object)


def _ids(kept: KeptValues) -> Array:
    assert kept.ids is not None  # the data have row names
    return kept.ids.astype(object)


def _divided(heads: list[Any], choice: ColumnChoice, file: str) -> DividedColumns:
    """Which columns are what, by the first rows; runs on a worker."""
    import pyarrow

    return choice.divide(pyarrow.concat_tables(heads).slice(0, _HEAD), file)
