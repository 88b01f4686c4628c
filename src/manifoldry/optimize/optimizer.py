"""What every optimizer is and returns: the map, how it was reached, whether it may be trusted."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import Filter
from manifoldry.util.arrays import all_finite, namespace, norm, precision
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Point:
    """A map, with the objective's value and gradient there."""

    Y: Array
    value: float
    """Infinite where the objective or its gradient is not finite."""
    G: Array

    @classmethod
    def nonfinite(cls, Y: Array) -> "Point":
        """A map at which the objective cannot be used."""
        return cls(Y, inf, namespace(Y).zeros_like(Y))

    @cached_property
    def gradient_norm(self) -> float:
        """Length of the gradient."""
        return norm(self.G)

    @property
    def is_finite(self) -> bool:
        """Whether value and gradient are finite."""
        return isfinite(self.value)

    @property
    def rounding_error(self) -> float:
        """Difference of values that says nothing in the precision of the map."""
        return 16 * precision(self.Y) * abs(self.value)


class Evaluator:
    """An objective that counts how often it is asked."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.count = objective, 0

    def at(self, Y: Array) -> Point:
        """Value and gradient at `Y`."""
        if not all_finite(Y):
            return Point.nonfinite(Y)
        self.count += 1
        # A trial step may go far beyond what the objective can express; the search steps back.
        with np.errstate(all="ignore"):
            value, G = self.objective.value_and_gradient(Y)
            point = Point(Y, float(value), G)
            finite = point.is_finite and isfinite(point.gradient_norm)
        return point if finite else Point.nonfinite(Y)

    def normalized(self, point: Point) -> Point:
        """The point from which to go on; no evaluation."""
        Y, G = self.objective.normalized(point.Y, point.G)
        return point if Y is point.Y else Point(Y, point.value, G)


class Step(NamedTuple):
    """One step of a search; the first of a trace, with iteration 0, is its start."""

    iteration: int
    value: float
    gradient_norm: float
    length: float
    """Factor of the search direction that was gone; 0 if no lower value was found along it."""
    evaluations: int
    """Evaluations of the objective so far."""
    parameter: float = np.nan
    """What a homotopy was varying; values at different parameters are of different objectives."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where a search is: what a callback sees. The embedding must not be written to."""

    embedding: Array
    step: Step


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimizer, as far as the search got."""

    embedding: Array
    """The map of smallest value, or the last one where a method makes no promise to descend."""
    value: float
    converged: bool
    status: str
    """In words: why the search stopped."""
    trace: list[Step] = field(default_factory=list)
    interrupted: bool = False
    n_evaluations: int = 0
    """Evaluations of the objective, those after the last step included."""

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return self.trace[-1].iteration if self.trace else 0

    def as_interrupted(self) -> Self:
        """The same after an interrupt between this search and the next."""
        return replace(self, converged=False, status="interrupted", interrupted=True)

    def history(self, name: str) -> Array:
        """One figure of all steps, such as ``"value"`` or ``"gradient_norm"``."""
        return np.array([getattr(step, name) for step in self.trace])


Callback: TypeAlias = Callable[[Iterate], None]


class Optimizer(ABC):
    """A way to minimize an objective from a given start."""

    @abstractmethod
    def minimize(
        self, objective: Objective, Y: Array, callback: Callback | None = None
    ) -> Solution:
        """Search from `Y`; `watch` sees every step.

        On Ctrl-C the best map so far is returned, with ``interrupted`` set.
        """

    @abstractmethod
    def with_stopping(self, max_iter: int | None, tol: float | None) -> Self:
        """The same optimizer that stops elsewhere; None leaves a bound as it is."""

    @abstractmethod
    def with_looser_stopping(self, max_iter: int, tol: float) -> Self:
        """The same optimizer that stops at these bounds at the latest."""

    @abstractmethod
    def with_filter(self, filter: Filter) -> Self:
        """The same optimizer with another filter."""

    def with_cached_filter(self) -> Self:
        """The same optimizer, for objectives that share their attraction and what is made of it."""
        return self
