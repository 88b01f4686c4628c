"""What the script of the page draws: positions, colors and names of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifoldry.exceptions import ManifoldryWarning, ignoring
from manifoldry.plotting.coloring import Coloring, resolve_color
from manifoldry.reporting.maps import MethodMap, sample_rows
from manifoldry.reporting.results import Results
from manifoldry.util.typing import Array, IntArray

MOST_DRAWN = 5000  # points of a map
MOST_COLORINGS = 8  # columns of labels to color by
_STEPS = 9999  # positions are whole numbers up to this: the page is smaller, the drawing the same
_LONGEST = 60  # characters of a name


def drawing_data(results: Results) -> dict[str, Any]:
    """The rows that are drawn, and for each map where."""
    drawn = sample_rows(len(results.rows), MOST_DRAWN, results.options.seed)
    table = results.recipe.source.table
    names = [f"row {row + 1}" if table.ids is None else str(table.ids[row])
             for row in results.rows[drawn]]  # fmt: skip
    return {
        "rows": [_short(name) for name in names],
        "colorings": [
            _coloring(name, resolved, drawn)
            for name, resolved in colorings(results).items()
        ],
        "maps": [_positions(each, drawn) for each in results.drawn_maps],
        "threshold": 0.9,
    }  # fmt: skip


def colorings(results: Results) -> dict[str, Coloring]:
    """The first columns of labels as classes or values."""
    found = {}
    for name, values in list(results.labels.items())[:MOST_COLORINGS]:
        if values.dtype.kind == "f":
            values = np.where(np.isfinite(values), values, np.nan)
        with ignoring(ManifoldryWarning):  # about many whole numbers, which are values then
            found[name] = resolve_color(values, len(values))
    return found


def _coloring(name: str, coloring: Coloring, drawn: IntArray) -> dict[str, Any]:
    if coloring.codes is not None:
        counts = np.bincount(coloring.codes, minlength=len(coloring.classes))
        return {
            "name": name,
            "codes": coloring.codes[drawn].tolist(),
            "classes": [
                {"name": _short(each) or "(empty)", "count": int(count), "color": color,
                 "marker": marker}
                for each, count, (color, marker) in zip(
                    coloring.classes, counts, coloring.styles, strict=True
                )
            ],
        }  # fmt: skip
    assert coloring.values is not None
    low, high = (float(bound(coloring.values)) for bound in (np.nanmin, np.nanmax))
    values = coloring.values[drawn]
    return {
        "name": name,
        "values": [float(f"{v:.6g}") if np.isfinite(v) else None for v in values],
        "low": low,
        "high": high,
    }


def _positions(each: MethodMap, drawn: IntArray) -> dict[str, Any]:
    assert each.aligned is not None
    points = _fitted(_two_columns(each.aligned))[drawn]
    trust = each.trust[drawn]
    return {
        "name": each.name,
        "x": _whole(points[:, 0]),
        "y": _whole(points[:, 1]),
        "trust": [round(float(t), 2) if np.isfinite(t) else None for t in trust],
    }


def _two_columns(aligned: Array) -> Array:
    if aligned.shape[1] > 1:
        return aligned[:, :2]
    return np.column_stack([aligned, np.where(np.isnan(aligned), np.nan, 0.0)])


def _fitted(points: Array) -> Array:
    """Positions in a square, with equal scales of both axes; the second points down."""
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    span = float((high - low).max()) or 1.0
    square = 0.5 + (points - (low + high) / 2) / span
    return np.column_stack([square[:, 0], 1 - square[:, 1]])


def _whole(column: Array) -> list[int | None]:
    return [round(float(v) * _STEPS) if np.isfinite(v) else None for v in column]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
