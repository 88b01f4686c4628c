"""Rows of distributed data that a model keeps to place others, and the error of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from manifoldry.distributed.scheduler import broadcast, delayed
from manifoldry.exceptions import ManifoldryWarning, ignoring
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.util.named_rows import rows_for
from manifoldry.util.typing import Array, IntArray


class KeptRows(NamedTuple):
    """Some rows of distributed data, with what is known of them, in the order of the data."""

    rows: IntArray
    points: Array
    values: Array


def kept_rows(graph: DistributedGraph, values: Sequence[Any], chosen: IntArray) -> Any:
    """Return the task that brings some rows of a graph together on one worker.

    Parameters
    ----------
    graph : DistributedGraph
        The graph, with the points of its parts.
    values : list of Delayed
        For each part, an array with as many rows. Rows with values that are not finite are left
        out.
    chosen : array of int
        The rows of the data, ascending.

    Returns
    -------
    Delayed
        A :class:`KeptRows`.
    """
    take, join, shared = delayed(_of_part), delayed(_together), broadcast(chosen)
    parts = zip(graph.order.rows, graph.points, values, strict=True)
    return join([take(*part, shared) for part in parts])


def placement_error(model: Any, X: Array, Y: Array) -> float:
    """Return how far a model places rows from their coordinates, relative to the size of the map.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    X : array of shape (n, n_features)
        Rows that it was not fitted to.
    Y : array of shape (n, n_components)
        Their coordinates.

    Returns
    -------
    float
        Root mean square distance from these coordinates, divided by that of the model's own rows
        from their mean; 0 without rows.
    """
    if len(X) == 0:
        return 0.0
    with ignoring(ManifoldryWarning):  # of rows unlike the others, which the fit has seen
        steps = np.asarray(model.transform(rows_for(model, X))) - Y
    own = model.embedding_.astype(np.float64)
    spread = np.square(own - own.mean(axis=0)).sum(axis=1).mean()
    error = np.square(steps, dtype=np.float64).sum(axis=1).mean()
    return float(np.sqrt(error / spread)) if spread > 0 else 0.0


def _of_part(rows: IntArray, points: Array, values: Array, chosen: IntArray) -> KeptRows:
    some = np.flatnonzero(np.isin(rows, chosen))
    some = some[np.isfinite(values[some]).all(axis=1)]
    return KeptRows(rows[some], points[some], values[some])


def _together(parts: list[KeptRows]) -> KeptRows:
    rows, points, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(rows)
    return KeptRows(rows[order], points[order], values[order])
