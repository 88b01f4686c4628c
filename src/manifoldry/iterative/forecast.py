"""How far a fit is, and how long the rest of it will take."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from manifoldry.optimize.homotopy import Homotopy
from manifoldry.optimize.optimizer import Optimizer


@dataclass(frozen=True)
class Phase:
    """Consecutive searches of a fit.

    Parameters
    ----------
    name : str
        Name of the phase.
    steps, max_steps : int or None
        Expected and maximum number of steps of a search; None if it is not known.
    n_searches : int, default=1
        Expected number of searches.
    parameter : str, default=""
        Name of the parameter that differs between the searches.
    """

    name: str
    steps: int | None
    max_steps: int | None
    n_searches: int = 1
    parameter: str = ""

    @classmethod
    def search(cls, name: str, optimizer: Optimizer) -> "Phase":
        """A single search."""
        return cls(name, optimizer.expected_steps, optimizer.max_steps)

    @classmethod
    def homotopy(
        cls, name: str, homotopy: Homotopy, parameter: str, n_values: int | None = None
    ) -> "Phase":
        """The searches of a homotopy, by default at as many values as it has."""
        n = len(homotopy.values_between(1.0, 2.0)) if n_values is None else n_values
        return cls(name, min(homotopy.usual_steps, homotopy.max_iter), None, n, parameter)

    @property
    def total(self) -> float:
        """Expected number of steps of all searches, NaN if it is not known."""
        return np.nan if self.steps is None else self.n_searches * self.steps


@dataclass
class Forecast:
    """Counts the steps of a fit, and predicts the remaining time from that of the first ones.

    The remaining searches of a phase are expected to take as many steps as those before.

    Parameters
    ----------
    phases : sequence of Phase
        The phases of the fit; the last may have more searches than expected.
    clock : callable, default=time.monotonic
        The time in seconds.
    min_steps, min_seconds : int, float, default=3, 10.0
        There is no prediction before this many steps or seconds. The first step is not timed,
        because functions may be compiled.
    excess : float, default=0.25
        A search that takes more steps than expected needs this fraction more, until it ends.

    Examples
    --------
    >>> ticks = iter(range(100))
    >>> forecast = Forecast([Phase("search", 20, 1000)], clock=lambda: next(ticks))
    >>> forecast.begin()
    >>> for _ in range(5):
    ...     forecast.advance()
    >>> forecast.fraction, forecast.seconds_left
    (0.25, 15.0)
    """

    phases: Sequence[Phase]
    clock: Callable[[], float] = time.monotonic
    min_steps: int = field(default=3, kw_only=True)
    min_seconds: float = field(default=10.0, kw_only=True)
    excess: float = field(default=0.25, kw_only=True)
    done: int = 0
    """Steps of all searches."""
    parameter: float = np.nan
    _timed: int = 0  # steps whose time was measured
    _phase: int = 0
    _search: int = 0  # number of the search in its phase, from 1
    _step: int = 0  # steps of this search
    _before: int = 0  # steps of the searches before it in this phase
    _times: tuple[float, float] = (np.nan, np.nan)  # of the first step and of the last one
    _reached: float = 0.0  # largest fraction so far

    def begin(self, parameter: float = np.nan) -> None:
        """Count another search, unless it repeats the last one from another start."""
        if self._search and parameter == self.parameter:
            return
        if self._search >= self.phase.n_searches and self._phase < len(self.phases) - 1:
            self._phase, self._search, self._before, self._step = self._phase + 1, 0, 0, 0
        self._before, self._step = self._before + self._step, 0
        self._search, self.parameter = self._search + 1, parameter

    def advance(self, timed: bool = True) -> None:
        """Count a step; one that was not `timed` is from before the fit was interrupted."""
        now = self.clock()
        self.done, self._step = self.done + 1, self._step + 1
        self._timed += timed
        if timed:
            self._times = (now, now) if self._timed == 1 else (self._times[0], now)
        self._reached = max(self._reached, self._expected_fraction)

    @property
    def phase(self) -> Phase:
        """The current phase."""
        return self.phases[self._phase]

    @property
    def fraction(self) -> float:
        """Fraction of the expected steps that are done, NaN if it is not known.

        It never decreases, though more steps may turn out to be needed.
        """
        return max(self._expected_fraction, self._reached)

    @property
    def _expected_fraction(self) -> float:
        return self.done / max(self.done + self._steps_left, 1)

    @property
    def seconds_left(self) -> float:
        """Predicted time of the remaining steps, NaN if there is no prediction yet."""
        timed, elapsed = self._timed - 1, self._times[1] - self._times[0]
        if timed < 1 or (timed < self.min_steps and elapsed < self.min_seconds):
            return np.nan
        return elapsed / timed * self._steps_left

    @property
    def seconds(self) -> float:
        """Predicted time of the whole fit, NaN if there is no prediction yet."""
        return self.seconds_left * (1 + self.done / max(self._steps_left, 1e-9))

    @property
    def _steps_left(self) -> float:
        phase, later = self.phase, self.phases[self._phase + 1 :]
        if phase.steps is None:
            return np.nan
        usual = self._before / (self._search - 1) if self._before else float(phase.steps)
        searches = max(phase.n_searches - self._search, 0)
        return self._left_of_search(usual) + searches * usual + sum(p.total for p in later)

    def _left_of_search(self, usual: float) -> float:
        most = np.inf if self.phase.max_steps is None else self.phase.max_steps
        return float(min(max(usual - self._step, self.excess * self._step), most - self._step))

    def __str__(self) -> str:
        """The phase, the parameter and the step."""
        phase, where = self.phase, self.phase.name
        most = "" if phase.max_steps is None else f" of at most {phase.max_steps}"
        if phase.parameter:
            where += f", {phase.parameter} {self.parameter:.3g}"
        if phase.n_searches > 1:
            where += f" ({self._search} of {max(phase.n_searches, self._search)})"
        return f"{where}, step {self._step}{most}"

    @property
    def remainder(self) -> str:
        """The fraction that is done and the remaining time, in words; empty if unknown."""
        if np.isnan(self.fraction):
            return ""
        left = "" if np.isnan(self.seconds_left) else f", {duration(self.seconds_left)} left"
        return f"{self.fraction:.0%}{left}"


def duration(seconds: float) -> str:
    """A length of time in words, rounded to the unit that a reader needs.

    Examples
    --------
    >>> [duration(s) for s in (0.2, 59, 60, 1450, 3 * 3600, 50 * 3600)]
    ['1 second', '59 seconds', '1 minute', '24 minutes', '3 hours', '50 hours']
    """
    units = ((7200.0, 3600.0, "hour"), (59.5, 60.0, "minute"), (0.0, 1.0, "second"))
    _, length, unit = next(row for row in units if seconds >= row[0])
    count = max(round(seconds / length), 1)
    return f"{count} {unit}{'s' if count > 1 else ''}"
