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
from manifoldry.reporting.words import counted
from manifoldry.util.text import error_text

_MOST_ROWS = 20_000  # that are placed at once
_EDGE = 1.15  # of the picture, whose points are within 1
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
    """Pasted rows: numbers in the order of the columns, or a table with a line of names.

    Texts among the numbers, such as a name and a class, are left out.
    """
    if not text.strip():
        raise ValueError("the text is empty; paste one row of numbers per line")
    trimmed = [line.strip(" ,;\t") for line in text.splitlines()]
    lines = [(i, _cells(line)) for i, line in enumerate(trimmed, start=1) if line]
    if not lines:
        raise ValueError("the text has no numbers; paste one row of numbers per line")
    if len(lines) > 1 and not any(map(_is_number, lines[0][1])):  # a line of names
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            path.write_text(text, encoding="utf-8")
            return rows_of_file(path, data)
    X = np.array([_numbers(cells, i, data) for i, cells in lines])
    n_texts = sum(len(cells) - data.n_features for _, cells in lines)
    table = Table(X)
    note = f"{counted(n_texts, 'cell')} with text left out."
    return table.with_note(note) if n_texts else table


def _cells(line: str) -> list[str]:
    """The cells of a line; commas are decimal ones if there is another mark between cells."""
    for mark in ("\t", ";"):
        if mark in line:
            cells = [cell.strip() for cell in line.split(mark)]
            return [c.replace(",", ".") if _is_number(c.replace(",", ".")) else c for c in cells]
    if "," in line:
        return [cell.strip() for cell in line.split(",")]
    return line.split()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(row: list[str], line: int, data: ExploredData) -> list[float]:
    """The numbers of a row, one for each column of the data."""
    wanted = f"the data have {data.n_features} columns: {_listed(data.feature_names)}"
    if len(row) >= data.n_features and "" in row:
        raise ValueError(f"line {line}: value {row.index('') + 1} is empty; put a number there")
    found = [float(cell) for cell in row if _is_number(cell)]
    if len(found) != data.n_features:
        raise ValueError(f"line {line} has {counted(len(found), 'number')}, but {wanted}")
    if not np.isfinite(found).all():
        raise ValueError(f"line {line} has a missing or infinite value; put a number there")
    return found


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
        outside = int((np.abs(positions) > _EDGE).any(axis=1).sum())
        if outside:
            one = outside == 1
            notes.append(
                f"{counted(outside, 'row')} {'is' if one else 'are'} outside the picture of "
                f"{each.name}."
            )
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
