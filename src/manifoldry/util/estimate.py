"""Numbers with confidence intervals."""

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
    """97.5 % quantile of Student's t distribution; of the normal distribution by default."""
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


class Estimate(float):
    """A float with a 95 % confidence interval.

    Parameters
    ----------
    value : float
        The value.
    low, high : float
        Ends of the interval; by default the value is exact.

    See Also
    --------
    trustworthiness : a metric that returns one.

    Examples
    --------
    >>> value = Estimate(0.9712, 0.9680, 0.9744)
    >>> value
    0.971 [0.968, 0.974]
    >>> value > 0.95, value.low, value.exact, Estimate(2).exact
    (True, 0.968, False, True)
    """

    low: float
    high: float
    exact: bool  # whether there is no interval

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
        """Estimate from a value and its standard error, by Student's t distribution.

        Parameters
        ----------
        value : float
            The value.
        error : float
            Its standard error.
        freedom : float, default=inf
            Degrees of freedom of the standard error.
        within : (float, float), default=(-inf, inf)
            The possible range, to which the interval is clipped.

        Returns
        -------
        Estimate
            The value with its interval.
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
        """Mean of values that were drawn without replacement from a population.

        Parameters
        ----------
        values : array of shape (n,)
            The values.
        population : int, default=None
            Size of the population; None means an infinite one. The mean is exact if the values
            are the whole population.
        within : (float, float), default=(-inf, inf)
            The possible range, to which the interval is clipped.

        Returns
        -------
        Estimate
            The mean with its interval.
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
        """Fraction of true entries, with Wilson's score interval.

        Parameters
        ----------
        mask : array of bool of shape (n,)
            The entries, drawn without replacement from a population.
        population : int, default=None
            Size of the population; None means an infinite one. The fraction is exact if the
            entries are the whole population.

        Returns
        -------
        Estimate
            The fraction with its interval.
        """
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
        """Statistic of all rows, with a standard error from bootstrap resampling.

        Parameters
        ----------
        statistic : callable
            Called with an array of n row numbers, some of which may repeat; returns a float.
        n : int
            Number of rows.
        rng : numpy.random.Generator
            Draws the samples.
        draws : int, default=200
            Number of samples. If the statistic of one of them is not finite, the error is infinite.

        Returns
        -------
        Estimate
            The statistic of all rows with its interval.
        """
        value = float(statistic(np.arange(n)))
        resampled = np.array([statistic(rng.integers(n, size=n)) for _ in range(draws)])
        finite = np.isfinite(resampled).all()
        return cls.with_error(value, float(resampled.std(ddof=1)) if finite else np.inf, n - 1)

    @classmethod
    def positive(cls, value: float, error: float, freedom: float = np.inf) -> Self:
        """Positive value with a standard error, and an interval that is positive too.

        The interval is computed for the logarithm; for small errors it agrees with that of the
        number.

        Parameters
        ----------
        value : float
            The value.
        error : float
            Its standard error.
        freedom : float, default=inf
            Degrees of freedom of the standard error.

        Returns
        -------
        Estimate
            The value with its interval.
        """
        with np.errstate(over="ignore"):  # the interval is then unbounded
            factor = float(np.exp(half_width(freedom) * error / value))
        return cls(value, value / factor, value * factor)

    def shifted(self, by: float) -> Self:
        """Add a constant to the value and the interval.

        Parameters
        ----------
        by : float
            The constant.

        Returns
        -------
        Estimate
            The new estimate, exact if this one is.
        """
        ends = () if self.exact else (self.low + by, self.high + by)
        return type(self)(self + by, *ends)

    def __repr__(self) -> str:
        if self.exact:
            return f"{float(self):.4g}"
        digits = self._digits()
        return f"{float(self):.{digits}g} [{self.low:.{digits}g}, {self.high:.{digits}g}]"

    def _digits(self) -> int:
        """Number of digits needed to distinguish the ends of the interval."""
        width, size = self.high - self.low, max(abs(self), abs(self.low), abs(self.high))
        if not 0 < width <= size < np.inf:
            return 3
        return max(3, int(np.floor(np.log10(size)) - np.floor(np.log10(width))) + 1)

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        ends = () if self.exact else (self.low, self.high)
        return type(self), (float(self), *ends)


def _population_correction(n: int, population: int | None) -> float:
    """Finite population correction of the variance of the mean of n values."""
    return 1.0 if population is None else (population - n) / (population - 1)
