"""The options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from manifoldry.methods.catalog import USUAL_METHODS

_COLUMNS, _BEFORE, _METHOD = "Columns", "Before the method", "Method"
_RUNNING, _OUTPUT, _WORKERS = "Running", "Output", "Workers"
_SEVERAL = "divided by commas; a name with a comma is quoted as in CSV"


class Impute(StrEnum):
    """What to put for missing values of a column."""

    MEDIAN = "median"
    MEAN = "mean"
    FREQUENT = "frequent"
    ZERO = "zero"


def _complete_method(typed: str) -> list[str]:
    from manifoldry.methods.catalog import METHODS

    return [method.name for method in METHODS if method.name.startswith(typed)]


def _read_run(ctx: typer.Context, path: Path | None) -> Path | None:
    from manifoldry.cli.run_file import read_run  # late: help needs none of it

    read = read_run(ctx, path)
    several = {param.name for param in ctx.command.params if getattr(param, "multiple", False)}
    for name, value in (ctx.default_map or {}).items():
        if name in several and isinstance(value, str):
            ctx.default_map = {**(ctx.default_map or {}), name: [value]}
    return read


Data = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV or text (also .gz), Parquet, Feather, .npy, .npz, Zarr, .h5ad, a folder of "
        "images, or - for text on standard input.",
        show_default=False,
    ),
]
Sources = Annotated[
    list[Path] | None,
    typer.Argument(
        help="A file of data, as for embed, models that embed has written, or both; without any, "
        "handwritten digits.",
        show_default=False,
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A model file that embed has written.")]
Features = Annotated[
    list[str] | None,
    typer.Option("--columns", help=f"Features, {_SEVERAL}.", rich_help_panel=_COLUMNS),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", help="A column of labels, no feature; the first has the classes.",
                 rich_help_panel=_COLUMNS),
]  # fmt: skip
RowNames = Annotated[
    str | None, typer.Option("--id", help="The column of row names.", rich_help_panel=_COLUMNS)
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help=f"Columns to ignore, {_SEVERAL}.", rich_help_panel=_COLUMNS),
]
Delimiter = Annotated[
    str | None, typer.Option(help="Delimiter of a text file.", rich_help_panel=_COLUMNS)
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", rich_help_panel=_COLUMNS, show_default=False,
        help="Whether the first line of a text file has names; by default recognized.",
    ),
]  # fmt: skip
Key = Annotated[
    str | None,
    typer.Option(
        help="Entry of obsm, layers or obsp of an AnnData (.h5ad, .zarr), such as X_pca.",
        rich_help_panel=_COLUMNS,
    ),
]
ImputeOption = Annotated[
    Impute | None,
    typer.Option("--impute", help="Fill in missing values.", rich_help_panel=_BEFORE),
]
Log1p = Annotated[
    bool, typer.Option("--log1p", help="Take log(1 + x), for counts.", rich_help_panel=_BEFORE)
]
Scale = Annotated[
    bool | None,
    typer.Option(
        "--scale/--no-scale", help="Standardize columns; by default if units differ.",
        rich_help_panel=_BEFORE, show_default=False,
    ),
]  # fmt: skip
Components = Annotated[
    int | None,
    typer.Option(
        "--pca", min=1, help="Number of principal components to start from, such as 50.",
        rich_help_panel=_BEFORE,
    ),
]  # fmt: skip
Coordinates = Annotated[
    int,
    typer.Option(
        "--components", "-d", min=1, help="Number of coordinates.", rich_help_panel=_METHOD
    ),
]
SomeCoordinates = Annotated[
    int | None,
    typer.Option(
        "--components", "-d", min=1, show_default=False, rich_help_panel=_METHOD,
        help="Number of coordinates; by default 2, or 1 of data with one column.",
    ),
]  # fmt: skip
# Lists, although only one method is taken: of an option for one value the last one would be.
MethodName = Annotated[
    list[str] | None,
    typer.Option(
        "--method", "-m", metavar="NAME", autocompletion=_complete_method,
        help="See manifoldry methods; by default chosen from the data.",
        rich_help_panel=_METHOD,
    ),
]  # fmt: skip
DemoMethod = Annotated[
    list[str],
    typer.Option(
        "--method", "-m", metavar="NAME", autocompletion=_complete_method,
        help="See manifoldry methods.", rich_help_panel=_METHOD,
    ),
]  # fmt: skip
MethodNames = Annotated[
    list[str] | None,
    typer.Option(
        "--method", "-m", autocompletion=_complete_method, rich_help_panel=_METHOD,
        help=f"A method; name several. By default {', '.join(USUAL_METHODS)}.",
    ),
]  # fmt: skip
Maps = Annotated[
    list[Path] | None,
    typer.Option(
        "--map", help="A file with a map from elsewhere, to compare too.", rich_help_panel=_METHOD
    ),
]
MapKey = Annotated[
    str | None,
    typer.Option(help="Entry of obsm, if the map is in an AnnData.", rich_help_panel=_COLUMNS),
]
MapColumns = Annotated[
    list[str] | None,
    typer.Option(help=f"Coordinates in the file of a map, {_SEVERAL}.", rich_help_panel=_COLUMNS),
]
InOrder = Annotated[
    bool,
    typer.Option(
        "--in-order", help="Take rows of a map in their order, whatever their names.",
        rich_help_panel=_COLUMNS,
    ),
]  # fmt: skip
Metric = Annotated[
    str,
    typer.Option(
        help="Metric of the data by which the map is judged, such as cityblock.",
        rich_help_panel=_METHOD,
    ),
]
CommonMetric = Annotated[
    str | None,
    typer.Option(
        "--metric", help="Metric of the data by which maps are judged; by default the one of the "
        "methods.", rich_help_panel=_METHOD,
    ),
]  # fmt: skip
MapFile = Annotated[
    Path, typer.Argument(help="A map: a file with a column per coordinate.", show_default=False)
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any parameter of the method, such as n_neighbors=20.",
        rich_help_panel=_METHOD,
    ),
]  # fmt: skip
SettingsOfMethods = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="[METHOD.]NAME=VALUE", rich_help_panel=_METHOD,
        help="A parameter of one method, such as tsne.perplexity=50, or of all that have it.",
    ),
]  # fmt: skip
Seed = Annotated[int, typer.Option(min=0, help="Seed of random numbers.", rich_help_panel=_RUNNING)]
Jobs = Annotated[
    int | None,
    typer.Option(help="Number of threads; by default one per core.", rich_help_panel=_RUNNING),
]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device", metavar="NAME", show_default=False, rich_help_panel=_RUNNING,
        help="Where to compute: cuda for a GPU, cuda:1 for the second one, cpu; by default cpu.",
    ),
]  # fmt: skip
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS", show_default=False, rich_help_panel=_WORKERS,
        help="Compute on the workers of a Dask scheduler, such as tcp://host:8786; data are Zarr "
        "or Parquet that workers read.",
    ),
]  # fmt: skip
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, show_default=False, rich_help_panel=_WORKERS,
        help="Compute on this number of Dask workers, which are started on this machine.",
    ),
]  # fmt: skip
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", show_default=False, rich_help_panel=_WORKERS,
        help="Memory of each of the workers, such as 2GiB; by default a share of that of the "
        "machine.",
    ),
]  # fmt: skip
Landmarks = Annotated[
    int | None,
    typer.Option(
        "--landmarks", min=10, show_default=False, rich_help_panel=_WORKERS,
        help="Number of random rows that are fitted; the others are placed. By default the method "
        "decides.",
    ),
]  # fmt: skip
RunFile = Annotated[
    Path | None,
    typer.Option(
        "--run", is_eager=True, callback=_read_run, rich_help_panel=_RUNNING,
        help="Take options from a file that an earlier run has written.",
    ),
]  # fmt: skip
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write; the suffix is its format: .csv, .tsv, "
                 ".parquet, .npy, .h5ad or .zarr.", show_default=False, rich_help_panel=_OUTPUT),
]  # fmt: skip
RowsFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write; the suffix is its format: .csv, .tsv, "
                 ".parquet or .npy.", show_default=False, rich_help_panel=_OUTPUT),
]  # fmt: skip
Picture = Annotated[bool, typer.Option(help="Whether to draw a picture.", rich_help_panel=_OUTPUT)]
PictureFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The picture, such as maps.png.", rich_help_panel=_OUTPUT),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The report, such as report.html.",
                 rich_help_panel=_OUTPUT),
]  # fmt: skip
Refits = Annotated[
    int,
    typer.Option(
        min=0, help="Refits of each method, for its stability; 0 for none.",
        rich_help_panel=_RUNNING,
    ),
]  # fmt: skip
MaxRows = Annotated[
    int,
    typer.Option(
        min=10, help="Rows that are examined and mapped, at random.", rich_help_panel=_RUNNING
    ),
]
PointsFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="File for the metrics of every point, such as points.csv.",
        rich_help_panel=_OUTPUT,
    ),
]  # fmt: skip
Port = Annotated[
    int | None,
    typer.Option(
        min=0, max=65535, show_default=False, rich_help_panel=_RUNNING,
        help="Port of the page, 0 for any; by default the first free one from 7321.",
    ),
]  # fmt: skip
Browser = Annotated[
    bool,
    typer.Option(help="Whether to open a browser, or to print the link only.",
                 rich_help_panel=_RUNNING),
]  # fmt: skip
LabelsFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File for labels that are made on the page, such as "
                 "labels.csv; those in it are read first.", rich_help_panel=_OUTPUT),
]  # fmt: skip
ImageShape = Annotated[
    str | None,
    typer.Option(help="Height and width of the images in the rows, such as 28x28.",
                 rich_help_panel=_COLUMNS),
]  # fmt: skip
DarkInk = Annotated[
    bool,
    typer.Option("--dark-ink", help="High values of images are dark, as ink on paper.",
                 rich_help_panel=_COLUMNS),
]  # fmt: skip
SaveModel = Annotated[
    bool,
    typer.Option("--model/--no-model", help="Whether to save the model.", rich_help_panel=_OUTPUT),
]
Verdict = Annotated[
    bool,
    typer.Option(
        "--assess/--no-assess", help="Whether to assess the map.", rich_help_panel=_OUTPUT
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.",
                       rich_help_panel=_OUTPUT)
]  # fmt: skip
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=_OUTPUT)
]
Traceback = Annotated[
    bool,
    typer.Option("--traceback", help="Show where an error occurred.", rich_help_panel=_OUTPUT),
]

# Options of many commands, by the names of their parameters, with their defaults.
COLUMNS = {"columns": (Features, None), "labels": (Labels, None), "row_names": (RowNames, None),
           "drop": (Drop, None), "delimiter": (Delimiter, None), "header": (Header, None),
           "key": (Key, None)}  # fmt: skip
PREPROCESSING = {"impute": (ImputeOption, None), "log1p": (Log1p, False), "scale": (Scale, None),
                 "pca": (Components, None)}  # fmt: skip
# A report always says something about data with missing values.
PREPROCESSING_OF_REPORT = {**PREPROCESSING, "impute": (ImputeOption, Impute.MEDIAN)}
MAPS = {"map_columns": (MapColumns, None), "in_order": (InOrder, False)}
RUNNING = {"seed": (Seed, 0), "jobs": (Jobs, None), "device": (DeviceName, None),
           "run": (RunFile, None)}  # fmt: skip
WORKERS = {"scheduler": (Scheduler, None), "workers": (Workers, None),
           "memory_limit": (MemoryLimit, None)}  # fmt: skip
WORKERS_OF_FIT = {**WORKERS, "landmarks": (Landmarks, None)}
ANSWER = {"json": (Json, False), "traceback": (Traceback, False)}
PRINTING = {"quiet": (Quiet, False), **ANSWER}
