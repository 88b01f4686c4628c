"""Descent along directions: a rule for directions, and the line search that tests them."""

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from manifoldry.optimize.armijo import Armijo
from manifoldry.optimize.descent import Descent, Move, Stepper, Stuck
from manifoldry.optimize.evaluator import Evaluator, Point, extent, norm
from manifoldry.optimize.filter import BoundFilter
from manifoldry.optimize.line_search import LineSearch, Ray, Trial
from manifoldry.util.typing import Array

_FIRST_MOVE = 0.1  # share of the map's size by which the first trial moves it
_LONGER = 10.0  # most by which a first trial is longer than the step before


class DirectionRule:
    """Directions of a search, here −F·G; other rules remember past steps.

    Parameters
    ----------
    filter : BoundFilter
        The operator F.
    """

    def __init__(self, filter: BoundFilter) -> None:
        self.filter = filter
        self.last: Trial | None = None
        self.last_slope = 0.0

    def direction(self, point: Point) -> Array:
        """The direction to search from `point`."""
        return -self.filtered(point.G, point)

    def filtered(self, G: Array, point: Point) -> Array:
        """F·G at a point, in the precision of the map."""
        return np.asarray(self.filter.apply(G, point.Y), dtype=point.Y.dtype)

    def first_length(self, ray: Ray) -> float:
        """The length to try first."""
        if self.last is None:
            return 1.0 if self.filter.newton_like else _small_move(ray)
        length = self._flat_length(self.last)
        return min(length, 1.0) if self.filter.newton_like else length

    def _flat_length(self, last: Trial) -> float:
        """Length at which the last ray would have been flat: Barzilai and Borwein's step."""
        longest = _LONGER * last.length
        rise = last.slope - self.last_slope
        return min(-self.last_slope / rise * last.length, longest) if rise > 0 else longest

    def accepted(self, ray: Ray, trial: Trial) -> None:
        """Take note of a step."""
        self.last, self.last_slope = trial, ray.slope

    def forget(self) -> bool:
        """Return to −F·G; False if that was the direction already."""
        return False

    def filter_changed(self) -> None:
        """Take note that the filter is another operator now."""
        if self.filter.newton_like:  # it knows its own length, whatever came before
            self.last = None


@dataclass(frozen=True)
class LineSearchDescent(Descent):
    """Base of optimisers that search along directions.

    Parameters
    ----------
    filter : Filter, default=Identity()
        What the gradient is multiplied with.
    line_search : LineSearch
        How far to go.
    stopping : Stopping, default=Stopping()
        When to stop.
    """

    line_search: LineSearch = field(default=Armijo())

    @abstractmethod
    def _rule(self, filter: BoundFilter) -> DirectionRule:
        """The rule for directions, at the start of a search."""

    def _stepper(self, evaluator: Evaluator, filter: BoundFilter) -> Stepper:
        return _Searches(evaluator, self._rule(filter), self.line_search)


class _Searches(Stepper):
    """Steps that are line searches along a rule's directions."""

    def __init__(self, evaluator: Evaluator, rule: DirectionRule, line_search: LineSearch) -> None:
        self.evaluator, self.rule, self.line_search = evaluator, rule, line_search

    def step(self, point: Point) -> Move | Stuck:
        promised = 0.0
        while True:
            ray = Ray(self.evaluator, point, self.rule.direction(point))
            if ray.slope < 0:
                first = max(self.rule.first_length(ray), 2 * ray.shortest)
                trial = self.line_search.search(ray, first)
                if trial is not None:
                    self.rule.accepted(ray, trial)
                    return Move(trial.point, trial.length)
                promised = -first * ray.slope
            if not self.rule.forget():
                return Stuck(promised)

    def filter_changed(self) -> None:
        self.rule.filter_changed()


def _small_move(ray: Ray) -> float:
    """Length that moves the map by a tenth of its size, or by one if it has none."""
    size = _FIRST_MOVE * extent(ray.start.Y)
    return (size if size > 0 else 1.0) / norm(ray.P)
