"""The commands and their options; what they do is imported when one of them is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import manifoldry
from manifoldry.cli import options as opt
from manifoldry.cli.option_groups import with_options

app = typer.Typer(
    help="Nonlinear dimensionality reduction: maps of data, and how far to trust them.",
    epilog="Start with: manifoldry embed FILE. Each command has --help.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _start(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(manifoldry.__version__)
    elif ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command()
@with_options(opt.COLUMNS, opt.PREPROCESSING, opt.RUNNING, opt.WORKERS_OF_FIT, opt.PRINTING)
def embed(
    ctx: typer.Context,
    data: opt.Data,
    output: opt.Output = None,
    method: opt.MethodName = None,
    components: opt.Coordinates = 2,
    settings: opt.Settings = None,
    picture: opt.Picture = True,
    save_model: opt.SaveModel = True,
    verdict: opt.Verdict = True,
) -> None:
    """Make a map of the data: coordinates, picture, verdict and a reusable model."""
    from manifoldry.cli.methods import only_method
    from manifoldry.cli.workers import on_workers

    ctx.params["method"] = only_method(method)
    if on_workers(ctx.params):
        from manifoldry.cli.cluster import embed_parts as embed_file
    else:
        from manifoldry.cli.embedding import embed_file
    embed_file(ctx, data)


@app.command()
@with_options(opt.WORKERS, opt.PRINTING)
def transform(
    ctx: typer.Context,
    model: opt.ModelFile,
    data: opt.Data,
    output: opt.Output = None,
    labels: opt.Labels = None,
    row_names: opt.RowNames = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    key: opt.Key = None,
    picture: opt.Picture = True,
    device: opt.DeviceName = None,
    run: opt.RunFile = None,
) -> None:
    """Give new data coordinates on the map of a model, without changing the map."""
    from manifoldry.cli.workers import on_workers

    if on_workers(ctx.params):
        from manifoldry.cli.cluster_positions import transform_parts as transform_file
    else:
        from manifoldry.cli.positions import transform_file
    transform_file(ctx, model, data)


@app.command()
@with_options(opt.WORKERS, opt.PRINTING)
def inverse(
    ctx: typer.Context,
    model: opt.ModelFile,
    map_file: opt.MapFile,
    output: opt.RowsFile = None,
    columns: opt.Features = None,
    row_names: opt.RowNames = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    device: opt.DeviceName = None,
    run: opt.RunFile = None,
) -> None:
    """Turn positions on the map of a model back into data."""
    from manifoldry.cli.workers import on_workers

    if on_workers(ctx.params):
        from manifoldry.cli.cluster_positions import invert_parts as invert_file
    else:
        from manifoldry.cli.positions import invert_file
    invert_file(ctx, model, map_file)


@app.command("compare")
@with_options(opt.COLUMNS, opt.MAPS, opt.PREPROCESSING, opt.RUNNING, opt.PRINTING)
def compare_command(
    ctx: typer.Context,
    data: opt.Data,
    methods: opt.MethodNames = None,
    maps: opt.Maps = None,
    output: opt.PictureFile = None,
    components: opt.Coordinates = 2,
    settings: opt.SettingsOfMethods = None,
    metric: opt.CommonMetric = None,
    picture: opt.Picture = True,
) -> None:
    """Compare maps by several methods: quality metrics in one table, and one picture."""
    from manifoldry.cli.evaluation import compare_methods

    compare_methods(ctx, data)


@app.command("report")
@with_options(opt.COLUMNS, opt.PREPROCESSING_OF_REPORT, opt.RUNNING, opt.PRINTING)
def report_command(
    ctx: typer.Context,
    data: opt.Data,
    methods: opt.MethodNames = None,
    output: opt.ReportFile = None,
    components: opt.Coordinates = 2,
    refits: opt.Refits = 5,
    max_rows: opt.MaxRows = 5000,
) -> None:
    """Write a report as one HTML file: the data, several maps, and which of them to trust."""
    from manifoldry.cli.reporting import report_file

    report_file(ctx, data)


@app.command("explore")
@with_options(opt.COLUMNS, opt.MAPS, opt.PREPROCESSING, opt.RUNNING, opt.PRINTING)
def explore_command(
    ctx: typer.Context,
    sources: opt.Sources = None,
    methods: opt.MethodNames = None,
    maps: opt.Maps = None,
    output: opt.LabelsFile = None,
    components: opt.SomeCoordinates = None,
    settings: opt.SettingsOfMethods = None,
    image_shape: opt.ImageShape = None,
    dark_ink: opt.DarkInk = False,
    port: opt.Port = None,
    browser: opt.Browser = True,
) -> None:
    """Look at maps in a browser: compare, select, reconstruct, place new rows."""
    from manifoldry.cli.exploring import explore_files

    explore_files(ctx, sources or [])


@app.command("assess")
@with_options(opt.COLUMNS, opt.MAPS, opt.PREPROCESSING, opt.WORKERS, opt.PRINTING)
def assess_command(
    ctx: typer.Context,
    data: opt.Data,
    map_file: opt.MapFile,
    output: opt.PointsFile = None,
    map_key: opt.MapKey = None,
    metric: opt.Metric = "euclidean",
    seed: opt.Seed = 0,
    device: opt.DeviceName = None,
    run: opt.RunFile = None,
) -> None:
    """Say how far a map of any origin can be trusted, given its data."""
    from manifoldry.cli.workers import on_workers

    if on_workers(ctx.params):
        from manifoldry.cli.cluster_evaluation import assess_parts as assess_file
    else:
        from manifoldry.cli.evaluation import assess_file
    assess_file(ctx, data, map_file)


@app.command()
@with_options(opt.COLUMNS, opt.PREPROCESSING, opt.RUNNING, opt.WORKERS, opt.PRINTING)
def dimension(ctx: typer.Context, data: opt.Data) -> None:
    """Estimate how many dimensions the data have, and say why estimates differ."""
    from manifoldry.cli.workers import on_workers

    if on_workers(ctx.params):
        from manifoldry.cli.cluster_evaluation import dimension_of_parts as report_dimension
    else:
        from manifoldry.cli.evaluation import report_dimension
    report_dimension(ctx, data)


@app.command()
@with_options(opt.ANSWER)
def methods(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="A method, for its description and parameters.")
    ] = None,
) -> None:
    """List the methods and what they are for, or describe one of them."""
    from manifoldry.cli.about import list_methods

    list_methods(ctx, name)


@app.command()
@with_options(opt.ANSWER)
def info(
    ctx: typer.Context,
    model: Annotated[
        Path | None, typer.Argument(help="A model file; without one, the installation.")
    ] = None,
) -> None:
    """Show what a model file contains, or which versions are installed."""
    from manifoldry.cli.about import show_info

    show_info(ctx, model)


@app.command()
@with_options(opt.RUNNING, opt.PRINTING)
def demo(
    ctx: typer.Context,
    output: opt.Output = None,
    method: opt.DemoMethod = ["tsne"],  # noqa: B006  # typer copies it
    components: opt.Coordinates = 2,
    settings: opt.Settings = None,
    picture: opt.Picture = True,
    save_model: opt.SaveModel = True,
    verdict: opt.Verdict = True,
) -> None:
    """Embed 1797 handwritten digits that scikit-learn brings, as embed does with a file."""
    from manifoldry.cli.embedding import embed_digits
    from manifoldry.cli.methods import only_method

    ctx.params["method"] = only_method(method)
    embed_digits(ctx)
