"""Walks along the data between two points of an embedding."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.resources import on_its_device
from manifoldry.neighbors.disconnected import DisconnectedPolicy
from manifoldry.neighbors.geodesics import shortest_path
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import check_data


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
        The same points in the data; None if the data are not known. With ``n_steps``, a point
        between two visited rows is their weighted mean: for images, a blend of two.
    """

    rows: IntArray
    lengths: Array
    coordinates: Array
    data: Array | None


@on_its_device
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
    This path leads from training point to training point: it is the shortest one along edges
    between neighbors in the data. With `n_steps`, its points are spaced equally in the data, and
    interpolated between the training points that it visits. If the embedding separates two
    neighbors, ``coordinates`` cross the gap between them, but ``data`` do not.

    Between connected components of the neighbor graph there is no path, unless the estimator has
    ``disconnected="join"``: then they are joined by the shortest edges, as in its fit.

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
        Neighbors per point of the graph; by default that of the estimator, or its radius, if it
        has one, else 10. With many, the path may cross gaps in the data. Of a given graph, the
        nearest ones; by default all.

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
    embedded = np.isfinite(self.embedding_).all(axis=1)
    ends = _check_row("start", start, embedded), _check_row("stop", stop, embedded)
    if n_steps is not None:
        n_steps = check_count("n_steps", n_steps, minimum=2)
    graph = _joined(self, *_graph(self, X, n_neighbors), ends)
    rows, lengths = shortest_path(graph, *ends, embedded)
    weights = _interpolation(lengths, n_steps)
    points = graph.index.points
    return Walk(
        rows,
        lengths,
        _average(weights, self.embedding_[rows]),
        None if points is None else _average(weights, points[rows]),
    )


def _graph(model: Any, X: Any, n_neighbors: int | None) -> tuple[NeighborGraph, Matrix | None]:
    """Return the neighbor graph of the training data, and the distances if `X` is of distances."""
    if isinstance(X, NeighborGraph):
        _check_length(model, X.n_reference)
        return X if n_neighbors is None else X.truncate(n_neighbors), None
    parameters = _parameters(model)
    options: dict[str, Any] = {
        name: parameters.get(name) for name in ("n_neighbors", "radius", "metric_params")
    }
    metric: Any = parameters.get("metric", "euclidean")
    precomputed = isinstance(metric, str) and metric == "precomputed"
    if get_tags(model).input_tags.pairwise and not precomputed:
        raise ValueError(
            f"this {type(model).__name__} was fitted on affinities or kernel values, which have no "
            "neighbors; pass NeighborGraph.build(data) as X"
        )
    if n_neighbors is not None:
        options |= {"n_neighbors": n_neighbors, "radius": None}
    data = check_data(model, X, reset=False)
    _check_length(model, data.shape[0])
    graph = NeighborGraph.build(data, metric=metric, copy=False, **options)
    return graph, data if precomputed and not sparse.issparse(data) else None


def _joined(
    model: Any, graph: NeighborGraph, distances: Matrix | None, ends: tuple[int, int]
) -> NeighborGraph:
    """Return the graph, with joined components if the model joins them and the ends need it."""
    labels = graph.components()[1]
    if labels[ends[0]] == labels[ends[1]] or _parameters(model).get("disconnected") != "join":
        return graph
    return DisconnectedPolicy("join").connect(graph, distances)


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of the model, or of the estimator inside if the model wraps one."""
    while (inner := getattr(model, "estimator_", getattr(model, "estimator", None))) is not None:
        model = inner
    return dict(model.get_params(deep=False))


def _check_length(model: Any, n: int) -> None:
    expected = len(model.embedding_)
    if n != expected:
        raise ValueError(
            f"X has {n} rows, but the training data have {expected}; pass the training data"
        )


def _average(weights: Array, rows: Matrix) -> Array:
    """Return weighted means of rows, in their data type."""
    return np.asarray(weights @ rows).astype(rows.dtype, copy=False)


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
    at = np.linspace(0, lengths[-1], n_steps)
    return np.column_stack([np.interp(at, lengths, unit) for unit in np.eye(len(lengths))])
