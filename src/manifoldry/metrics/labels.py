"""Whether points of one label are together on the map."""

from typing import Any

import numpy as np

from manifoldry._checks import check_count
from manifoldry._estimate import Estimate
from manifoldry._typing import Array, IntArray, RandomState
from manifoldry.metrics.distance_rows import distance_rows, map_rows
from manifoldry.metrics.pair import read_map, sample_points
from manifoldry.neighbors.choose import choose_index


def knn_accuracy(
    embedding: Any, labels: Any, *, n_neighbors: int = 5, per_point: bool = False
) -> Estimate | Array:
    """Share of points whose label most of their neighbours on the map have.

    Each point is left out of its own vote; ties go to the label of the nearest. The interval is
    about other points of the same kind, not about a sample.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components), or a fitted estimator
        The map, or the data themselves, for comparison.
    labels : array of shape (n_samples,)
        Labels; strings or numbers.
    n_neighbors : int, default=5
        Neighbours that vote.
    per_point : bool, default=False
        Return for every point the share of its neighbours that have its label.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> float(knn_accuracy(line, list("aaabbb"), n_neighbors=2))
    1.0
    """
    Y, codes, rows = _labelled(embedding, labels)
    k = check_count("n_neighbors", n_neighbors)
    if k >= len(Y):
        raise ValueError(
            f"n_neighbors={k} must be less than the {len(Y)} points on the map; "
            f"pass n_neighbors={len(Y) - 1} or fewer"
        )
    members = choose_index(Y).others(Y, k).indices
    if per_point:
        return _for_all_rows((codes[members] == codes[:, None]).mean(axis=1), rows, labels)
    return accuracy_of(members, codes)


def accuracy_of(members: IntArray, codes: IntArray) -> Estimate:
    """Share of points whose code most of their neighbours (n, k) have."""
    return Estimate.of_mean((_winners(codes[members]) == codes).astype(float))


def silhouette(
    embedding: Any,
    labels: Any,
    *,
    sample: Any = "auto",
    per_point: bool = False,
    random_state: RandomState = None,
) -> Estimate | Array:
    """How much nearer points are to their own label than to the next: from −1 to 1.

    Equal to :func:`sklearn.metrics.silhouette_score`, on a sample of points beyond 10 000.

    Parameters
    ----------
    embedding, labels
        As for :func:`knn_accuracy`.
    sample, per_point, random_state
        As for :func:`trustworthiness`.
    """
    Y, codes, rows = _labelled(embedding, labels)
    counts = np.bincount(codes)
    if len(counts) < 2 or len(counts) >= len(Y):
        raise ValueError(
            f"labels has {len(counts)} different values for {len(Y)} points; silhouettes need at "
            "least 2, and fewer than points"
        )
    if per_point:
        return _for_all_rows(_silhouettes(Y, codes, counts, np.arange(len(Y))), rows, labels)
    points = sample_points(len(Y), sample, random_state)
    return Estimate.of_mean(_silhouettes(Y, codes, counts, points), len(Y))


def _silhouettes(Y: Array, codes: IntArray, counts: IntArray, points: IntArray) -> Array:
    distances, member = distance_rows(Y), np.eye(len(counts))[codes]

    def block(rows: IntArray) -> Array:
        own = codes[rows]
        sums = distances.distances(rows) @ member  # (n_rows, n_labels)
        means = sums / counts
        line = np.arange(len(rows))
        inside = sums[line, own] / np.maximum(counts[own] - 1, 1)
        means[line, own] = np.inf
        outside = means.min(axis=1)
        larger = np.maximum(inside, outside)
        values = np.divide(outside - inside, larger, out=np.zeros(len(rows)), where=larger > 0)
        return np.where(counts[own] > 1, values, 0.0)

    return np.concatenate(map_rows(block, points, len(Y)))


def _winners(votes: IntArray) -> IntArray:
    """The most frequent entry of every row, ties to the one that comes first."""
    same = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    return np.take_along_axis(votes, same.argmax(axis=1)[:, None], axis=1)[:, 0]


def _labelled(embedding: Any, labels: Any) -> tuple[Array, IntArray, IntArray]:
    """Positions on the map, their labels as 0, 1, …, and which rows they are."""
    Y = read_map(embedding)
    codes = label_codes(labels, len(Y))
    rows = np.flatnonzero(np.isfinite(Y).all(axis=1))
    if len(rows) < 2:
        raise ValueError(f"{len(rows)} points are on the map; at least 2 are needed")
    return Y[rows], np.unique(codes[rows], return_inverse=True)[1].ravel(), rows


def label_codes(labels: Any, n: int) -> IntArray:
    """Labels of n points as whole numbers from 0."""
    names = np.asarray(labels)
    if names.shape != (n,):
        raise ValueError(f"labels has shape {names.shape}; pass one for each of {n} points")
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise ValueError("labels has NaN; drop the points whose label is unknown")
    if names.dtype.kind == "O":
        names = names.astype(str)
    return np.asarray(np.unique(names, return_inverse=True)[1]).ravel()


def _for_all_rows(values: Array, rows: IntArray, labels: Any) -> Array:
    out = np.full(len(labels), np.nan)
    out[rows] = values
    return out
