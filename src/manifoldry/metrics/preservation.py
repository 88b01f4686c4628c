"""Trustworthiness, continuity and neighbor preservation."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.base.docs import shared_docs
from manifoldry.device import device_of
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.metrics.distance_rows import DistanceRows, map_rows
from manifoldry.metrics.on_device import device_ranks, on_device_if_possible, smallest_columns
from manifoldry.metrics.pair import DEFAULT_N_NEIGHBORS, DataEmbeddingPair
from manifoldry.util.arrays import to_numpy
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray, RandomState


@dataclass(frozen=True, eq=False)
class NeighborRanks:
    """Ranks, in one of data and embedding, of the k nearest neighbors in the other.

    Parameters
    ----------
    ranks : array of shape (n_points, k)
        Rank, from 1 for the nearest, in the second space of the neighbors in the first, which
        are in order of distance.
    points : array of shape (n_points,)
        Indices of the points.
    n : int
        Total number of points.
    """

    ranks: IntArray
    points: IntArray
    n: int

    @classmethod
    def of_embedding(cls, pair: DataEmbeddingPair, k: int, points: IntArray) -> "NeighborRanks":
        """Ranks in the data of the nearest neighbors in the embedding."""
        return cls._between(pair.embedding_distances, pair.data_distances, k, points)

    @classmethod
    def of_data(cls, pair: DataEmbeddingPair, k: int, points: IntArray) -> "NeighborRanks":
        """Ranks in the embedding of the nearest neighbors in the data."""
        return cls._between(pair.data_distances, pair.embedding_distances, k, points)

    @classmethod
    def _between(
        cls, near: DistanceRows, other: DistanceRows, k: int, points: IntArray
    ) -> "NeighborRanks":
        near, other = on_device_if_possible(near, other)

        def ranks(block: IntArray) -> IntArray:
            chosen = smallest_columns(near.neighbor_keys(block), k)
            return np.asarray(to_numpy(ranks_of(other.neighbor_keys(block), chosen)), np.intp)

        found = map_rows(ranks, points, near.n, device=near.device)
        return cls(np.concatenate(found), points, near.n)

    def preservation(self, k: int) -> Array:
        """Fraction of each point's k neighbors that have rank k or less in the second space."""
        return (self.ranks[:, :k] <= k).mean(axis=1)

    def rank_penalty(self, k: int) -> Array:
        """Sum of the ranks in excess of k of each point's k neighbors, scaled to 0 … 1."""
        beyond = np.maximum(self.ranks[:, :k] - k, 0).sum(axis=1)
        return np.asarray(beyond * 2.0 / (k * (2 * self.n - 3 * k - 1)))


def ranks_of(keys: Array, chosen: IntArray, *, count_up_to: int = 16) -> IntArray:
    """Rank, from 1, of the chosen columns (n, k) in each row of keys; ties by column.

    Up to `count_up_to` chosen columns the smaller keys are counted; beyond, rows are sorted.
    """
    if (device := device_of(keys)) is not None:
        return device_ranks(device, keys, chosen)
    values = np.take_along_axis(keys, chosen, axis=1)
    if chosen.shape[1] <= count_up_to:
        below = _count_in_rows(keys, values, np.less)
        not_above = _count_in_rows(keys, values, np.less_equal)
    else:
        ordered = np.sort(keys, axis=1)
        pairs = list(zip(ordered, values, strict=True))
        below = np.array([np.searchsorted(own, mine) for own, mine in pairs])
        not_above = np.array([np.searchsorted(own, mine, side="right") for own, mine in pairs])
    ranks = below.astype(np.intp) + 1
    row, column = np.nonzero(not_above > ranks)  # other keys are equal
    ranks[row, column] += _equal_before(keys, values[row, column], row, chosen[row, column])
    return ranks


def _count_in_rows(keys: Array, values: Array, compare: Any) -> IntArray:
    """Number of keys of each row that compare to each of its values, (n, k)."""
    masks = (compare(keys, column[:, None]) for column in values.T)
    # Bytes are added in less time than np.count_nonzero takes along an axis.
    return np.stack([m.view(np.int8).sum(axis=1, dtype=np.int32) for m in masks], axis=1)


def _equal_before(keys: Array, values: Array, rows: IntArray, columns: IntArray) -> IntArray:
    """Number of earlier columns with the same key, for each of some entries of `keys`."""
    found = zip(values, rows, columns, strict=True)
    counts = [np.count_nonzero(keys[row, :column] == value) for value, row, column in found]
    return np.array(counts, dtype=np.intp)


