"""Filters: positive semidefinite operators on gradients, which may change as a search goes on."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from manifoldry.objectives.base import Objective
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class Progress:
    """How a search stands, for filters whose schedule follows it."""

    iteration: int
    """Steps taken."""
    value: float
    decrease: float
    """Share of the value that the last step took away; infinite before the first step."""


class BoundFilter(ABC):
    """A filter at work on one objective."""

    newton_like: bool = False
    """Whether a step of length one is the natural one for the operator of the moment."""
    columnwise: bool = False
    """Whether it takes any number of columns, each by itself, which costs less than one by one."""
    reason: str = ""
    """In words: what was chosen, and why, where there was a choice."""

    @abstractmethod
    def apply(self, G: Array, Y: Array) -> Array:
        """The operator times each column of `G`, (n, d), at the map `Y`."""

    def advance(self, progress: Progress) -> bool:
        """Move on in the schedule; True if the operator is another one now.

        To be called once after every step, and after a search for a step that found none (its
        decrease is zero): only so can a filter whose direction is exhausted go on.
        """
        return False

    @property
    def settled(self) -> bool:
        """Whether the schedule has run its course, so that a search may stop."""
        return True


class Filter(ABC):
    """A choice of filter; `bind` it to an objective to get the operator.

    The direction of a search is −F·G. It descends for any positive semidefinite F, and the line
    search always tests the true slope of the true objective.
    """

    newton_like: bool = False
    """Whether a step of length one is the natural one."""

    @abstractmethod
    def bind(self, objective: Objective) -> BoundFilter:
        """The operator for `objective`, at the start of its schedule."""

    def for_series(self) -> "Filter":
        """The same filter for objectives that share their attraction."""
        return self


@dataclass(frozen=True)
class Identity(Filter):
    """No filter: the direction is the gradient's own."""

    def bind(self, objective: Objective) -> BoundFilter:
        return _Unchanged()


class _Unchanged(BoundFilter):
    def apply(self, G: Array, Y: Array) -> Array:
        return G
