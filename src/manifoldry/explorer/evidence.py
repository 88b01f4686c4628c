"""How far a map can be trusted, as the page shows it: metrics, diagrams, and values of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from manifoldry import assess
from manifoldry.methods.choice import assessed_rows
from manifoldry.metrics import stability, unpredictability
from manifoldry.metrics.assess import Assessment
from manifoldry.metrics.shepard import Shepard
from manifoldry.metrics.summary import DEFAULT_THRESHOLDS
from manifoldry.reporting.maps import sample_rows
from manifoldry.reporting.metric_words import METRIC_COLUMNS, neighbor_grade, page_sentences
from manifoldry.util.typing import Array, IntArray

Message = dict[str, Any]
Progress = Callable[[float, str], None]
# Pairs of rows that are ranked to know the evidence of each row: all rows of 22 000.
_RANKED_PAIRS = 5e8
_LEAST_SAMPLE = 1000
_BINS = 60  # of a Shepard diagram in each direction
_MOST_ON_A_CURVE = 100
_MOST_REFITTED = 2000  # rows of the sample whose refits are compared
_MOST_REDUNDANCY = 20_000  # rows from which redundancy is estimated


def evidence_of(X: Any, model: Any, embedding: Array, task: Message, progress: Progress) -> Message:
    """Metrics of a map in the metric of its method, and values of each row by name.

    The model is None if only coordinates are known. The task has labels or None, the metric, and
    the seed of samples.
    """
    notes: list[str] = []
    labels, seed = task["labels"], task["seed"]
    sample = assessed_rows(len(embedding), notes.append)
    progress(np.nan, "comparing neighbors and distances")
    shown = embedding if model is None else model
    found = assess(X, shown, labels, metric=task["metric"], sample=sample, random_state=seed)
    progress(np.nan, "computing the trustworthiness of each row")
    colors = row_evidence(found, seed)
    eigenvalues = None if model is None else getattr(model, "eigenvalues_", None)
    return {
        "grade": neighbor_grade(found.metrics),
        "sentences": page_sentences(found.summary),
        "metrics": _metrics(found),
        "spectrum": None if eigenvalues is None else _spectrum(model),
        "redundancy": [] if eigenvalues is None else _redundancy(embedding, seed),
        "redundant_below": DEFAULT_THRESHOLDS.redundant,
        "shepard": _shepard(found.shepard),
        "coranking": _coranking(found),
        "stability": None,
        "sampled": " ".join(notes),
        "colors": colors,
    }


def _metrics(found: Assessment) -> list[Message]:
    described = []
    for name, column in METRIC_COLUMNS.items():
        value = found.metrics.get(name)
        if value is not None:
            bounds = (None, None) if value.exact else (value.low, value.high)
            described.append({
                "name": name, "title": column.title.replace("-", ""), "help": column.help,
                "value": float(value), "low": bounds[0], "high": bounds[1],
                "larger_is_better": column.larger_is_better,
            })  # fmt: skip
    return described


def row_evidence(found: Assessment, seed: int) -> dict[str, Any]:
    """Values of each row with a note; of many rows, estimated from a sample of them."""
    pair = found.pair
    most = max(_LEAST_SAMPLE, int(_RANKED_PAIRS / pair.n))
    points = sample_rows(pair.n, most, seed)
    values = found.of_points(points)
    if found.distortion is not None:  # known for all rows
        values |= {
            "magnification": found.distortion.relative_scale,
            "anisotropy": found.distortion.anisotropy,
        }
    colors = {}
    for name, each in values.items():
        note = ""
        if len(each) < pair.n:
            each, note = _spread(each, points, pair.Y), _spread_note(len(points))
        whole = pair.expand_to_all_rows(each).astype(np.float32)
        colors[name.replace("_", " ")] = [whole, note]
    return colors


def _spread(values: Array, points: IntArray, Y: Array) -> Array:
    """Values of all points of a map: those of the nearest of some points."""
    known = np.isfinite(values)
    return np.asarray(values[known][KDTree(Y[points[known]]).query(Y)[1]])


def _spread_note(n: int) -> str:
    return f"estimated: each row has the value of the nearest of {n:,} random rows on the map"


def _spectrum(model: Any) -> Message:
    """Eigenvalues in their order, with those that the solver computed beyond the kept ones."""
    kept = len(model.eigenvalues_)
    values = np.asarray(getattr(model, "computed_eigenvalues_", model.eigenvalues_), dtype=float)
    return {"values": values.ravel()[: max(kept, 30)].tolist(), "kept": kept,
            "title": f"eigenvalues of {type(model).__name__}"}  # fmt: skip


def _redundancy(embedding: Array, seed: int) -> list[float]:
    if embedding.shape[1] < 2:
        return []
    rows = sample_rows(len(embedding), _MOST_REDUNDANCY, seed)
    return [float(each) for each in unpredictability(np.asarray(embedding[rows], dtype=float))]


def _shepard(diagram: Shepard) -> Message:
    """Numbers of pairs by their distances in the data (columns) and on the map (rows)."""
    data, on_map = diagram.data_distances, diagram.embedding_distances
    # A single far pair would leave all others in a corner.
    ends = [float(np.quantile(each, 0.999)) or 1.0 for each in (data, on_map)]
    counts, *_ = np.histogram2d(on_map, data, bins=_BINS,
                                range=((0, ends[1]), (0, ends[0])))  # fmt: skip
    return {
        "counts": counts.ravel().astype(np.uint32), "bins": _BINS, "data_max": ends[0],
        "map_max": ends[1], "correlation": float(diagram.spearman),
    }  # fmt: skip


def _coranking(found: Assessment) -> Message:
    curve = found.curves["embedding"]
    sizes, kept = curve.sizes[:-1], curve.r_nx
    places = np.unique(np.geomspace(1, len(sizes), _MOST_ON_A_CURVE).astype(int)) - 1
    return {"sizes": sizes[places].tolist(), "kept": kept[places].tolist(),
            "area": float(curve.area)}  # fmt: skip


def stability_of(X: Any, estimator: Any, embedding: Array, task: Message) -> Message:
    """How far rows move if the method is fitted again to parts of the data."""
    rows = sample_rows(X.shape[0], _MOST_REFITTED, task["seed"])
    found = stability(estimator, X[rows], n_resamples=task["n_refits"], random_state=task["seed"])
    values, note = found.per_point, ""
    if len(rows) < X.shape[0]:
        note = (
            f"of a random sample of {len(rows):,} rows, embedded alone; {_spread_note(len(rows))}"
        )
        values = _spread(values, rows, np.nan_to_num(np.asarray(embedding, dtype=float)))
    return {
        "verdict": found.verdict, "variability": float(found.variability),
        "n_refits": found.n_resamples, "color": [values.astype(np.float32), note],
    }  # fmt: skip
