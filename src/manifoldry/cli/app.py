"""The commands and their options; what they do is imported when one of them is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manifoldry.cli import options as opt

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
    from manifoldry import __version__

    if version:
        print(__version__)
    elif ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command()
def embed(
    ctx: typer.Context,
    data: opt.Data,
    output: opt.Output = None,
    method: opt.MethodName = None,
    components: opt.Coordinates = 2,
    settings: opt.Settings = None,
    columns: opt.Features = None,
    labels: opt.Labels = None,
    row_names: opt.RowNames = None,
    drop: opt.Drop = None,
    delimiter: opt.Delimiter = None,
    key: opt.Key = None,
    impute: opt.ImputeOption = None,
    log1p: opt.Log1p = False,
    scale: opt.Scale = False,
    pca: opt.Components = None,
    picture: opt.Picture = True,
    save_model: opt.SaveModel = True,
    verdict: opt.Verdict = True,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    run: opt.RunFile = None,
    quiet: opt.Quiet = False,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> None:
    """Make a map of the data: coordinates, picture, verdict and a reusable model."""
    from manifoldry.cli.embedding import embed_file

    embed_file(ctx, data)


@app.command()
def transform(
    ctx: typer.Context,
    model: opt.ModelFile,
    data: opt.Data,
    output: opt.Output = None,
    labels: opt.Labels = None,
    row_names: opt.RowNames = None,
    delimiter: opt.Delimiter = None,
    key: opt.Key = None,
    run: opt.RunFile = None,
    quiet: opt.Quiet = False,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> None:
    """Give new data coordinates on the map of a model, without changing the map."""
    from manifoldry.cli.positions import transform_file

    transform_file(ctx, model, data)


@app.command()
def inverse(
    ctx: typer.Context,
    model: opt.ModelFile,
    map_file: opt.MapFile,
    output: opt.Output = None,
    columns: opt.Features = None,
    row_names: opt.RowNames = None,
    delimiter: opt.Delimiter = None,
    run: opt.RunFile = None,
    quiet: opt.Quiet = False,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> None:
    """Turn positions on the map of a model back into data."""
    from manifoldry.cli.positions import invert_file

    invert_file(ctx, model, map_file)


@app.command()
def compare(
    ctx: typer.Context,
    data: opt.Data,
    methods: opt.MethodNames = None,
    maps: opt.Maps = None,
    output: opt.PictureFile = None,
    components: opt.Coordinates = 2,
    columns: opt.Features = None,
    labels: opt.Labels = None,
    row_names: opt.RowNames = None,
    drop: opt.Drop = None,
    delimiter: opt.Delimiter = None,
    key: opt.Key = None,
    impute: opt.ImputeOption = None,
    log1p: opt.Log1p = False,
    scale: opt.Scale = False,
    pca: opt.Components = None,
    picture: opt.Picture = True,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    run: opt.RunFile = None,
    quiet: opt.Quiet = False,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> None:
    """Compare maps by several methods: quality metrics in one table, and one picture."""
    from manifoldry.cli.evaluation import compare_methods

    compare_methods(ctx, data)


@app.command()
def assess(
    ctx: typer.Context,
    data: opt.Data,
    map_file: opt.MapFile,
    map_key: opt.MapKey = None,
    columns: opt.Features = None,
    labels: opt.Labels = None,
    row_names: opt.RowNames = None,
    drop: opt.Drop = None,
    delimiter: opt.Delimiter = None,
    key: opt.Key = None,
    impute: opt.ImputeOption = None,
    log1p: opt.Log1p = False,
    scale: opt.Scale = False,
    pca: opt.Components = None,
    seed: opt.Seed = 0,
    run: opt.RunFile = None,
    quiet: opt.Quiet = False,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> None:
    """Say how far a map of any origin can be trusted, given its data."""
    from manifoldry.cli.evaluation import assess_file

    assess_file(ctx, data, map_file)


@app.command()
def dimension(
    ctx: typer.Context,
    data: opt.Data,
    columns: opt.Features = None,
    labels: opt.Labels = None,
    row_names: opt.RowNames = None,
    drop: opt.Drop = None,
    delimiter: opt.Delimiter = None,
    key: opt.Key = None,
    impute: opt.ImputeOption = None,
    log1p: opt.Log1p = False,
    scale: opt.Scale = False,
    pca: opt.Components = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    run: opt.RunFile = None,
    quiet: opt.Quiet = False,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> None:
    """Estimate how many dimensions the data have, and say why estimates differ."""
    from manifoldry.cli.evaluation import report_dimension

    report_dimension(ctx, data)


@app.command()
def methods(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="A method, for its description and parameters.")
    ] = None,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> None:
    """List the methods and what they are for, or describe one of them."""
    from manifoldry.cli.about import list_methods

    list_methods(ctx, name)


@app.command()
def info(
    ctx: typer.Context,
    model: Annotated[
        Path | None, typer.Argument(help="A model file; without one, the installation.")
    ] = None,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> None:
    """Show what a model file contains, or which versions are installed."""
    from manifoldry.cli.about import show_info

    show_info(ctx, model)


@app.command()
def demo(
    ctx: typer.Context,
    output: opt.Output = None,
    method: opt.MethodName = "tsne",
    components: opt.Coordinates = 2,
    settings: opt.Settings = None,
    picture: opt.Picture = True,
    save_model: opt.SaveModel = True,
    verdict: opt.Verdict = True,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    run: opt.RunFile = None,
    quiet: opt.Quiet = False,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> None:
    """Embed 1797 handwritten digits that scikit-learn brings, as embed does with a file."""
    from manifoldry.cli.embedding import embed_digits

    embed_digits(ctx)
