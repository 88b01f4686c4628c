"""Text from files of other people, which must not control a terminal."""

from __future__ import annotations

import re
from typing import Any


def printable(text: str) -> str:
    r"""The text with ``?`` for characters that are not printed, except ends of lines.

    Examples
    --------
    >>> printable("red \x1b[31m")
    'red ?[31m'
    """
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def short_line(value: object, most: int = 200) -> str:
    """The value as one printable line of at most so many characters."""
    text = " ".join(str(value)[: 10 * most].split())
    return printable(text if len(text) <= most else f"{text[: most - 1]}…")


def error_text(error: Exception, hint: str = "") -> str:
    """What went wrong, for people; errors that nobody foresaw have their class and the hint.

    Examples
    --------
    >>> error_text(ValueError("k=3 is too large")), error_text(KeyError("k"), " (a fault of ours)")
    ('k=3 is too large', "KeyError: 'k' (a fault of ours)")
    """
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{place}"
    if isinstance(error, (ValueError, TypeError, ImportError, OSError)) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}{hint}"


def natural_order(text: str) -> list[Any]:
    """A key that sorts texts by the numbers in them.

    Examples
    --------
    >>> sorted(["part.10", "part.9", "part"], key=natural_order)
    ['part', 'part.9', 'part.10']
    """
    pieces = re.split(r"([0-9]+)", text)
    return [int(piece) if i % 2 else piece for i, piece in enumerate(pieces)]
