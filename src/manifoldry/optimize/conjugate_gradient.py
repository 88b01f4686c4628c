"""Nonlinear conjugate gradients with a filter as preconditioner."""

from dataclasses import dataclass, field

from manifoldry.optimize.direction import DirectionRule, LineSearchDescent
from manifoldry.optimize.evaluator import Point, inner
from manifoldry.optimize.filter import BoundFilter
from manifoldry.optimize.line_search import LineSearch, Ray
from manifoldry.optimize.strong_wolfe import StrongWolfe
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class ConjugateGradient(LineSearchDescent):
    """Polak and Ribière's conjugate gradients, started afresh where β would be negative.

    Remembers one direction only, so it suits maps that are large for the memory of L-BFGS, which
    usually needs fewer evaluations. It also starts afresh when the filter changes.

    Parameters
    ----------
    filter : Filter, default=Identity()
        The preconditioner.
    line_search : LineSearch, default=StrongWolfe(c2=0.1)
        How far to go.
    stopping : Stopping, default=Stopping()
        When to stop.

    Examples
    --------
    >>> ConjugateGradient().stopping.max_iter
    1000
    """

    line_search: LineSearch = field(default=StrongWolfe(c2=0.1))

    def _rule(self, filter: BoundFilter) -> DirectionRule:
        return _PolakRibiere(filter)


class _PolakRibiere(DirectionRule):
    P: Array | None = None  # the last direction, unless a fresh start is due
    steepest = True  # whether that was −F·G
    G: Array  # the gradient it was made from
    descent: float  # ⟨G, F·G⟩ there

    def direction(self, point: Point) -> Array:
        Z = self.filtered(point.G, point)
        beta = 0.0 if self.P is None else inner(point.G - self.G, Z) / self.descent
        self.steepest = beta <= 0
        P = -Z if self.P is None or self.steepest else beta * self.P - Z
        self.descent, self.G, self.P = inner(point.G, Z), point.G, P
        return P

    def first_length(self, ray: Ray) -> float:
        """The length that promises the decrease that the last one did."""
        if self.last is None:
            return super().first_length(ray)
        return self.last.length * self.last_slope / ray.slope

    def forget(self) -> bool:
        self.P = self.last = None
        return not self.steepest

    def filter_changed(self) -> None:
        super().filter_changed()
        self.P = None
