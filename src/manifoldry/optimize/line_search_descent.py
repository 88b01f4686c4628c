"""Base class of the optimizers that choose a search direction and the length of a step along it."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

from manifoldry.device.vectors import norm
from manifoldry.optimize.descent import Descent, Move, NoStep, Stepper
from manifoldry.optimize.filter import FilterOperator
from manifoldry.optimize.line_search import Armijo, LineSearch, Ray, Trial
from manifoldry.optimize.optimizer import Evaluator, Point, SearchState
from manifoldry.util.arrays import cast
from manifoldry.util.checks import check_instance, check_positive
from manifoldry.util.typing import Array


class LastStep(NamedTuple):
    """The last step of a line search: its length, and the slopes at its start and its end."""

    length: float
    first_slope: float
    slope: float


class SearchDirection:
    """Search directions −F·G; subclasses also use past steps.

    Parameters
    ----------
    optimizer : LineSearchDescent
        The optimizer, for its options.
    filter : FilterOperator
        The operator F.
    """

    def __init__(self, optimizer: "LineSearchDescent", filter: FilterOperator) -> None:
        self.optimizer, self.filter = optimizer, filter
        self.last: LastStep | None = None

    def compute(self, point: Point) -> Array:
        """The search direction at `point`."""
        return -self.filtered(point.G, point)

    def filtered(self, G: Array, point: Point) -> Array:
        """F·G at a point, in the dtype of the embedding."""
        return cast(self.filter.apply(G, point.Y), point.Y.dtype)

    def initial_length(self, ray: Ray) -> float:
        """Initial trial length of the line search."""
        if self.last is None:
            return 1.0 if self.filter.newton_like else self._small_step_length(ray)
        length = self._barzilai_borwein_length(self.last)
        return min(length, 1.0) if self.filter.newton_like else length

    def _barzilai_borwein_length(self, last: LastStep) -> float:
        """Length at which the last slope would have vanished: Barzilai and Borwein's step."""
        longest = self.optimizer.max_growth * last.length
        rise = last.slope - last.first_slope
        return min(-last.first_slope / rise * last.length, longest) if rise > 0 else longest

    def _small_step_length(self, ray: Ray) -> float:
        """Length that moves the embedding by a fraction of its size, or by one if that is zero."""
        size = self.optimizer.initial_step * ray.start.extent
        return (size if size > 0 else 1.0) / norm(ray.P)

    def update(self, ray: Ray, trial: Trial) -> None:
        """Record a step."""
        self.last = LastStep(trial.length, ray.slope, trial.slope)

    def reset(self) -> bool:
        """Return to −F·G; False if the last direction was −F·G already."""
        return False

    def filter_changed(self) -> None:
        """Adapt to a filter that has changed."""
        if self.filter.newton_like:  # its natural length is one
            self.last = None

    def saved_state(self) -> SearchState:
        """What it keeps from earlier steps."""
        return {} if self.last is None else {"last": self.last}

    def restore(self, state: SearchState) -> None:
        """Continue from a saved state."""
        if "last" in state:
            self.last = LastStep(*map(float, state["last"]))


@dataclass(frozen=True)
class LineSearchDescent(Descent):
    """Base class of optimizers that use a line search.

    Parameters
    ----------
    filter : Filter, default=Identity()
        Positive semidefinite operator that multiplies the gradient.
    line_search : LineSearch
        How to choose the step length.
    stopping : Stopping, default=Stopping()
        Stopping criteria.
    initial_step : float, default=0.1
        Size of the first trial step of a search relative to that of the embedding; not used with
        Newton-like filters, whose natural step length is one.
    max_growth : float, default=10.0
        Largest ratio of the initial trial length of a step to the length of the step before.
    """

    line_search: LineSearch = field(default=Armijo())
    initial_step: float = field(default=0.1, kw_only=True)
    max_growth: float = field(default=10.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_instance("line_search", self.line_search, LineSearch)
        check_positive("initial_step", self.initial_step)
        check_positive("max_growth", self.max_growth)

    @abstractmethod
    def _search_direction(self, filter: FilterOperator) -> SearchDirection:
        """The search directions of one search."""

    def _stepper(self, evaluator: Evaluator, filter: FilterOperator) -> Stepper:
        return _LineSearchStepper(evaluator, self._search_direction(filter), self.line_search)


class _LineSearchStepper(Stepper):
    """Steps by line searches along search directions."""

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

    def saved_state(self) -> SearchState:
        return self.direction.saved_state()

    def restore(self, state: SearchState) -> None:
        self.direction.restore(state)
