"""What all line searches share: trials along a ray, and when one has lowered the value enough."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np

from manifoldry.optimize.evaluator import Evaluator, Point, inner
from manifoldry.util.typing import Array


class Trial(NamedTuple):
    """A point on a ray."""

    length: float
    point: Point
    slope: float
    """Derivative of the objective along the ray at this point."""


class Ray:
    """The objective along the half-line from a point in a direction.

    Parameters
    ----------
    evaluator : Evaluator
        The objective.
    start : Point
        Where the ray starts.
    P : array of shape (n, d)
        Its direction.
    """

    def __init__(self, evaluator: Evaluator, start: Point, P: Array) -> None:
        self.evaluator, self.start, self.P = evaluator, start, P
        self.origin = Trial(0.0, start, inner(start.G, P))

    @property
    def slope(self) -> float:
        """Derivative of the objective at the start of the ray."""
        return self.origin.slope

    @cached_property
    def shortest(self) -> float:
        """Length below which rounding leaves the map as it is."""
        eps = np.finfo(self.start.Y.dtype).eps
        size, speed = (float(np.abs(A).max()) for A in (self.start.Y, self.P))
        return float(max(eps * size, np.finfo(np.float64).tiny) / speed)

    def at(self, length: float) -> Trial:
        """Evaluate the objective at a distance of `length` directions."""
        with np.errstate(over="ignore", invalid="ignore"):
            Y = self.start.Y + self.start.Y.dtype.type(length) * self.P
        point = self.evaluator.at(Y)
        return Trial(length, point, inner(point.G, self.P) if point.usable else np.inf)

    def lowers(self, trial: Trial, c: float) -> bool:
        """Whether the value fell by at least the share `c` of what the slope promised.

        Where rounding hides the fall, the slopes decide, which keep twice the digits: on a
        parabola the two tests are the same (Hager & Zhang's approximate Wolfe condition).
        """
        gain = self.start.value - trial.point.value
        if gain >= -c * trial.length * self.slope:
            return True
        return abs(gain) <= self.start.rounding and trial.slope <= (2 * c - 1) * self.slope


class LineSearch(ABC):
    """A way to choose how far to go along a direction."""

    @abstractmethod
    def search(self, ray: Ray, first: float) -> Trial | None:
        """A point further down the ray; None if rounding hides all there are.

        Parameters
        ----------
        ray : Ray
            With a negative slope.
        first : float
            The length to try first.
        """
