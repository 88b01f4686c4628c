"""``manifoldry transform`` and ``inverse`` of data on workers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from manifoldry.cli.cluster import drawn_rows, read_columns, session
from manifoldry.cli.console import Console
from manifoldry.cli.inputs import column_choice, output_path
from manifoldry.cli.map_files import coordinate_names
from manifoldry.cli.picture import draw_placed
from manifoldry.cli.run_file import write_run
from manifoldry.io import ColumnChoice, DataFileError, load, read_info
from manifoldry.io.parts import TableInParts
from manifoldry.io.write_parts import PART_FORMATS, check_fits_in_file, write_parts
from manifoldry.methods.fitted_steps import decoded, divided, prepared
from manifoldry.util.typing import Array


def transform_parts(ctx: typer.Context, model: Path, data: Path) -> None:
    """Coordinates of new data on workers."""
    params = ctx.params
    with session(params, data, PART_FORMATS) as console:
        training, fitted = read_info(model).training, load(model)
        last = divided(fitted)[1]
        known = training.get("feature_names")
        table = _read_for(fitted, data, params, known, console)
        method = str(training.get("method", "embedding"))
        path = output_path(params, data, f"{method}-placed{data.suffix.lower()}")
        width = int(last.embedding_.shape[1])
        names = coordinate_names(method, width)
        # An array of coordinates has no room for another column.
        novelty = hasattr(last, "novelty") and path.suffix.lower() not in (".zarr", ".npy")
        if novelty:
            names.append("novelty")
        check_fits_in_file(path, table.n, len(names))
        place = partial(_placed, width=len(names), novelty=novelty)
        Y = table.rows.mapped(place, fitted, len(names))
        placed = write_parts(path, Y, names, table, verbose=console.is_interactive)
        files = {"rows": path}
        if params["picture"]:
            drawn = drawn_rows(placed[:, :width], params.get("seed", 0))[1]
            ending = "" if path.stem.endswith("placed") else "-placed"
            title = f"{len(drawn)} of {table.n} rows on the map of {model.name}"
            picture = path.with_name(f"{path.stem}{ending}.png")
            files["picture"] = draw_placed(picture, last.embedding_, drawn, title)
        files["run"] = write_run(path, ctx)
        console.finish({"command": "transform", "n_samples": table.n}, "", files)


def _read_for(
    model: Any, data: Path, params: Mapping[str, Any], known: Any, console: Console
) -> TableInParts:
    """New data for a model; DataFileError if they have another number of features."""
    table = read_columns(data, column_choice(params, known), console)
    expected = int(model.n_features_in_)
    if table.rows.n_features != expected:
        raise DataFileError(
            f"{data} has {table.rows.n_features} features, but the model has {expected}"
        )
    return table


def _placed(block: Array, model: Any, *, width: int, novelty: bool) -> Array:
    """Coordinates of the rows of a block, and their novelty; runs on a worker."""
    if not len(block):
        return np.empty((0, width), block.dtype)
    steps, last = divided(model)
    X = prepared(steps, block)
    found = [last.transform(X)]
    if novelty:
        found.append(np.asarray(last.novelty(X))[:, None])
    return np.hstack(found).astype(block.dtype)


def invert_parts(ctx: typer.Context, model: Path, map_file: Path) -> None:
    """Data at positions of a map on workers."""
    params = ctx.params
    with session(params, map_file, PART_FORMATS) as console:
        training, fitted = read_info(model).training, load(model)
        table = _read_positions(map_file, fitted, training, params, console)
        path = output_path(params, map_file, f"inverse{map_file.suffix.lower()}")
        n_features = int(fitted.n_features_in_)
        known = training.get("feature_names")
        names = [f"x{j}" for j in range(n_features)] if known is None else list(known)
        distance = path.suffix.lower() not in (".zarr", ".npy")
        if distance:
            names.append("distance_from_map")
        check_fits_in_file(path, table.n, len(names))
        invert = partial(_inverted, width=len(names), distance=distance)
        X = table.rows.mapped(invert, fitted, len(names))
        write_parts(path, X, names, table, verbose=console.is_interactive)
        files = {"rows": path, "run": write_run(path, ctx)}
        console.finish({"command": "inverse", "n_samples": table.n}, "", files)


def _read_positions(
    path: Path, model: Any, training: Any, params: Mapping[str, Any], console: Console
) -> TableInParts:
    count = int(divided(model)[1].embedding_.shape[1])
    choice = column_choice(params)
    if path.suffix.lower() != ".zarr" and choice.features is None:
        choice = ColumnChoice(
            coordinate_names(str(training.get("method", "embedding")), count),
            choice.labels, choice.id, choice.drop,
        )  # fmt: skip
    table = read_columns(path, choice, console)
    if table.rows.n_features != count:
        raise DataFileError(
            f"{path} has {table.rows.n_features} columns, but the map of this model has {count} "
            "coordinates; name them with --columns"
        )
    return table


def _inverted(block: Array, model: Any, *, width: int, distance: bool) -> Array:
    """Data at the positions of a block, and their distances from the map; runs on a worker."""
    if not len(block):
        return np.empty((0, width), block.dtype)
    X, from_map = decoded(model, block)
    found = [np.asarray(X), np.asarray(from_map)[:, None]]
    return np.hstack(found if distance else found[:1]).astype(block.dtype)
