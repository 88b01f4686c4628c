"""``manifoldry embed``: a file in; a map, a picture, a verdict and a model out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy import sparse

from manifoldry import NeighborGraph, assess
from manifoldry.cli.console import Console
from manifoldry.cli.errors import InterruptedFitError
from manifoldry.cli.fitting import FittedMap, fit_estimator
from manifoldry.cli.inputs import (
    PreparedData,
    check_output,
    output_path,
    read_digits,
    read_prepared,
)
from manifoldry.cli.methods import fit_components, make_estimator, method_named
from manifoldry.cli.picture import draw_map
from manifoldry.cli.run_file import write_run
from manifoldry.io import Table, UnsavableError, save, write_map
from manifoldry.io.table import class_labels
from manifoldry.io.write import MAP_FORMATS
from manifoldry.methods.catalog import Method
from manifoldry.methods.choice import assessed_rows, default_method, metric_of, suited_to_size
from manifoldry.methods.fitted_steps import joined


def embed_file(ctx: typer.Context, data: Path) -> None:
    """Embed the data of a file."""
    params = ctx.params
    with Console.of(params) as console:
        check_output(params, data, MAP_FORMATS)
        if params["method"] is not None:  # a wrong name is reported before the data are read
            make_estimator(method_named(params["method"]), params)
        _embed(ctx, read_prepared(data, params, console), console)


def embed_digits(ctx: typer.Context) -> None:
    """Embed the digits of scikit-learn."""
    table = read_digits()
    with Console.of(ctx.params) as console:
        check_output(ctx.params, Path("digits"), MAP_FORMATS)
        _embed(ctx, PreparedData(Path("digits"), table, [], table.X, "gray_r"), console)


def _embed(ctx: typer.Context, data: PreparedData, console: Console) -> None:
    """Fit a method, and write everything that was asked for."""
    table, X = data.table, data.X
    fit_components(ctx, X.shape[1], console.note)
    params = ctx.params
    method, reason = _method(params, X, console)
    path = output_path(params, data.file, f"{method.name}.csv")
    estimator = suited_to_size(make_estimator(method, params), table.n, console.note)
    fit = fit_estimator(estimator, X, console)
    files = _write(ctx, fit, data, method, path, console)
    result = {
        "command": ctx.command.name,
        "input": str(data.file),
        "n_samples": table.n,
        "n_features": int(table.X.shape[1]),
        "method": method.name,
        "reason": reason,
        "seconds": round(fit.seconds, 3),
        "interrupted": fit.interrupted,
    }
    if fit.interrupted:
        console.show_warning(f"interrupted: the map so far is in {files['map']}")
        console.finish(result, files=files)
        raise InterruptedFitError
    found = _assessment(fit.model, X, table, params["seed"], console) if params["verdict"] else None
    if found is not None:
        result |= {"metrics": found.metrics, "summary": found.summary}
    console.finish(result, "" if found is None else str(found), files)


def _method(params: Any, X: Any, console: Console) -> tuple[Method, str]:
    if params["method"] is not None:
        return method_named(params["method"]), "chosen on the command line"
    with console.working("choosing a method"):
        chosen = default_method(X, params["seed"])
    method = method_named(chosen.method)
    console.note(f"method {method.name}: {chosen.reason}; choose another with --method")
    return method, chosen.reason


def _write(
    ctx: typer.Context,
    fit: FittedMap,
    data: PreparedData,
    method: Method,
    path: Path,
    console: Console,
) -> dict[str, Path]:
    """The files by what they contain; the map is written first, since it took the time.

    Those of an interrupted fit have names of their own, so that complete ones stay.
    """
    complete = path
    if fit.interrupted:
        path = path.with_stem(f"{path.stem}-interrupted")
    table = data.table
    embedding = fit.model.embedding_
    with console.working(f"writing {path}"):
        files = {"map": write_map(path, embedding, table, method=method.key)}
    if ctx.params["save_model"]:
        facts: dict[str, Any] = {"method": method.key, "input": str(data.file)}
        if table.names is not None:
            facts["feature_names"] = list(table.names)
        model = joined(data.steps, method.key, fit.model)
        try:
            with console.working("saving the model"):
                files["model"] = save(model, path.with_suffix(".model"), facts=facts)
        except UnsavableError as error:
            console.note(f"the model is not saved: {error}")
    if ctx.params["picture"]:
        title = f"{method.class_name} of {table.n} rows"
        with console.working("drawing the picture"):
            files["picture"] = draw_map(
                path.with_suffix(".png"), embedding, table, title, data.image_cmap
            )
    resolved = {"method": method.name, "scale": data.scaled, "output": complete}
    files["run"] = write_run(path, ctx, **resolved)
    return files


def _assessment(model: Any, X: Any, table: Table, seed: int, console: Console) -> Any:
    """The assessment; None, with a note, for maps that have too few points for one."""
    labels = class_labels(table, console.note)
    metric = metric_of(model)
    sample = assessed_rows(table.n, console.note)
    try:
        with console.working("assessing the map"):
            if table.is_graph:
                X, metric = _graph_of_distances(X, metric), "euclidean"
            return assess(X, model, labels, metric=metric, sample=sample, random_state=seed)
    except ValueError as error:
        console.note(f"the map is not assessed: {error}")
        return None


def _graph_of_distances(X: Any, metric: Any) -> NeighborGraph:
    """Stored distances of neighbors as a graph, along which the map is compared with paths."""
    if metric != "precomputed":
        raise ValueError("only weights are known, not distances")
    stored = int(np.diff(sparse.csr_array(X).indptr).min())
    return NeighborGraph.build(X, max(1, stored), metric="precomputed")
