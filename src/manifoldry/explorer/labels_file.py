"""Labels that are made on the page, kept in a file beside the data."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from manifoldry.explorer.data import ExploredData
from manifoldry.io import Table, write_table
from manifoldry.io.extras import optional_module
from manifoldry.io.write import without_apostrophe
from manifoldry.plotting.point_labels import missing_entries

LABEL_FORMATS = (".csv", ".tsv", ".parquet")
COLUMNS = ("id", "row")  # of the file, so that no label has these names


@dataclass(frozen=True)
class LabelsFile:
    """A table of one row for each row of the data: its number, its name, and its labels.

    Parameters
    ----------
    path : Path
        The file, whose format is that of its suffix.
    """

    path: Path

    @classmethod
    def of(cls, path: Path | None, data: ExploredData) -> Self | None:
        """The file of a path; None without one."""
        return None if path is None else cls(path)

    def read(self, data: ExploredData, notes: list[str]) -> dict[str, Any]:
        """The labels of an earlier exploration; FileExistsError if the file has something else."""
        if not self.path.exists():
            return {}
        try:
            columns = self._columns()
            numbers = columns.pop("row")
        except (ValueError, OSError, KeyError, csv.Error):
            raise self._not_ours("is no file of labels, which has a column 'row'") from None
        if numbers != _texts(range(1, data.n + 1)) or not _same(columns.pop("id", None), data):
            raise self._not_ours(f"has labels of {len(numbers)} other rows")
        notes.append(f"labels of an earlier exploration are read from {self.path}")
        return {name: _known(values) for name, values in columns.items()}

    def _not_ours(self, what: str) -> FileExistsError:
        return FileExistsError(
            f"{self.path} {what}, so it is not replaced; move it away, or name another file for "
            "labels with --output"
        )

    def _columns(self) -> dict[str, list[str]]:
        """All columns by name, as text: a label that looks like a number stays as it was typed."""
        if self.path.suffix.lower() == ".parquet":
            parquet = optional_module("pyarrow.parquet", "cli", "reading Parquet")
            found = parquet.read_table(self.path).to_pydict()
            return {name: _texts(values) for name, values in found.items()}
        delimiter = "\t" if self.path.suffix.lower() == ".tsv" else ","
        with self.path.open(encoding="utf-8", newline="") as file:
            lines = [
                [without_apostrophe(cell) for cell in line]
                for line in csv.reader(file, delimiter=delimiter, strict=True)
            ]
        names, *rows = lines or [[]]
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))

    def write(self, data: ExploredData) -> str:
        """Replace the file; returns its name."""
        labels = {
            name: np.where(missing_entries(values), "", values).astype(str)
            for name, values in data.own_labels.items()
        }
        numbers = np.arange(1, data.n + 1)[:, None]
        table = Table(numbers, ("row",), data.table.ids, labels)
        return str(write_table(self.path, table).resolve())


def _texts(values: Any) -> list[str]:
    return ["" if each is None else str(each) for each in values]


def _same(names: list[str] | None, data: ExploredData) -> bool:
    """Whether rows have these names, if names are known."""
    return names is None or data.table.ids is None or names == _texts(data.table.ids)


def _known(values: list[str]) -> Any:
    """Labels as objects, None where they are empty."""
    return np.array([each or None for each in values], dtype=object)
