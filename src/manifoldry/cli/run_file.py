"""Run files: the options of a command as TOML, written beside its outputs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import chain, count
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
_SETTINGS = "settings"


def write_run(written: Path, ctx: typer.Context, **resolved: Any) -> Path:
    """Write the options of a command beside the file that it has written.

    Options of the command that were `resolved` replace those that were given. A run file of
    another command is not replaced: the new one has the name of its command in its name.
    """
    resolved = {"output": written, **resolved}
    path = _free_path(written, str(ctx.command.name))
    options = {k: resolved.get(k, v) for k, v in ctx.params.items() if k not in _NOT_KEPT}
    settings = parse_settings(options.pop(_SETTINGS, None) or ())
    public = _public_names(ctx)
    lines = [
        f"# Repeat with: manifoldry {ctx.command.name} --run {path.name}",
        f"command = {_toml(ctx.command.name)}",
        f"version = {_toml(package_version())}",
    ]
    for name, value in options.items():
        if value not in (None, [], ()):
            value = _absolute(value) if name in _INPUTS else value
            lines.append(f"{public[name]} = {_toml(value)}")
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
    known = {public: name for name, public in _public_names(ctx).items()}
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"{path} has an unknown option {name!r}{hint}")
    defaults = {known[public]: value for public, value in options.items()}
    if settings:
        defaults[_SETTINGS] = [f"{name}={value}" for name, value in settings.items()]
    ctx.default_map = defaults
    return path


def _public_names(ctx: typer.Context) -> dict[str, str]:
    """The name of each option as it is typed, without dashes, by the name of its parameter."""
    return {
        str(each.name): max(each.opts, key=len).lstrip("-") if each.opts else str(each.name)
        for each in ctx.command.params
    }


def _free_path(output: Path, command: str) -> Path:
    """The name of the output with another suffix, unless it is a file of another command."""
    added = chain(("", f"-{command}"), (f"-{command}-{i}" for i in count(2)))
    paths = (output.with_name(f"{output.stem}{each}.run.toml") for each in added)
    return next(path for path in paths if not path.exists() or _command_of(path) == command)


def run_of_output(output: Path, command: str) -> tuple[Path | None, dict[str, Any]]:
    """The run file beside the output of a command, and its options; None if there is none."""
    for added in ("", f"-{command}"):
        path = output.with_name(f"{output.stem}{added}.run.toml")
        options = _options_of(path)
        written = Path(str(options.get("output", ""))).name
        if options.get("command") == command and written == output.name:
            return path, options
    return None, {}


def _command_of(path: Path) -> Any:
    return _options_of(path).get("command")


def _options_of(path: Path) -> dict[str, Any]:
    """The options in a run file; none if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}


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
    if isinstance(value, str):  # such as "5", which is no number
        return value if parse_settings([f"name={value}"])["name"] == value else repr(value)
    return value if isinstance(value, (bool, int, float)) else repr(value)


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
