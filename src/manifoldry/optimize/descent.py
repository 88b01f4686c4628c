"""The loop all optimizers share: step, record, move the filter on, ask whether to stop.

Maps may be arrays of any namespace; what steers the search are Python floats.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any, ClassVar, NamedTuple, Self

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import Filter, FilterOperator, Identity, Progress
from manifoldry.optimize.line_search import Armijo, LineSearch, Ray, Trial
from manifoldry.optimize.optimizer import (
    Callback,
    Evaluator,
    Iterate,
    Optimizer,
    Point,
    Solution,
    Step,
)
from manifoldry.optimize.stopping import ConvergenceCheck, Status, Stopping
from manifoldry.util.arrays import (
    all_finite,
    as_array,
    cast,
    copied,
    double,
    extent,
    is_floating,
    largest,
    norm,
    read_only,
)
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array


class Move(NamedTuple):
    """Where one step leads."""

    point: Point
    length: float


class NoStep(NamedTuple):
    """There is no step to take."""

    expected_decrease: float = 0.0
    """Decrease that the slope let expect."""
    message: str | None = None
    """What went wrong; None if only a lower value was not found."""


class Stepper(ABC):
    """What an optimizer remembers from step to step of one search."""

    @abstractmethod
    def step(self, point: Point) -> Move | NoStep:
        """Go from `point` to the next."""

    @abstractmethod
    def filter_changed(self) -> None:
        """Take note that the filter is another operator now."""


@dataclass(frozen=True)
class Descent(Optimizer):
    """Base of optimizers that go from point to point.

    Parameters
    ----------
    filter : Filter, default=Identity()
        What the gradient is multiplied with.
    stopping : Stopping, default=Stopping()
        When to stop.
    """

    # Whether the map of smallest value is returned, or the last one.
    returns_best: ClassVar[bool] = True

    filter: Filter = field(default=Identity())
    stopping: Stopping = field(default=Stopping(), kw_only=True)

    @abstractmethod
    def _stepper(self, evaluator: Evaluator, filter: FilterOperator) -> Stepper:
        """What takes the steps of one search."""

    def minimize(
        self, objective: Objective, Y: Array, callback: Callback | None = None
    ) -> Solution:
        Y = checked_start(objective, Y)
        record = _SearchRecord(Evaluator(objective), Y, callback, self.returns_best)
        try:
            status = self._descend(objective, Y, record)
        except KeyboardInterrupt:
            return record.solution(Status(False, "interrupted"), interrupted=True)
        return record.solution(status)

    def with_stopping(self, max_iter: int | None, tol: float | None) -> Self:
        given: dict[str, Any] = {"max_iter": max_iter, "tol": tol}
        rule = replace(self.stopping, **{k: v for k, v in given.items() if v is not None})
        return replace(self, stopping=rule)

    def with_looser_stopping(self, max_iter: int, tol: float) -> Self:
        rule = self.stopping
        return self.with_stopping(min(rule.max_iter, max_iter), max(rule.tol, tol))

    def with_filter(self, filter: Filter) -> Self:
        return replace(self, filter=filter)

    def with_cached_filter(self) -> Self:
        return replace(self, filter=self.filter.cached())

    def _descend(self, objective: Objective, Y: Array, record: "_SearchRecord") -> Status:
        filter = self.filter.operator_for(objective)
        stepper = self._stepper(record.evaluator, filter)
        point = _first_point(record.evaluator, Y)
        check = self.stopping.start(point)
        record.add(point, 0.0)
        while (status := check.status(filter.finished)) is None:
            move = stepper.step(point)
            if isinstance(move, NoStep):
                if filter.finished or move.message is not None:
                    return _failure_status(move, check)
                move = Move(point, 0.0)  # the next filter may find a way on
            decrease = _relative_decrease(point.value, move.point.value)
            point = record.evaluator.normalized(move.point)
            check.update(point)
            record.add(point, move.length)
            progress = Progress(check.n_steps, point.value, decrease)
            if filter.advance(progress):
                stepper.filter_changed()
                check.reset()
        return status


class _SearchRecord:
    """The map to return, and the way to it."""

    def __init__(
        self, evaluator: Evaluator, Y: Array, callback: Callback | None, keep_best: bool
    ) -> None:
        self.evaluator, self.callback, self.keep_best = evaluator, callback, keep_best
        self.Y, self.value = Y, nan
        self.trace: list[Step] = []

    def add(self, point: Point, length: float) -> None:
        worse = point.value > self.value  # never so for the first, which is compared with NaN
        if not (worse and self.keep_best):
            self.Y, self.value = point.Y, point.value
        step = Step(len(self.trace), point.value, point.gradient_norm, length, self.evaluator.count)
        self.trace.append(step)
        if self.callback is not None:
            self.callback(Iterate(read_only(point.Y), step))

    def solution(self, status: Status, interrupted: bool = False) -> Solution:
        return Solution(
            copied(self.Y),
            self.value,
            *status,
            self.trace,
            interrupted=interrupted,
            n_evaluations=self.evaluator.count,
        )


def _failure_status(failure: NoStep, check: ConvergenceCheck) -> Status:
    if failure.message is not None:
        return Status(False, failure.message)
    return check.failed_step(failure.expected_decrease)


def checked_start(objective: Objective, Y: Array) -> Array:
    """Return `Y` as a finite map of the objective's points, in its own precision."""
    Y = as_array(Y)
    Y = Y if is_floating(Y) else double(Y)
    if Y.ndim != 2 or Y.shape[0] != objective.n:
        raise ValueError(
            f"the start has shape {Y.shape}, but the objective is about n={objective.n} points; "
            f"pass an array of shape ({objective.n}, n_components)"
        )
    if not all_finite(Y):
        raise ValueError("the start contains NaN or infinity; pass finite coordinates")
    return Y


