"""``manifoldry assess`` and ``dimension`` of data on workers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer

from manifoldry import estimate_dimension
from manifoldry.cli.cluster import assessed_parts, check_store, prepared_parts, session
from manifoldry.cli.console import Console
from manifoldry.cli.errors import UsageError
from manifoldry.cli.judged_data import note_preprocessing
from manifoldry.cli.map_files import map_coordinates
from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.io import ColumnChoice, DataFileError
from manifoldry.io.name_lists import split_names
from manifoldry.io.parts import TableInParts, read_parts
from manifoldry.util.typing import Array


def assess_parts(ctx: typer.Context, data: Path, map_file: Path) -> None:
    """Quality of a map of data on workers."""
    params = ctx.params
    if params["output"] is not None:
        raise UsageError(
            "--output has a row for each point, and only samples are assessed with --workers or "
            "--scheduler; leave it out"
        )
    check_store(map_file)
    with session(params, data, None) as console:
        read = prepared_parts(data, params, console)
        found = _read_map(map_file, params, read.table)
        _check_order(found, read.table, params["in_order"], console)
        note_preprocessing([map_file], read.scaled, params, console)
        assessed = assessed_parts(read, found.rows.array, params["metric"], params["seed"], console)
        result = {"command": "assess", "n_samples": read.table.n, "metrics": assessed.metrics,
                  "pca": assessed.baseline, "summary": assessed.summary}  # fmt: skip
        console.finish(result, str(assessed))


def _read_map(path: Path, params: Mapping[str, Any], table: TableInParts) -> TableInParts:
    """The coordinates in the file of a map, and its row names if the data have some."""
    if path.suffix.lower() == ".zarr":
        return read_parts(path, ColumnChoice())
    names = split_names(params["map_columns"] or ())
    if not names:
        present = read_parts(path, ColumnChoice()).names or ()
        names = tuple(map_coordinates(path, present, table.labels))
    # As in memory, the column is named like that of the data, or as usual, where names may repeat.
    for row_names in dict.fromkeys((params["row_names"], "id")):
        try:
            return read_parts(path, ColumnChoice(names, id=row_names))
        except DataFileError:
            continue
    return read_parts(path, ColumnChoice(names))


def _check_order(
    found: TableInParts, table: TableInParts, in_order: bool, console: Console
) -> None:
    """Raise DataFileError unless rows of map and data have the same names, if both have names."""
    if found.n != table.n:
        raise DataFileError(
            f"{found.rows.what} has {found.n} rows, but the data have {table.n}; a map needs one "
            "row for each"
        )
    own, wanted = found.ids, table.ids
    if in_order or own is None or wanted is None:
        console.note("rows of the map and of the data belong together by their order")
        return
    blocks = own.rechunk(wanted.chunks).to_delayed(), wanted.to_delayed()
    differ = delayed(_first_difference)
    tasks = [differ(*pair) for pair in zip(*blocks, strict=True)]
    firsts = compute(tasks, "comparing names of rows")
    for start, first in zip(table.rows.starts, firsts, strict=True):
        if first is not None:
            raise DataFileError(
                f"row {int(start) + first[0] + 1} is {first[1]!r} in {found.rows.what}, but "
                f"{first[2]!r} in the data, and workers do not sort rows; write both in the same "
                "order, or pass --in-order if rows belong together by their order"
            )
    console.note("rows of the map and of the data have the same names, in the same order")


def _first_difference(own: Array, wanted: Array) -> tuple[int, str, str] | None:
    """The first row whose name differs, and both names; runs on a worker."""
    places = np.flatnonzero(own != wanted)
    return None if not len(places) else (int(places[0]), own[places[0]], wanted[places[0]])


def dimension_of_parts(ctx: typer.Context, data: Path) -> None:
    """Estimates of the dimension of data on workers."""
    params = ctx.params
    with session(params, data, None) as console:
        rows = prepared_parts(data, params, console).rows
        found = estimate_dimension(
            rows.array, random_state=params["seed"], verbose=console.is_interactive
        )
        estimates = {name: float(each.value) for name, each in found.estimates.items()}
        result = {"command": "dimension", "dimension": found.dimension, "low": found.low,
                  "high": found.high, "estimates": estimates, "reasons": found.reasons}  # fmt: skip
        console.finish(result, str(found))
