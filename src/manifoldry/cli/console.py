"""What a command prints: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from manifoldry.cli.errors import UsageError
from manifoldry.util.hints import for_command
from manifoldry.util.text import printable


class Console:
    """Prints for one command, and collects notes and warnings for ``--json``.

    Parameters
    ----------
    quiet : bool
        Whether to print only warnings and errors.
    as_json : bool
        Whether the result is one JSON object.
    on_workers : bool, default=False
        Whether the command computes on workers, where some advice cannot be followed.
    """

    def __init__(self, quiet: bool, as_json: bool, on_workers: bool = False) -> None:
        self.quiet, self.as_json, self.on_workers = quiet, as_json, on_workers
        self._notes: list[str] = []
        self._warnings: list[str] = []

    @classmethod
    @contextmanager
    def of(cls, params: Mapping[str, Any]) -> Iterator[Console]:
        """The console of a command with these parameters; warnings become lines."""
        on_workers = any(params.get(name) is not None for name in ("workers", "scheduler"))
        console = cls(params.get("quiet", False), params["json"], on_workers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)  # ours, and those of scikit-learn
            warnings.showwarning = console.show_warning  # type: ignore[assignment]  # fewer names
            with _on_device(params.get("device")):
                yield console

    @property
    def is_interactive(self) -> bool:
        """Whether somebody watches the progress."""
        return not self.quiet and sys.stderr.isatty()

    def note(self, text: str) -> None:
        """Say what was decided or found on the way."""
        self._notes.append(text)
        if not self.quiet:
            print(printable(text), file=sys.stderr, flush=True)

    def show_warning(self, message: Warning | str, *details: Any) -> None:
        """Print a warning in one line, once; in the place of `warnings.showwarning`."""
        text = self._advised(" ".join(str(message).split()))
        if text not in self._warnings:
            self._warnings.append(text)
            print(f"manifoldry: warning: {printable(text)}", file=sys.stderr, flush=True)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show that something is going on, with the time that it takes."""
        if not self.is_interactive:
            yield
            return
        from rich.console import Console as RichConsole
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False)
        screen = RichConsole(stderr=True)
        with Progress(*columns, TimeElapsedColumn(), console=screen, transient=True) as bar:
            bar.add_task(printable(what), total=None)
            yield

    def finish(
        self, result: Mapping[str, Any], text: str = "", files: Mapping[str, Path] | None = None
    ) -> None:
        """Print the result and the files that were written: as JSON, or as text."""
        files = files or {}
        if self.as_json:
            found = {**result, "files": files, "notes": self._notes, "warnings": self._warnings}
            print(self._advised(json_text(plain(found), indent=2)))
        elif not self.quiet:
            listed = "\n".join(f"{kind}: {file}" for kind, file in files.items())
            print(printable("\n\n".join(part for part in (self._advised(text), listed) if part)))

    def _advised(self, text: str) -> str:
        return for_command(text, on_workers=self.on_workers)


def _on_device(name: str | None) -> AbstractContextManager[Any]:
    """The context that computes on the device of this name; None changes nothing."""
    if name is None:
        return nullcontext()
    from manifoldry.device import MissingDeviceError, resolve_device, using_device

    try:
        return using_device(resolve_device(name) or "cpu")
    except ValueError:
        raise UsageError(f"--device {name} must be cpu, cuda, or cuda:N from cuda:0") from None
    except MissingDeviceError as error:
        raise UsageError(for_command(str(error))) from None


def json_text(value: Any, indent: int | None = None) -> str:
    """The value as JSON; characters that are not printed are escaped, all others are not."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def plain(value: Any) -> Any:
    """The value as JSON has it; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, bool, int)) else str(value)
