"""Walks along the data between two points of an embedding."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from manifoldry.neighbors.geodesics import shortest_path
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import read_rows


@dataclass(frozen=True, eq=False)
class Walk:
    """Result of :func:`walk`; draw it with :func:`manifoldry.plotting.plot_walk`.

    Attributes
    ----------
    rows : array of shape (n_visited,)
        Training rows that the path visits, from start to stop.
    lengths : array of shape (n_visited,)
        Distance in the data from the start to each of them, along the path.
    coordinates : array of shape (n_steps, n_components)
        Points of the path in the embedding.
    data : array of shape (n_steps, n_features) or None
        The same points in the data; None if the data are not known.
    """

    rows: IntArray
    lengths: Array
    coordinates: Array
    data: Array | None


def walk(
    self: Any,
    X: Any,
    start: int,
    stop: int,
    n_steps: int | None = None,
    *,
    n_neighbors: int | None = None,
) -> Walk:
    """Walk along the data from one training point to another.

    A straight line in the embedding may cross regions without data, or other groups of points.
    This path visits training points only: it is the shortest one along edges between neighbors in
    the data. Its steps are spaced equally in the data, and interpolated between the points that it
    visits. If the embedding separates two neighbors, ``coordinates`` cross the gap between them,
    but ``data`` do not.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The training data, as passed to ``fit``, or a neighbor graph of them.
    start, stop : int
        Indices of two training rows.
    n_steps : int, default=None
        Number of points on the path, both ends included; by default the visited training points
        themselves.
    n_neighbors : int, default=None
        Neighbors per point of the graph; by default that of the estimator if it has one, else 10.
        With many, the path may cross gaps in the data.

    Returns
    -------
    Walk
        With ``coordinates`` in the embedding, ``data`` and visited ``rows``;
        ``inverse_transform(coordinates)`` gives the data as the embedding describes them.

    Examples
    --------
    >>> from manifoldry import Isomap
    >>> from manifoldry.datasets import make_s_curve
    >>> X = make_s_curve(500, random_state=0).X
    >>> model = Isomap(n_neighbors=8).fit(X)
    >>> path = model.walk(X, 0, 1, n_steps=5)
    >>> path.coordinates.shape, path.data.shape, model.inverse_transform(path.coordinates).shape
    ((5, 2), (5, 3), (5, 3))
    """
    check_is_fitted(self)
    graph = X if isinstance(X, NeighborGraph) else _graph(self, X, n_neighbors)
    n = len(self.embedding_)
    if graph.n_reference != n:
        raise ValueError(
            f"X has {graph.n_reference} rows, but the training data have {n}; pass the training "
            "data"
        )
    embedded = np.isfinite(self.embedding_).all(axis=1)
    ends = _check_row("start", start, embedded), _check_row("stop", stop, embedded)
    rows, lengths = shortest_path(graph, *ends, embedded)
    weights = _interpolation(lengths, n_steps)
    points = graph.index.points
    return Walk(
        rows,
        lengths,
        np.asarray(weights @ self.embedding_[rows]).astype(self.embedding_.dtype, copy=False),
        None if points is None else np.asarray(weights @ points[rows]),
    )


def _graph(model: Any, X: Any, n_neighbors: int | None) -> NeighborGraph:
    """Return the neighbor graph of the training data, in the metric of the model."""
    parameters = model.get_params(deep=True)
    for wrapped in ("", "estimator__"):
        if f"{wrapped}metric" in parameters:
            break
    metric = parameters.get(f"{wrapped}metric", "euclidean")
    if get_tags(model).input_tags.pairwise and not _is_precomputed(metric):
        raise ValueError(
            f"this {type(model).__name__} was fitted on affinities or kernel values, which have no "
            "neighbors; pass NeighborGraph.build(data) as X"
        )
    if n_neighbors is None:
        n_neighbors = parameters.get(f"{wrapped}n_neighbors")
    data = read_rows(X, least=2)
    options = parameters.get(f"{wrapped}metric_params")
    return NeighborGraph.build(data, n_neighbors, metric=metric, metric_params=options, copy=False)


def _is_precomputed(metric: Any) -> bool:
    return isinstance(metric, str) and metric == "precomputed"


def _check_row(name: str, row: int, embedded: Any) -> int:
    row = check_count(name, row, minimum=0)
    if row >= len(embedded):
        raise ValueError(f"{name}={row} must be the index of one of {len(embedded)} training rows")
    if not embedded[row]:
        raise ValueError(f"{name}={row} is a row that was not embedded; choose another")
    return row


def _interpolation(lengths: Array, n_steps: int | None) -> Array:
    """Return weights of the visited points, (n_steps, n_visited), at equal steps of the length."""
    if n_steps is None:
        return np.eye(len(lengths))
    at = np.linspace(0, lengths[-1], check_count("n_steps", n_steps, minimum=2))
    return np.column_stack([np.interp(at, lengths, unit) for unit in np.eye(len(lengths))])
