"""Progress of long work: a bar where rich is installed, lines on stderr where it is not."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], total: int, what: str, verbose: bool) -> Iterator[Item]:
    """Pass items on and, if `verbose`, show how many of the `total` have come.

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
