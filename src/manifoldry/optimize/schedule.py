"""Schedules: when a filter that changes in stages goes on to the next one."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from manifoldry.optimize.filter import Progress
from manifoldry.util.checks import check_count, check_positive


class Schedule(ABC):
    """A rule for going on; it has no state, what it counts is kept by the bound filter."""

    ends: bool = True
    """Whether it will go on some day; a search need not wait for one that never does."""

    @abstractmethod
    def due(self, progress: Progress, steps: int) -> bool:
        """Whether to go on, after `steps` steps in the present stage."""


@dataclass(frozen=True)
class EveryStep(Schedule):
    """Go on after every step, or every few, whatever they achieved: Memisevic and Hinton's rule.

    Examples
    --------
    >>> from manifoldry.optimize.filter import Progress
    >>> EveryStep(period=2).due(Progress(7, 1.0, 0.5), steps=1)
    False
    """

    period: int = 1

    def __post_init__(self) -> None:
        check_count("period", self.period)

    def due(self, progress: Progress, steps: int) -> bool:
        return steps >= self.period


@dataclass(frozen=True)
class OnSlowProgress(Schedule):
    """Go on when a step took away too little of the objective: this stage has done its work.

    A small map is a saddle that the first steps hardly leave; a schedule that counts steps has
    spent its filter by then.

    Parameters
    ----------
    threshold : float, default=0.05
        Share of the objective's value; a step that takes away less is slow.
    at_least : int, default=1
        Steps in a stage before any is called slow.
    at_most : int, default=20
        Steps in a stage, however good.

    Examples
    --------
    >>> from manifoldry.optimize.filter import Progress
    >>> schedule = OnSlowProgress(threshold=0.05)
    >>> [schedule.due(Progress(7, 1.0, decrease), steps=1) for decrease in (0.5, 0.01)]
    [False, True]
    """

    threshold: float = 0.05
    at_least: int = 1
    at_most: int = 20

    def __post_init__(self) -> None:
        check_positive("threshold", self.threshold)
        check_count("at_least", self.at_least)
        check_count("at_most", self.at_most, minimum=self.at_least)

    def due(self, progress: Progress, steps: int) -> bool:
        fast = progress.decrease >= self.threshold  # a decrease that is not a number is not fast
        return steps >= self.at_most or (steps >= self.at_least and not fast)


@dataclass(frozen=True)
class Never(Schedule):
    """Stay in the first stage: one fixed filter.

    Examples
    --------
    >>> from manifoldry.optimize.filter import Progress
    >>> Never().due(Progress(7, 1.0, 0.0), steps=1000)
    False
    """

    ends = False

    def due(self, progress: Progress, steps: int) -> bool:
        return False
