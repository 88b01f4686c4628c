"""Progress reports: a bar if rich is installed, otherwise lines on stderr."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], total: int, what: str, verbose: bool) -> Iterator[Item]:
    """Yield the items and, if `verbose`, show how many of the `total` are done.

    Examples
    --------
    >>> list(progress(range(3), 3, "fits", verbose=False))
    [0, 1, 2]
    """
    if not verbose:
        yield from items
        return
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        yield from _lines(items, total, what)
        return
    yield from track(items, what, total, console=Console(stderr=True))


def _lines(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    shown = -1
    for done, item in enumerate(items, start=1):
        yield item
        if (tenths := 10 * done // total) > shown:
            shown = tenths
            print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)


class ProgressReporter(AbstractContextManager["ProgressReporter"]):
    """Progress report of an iteration of at most `total` steps.

    Examples
    --------
    >>> with ProgressReporter("fit", 10, verbose=False) as reporter:
    ...     reporter.show(1, "value 3.5")
    """

    def __init__(
        self, what: str, total: int | None, verbose: bool, *, seconds: float = 1.0
    ) -> None:
        self.what, self.total, self.verbose = what, total, verbose
        self.seconds = seconds  # between lines if there is no bar
        self._bar: Any = None
        self._last = -seconds

    def __enter__(self) -> Self:
        if self.verbose:
            try:
                from rich.console import Console
                from rich.progress import Progress
            except ImportError:
                return self
            self._bar = Progress(console=Console(stderr=True)).__enter__()
            self._task = self._bar.add_task(self.what, total=self.total)
        return self

    def show(self, done: int, status: str) -> None:
        """Report that `done` steps are done, with a short `status` text."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, description=f"{self.what}: {status}")
        elif self.verbose and time.monotonic() - self._last >= self.seconds:
            self._last = time.monotonic()
            of = "" if self.total is None else f" of {self.total}"
            print(f"{self.what}: step {done}{of}, {status}", file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, where)
