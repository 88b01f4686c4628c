"""Co-ranking of data and embedding: neighbors kept, for every neighborhood size."""

from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from manifoldry.base.docs import shared_docs
from manifoldry.device import device_of
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.metrics.distance_rows import DistanceRows, map_rows
from manifoldry.metrics.on_device import all_device_ranks, on_device_if_possible
from manifoldry.metrics.pair import DataEmbeddingPair, sample_points
from manifoldry.metrics.preservation import NeighborRanks
from manifoldry.util.arrays import namespace, to_numpy
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray, RandomState
from manifoldry.util.validation import plan_matrix


@dataclass(frozen=True, eq=False)
class CoRanking:
    """Fraction of neighbors that an embedding keeps, for neighborhood sizes 1, 2, … n − 1.

    Parameters
    ----------
    q_nx : array of shape (n_samples - 1,)
        Entry k − 1 is the mean fraction of the k nearest neighbors in the embedding that are
        among the k nearest neighbors in the data.
    area_per_point : array of shape (n_points,)
        Area under R_NX of each evaluated point.
    points : array of shape (n_points,)
        Indices of the evaluated points.
    n : int
        Total number of points.

    See Also
    --------
    coranking : computes it.
    coranking_matrix : the counts behind it, for small data.
    manifoldry.plotting.plot_coranking : draws ``r_nx``.

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
        """Neighborhood sizes k = 1 … n − 1."""
        return np.arange(1, self.n)

    @property
    def r_nx(self) -> Array:
        """Q_NX rescaled to 0 for a random and 1 for a perfect embedding; (n_samples - 2,).

        The last size is omitted, because Q_NX is then 1 for any embedding.
        """
        k = self.sizes[:-1]
        return ((self.n - 1) * self.q_nx[:-1] - k) / (self.n - 1 - k)

    @property
    def lcmc(self) -> Array:
        """Local continuity meta-criterion: Q_NX minus its value for a random embedding."""
        return self.q_nx - self.sizes / (self.n - 1)

    @property
    def area(self) -> Estimate:
        """Area under R_NX over the logarithm of k, which gives small neighborhoods more weight."""
        return Estimate.of_mean(self.area_per_point, self.n, within=(-1.0, 1.0))

    @property
    def k_max(self) -> int:
        """Neighborhood size at which LCMC is largest; it separates local from global sizes."""
        return int(np.argmax(self.lcmc)) + 1

    @property
    def q_local(self) -> float:
        """Mean of Q_NX over sizes up to `k_max`."""
        return float(self.q_nx[: self.k_max].mean())

    @property
    def q_global(self) -> float:
        """Mean of Q_NX over sizes above `k_max`; 1 if there are none."""
        rest = self.q_nx[self.k_max :]
        return float(rest.mean()) if len(rest) else 1.0


@on_device_of_arguments
@shared_docs
def coranking(
    X: Any,
    embedding: Any,
    *,
    metric: Any = "euclidean",
    sample: Any = "auto",
    random_state: RandomState = None,
) -> CoRanking:
    """Compare the neighborhoods of data and embedding for every size.

    Use ``area`` of the result to compare embeddings. ``r_nx`` is the curve behind it, drawn by
    :func:`manifoldry.plotting.plot_coranking`.

    Parameters
    ----------
    {compared_data}
    {compared_embedding}
    {data_metric}
    {metric_sample}
        Here ``"all"`` also sorts: its time is n_samples² · (n_features + log n_samples).
    {sample_seed}

    Returns
    -------
    CoRanking
        The curves, and their summaries ``area``, ``q_local`` and ``q_global``.

    See Also
    --------
    trustworthiness : one neighborhood size.
    coranking_matrix : counts of pairs by both ranks.
    manifoldry.plotting.plot_coranking : draws the curves.

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import coranking
    >>> X, sheet = make_swiss_roll(300, random_state=0)
    >>> found = coranking(X, PCA(2).fit(X))
    >>> found.area < coranking(X, sheet).area
    True
    >>> bool(found.r_nx[4] < found.r_nx[200])  # a projection keeps neighborhoods of 200, not of 5
    True
    """
    pair = DataEmbeddingPair.of(X, embedding, metric, min_samples=4)
    return coranking_of(pair, sample_points(pair.n, sample, random_state))


class RankComparison(NamedTuple):
    """Neighbor metrics of some points for one embedding, from one pass over the ranks."""

    trustworthiness: Array  # (n_points,)
    continuity: Array  # (n_points,)
    neighbor_preservation: Array  # (n_points,)
    coranking: CoRanking


def coranking_of(pair: DataEmbeddingPair, points: IntArray) -> CoRanking:
    """Co-ranking of a pair of data and embedding, evaluated at some of its points."""
    return compare_ranks(pair, [pair.embedding_distances], points, 1)[0].coranking


def compare_ranks(
    pair: DataEmbeddingPair,
    embeddings: list[DistanceRows],
    points: IntArray,
    k: int,
    budget: int = 2**20,
) -> list[RankComparison]:
    """Compare the data of a pair with several embeddings, ranking the data only once.

    `budget` is the number of entries of a block of rows; several arrays of that size are held.
    """
    data, *spaces = on_device_if_possible(pair.data_distances, *embeddings)
    n, contributions, lock = pair.n, _rank_contributions(pair.n), Lock()
    if data.device is not None:
        contributions = data.device.array(contributions)
    # One histogram of the larger ranks for all blocks, to which they add: of many points, a block
    # is a single row, and its own histogram as long as that.
    counts = np.zeros((len(embeddings), n - 1), dtype=np.int64)

    def block(rows: IntArray) -> list[tuple[Array, ...]]:
        in_data = all_ranks(data.neighbor_keys(rows))
        found: list[tuple[Array, ...]] = []
        for space, count in zip(spaces, counts, strict=True):
            embedded = all_ranks(space.neighbor_keys(rows))
            xp = namespace(embedded)
            larger = xp.maximum(in_data, embedded)
            # A point has rank n in its own row, which is omitted here.
            own: Any = to_numpy(xp.bincount(larger.ravel(), minlength=n + 1))[1:n]
            with lock:
                count += own
            area = contributions[larger].sum(axis=1)
            statistics = (*_rank_statistics(in_data, embedded, k), area)
            found.append(tuple(map(to_numpy, statistics)))
        return found

    merged = zip(*map_rows(block, points, n, budget, device=data.device), strict=True)
    return [
        _merge_blocks(blocks, count, points, n, k)
        for blocks, count in zip(merged, counts, strict=True)
    ]


def _rank_statistics(in_data: IntArray, embedded: IntArray, k: int) -> tuple[Array, Array, Array]:
    """Statistics of a block of rows, per point.

    Sums of rank − k over the intrusions and over the extrusions, and number of neighbors preserved.
    """
    near, near_embedded, xp = in_data <= k, embedded <= k, namespace(embedded)
    return (
        xp.where(near_embedded & ~near, in_data - k, 0).sum(axis=1),
        xp.where(near & ~near_embedded, embedded - k, 0).sum(axis=1),
        (near & near_embedded).sum(axis=1),
    )


def _merge_blocks(
    blocks: Any, counts: IntArray, points: IntArray, n: int, k: int
) -> RankComparison:
    intruded, extruded, kept, areas = zip(*blocks, strict=True)
    worst = k * (2 * n - 3 * k - 1) / 2
    q_nx = np.cumsum(counts) / (len(points) * np.arange(1, n))
    return RankComparison(
        1 - np.concatenate(intruded) / worst,
        1 - np.concatenate(extruded) / worst,
        np.concatenate(kept) / k,
        CoRanking(q_nx, np.concatenate(areas) - _expected_at_random(n), points, n),
    )


@on_device_of_arguments
@shared_docs
def coranking_matrix(
    X: Any,
    embedding: Any,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    random_state: RandomState = None,
) -> IntArray:
    """Count pairs by their rank in the data (row) and in the embedding (column).

    A perfect embedding has a diagonal matrix. Entries below the diagonal are intrusions, points
    that rank nearer in the embedding than in the data; entries above it are extrusions.

    Parameters
    ----------
    {compared_data}
    {compared_embedding}
    n_neighbors : int, default=None
        Largest rank counted; by default 100, or n_samples − 1 if that is less.
    {data_metric}
    {metric_sample}
    {sample_seed}

    Returns
    -------
    array of shape (n_neighbors, n_neighbors)
        Numbers of pairs; the first row and column are rank 1, the nearest neighbor.

    See Also
    --------
    coranking : its summary, for any number of points.

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
    plan_matrix((k, k), 16, f"a matrix of {k} by {k} ranks", "pass a smaller n_neighbors")
    points = sample_points(pair.n, sample, random_state)
    in_data = NeighborRanks.of_embedding(pair, k, points).ranks
    kept = in_data <= k
    cells = (in_data - 1) * k + np.arange(k)
    return np.bincount(cells[kept], minlength=k * k).reshape(k, k)


