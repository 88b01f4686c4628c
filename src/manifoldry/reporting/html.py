"""HTML made of elements, in which every text is escaped."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

_VOID = ("meta", "br", "input")


class Html(str):
    """Text that is HTML already."""


def element(name: str, *children: Any, **attributes: Any) -> Html:
    """An element; children that are not `Html` are escaped.

    An attribute that is None or False is left out, one that is True has no value. Underscores
    stand for hyphens, and one at the end for nothing: ``class_="note"``.

    Examples
    --------
    >>> print(element("p", "1 < 2", class_="note", hidden=False))
    <p class="note">1 &lt; 2</p>
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{concatenated(children)}</{name}>")


def concatenated(parts: Iterable[Any]) -> Html:
    """Parts in a row; texts are escaped, None is left out, and lists are concatenated."""
    return Html("".join(_escaped(part) for part in parts))


def _escaped(part: Any) -> str:
    if part is None:
        return ""
    if isinstance(part, Html):
        return part
    if isinstance(part, (list, tuple)):
        return concatenated(part)
    return html.escape(_printable(str(part)))


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(_printable(str(value)))}"'


def _printable(text: str) -> str:
    """The text without what HTML does not allow: control characters and single surrogates."""
    kept = "".join(c if c >= " " or c in "\t\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return kept.encode("utf-8", "replace").decode("utf-8")


def bullets(items: Iterable[Any], **attributes: Any) -> Html | None:
    """A list; None if it is empty."""
    lines = [element("li", item) for item in items]
    return element("ul", lines, **attributes) if lines else None


def html_table(
    caption: str, head: Iterable[Any], rows: Iterable[Iterable[Any]], **attributes: Any
) -> Html:
    """A table with a caption; the first cell of each row is its header. It scrolls if narrow."""
    body = []
    for first, *cells in rows:
        body.append(
            element("tr", element("th", first, scope="row"), [element("td", c) for c in cells])
        )
    heads = element("tr", [element("th", cell, scope="col") for cell in head])
    inner = element(
        "table", element("caption", caption), element("thead", heads), element("tbody", body),
        **attributes,
    )  # fmt: skip
    return element("div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption)


def script_data(name: str, value: Mapping[str, Any]) -> Html:
    """JSON for a script, which cannot end the element that contains it.

    Numbers that are not finite are an error: JSON has none.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(f'<script type="application/json" id="{name}">{text}</script>')


def number(value: Any, digits: int = 2) -> str:
    """A number for a table; a dash if it is not finite."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{float(value):.{digits}f}"