def _first_point(evaluator: Evaluator, Y: Array) -> Point:
    point = evaluator.at(Y)
    if not point.is_finite:
        raise ValueError(
            "the objective or its gradient is not finite at the start (largest coordinate "
            f"{largest(Y):.3g}); pass a start of smaller scale"
        )
    return point


def _relative_decrease(before: float, after: float) -> float:
    """Fraction of the value that a step took away."""
    return (before - after) / abs(before) if before != 0 else 0.0


class SearchDirection:
    """Directions of a search, here −F·G; other rules remember past steps.

    Parameters
    ----------
    optimizer : LineSearchDescent
        Whose rule it is.
    filter : FilterOperator
        The operator F.
    """

    def __init__(self, optimizer: "LineSearchDescent", filter: FilterOperator) -> None:
        self.optimizer, self.filter = optimizer, filter
        self.last_trial: Trial | None = None
        self.last_slope = 0.0

    def compute(self, point: Point) -> Array:
        """The direction to search from `point`."""
        return -self.filtered(point.G, point)

    def filtered(self, G: Array, point: Point) -> Array:
        """F·G at a point, in the precision of the map."""
        return cast(self.filter.apply(G, point.Y), point.Y.dtype)

    def initial_length(self, ray: Ray) -> float:
        """The length to try first."""
        if self.last_trial is None:
            return 1.0 if self.filter.newton_like else self._small_step_length(ray)
        length = self._barzilai_borwein_length(self.last_trial)
        return min(length, 1.0) if self.filter.newton_like else length

    def _barzilai_borwein_length(self, last: Trial) -> float:
        """Length at which the last ray would have been flat: Barzilai and Borwein's step."""
        longest = self.optimizer.max_growth * last.length
        rise = last.slope - self.last_slope
        return min(-self.last_slope / rise * last.length, longest) if rise > 0 else longest

    def _small_step_length(self, ray: Ray) -> float:
        """Length that moves the map by a fraction of its size, or by one if it has none."""
        size = self.optimizer.initial_step * extent(ray.start.Y)
        return (size if size > 0 else 1.0) / norm(ray.P)

    def update(self, ray: Ray, trial: Trial) -> None:
        """Take note of a step."""
        self.last_trial, self.last_slope = trial, ray.slope

    def reset(self) -> bool:
        """Return to −F·G; False if that was the direction already."""
        return False

    def filter_changed(self) -> None:
        """Take note that the filter is another operator now."""
        if self.filter.newton_like:  # it knows its own length, whatever came before
            self.last_trial = None


@dataclass(frozen=True)
class LineSearchDescent(Descent):
    """Base of optimizers that search along directions.

    Parameters
    ----------
    filter : Filter, default=Identity()
        What the gradient is multiplied with.
    line_search : LineSearch
        How far to go.
    stopping : Stopping, default=Stopping()
        When to stop.
    initial_step : float, default=0.1
        Fraction of the map's size by which the first trial of a search moves it, where the filter
        does not know its own length.
    max_growth : float, default=10.0
        Largest factor from the length of one step to the first trial of the next.
    """

    line_search: LineSearch = field(default=Armijo())
    initial_step: float = field(default=0.1, kw_only=True)
    max_growth: float = field(default=10.0, kw_only=True)

    def __post_init__(self) -> None:
        check_positive("initial_step", self.initial_step)
        check_positive("max_growth", self.max_growth)

    @abstractmethod
    def _search_direction(self, filter: FilterOperator) -> SearchDirection:
        """The rule for directions, at the start of a search."""

    def _stepper(self, evaluator: Evaluator, filter: FilterOperator) -> Stepper:
        return _LineSearchStepper(evaluator, self._search_direction(filter), self.line_search)


class _LineSearchStepper(Stepper):
    """Steps that are line searches along a rule's directions."""

    def __init__(
        self, evaluator: Evaluator, direction: SearchDirection, line_search: LineSearch
    ) -> None:
        self.evaluator, self.direction, self.line_search = evaluator, direction, line_search

    def step(self, point: Point) -> Move | NoStep:
        expected_decrease = 0.0
        while True:
            ray = Ray(self.evaluator, point, self.direction.compute(point))
            if ray.slope < 0:
                first = max(self.direction.initial_length(ray), 2 * ray.min_length)
                trial = self.line_search.search(ray, first)
                if trial is not None:
                    self.direction.update(ray, trial)
                    return Move(trial.point, trial.length)
                expected_decrease = -first * ray.slope
            if not self.direction.reset():
                return NoStep(expected_decrease)

    def filter_changed(self) -> None:
        self.direction.filter_changed()
