"""Labels that are made on the page, kept in a file beside the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from manifoldry.explorer.data import ExploredData
from manifoldry.io import ColumnChoice, DataFileError, Table, read_table, write_table
from manifoldry.plotting.point_labels import missing_entries


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
        """The labels of an earlier exploration, if they are of as many rows."""
        if not self.path.exists():
            return {}
        try:
            found = read_table(self.path, ColumnChoice(features=["row"]))
        except DataFileError as error:
            notes.append(f"labels are not read: {error}")
            return {}
        if found.n != data.n or not np.array_equal(found.X[:, 0], np.arange(1, data.n + 1)):
            notes.append(
                f"{self.path} has labels of {found.n} other rows, so they are not read; move the "
                "file away, or it will be replaced when a label is made"
            )
            return {}
        notes.append(f"labels of an earlier exploration are read from {self.path}")
        return {name: _known(values) for name, values in found.labels.items()}

    def write(self, data: ExploredData) -> str:
        """Replace the file; returns its name."""
        labels = {
            name: np.where(missing_entries(values), "", values).astype(str)
            for name, values in data.own_labels.items()
        }
        numbers = np.arange(1, data.n + 1)[:, None]
        table = Table(numbers, ("row",), data.table.ids, labels)
        return str(write_table(self.path, table))


def _known(values: Any) -> Any:
    """Labels as objects, None where they are empty."""
    found = np.asarray(values).astype(object)
    found[np.asarray(values).astype(str) == ""] = None
    return found
