"""The loop all optimizers share: step, record, move the filter on, ask whether to stop.

Maps may be arrays of any namespace; what steers the search are Python floats.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any, ClassVar, NamedTuple, Self

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import BoundFilter, Filter, Identity, Progress
from manifoldry.optimize.line_search import Armijo, LineSearch, Ray, Trial
from manifoldry.optimize.optimizer import (
    Evaluator,
    Iterate,
    Optimizer,
    Point,
    Solution,
    Step,
    Watcher,
)
from manifoldry.optimize.stopping import Judge, Stopping, Verdict
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


class Stuck(NamedTuple):
    """There is no step to take."""

    promised: float = 0.0
    """Decrease that the slope let expect."""
    status: str | None = None
    """What went wrong; None if only a lower value was not found."""


class Stepper(ABC):
    """What an optimizer remembers from step to step of one search."""

    @abstractmethod
    def step(self, point: Point) -> Move | Stuck:
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
    def _stepper(self, evaluator: Evaluator, filter: BoundFilter) -> Stepper:
        """What takes the steps of one search."""

    def minimize(self, objective: Objective, Y: Array, watch: Watcher | None = None) -> Solution:
        Y = checked_start(objective, Y)
        record = _Record(Evaluator(objective), Y, watch, self.returns_best)
        try:
            verdict = self._descend(objective, Y, record)
        except KeyboardInterrupt:
            return record.solution(Verdict(False, "interrupted"), interrupted=True)
        return record.solution(verdict)

    def stopping_at(self, max_iter: int | None, tol: float | None) -> Self:
        given: dict[str, Any] = {"max_iter": max_iter, "tol": tol}
        rule = replace(self.stopping, **{k: v for k, v in given.items() if v is not None})
        return replace(self, stopping=rule)

    def hurried(self, max_iter: int, tol: float) -> Self:
        rule = self.stopping
        return self.stopping_at(min(rule.max_iter, max_iter), max(rule.tol, tol))

    def guided_by(self, filter: Filter) -> Self:
        return replace(self, filter=filter)

    def for_series(self) -> Self:
        return replace(self, filter=self.filter.for_series())

    def _descend(self, objective: Objective, Y: Array, record: "_Record") -> Verdict:
        filter = self.filter.bind(objective)
        stepper = self._stepper(record.evaluator, filter)
        point = _first_point(record.evaluator, Y)
        judge = self.stopping.start(point)
        record.note(point, 0.0)
        while (verdict := judge.verdict(filter.settled)) is None:
            move = stepper.step(point)
            if isinstance(move, Stuck):
                if filter.settled or move.status is not None:
                    return _meaning(move, judge)
                move = Move(point, 0.0)  # the next filter may find a way on
            decrease = _fraction(point.value, move.point.value)
            point = record.evaluator.normalized(move.point)
            judge.see(point)
            record.note(point, move.length)
            progress = Progress(judge.steps, point.value, decrease)
            if filter.advance(progress):
                stepper.filter_changed()
                judge.restart()
        return verdict


class _Record:
    """The map to return, and the way to it."""

    def __init__(
        self, evaluator: Evaluator, Y: Array, watch: Watcher | None, only_best: bool
    ) -> None:
        self.evaluator, self.watch, self.only_best = evaluator, watch, only_best
        self.Y, self.value = Y, nan
        self.trace: list[Step] = []

    def note(self, point: Point, length: float) -> None:
        worse = point.value > self.value  # never so for the first, which is compared with NaN
        if not (worse and self.only_best):
            self.Y, self.value = point.Y, point.value
        step = Step(len(self.trace), point.value, point.gradient_norm, length, self.evaluator.count)
        self.trace.append(step)
        if self.watch is not None:
            self.watch(Iterate(read_only(point.Y), step))

    def solution(self, verdict: Verdict, interrupted: bool = False) -> Solution:
        return Solution(
            copied(self.Y),
            self.value,
            *verdict,
            self.trace,
            interrupted=interrupted,
            n_evaluations=self.evaluator.count,
        )


def _meaning(stuck: Stuck, judge: Judge) -> Verdict:
    if stuck.status is not None:
        return Verdict(False, stuck.status)
    return judge.stuck(stuck.promised)


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
    if not point.usable:
        raise ValueError(
            "the objective or its gradient is not finite at the start (largest coordinate "
            f"{largest(Y):.3g}); pass a start of smaller scale"
        )
    return point


def _fraction(before: float, after: float) -> float:
    """Fraction of the value that a step took away."""
    return (before - after) / abs(before) if before != 0 else 0.0


class DirectionRule:
    """Directions of a search, here −F·G; other rules remember past steps.

    Parameters
    ----------
    optimizer : LineSearchDescent
        Whose rule it is.
    filter : BoundFilter
        The operator F.
    """

    def __init__(self, optimizer: "LineSearchDescent", filter: BoundFilter) -> None:
        self.optimizer, self.filter = optimizer, filter
        self.last: Trial | None = None
        self.last_slope = 0.0

    def direction(self, point: Point) -> Array:
        """The direction to search from `point`."""
        return -self.filtered(point.G, point)

    def filtered(self, G: Array, point: Point) -> Array:
        """F·G at a point, in the precision of the map."""
        return cast(self.filter.apply(G, point.Y), point.Y.dtype)

    def first_length(self, ray: Ray) -> float:
        """The length to try first."""
        if self.last is None:
            return 1.0 if self.filter.newton_like else self._small_move(ray)
        length = self._flat_length(self.last)
        return min(length, 1.0) if self.filter.newton_like else length

    def _flat_length(self, last: Trial) -> float:
        """Length at which the last ray would have been flat: Barzilai and Borwein's step."""
        longest = self.optimizer.growth * last.length
        rise = last.slope - self.last_slope
        return min(-self.last_slope / rise * last.length, longest) if rise > 0 else longest

    def _small_move(self, ray: Ray) -> float:
        """Length that moves the map by a fraction of its size, or by one if it has none."""
        size = self.optimizer.first_move * extent(ray.start.Y)
        return (size if size > 0 else 1.0) / norm(ray.P)

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
    """Base of optimizers that search along directions.

    Parameters
    ----------
    filter : Filter, default=Identity()
        What the gradient is multiplied with.
    line_search : LineSearch
        How far to go.
    stopping : Stopping, default=Stopping()
        When to stop.
    first_move : float, default=0.1
        Fraction of the map's size by which the first trial of a search moves it, where the filter
        does not know its own length.
    growth : float, default=10.0
        Largest factor from the length of one step to the first trial of the next.
    """

    line_search: LineSearch = field(default=Armijo())
    first_move: float = field(default=0.1, kw_only=True)
    growth: float = field(default=10.0, kw_only=True)

    def __post_init__(self) -> None:
        check_positive("first_move", self.first_move)
        check_positive("growth", self.growth)

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
