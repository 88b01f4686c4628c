"""Evaluations of an objective, counted, and safe where a trial goes too far."""

from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite

import numpy as np

from manifoldry.objectives.base import Objective
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
    def unusable(cls, Y: Array) -> "Point":
        """A map at which the objective cannot be used."""
        return cls(Y, inf, namespace(Y).zeros_like(Y))

    @cached_property
    def gradient_norm(self) -> float:
        """Length of the gradient."""
        return norm(self.G)

    @property
    def usable(self) -> bool:
        """Whether value and gradient are finite."""
        return isfinite(self.value)

    @property
    def rounding(self) -> float:
        """Difference of values that says nothing in the precision of the map."""
        return 16 * precision(self.Y) * abs(self.value)


class Evaluator:
    """An objective that counts how often it is asked."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.count = objective, 0

    def at(self, Y: Array) -> Point:
        """Value and gradient at `Y`."""
        if not all_finite(Y):
            return Point.unusable(Y)
        self.count += 1
        # A trial step may go far beyond what the objective can express; the search steps back.
        with np.errstate(all="ignore"):
            value, G = self.objective.value_and_gradient(Y)
            point = Point(Y, float(value), G)
            finite = point.usable and isfinite(point.gradient_norm)
        return point if finite else Point.unusable(Y)

    def normalised(self, point: Point) -> Point:
        """The point from which to go on; no evaluation."""
        Y, G = self.objective.normalised(point.Y, point.G)
        return point if Y is point.Y else Point(Y, point.value, G)
