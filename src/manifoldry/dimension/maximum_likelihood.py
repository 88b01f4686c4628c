"""Dimension from how fast the number of neighbours grows with distance."""

from typing import Any

import numpy as np

from manifoldry.dimension.result import Dimension, error_of_mean
from manifoldry.dimension.source import Source
from manifoldry.util.checks import check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array


def maximum_likelihood(X: Any, *, n_neighbors: tuple[int, int] | None = None) -> Dimension:
    """Estimate the dimension from the distances to 10 to 20 neighbours (Levina & Bickel 2004).

    The inverse estimate at a point is the mean of log(T_k/T_j), T_j being the distance to its
    j-th neighbour. Inverses are averaged over points, as MacKay & Ghahramani have it, and the
    dimensions over all k in a range. It is the most precise of the methods that look at neighbours
    alone; noise smaller than the 10th neighbour's distance hardly shows, edges make it come out
    low, the more so the higher the dimension.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data; copies of a row count once.
    n_neighbors : (int, int), default=None
        Smallest and largest number of neighbours to average over, at least 3; by default 10 and
        20, or what the data allow.

    Returns
    -------
    Dimension
        With the dimension around every point: (k − 2)/Σ log(T_k/T_j), which is free of bias for
        one point, averaged over k.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.dimension import maximum_likelihood
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> sphere = X / np.linalg.norm(X, axis=1)[:, None]
    >>> maximum_likelihood(sphere)
    maximum_likelihood: 1.98 [1.93 to 2.02 by chance alone] (1000 points, 10 to 20 neighbours)
    """
    source = Source.of(X)
    low, high = _resolve(source, n_neighbors)
    distances = source.nearest(high)[1]
    full = np.isfinite(distances[:, -1])
    if not full.any():
        raise ValueError(f"no point has {high} distinct neighbours; build the graph with more")
    inverse = inverse_dimensions(distances[full], low)
    if not inverse.any():
        raise ValueError(
            f"all {high} nearest neighbours of every point are equally far, as in a simplex: no "
            "finite dimension explains that"
        )
    dimensions = 1 / inverse.mean(axis=0)  # of every k
    # To first order, what each point contributes to the mean of these dimensions.
    influence = -(inverse * dimensions**2).mean(axis=1)
    value = Estimate.positive(float(dimensions.mean()), error_of_mean(influence, int(full.sum())))
    note = f"{full.sum()} points, {low} to {high} neighbours"
    per_point = np.full(source.n, np.nan)
    per_point[full] = _per_point(inverse, low)
    return Dimension(value, "maximum_likelihood", note, source.to_samples(per_point))


def _resolve(
    source: Source, n_neighbors: tuple[int, int] | None, fewest: int = 10
) -> tuple[int, int]:
    """The range of neighbours: what was asked for, or from `fewest` to the usual number."""
    if n_neighbors is None:
        high = source.resolve_neighbors(None, least=3)
        return min(fewest, max(3, high // 2)), high
    low, high = n_neighbors
    check_count("n_neighbors[0]", low, minimum=3)
    if high < low:
        raise ValueError(f"n_neighbors={n_neighbors} must ascend; pass the smaller number first")
    return low, source.resolve_neighbors(high, least=3)


def inverse_dimensions(distances: Array, low: int) -> Array:
    """Mean of log(T_k/T_j) over j < k at every point, for k from `low` to all neighbours.

    `distances` is (n, high), ascending; the result is (n, high − low + 1).
    """
    logs = np.log(distances)
    k = np.arange(low, logs.shape[1] + 1)
    before = np.cumsum(logs, axis=1)[:, k - 2]  # Σ_{j<k} log T_j
    return np.asarray(np.maximum(logs[:, k - 1] - before / (k - 1), 0.0))


def _per_point(inverse: Array, low: int) -> Array:
    k = low + np.arange(inverse.shape[1])
    with np.errstate(divide="ignore"):
        each = (k - 2) / (k - 1) / inverse
    each[np.isinf(each)] = np.nan  # neighbours that are all equally far
    told = np.isfinite(each)
    total = np.where(told, each, 0.0).sum(axis=1)
    return np.where(told.any(axis=1), total / np.maximum(told.sum(axis=1), 1), np.nan)
