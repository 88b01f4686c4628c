"""Choice of the weight of repulsion by the error of predicting the data from the embedding."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.neighbors.distances import Frame
from manifoldry.objectives.regression_kernels import GaussianRegressionKernel
from manifoldry.optimize.homotopy import HomotopyRun
from manifoldry.optimize.optimizer import Solution
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks, spread_rows


@dataclass
class WeightSearch:
    """Minimize at increasing weights; choose the smallest that predicts the data well enough.

    Each point is predicted from the others, weighted by the kernel of the elastic embedding,
    exp(−‖yᵢ − yⱼ‖²). The error decreases as the embedding unfolds, and increases again when the
    distances between points are so large that each has few others within the kernel's width.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        The data, scaled so that squares neither overflow nor underflow.
    homotopy : HomotopyRun
        The homotopy over the weight.
    """

    X: Matrix
    homotopy: HomotopyRun
    solutions: list[Solution] = field(default_factory=list)
    errors: list[tuple[float, float]] = field(default_factory=list)
    """Mean squared error and its standard error at every weight."""
    ratio: float = 10**0.25  # of consecutive weights; twice the step ends in poorer minima
    # The search ends at the latest at `max_weight_ratio` times the first weight, and not before
    # `min_weight_ratio` times it, because distant clusters unfold late.
    max_weight_ratio: float = 1e7
    min_weight_ratio: float = 1e5
    patience: int = 4  # number of weights without improvement before the search ends
    margin: float = 2.0  # number of standard errors within which an error counts as the best
    trimmed: float = 0.01  # fraction of points with the largest errors that is left out
    sample: int = 1000  # number of points whose prediction error is computed

    def run(self, first: float) -> tuple[float, Solution]:
        """The chosen weight and its minimizer, starting with weight `first`."""
        weights = [first]
        while True:
            solution = self.homotopy.advance(weights[-1])
            if solution.interrupted:
                return weights[-1], solution
            try:
                self.errors.append(self._error(solution.embedding))
            except KeyboardInterrupt:
                return weights[-1], solution.as_interrupted()
            self.solutions.append(solution)
            since = len(weights) - 1 - int(np.argmin([mean for mean, _ in self.errors]))
            enough = since >= self.patience and weights[-1] >= self.min_weight_ratio * first
            if enough or weights[-1] > self.max_weight_ratio * first:
                break
            weights.append(self.ratio * weights[-1])
        chosen = weights[self.choice]
        if chosen == weights[-1]:
            warn(
                f"the prediction error still decreases at weight={chosen:.3g}, the largest one "
                "tried; pass a weight, or scale outliers down",
                ConvergenceWarning,
            )
        return chosen, self.homotopy.minimize(chosen, self.solutions[self.choice].embedding)

    @classmethod
    def expected_searches(cls) -> int:
        """Number of searches if the best weight is the first at which the search may end."""
        increases = np.log(cls.min_weight_ratio) / np.log(cls.ratio)
        return int(np.ceil(increases)) + cls.patience + 2  # the first and the last

    @property
    def choice(self) -> int:
        """Index of the smallest weight whose error is within the margin of the smallest error."""
        means, spreads = np.array(self.errors).T
        best = int(np.argmin(means))
        return int(np.flatnonzero(means <= means[best] + self.margin * spreads[best])[0])

    def _error(self, Y: Array) -> tuple[float, float]:
        rows = spread_rows(len(Y), self.sample)
        blocks = row_blocks(len(rows), len(Y) + 2 * self.X.shape[1])
        errors = np.concatenate([self._errors(Y, rows[block]) for block in blocks])
        # The errors of outliers, which cannot be predicted, would dominate the mean.
        errors = np.sort(errors)[: len(errors) - int(np.ceil(self.trimmed * len(errors)))]
        return float(errors.mean()), float(errors.std() / np.sqrt(len(errors)))

    def _errors(self, Y: Array, rows: IntArray) -> Array:
        D = cdist(Y[rows], Y, "sqeuclidean")
        D[np.arange(len(rows)), rows] = np.inf
        predicted = GaussianRegressionKernel().weights(D).weights @ self.X
        true = self.X[rows].toarray() if sparse.issparse(self.X) else self.X[rows]
        return np.square(true - predicted).sum(axis=1)


def scaled_data(points: Matrix) -> Matrix:
    """The data, centered unless sparse, and scaled so that squares stay in range."""
    return Frame.of(points).apply(points)
