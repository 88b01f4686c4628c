"""Leave-one-out likelihood of manifold Parzen windows, and the parameters that maximize it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from manifoldry.density.window_mixture import DEFAULT_OPTIONS, ParzenOptions
from manifoldry.density.windows import (
    SquaredDistances,
    Windows,
    log_sum,
    measure_blocks,
    windows_around,
    windows_without,
)
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.util.cached import cached_property
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import spread_rows


class DensityTrial(NamedTuple):
    """Parameters and their leave-one-out log-likelihood per point."""

    n_components: int
    n_neighbors: int
    noise: float
    loglikelihood: Estimate

    def scaled(self, unit: float, log_unit: float) -> "DensityTrial":
        """The same trial in other units of length, which shift log densities."""
        shifted = self.loglikelihood.shifted(log_unit)
        return self._replace(noise=self.noise * unit, loglikelihood=shifted)


@dataclass(frozen=True, eq=False)
class WeightedPoints:
    """Distinct points, their multiplicities, and a neighbor index."""

    X: Array
    counts: IntArray
    index: NeighborIndex
    max_neighbors: int = 0  # number of neighbors that are searched
    options: ParzenOptions = DEFAULT_OPTIONS

    @property
    def n(self) -> int:
        """Number of distinct points."""
        return len(self.X)

    def neighbors(self, k: int) -> IntArray:
        """The k nearest other points of each point, (n, k); k is at most `max_neighbors`."""
        return self._nearest[:, :k]

    @cached_property
    def _nearest(self) -> IntArray:
        if self.max_neighbors == 0:
            return np.empty((self.n, 0), np.intp)
        return self.index.reference_neighbors(self.X, self.max_neighbors).indices

    @cached_property
    def left_out(self) -> tuple[IntArray, IntArray]:
        """Points to leave out, and the nearest others of each, limited by the options."""
        rows = spread_rows(self.n, self.options.max_left_out)
        m = min(self.n - 1, self.options.max_windows)
        return rows, self.index.nearest_excluding(self.X[rows], m, rows)[0]


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Points left out one at a time, and the windows of the other points without them.

    A point that is left out is also removed from the neighbors of the other points, whose windows
    are recomputed. Otherwise windows with as many axes as neighbors would contain it exactly, and
    the likelihood would be largest without noise. For the same reason, all duplicates of a point
    are left out together.
    """

    distances: SquaredDistances
    log_weights: Array  # (n_left_out, m), of the windows
    counts: IntArray  # (n_left_out,), multiplicity of each point
    population: int
    noise_tolerance: float  # of the logarithm of the noise

    @classmethod
    def of(cls, points: WeightedPoints, neighbors: IntArray, d: int) -> "LeaveOneOut":
        """Leave out some points (all, if they are few) from windows with `d` axes."""
        rows, others = points.left_out
        rest = points.counts.sum() - points.counts[rows, None]
        log_weights = np.log(points.counts[others] / rest)
        members, owners, dropped = _exclude_left_out(rows, others, neighbors)
        blocks = chain(
            windows_around(points.X, neighbors, d),
            _shifted(windows_without(points.X, neighbors, owners, dropped, d), points.n),
        )
        distances = measure_blocks(points.X[rows], members, blocks, (points.n + len(owners), d))
        tolerance = points.options.noise_tolerance
        return cls(distances, log_weights, points.counts[rows], points.n, tolerance)

    def loglikelihood(self, d: int, noise: float) -> Estimate:
        """Mean log density of the points left out."""
        found = log_sum(self.distances.log_densities(d, noise) + self.log_weights)
        if not np.isfinite(found).all():
            return Estimate(-np.inf)
        weighted = found * self.counts / self.counts.mean()
        return Estimate.of_mean(weighted, self.population)

    def best(self, d: int, k: int, noises: Array) -> DensityTrial:
        """The best of several noise values, refined between its two neighbors."""
        scores = [self.loglikelihood(d, noise) for noise in noises]
        i = int(np.argmax(scores))
        best = DensityTrial(d, k, float(noises[i]), scores[i])
        if len(noises) == 1:
            return best
        between = noises[max(0, i - 1)], noises[min(len(noises) - 1, i + 1)]
        return max(best, self._refined(d, k, between), key=lambda trial: trial.loglikelihood)

    def _refined(self, d: int, k: int, between: tuple[float, float]) -> DensityTrial:
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(
            lambda log_noise: -self.loglikelihood(d, np.exp(log_noise)),
            bounds=np.log(between),
            method="bounded",
            options={"xatol": self.noise_tolerance},
        )
        noise = float(np.exp(found.x))
        return DensityTrial(d, k, noise, self.loglikelihood(d, noise))


def search(points: WeightedPoints, grid: dict[int, list[int]], noises: Array) -> list[DensityTrial]:
    """The best noise for each number of neighbors and of axes in the grid."""
    trials = []
    for k, dimensions in grid.items():
        left_out = LeaveOneOut.of(points, points.neighbors(k), max(dimensions))
        trials += [left_out.best(d, k, noises) for d in dimensions]
    return trials


def candidate_noises(lowest: float, highest: float, steps: int) -> Array:
    """Noise values to try, evenly spaced on a logarithmic scale."""
    return np.geomspace(lowest, max(highest, 2 * lowest), steps)


def _exclude_left_out(
    rows: IntArray, others: IntArray, neighbors: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Windows for each left-out row, where those with the row as a neighbor are replaced.

    Returns the window indices, those from n on being replacements, and for each replacement its
    point and the position of the neighbor that it omits.
    """
    n = len(neighbors)
    position = np.full(n, -1)
    position[rows] = np.arange(len(rows))
    owners, dropped = np.nonzero(position[neighbors] >= 0)
    wanted = position[neighbors[owners, dropped]] * n + owners
    keys = np.arange(len(rows))[:, None] * n + others
    order = np.argsort(keys, axis=None)
    found = np.searchsorted(keys.ravel()[order], wanted)
    found = order[np.minimum(found, len(order) - 1)]
    there = keys.ravel()[found] == wanted
    owners, dropped, found = owners[there], dropped[there], found[there]
    members = others.copy()
    members.ravel()[found] = n + np.arange(len(owners))
    return members, owners, dropped


def _shifted(
    blocks: Iterable[tuple[slice, Windows]], offset: int
) -> Iterator[tuple[slice, Windows]]:
    for block, windows in blocks:
        yield slice(block.start + offset, block.stop + offset), windows
