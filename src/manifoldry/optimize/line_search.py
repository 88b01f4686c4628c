"""Line searches: how far to go along a direction, by trials of the true objective."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from manifoldry.optimize.optimizer import Evaluator, Point
from manifoldry.util.arrays import inner, largest, precision
from manifoldry.util.checks import check_below, check_count, check_nonnegative, check_positive
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
    def min_length(self) -> float:
        """Length below which rounding leaves the map as it is."""
        step = precision(self.start.Y) * largest(self.start.Y)
        return max(step, float(np.finfo(np.float64).tiny)) / largest(self.P)

    def at(self, length: float) -> Trial:
        """Evaluate the objective at a distance of `length` directions."""
        with np.errstate(over="ignore", invalid="ignore"):
            Y = self.start.Y + length * self.P
        point = self.evaluator.at(Y)
        return Trial(length, point, inner(point.G, self.P) if point.is_finite else inf)

    def sufficient_decrease(self, trial: Trial, c: float) -> bool:
        """Whether the value fell by at least the fraction `c` of what the slope promised.

        Where rounding hides the fall, the slopes decide, which keep twice the digits: on a
        parabola the two tests are the same (Hager & Zhang's approximate Wolfe condition).
        """
        gain = self.start.value - trial.point.value
        if gain >= -c * trial.length * self.slope:
            return True
        return abs(gain) <= self.start.rounding_error and trial.slope <= (2 * c - 1) * self.slope


class LineSearch(ABC):
    """A way to choose how far to go along a direction."""

    @abstractmethod
    def search(self, ray: Ray, initial_length: float) -> Trial | None:
        """A point further down the ray; None if rounding hides all there are.

        Parameters
        ----------
        ray : Ray
            With a negative slope.
        initial_length : float
            The length to try first.
        """


@dataclass(frozen=True)
class Armijo(LineSearch):
    """Shorten the step until E(Y + ηP) ≤ E(Y) + c·η⟨G, P⟩; lengthen it where it was too timid.

    One evaluation per step where the first length is right, which suits directions that know
    their own length (Jacobi, diagonal Hessian, spectral direction). A step after which the slope
    has hardly changed is lengthened, as a small map near a saddle needs it.

    Parameters
    ----------
    c : float, default=0.1
        Fraction of the promised decrease that is asked for, below one half.
    shrink : float, default=0.5
        Factor of a step that is too long.
    expand : float, default=4.0
        Factor of a step that is too short; 1 never lengthens a step.
    max_trials : int, default=60
        Evaluations after which the search gives up.
    slope_fraction : float, default=0.9
        A step was far too short if the slope after it is still this fraction of the slope before.

    Examples
    --------
    >>> from manifoldry.optimize import GradientDescent
    >>> GradientDescent(line_search=Armijo(shrink=0.8)).line_search.shrink
    0.8
    """

    c: float = 0.1
    shrink: float = 0.5
    expand: float = 4.0
    max_trials: int = 60
    slope_fraction: float = 0.9

    def __post_init__(self) -> None:
        check_below("c", check_positive("c", self.c), 0.5, "a parabola's minimum must pass")
        check_below("shrink", check_positive("shrink", self.shrink), 1, "steps get shorter by it")
        if check_positive("expand", self.expand) < 1:
            raise ValueError(f"expand={self.expand} must be at least 1; pass expand=1 for none")
        check_count("max_trials", self.max_trials)
        check_below(
            "slope_fraction",
            check_positive("slope_fraction", self.slope_fraction),
            1,
            "slopes get flatter",
        )

    def search(self, ray: Ray, initial_length: float) -> Trial | None:
        trial = ray.at(initial_length)
        change = self._lengthened if ray.sufficient_decrease(trial, self.c) else self._shortened
        trial = change(ray, trial)
        # A step that is hidden by rounding shows nothing unless the slope has changed.
        hidden = trial.point.value >= ray.start.value and self._is_steep(ray, trial)
        return trial if ray.sufficient_decrease(trial, self.c) and not hidden else None

    def _shortened(self, ray: Ray, trial: Trial) -> Trial:
        for _ in range(self.max_trials - 1):
            length = trial.length * self.shrink
            if ray.sufficient_decrease(trial, self.c) or length <= ray.min_length:
                break
            trial = ray.at(length)
        return trial

    def _lengthened(self, ray: Ray, trial: Trial) -> Trial:
        for _ in range(self.max_trials - 1):
            if self.expand == 1 or not self._is_steep(ray, trial):
                break
            further = ray.at(trial.length * self.expand)
            worse = further.point.value > trial.point.value + ray.start.rounding_error
            if worse or not ray.sufficient_decrease(further, self.c):
                break
            trial = further
        return trial

    def _is_steep(self, ray: Ray, trial: Trial) -> bool:
        return trial.slope <= self.slope_fraction * ray.slope


@dataclass(frozen=True)
class StrongWolfe(LineSearch):
    """E(Y + ηP) ≤ E(Y) + c₁η⟨G, P⟩ and a slope of at most c₂ times the slope at the start.

    The second condition makes the differences of gradients useful to conjugate gradients and
    L-BFGS. The near end of the bracket always falls steeply with enough decrease and the far end
    rises or has too little, so that there are such points between them.

    Parameters
    ----------
    c1 : float, default=1e-4
        Fraction of the promised decrease that is asked for.
    c2 : float, default=0.9
        Fraction of the slope that may be left: 0.9 for quasi-Newton directions, 0.1 for conjugate
        gradients, close to zero for a nearly exact minimum.
    expand : float, default=10.0
        Largest factor from one trial to the next while no far end is known.
    max_trials : int, default=40
        Evaluations after which the lowest point so far is taken.
    bracket_margin : float, default=0.05
        Fraction of a bracket's width that a trial keeps away from both of its ends.
    backtrack : float, default=0.1
        Fraction of the bracket to go back to where its far end has no finite value.

    Examples
    --------
    >>> from manifoldry.optimize import ConjugateGradient
    >>> ConjugateGradient().line_search.c2
    0.1
    """

    c1: float = 1e-4
    c2: float = 0.9
    expand: float = 10.0
    max_trials: int = 40
    bracket_margin: float = 0.05
    backtrack: float = 0.1

    def __post_init__(self) -> None:
        check_below("c2", check_positive("c2", self.c2), 1, "the slope has to flatten")
        c1 = check_positive("c1", self.c1)
        check_below("c1", c1, min(0.5, self.c2), "the smaller of 1/2 and c2")
        if check_positive("expand", self.expand) <= 1:
            raise ValueError(f"expand={self.expand} must be greater than 1; pass expand=10")
        check_count("max_trials", self.max_trials)
        check_below(
            "bracket_margin",
            check_nonnegative("bracket_margin", self.bracket_margin),
            0.5,
            "two ends keep it",
        )
        check_below(
            "backtrack", check_positive("backtrack", self.backtrack), 1, "trials get shorter"
        )

    def search(self, ray: Ray, initial_length: float) -> Trial | None:
        bracket, lowest, length = _Bracket(self, ray.origin), ray.origin, initial_length
        for _ in range(self.max_trials):
            trial = ray.at(length)
            decreases = ray.sufficient_decrease(trial, self.c1)
            if decreases and abs(trial.slope) <= -self.c2 * ray.slope:
                return trial
            if decreases and trial.point.value < lowest.point.value:
                lowest = trial
            bracket.narrow(trial, descending=decreases and trial.slope < 0)
            if bracket.width <= ray.min_length:
                break
            length = bracket.next_length()
        return lowest if lowest.length > 0 else None


class _Bracket:
    """Two ends between which the slope changes its sign, the far one perhaps not known yet."""

    def __init__(self, rule: StrongWolfe, origin: Trial) -> None:
        self.rule, self.near, self.far, self.previous = rule, origin, None, origin
        self.same_end = 0  # how often running the same end has moved

    near: Trial
    far: Trial | None
    previous: Trial

    @property
    def width(self) -> float:
        return inf if self.far is None else self.far.length - self.near.length

    def narrow(self, trial: Trial, descending: bool) -> None:
        """Put a trial in the place of the end that it is like."""
        self.same_end = max(self.same_end, 0) + 1 if descending else min(self.same_end, 0) - 1
        if descending:
            self.previous, self.near = self.near, trial
        else:
            self.far = trial

    def next_length(self) -> float:
        """Where to look next."""
        if self.far is None:
            return self._extrapolated()
        if not self.far.point.is_finite:
            return self.near.length + self.rule.backtrack * self.width
        fraction = 0.5 if abs(self.same_end) > 1 else self._secant_fraction()
        margin = self.rule.bracket_margin
        return self.near.length + min(max(fraction, margin), 1 - margin) * self.width

    def _extrapolated(self) -> float:
        """Where the slope would vanish if it went on as between the last two trials."""
        rise, done = self.near.slope - self.previous.slope, self.near.length - self.previous.length
        more = done * -self.near.slope / rise if rise > 0 else inf
        least, most = 1.1 * self.near.length, self.rule.expand * self.near.length
        return min(max(self.near.length + more, least), most)

    def _secant_fraction(self) -> float:
        """Fraction of the width at which the slope would vanish if it were linear."""
        assert self.far is not None
        if self.far.slope <= 0:  # it fell and rose again in between
            return 0.5
        return self.near.slope / (self.near.slope - self.far.slope)
