"""Parquet stores, which are a file or a folder of files: the files in order, and their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from manifoldry.io.columns import without_dictionary
from manifoldry.io.table import DataFileError
from manifoldry.util.text import natural_order

if TYPE_CHECKING:
    import pyarrow as pa

MISSING_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class ParquetPart(NamedTuple):
    """A file of a Parquet store, and its columns that are in the names of folders."""

    file: Path
    partition: dict[str, str]

    def opened(self) -> Any:
        """The file, of which only the end has been read."""
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(self.file)

    def columns(self) -> set[str]:
        """Names of the columns."""
        return {*self.opened().schema_arrow.names, *self.partition}

    def read(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
        *,
        use_threads: bool = False,
    ) -> pa.Table:
        """Return columns, by default all, in the types of the store.

        Parameters
        ----------
        schema : pyarrow.Schema
            Names and types of the columns of the store.
        columns : sequence of str, optional
            Names of the columns; those that the file does not have are missing values.
        groups : sequence of int, optional
            Groups of rows, by default all.
        use_threads : bool, default=False
            Whether several threads read.

        Returns
        -------
        pyarrow.Table
            The columns.
        """
        import pyarrow as pa

        opened = self.opened()
        within = set(opened.schema_arrow.names)
        repeats = len(within) < len(opened.schema_arrow.names)
        fields = list(schema) if columns is None else [schema.field(name) for name in columns]
        asked = None if repeats else [field.name for field in fields if field.name in within]
        numbers = range(opened.num_row_groups) if groups is None else groups
        table = opened.read_row_groups(list(numbers), columns=asked, use_threads=use_threads)
        if repeats:
            return table
        values = [
            without_dictionary(table[field.name]).cast(field.type)
            if field.name in within
            else self._constant(field, table.num_rows)
            for field in fields
        ]
        return pa.table(values, schema=pa.schema(fields))

    def _constant(self, field: pa.Field, count: int) -> Any:
        """A column that is in the name of a folder, or that the file does not have."""
        import pyarrow as pa

        value = self.partition.get(field.name)
        if value is None or value == MISSING_PARTITION:
            return pa.chunked_array([pa.nulls(count, field.type)])
        return pa.chunked_array([pa.repeat(pa.scalar(value).cast(field.type), count)])


def parquet_parts(path: Path) -> list[ParquetPart]:
    """The files of a Parquet store in natural order, as ``part.10`` comes after ``part.9``.

    Files and folders whose names begin with a dot or an underscore have no rows, such as
    ``_SUCCESS``. Names of folders such as ``kind=left`` are columns.
    """
    if path.is_file():
        return [ParquetPart(path, {})]
    found = []
    for file in path.rglob("*"):
        names = file.relative_to(path).parts
        if file.is_file() and not any(name.startswith((".", "_")) for name in names):
            pairs = [name.partition("=") for name in names[:-1]]
            found.append(ParquetPart(file, {unquote(k): unquote(v) for k, e, v in pairs if e}))
    if not found:
        raise DataFileError(f"{path} is a folder without Parquet files")
    return sorted(found, key=lambda part: natural_order(str(part.file.relative_to(path))))


def common_schema(parts: Sequence[ParquetPart]) -> pa.Schema:
    """Names and types of the columns of all files; of several types the one that has the others."""
    import pyarrow as pa

    found = pa.schema([])
    for part in parts:
        own = _plain_schema(part.opened().schema_arrow)
        if len(parts) == 1 and not part.partition:
            return own
        try:
            found = pa.unify_schemas([found, own], promote_options="permissive")
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0]
            raise DataFileError(
                f"{part.file} has other types of columns than the files before it: {reason}; "
                "write them with the same types"
            ) from None
    for name, values in _partitions(parts).items():
        if name not in found.names:
            found = found.append(pa.field(name, pa.int64() if _are_whole(values) else pa.string()))
    return found


def read_parquet(path: Path) -> pa.Table:
    """All columns of a Parquet store in memory."""
    import pyarrow as pa

    parts = parquet_parts(path)
    schema = common_schema(parts)
    return pa.concat_tables([part.read(schema, use_threads=True) for part in parts])


def require_columns(parts: Iterable[ParquetPart], names: Sequence[str]) -> None:
    """Raise DataFileError that names the first file that does not have all of these columns."""
    for part in parts:
        present = part.columns()
        missing = [name for name in names if name not in present]
        if missing:
            raise DataFileError(
                f"{part.file} has no column {missing[0]!r}, which other files of the store have; "
                f"leave it out with --drop, or write the file with it"
            )


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without categories, which may differ between files, and without metadata."""
    import pyarrow as pa

    kinds = [
        field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for field in schema
    ]
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def _partitions(parts: Sequence[ParquetPart]) -> dict[str, set[str]]:
    """Values of the columns that are in names of folders."""
    found: dict[str, set[str]] = {}
    for part in parts:
        for name, value in part.partition.items():
            found.setdefault(name, set()).add(value)
    return found


def _are_whole(values: set[str]) -> bool:
    """Whether all values are whole numbers as they are usually written."""
    own = values - {MISSING_PARTITION}
    return all(value.isdecimal() and str(int(value)) == value for value in own) and bool(own)
