"""``manifoldry compare``, ``assess`` and ``dimension``: the quality of maps and data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from manifoldry import assess, compare, estimate_dimension
from manifoldry.cli.console import Console
from manifoldry.cli.errors import UsageError
from manifoldry.cli.inputs import check_output, output_path, read_prepared
from manifoldry.cli.judged_data import note_preprocessing
from manifoldry.cli.map_files import read_map
from manifoldry.cli.methods import fit_components, make_estimators
from manifoldry.cli.picture import PICTURE_FORMATS, draw_comparison
from manifoldry.cli.run_file import write_run
from manifoldry.io import Table, write_table
from manifoldry.io.table import class_labels
from manifoldry.io.write import TABLE_FORMATS
from manifoldry.methods.catalog import USUAL_METHODS
from manifoldry.methods.choice import assessed_rows, common_metric, suited_to_size


def compare_methods(ctx: typer.Context, data: Path) -> None:
    """Quality of several maps of the same data."""
    params = ctx.params
    maps: list[Path] = params["maps"] or []
    names = params["methods"] or (() if maps else USUAL_METHODS)
    make_estimators(names, params)  # a wrong name is reported before the data are read
    with Console.of(params) as console:
        check_output(params, data, PICTURE_FORMATS)
        read = read_prepared(data, params, console)
        path = output_path(params, data, "compare.png")
        fit_components(ctx, read.X.shape[1], console.note)
        estimators = make_estimators(names, params)
        embeddings = {
            name: suited_to_size(estimator, read.table.n, console.note)
            for name, estimator in estimators.items()
        }
        embeddings |= {file.stem: read_map(file, read.table, params, console) for file in maps}
        if len(embeddings) < len(names) + len(maps):
            raise UsageError("methods and files of maps must have different names to be compared")
        if maps:
            note_preprocessing(maps, read.scaled, params, console)
        metric = params["metric"] or common_metric(estimators, console.note)
        labels = class_labels(read.table, console.note)
        sample = assessed_rows(read.table.n, console.note)
        with console.working(f"comparing {', '.join(embeddings)}"):
            found = compare(
                read.X, embeddings, labels, metric=metric, sample=sample,
                random_state=params["seed"],
            )  # fmt: skip
        files = {}
        if params["picture"]:
            files["picture"] = draw_comparison(path, found, read.table)
        files["run"] = write_run(path, ctx, scale=read.scaled)
        result = {"command": "compare", "n_samples": read.table.n, "metrics": found.metrics}
        console.finish(result, str(found), files)


def assess_file(ctx: typer.Context, data: Path, map_file: Path) -> None:
    """Quality of a map from anywhere."""
    with Console.of(ctx.params) as console:
        check_output(ctx.params, data, TABLE_FORMATS)
        read = read_prepared(data, ctx.params, console)
        embedding = read_map(map_file, read.table, ctx.params, console)
        note_preprocessing([map_file], read.scaled, ctx.params, console)
        labels = class_labels(read.table, console.note)
        sample = assessed_rows(read.table.n, console.note)
        with console.working("assessing the map"):
            found = assess(
                read.X, embedding, labels, metric=ctx.params["metric"], sample=sample,
                random_state=ctx.params["seed"],
            )  # fmt: skip
        result = {"command": "assess", "n_samples": read.table.n, "metrics": found.metrics,
                  "pca": found.baseline, "summary": found.summary}  # fmt: skip
        files = {}
        if (path := ctx.params["output"]) is not None:
            files["points"] = _write_per_point(path, found, read.table)
            files["run"] = write_run(path, ctx, scale=read.scaled)
        console.finish(result, str(found), files)


def _write_per_point(path: Path, found: Any, table: Table) -> Path:
    """The metrics of every point, with the names and labels of the rows."""
    values = np.column_stack(list(found.per_point.values()))
    return write_table(path, replace(table, X=values, names=tuple(found.per_point)))


def report_dimension(ctx: typer.Context, data: Path) -> None:
    """Estimates of the dimension."""
    params = ctx.params
    with Console.of(params) as console:
        X = read_prepared(data, params, console).X
        found = estimate_dimension(
            X, random_state=params["seed"], n_jobs=params["jobs"], verbose=console.is_interactive
        )
        estimates = {name: float(each.value) for name, each in found.estimates.items()}
        result = {"command": "dimension", "dimension": found.dimension, "low": found.low,
                  "high": found.high, "estimates": estimates, "reasons": found.reasons}  # fmt: skip
        console.finish(result, str(found))
