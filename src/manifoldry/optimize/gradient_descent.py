"""Descent along the filtered gradient."""

from dataclasses import dataclass

from manifoldry.optimize.direction import DirectionRule, LineSearchDescent
from manifoldry.optimize.filter import BoundFilter


@dataclass(frozen=True)
class GradientDescent(LineSearchDescent):
    """Go along −F·G, the gradient G times a filter F.

    Plain (without a filter) it is the slowest of all; with a filter that knows the curvature of
    attraction, such as the spectral direction, it is simple, memoryless and fast. With the
    Jacobi filter it is the fixed-point iteration of the elastic embedding.

    Parameters
    ----------
    filter : Filter, default=Identity()
        The operator F.
    line_search : LineSearch, default=Armijo()
        How far to go. The first trial is Barzilai and Borwein's, the length at which the last
        step would have met a flat slope; at most 1 for filters whose natural length is one.
    stopping : Stopping, default=Stopping()
        When to stop.

    Examples
    --------
    >>> from manifoldry.optimize.stopping import Stopping
    >>> optimiser = GradientDescent(stopping=Stopping(max_iter=200))
    >>> optimiser.stopping.max_iter
    200
    """

    def _rule(self, filter: BoundFilter) -> DirectionRule:
        return DirectionRule(filter)
