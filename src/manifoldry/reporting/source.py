"""Data of any kind as a table, and how to read them again."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.io import ColumnChoice, Table, read_table
from manifoldry.io.annotated_files import annotated_table
from manifoldry.io.extras import optional_module
from manifoldry.io.name_lists import joined_names
from manifoldry.io.table import check_finite
from manifoldry.util.array_like import annotated_of, array_like, check_not_stacked, labels_of


@dataclass(frozen=True, eq=False)
class Source:
    """A table, and how to read it again.

    Parameters
    ----------
    table : Table
        The data, in which values may be missing.
    title : str
        Name for the headline.
    code : str
        Python that defines ``X``; what was passed to `report` is called ``data``.
    imports : tuple of str
        Lines that the code needs.
    arguments : tuple of str or None
        Arguments of the command for the same data; None if they are not in a file.
    """

    table: Table
    title: str
    code: str
    imports: tuple[str, ...] = ()
    arguments: tuple[str, ...] | None = None

    @classmethod
    def of_file(
        cls,
        path: str | os.PathLike[str],
        choice: ColumnChoice | None = None,
        delimiter: str | None = None,
        header: bool | None = None,
        key: str | None = None,
    ) -> Source:
        """The data of a file, as `read_table` reads it."""
        reading: dict[str, Any] = {"delimiter": delimiter, "header": header, "key": key}
        table = read_table(path, choice, **reading, missing=True)
        file, choice = str(path), choice or ColumnChoice()
        given = [repr(file)] + ([_call(choice)] if choice != ColumnChoice() else [])
        given += [f"{name}={value!r}" for name, value in reading.items() if value is not None]
        from_file = "import ColumnChoice, read_table" if len(given) > 1 else "import read_table"
        options = {"--columns": joined_names(choice.features or ()), "--id": choice.id,
                   "--drop": joined_names(choice.drop), "--delimiter": delimiter,
                   "--key": key}  # fmt: skip
        arguments = [file] + [part for o, v in options.items() if v for part in (o, v)]
        arguments += [part for label in choice.labels for part in ("--label", label)]
        arguments += [] if header is None else ["--header" if header else "--no-header"]
        return cls(
            table,
            "standard input" if file == "-" else Path(file).name,
            f"X = read_table({', '.join(given)}, missing=True).X",
            (f"from manifoldry.io {from_file}",),
            tuple(arguments),
        )

    @classmethod
    def of(cls, data: Any, labels: Any = None) -> Source:
        """Data of any kind; `labels` is a name of a column, or one label per row."""
        names = (labels,) if isinstance(labels, str) else ()
        if isinstance(data, (str, os.PathLike)):
            source = cls.of_file(data, ColumnChoice(labels=names) if names else None)
        else:
            source = _in_memory(data, names)
        if labels is None or names:
            return source
        return replace(source, table=_with_labels(source.table, labels_of(labels, data)))

    @property
    def command(self) -> str | None:
        """The arguments as they are typed."""
        return None if self.arguments is None else shlex.join(self.arguments)


def read_data(data: Any, labels: Any = None) -> Table:
    """Data of any kind as a table.

    Parameters
    ----------
    data : array, sparse matrix, data frame, AnnData, (AnnData, key), Table, str or path
        The data, or the file that has them. Columns of a frame that are not numbers are labels,
        names of rows, or left out, as :func:`manifoldry.io.read_table` has it.
    labels : str or array of shape (n_samples,), default=None
        Name of a column, or a label for each row.

    Returns
    -------
    Table
        The features, with names and labels of the rows. Values may be missing.

    See Also
    --------
    manifoldry.io.read_table : the same for files, with more choices.
    manifoldry.report : reads its data by it.

    Examples
    --------
    >>> from manifoldry.reporting import read_data
    >>> read_data([[1.0, 2.0], [3.0, 4.0]], labels=["a", "b"]).labels
    {'label': array(['a', 'b'], dtype='<U1')}
    """
    return Source.of(data, labels).table


def _in_memory(data: Any, names: tuple[str, ...]) -> Source:
    if isinstance(data, Table):
        table = data
        if names:
            ColumnChoice.require_names(names, list(table.labels), "the table")
            table = replace(table, labels={name: table.labels[name] for name in names})
        source = Source(table, _titled(table), "X = data.X")
    elif (adata := annotated_of(data)) is not None:
        key = None if adata is data else data[1]
        table = annotated_table(adata, ColumnChoice(labels=names), key)
        source = _reread(table, names)
    elif hasattr(type(data), "columns"):
        source = _reread(_frame_table(data, names), names)
    else:
        if names:
            raise ValueError(
                f"labels={names[0]!r} is a name, but an array has no names of columns; "
                "pass one label per row"
            )
        source = _of_array(data)
    check_finite(source.table, missing=True)
    return source


def _of_array(data: Any) -> Source:
    check_not_stacked(data, "data")
    values = array_like(data, "data")
    X = values.tocsr() if sparse.issparse(values) else np.asarray(values)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(
            f"data has shape {X.shape} and dtype {X.dtype}; pass rows of numbers, (n, features)"
        )
    code = "X = data"
    if X.dtype.kind != "f":
        X, code = X.astype(float), "X = data.astype(float)"
    if sparse.issparse(values):
        code = code.replace("data", "data.tocsr()")
    elif not isinstance(data, np.ndarray):
        code = code.replace("data", "np.asarray(data)")
    table = Table(X)
    return Source(table, _titled(table), code)


def _reread(table: Table, names: tuple[str, ...]) -> Source:
    given = "".join(f", {name!r}" for name in names)
    imports = ("from manifoldry.reporting import read_data",)
    return Source(table, _titled(table), f"X = read_data(data{given}).X", imports)


def _frame_table(frame: Any, names: tuple[str, ...]) -> Table:
    pyarrow = optional_module("pyarrow", "cli", "a report on a data frame")
    choice = ColumnChoice(labels=names)
    if hasattr(frame, "to_arrow"):  # polars
        return choice.apply(frame.to_arrow(), "the frame")
    table = choice.apply(pyarrow.Table.from_pandas(frame, preserve_index=False), "the frame")
    index = np.asarray(frame.index)
    is_count = index.dtype.kind in "iu" and (index == np.arange(len(index))).all()
    if table.ids is None and not is_count:
        table = replace(table, ids=np.array([str(each) for each in index]))
    return table


def _with_labels(table: Table, labels: Any) -> Table:
    values = np.asarray(labels)
    if values.shape != (table.n,):
        raise ValueError(f"labels has shape {values.shape}, expected ({table.n},): one per row")
    name = str(getattr(labels, "name", None) or "label")
    return replace(table, labels={name: values, **table.labels})


def _titled(table: Table) -> str:
    return f"{table.n:,} rows of {table.X.shape[1]:,} features"


def _call(choice: ColumnChoice) -> str:
    """The choice as Python; what is not said is left out."""
    given = {name: value for name, value in vars(choice).items() if value}
    given = {n: list(v) if isinstance(v, tuple) else v for n, v in given.items()}
    return f"ColumnChoice({', '.join(f'{n}={v!r}' for n, v in given.items())})"