@on_device_of_arguments
@shared_docs
def trustworthiness(
    X: Any,
    embedding: Any,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    per_point: bool = False,
    random_state: RandomState = None,
) -> Estimate | Array:
    """Measure whether neighbors in the embedding are neighbors in the data.

    Each neighbor in the embedding that is not among the n_neighbors nearest in the data is
    penalized by the excess of its rank there. 1 is perfect, a random embedding gets about 0.5.
    Equal to :func:`sklearn.manifold.trustworthiness`, without n × n matrices.

    Parameters
    ----------
    {compared_data}
    {compared_embedding}
    n_neighbors : int, default=None
        Neighborhood size, less than half the number of points; by default 5, or fewer if there
        are not enough points.
    {data_metric}
    {metric_sample}
    {per_point}
    {sample_seed}

    Returns
    -------
    {mean_or_values}

    See Also
    --------
    continuity : the same with data and embedding exchanged.
    neighbor_preservation : fraction of the neighbors that are kept.
    coranking : all neighborhood sizes at once.
    manifoldry.assess : these and other metrics, with a summary in words.

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import continuity, trustworthiness
    >>> X, sheet = make_swiss_roll(500, random_state=0)
    >>> trustworthiness(X, sheet) > 0.99
    True
    >>> flat = PCA(2).fit(X)  # projects the layers of the roll onto each other
    >>> trustworthiness(X, flat) < 0.98 < continuity(X, flat)
    True
    """
    pair = DataEmbeddingPair.of(X, embedding, metric)
    k = pair.check_neighbors(n_neighbors, default=5, max_fraction=1 / 2)
    return pair.mean_or_per_point(
        lambda points: 1 - NeighborRanks.of_embedding(pair, k, points).rank_penalty(k),
        sample,
        per_point,
        random_state,
    )


@on_device_of_arguments
@shared_docs
def continuity(
    X: Any,
    embedding: Any,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    per_point: bool = False,
    random_state: RandomState = None,
) -> Estimate | Array:
    """Measure whether neighbors in the data are neighbors in the embedding.

    Trustworthiness with data and embedding exchanged: it penalizes separating neighbors. Use both,
    since an embedding can be continuous and still show points close together that are not.

    Parameters
    ----------
    {compared_data}
    {compared_embedding}
    n_neighbors : int, default=None
        Neighborhood size, less than half the number of points; by default 5, or fewer if there
        are not enough points.
    {data_metric}
    {metric_sample}
    {per_point}
    {sample_seed}

    Returns
    -------
    {mean_or_values}

    See Also
    --------
    trustworthiness : whether neighbors in the embedding are neighbors in the data.
    neighbor_preservation : fraction of the neighbors that are kept.
    coranking : all neighborhood sizes at once.

    Examples
    --------
    A circle can be cut open, which separates neighbors, or flattened, which brings points together:

    >>> import numpy as np
    >>> from manifoldry.metrics import continuity, trustworthiness
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> continuity(circle, angle) < 0.99 < trustworthiness(circle, angle)
    True
    >>> trustworthiness(circle, circle[:, 0]) < 0.8 < continuity(circle, circle[:, 0])
    True
    """
    pair = DataEmbeddingPair.of(X, embedding, metric)
    k = pair.check_neighbors(n_neighbors, default=5, max_fraction=1 / 2)
    return pair.mean_or_per_point(
        lambda points: 1 - NeighborRanks.of_data(pair, k, points).rank_penalty(k),
        sample,
        per_point,
        random_state,
    )


@on_device_of_arguments
@shared_docs
def neighbor_preservation(
    X: Any,
    embedding: Any,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    per_point: bool = False,
    random_state: RandomState = None,
) -> Estimate | Array:
    """Fraction of the nearest neighbors in the embedding that are nearest neighbors in the data.

    Equal to Q_NX at `n_neighbors`; see :func:`coranking`. It counts a lost neighbor fully, however
    near it remains, so it is lower than :func:`trustworthiness`, and a random embedding gets
    about ``n_neighbors / n_samples``.

    Parameters
    ----------
    {compared_data}
    {compared_embedding}
    {metric_neighbors}
    {data_metric}
    {metric_sample}
    {per_point}
    {sample_seed}

    Returns
    -------
    {mean_or_values}

    See Also
    --------
    trustworthiness : penalizes false neighbors by their ranks.
    continuity : penalizes lost neighbors by their ranks.
    coranking : all neighborhood sizes at once.

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import neighbor_preservation
    >>> X, sheet = make_swiss_roll(500, random_state=0)
    >>> neighbor_preservation(X, sheet) > 0.95 > 0.6 > neighbor_preservation(X, PCA(2).fit(X))
    True
    >>> neighbor_preservation(X, sheet, per_point=True).shape
    (500,)
    """
    pair = DataEmbeddingPair.of(X, embedding, metric)
    k = pair.check_neighbors(n_neighbors, default=DEFAULT_N_NEIGHBORS, max_fraction=1)
    return pair.mean_or_per_point(
        lambda points: NeighborRanks.of_embedding(pair, k, points).preservation(k),
        sample,
        per_point,
        random_state,
    )
