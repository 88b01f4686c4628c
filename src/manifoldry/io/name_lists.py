"""Lists of names in one text, as options of the command have them: divided by commas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable


def split_names(texts: str | Iterable[str]) -> tuple[str, ...]:
    """The names in one or several texts; a name with a comma is in double quotes, as in CSV.

    >>> split_names(['a, b', '"c,d"'])
    ('a', 'b', 'c,d')
    """
    each = [texts] if isinstance(texts, str) else texts
    lines = (line for text in each for line in csv.reader([text], skipinitialspace=True))
    return tuple(name.strip() for line in lines for name in line if name.strip())


def joined_names(names: Iterable[str]) -> str:
    """The names as one text, which `split_names` divides again.

    >>> joined_names(["a", "c,d"])
    'a,"c,d"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()
