"""Text from files of other people, which must not control a terminal."""

from __future__ import annotations


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
