"""What points are colored by: labels, features, and evidence of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifoldry.exceptions import ManifoldryWarning, ignoring
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.maps import ExploredMap
from manifoldry.plotting.coloring import Coloring, resolve_color
from manifoldry.plotting.point_labels import missing_entries
from manifoldry.util.typing import Array

_MOST_CLASSES = 2**16 - 1  # codes are numbers of two bytes
# Beyond this ratio of the whole range to that of 98 % of the values, the ramp leaves out the rest.
_UNEVEN = 3.0
_SMALLEST, _LARGEST = 1e-30, 1e38  # of values that single precision has
_FINEST = 1e-4  # range of values relative to their size, below which they are sent as doubles


def label_kind(data: ExploredData, name: str) -> str:
    """Whether a label has classes or values."""
    return "classes" if _coloring_by(data, name).kind == "classes" else "values"


def _coloring_by(data: ExploredData, name: str) -> Coloring:
    """Classes or values of a label, computed once unless it changes."""
    values = data.labels[name]
    kept = data.colorings.get(name)
    if kept is None or kept[0] is not values:
        with ignoring(ManifoldryWarning):  # about many whole numbers, which are values then
            kept = data.colorings[name] = values, _resolved(values)
    found: Coloring = kept[1]
    return found


def label_color(data: ExploredData, name: str) -> dict[str, Any]:
    """Colors by a label."""
    if name not in data.labels:
        raise ValueError(f"the data have no label {name!r}")
    coloring = _coloring_by(data, name)
    if coloring.kind == "values":
        assert coloring.values is not None
        return value_color(coloring.values)
    if len(coloring.classes) > _MOST_CLASSES:
        raise ValueError(
            f"label {name!r} has {len(coloring.classes)} different values, too many for colors"
        )
    assert coloring.codes is not None
    classes: list[dict[str, Any]] = [
        {"name": each or "(empty)", "count": int(count), "color": color}
        for each, count, (color, _) in zip(
            coloring.classes, coloring.counts(), coloring.styles, strict=True
        )
    ]
    if coloring.has_missing:
        classes[-1] |= {"name": "no label", "missing": True}
    return {"kind": "classes", "codes": coloring.codes.astype(np.uint16), "classes": classes}


def _resolved(values: Any) -> Coloring:
    array = np.asarray(values)
    if array.dtype.kind == "f":
        array = np.where(np.isfinite(array), array, np.nan)
    elif array.dtype.kind == "O" and missing_entries(array).all():
        array = np.full(len(array), "", dtype="U1")
    return resolve_color(array, len(array))


def value_color(values: Array, scale: str = "values", note: str = "") -> dict[str, Any]:
    """Colors by numbers; a few extreme ones do not stretch the ramp."""
    values = np.asarray(values, dtype=np.float64)
    known = values[np.isfinite(values)]
    if len(known) == 0:
        raise ValueError("all values are missing, so there is nothing to color by")
    low, high = float(known.min()), float(known.max())
    inner_low, inner_high = np.quantile(known, [0.01, 0.99])
    if inner_high > inner_low and high - low > _UNEVEN * (inner_high - inner_low):
        extremes = f"values range from {low:.4g} to {high:.4g}; 2% are beyond the ends of the ramp"
        low, high = float(inner_low), float(inner_high)
        note = f"{note}; {extremes}" if note else extremes
    values = np.where(np.isfinite(values), values, np.nan)
    # Single precision has to tell the colors apart.
    largest = float(np.abs(known).max())
    in_range = _SMALLEST < largest < _LARGEST or largest == 0
    single = in_range and high - low >= _FINEST * largest
    values = values.astype(np.float32 if single else np.float64)
    return {"kind": "values", "values": values, "low": low, "high": high, "scale": scale,
            "note": note}  # fmt: skip


def evidence_color(shown: ExploredMap, name: str) -> dict[str, Any]:
    """Colors by the evidence of each row of one map."""
    if name not in shown.colors:
        raise ValueError(f"{name} of the map {shown.name} is not known yet; compute its evidence")
    values, note = shown.colors[name]
    bounded = name in ("trustworthiness", "continuity", "neighbor preservation")
    if not bounded:
        return value_color(values, note=note)
    scale = "values" if name == "neighbor preservation" else "trust"
    low = 0.0 if scale == "values" else 0.6  # about the value of a random map
    return {"kind": "values", "values": values.astype(np.float32), "low": low, "high": 1.0,
            "scale": scale, "note": note}  # fmt: skip
