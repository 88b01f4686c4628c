"""Distances on the map against distances in the data, pair by pair."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rankdata

from manifoldry._checks import as_generator
from manifoldry._estimate import Estimate
from manifoldry._threads import map_threads
from manifoldry._typing import Array, IntArray, RandomState
from manifoldry.metrics.pair import Pair

_ALL_PAIRS = 3000  # points up to which every pair is looked at
_GROUP = 50  # points drawn together: all pairs among them are used
_BATCHES = 20  # parts of the sample whose differences tell its error
_FIXED_SEED = 0


@dataclass(frozen=True, eq=False)
class Shepard:
    """A Shepard diagram: for pairs of points, their distance in the data and on the map.

    Parameters
    ----------
    data, map : arrays of shape (n_pairs,)
        The distances.
    exact : bool
        Whether these are all pairs there are; else they come in batches drawn at random.

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
    exact: bool

    @cached_property
    def pearson(self) -> Estimate:
        """Linear correlation of the two distances."""
        return self.estimate(_correlation)

    @cached_property
    def spearman(self) -> Estimate:
        """Correlation of their ranks: 1 if farther in the data is always farther on the map."""
        return self.estimate(lambda a, b: _correlation(rankdata(a), rankdata(b)))

    def stress(self, scale: bool = True) -> Estimate:
        """Root of Σ(d − δ)² / Σδ² of distances d on the map and δ in the data; see `stress`."""
        size = float(self.map @ self.map)
        factor = float(self.map @ self.data) / size if scale and size > 0 else 1.0
        return self.estimate(
            lambda data, on_map: float(
                np.linalg.norm(factor * on_map - data) / np.linalg.norm(data)
            )
        )

    def kruskal(self) -> Estimate:
        """Stress against the best increasing function of the distances in the data."""
        return self.estimate(_kruskal)

    def estimate(self, statistic: Callable[[Array, Array], float]) -> Estimate:
        """A statistic of the two distances, its error from how much batches of pairs differ."""
        value = statistic(self.data, self.map)
        if self.exact:
            return Estimate(value)
        parts = zip(*(np.array_split(d, _BATCHES) for d in (self.data, self.map)), strict=True)
        spread = Estimate.of_mean(np.array([statistic(a, b) for a, b in parts]))
        half = (spread.high - spread.low) / 2
        return Estimate(value, value - half, value + half)


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
    random_state : int, Generator or None, default=None
        Seed of the sample.

    Returns
    -------
    Shepard
    """
    return shepard_of(Pair.of(X, embedding, metric), random_state)


def shepard_of(pair: Pair, random_state: RandomState = None) -> Shepard:
    """The Shepard diagram of a pair of data and map."""
    if pair.n <= _ALL_PAIRS:
        groups = [np.arange(pair.n)]
    else:
        rng = as_generator(random_state, unset=_FIXED_SEED)
        groups = [rng.choice(pair.n, _GROUP, False) for _ in range(pair.in_data.n_groups)]

    def distances(points: IntArray) -> tuple[Array, Array]:
        upper = np.triu_indices(len(points), 1)
        return pair.in_data.among(points)[upper], pair.on_plane.among(points)[upper]

    data, on_map = map(np.concatenate, zip(*map_threads(distances, groups), strict=True))
    finite = np.isfinite(data)  # pieces of a graph are infinitely far from each other
    data, on_map = data[finite], on_map[finite]
    if not data.any() or not on_map.any():
        where = "on the map" if data.any() else "of X"
        raise ValueError(f"all points {where} coincide; there are no distances to compare")
    return Shepard(data, on_map, pair.n <= _ALL_PAIRS)


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
