"""The mixture of all windows: log density, sampling, and truncation to the nearest windows."""

from dataclasses import dataclass, replace

import numpy as np

from manifoldry.density.windows import Windows, log_sum
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True)
class ParzenOptions:
    """Advanced options of :class:`~manifoldry.ManifoldParzen`.

    Parameters
    ----------
    dimensions, neighbors : tuple of int
        Numbers of axes and of neighbors to try unless given.
    max_left_out : int
        Largest number of points left out to estimate the likelihood.
    max_windows : int
        Largest number of windows used for each of those points.
    min_noise : float
        Smallest noise to try, relative to a typical distance between neighbors.
    noise_steps : int
        Number of noise values to try before the best is refined.
    noise_tolerance : float
        Tolerance of the refinement, on the logarithm of the noise.
    max_exact : int
        Largest number of windows that are all summed.
    first_nearest : int
        With more windows, the first number of nearest windows to try; it is doubled until the
        truncation error is small enough.
    max_truncation : float
        Largest mean truncation error of the log density.
    n_draws : int
        Number of random points on which the truncation error is estimated.

    See Also
    --------
    manifoldry.ManifoldParzen : uses them.

    Examples
    --------
    >>> from manifoldry.datasets import make_helix
    >>> from manifoldry.density import ManifoldParzen, ParzenOptions
    >>> X, _ = make_helix(200, random_state=0)
    >>> options = ParzenOptions(dimensions=(1, 2), neighbors=(5, 10))  # instead of six and four
    >>> density = ManifoldParzen(options=options).fit(X)
    >>> density.n_components_ in (1, 2), density.n_neighbors_ in (5, 10)
    (True, True)
    """

    dimensions: tuple[int, ...] = (1, 2, 3, 5, 8, 12)
    neighbors: tuple[int, ...] = (5, 10, 20, 40)
    max_left_out: int = 300
    max_windows: int = 2000
    min_noise: float = 1e-3
    noise_steps: int = 12
    noise_tolerance: float = 0.02
    max_exact: int = 2000
    first_nearest: int = 100
    max_truncation: float = 1e-3
    n_draws: int = 100


DEFAULT_OPTIONS = ParzenOptions()


@dataclass(frozen=True, eq=False)
class WindowMixture:
    """Weighted windows and their noise; the density at a point sums the nearest windows."""

    windows: Windows
    weights: Array  # (n,)
    noise: float
    index: NeighborIndex
    n_nearest: int
    options: ParzenOptions = DEFAULT_OPTIONS

    @property
    def n(self) -> int:
        """Number of windows."""
        return len(self.weights)

    def log_density(self, X: Array) -> Array:
        """Log density at each row, (n_query,)."""
        d = self.windows.variances.shape[1]
        found = np.empty(len(X))
        for block in row_blocks(len(X), self.n_nearest * (d + 4), budget=2**22):
            members = self._nearest(X[block])
            distances = self.windows.squared_distances(X[block], members)
            weights = self.weights if members is None else self.weights[members]
            found[block] = log_sum(distances.log_densities(d, self.noise) + np.log(weights))
        return found

    def _nearest(self, X: Array) -> IntArray | None:
        if self.n_nearest == self.n:
            return None
        return self.index.nearest(X, self.n_nearest)[0]

    def draw(
        self,
        count: int,
        rng: np.random.Generator,
        width: float = 1.0,
        stratified: bool = False,
    ) -> Array:
        """Random points from the mixture, with their steps from the centers times `width`."""
        if stratified:
            chosen = stratified_choice(self.weights, count, rng)
        else:
            chosen = rng.choice(self.n, size=count, p=self.weights)
        return self.windows.centers[chosen] + width * self._steps(chosen, rng)

    def _steps(self, chosen: IntArray, rng: np.random.Generator) -> Array:
        """A random step from the center of each chosen window."""
        count = len(chosen)
        lengths = np.sqrt(self.windows.variances[chosen])
        along = rng.standard_normal(lengths.shape) * lengths
        drawn = self.noise * rng.standard_normal((count, self.windows.centers.shape[1]))
        for block in row_blocks(count, max(1, self.windows.axes[0].size)):
            axes = self.windows.axes[chosen[block]]
            drawn[block] += np.einsum("nd,ndf->nf", along[block], axes)
        return drawn

    def truncated(self) -> tuple["WindowMixture", float]:
        """The mixture with as few windows as the options allow, and its truncation error."""
        if self.n <= self.options.max_exact:
            return replace(self, n_nearest=self.n), 0.0
        first = self.options.first_nearest
        counts = first * 2 ** np.arange(np.ceil(np.log2(self.n / first)), dtype=np.intp)
        errors = self.truncation_errors(counts)
        sufficient = np.flatnonzero(errors <= self.options.max_truncation)
        if len(sufficient) == 0:
            return replace(self, n_nearest=self.n), 0.0
        i = sufficient[0]
        return replace(self, n_nearest=int(counts[i])), float(errors[i])

    def truncation_errors(self, counts: IntArray) -> Array:
        """Mean error of the log density if only the given numbers of nearest windows are summed.

        It is estimated on random points from the mixture, with windows sorted by distance.
        """
        n_draws = self.options.n_draws
        points = self.draw(n_draws, np.random.default_rng(0))
        d = self.windows.variances.shape[1]
        errors = np.zeros(len(counts))
        for block in row_blocks(n_draws, self.n * (d + 6), budget=2**22):
            distances = self.windows.squared_distances(points[block])
            logs = distances.log_densities(d, self.noise) + np.log(self.weights)
            order = np.argsort(distances.across + distances.along.sum(axis=0), axis=1)
            logs = np.take_along_axis(logs, order, axis=1)
            exact = log_sum(logs)
            errors += [(exact - log_sum(logs[:, :count])).sum() for count in counts]
        return errors / n_draws


def stratified_choice(weights: Array, count: int, rng: np.random.Generator) -> IntArray:
    """`count` indices, sorted, each as often as its weight demands, up to less than one.

    Their expected numbers are exactly `count` times the weights: systematic sampling of the indices
    in random order.
    """
    order = rng.permutation(len(weights))
    ends = np.floor(count * np.cumsum(weights[order]) + rng.uniform())
    ends[-1] = count
    numbers = np.empty(len(weights), dtype=np.intp)
    numbers[order] = np.diff(ends, prepend=0.0)
    return np.repeat(np.arange(len(weights)), numbers)
