"""A value together with how far it may be off."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from manifoldry.util.typing import Array

CONFIDENCE = 0.95
UNBOUNDED = (-np.inf, np.inf)
FRACTION = (0.0, 1.0)


def half_width(freedom: float = np.inf) -> float:
    """Half the width of the central 95 % of Student's distribution; of the normal, by default."""
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


class Estimate(float):
    """A number, to be used like any other, that knows its 95 % confidence interval.

    Parameters
    ----------
    value : float
        The value.
    low, high : float
        Ends of the interval; without them the value is exact.

    Examples
    --------
    >>> value = Estimate(0.9712, 0.9680, 0.9744)
    >>> figure
    0.971 [0.968, 0.974]
    >>> value > 0.95, value.low, value.exact, Estimate(2).exact
    (True, 0.968, False, True)
    """

    low: float
    high: float
    exact: bool  # whether nothing was left to chance

    def __new__(cls, value: float, low: float | None = None, high: float | None = None) -> Self:
        self = super().__new__(cls, value)
        self.exact = low is None or high is None
        self.low = float(value if low is None else low)
        self.high = float(value if high is None else high)
        return self

    @classmethod
    def with_error(
        cls,
        value: float,
        error: float,
        freedom: float = np.inf,
        within: tuple[float, float] = UNBOUNDED,
    ) -> Self:
        """A value and its standard error, known from so many degrees of freedom.

        The interval is Student's, and ends where values `within` the possible ones end.
        """
        half = half_width(freedom) * error
        return cls(value, max(value - half, within[0]), min(value + half, within[1]))

    @classmethod
    def of_mean(
        cls,
        values: Array,
        population: int | None = None,
        within: tuple[float, float] = UNBOUNDED,
    ) -> Self:
        """The mean of `values`, which were drawn without replacement from so many.

        Where they are all there are, it is exact; without a `population` there are always more.
        """
        values = np.asarray(values, dtype=np.float64)
        mean, n = float(values.mean()), len(values)
        if population is not None and n >= population:
            return cls(mean)
        if n < 2:
            return cls(mean, *within)
        correction = _population_correction(n, population)
        return cls.with_error(
            mean, float(values.std(ddof=1)) * np.sqrt(correction / n), n - 1, within
        )

    @classmethod
    def of_fraction(cls, mask: NDArray[np.bool_], population: int | None = None) -> Self:
        """The fraction of true entries; Wilson's interval, which is right near 0 and 1 too."""
        fraction, n = float(np.mean(mask)), len(mask)
        if population is not None and n >= population:
            return cls(fraction)
        z2 = half_width() ** 2 * _population_correction(n, population) / n
        middle = (fraction + z2 / 2) / (1 + z2)
        half = np.sqrt(z2 * fraction * (1 - fraction) + z2**2 / 4) / (1 + z2)
        return cls(
            fraction, max(0.0, min(fraction, middle - half)), min(1.0, max(fraction, middle + half))
        )

    @classmethod
    def of_bootstrap(
        cls, statistic: Callable[[Any], float], n: int, rng: np.random.Generator, draws: int = 200
    ) -> Self:
        """``statistic(rows)`` of all n rows; the interval from as many rows drawn repeatedly."""
        value = float(statistic(np.arange(n)))
        resampled = np.array([statistic(rng.integers(n, size=n)) for _ in range(draws)])
        return cls.with_error(value, float(resampled.std(ddof=1)), n - 1)

    @classmethod
    def positive(cls, value: float, error: float, freedom: float = np.inf) -> Self:
        """A positive number with this standard error; the interval is one of its logarithm.

        It is that of the number itself where the error is small, and stays positive where it is
        not.
        """
        factor = float(np.exp(half_width(freedom) * error / value))
        return cls(value, value / factor, value * factor)

    def shifted(self, by: float) -> Self:
        """The same figure, counted from another origin."""
        ends = () if self.exact else (self.low + by, self.high + by)
        return type(self)(self + by, *ends)

    def __repr__(self) -> str:
        if self.exact:
            return f"{float(self):.4g}"
        digits = self._digits()
        return f"{float(self):.{digits}g} [{self.low:.{digits}g}, {self.high:.{digits}g}]"

    def _digits(self) -> int:
        """As many as it takes to tell the ends of the interval apart."""
        width, size = self.high - self.low, max(abs(self), abs(self.low), abs(self.high))
        if not 0 < width <= size < np.inf:
            return 3
        return max(3, int(np.floor(np.log10(size)) - np.floor(np.log10(width))) + 1)

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        ends = () if self.exact else (self.low, self.high)
        return type(self), (float(self), *ends)


def _population_correction(n: int, population: int | None) -> float:
    """Fraction of the variance that is left where n of a finite population were looked at."""
    return 1.0 if population is None else (population - n) / (population - 1)
