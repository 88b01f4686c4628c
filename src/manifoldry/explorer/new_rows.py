"""New rows on the maps: a file or pasted text, and where `transform` puts its rows."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.maps import ExploredMap
from manifoldry.io import ColumnChoice, DataFileError, Table, read_table
from manifoldry.util.text import error_text

_MOST_ROWS = 20_000  # that are placed at once
_MOST_NAMES = 1000  # that are listed


def rows_of_file(path: Path, data: ExploredData) -> Table:
    """The rows of a file that has the columns of the data, in any order."""
    if path.is_dir() and data.table.image_shape is None:
        raise ValueError("the data are no images that were read from files; send a table instead")
    imputes = any(isinstance(step, SimpleImputer) for step in data.steps)
    try:
        table = _read(path, data, imputes)
    except (DataFileError, OSError) as error:
        # The file has a name of ours, which would only confuse.
        ours = re.escape(str(path.parent)) + r"[^\s':,;]*"
        raise ValueError(re.sub(ours, "the file", str(error))) from None
    if table.X.shape[1] != data.n_features:
        raise ValueError(
            f"the file has {table.X.shape[1]} columns of numbers, but the data have "
            f"{data.n_features}; send one column for each of {_listed(data.feature_names)}"
        )
    return table


def _read(path: Path, data: ExploredData, imputes: bool) -> Table:
    """The columns by name; those of a text without names in the order of the data."""
    choice = ColumnChoice(features=data.table.names, unnamed=True)
    try:
        return read_table(path, choice, missing=imputes)
    except DataFileError:
        table = read_table(path, missing=imputes)
        generated = [f"f{j}" for j in range(data.n_features)]
        if list(table.names or ()) != generated:
            raise
        return table.with_note(
            "The columns have no names; they are taken in the order of the data."
        )


def rows_of_text(text: str, data: ExploredData) -> Table:
    """Pasted rows: numbers in the order of the columns, or a table with a line of names."""
    if not text.strip():
        raise ValueError("the text is empty; paste one row of numbers per line")
    lines = {
        number: re.split(r"[,;\t ]+", line.strip(" ,;\t"))
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip(" ,;\t")
    }
    try:
        X = {number: [float(cell) for cell in line] for number, line in lines.items()}
    except ValueError:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            path.write_text(text, encoding="utf-8")
            return rows_of_file(path, data)
    if not X:
        raise ValueError("the text has no numbers; paste one row of numbers per line")
    for number, row in X.items():
        if len(row) != data.n_features:
            raise ValueError(
                f"line {number} has {len(row)} numbers, but the data have {data.n_features} "
                f"columns: {_listed(data.feature_names)}"
            )
    values = np.array(list(X.values()))
    if not np.isfinite(values).all():
        number = list(X)[int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])]
        raise ValueError(f"line {number} has a missing or infinite value; put a number there")
    return Table(values)


def placed(table: Table, maps: Iterable[ExploredMap]) -> dict[str, Any]:
    """Where the rows are on every map, their novelty, and why maps were skipped."""
    X: Any = table.X
    notes = list(table.notes)
    if table.n > _MOST_ROWS:
        X = X[:_MOST_ROWS]
        notes.append(
            f"The first {_MOST_ROWS:,} of {table.n:,} rows are placed; manifoldry transform MODEL "
            "FILE places all of them."
        )
    xy, skipped, novelty = {}, {}, None
    for each in maps:
        if not each.can_place:
            skipped[each.id] = each.why_not
            continue
        try:
            positions, unlike = each.place(X)
        except Exception as error:  # of a model of any package; other maps can place them
            skipped[each.id] = error_text(error)
            continue
        xy[each.id] = positions
        if unlike is not None and novelty is None:
            novelty = unlike.astype(np.float32)
    if not xy:
        reasons = " ".join(dict.fromkeys(skipped.values()))
        raise ValueError(f"no map can place new rows. {reasons}".strip())
    names = [table.row_name(i) for i in range(min(X.shape[0], _MOST_NAMES))]
    return {"names": names, "xy": xy, "novelty": novelty, "skipped": skipped, "notes": notes}


def _listed(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
