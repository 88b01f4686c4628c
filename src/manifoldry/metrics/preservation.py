"""Whether neighbors on the map are neighbors in the data, and the other way round."""

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
    """The k nearest of some points on one side, and the rank that each has on the other.

    Parameters
    ----------
    ranks : array of shape (n_points, k)
        Rank, from 1 for the nearest, on the other side; columns in the order of the near side.
    points : array of shape (n_points,)
        The points.
    n : int
        How many points there are in all.
    """

    ranks: IntArray
    points: IntArray
    n: int

    @classmethod
    def of_embedding(cls, pair: DataEmbeddingPair, k: int, points: IntArray) -> "NeighborRanks":
        """Ranks in the data of the nearest on the map."""
        return cls._between(pair.embedding_distances, pair.data_distances, k, points)

    @classmethod
    def of_data(cls, pair: DataEmbeddingPair, k: int, points: IntArray) -> "NeighborRanks":
        """Ranks on the map of the nearest in the data."""
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
        """Fraction of each point's k nearest that are among its k nearest on the other side."""
        return (self.ranks[:, :k] <= k).mean(axis=1)

    def rank_penalty(self, k: int) -> Array:
        """How far beyond rank k each point's k nearest are, from 0 to 1 for the worst case."""
        beyond = np.maximum(self.ranks[:, :k] - k, 0).sum(axis=1)
        return np.asarray(beyond * 2.0 / (k * (2 * self.n - 3 * k - 1)))


def ranks_of(keys: Array, chosen: IntArray) -> IntArray:
    """Rank, from 1, of the chosen columns (n, k) of each row of keys; ties by column."""
    values = np.take_along_axis(keys, chosen, axis=1)
    ordered = np.sort(keys, axis=1)
    ranks = np.empty(chosen.shape, dtype=np.intp)
    for row, (own, mine) in enumerate(zip(ordered, values, strict=True)):
        ranks[row] = np.searchsorted(own, mine) + 1
        if (np.searchsorted(own, mine, side="right") > ranks[row]).any():
            ranks[row] += _equal_before(keys[row], chosen[row])
    return ranks


def _equal_before(keys: Array, columns: IntArray) -> IntArray:
    """Earlier columns with the same key as each of some columns."""
    return np.array([np.count_nonzero(keys[:c] == keys[c]) for c in columns])


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
    """How far one may believe that neighbors on the map are neighbors in the data.

    Points that are near on the map and not in the data are charged by how far down they are in
    the ranking of the data; 1 is perfect, about a half what a random map gets. Equal to
    :func:`sklearn.manifold.trustworthiness`, without its square matrices.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or an AnnData
        The data; of an AnnData ``obsm["X_pca"]``, or its matrix where there is none.
    embedding : array of shape (n_samples, n_components), fitted estimator, or str
        The map, whoever made it; its name in an AnnData's ``obsm``.
    n_neighbors : int, default=None
        Size of the neighborhoods, less than half the points; by default 5, or what there are.
    metric : str or callable, default="euclidean"
        Distances between data; ``"precomputed"`` if `X` is a matrix of them.
    sample : {"auto", "all"} or int, default="auto"
        Points whose neighborhoods are looked at, each among all points: by default all up to
        10 000, beyond 2000 drawn at random, with the error that this may cause. All of them take
        time as n_samples² · n_features, and memory as n_samples.
    per_point : bool, default=False
        Return one figure for each point, to color the map by; NaN for points left off the map.
        They are all computed, whatever `sample`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sample; ``None`` is a fixed one, so that the same call gives the same figure.

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
    >>> flat = PCA(2).fit(X)  # looks through the roll: layers fall onto each other
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
    """How far one may believe that neighbors in the data are neighbors on the map.

    Trustworthiness with data and map exchanged: it charges maps that tear the data apart.
    Parameters and result are those of :func:`trustworthiness`.
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
    """Fraction of each point's nearest neighbors on the map that are so in the data.

    The same as Q_NX at `n_neighbors`, by default 15. Parameters and result are those of
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
