"""Local errors of reconstructed data, and the conformal quantile of held-out errors."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.extension.regression import EmbeddingSpacing, LocalRegression
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import power_of_two_scale, row_blocks


@dataclass(frozen=True, eq=False)
class LocalError:
    """Local mean of the leave-one-out errors of regressing data on positions."""

    Z: Array  # positions with known errors
    lengths: Array  # their leave-one-out errors
    n_neighbors: int = 10  # number of positions averaged
    min_fraction: float = 0.1  # smallest local error as a fraction of the mean

    @classmethod
    def fit(cls, Z: Array, X: Matrix) -> "LocalError":
        """Compute the errors at up to a thousand positions."""
        regression = LocalRegression(Z, X)
        return cls(Z[regression.spacing.sample], regression.residual_lengths)

    @cached_property
    def map(self) -> EmbeddingSpacing:
        """Nearest-neighbor index of the positions."""
        return EmbeddingSpacing(self.Z)

    def at(self, Z: Array) -> Array:
        """Mean error of the nearest positions, (n_new,), bounded away from zero."""
        mean = float(self.lengths.mean()) or 1.0
        nearest, _ = self.map.index.nearest(Z, min(self.n_neighbors, len(self.Z)))
        return np.maximum(self.lengths[nearest].mean(axis=1), self.min_fraction * mean)


def conformal_quantile(scores: Array, coverage: float) -> float:
    """Upper bound for a new score that holds with probability `coverage` or more.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.wrappers.calibration import conformal_quantile
    >>> conformal_quantile(np.arange(1.0, 20.0), 0.9), conformal_quantile(np.ones(3), 0.9)
    (18.0, inf)
    """
    rank = conformal_rank(len(scores), coverage)
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else np.inf


def conformal_rank(n: int, coverage: float) -> int:
    """Rank of the conformal quantile among n scores; above n if n is too small."""
    return rounded_up((n + 1) * coverage)


def rounded_up(value: float) -> int:
    """Smallest integer of at least `value`, up to rounding: 9 for 0.9 / (1 - 0.9)."""
    return int(np.ceil(value - 1e-9))


def row_distances(X: Matrix, Y: Array) -> Array:
    """Distance between each row of X and the same row of Y."""
    out = np.empty(len(Y))
    for block in row_blocks(*Y.shape):
        rows = X[block].toarray() if sparse.issparse(X) else X[block]
        step = rows - Y[block]
        unit = power_of_two_scale(step) if np.isfinite(step).all() else 1.0
        out[block] = np.linalg.norm(step / unit, axis=1) * unit
    return out
