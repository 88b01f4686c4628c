"""The co-ranking of data and map: which neighbors are kept, at every size of neighborhood."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manifoldry.metrics.distance_rows import DistanceRows, map_rows
from manifoldry.metrics.pair import DataEmbeddingPair, sample_points
from manifoldry.metrics.preservation import NeighborRanks
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray, RandomState
from manifoldry.util.validation import plan_memory


@dataclass(frozen=True, eq=False)
class CoRanking:
    """How many neighbors a map keeps, for neighborhoods of 1, 2, … n − 1 points.

    Parameters
    ----------
    q_nx : array of shape (n_samples - 1,)
        Fraction of the k nearest on the map that are among the k nearest in the data, on average,
        at position k − 1.
    area_per_point : array of shape (n_points,)
        Each point's own area under R_NX.
    points : array of shape (n_points,)
        The points that were looked at.
    n : int
        How many points there are in all.

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, sheet = make_swiss_roll(300, random_state=0)
    >>> good, poor = coranking(X, sheet), coranking(X, PCA(2).fit(X))
    >>> bool(good.r_nx[9] > poor.r_nx[9]), good.area > poor.area
    (True, True)
    """

    q_nx: Array
    area_per_point: Array
    points: IntArray
    n: int

    @property
    def sizes(self) -> IntArray:
        """The sizes k = 1 … n − 1 of neighborhoods."""
        return np.arange(1, self.n)

    @property
    def r_nx(self) -> Array:
        """Q_NX rescaled: 0 for a random map, 1 for a perfect one; (n_samples - 2,).

        The last size is left out, since all points are then neighbors whatever the map.
        """
        k = self.sizes[:-1]
        return ((self.n - 1) * self.q_nx[:-1] - k) / (self.n - 1 - k)

    @property
    def lcmc(self) -> Array:
        """Local continuity meta-criterion: Q_NX above that of a random map."""
        return self.q_nx - self.sizes / (self.n - 1)

    @property
    def area(self) -> Estimate:
        """Area under R_NX over the logarithm of k, so that small neighborhoods count most."""
        return Estimate.of_mean(self.area_per_point, self.n, within=(-1.0, 1.0))

    @property
    def k_max(self) -> int:
        """The size of neighborhood at which the map says most: where LCMC is largest."""
        return int(np.argmax(self.lcmc)) + 1

    @property
    def q_local(self) -> float:
        """Mean of Q_NX up to the turning point."""
        return float(self.q_nx[: self.k_max].mean())

    @property
    def q_global(self) -> float:
        """Mean of Q_NX beyond the turning point; 1 where nothing is beyond."""
        rest = self.q_nx[self.k_max :]
        return float(rest.mean()) if len(rest) else 1.0


def coranking(
    X: Any,
    embedding: Any,
    *,
    metric: Any = "euclidean",
    sample: Any = "auto",
    random_state: RandomState = None,
) -> CoRanking:
    """Compare the neighborhoods of data and map at every size.

    ``area`` of the result is the one figure to compare maps by; ``r_nx`` the curve behind it,
    drawn by :func:`manifoldry.plotting.plot_coranking`.

    Parameters
    ----------
    X, embedding, metric, sample, random_state
        As for :func:`trustworthiness`; all points take time as n_samples² · (n_features +
        log n_samples).

    Returns
    -------
    CoRanking
    """
    pair = DataEmbeddingPair.of(X, embedding, metric, min_samples=4)
    return coranking_of(pair, sample_points(pair.n, sample, random_state))


class Comparison(NamedTuple):
    """What one pass over the ranks of some points tells of a map."""

    trustworthiness: Array  # (n_points,), trustworthiness of each
    continuity: Array  # (n_points,)
    neighbor_preservation: (
        Array  # (n_points,), fraction of the k nearest on the map that are so in the data
    )
    coranking: CoRanking


def coranking_of(pair: DataEmbeddingPair, points: IntArray) -> CoRanking:
    """The co-ranking of a pair of data and map, on some of its points."""
    return compare(pair, [pair.embedding_distances], points, 1)[0].coranking


def compare(
    pair: DataEmbeddingPair, maps: list[DistanceRows], points: IntArray, k: int, budget: int = 2**20
) -> list[Comparison]:
    """Compare the data of a pair with several maps, ranking the data once.

    `budget` is how many numbers a block has: ranks take several arrays of its size.
    """
    n, contributions = pair.n, _rank_contributions(pair.n)

    def block(rows: IntArray) -> list[tuple[Any, ...]]:
        in_data = all_ranks(pair.data_distances.neighbor_keys(rows))
        return [
            _compare_ranks(in_data, all_ranks(m.neighbor_keys(rows)), k, contributions)
            for m in maps
        ]

    found = zip(*map_rows(block, points, n, budget), strict=True)
    return [_merge_blocks(blocks, points, n, k) for blocks in found]


def _compare_ranks(
    in_data: IntArray, on_map: IntArray, k: int, contributions: Array
) -> tuple[Any, ...]:
    """Intrusions, extrusions and kept neighbors, histogram of larger ranks, contributions for each."""
    n = in_data.shape[1]
    near, there = in_data <= k, on_map <= k
    larger = np.maximum(in_data, on_map)
    return (
        np.where(there & ~near, in_data - k, 0).sum(axis=1),
        np.where(near & ~there, on_map - k, 0).sum(axis=1),
        (near & there).sum(axis=1),
        # A point comes last in its own row, as the n-th, where it adds nothing.
        np.bincount(larger.ravel(), minlength=n + 1)[1:n],
        contributions[larger].sum(axis=1),
    )


def _merge_blocks(blocks: Any, points: IntArray, n: int, k: int) -> Comparison:
    intruded, extruded, kept, counts, areas = zip(*blocks, strict=True)
    worst = k * (2 * n - 3 * k - 1) / 2
    q_nx = np.cumsum(np.sum(counts, axis=0)) / (len(points) * np.arange(1, n))
    return Comparison(
        1 - np.concatenate(intruded) / worst,
        1 - np.concatenate(extruded) / worst,
        np.concatenate(kept) / k,
        CoRanking(q_nx, np.concatenate(areas) - _expected_at_random(n), points, n),
    )


def coranking_matrix(
    X: Any,
    embedding: Any,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    random_state: RandomState = None,
) -> IntArray:
    """Count pairs by the rank they have in the data (row) and on the map (column).

    A perfect map has a diagonal matrix. Below the diagonal are intrusions, points nearer on the
    map than in the data; above it extrusions.

    Parameters
    ----------
    n_neighbors : int, default=None
        Ranks to tell apart; by default 100, or all there are.
    X, embedding, metric, sample, random_state
        As for :func:`trustworthiness`.

    Returns
    -------
    array of shape (n_neighbors, n_neighbors)

    Examples
    --------
    >>> import numpy as np
    >>> line = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> coranking_matrix(line, line)
    array([[4, 0, 0],
           [0, 4, 0],
           [0, 0, 4]])
    """
    pair = DataEmbeddingPair.of(X, embedding, metric)
    k = pair.check_neighbors(n_neighbors, default=100, max_fraction=1)
    plan_memory(16.0 * k * k, f"a matrix of {k} by {k} ranks", "pass a smaller n_neighbors")
    points = sample_points(pair.n, sample, random_state)
    in_data = NeighborRanks.of_embedding(pair, k, points).ranks
    kept = in_data <= k
    cells = (in_data - 1) * k + np.arange(k)
    return np.bincount(cells[kept], minlength=k * k).reshape(k, k)


def all_ranks(keys: Array) -> IntArray:
    """Rank of every column in its row, from 1 for the smallest key; ties by column."""
    ranks = np.empty(keys.shape, dtype=np.int32)
    each = np.arange(1, keys.shape[1] + 1, dtype=np.int32)
    for own, ranked in zip(keys, ranks, strict=True):
        ranked[_stable_order(own)] = each
    return ranks


def _stable_order(keys: Array) -> IntArray:
    """What a stable argsort returns, several times faster."""
    n, order = len(keys), np.argsort(keys)
    ordered = keys[order]
    steps = ordered[1:] != ordered[:-1]
    if steps.all():
        return order
    # Equal keys form runs; positions are sorted within each.
    run = np.concatenate([[0], np.cumsum(steps)])
    return np.sort(run * n + order) % n


def _size_weights(n: int) -> Array:
    """Weight 1/k of each size k ≤ n − 2 in the area, summing to one."""
    k = np.arange(1, n - 1)
    return (1 / k) / (1 / k).sum()


def _rank_contributions(n: int) -> Array:
    """What a pair adds to its point's area if the larger of its ranks is 0, 1, … n.

    R_NX(k) = ((n−1)·Q(k) − k) / (n−1−k), where k·Q(k) counts pairs of ranks up to k; so a pair of
    larger rank r adds weight(k) · (n−1) / (k·(n−1−k)) for every k ≥ r.
    """
    k = np.arange(1, n - 1)
    adds = _size_weights(n) * (n - 1) / (k * (n - 1.0 - k))
    return np.concatenate([[0.0], np.cumsum(adds[::-1])[::-1], [0.0, 0.0]])


def _expected_at_random(n: int) -> float:
    """What a random map gets by `_rank_contributions` alone."""
    k = np.arange(1, n - 1)
    return float((_size_weights(n) * k / (n - 1.0 - k)).sum())
