"""A selection of rows: what distinguishes it, and its export."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manifoldry.explorer.colors import label_kind
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.maps import ExploredMap
from manifoldry.io import write_table
from manifoldry.io.columns import unique_names
from manifoldry.plotting.point_labels import missing_entries
from manifoldry.util.typing import IntArray

_MOST_FEATURES = 12
_MOST_VALUES = 8  # of labels
_CLEAR = 0.8  # difference of means in standard deviations that is called large in statistics
_MOST_CELLS = 5_000_000  # of an exported file with features


def check_rows(rows: Any, n: int) -> IntArray:
    """Rows of a message, in order and each once."""
    given = np.asarray(rows)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise TypeError(
            f"rows has shape {given.shape} and dtype {given.dtype}, but must have whole numbers in "
            "one dimension"
        )
    found = np.unique(given)
    if len(found) and (found[0] < 0 or found[-1] >= n):
        wrong = int(found[0] if found[0] < 0 else found[-1])
        raise ValueError(f"row={wrong} must be 0 to {n - 1}, the rows of the data")
    return found.astype(np.int64)


def distinguish(data: ExploredData, rows: IntArray) -> dict[str, Any]:
    """In which features and labels some rows differ most from all others."""
    if not 0 < len(rows) < data.n:
        what = "no row is" if len(rows) == 0 else "all rows are"
        text = f"There is nothing to compare with, because {what} selected."
        return {"n": len(rows), "features": [], "labels": [], "text": text}
    features = _features(data, rows)
    labels = _labels(data, rows)
    return {
        "n": len(rows),
        "features": features,
        "labels": labels,
        "text": _sentence(features, labels),
    }


def _features(data: ExploredData, rows: IntArray) -> list[dict[str, Any]]:
    """Standardized differences of the means, the largest first."""
    if not data.has_data:
        return []
    mean, deviation, *_, count = data.moments
    total, within = data.sums_of(rows)  # the differences from the mean have the sum 0
    compared = (within > 0) & (within < count) & (deviation > 0)
    inside, outside = total / np.maximum(within, 1), -total / np.maximum(count - within, 1)
    difference = np.where(compared, inside - outside, 0.0) / np.where(compared, deviation, 1.0)
    order = np.argsort(-np.abs(difference), kind="stable")[:_MOST_FEATURES]
    return [
        {"name": data.feature_names[j], "difference": difference[j], "inside": mean[j] + inside[j],
         "outside": mean[j] + outside[j]}
        for j in order
        if difference[j] != 0
    ]  # fmt: skip


def _labels(data: ExploredData, rows: IntArray) -> list[dict[str, Any]]:
    """Values of labels whose fractions inside and outside differ most."""
    found = []
    for name, values in data.labels.items():
        array = np.asarray(values)
        if label_kind(data, name) != "classes":
            continue
        known = np.flatnonzero(~missing_entries(array))
        different, codes = np.unique(array[known].astype(str), return_inverse=True)
        within = np.isin(known, rows, assume_unique=True)
        total = np.bincount(codes, minlength=len(different))
        inside = np.bincount(codes[within], minlength=len(different))
        outside = (total - inside) / max(data.n - len(rows), 1)
        found += [
            {"label": name, "value": str(value), "inside": a / len(rows), "outside": float(b)}
            for value, a, b in zip(different, inside, outside, strict=True)
        ]
    found.sort(key=lambda each: -abs(each["inside"] - each["outside"]))
    return [each for each in found[:_MOST_VALUES] if each["inside"] != each["outside"]]


def _sentence(features: list[Any], labels: list[Any]) -> str:
    parts = []
    if labels and labels[0]["inside"] > labels[0]["outside"]:
        top = labels[0]
        parts.append(
            f"{top['inside']:.0%} have the {top['label']} {top['value']}, as do "
            f"{top['outside']:.0%} of the others."
        )
    clear = [each for each in features if abs(each["difference"]) >= _CLEAR]
    if clear:
        names = ", ".join(
            f"{'higher' if each['difference'] > 0 else 'lower'} {each['name']}"
            for each in clear[:3]
        )
        parts.append(f"Compared with the others they have {names} on average.")
    elif features:
        parts.append("No feature has a mean that clearly differs from that of the others.")
    return " ".join(parts)


def exported(data: ExploredData, maps: list[ExploredMap], rows: IntArray) -> tuple[str, bytes, str]:
    """Name and content of a CSV file of the rows, and what was left out of it.

    It has names, labels, the coordinates of all maps, and the features if they are not too many.
    """
    names: list[str] = []
    columns = [np.empty((len(rows), 0))]
    for each in maps:
        names += [f"{each.key}{j}" for j in range(each.embedding.shape[1])]
        columns.append(each.embedding[rows].astype(np.float64))
    note = ""
    if data.has_data and data.n_features * len(rows) <= _MOST_CELLS:
        names += data.feature_names
        columns.append(data.rows(rows).astype(np.float64))
    elif data.has_data:
        note = f"The {data.n_features:,} features are left out, because the file would be large."
    ids = data.table.ids
    table = replace(
        data.table,
        X=np.column_stack(columns),
        names=tuple(unique_names(names)),
        ids=np.array([f"row {row + 1}" for row in rows]) if ids is None else np.asarray(ids)[rows],
        labels={name: _written(np.asarray(values)[rows]) for name, values in data.labels.items()},
    )
    with tempfile.TemporaryDirectory() as folder:
        text = write_table(Path(folder) / "selection.csv", table).read_bytes()
    return "selection.csv", text, note


def _written(values: Any) -> Any:
    """Labels of an exported file; missing ones are empty."""
    missing = missing_entries(values)
    if values.dtype.kind != "O" or not missing.any():
        return values
    return np.where(missing, "", values)
