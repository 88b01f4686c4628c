"""``manifoldry transform`` and ``manifoldry inverse``: a saved model applied to a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from manifoldry.cli.console import Console
from manifoldry.cli.inputs import check_output, output_path, read_input
from manifoldry.cli.map_files import coordinate_names, with_columns
from manifoldry.cli.picture import draw_placed
from manifoldry.cli.run_file import write_run
from manifoldry.io import DataFileError, Table, load, read_info, write_map, write_table
from manifoldry.io.table import Column
from manifoldry.io.write import MAP_FORMATS, TABLE_FORMATS
from manifoldry.methods.catalog import METHODS
from manifoldry.methods.fitted_steps import decoded, divided, prepared


def transform_file(ctx: typer.Context, model: Path, data: Path) -> None:
    """Coordinates of new data."""
    with Console.of(ctx.params) as console:
        check_output(ctx.params, data, MAP_FORMATS)
        training = read_info(model).training
        fitted = load(model)
        steps, last = divided(fitted)
        known = training.get("feature_names")
        imputes = any(type(step).__name__ == "SimpleImputer" for step in steps)
        table = read_input(data, ctx.params, console, features=known, missing=imputes)
        method = str(training.get("method", "embedding"))
        path = output_path(ctx.params, data, f"{method}-placed.csv")
        with console.working(f"placing {table.n} rows"):
            X = prepared(steps, table.X)
            embedding = last.transform(X)
        computed = _computed(table, last, X, console)
        files = {"rows": write_map(path, embedding, table, method=method, computed=computed)}
        if ctx.params["picture"]:
            title = f"{table.n} rows on the map of {model.name}"
            ending = "" if path.stem.endswith("placed") else "-placed"
            picture = path.with_name(f"{path.stem}{ending}.png")  # that of embed stays
            with console.working("drawing the picture"):
                files["picture"] = draw_placed(picture, last.embedding_, embedding, title)
        _finish(ctx, console, files, path, table.n)


def _computed(table: Table, model: Any, X: Any, console: Console) -> dict[str, Column]:
    """The distance of each row from the training data, if known; above 2 it is unlike them."""
    if not hasattr(model, "novelty"):
        return {}
    if "novelty" in table.labels:
        console.note("the output has a new column 'novelty' in place of the one of the data")
    return {"novelty": np.asarray(model.novelty(X))}


def invert_file(ctx: typer.Context, model: Path, map_file: Path) -> None:
    """Data at positions of a map."""
    with Console.of(ctx.params) as console:
        check_output(ctx.params, map_file, TABLE_FORMATS)
        training = read_info(model).training
        fitted = load(model)
        table = _positions(ctx, map_file, fitted, training, console)
        path = output_path(ctx.params, map_file, "inverse.csv")
        with console.working(f"computing {table.n} rows"):
            X, distance = decoded(fitted, table.X)
        names = training.get("feature_names")
        labels = {**table.labels, "distance_from_map": distance}
        found = replace(table, X=X, names=None if names is None else tuple(names), labels=labels)
        _finish(ctx, console, {"rows": write_table(path, found)}, path, table.n)


def _positions(
    ctx: typer.Context, path: Path, model: Any, training: dict[str, Any], console: Console
) -> Table:
    """The coordinates in a file: the columns that a map of this model has, or all numbers."""
    last = divided(model)[1]
    count = int(last.embedding_.shape[1])
    table: Table = read_input(path, ctx.params, console, missing=True)
    of_class = (method.key for method in METHODS if method.class_name == type(last).__name__)
    for name in (training.get("method"), *of_class, "embedding"):
        usual = coordinate_names(str(name), count)
        if set(usual) <= set(table.names or ()):
            table = with_columns(table, usual)
            break
    if table.X.shape[1] != count:
        raise DataFileError(
            f"{path} has {table.X.shape[1]} columns of numbers, but the map of this model has "
            f"{count} coordinates; name them with --columns"
        )
    broken = np.flatnonzero(~np.isfinite(table.X).all(axis=1))
    if len(broken):
        raise DataFileError(
            f"{path}: a coordinate of {table.row_name(int(broken[0]))} is missing or infinite; "
            "leave out such rows"
        )
    return table


def _finish(
    ctx: typer.Context, console: Console, files: dict[str, Path], path: Path, n: int
) -> None:
    files = {**files, "run": write_run(path, ctx)}
    console.finish({"command": ctx.command.name, "n_samples": n}, "", files)
