"""What every estimator of dimension returns, and how its interval is made."""

from dataclasses import dataclass, field

import numpy as np

from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array

# Fraction of points whose two nearest neighbors are equally far, as on a lattice, worth a word.
MANY_TIES = 0.05


@dataclass(frozen=True, eq=False)
class Dimension:
    """An estimate of the dimension, with its interval and what it was made from.

    Parameters
    ----------
    value : Estimate
        The dimension, a float with ``low`` and ``high``. The interval covers the chance of the
        sample: what the same method would have said about other points of the same manifold. It
        does not cover the method's bias, which edges, curvature, noise and too few points cause.
    method : str
        Name of the method.
    note : str
        What the method saw, in a few words.
    per_point : array of shape (n_samples,) or None
        Dimension around every point, for methods that have one, to color a map with; NaN where
        a point has too few neighbors to tell.

    Examples
    --------
    >>> from manifoldry.util.estimate import Estimate
    >>> found = Dimension(Estimate(2.04, 1.95, 2.13), "two_nn", "2000 points")
    >>> found
    two_nn: 2.04 [1.95 to 2.13 by chance alone] (2000 points)
    >>> float(found), round(found)
    (2.04, 2)
    """

    value: Estimate
    method: str
    note: str = ""
    per_point: Array | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"{self.method}: {float(self.value):.3g}{self._interval()}{note}"

    def _interval(self) -> str:
        """The interval, with what it does not cover in mind: bias may be larger."""
        low, high = self.value.low, self.value.high
        return "" if self.value.exact else f" [{low:.3g} to {high:.3g} by chance alone]"

    def __float__(self) -> float:
        return float(self.value)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self.value), digits)


def error_of_mean(values: Array, n: int, dependence: float = 2.0) -> float:
    """Standard error of the mean of `values`, one for each of some of n points.

    Points share their distances: each is seen from both its ends, so all n points say as much as
    n / `shared` independent ones would. A few points among many share next to nothing.
    """
    m = len(values)
    inflation = 1 + (dependence - 1) * m / n
    return float(values.std(ddof=1)) * float(np.sqrt(inflation / m))


def error_of_pairs(rows: Array, pair_variance: float, n: int) -> float:
    """Standard error of a mean over pairs: of some points, whose means are `rows`, with all n.

    Hoeffding's decomposition of a U-statistic. What a point contributes to all its pairs counts
    for both ends; what belongs to a pair alone averages out over the pairs.
    """
    m = len(rows)
    point_variance = max(0.0, float(rows.var(ddof=1)) - pair_variance / n)
    from_points = point_variance * (1 / m + 3 / n)
    from_pairs = pair_variance * (n + m) / (m * float(n) ** 2)
    return float(np.sqrt(from_points + from_pairs))
