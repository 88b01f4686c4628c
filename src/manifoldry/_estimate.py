"""A figure together with how far it may be off."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.special import stdtrit

from manifoldry._typing import Array

CONFIDENCE = 0.95


def _student(freedom: int) -> float:
    """Half the width of the central 95 % of Student's distribution."""
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


class Estimate(float):
    """A number, to be used like any other, that knows its 95 % confidence interval.

    Parameters
    ----------
    value : float
        The figure.
    low, high : float
        Ends of the interval; by default the figure itself, which is then exact.

    Examples
    --------
    >>> figure = Estimate(0.9712, 0.9680, 0.9744)
    >>> figure
    0.971 [0.968, 0.974]
    >>> figure > 0.95, figure.low, round(figure, 2)
    (True, 0.968, 0.97)
    """

    low: float
    high: float

    def __new__(cls, value: float, low: float | None = None, high: float | None = None) -> Self:
        self = super().__new__(cls, value)
        self.low = float(value if low is None else low)
        self.high = float(value if high is None else high)
        return self

    @classmethod
    def of_mean(cls, values: Array, population: int | None = None) -> Self:
        """The mean of `values`, which were drawn without replacement from so many.

        Where they are all there are, it is exact; without a `population` there are always more.
        """
        values = np.asarray(values, dtype=np.float64)
        mean, n = float(values.mean()), len(values)
        if population is not None and n >= population:
            return cls(mean)
        if n < 2:
            return cls(mean, -np.inf, np.inf)
        left = 1.0 if population is None else (population - n) / (population - 1)
        half = _student(n - 1) * float(values.std(ddof=1)) * np.sqrt(left / n)
        return cls(mean, mean - half, mean + half)

    @classmethod
    def of_bootstrap(
        cls, statistic: Callable[[Any], float], n: int, rng: np.random.Generator, draws: int = 200
    ) -> Self:
        """``statistic(rows)`` of all n rows; the interval from as many rows drawn repeatedly."""
        value = float(statistic(np.arange(n)))
        drawn = np.array([statistic(rng.integers(n, size=n)) for _ in range(draws)])
        half = _student(n - 1) * float(drawn.std(ddof=1))
        return cls(value, value - half, value + half)

    @property
    def exact(self) -> bool:
        """Whether nothing was left to chance."""
        return self.low == self.high

    def __repr__(self) -> str:
        if self.exact:
            return f"{float(self):.3g}"
        return f"{float(self):.3g} [{self.low:.3g}, {self.high:.3g}]"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (float(self), self.low, self.high)
