"""Which columns of a table are features, which name the rows, which are labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from manifoldry.io.table import MISSING_NUMBERS, Column, DataFileError, Table

if TYPE_CHECKING:
    import pyarrow as pa

# Names of columns, in lower case, that are no features.
_ID_NAMES = {"", "id", "ids", "index", "name", "key", "uuid", "barcode", "cell", "sample",
             "filename", "file", "unnamed: 0", "__index_level_0__",
             "__null_dask_index__"}  # fmt: skip
# Columns in which pandas and Dask store an index without a name.
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
_LABEL_NAMES = {"label", "labels", "class", "classes", "target", "y", "species", "cluster",
                "category", "group", "type", "cell_type", "celltype"}  # fmt: skip
_FEW_TEXTS = 0.1  # fraction of texts up to which a column is one of numbers with faults
_MAX_CLASSES = 200  # a text column of more distinct values is no label


class DividedColumns(NamedTuple):
    """Names of columns by what they are, and what a reader should know about it."""

    features: list[str]
    row_names: str | None
    labels: list[str]
    notes: list[str]


@dataclass(frozen=True)
class ColumnChoice:
    r"""What a user says about the columns; what is not said is recognized.

    Parameters
    ----------
    features : sequence of str, optional
        Names of the features; by default all numeric columns that are nothing else.
    labels : sequence of str
        Names of the label columns, which are kept and used to color pictures.
    id : str, optional
        Name of the column of row names.
    drop : sequence of str
        Names of columns to ignore.
    unnamed : bool
        Whether the columns of an array without names are taken in its order, as if they had the
        names of the features.

    See Also
    --------
    read_table : uses it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manifoldry.io import ColumnChoice, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "flowers.csv"
    ...     _ = file.write_text("plot,width,height,color\n1,1.5,2,3\n1,0.5,3,2\n2,1,1,3\n")
    ...     table = read_table(file, ColumnChoice(labels=["color"], drop=["plot"]))
    >>> table.names, list(table.labels)
    (('width', 'height'), ['color'])
    """

    features: Sequence[str] | None = None
    labels: Sequence[str] = ()
    id: str | None = None
    drop: Sequence[str] = ()
    unnamed: bool = False

    def apply(self, table: pa.Table, file: str) -> Table:
        """Split the columns of an Arrow table into features, row names and labels.

        Parameters
        ----------
        table : pyarrow.Table
            The columns.
        file : str
            Name of the file, for messages.

        Returns
        -------
        Table
            The features as numbers, the row names and the labels, with notes on what was
            recognized or left out.
        """
        columns = _by_name(table)
        features, row_names, labels, notes = self.divide(table, file)
        X = np.column_stack([numbers(name, columns[name], file) for name in features])
        return Table(
            X,
            tuple(features),
            None if row_names is None else texts(columns[row_names]),
            {name: label_values(columns[name]) for name in labels},
            tuple(notes),
        )

    def divide(self, table: pa.Table, file: str) -> DividedColumns:
        """Say which columns of an Arrow table are what.

        Parameters
        ----------
        table : pyarrow.Table
            The columns.
        file : str
            Name of the file, for messages.

        Returns
        -------
        DividedColumns
            Names of the features, of the column of row names, and of the labels, and notes.
        """
        columns = _by_name(table)
        present = list(columns)
        named = (*(self.features or ()), *self.labels, *self.drop, *_given(self.id))
        self.require_names(named, present, file)
        left = [name for name in present if name not in self.drop]
        free = [name for name in left if name not in (self.features or ())]
        notes: list[str] = []
        row_names = self.id or _recognized_id(free, columns)
        labels = list(self.labels) or _recognized_labels(free, columns, row_names)
        if self.features is None:
            special = {*labels, *_given(row_names), *filter(_INDEX.fullmatch, left)}
            features, notes = _numeric([n for n in left if n not in special], columns)
        else:
            features = [name for name in self.features if name not in self.drop]
        if not features:
            raise DataFileError(
                f"{file} has no column of numbers that can be a feature; name features with "
                "--columns, or another delimiter with --delimiter"
            )
        if row_names is not None and self.id is None:
            notes.append(f"column {row_names!r} names the rows")
        if labels and not self.labels:
            notes.append(f"taken as labels, not as features: {_listed(labels)}")
        return DividedColumns(features, row_names, labels, notes)

    def apply_to_array(self, table: Table, file: str) -> Table:
        """Choose among the columns of an array, which have names or none.

        Parameters
        ----------
        table : Table
            The array, and its labels.
        file : str
            Name of the file, for messages.

        Returns
        -------
        Table
            The table with the chosen features and labels.
        """
        if not (self.features or self.labels or self.drop or self.id):
            return table
        if self.id is not None:
            raise DataFileError(f"{file} is an array, without a column of row names; omit --id")
        if self.labels:
            self.require_names(self.labels, list(table.labels), file)
            table = replace(table, labels={name: table.labels[name] for name in self.labels})
        if not (self.features or self.drop) or (self.unnamed and table.names is None):
            return table
        if table.names is None:
            raise DataFileError(
                f"{file} has no names of columns to choose from; choose them in the array"
            )
        self.require_names((*(self.features or ()), *self.drop), table.names, file)
        kept = [n for n in self.features or table.names if n not in self.drop]
        X: Any = table.X
        return replace(table, X=X[:, [table.names.index(n) for n in kept]], names=tuple(kept))

    @staticmethod
    def require_names(names: Sequence[str], present: Sequence[str], file: str) -> None:
        """Raise DataFileError that suggests a name unless all names are present.

        Parameters
        ----------
        names : sequence of str
            Names of the columns that are needed.
        present : sequence of str
            Names of the columns of the file.
        file : str
            Name of the file, for messages.
        """
        known = set(present)
        for name in names:
            if name not in known:
                close = get_close_matches(name, present, n=1)
                known_names = f"it has {_listed(present)}" if present else "it has no names"
                hint = f"did you mean {close[0]!r}?" if close else known_names
                raise DataFileError(f"{file} has no column {name!r}; {hint}")


def _by_name(table: pa.Table) -> dict[str, Any]:
    """The columns, by names that differ."""
    present = unique_names(table.column_names)
    return {n: without_dictionary(c) for n, c in zip(present, table.columns, strict=True)}


def without_dictionary(column: Any) -> Any:
    """The column; one of categories as the values that they stand for."""
    import pyarrow.types as types

    if not types.is_dictionary(column.type):
        return column
    return column.cast(column.type.value_type)


def _given(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, with a number that makes them different added to those that occur again."""
    counts: dict[str, int] = {}
    taken, unique = set(names), []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        new = name
        while counts[name] > 1 and (new := f"{name}.{counts[name]}") in taken:
            counts[name] += 1
        taken.add(new)
        unique.append(new)
    return unique


