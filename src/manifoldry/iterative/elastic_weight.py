"""How strong repulsion should be: the smallest weight at which the map predicts the data well."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.exceptions import ConvergenceWarning
from manifoldry.neighbors.distances import Frame
from manifoldry.objectives.regression_kernels import GaussianRegressionKernel
from manifoldry.optimize.homotopy import Walk
from manifoldry.optimize.optimizer import Solution
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks, spread_rows
from manifoldry.util.warn import warn


@dataclass
class WeightSearch:
    """Follow the map as the weight grows; take the smallest that predicts the data well enough.

    The data at each point are predicted by the others, weighted by the kernel of the elastic
    embedding itself, exp(−‖yᵢ − yⱼ‖²). The error falls as the map opens, and rises again when
    points part so far that each sees a few others only.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        The data, in units in which squares neither overflow nor vanish.
    walk : Walk
        The homotopy over the weight.
    """

    X: Matrix
    walk: Walk
    solutions: list[Solution] = field(default_factory=list)
    errors: list[tuple[float, float]] = field(default_factory=list)
    """Mean squared error and its standard error, of every weight."""
    ratio: float = 10**0.25  # from one weight to the next; twice as much ends in poorer maps
    largest: float = 1e7  # times the first weight
    patience: int = 4  # weights without a new best after which the search ends
    least: float = 1e5  # times the first weight: clusters far apart open late, one by one
    margin: float = 2.0  # standard errors within which a map is as good as the best
    trimmed: float = 0.01  # fraction of the points, those predicted worst, that does not count
    sample: int = 1000  # points whose prediction is looked at

    def run(self, first: float) -> tuple[float, Solution]:
        """The weight to take and its minimizer, beginning at weight `first`."""
        weights = [first]
        while True:
            solution = self.walk.to(weights[-1])
            if solution.interrupted:
                return weights[-1], solution
            try:
                self.errors.append(self._error(solution.embedding))
            except KeyboardInterrupt:
                return weights[-1], solution.as_interrupted()
            self.solutions.append(solution)
            since = len(weights) - 1 - int(np.argmin([mean for mean, _ in self.errors]))
            enough = since >= self.patience and weights[-1] >= self.least * first
            if enough or weights[-1] > self.largest * first:
                break
            weights.append(self.ratio * weights[-1])
        chosen = weights[self.choice]
        if chosen == weights[-1]:
            warn(
                f"the data are predicted better and better up to weight={chosen:.3g}, where the "
                "search for the best ends; pass a weight, or scale outliers down",
                ConvergenceWarning,
            )
        return chosen, self.walk.settle(chosen, self.solutions[self.choice].embedding)

    @property
    def choice(self) -> int:
        """Number of the smallest weight whose error is the least, but for chance."""
        means, spreads = np.array(self.errors).T
        best = int(np.argmin(means))
        return int(np.flatnonzero(means <= means[best] + self.margin * spreads[best])[0])

    def _error(self, Y: Array) -> tuple[float, float]:
        rows = spread_rows(len(Y), self.sample)
        blocks = row_blocks(len(rows), len(Y) + 2 * self.X.shape[1])
        errors = np.concatenate([self._errors(Y, rows[block]) for block in blocks])
        # Nobody predicts an outlier, and its error would hide all others.
        errors = np.sort(errors)[: len(errors) - int(np.ceil(self.trimmed * len(errors)))]
        return float(errors.mean()), float(errors.std() / np.sqrt(len(errors)))

    def _errors(self, Y: Array, rows: IntArray) -> Array:
        D = cdist(Y[rows], Y, "sqeuclidean")
        D[np.arange(len(rows)), rows] = np.inf
        predicted = GaussianRegressionKernel().weights(D).weights @ self.X
        true = self.X[rows].toarray() if sparse.issparse(self.X) else self.X[rows]
        return np.square(true - predicted).sum(axis=1)


def in_own_units(points: Matrix) -> Matrix:
    """The data about their mean (but for sparse ones), in units that keep squares in range."""
    return Frame.of(points).apply(points)
