"""The loop all optimisers share: step, record, move the filter on, ask whether to stop."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from manifoldry.objectives.base import Objective
from manifoldry.optimize.evaluator import Evaluator, Point
from manifoldry.optimize.filter import BoundFilter, Filter, Identity, Progress
from manifoldry.optimize.optimiser import Optimiser, Watcher
from manifoldry.optimize.solution import Iterate, Solution, Step
from manifoldry.optimize.stopping import Judge, Stopping, Verdict
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
    """What an optimiser remembers from step to step of one search."""

    @abstractmethod
    def step(self, point: Point) -> Move | Stuck:
        """Go from `point` to the next."""

    @abstractmethod
    def filter_changed(self) -> None:
        """Take note that the filter is another operator now."""


@dataclass(frozen=True)
class Descent(Optimiser):
    """Base of optimisers that go from point to point.

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

    def minimise(self, objective: Objective, Y: Array, watch: Watcher | None = None) -> Solution:
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
            decrease = _share(point.value, move.point.value)
            point = record.evaluator.normalised(move.point)
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
        self.Y, self.value = Y, np.nan
        self.trace: list[Step] = []

    def note(self, point: Point, length: float) -> None:
        worse = point.value > self.value  # never so for the first, which is compared with NaN
        if not (worse and self.only_best):
            self.Y, self.value = point.Y, point.value
        step = Step(len(self.trace), point.value, point.gradient_norm, length, self.evaluator.count)
        self.trace.append(step)
        if self.watch is not None:
            self.watch(Iterate(_read_only(point.Y), step))

    def solution(self, verdict: Verdict, interrupted: bool = False) -> Solution:
        return Solution(
            self.Y.copy(),
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
    Y = np.asarray(Y)
    if not np.issubdtype(Y.dtype, np.floating):
        Y = Y.astype(np.float64)
    if Y.ndim != 2 or len(Y) != objective.n:
        raise ValueError(
            f"the start has shape {Y.shape}, but the objective is about n={objective.n} points; "
            f"pass an array of shape ({objective.n}, n_components)"
        )
    if not np.isfinite(Y).all():
        raise ValueError("the start contains NaN or infinity; pass finite coordinates")
    return Y


def _first_point(evaluator: Evaluator, Y: Array) -> Point:
    point = evaluator.at(Y)
    if not point.usable:
        raise ValueError(
            "the objective or its gradient is not finite at the start (largest coordinate "
            f"{np.abs(Y).max():.3g}); pass a start of smaller scale"
        )
    return point


def _share(before: float, after: float) -> float:
    """Share of the value that a step took away."""
    return (before - after) / abs(before) if before != 0 else 0.0


def _read_only(Y: Array) -> Array:
    view = Y.view()
    view.flags.writeable = False
    return view
