"""Progress reports: a bar if rich is installed, otherwise lines on stderr."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self, TypeVar

Item = TypeVar("Item")
# Called with the fraction that is done, NaN if it is not known, and a text.
Listener = Callable[[float, str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("progress listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Also tell a function of all progress in this context, whether it is shown or not.

    Examples
    --------
    >>> with listening(lambda fraction, text: print(f"{fraction:.0%}", text)):
    ...     _ = list(progress(range(2), 2, "fits", verbose=False))
    50% fits: 1 of 2
    100% fits: 2 of 2
    """
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)


def _tell(fraction: float, text: str) -> None:
    if (listener := _LISTENER.get()) is not None:
        listener(fraction, text)


def progress(items: Iterable[Item], total: int, what: str, verbose: bool) -> Iterator[Item]:
    """Yield the items and, if `verbose`, show how many of the `total` are done.

    Examples
    --------
    >>> list(progress(range(3), 3, "fits", verbose=False))
    [0, 1, 2]
    """
    if not verbose:
        yield from _told(items, total, what)
        return
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        yield from _lines(_told(items, total, what), total, what)
        return
    told = _told(items, total, what)
    yield from track(told, what, total, console=Console(stderr=True))


def _told(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    for done, item in enumerate(items, start=1):
        yield item
        _tell(done / total, f"{what}: {done} of {total}")


def _lines(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    shown = -1
    for done, item in enumerate(items, start=1):
        yield item
        if (tenths := 10 * done // total) > shown:
            shown = tenths
            print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)


class ProgressReporter(AbstractContextManager["ProgressReporter"]):
    """Progress report of an iteration; `clock` and `seconds` space the lines if there is no bar.

    Examples
    --------
    >>> with ProgressReporter("fit", verbose=False) as reporter:
    ...     reporter.show(0.1, "value 3.5")
    """

    def __init__(
        self,
        what: str,
        verbose: bool,
        *,
        seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.what, self.verbose = what, verbose
        self.seconds, self.clock = seconds, clock
        self._bar: Any = None
        self._last = -seconds

    def __enter__(self) -> Self:
        if self.verbose:
            try:
                from rich.console import Console
                from rich.progress import BarColumn, Progress, TextColumn
            except ImportError:
                return self
            columns = BarColumn(), TextColumn("{task.description}", markup=False)
            self._bar = Progress(*columns, console=Console(stderr=True)).__enter__()
            self._task = self._bar.add_task(self.what, total=None)
        return self

    def show(self, fraction: float, status: str, *, last: bool = False) -> None:
        """Report the fraction that is done, NaN if it is not known, and a short `status` text."""
        text = f"{self.what}: {status}"
        _tell(fraction, text)
        if self._bar is not None:
            total = None if math.isnan(fraction) else 1.0
            self._bar.update(self._task, completed=fraction, total=total, description=text)
        elif self.verbose and (last or self.clock() - self._last >= self.seconds):
            self._last = self.clock()
            print(text, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line above the progress bar."""
        if self._bar is not None:
            self._bar.console.print(f"{self.what}: {text}", markup=False, highlight=False)
        elif self.verbose:
            print(f"{self.what}: {text}", file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, where)
