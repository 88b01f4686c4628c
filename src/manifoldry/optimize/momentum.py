"""Gradient steps with momentum and a gain per coordinate, as t-SNE is usually run."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from manifoldry.optimize.descent import Descent, Move, Stepper, Stuck
from manifoldry.optimize.evaluator import Evaluator, Point
from manifoldry.optimize.filter import BoundFilter
from manifoldry.util.checks import check_below, check_nonnegative, check_option, check_positive

_FASTER, _SLOWER, _SLOWEST = 0.2, 0.8, 0.01  # van der Maaten & Hinton's rule for the gains


@dataclass(frozen=True)
class Momentum(Descent):
    """Steps without a line search: V ← m·V − η·gains∘F·G, Y ← Y + V.

    A coordinate's gain grows while it keeps its direction and shrinks when it turns back. One
    evaluation per step, no promise that the value falls: the last map is returned, which need
    not be the best. Every search starts at rest; t-SNE's early exaggeration is a search of its
    own before the proper one.

    Parameters
    ----------
    filter : Filter, default=Identity()
        What the gradient is multiplied with.
    learning_rate : float or "auto", default="auto"
        The factor η; "auto" is max(n/12, 50), for objectives whose weights sum to one.
    momentum : float, default=0.8
        Share of the last step that is added to the next, below one. Early exaggeration takes 0.5.
    stopping : Stopping, default=Stopping()
        When to stop.

    Examples
    --------
    >>> Momentum(momentum=0.5).momentum
    0.5
    """

    # Its value often lies above that of the start on the way to a better map.
    returns_best: ClassVar[bool] = False

    learning_rate: float | Literal["auto"] = "auto"
    momentum: float = 0.8

    def __post_init__(self) -> None:
        if isinstance(self.learning_rate, str):
            check_option("learning_rate", self.learning_rate, ("auto",))
        else:
            check_positive("learning_rate", self.learning_rate)
        share = check_nonnegative("momentum", self.momentum)
        check_below("momentum", share, 1, "else steps never die out")

    def _stepper(self, evaluator: Evaluator, filter: BoundFilter) -> Stepper:
        rate = self.learning_rate
        if rate == "auto":
            rate = max(evaluator.objective.n / 12, 50.0)
        return _Glide(evaluator, filter, float(rate), self.momentum)


class _Glide(Stepper):
    """Steps with a velocity and gains."""

    def __init__(
        self, evaluator: Evaluator, filter: BoundFilter, rate: float, momentum: float
    ) -> None:
        self.evaluator, self.filter, self.rate, self.momentum = evaluator, filter, rate, momentum
        self.V = self.gains = np.zeros(())

    def step(self, point: Point) -> Move | Stuck:
        Z = np.asarray(self.filter.apply(point.G, point.Y), dtype=point.Y.dtype)
        if self.V.ndim == 0:
            self.V, self.gains = np.zeros_like(Z), np.ones_like(Z)
        onwards = self.V * Z < 0
        gains = np.where(onwards, self.gains + _FASTER, self.gains * _SLOWER)
        self.gains = np.maximum(gains, _SLOWEST).astype(Z.dtype)
        self.V = self.momentum * self.V - self.rate * self.gains * Z
        new = self.evaluator.at(point.Y + self.V)
        if not new.usable:
            return Stuck(status=f"the value is no longer finite; lower learning_rate={self.rate:g}")
        return Move(new, self.rate)

    def filter_changed(self) -> None:
        """Glide on: a velocity is one of the map, whatever gave it."""
