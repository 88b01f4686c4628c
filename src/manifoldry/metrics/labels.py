"""Agreement of labels between neighbors in an embedding."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.base.docs import shared_docs
from manifoldry.device import Device
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.metrics.distance_rows import distance_rows, map_rows
from manifoldry.metrics.on_device import on_device_if_possible
from manifoldry.metrics.pair import read_embedding, sample_points
from manifoldry.neighbors.choose import choose_index
from manifoldry.util.array_like import array_like, labels_of
from manifoldry.util.checks import check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import read_rows, row_blocks


@on_device_of_arguments
def knn_accuracy(
    embedding: Any, labels: Any, *, n_neighbors: int | None = None, per_point: bool = False
) -> Estimate | Array:
    """Leave-one-out accuracy of a k-nearest-neighbors classifier in the embedding.

    Ties between labels go to the one of the nearest neighbor. The confidence interval treats the
    points as a sample of a population.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components), or a fitted estimator
        The embedding, or the data themselves, for comparison.
    labels : array of shape (n_samples,) or str
        Labels, strings or numbers; or the name of a column of ``obs`` if the embedding is
        ``(adata, key)``.
    n_neighbors : int, default=None
        Number of neighbors; by default 5, or all other points if there are fewer.
    per_point : bool, default=False
        Return the fraction of its neighbors with the same label, for every point.

    Returns
    -------
    Estimate or array of shape (n_samples,)
        The accuracy, a float with its 95 % confidence interval; with `per_point`, the fractions.

    See Also
    --------
    silhouette : how well classes are separated.
    trustworthiness : without labels.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> float(knn_accuracy(line, list("aaabbb"), n_neighbors=2))
    1.0
    """
    Y, codes, embedded = _labeled(embedding, labels)
    k = _resolve_neighbors(n_neighbors, Y.shape[0])
    members = choose_index(Y).reference_neighbors(Y, k).indices
    if per_point:
        return _expand_to_all_rows((codes[members] == codes[:, None]).mean(axis=1), embedded)
    return accuracy_of(members, codes)


def _resolve_neighbors(n_neighbors: int | None, n: int, default: int = 5) -> int:
    if n_neighbors is None:
        return min(default, n - 1)
    k = check_count("n_neighbors", n_neighbors)
    if k >= n:
        raise ValueError(
            f"n_neighbors={k} must be less than the {n} embedded points; "
            f"pass n_neighbors={n - 1} or fewer"
        )
    return k


def accuracy_of(members: IntArray, codes: IntArray) -> Estimate:
    """Fraction of points whose code is the most frequent among their neighbors (n, k)."""
    hits = [_winners(codes[members[block]]) == codes[block] for block in _blocks(members)]
    return Estimate.of_fraction(np.concatenate(hits))


def _blocks(members: IntArray) -> list[slice]:
    return row_blocks(len(members), members.shape[1] ** 2)


@on_device_of_arguments
@shared_docs
def silhouette(
    embedding: Any,
    labels: Any,
    *,
    sample: Any = "auto",
    per_point: bool = False,
    random_state: RandomState = None,
) -> Estimate | Array:
    """Mean silhouette coefficient of the labels in an embedding, from −1 to 1.

    Equal to :func:`sklearn.metrics.silhouette_score`; beyond 10 000 points it is evaluated at a
    sample of them.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components), or a fitted estimator
        The embedding, or the data themselves, for comparison. Rows of NaN are points that were not
        embedded.
    labels : array of shape (n_samples,) or str
        Labels, strings or numbers, of at least two classes; or the name of a column of ``obs`` if
        the embedding is ``(adata, key)``.
    {metric_sample}
    {per_point}
    {sample_seed}

    Returns
    -------
    {mean_or_values}

    See Also
    --------
    knn_accuracy : whether neighbors have the same label.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.metrics import silhouette
    >>> line = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> round(float(silhouette(line, list("aaabbb"))), 2)
    0.87
    >>> bool(silhouette(line, list("ababab")) < 0)
    True
    """
    Y, codes, embedded = _labeled(embedding, labels)
    counts = np.bincount(codes)
    if len(counts) < 2 or len(counts) >= Y.shape[0]:
        raise ValueError(
            f"labels has {len(counts)} different values for {Y.shape[0]} points; silhouettes need "
            "at least 2 and fewer than the number of points"
        )
    if per_point:
        return _expand_to_all_rows(_silhouettes(Y, codes, counts, np.arange(Y.shape[0])), embedded)
    points = sample_points(Y.shape[0], sample, random_state)
    values = _silhouettes(Y, codes, counts, points)
    return Estimate.of_mean(values, Y.shape[0], within=(-1.0, 1.0))


def _silhouettes(Y: Matrix, codes: IntArray, counts: IntArray, points: IntArray) -> Array:
    (distances,) = on_device_if_possible(distance_rows(Y))
    sums_of = _label_sums(distances.device, codes)

    def block(rows: IntArray) -> Array:
        own = codes[rows]
        sums = sums_of(distances.distances(rows))
        means = sums / counts
        line = np.arange(len(rows))
        inside = sums[line, own] / np.maximum(counts[own] - 1, 1)
        means[line, own] = np.inf
        outside = means.min(axis=1)
        larger = np.maximum(inside, outside)
        values = np.divide(outside - inside, larger, out=np.zeros(len(rows)), where=larger > 0)
        return np.where(counts[own] > 1, values, 0.0)

    return np.concatenate(map_rows(block, points, len(codes), device=distances.device))


def _label_sums(device: Device | None, codes: IntArray) -> Callable[[Array], Array]:
    """The function that sums distances (n_rows, n) by the label of the second point."""
    member = sparse.csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)))
    if device is None:
        return lambda D: np.asarray(D @ member)
    transposed = device.rows(sparse.csr_array(member.T))
    return lambda D: device.host(device.product(transposed, D.T)).T


def _winners(votes: IntArray) -> IntArray:
    """The most frequent entry of every row; of several, the one that comes first."""
    same = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    return np.take_along_axis(votes, same.argmax(axis=1)[:, None], axis=1)[:, 0]


def _labeled(embedding: Any, labels: Any) -> tuple[Matrix, IntArray, NDArray[np.bool_]]:
    """Embedded points, their labels as integers 0, 1, …, and which rows are embedded."""
    if sparse.issparse(embedding):
        Y = read_rows(embedding, least=2)
        embedded = np.ones(Y.shape[0], dtype=bool)
    else:
        Y = read_embedding(embedding)
        embedded = np.asarray(~np.isnan(Y).any(axis=1))
    codes = label_codes(labels_of(labels, embedding), Y.shape[0])
    if embedded.sum() < 2:
        raise ValueError(f"{embedded.sum()} points are embedded (not NaN); at least 2 are needed")
    return Y[embedded], np.unique(codes[embedded], return_inverse=True)[1].ravel(), embedded


def label_codes(labels: Any, n: int) -> IntArray:
    """Labels of n points as integers from 0."""
    names = np.asarray(array_like(labels, "labels"))
    names = names[:, 0] if names.shape == (n, 1) else names
    if names.shape != (n,):
        raise ValueError(f"labels has shape {names.shape}, expected ({n},)")
    check_none_missing(n_missing(names), n)
    if names.dtype.kind == "O":  # 1 and "1" are different labels
        names = np.array([f"{type(name).__name__} {name}" for name in names])
    return np.asarray(np.unique(names, return_inverse=True)[1]).ravel()


def n_missing(labels: Any) -> int:
    """Number of labels that are None or NaN."""
    return sum(name is None or name != name for name in np.asarray(labels).tolist())


def check_none_missing(missing: int, n: int) -> None:
    """Raise ValueError if some of n labels are missing."""
    if missing:
        raise ValueError(
            f"labels are missing (None or NaN) for {missing} of {n} points; drop these "
            "points, or give them a label"
        )


def _expand_to_all_rows(values: Array, embedded: NDArray[np.bool_]) -> Array:
    out = np.full(len(embedded), np.nan)
    out[embedded] = values
    return out
