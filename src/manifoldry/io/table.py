"""Rows of numbers from a file, with what identifies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.util.typing import Matrix

Column = NDArray[Any]
# How text files write a number that is missing.
MISSING_NUMBERS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?", "-",
                   "#N/A", "#NV")  # fmt: skip


class DataFileError(ValueError):
    r"""A file that cannot be used as data, with the place in it and the remedy.

    See Also
    --------
    read_table : raises it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manifoldry.io import DataFileError, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "flowers.csv"
    ...     _ = file.write_text("width,height\n1.5,2\n,3\n")
    ...     try:
    ...         read_table(file)
    ...     except DataFileError as error:
    ...         print(str(error).partition(": ")[2])  # after the path
    the value in row 2, column 'width' is missing; fill in missing values with ...
    """


@dataclass(frozen=True, eq=False)
class Table:
    """Data to embed, and the columns that are kept beside them.

    Parameters
    ----------
    X : array or sparse array of shape (n, n_features)
        The features; a memory map if the file allows one.
    names : sequence of str, optional
        Names of the features.
    ids : array of shape (n,), optional
        Names of the rows.
    labels : mapping from str to arrays of shape (n,)
        Columns that are no features, such as classes.
    notes : tuple of str
        What a reader should know: which columns were taken for what, and what was left out.
    image_shape : tuple of int, optional
        Shape of the image in each row, if rows are images.
    source : path, optional
        The AnnData file or store that the data are from, which has more than a table.
    is_graph : bool
        Whether `X` has distances or weights of pairs of rows, as entries of ``obsp``.

    See Also
    --------
    read_table : reads one from a file.
    write_table : writes one to a file.
    manifoldry.reporting.read_data : makes one of an array or a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.io import Table
    >>> table = Table(np.eye(3), names=("x", "y", "z"), ids=np.array(["a", "b", "c"]),
    ...               labels={"kind": np.array(["old", "old", "new"])})
    >>> table.n, table.row_name(1)
    (3, 'row 2 (b)')
    >>> table.with_note("made by hand").notes
    ('made by hand',)
    """

    X: Matrix
    names: tuple[str, ...] | None = None
    ids: Column | None = None
    labels: Mapping[str, Column] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None
    source: Path | None = None
    is_graph: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def with_note(self, note: str) -> Table:
        """Return the same table with one more note.

        Parameters
        ----------
        note : str
            What was found or decided while reading.

        Returns
        -------
        Table
            A new table; the data are not copied.
        """
        return replace(self, notes=(*self.notes, note))

    def row_name(self, i: int) -> str:
        """Return the number of a row, counted from one as in a spreadsheet, and its name if known.

        Parameters
        ----------
        i : int
            The row, counted from zero.

        Returns
        -------
        str
            Such as ``"row 2 (b)"``, or ``"row 2"`` if rows have no names.
        """
        return f"row {i + 1}" if self.ids is None else f"row {i + 1} ({self.ids[i]})"


def check_finite(table: Table, missing: bool = False) -> None:
    """Raise DataFileError that names the first missing or infinite cell, and how many there are.

    With `missing`, missing values are accepted, and infinite ones are not.
    """
    values = table.X.data if hasattr(table.X, "nnz") else table.X
    first, counts = None, np.zeros(values.shape[1:], dtype=int)
    for start in range(0, len(values), 65_536):
        block = values[start : start + 65_536]
        wrong = np.isinf(block) if missing else ~np.isfinite(block)
        if first is None and wrong.any():
            if values.ndim == 1:
                raise DataFileError("the sparse matrix has missing or infinite values")
            first = np.argwhere(wrong)[0] + (start, 0)
        counts += wrong.sum(axis=0)
    if first is not None:
        raise DataFileError(_wrong_cell(table, int(first[0]), int(first[1]), counts))


def _wrong_cell(table: Table, i: int, j: int, counts: Column) -> str:
    """What is wrong with the first cell, given the number of such cells by column."""
    name = f"column {j + 1}" if table.names is None else f"column {table.names[j]!r}"
    X: Any = table.X
    if np.isnan(X[i, j]):
        what, remedy = "is missing", "fill in missing values with --impute median"
    else:
        what, remedy = "is infinite", "mend the file"
    total, columns = int(counts.sum()), int((counts > 0).sum())
    others = ""
    if total > 1:
        where = "this column" if columns == 1 else f"{columns} columns"
        others = f" (the first of {total} missing or infinite values, in {where})"
    return (
        f"the value in {table.row_name(i)}, {name} {what}{others}; {remedy}, or leave the "
        f"column{'s' * (columns > 1)} out with --drop"
    )


def first_label(table: Table) -> tuple[str | None, Any]:
    """Name and values of the first label, or None twice."""
    labels: Mapping[str, Any] = table.labels
    return next(iter(labels.items()), (None, None))


def class_labels(table: Table, note: Callable[[str], None]) -> Any:
    """The first label if it has classes; None otherwise, with a note."""
    name, values = first_label(table)
    if values is None:
        return None
    count = len(set(values.tolist()))
    if 2 <= count <= table.n // 2:
        return values
    note(f"label {name!r} has {count} different values, so it is not used as classes")
    return None
