"""Small parts of sentences."""

FILLED_IN = {
    "median": "the median of the column",
    "mean": "the mean of the column",
    "frequent": "the most frequent value of the column",
    "zero": "zero",
}
"""What is put for missing values, by the name of the option."""


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number with what it counts: ``1 row``, ``2 rows``.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row is", "rows are")
    ('1 row', '1,200 rows are')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def and_more(n: int) -> str:
    """The end of a list of which n are left out, if any are."""
    return f" and {n:,} more" if n > 0 else ""