def all_ranks(keys: Array) -> IntArray:
    """Rank of every entry in its row, from 1 for the smallest; ties are broken by column."""
    if (device := device_of(keys)) is not None:
        return all_device_ranks(device, keys)
    ranks = np.empty(keys.shape, dtype=np.int32)
    each = np.arange(1, keys.shape[1] + 1, dtype=np.int32)
    for own, ranked in zip(keys, ranks, strict=True):
        ranked[_stable_order(own)] = each
    return ranks


def _stable_order(keys: Array) -> IntArray:
    """Same result as a stable argsort, several times faster."""
    n, order = len(keys), np.argsort(keys)
    ordered = keys[order]
    steps = ordered[1:] != ordered[:-1]
    if steps.all():
        return order
    # Equal keys form runs; sort the positions within each run.
    run = np.concatenate([[0], np.cumsum(steps)])
    return np.sort(run * n + order) % n


def _size_weights(n: int) -> Array:
    """Weights proportional to 1/k of the sizes k ≤ n − 2 in the area, with sum 1."""
    k = np.arange(1, n - 1)
    return (1 / k) / (1 / k).sum()


def _rank_contributions(n: int) -> Array:
    """Contribution of a pair to its point's area, by the larger of its two ranks, 0, 1, … n.

    R_NX(k) = ((n−1)·Q(k) − k) / (n−1−k), where k·Q(k) is the number of pairs with ranks up to
    k; so a pair whose larger rank is r contributes weight(k) · (n−1) / (k·(n−1−k)) for every k ≥ r.
    """
    k = np.arange(1, n - 1)
    adds = _size_weights(n) * (n - 1) / (k * (n - 1.0 - k))
    return np.concatenate([[0.0], np.cumsum(adds[::-1])[::-1], [0.0, 0.0]])


def _expected_at_random(n: int) -> float:
    """Expected sum of `_rank_contributions` of a point in a random embedding."""
    k = np.arange(1, n - 1)
    return float((_size_weights(n) * k / (n - 1.0 - k)).sum())
