"""Evaluations of an objective, counted, and safe where a trial goes too far."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manifoldry.objectives.base import Objective
from manifoldry.util.typing import Array


def inner(A: Array, B: Array) -> float:
    """Σ AᵢⱼBᵢⱼ in double precision.

    Not by BLAS: its threads wait for each other, on a busy machine for milliseconds.
    """
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    return float(np.einsum("ij,ij->", A, B))


def norm(A: Array) -> float:
    """Length of `A` as one vector, in double precision."""
    return float(np.sqrt(inner(A, A)))


def extent(Y: Array) -> float:
    """Size of a map, wherever it lies: the length of its offsets from their mean."""
    return norm(Y - Y.mean(axis=0, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Point:
    """A map, with the objective's value and gradient there."""

    Y: Array
    value: float
    """Infinite where the objective or its gradient is not finite."""
    G: Array

    @cached_property
    def gradient_norm(self) -> float:
        """Length of the gradient."""
        return norm(self.G)

    @property
    def usable(self) -> bool:
        """Whether value and gradient are finite."""
        return bool(np.isfinite(self.value))

    @property
    def rounding(self) -> float:
        """Difference of values that says nothing in the precision of the map."""
        return float(16 * np.finfo(self.Y.dtype).eps * abs(self.value))


class Evaluator:
    """An objective that counts how often it is asked."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.count = objective, 0

    def at(self, Y: Array) -> Point:
        """Value and gradient at `Y`."""
        if not np.isfinite(Y).all():
            return Point(Y, np.inf, np.zeros_like(Y))
        self.count += 1
        # A trial step may go far beyond what the objective can express; the search steps back.
        with np.errstate(all="ignore"):
            value, G = self.objective.value_and_gradient(Y)
            point = Point(Y, float(value), G)
            finite = np.isfinite(value) and np.isfinite(point.gradient_norm)
        return point if finite else Point(Y, np.inf, np.zeros_like(Y))

    def normalised(self, point: Point) -> Point:
        """The point from which to go on; no evaluation."""
        Y, G = self.objective.normalised(point.Y, point.G)
        return point if Y is point.Y else Point(Y, point.value, G)
