"""The main loop of all iterative optimizers.

Embeddings may be arrays of any array API namespace; values, slopes and lengths are Python floats.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan
from typing import Any, ClassVar, NamedTuple, Self

from manifoldry.device import current_device, device_of
from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import Filter, FilterOperator, Identity, Progress
from manifoldry.optimize.optimizer import (
    Evaluator,
    Iterate,
    Optimizer,
    Point,
    SearchState,
    Solution,
    Step,
    StepCallback,
)
from manifoldry.optimize.stopping import ConvergenceCheck, Status, Stopping
from manifoldry.util.arrays import (
    all_finite,
    as_array,
    copied,
    double,
    is_floating,
    largest,
    like,
    like_if_array,
    on_cpu_if_array,
    read_only,
)
from manifoldry.util.checks import check_instance
from manifoldry.util.typing import Array


class Move(NamedTuple):
    """A successful step: the point it reaches and its length."""

    point: Point
    length: float


class NoStep(NamedTuple):
    """No step was found."""

    expected_decrease: float = 0.0
    """Decrease of the value that the slope predicted."""
    message: str | None = None
    """What went wrong; None if the line search found no lower value."""


class Stepper(ABC):
    """Computes the steps of one search and keeps what they need from earlier ones."""

    @abstractmethod
    def step(self, point: Point) -> Move | NoStep:
        """Take a step from `point`."""

    @abstractmethod
    def filter_changed(self) -> None:
        """Adapt to a filter that has changed."""

    def saved_state(self) -> SearchState | None:
        """What it keeps from earlier steps; None if that cannot be saved."""
        return None

    def restore(self, state: SearchState) -> None:
        """Continue from a saved state."""
        raise NotImplementedError(f"{type(self).__name__} cannot be restored")


@dataclass(frozen=True)
class Descent(Optimizer):
    """Base class of iterative optimizers.

    Parameters
    ----------
    filter : Filter, default=Identity()
        Positive semidefinite operator that multiplies the gradient.
    stopping : Stopping, default=Stopping()
        Stopping criteria.
    """

    # Whether to return the embedding of smallest value or the last one.
    returns_best: ClassVar[bool] = True
    # Steps until convergence of the elastic embedding, for time estimates: 70 and 82 on digits and
    # a roll.
    usual_steps: ClassVar[int] = 70

    filter: Filter = field(default=Identity())
    stopping: Stopping = field(default=Stopping(), kw_only=True)

    def __post_init__(self) -> None:
        check_instance("filter", self.filter, Filter)
        check_instance("stopping", self.stopping, Stopping)

    @abstractmethod
    def _stepper(self, evaluator: Evaluator, filter: FilterOperator) -> Stepper:
        """The stepper of one search."""

    def minimize(
        self, objective: Objective, Y: Array, callback: StepCallback | None = None
    ) -> Solution:
        return self._search(objective, checked_start(objective, Y), callback)

    def resume(
        self, objective: Objective, state: SearchState, callback: StepCallback | None = None
    ) -> Solution:
        return self._search(objective, state["Y"], callback, state)

    def _search(
        self,
        objective: Objective,
        Y: Array,
        callback: StepCallback | None,
        state: SearchState | None = None,
    ) -> Solution:
        given, Y = Y, placed_for(objective, Y)
        record = _SearchRecord(Evaluator(objective), Y, callback, self.returns_best)
        try:
            status = self._descend(objective, Y, record, state)
        except KeyboardInterrupt:
            return record.solution(Status(False, "interrupted"), given, interrupted=True)
        return record.solution(status, given)

    @property
    def expected_steps(self) -> int:
        return min(self.usual_steps, self.max_steps)

    @property
    def max_steps(self) -> int:
        return self.stopping.max_iter

    def with_stopping(self, max_iter: int | None, tol: float | None) -> Self:
        given: dict[str, Any] = {"max_iter": max_iter, "tol": tol}
        rule = replace(self.stopping, **{k: v for k, v in given.items() if v is not None})
        return replace(self, stopping=rule)

    def with_looser_stopping(self, max_iter: int, tol: float) -> Self:
        rule = self.stopping
        return self.with_stopping(min(rule.max_iter, max_iter), max(rule.tol, tol))

    def with_cached_filter(self) -> Self:
        return replace(self, filter=self.filter.cached())

    def _descend(
        self, objective: Objective, Y: Array, record: "_SearchRecord", state: SearchState | None
    ) -> Status:
        filter = self.filter.operator_for(objective)
        stepper = self._stepper(record.evaluator, filter)
        if state is None:
            point = _first_point(record.evaluator, Y)
            check = self.stopping.start(point)
            record.parts = _SearchParts(filter, stepper, check)
            record.add(point, 0.0)
        else:
            state = {name: like_if_array(part, Y) for name, part in state.items()}
            point = Point(Y, float(state["value"]), state["G"])
            check = self.stopping.start(point)
            record.parts = _SearchParts(filter, stepper, check)
            record.restore(state)
        while (status := check.status(filter.finished)) is None:
            move = stepper.step(point)
            if isinstance(move, NoStep):
                if filter.finished or move.message is not None:
                    return _failure_status(move, check)
                move = Move(point, 0.0)  # the next filter may allow a step
            decrease = _relative_decrease(point.value, move.point.value)
            point = record.evaluator.normalized(move.point)
            check.update(point)
            record.add(point, move.length)
            progress = Progress(check.n_steps, point.value, decrease)
            if filter.advance(progress):
                stepper.filter_changed()
                check.reset()
        return status


class _SearchParts(NamedTuple):
    """The parts of a search that remember past steps."""

    filter: FilterOperator
    stepper: Stepper
    check: ConvergenceCheck

    def saved_state(self) -> SearchState | None:
        """What they remember; None if one of them cannot be saved."""
        steps = self.stepper.saved_state() if self.filter.fixed else None
        return None if steps is None else {**steps, **self.check.saved_state()}

    def restore(self, state: SearchState) -> None:
        """Continue from a saved state."""
        self.stepper.restore(state)
        self.check.restore(state)


class _SearchRecord:
    """The embedding to return and the trace of the search."""

    parts: _SearchParts

    def __init__(
        self, evaluator: Evaluator, Y: Array, callback: StepCallback | None, keep_best: bool
    ) -> None:
        self.evaluator, self.callback, self.keep_best = evaluator, callback, keep_best
        self.Y, self.value = Y, nan
        self.trace: list[Step] = []

    def add(self, point: Point, length: float) -> None:
        worse = point.value > self.value  # False for the first point, which is compared with NaN
        if not (worse and self.keep_best):
            self.Y, self.value = point.Y, point.value
        step = Step(len(self.trace), point.value, point.gradient_norm, length, self.evaluator.count)
        self.trace.append(step)
        if self.callback is not None:
            saved_state = partial(self._saved_state, point)
            self.callback(Iterate(read_only(point.Y), step, saved_state))

    def _saved_state(self, point: Point) -> SearchState | None:
        parts = self.parts.saved_state()
        if parts is None:
            return None
        own = {
            "Y": point.Y,
            "G": point.G,
            "value": point.value,
            "trace": list(self.trace),
            "n_evaluations": self.evaluator.count,
        }
        best = {} if self.Y is point.Y else {"best_Y": self.Y, "best_value": self.value}
        return {name: on_cpu_if_array(part) for name, part in (own | best | parts).items()}

    def restore(self, state: SearchState) -> None:
        """Continue from a saved state."""
        best = "best_" if "best_Y" in state else ""
        self.Y, self.value = state[f"{best}Y"], float(state[f"{best}value"])
        self.trace = list(state["trace"])
        self.evaluator.count = int(state["n_evaluations"])
        self.parts.restore(state)

    def solution(self, status: Status, given: Array, interrupted: bool = False) -> Solution:
        """The result, in the memory where the start was given."""
        return Solution(
            copied(like(self.Y, given)),
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
    """Return `Y` as a floating-point array after checking its shape and that it is finite."""
    Y = as_array(Y)
    Y = Y if is_floating(Y) else double(Y)
    if Y.ndim != 2 or Y.shape[0] != objective.n:
        raise ValueError(
            f"the start has shape {Y.shape}, but the objective has n={objective.n} points; "
            f"pass an array of shape ({objective.n}, n_components)"
        )
    if not all_finite(Y):
        raise ValueError("the start contains NaN or infinity; pass finite coordinates")
    return Y


def placed_for(objective: Objective, Y: Array) -> Array:
    """The start in the memory of the current device, if there is one that the objective allows."""
    device = current_device()
    if device is None or device_of(Y) is not None:
        return Y
    if not objective.any_namespace:
        device.runs_on_host(f"the search for {type(objective).__name__}", "it takes numpy arrays")
        return Y
    return device.array(Y, keep=False)


def _first_point(evaluator: Evaluator, Y: Array) -> Point:
    point = evaluator.at(Y)
    if not point.is_finite:
        raise ValueError(
            "the objective or its gradient is not finite at the start (largest coordinate "
            f"{largest(Y):.3g}); pass a start with smaller coordinates"
        )
    return point


def _relative_decrease(before: float, after: float) -> float:
    """Decrease of the value relative to its magnitude before the step."""
    return (before - after) / abs(before) if before != 0 else 0.0
