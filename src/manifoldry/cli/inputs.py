"""Where a command reads from and writes to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifoldry.cli.console import Console
from manifoldry.cli.errors import UsageError
from manifoldry.io import ColumnChoice, Table, read_table
from manifoldry.io.extras import optional_module
from manifoldry.io.name_lists import split_names
from manifoldry.io.write import ANNOTATED_FORMATS
from manifoldry.methods.preprocessing import Preprocessing


def read_input(
    path: Path,
    params: Mapping[str, Any],
    console: Console,
    *,
    features: Sequence[str] | None = None,
    missing: bool = False,
) -> Table:
    """The table of a file, as the parameters of a command say; its notes are printed.

    The `features` are those of a model; an array without names has them in their order.
    """
    choice = column_choice(params, features)
    graph = _declares_graph(params)
    with console.working(f"reading {path}"):
        table = read_table(
            path, choice, delimiter=params.get("delimiter"), header=params.get("header"),
            key=params.get("key"), missing=missing, graph=graph,
        )  # fmt: skip
    for note in table.notes:
        console.note(f"{path}: {note}")
    return table


def read_digits() -> Table:
    """The handwritten digits that scikit-learn brings."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    names = np.array([f"digit{i + 1}" for i in range(len(digits.data))])
    labels = {"digit": digits.target}
    return Table(digits.data, tuple(digits.feature_names), names, labels, image_shape=(8, 8))


def column_choice(params: Mapping[str, Any], features: Sequence[str] | None = None) -> ColumnChoice:
    """What the parameters of a command say about the columns; `features` are those of a model."""
    unnamed = features is not None
    if features is None and params.get("columns"):
        features = split_names(params["columns"])
    return ColumnChoice(
        features,
        tuple(params.get("labels") or ()),
        params.get("row_names"),
        split_names(params.get("drop") or ()),
        unnamed,
    )


def declares_pairs(params: Mapping[str, Any]) -> bool:
    """Whether the data are said to be distances or weights of pairs."""
    settings = (setting.replace(" ", "") for setting in params.get("settings") or ())
    of_methods = {setting.rpartition(".")[2] for setting in settings}
    said = {"metric=precomputed", "affinity=precomputed"}
    return params.get("metric") == "precomputed" or bool(of_methods & said)


def _declares_graph(params: Mapping[str, Any]) -> bool:
    """Whether a method is told that its input has values of pairs; other steps are refused."""
    declared = declares_pairs(params)
    steps = [f"--{name}" for name in ("impute", "log1p", "scale", "pca") if params.get(name)]
    if declared and steps:
        raise UsageError(f"{', '.join(steps)} cannot be applied to distances or weights of pairs")
    return declared and params.get("method") is not None


class PreparedData(NamedTuple):
    """A file, its table, the fitted steps before the method, and the data that they make.

    The colormap is that of gray images: ``"gray_r"`` for ink on paper.
    """

    file: Path
    table: Table
    steps: list[tuple[str, Any]]
    X: Any
    image_cmap: str = "gray"

    @property
    def scaled(self) -> bool:
        """Whether columns were standardized."""
        return any(name == "scale" for name, _ in self.steps)


def read_prepared(path: Path, params: Mapping[str, Any], console: Console) -> PreparedData:
    """The data of a file after the steps that the parameters of a command ask for."""
    table = read_input(path, params, console, missing=params["impute"] is not None)
    are_pairs = table.is_graph or declares_pairs(params)
    names = None if are_pairs else table.names
    asked = Preprocessing.of(params)
    steps = asked.decided(table.X, names, console.note)
    if not (are_pairs or steps.scale):
        asked.note_uneven_columns(table.X, console.note)
    return PreparedData(path, table, *steps.fit(table.X, console.note))


def check_output(params: Mapping[str, Any], data: Path, formats: Sequence[str]) -> None:
    """Refuse an output that cannot be written, before anything is computed."""
    path: Path = params["output"] or Path(f"in-this-folder{formats[0]}")
    if path.suffix.lower() not in formats:
        raise UsageError(
            f"{path}: the format {path.suffix!r} cannot be written; choose {', '.join(formats)}"
        )
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}; make it, or name another")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"the folder {path.parent.resolve()} is not writable; name another")
    if path.suffix.lower() in ANNOTATED_FORMATS and set(ANNOTATED_FORMATS) <= set(formats):
        optional_module("anndata", "anndata", f"writing {path.suffix.lower()}")
    if path.exists() and data.exists() and path.samefile(data):
        raise UsageError(f"{path} is the input; name another output")


def output_path(params: Mapping[str, Any], data: Path, ending: str) -> Path:
    """The file that was named, or one named after the data, in the working folder."""
    stem = Path(data.name.removesuffix(".gz")).stem.strip("-") or "data"
    return params["output"] or Path(f"{stem}-{ending}")
