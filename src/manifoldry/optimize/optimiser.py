"""What all optimisers share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self, TypeAlias

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.solution import Iterate, Solution
from manifoldry.util.typing import Array

Watcher: TypeAlias = Callable[[Iterate], None]


class Optimiser(ABC):
    """A way to minimise an objective from a given start."""

    @abstractmethod
    def minimise(self, objective: Objective, Y: Array, watch: Watcher | None = None) -> Solution:
        """Search from `Y`; `watch` sees every step.

        On Ctrl-C the best map so far is returned, with ``interrupted`` set.
        """

    @abstractmethod
    def stopping_at(self, max_iter: int | None, tol: float | None) -> Self:
        """The same optimiser that stops elsewhere; None leaves a bound as it is."""

    @abstractmethod
    def hurried(self, max_iter: int, tol: float) -> Self:
        """The same optimiser that stops at these bounds at the latest."""

    @abstractmethod
    def guided_by(self, filter: Filter) -> Self:
        """The same optimiser with another filter."""

    def for_series(self) -> Self:
        """The same optimiser, for objectives that share their attraction and what is made of it."""
        return self
