"""Commands for data on workers: this process reads, and holds, no more than samples of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from manifoldry import assess
from manifoldry.cli.console import Console
from manifoldry.cli.errors import UsageError
from manifoldry.cli.inputs import check_output, column_choice, declares_pairs, output_path
from manifoldry.cli.map_files import coordinate_names
from manifoldry.cli.methods import fit_components, make_estimator, method_named
from manifoldry.cli.picture import draw_map
from manifoldry.cli.run_file import write_run
from manifoldry.cli.workers import workers
from manifoldry.distributed import Rows, using_options
from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.io import ColumnChoice, Table, UnsavableError, save
from manifoldry.io.parts import STORES, TableInParts, read_parts
from manifoldry.io.write_parts import PART_FORMATS, check_fits_in_file, write_parts
from manifoldry.methods.block_steps import fit_blocks
from manifoldry.methods.catalog import Method
from manifoldry.methods.choice import MethodChoice, default_method, metric_of, suited_to_size
from manifoldry.methods.fitted_steps import joined
from manifoldry.methods.preprocessing import Preprocessing
from manifoldry.util.typing import Array

_EXAMINED = 10_000  # rows by which scales are decided
_CHOOSING = 1500  # rows by which a method is chosen
_DRAWN = 5000  # points of a picture


class PreparedParts(NamedTuple):
    """Data on workers, the fitted steps before the method, and the data that they make."""

    file: Path
    table: TableInParts
    steps: list[tuple[str, Any]]
    rows: Rows

    @property
    def scaled(self) -> bool:
        """Whether columns were standardized."""
        return any(name == "scale" for name, _ in self.steps)


@contextmanager
def session(params: Mapping[str, Any], data: Path, formats: Any) -> Iterator[Console]:
    """The console of a command, whose computations run on workers."""
    check_store(data)
    if declares_pairs(params):
        raise UsageError(
            "distances or weights of pairs cannot be used with --workers or --scheduler"
        )
    with Console.of(params) as console:
        if formats is not None:
            check_output(params, data, formats)
        options = {"verbose": console.is_interactive}
        if params.get("landmarks") is not None:
            options["landmarks"] = params["landmarks"]
        with workers(params, console), using_options(**options):
            yield console


def check_store(path: Path) -> None:
    """Raise an error for data that workers do not read, before any are started."""
    if path.suffix.lower() not in STORES:
        raise UsageError(
            f"{path}: with --workers or --scheduler, data are a Zarr array (.zarr) or Parquet "
            "(.parquet), whose parts workers read; write them as one of these, or leave the option "
            "out"
        )
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")


def embed_parts(ctx: typer.Context, data: Path) -> None:
    """Embed data on workers."""
    params = ctx.params
    if params["method"] is not None:
        make_estimator(method_named(params["method"]), params)
    with session(params, data, PART_FORMATS) as console:
        read = prepared_parts(data, params, console)
        fit_components(ctx, read.rows.n_features, console.note)
        method, reason = _method(params, read.rows, console)
        path = output_path(params, data, f"{method.name}{data.suffix.lower()}")
        check_fits_in_file(path, read.table.n, params["components"])
        estimator = suited_to_size(make_estimator(method, params), read.table.n, console.note)
        start = time.perf_counter()
        estimator.fit(read.rows.array)
        seconds = time.perf_counter() - start
        console.note(f"{method.name} was fitted to {estimator.fitted_on_}")
        files = _write(ctx, estimator, read, method, path, console)
        result = {
            "command": ctx.command.name,
            "input": str(data),
            "n_samples": read.table.n,
            "n_features": read.rows.n_features,
            "method": method.name,
            "reason": reason,
            "fitted_on": estimator.fitted_on_,
            "seconds": round(seconds, 3),
        }
        found = _assessment(read, estimator, params["seed"], console) if params["verdict"] else None
        if found is not None:
            result |= {"metrics": found.metrics, "summary": found.summary}
        console.finish(result, "" if found is None else str(found), files)


def prepared_parts(data: Path, params: Mapping[str, Any], console: Console) -> PreparedParts:
    """The data after the steps that the parameters of a command ask for."""
    table = read_columns(data, column_choice(params), console)
    asked = Preprocessing(log1p=params["log1p"], scale=params["scale"])
    examine = delayed(partial(_examined, asked=asked, names=table.names))
    pieces = table.rows.sample(_EXAMINED, np.random.default_rng(params["seed"]))[1]
    [(steps, notes)] = compute([examine(pieces)], "examining columns")
    for note in notes:
        console.note(note)
    fitted, rows = fit_blocks(table.rows, steps.log1p, bool(steps.scale))
    return PreparedParts(data, table, fitted, rows)


def read_columns(path: Path, choice: ColumnChoice, console: Console) -> TableInParts:
    """The data of a store; its notes are printed."""
    table = read_parts(path, choice)
    for note in table.notes:
        console.note(f"{path}: {note}")
    return table


def _examined(
    pieces: list[Array], *, asked: Preprocessing, names: Any
) -> tuple[Preprocessing, list[str]]:
    """The steps, decided by a sample of the rows, and notes; runs on a worker."""
    notes: list[str] = []
    X = np.concatenate(pieces)
    steps = asked.decided(X, names, notes.append)
    if not steps.scale:
        asked.note_uneven_columns(X, notes.append)
    return steps, notes


def _method(params: Mapping[str, Any], rows: Rows, console: Console) -> tuple[Method, str]:
    if params["method"] is not None:
        return method_named(params["method"]), "chosen on the command line"
    pieces = rows.sample(_CHOOSING, np.random.default_rng(params["seed"]))[1]
    task = delayed(_chosen)(pieces, params["seed"])
    [chosen] = compute([task], "choosing a method")
    method = method_named(chosen.method)
    console.note(f"method {method.name}: {chosen.reason}; choose another with --method")
    return method, chosen.reason


def _chosen(pieces: list[Array], seed: int) -> MethodChoice:
    return default_method(np.concatenate(pieces), seed)


def _write(
    ctx: typer.Context,
    estimator: Any,
    read: PreparedParts,
    method: Method,
    path: Path,
    console: Console,
) -> dict[str, Path]:
    """The files by what they contain; the estimator gets the map that was written."""
    params, table = ctx.params, read.table
    Y = estimator.embedding_
    names = coordinate_names(method.key, Y.shape[1])
    # Otherwise the coordinates of all rows would be computed again by all that follows.
    estimator.embedding_ = write_parts(path, Y, names, table, verbose=console.is_interactive)
    _note_missing(estimator.embedding_, console)
    files = {"map": path}
    if params["save_model"]:
        facts: dict[str, Any] = {"method": method.key, "input": str(read.file)}
        if table.names is not None:
            facts["feature_names"] = list(table.names)
        model = joined(read.steps, method.key, estimator.landmark_model_)
        try:
            with console.working("saving the model"):
                files["model"] = save(model, path.with_suffix(".model"), facts=facts)
        except UnsavableError as error:
            console.note(f"the model is not saved: {error}")
    if params["picture"]:
        files["picture"] = _draw(
            path.with_suffix(".png"), estimator.embedding_, table, method.class_name, params["seed"]
        )
    resolved = {"method": method.name, "scale": read.scaled, "output": path}
    files["run"] = write_run(path, ctx, **resolved)
    return files


def _draw(path: Path, Y: Any, table: TableInParts, what: str, seed: int) -> Path:
    """Draw a sample of a map."""
    rows, drawn = drawn_rows(Y, seed)
    labels: dict[str, Array] = {}
    if table.label is not None:
        [values] = compute([table.label[rows]], "reading labels of a sample")
        labels[table.labels[0]] = np.array(values.tolist())
    n = len(Y)
    title = f"{what} of {n} rows" if len(rows) == n else f"{what}: {len(rows)} of {n} rows"
    return draw_map(path, drawn, Table(drawn, labels=labels), title)


def drawn_rows(Y: Any, seed: int, size: int = _DRAWN) -> tuple[Any, Array]:
    """A sample of the rows of a map, without those of NaN, which were not embedded."""
    n, rng = len(Y), np.random.default_rng(seed)
    rows = np.sort(rng.choice(n, min(size, n), replace=False, shuffle=False))
    drawn = Y[rows]
    if not isinstance(Y, np.ndarray):
        [drawn] = compute([drawn], "reading a sample of the map")
    embedded = np.logical_not(_are_missing(drawn))
    return rows[embedded], drawn[embedded]


def _note_missing(Y: Any, console: Console) -> None:
    """Say how many rows of a map are NaN."""
    if isinstance(Y, np.ndarray):
        counts = [_count_missing(Y)]
    else:
        blocks, count = Y.rechunk({1: -1}).to_delayed().ravel(), delayed(_count_missing)
        counts = compute([count(block) for block in blocks], "counting rows of the map")
    if found := sum(counts):
        console.note(
            f"{found} of {len(Y)} rows were not embedded: they are NaN in the map, and left out of "
            "the picture and the verdict"
        )


def _are_missing(Y: Array) -> Array:
    return np.asarray(np.isnan(Y).all(axis=1))


def _count_missing(Y: Array) -> int:
    return int(_are_missing(Y).sum())


def _assessment(read: PreparedParts, model: Any, seed: int, console: Console) -> Any:
    """The assessment; None, with a note, for maps that have too few points for one."""
    try:
        return assessed_parts(read, model, metric_of(model), seed, console)
    except ValueError as error:
        console.note(f"the map is not assessed: {error}")
        return None


def assessed_parts(
    read: PreparedParts, model: Any, metric: Any, seed: int, console: Console
) -> Any:
    """The assessment; without labels, if these are no classes."""
    judge = partial(assess, read.rows.array, model, metric=metric, random_state=seed)
    if read.table.label is None:
        return judge()
    try:
        return judge(read.table.label)
    except ValueError as error:
        if not str(error).startswith("labels "):
            raise
        console.note(f"label {read.table.labels[0]!r} is not used as classes: {error}")
        return judge()
