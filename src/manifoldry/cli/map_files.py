"""Maps in files: which columns are coordinates, and which row belongs to which row of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manifoldry.cli.console import Console
from manifoldry.io import ColumnChoice, DataFileError, Table, read_table
from manifoldry.io.name_lists import split_names
from manifoldry.io.write import without_apostrophe
from manifoldry.methods.catalog import METHODS

_COMPUTED = "novelty"  # a column that transform adds to its maps


def read_map(path: Path, table: Table, params: Mapping[str, Any], console: Console) -> Any:
    """The coordinates in a file, one row for each row of the data."""
    named = split_names(params["map_columns"] or ())
    found = _read(path, ColumnChoice(features=named or None), table, params)
    if found.n != table.n:
        raise DataFileError(
            f"{path} has {found.n} rows, but the data have {table.n}; a map needs one row for each"
        )
    if found.names is not None:
        names = named or map_coordinates(path, found.names, table.labels)
        found = with_columns(found, names)
        listed = ", ".join(map(repr, names)) if len(names) < 5 else f"{names[0]!r} to {names[-1]!r}"
        console.note(f"{path}: the coordinates are {listed}")
    X = np.asarray(found.X)
    return X if params["in_order"] else X[_rows(path, found.ids, table.ids)]


def _read(path: Path, choice: ColumnChoice, table: Table, params: Mapping[str, Any]) -> Table:
    """The table of a map; if the data have row names, so has the map if it has a column of them.

    That column is the one named like that of the data, or as usual, or as `write_map` names it,
    where names may repeat. Rows of NaN are points that were not embedded.
    """
    found: Table | None = None
    for row_names in dict.fromkeys((params["row_names"], None, "id")):
        each = replace(choice, id=row_names)
        try:
            found = read_table(path, each, key=params.get("map_key"), missing=True)
        except DataFileError:
            if row_names is None:
                raise
            continue
        if found.ids is not None or table.ids is None:
            return found
    assert found is not None  # the attempt without a name was made
    return found


def coordinate_names(method: str, count: int) -> list[str]:
    """Names of the columns in a map of a method, as `write_map` writes them."""
    return [f"{method}{j}" for j in range(count)]


def with_columns(table: Table, names: Sequence[str]) -> Table:
    """The table with these features alone; its features must have names."""
    places = {name: j for j, name in enumerate(table.names or ())}
    X: Any = table.X
    return replace(table, X=X[:, [places[name] for name in names]], names=tuple(names))


def map_coordinates(path: Path, names: Sequence[str], labels: Iterable[str]) -> list[str]:
    """The columns that `write_map` would write, or all that are no labels of the data."""
    maps = []
    for method in (*(method.key for method in METHODS), "embedding"):
        count = 0
        while f"{method}{count}" in names:
            count += 1
        maps += [coordinate_names(method, count)] if count else []
    if len(maps) > 1:
        raise DataFileError(
            f"{path} has columns of several maps ({', '.join(each[0] for each in maps)}); name "
            "the coordinates of one with --map-columns"
        )
    if maps:
        return maps[0]
    others = {_COMPUTED, *labels}
    found = [name for name in names if without_apostrophe(name) not in others]
    if not found:
        raise DataFileError(
            f"{path} has no coordinates, only {', '.join(names)}; name them with --map-columns"
        )
    return found


def _rows(path: Path, own: Any, wanted: Any) -> Any:
    """The rows of a map in the order of the data; all in their order if either has no names."""
    if own is None or wanted is None:
        return slice(None)
    own, wanted = ([without_apostrophe(str(name)) for name in names] for names in (own, wanted))
    if own == wanted:
        return slice(None)
    places = {name: i for i, name in enumerate(own)}
    remedy = "mend the names, or pass --in-order if rows belong together by their order"
    for i, name in enumerate(wanted):
        if name not in places:
            raise DataFileError(
                f"row {i + 1} of the data, {name!r}, is not in {path}, whose first row is "
                f"{own[0]!r}; {remedy}"
            )
    if len(set(wanted)) < len(wanted):
        raise DataFileError(
            f"names of rows repeat in the data and are in another order in {path}, so rows cannot "
            f"be matched; {remedy}"
        )
    return [places[name] for name in wanted]
