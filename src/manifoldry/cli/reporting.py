"""``manifoldry report``: one HTML file about the data and their maps."""

from __future__ import annotations

from pathlib import Path

import typer

from manifoldry.cli.console import Console
from manifoldry.cli.inputs import check_output, column_choice, output_path
from manifoldry.cli.methods import fit_components, method_named
from manifoldry.cli.run_file import write_run
from manifoldry.methods.preprocessing import Preprocessing
from manifoldry.reporting.build import write_report
from manifoldry.reporting.maps import MapOptions
from manifoldry.reporting.source import Source


def report_file(ctx: typer.Context, data: Path) -> None:
    """Report on the data of a file."""
    params = ctx.params
    methods = [method_named(name).name for name in params["methods"] or ()]
    with Console.of(params) as console:
        check_output(params, data, (".html", ".htm"))
        path = output_path(params, data, "report.html")
        with console.working(f"reading {data}"):
            text = params["delimiter"], params["header"]
            source = Source.of_file(data, column_choice(params), *text, params["key"])
        for note in source.table.notes:
            console.note(f"{data}: {note}")
        fit_components(ctx, source.table.X.shape[1], console.note)
        options = MapOptions(params["components"], params["seed"], params["jobs"], params["refits"])
        found = write_report(
            source, path, methods or None, Preprocessing.of(params), options, params["max_rows"],
            console.working,
        )  # fmt: skip
        for note in found.results.notes:
            if note not in source.table.notes:
                console.note(note)
        scale = found.results.recipe.is_scaled
        files = {"report": path, "run": write_run(path, ctx, scale=scale)}
        result = {"command": "report", "input": str(data), **found.summary}
        console.finish(result, str(found), files)
