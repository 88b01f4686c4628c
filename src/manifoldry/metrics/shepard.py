"""Distances on the map against distances in the data, pair by pair."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rankdata

from manifoldry.metrics.pair import DataEmbeddingPair
from manifoldry.util.checks import as_generator
from manifoldry.util.estimate import Estimate
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray, RandomState
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class Shepard:
    """A Shepard diagram: for pairs of points, their distance in the data and on the map.

    Parameters
    ----------
    data, map : arrays of shape (n_pairs,)
        The distances.
    batches : tuple of int
        Where batches of pairs that were drawn independently begin; empty where these are all the
        pairs there are.

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, sheet = make_swiss_roll(300, random_state=0)
    >>> diagram = shepard(X, PCA(2).fit(X))  # a projection: the larger distances survive
    >>> diagram.spearman > 0.8
    True
    >>> shepard(X, sheet).spearman < diagram.spearman  # unrolled: not so
    True
    """

    data: Array
    map: Array
    batches: tuple[int, ...] = ()

    @cached_property
    def pearson(self) -> Estimate:
        """Linear correlation of the two distances."""
        return self._estimate(_correlation, within=(-1.0, 1.0))

    @cached_property
    def spearman(self) -> Estimate:
        """Correlation of their ranks: 1 if farther in the data is always farther on the map."""
        return self._estimate(
            lambda a, b: _correlation(rankdata(a), rankdata(b)), within=(-1.0, 1.0)
        )

    def stress(self, scale: bool = True) -> Estimate:
        """Root of Σ(d − δ)² / Σδ² of distances d on the map and δ in the data; see `stress`."""
        if scale:
            data, on_map = self._unitless
            factor = float(on_map @ data) / float(on_map @ on_map)
        else:
            factor = power_of_two_scale(self.map) / power_of_two_scale(self.data)
        return self._estimate(
            lambda a, b: float(np.linalg.norm(factor * b - a) / np.linalg.norm(a)),
            within=(0.0, np.inf),
        )

    def kruskal(self) -> Estimate:
        """Stress against the best increasing function of the distances in the data."""
        return self._estimate(_kruskal, within=(0.0, 1.0))

    @cached_property
    def _unitless(self) -> tuple[Array, Array]:
        """Both distances in units of their own, whose squares are in range."""
        return self.data / power_of_two_scale(self.data), self.map / power_of_two_scale(self.map)

    def _estimate(
        self, statistic: Callable[[Array, Array], float], within: tuple[float, float]
    ) -> Estimate:
        """A statistic of the two distances, its error from how much batches of pairs differ."""
        value = statistic(*self._unitless)
        if not self.batches:
            return Estimate(value)
        parts = zip(*(np.split(d, self.batches[1:]) for d in self._unitless), strict=True)
        found = np.array([statistic(a, b) for a, b in parts if a.any()])
        error = float(found.std(ddof=1)) / np.sqrt(len(found))
        return Estimate.with_error(value, error, len(found) - 1, within)


def shepard(
    X: Any, embedding: Any, *, metric: Any = "euclidean", random_state: RandomState = None
) -> Shepard:
    """Compare distances on the map with those in the data.

    Its correlations tell whether large distances on the map mean anything. A
    :class:`~manifoldry.neighbors.NeighborGraph` in place of the data stands for distances along
    the graph. Beyond 3000 points pairs are drawn at random: about two millions of them, or
    12 000 along a graph.

    Parameters
    ----------
    X, embedding, metric
        As for :func:`trustworthiness`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sample; ``None`` is a fixed one.

    Returns
    -------
    Shepard
    """
    return shepard_of(DataEmbeddingPair.of(X, embedding, metric), random_state)


def shepard_of(
    pair: DataEmbeddingPair,
    random_state: RandomState = None,
    *,
    all_pairs_up_to: int = 3000,
    group_size: int = 50,
    n_batches: int = 20,
) -> Shepard:
    """The Shepard diagram of a pair of data and map.

    Of more than `all_pairs_up_to` points, groups are drawn, all pairs within which are looked at;
    the differences between batches of groups tell the error.
    """
    exact = pair.n <= all_pairs_up_to
    groups = [np.arange(pair.n)] if exact else _groups(pair, group_size, random_state)

    def distances(points: IntArray) -> tuple[Array, Array]:
        upper = np.triu_indices(len(points), 1)
        data, on_map = (
            pair.data_distances.among(points)[upper],
            pair.embedding_distances.among(points)[upper],
        )
        finite = np.isfinite(data)  # components of a graph are infinitely far from each other
        return data[finite], on_map[finite]

    found = map_threads(distances, groups)
    data, on_map = map(np.concatenate, zip(*found, strict=True))
    if not data.any() or not on_map.any():
        where = "on the map" if data.any() else "of X"
        raise ValueError(f"all points {where} coincide; there are no distances to compare")
    starts = np.cumsum([0, *(len(a) for a, _ in found)])
    chosen = np.linspace(0, len(groups), min(n_batches, len(groups)), endpoint=False).astype(int)
    return Shepard(data, on_map, () if exact else tuple(starts[chosen].tolist()))


def _groups(pair: DataEmbeddingPair, size: int, random_state: RandomState) -> list[IntArray]:
    rng = as_generator(random_state, unset=0)
    return [rng.choice(pair.n, size, False) for _ in range(pair.data_distances.n_groups)]


def _kruskal(data: Array, on_map: Array) -> float:
    from sklearn.isotonic import isotonic_regression

    # Ties in the data: within them any order of the map's distances is as good.
    increasing = on_map[np.lexsort((on_map, data))]
    left = np.linalg.norm(increasing - isotonic_regression(increasing))
    return float(left / np.linalg.norm(on_map))


def _correlation(a: Array, b: Array) -> float:
    """Pearson's correlation; 0 where one side is constant, and says nothing."""
    a, b = a - a.mean(), b - b.mean()
    sizes = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / sizes if sizes > 0 else 0.0
