"""Whether a map is judged by the data that it was made of: the preprocessing of both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manifoldry.cli.console import Console
from manifoldry.cli.run_file import run_of_output


def note_preprocessing(
    maps: list[Path], scaled: bool, params: Mapping[str, Any], console: Console
) -> None:
    """Say by which data maps are judged, and warn if `embed` made one of them of others.

    A map that `embed` has written has a run file beside it, which has its options.
    """
    here = _options({**params, "scale": scaled})
    named = "the map is" if len(maps) == 1 else "maps are"
    console.note(f"{named} judged by the data {_after(here)}")
    for path in maps:
        run, options = run_of_output(path, "embed")
        if run is None or (there := _options(options)) == here:
            continue
        wanted = there if options.get("scale") or not scaled else [*there, "--no-scale"]
        remedy = f"pass {' '.join(wanted)}" if wanted else f"leave out {' '.join(here)}"
        console.show_warning(
            f"{path} is a map of the data {_after(there)}, as {run.name} says, but is judged by "
            f"the data {_after(here)}, so the values are not about what it shows; {remedy}"
        )


def _options(values: Mapping[str, Any]) -> list[str]:
    """The steps before the method as options of a command."""
    names = [name for name in ("impute", "log1p", "scale", "pca") if values.get(name)]
    return [f"--{name}" if values[name] is True else f"--{name} {values[name]}" for name in names]


def _after(options: list[str]) -> str:
    return f"after {' '.join(options)}" if options else "as they are"