def _is_text(column: Any) -> bool:
    """Whether a column has texts, times or anything else that is no number."""
    import pyarrow.types as types

    kind = column.type
    return not (
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        or types.is_decimal(kind) or types.is_null(kind)
    )  # fmt: skip


def _recognized_id(names: Sequence[str], columns: dict[str, Any]) -> str | None:
    """A column named like one of row names, or a first column of distinct texts."""
    for name in names:
        if name.strip().lower() in _ID_NAMES and _is_distinct(columns[name]):
            return name
    first = names[0] if names else None
    if first is not None and _is_text(columns[first]) and _is_distinct(columns[first]):
        return first
    return None


def _is_distinct(column: Any) -> bool:
    import pyarrow.compute as pc
    import pyarrow.types as types

    if types.is_string(column.type) and pc.any(pc.equal(column, "")).as_py():
        return False  # a name is missing
    return column.null_count == 0 and _n_distinct(column) == len(column)


def _n_distinct(column: Any) -> int:
    """Number of different values; that of rows for values that cannot be compared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return int(pc.count_distinct(column).as_py())
    except pa.ArrowNotImplementedError:
        return len(column)


def _recognized_labels(
    names: Sequence[str], columns: dict[str, Any], row_names: str | None
) -> list[str]:
    """Columns named like labels, and columns of few distinct texts."""
    found = []
    for name in names:
        if name == row_names:
            continue
        if name.strip().lower() == "y" and "x" in {other.strip().lower() for other in names}:
            continue  # coordinates
        few = _n_distinct(columns[name]) <= max(2, min(_MAX_CLASSES, len(columns[name]) // 2))
        if few and (name.strip().lower() in _LABEL_NAMES or _is_text(columns[name])):
            found.append(name)
    return found


def _numeric(names: Sequence[str], columns: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The columns of numbers, and notes about the others."""
    text = {name: _text_rows(columns[name]) for name in names if _is_text(columns[name])}
    notes = [
        f"column {name!r} is left out, since it has text in {len(rows)} of {len(columns[name])} "
        f"rows, first in row {rows[0][0] + 1} ({rows[0][1]!r}); mend these cells to use it"
        for name, rows in text.items() if rows and len(rows) <= _FEW_TEXTS * len(columns[name])
    ]  # fmt: skip
    whole = [name for name, rows in text.items() if len(rows) > _FEW_TEXTS * len(columns[name])]
    if whole:
        notes.append(
            f"left out, since they contain text: {_listed(whole)} (encode them as numbers to use "
            "them, or name them with --label or --id)"
        )
    return [name for name in names if name not in text], notes


def numbers(name: str, column: Any, file: str) -> Column:
    """A column in double precision; missing values are NaN."""
    if _is_text(column):
        i, text = (_text_rows(column) or [(0, str(column[0]))])[0]
        raise DataFileError(
            f"{file}: column {name!r} has text in row {i + 1} ({text!r}), but features must be "
            "numbers; leave it out with --drop, or encode it as numbers"
        )
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    as_float = column.cast(pa.float64(), safe=False)
    return np.asarray(as_float.to_numpy(zero_copy_only=False), dtype=np.float64)


def _text_rows(column: Any) -> list[tuple[int, str]]:
    """Rows whose cells are no numbers, and the cells."""
    found = []
    for i, value in enumerate(column.to_pylist()):
        try:
            float(value.replace(",", ".") if isinstance(value, str) else value)
        except (TypeError, ValueError):
            if value is not None and str(value).strip() not in MISSING_NUMBERS:
                found.append((i, str(value)[:40]))
    return found


def texts(column: Any) -> Column:
    """The values of a column of row names as texts."""
    return np.array([str(value) for value in column.to_pylist()])


def label_values(column: Any, as_texts: bool = False) -> Column:
    """The values of a label column: numbers as they are, everything else as text.

    Missing values make texts of numbers, too; with `as_texts` they are in another part of the data.
    """
    values = column.to_pylist()
    if as_texts or any(value is None or isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values])
    return np.array(values)


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
