"""The mixture of all windows: its log density, draws from it, and how many windows it takes."""

from dataclasses import dataclass, replace

import numpy as np

from manifoldry._typing import Array, IntArray
from manifoldry._validation import row_blocks
from manifoldry.density.windows import Windows, log_sum
from manifoldry.neighbors.base import NeighborIndex

_ALL = 2000  # windows up to which the density is the sum of all of them
_NEAREST = 100  # of more windows, the first number of nearest ones to try
_LOST = 1e-3  # of the log density, what those may miss on average
_DRAWS = 100  # points on which that is measured


@dataclass(frozen=True, eq=False)
class WindowMixture:
    """Weighted windows with their noise, of which the nearest ones are summed at every point."""

    windows: Windows
    weights: Array  # (n,)
    noise: float
    index: NeighborIndex
    n_nearest: int

    @property
    def n(self) -> int:
        """Number of windows."""
        return len(self.weights)

    def log_density(self, X: Array) -> Array:
        """Log density at every row, (n_query,)."""
        d = self.windows.variances.shape[1]
        found = np.empty(len(X))
        for block in row_blocks(len(X), self.n_nearest * (d + 4), budget=2**22):
            members = self._nearest(X[block])
            terms = self.windows.terms(X[block], members)
            weights = self.weights if members is None else self.weights[members]
            found[block] = log_sum(terms.log_densities(d, self.noise) + np.log(weights))
        return found

    def _nearest(self, X: Array) -> IntArray | None:
        if self.n_nearest == self.n:
            return None
        return self.index.nearest(X, self.n_nearest)[0]

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Points from the mixture: a window, a place along its axes, and noise all around."""
        chosen = rng.choice(self.n, size=count, p=self.weights)
        lengths = np.sqrt(self.windows.variances[chosen])
        along = rng.standard_normal(lengths.shape) * lengths
        drawn = self.noise * rng.standard_normal((count, self.windows.centers.shape[1]))
        for block in row_blocks(count, max(1, self.windows.axes[0].size)):
            axes = self.windows.axes[chosen[block]]
            drawn[block] += np.einsum("nd,ndf->nf", along[block], axes)
        return drawn + self.windows.centers[chosen]

    def truncated(self) -> tuple["WindowMixture", float]:
        """With as few of the nearest windows as do, and what of the log density those miss."""
        count = _NEAREST if self.n > _ALL else self.n
        while count < self.n:
            mixture = replace(self, n_nearest=count)
            if (lost := mixture.lost()) <= _LOST:
                return mixture, lost
            count *= 2
        return replace(self, n_nearest=self.n), 0.0

    def lost(self) -> float:
        """What of the log density the windows that are not summed would add, on draws."""
        if self.n_nearest == self.n:
            return 0.0
        points = self.draw(_DRAWS, np.random.default_rng(0))
        full = replace(self, n_nearest=self.n)
        return float((full.log_density(points) - self.log_density(points)).mean())
