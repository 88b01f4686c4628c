"""Run files: the options of a command as TOML, written beside its outputs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from manifoldry.cli.errors import UsageError
from manifoldry.cli.methods import parse_settings
from manifoldry.util.saved import package_version
from manifoldry.util.writing import written_at_once

# Options that say how to print, not what to compute.
_NOT_KEPT = {"run", "quiet", "json", "traceback"}
_INPUTS = {"data", "model", "map_file", "maps"}


def write_run(output: Path, ctx: typer.Context, **resolved: Any) -> Path:
    """Write the options of a command beside its output.

    Options of the command that were `resolved` replace those that were given.
    """
    path = output.with_suffix(".run.toml")
    options = {k: resolved.get(k, v) for k, v in ctx.params.items() if k not in _NOT_KEPT}
    options["output"] = output
    settings = parse_settings(options.pop("settings", None) or ())
    lines = [
        f"# Repeat with: manifoldry {ctx.command.name} --run {path.name}",
        f"command = {_toml(ctx.command.name)}",
        f"version = {_toml(package_version())}",
    ]
    for name, value in options.items():
        if value not in (None, [], ()):
            lines.append(f"{name} = {_toml(_absolute(value) if name in _INPUTS else value)}")
    if settings:
        lines += ["", "[set]"]
        lines += [f"{_key(name)} = {_toml(_setting(value))}" for name, value in settings.items()]
    with written_at_once(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return path


def read_run(ctx: typer.Context, path: Path | None) -> Path | None:
    """Take the options that are not on the command line from a run file."""
    if path is None:
        return None
    try:
        options = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no run file: {error}") from None
    _check_command(ctx, path, options)
    settings = options.pop("set", {})
    known = [p.name for p in ctx.command.params if p.name is not None]
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"{path} has an unknown option {name!r}{hint}")
    if settings:
        options["settings"] = [f"{name}={value}" for name, value in settings.items()]
    ctx.default_map = options
    return path


def _check_command(ctx: typer.Context, path: Path, options: dict[str, Any]) -> None:
    command = options.pop("command", ctx.command.name)
    options.pop("version", None)
    if command != ctx.command.name:
        raise UsageError(f"{path} is for `manifoldry {command}`, not {ctx.command.name}")


def _absolute(path: Any) -> Any:
    if isinstance(path, (list, tuple)):
        return [_absolute(each) for each in path]
    return "-" if str(path) == "-" else str(Path(path).resolve())


def _setting(value: Any) -> Any:
    """A value of ``--set`` as TOML has it; what it does not have is text that reads the same."""
    return value if isinstance(value, (bool, int, float, str)) else repr(value)


def _key(name: str) -> str:
    """The name as one key; with a dot it would be a table."""
    return json.dumps(name) if "." in name else name


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, Mapping):
        raise TypeError("a run file has no nested options")
    return json.dumps(str(value), ensure_ascii=False)
