"""Quasi-Newton steps from a few past gradients."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from manifoldry.optimize.direction import DirectionRule, LineSearchDescent
from manifoldry.optimize.evaluator import Point, inner, norm
from manifoldry.optimize.filter import BoundFilter
from manifoldry.optimize.line_search import LineSearch, Ray, Trial
from manifoldry.optimize.strong_wolfe import StrongWolfe
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array

_CURVED = 1e-10  # cosine between a step and its change of gradient below which it teaches nothing


@dataclass(frozen=True)
class LBFGS(LineSearchDescent):
    """L-BFGS, whose first guess of the inverse Hessian is a filter.

    The method of choice where nothing is known of the objective. The filter F counts as γ·F, γ
    fitted to the last step, and may change at every step without anything being forgotten.

    Parameters
    ----------
    filter : Filter, default=Identity()
        First guess of the inverse Hessian.
    line_search : LineSearch, default=StrongWolfe()
        How far to go.
    memory : int, default=10
        Number of past steps that are remembered, each as large as two maps.
    stopping : Stopping, default=Stopping()
        When to stop.

    Examples
    --------
    >>> LBFGS(memory=20).memory
    20
    """

    line_search: LineSearch = field(default=StrongWolfe())
    memory: int = 10

    def __post_init__(self) -> None:
        check_count("memory", self.memory)

    def _rule(self, filter: BoundFilter) -> DirectionRule:
        return _TwoLoops(filter, self.memory)


class _Pair(NamedTuple):
    """A step and the change of the gradient that it brought."""

    s: Array
    y: Array
    curvature: float


class _TwoLoops(DirectionRule):
    def __init__(self, filter: BoundFilter, memory: int) -> None:
        super().__init__(filter)
        self.pairs: deque[_Pair] = deque(maxlen=memory)

    def direction(self, point: Point) -> Array:
        Q, shares = point.G, []
        for pair in reversed(self.pairs):
            shares.append(inner(pair.s, Q) / pair.curvature)
            Q = Q - shares[-1] * pair.y
        Z = self._first_guess(Q, point)
        for pair, share in zip(self.pairs, reversed(shares), strict=True):
            Z = Z + (share - inner(pair.y, Z) / pair.curvature) * pair.s
        return -Z

    def _first_guess(self, Q: Array, point: Point) -> Array:
        """γ·F·Q, with the γ that maps the last change of gradient to a step as long as it was."""
        if not self.pairs:
            return self.filtered(Q, point)
        last = self.pairs[-1]
        Z, step = self._filtered_both(Q, last.y, point)
        length = inner(last.y, step)
        return (last.curvature / length if length > 0 else 1.0) * Z

    def _filtered_both(self, A: Array, B: Array, point: Point) -> tuple[Array, Array]:
        """F·A and F·B, at once where that is cheaper."""
        if not self.filter.columnwise:
            return self.filtered(A, point), self.filtered(B, point)
        both = self.filtered(np.hstack([A, B]), point)
        return both[:, : A.shape[1]], both[:, A.shape[1] :]

    def first_length(self, ray: Ray) -> float:
        return 1.0 if self.pairs else super().first_length(ray)

    def accepted(self, ray: Ray, trial: Trial) -> None:
        super().accepted(ray, trial)
        s, y = trial.point.Y - ray.start.Y, trial.point.G - ray.start.G
        curvature = inner(s, y)
        if curvature > _CURVED * norm(s) * norm(y):
            self.pairs.append(_Pair(s, y, curvature))

    def forget(self) -> bool:
        remembered = bool(self.pairs)
        self.pairs.clear()
        self.last = None
        return remembered
