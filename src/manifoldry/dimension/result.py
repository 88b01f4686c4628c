"""The result of a dimension estimator, and standard errors for its interval."""

from dataclasses import dataclass, field

import numpy as np

from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array

# Fraction of points with two equally distant nearest neighbors above which ties are reported.
MANY_TIES = 0.05


@dataclass(frozen=True, eq=False)
class Dimension:
    """An estimate of the dimension with its confidence interval.

    Parameters
    ----------
    value : Estimate
        The dimension, a float with ``low`` and ``high``, the ends of a 95 % confidence interval.
        The interval covers sampling error only, not the bias of the method due to boundaries,
        curvature, noise or a small sample.
    method : str
        Name of the method.
    note : str
        What the estimate is based on, in a few words.
    per_point : array of shape (n_samples,) or None
        Local dimension at each point, for methods that compute one; NaN where a point has too few
        neighbors.

    See Also
    --------
    DimensionReport : the estimates of all methods.

    Examples
    --------
    >>> from manifoldry.util.estimate import Estimate
    >>> found = Dimension(Estimate(2.04, 1.95, 2.13), "two_nn", "2000 points")
    >>> found
    two_nn: 2.04 (95 % interval 1.95 to 2.13; 2000 points)
    >>> float(found), round(found)
    (2.04, 2)
    """

    value: Estimate
    method: str
    note: str = ""
    per_point: Array | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        value = self.value
        interval = "" if value.exact else f"95 % interval {value.low:.3g} to {value.high:.3g}"
        details = "; ".join(part for part in (interval, self.note) if part)
        return f"{self.method}: {float(value):.3g}" + (f" ({details})" if details else "")

    def __float__(self) -> float:
        return float(self.value)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self.value), digits)


def error_of_mean(values: Array, n: int, dependence: float = 2.0) -> float:
    """Standard error of the mean of `values`, computed at len(values) of n points.

    Values of nearby points are correlated since they share distances: with values at all n points,
    only one in `dependence` is independent. A small sample of points is nearly independent.
    """
    m = len(values)
    inflation = 1 + (dependence - 1) * m / n
    return float(values.std(ddof=1)) * float(np.sqrt(inflation / m))


def error_of_pairs(rows: Array, pair_variance: float, n: int) -> float:
    """Standard error of a mean over the pairs of some points, whose means are `rows`, with all n.

    Uses Hoeffding's decomposition of a U-statistic into a variance between points, which counts for
    both ends of a pair, and the remaining variance of single pairs.
    """
    m = len(rows)
    point_variance = max(0.0, float(rows.var(ddof=1)) - pair_variance / n)
    from_points = point_variance * (1 / m + 3 / n)
    from_pairs = pair_variance * (n + m) / (m * float(n) ** 2)
    return float(np.sqrt(from_points + from_pairs))
