"""Trustworthiness, continuity and neighbor preservation."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.metrics.distance_rows import DistanceRows, map_rows
from manifoldry.metrics.pair import DEFAULT_N_NEIGHBORS, DataEmbeddingPair
from manifoldry.neighbors.base import smallest_entries
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
        def ranks(block: IntArray) -> IntArray:
            chosen = smallest_entries(near.neighbor_keys(block), k)[0]
            return ranks_of(other.neighbor_keys(block), chosen)

        return cls(np.concatenate(map_rows(ranks, points, near.n)), points, near.n)

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
    X : array, sparse matrix or frame of shape (n_samples, n_features), or an AnnData
        The data; an AnnData stands for its ``X``, a pair ``(adata, key)`` for ``adata.obsm[key]``.
    embedding : array of shape (n_samples, n_components), fitted estimator, or str
        The embedding, made by any package, or its key in an AnnData's ``obsm``. Rows of NaN are
        points that were not embedded.
    n_neighbors : int, default=None
        Neighborhood size, less than half the number of points; by default 5, or fewer if there
        are not enough points.
    metric : str or callable, default="euclidean"
        Metric of the distances in the data; ``"precomputed"`` if `X` is a distance matrix.
    sample : {"auto", "all"} or int, default="auto"
        Points at which the metric is evaluated, always with neighbors among all points: by
        default all of up to 10 000 points, else 2000 drawn at random, with a confidence interval.
        ``"all"`` takes time n_samples² · n_features and memory proportional to n_samples.
    per_point : bool, default=False
        Return the value of each point instead of the mean, for all points regardless of
        `sample`; NaN for points that were not embedded.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sample; ``None`` is a fixed seed, so that results are reproducible.

    Returns
    -------
    Estimate, a float with its 95 % confidence interval, or array of shape (n_samples,)

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

    Trustworthiness with data and embedding exchanged: it penalizes separating neighbors.
    Parameters and return value are those of :func:`trustworthiness`.
    """
    pair = DataEmbeddingPair.of(X, embedding, metric)
    k = pair.check_neighbors(n_neighbors, default=5, max_fraction=1 / 2)
    return pair.mean_or_per_point(
        lambda points: 1 - NeighborRanks.of_data(pair, k, points).rank_penalty(k),
        sample,
        per_point,
        random_state,
    )


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

    Equal to Q_NX at `n_neighbors`, by default 15. Parameters and return value are those of
    :func:`trustworthiness`.
    """
    pair = DataEmbeddingPair.of(X, embedding, metric)
    k = pair.check_neighbors(n_neighbors, default=DEFAULT_N_NEIGHBORS, max_fraction=1)
    return pair.mean_or_per_point(
        lambda points: NeighborRanks.of_embedding(pair, k, points).preservation(k),
        sample,
        per_point,
        random_state,
    )
