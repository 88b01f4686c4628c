"""The model of some rows of distributed data, which places others, after it was fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from manifoldry.base.distributed import say
from manifoldry.base.dominant_points import warn_if_dominated
from manifoldry.base.placement import KeptRows, kept_rows, placement_error
from manifoldry.distributed.options import current_options
from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.util.typing import IntArray

# Rows on which the error of placing new rows is measured.
CHECKED = 1000


class FittedModel(NamedTuple):
    """What a worker returns."""

    model: Any
    rows: IntArray
    """The rows of the data to which it was fitted."""
    formula: Any = None
    """How it places rows."""


def received_model(
    fitted: Any, graph: DistributedGraph, Y: Sequence[Any], checked: IntArray
) -> tuple[FittedModel, float]:
    """Return a model from its worker, and the error with which it places other rows.

    Parameters
    ----------
    fitted : Delayed
        A :class:`FittedModel` and the warnings of the fit.
    graph : DistributedGraph
        The graph of all rows.
    Y : list of Delayed
        Their coordinates, part by part.
    checked : array of int
        Rows on which the error is measured, ascending.

    Returns
    -------
    found : FittedModel
        The model. Its warnings were issued here.
    error : float
        The error, relative to the size of the map.
    """
    error = delayed(_error)(fitted, kept_rows(graph, Y, checked))
    verbose = current_options().verbose
    (found, said), error = compute([fitted, error], "placing rows", verbose=verbose)
    say(said)
    warn_if_dominated(found.model.embedding_, has_neighbors=True, rows=found.rows)
    return found, error


def _error(fitted: tuple[FittedModel, Any], kept: KeptRows) -> float:
    return placement_error(fitted[0].model, kept.points, kept.values)
