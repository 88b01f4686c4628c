"""The entry point: it runs a command and turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from manifoldry.cli.console import json_text
from manifoldry.cli.errors import FAILED, INTERRUPTED, OK, USAGE, InterruptedFitError, UsageError
from manifoldry.util.hints import for_command
from manifoldry.util.text import error_text, printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process.

    Returns
    -------
    int
        0, or 1 if data or a fit are at fault, 2 if the arguments are, 130 after Ctrl-C.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except InterruptedFitError:
        return INTERRUPTED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of the output has seen enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except UsageError as error:
        return _failed(str(error), USAGE, arguments)
    except Exception as error:
        if hasattr(error, "format_message"):  # of the command line's syntax
            return _failed(f"{error.format_message()} ({_help(error)})", USAGE, arguments)
        if "--traceback" in arguments:
            traceback.print_exc()
        text = for_command(error_text(error, " (--traceback shows where)"))
        return _failed(text, FAILED, arguments)
    if code == INTERRUPTED:
        _failed("interrupted; no unfinished file was left behind", INTERRUPTED, arguments)
    return code


def _run(arguments: list[str]) -> int:
    try:
        from manifoldry.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        return _failed(
            f"the command needs the package {error.name}: pip install 'manifoldry[cli]'",
            FAILED,
            arguments,
        )
    try:
        # typer returns 130 after Ctrl-C, or raises Abort.
        return int(app(arguments, prog_name="manifoldry", standalone_mode=False) or OK)
    except RuntimeError as error:
        if type(error).__name__ != "Abort":
            raise
        return INTERRUPTED


def _failed(text: str, code: int, arguments: Sequence[str]) -> int:
    """Print the error in one line; with ``--json`` as the result, too."""
    text = " ".join(text.split())
    print(f"manifoldry: error: {printable(text)}", file=sys.stderr)
    if "--json" in arguments:
        print(json_text({"error": text, "exit_code": code}))
    return code


def _help(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path} --help" if context is not None else "see --help"
