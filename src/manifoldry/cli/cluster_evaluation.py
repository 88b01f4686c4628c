"""``manifoldry assess`` and ``dimension`` of data on workers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from manifoldry import estimate_dimension
from manifoldry.cli.cluster import assessed_parts, check_store, prepared_parts, session
from manifoldry.cli.errors import UsageError
from manifoldry.cli.judged_data import note_preprocessing
from manifoldry.cli.map_files import map_coordinates
from manifoldry.io import ColumnChoice
from manifoldry.io.name_lists import split_names
from manifoldry.io.parts import TableInParts, read_parts


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
        found = read_parts(map_file, _coordinates_of(map_file, params, read.table))
        console.note("rows of the map and of the data belong together by their order")
        note_preprocessing([map_file], read.scaled, params, console)
        assessed = assessed_parts(read, found.rows.array, params["metric"], params["seed"], console)
        result = {"command": "assess", "n_samples": read.table.n, "metrics": assessed.metrics,
                  "pca": assessed.baseline, "summary": assessed.summary}  # fmt: skip
        console.finish(result, str(assessed))


def _coordinates_of(path: Path, params: Mapping[str, Any], table: TableInParts) -> ColumnChoice:
    """The coordinates among the columns of the file of a map."""
    if path.suffix.lower() == ".zarr":
        return ColumnChoice()
    if named := split_names(params["map_columns"] or ()):
        return ColumnChoice(named)
    names = read_parts(path, ColumnChoice()).names or ()
    return ColumnChoice(map_coordinates(path, names, table.labels))


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
