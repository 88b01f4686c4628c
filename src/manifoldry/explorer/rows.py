"""Single rows: what is known of them, and finding them by name or label."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from manifoldry.explorer.data import ExploredData
from manifoldry.plotting.point_labels import missing_entries
from manifoldry.util.checks import check_count

_MOST_LABELS = 20  # of a row that are shown
_MOST_FOUND = 100_000  # rows that are listed
_NO_ROWS = np.empty(0, dtype=np.intp)
_MOST_ASKED = 1000  # rows whose facts are asked for at once


def row_facts(data: ExploredData, rows: list[int]) -> list[dict[str, Any]]:
    """Name, labels and features of some rows, and their image or curve."""
    if len(rows) > _MOST_ASKED:
        raise ValueError(f"{len(rows)} rows were asked for, more than {_MOST_ASKED}")
    for row in rows:
        if check_count("row", row, minimum=0) >= data.n:
            raise ValueError(f"row={row} must be less than the number of rows, {data.n}")
    if not data.has_data or not rows:
        return [_facts(data, row, None) for row in rows]
    values = data.rows(np.asarray(rows))
    return [_facts(data, row, each) for row, each in zip(rows, values, strict=True)]


def _facts(data: ExploredData, row: int, values: Any) -> dict[str, Any]:
    kind = data.row_kind
    shown: Any = [] if values is None else data.notable(values)
    return {
        "row": row,
        "name": data.table.row_name(row),
        "labels": [
            [name, label_text(each[row])] for name, each in list(data.labels.items())[:_MOST_LABELS]
        ],
        "features": [[data.feature_names[j], values[j]] for j in shown],
        "pixels": data.pixels(values) if kind == "image" and values is not None else None,
        "values": None if values is None or kind != "curve" else values.astype(np.float32),
    }


def label_text(value: Any) -> str:
    """A label as it is written."""
    if missing_entries(np.array([value], dtype=object))[0]:
        return "missing"
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


class RowSearch:
    """Finds rows by name, number or label.

    Parameters
    ----------
    data : ExploredData
        The data.
    """

    def __init__(self, data: ExploredData) -> None:
        self.data = data
        self._lower_ids = lru_cache(maxsize=1)(self._read_ids)

    def __call__(self, text: str) -> dict[str, Any]:
        """The rows that a text means.

        That is a name, else a number, else a label, else what has the text in its name or label.
        """
        wanted = " ".join(text.lower().split())
        if not wanted:
            return self._found(_NO_ROWS, "Type a name, a number or a label.")
        searches = (self._by_name, self._by_number, self._by_label, self._by_part_of_name,
                    self._by_part_of_label)  # fmt: skip
        for search in searches:
            rows, what = search(wanted)
            if len(rows):
                return self._found(rows, what)
        searched = "names, numbers and labels" if self.data.labels else "names and numbers"
        return self._found(_NO_ROWS, f"No row is called {text.strip()!r}, of all {searched}.")

    def _found(self, rows: Any, text: str) -> dict[str, Any]:
        if len(rows) > _MOST_FOUND:
            text += f" The first {_MOST_FOUND:,} are selected."
        return {"rows": rows[:_MOST_FOUND].astype(np.uint32), "total": len(rows), "text": text}

    def _read_ids(self) -> Any:
        ids = self.data.table.ids
        return None if ids is None else np.char.lower(np.asarray(ids).astype(str))

    def _by_name(self, wanted: str) -> tuple[Any, str]:
        ids = self._lower_ids()
        rows = _NO_ROWS if ids is None else np.flatnonzero(ids == wanted)
        return rows, _counted(len(rows), f"called {wanted}")

    def _by_number(self, wanted: str) -> tuple[Any, str]:
        number = wanted.removeprefix("row").strip()
        is_number = number.isdecimal() and len(number) <= len(str(self.data.n))
        if is_number and 1 <= int(number) <= self.data.n:
            return np.array([int(number) - 1]), f"Row {int(number)}, counted from 1."
        return _NO_ROWS, ""

    def _by_label(self, wanted: str) -> tuple[Any, str]:
        """By a value of a label, alone or after its name: ``setosa``, ``species setosa``."""
        for name, values in self.data.labels.items():
            for value in (wanted, wanted.removeprefix(f"{name.lower()} ")):
                rows = _rows_with(values, value.__eq__)
                if len(rows):
                    return rows, _counted(len(rows), f"whose {name} is {value!r}")
        return _NO_ROWS, ""

    def _by_part_of_name(self, wanted: str) -> tuple[Any, str]:
        ids = self._lower_ids()
        rows = _NO_ROWS if ids is None else np.flatnonzero(np.char.find(ids, wanted) >= 0)
        return rows, _counted(len(rows), f"whose name has {wanted!r} in it")

    def _by_part_of_label(self, wanted: str) -> tuple[Any, str]:
        for name, values in self.data.labels.items():
            rows = _rows_with(values, lambda value: wanted in value)
            if len(rows):
                return rows, _counted(len(rows), f"whose {name} has {wanted!r} in it")
        return _NO_ROWS, ""


def _rows_with(values: Any, matches: Callable[[str], Any]) -> Any:
    """Rows whose label, in lower case, matches."""
    values = np.asarray(values)
    known = np.flatnonzero(~missing_entries(values))
    if len(known) == 0:
        return known
    different, codes = np.unique(values[known].astype(str), return_inverse=True)
    matching = np.array([bool(matches(each.lower())) for each in different])
    return known[matching[codes]]


def _counted(n: int, what: str) -> str:
    return f"{n:,} row{'s' * (n != 1)} {what}."
