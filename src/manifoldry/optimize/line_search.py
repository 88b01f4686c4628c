"""Line searches: the choice of a step length along a search direction."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from manifoldry.device.vectors import combination, inner
from manifoldry.optimize.optimizer import Evaluator, Point
from manifoldry.util.arrays import largest, precision
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_below, check_count, check_nonnegative, check_positive
from manifoldry.util.typing import Array


class Trial(NamedTuple):
    """A point on a ray, with its distance from the start."""

    length: float
    point: Point
    slope: float
    """Derivative of the objective along the ray at this point."""


class Ray:
    """The objective along the ray from a point in a search direction.

    Parameters
    ----------
    evaluator : Evaluator
        The objective.
    start : Point
        The start of the ray.
    P : array of shape (n, d)
        The search direction.
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
        """Length below which a step changes the embedding by less than rounding error."""
        step = precision(self.start.Y) * largest(self.start.Y)
        return max(step, float(np.finfo(np.float64).tiny)) / largest(self.P)

    def at(self, length: float) -> Trial:
        """Evaluate the objective at the start plus `length` times the direction."""
        with np.errstate(over="ignore", invalid="ignore"):
            Y = combination([1.0, length], [self.start.Y, self.P])
        point = self.evaluator.at(Y)
        return Trial(length, point, inner(point.G, self.P) if point.is_finite else inf)

    def sufficient_decrease(self, trial: Trial, c: float) -> bool:
        """Whether the value decreased by at least `c` times what the slope at the start predicts.

        If the change of the value is below rounding error, the slopes are compared instead, which
        are accurate to twice as many digits (Hager and Zhang's approximate Wolfe condition). For a
        quadratic function the two tests are equivalent.
        """
        gain = self.start.value - trial.point.value
        if gain >= -c * trial.length * self.slope:
            return True
        return abs(gain) <= self.start.rounding_error and trial.slope <= (2 * c - 1) * self.slope


class LineSearch(ABC):
    """Base class of line searches."""

    @abstractmethod
    def search(self, ray: Ray, initial_length: float) -> Trial | None:
        """A point with a lower value on the ray; None if none was found.

        Parameters
        ----------
        ray : Ray
            A ray with a negative slope at its start.
        initial_length : float
            The length to try first.
        """


@dataclass(frozen=True)
class Armijo(LineSearch):
    """Backtracking until E(Y + ηP) ≤ E(Y) + c·η⟨G, P⟩, with expansion of steps that are too short.

    It takes one evaluation per step if the initial length is accepted, which suits Newton-like
    filters (Jacobi, diagonal Hessian, spectral direction). Steps after which the slope has hardly
    changed are expanded, which small embeddings near a saddle point need.

    Parameters
    ----------
    c : float, default=0.1
        Required fraction of the decrease that the slope predicts; less than 0.5.
    shrink : float, default=0.5
        Factor by which a step that is too long is multiplied.
    expand : float, default=4.0
        Factor by which a step that is too short is multiplied; 1 turns expansion off.
    max_trials : int, default=60
        Maximum number of evaluations.
    slope_fraction : float, default=0.9
        A step is too short if the slope after it is still this fraction of the slope before it.

    See Also
    --------
    StrongWolfe : also bounds the slope.
    GradientDescent : uses it by default.

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
        check_below("c", check_positive("c", self.c), 0.5, "to accept the minimum of a parabola")
        check_below("shrink", check_positive("shrink", self.shrink), 1, "to shorten steps")
        if check_positive("expand", self.expand) < 1:
            raise ValueError(
                f"expand={self.expand} must be at least 1; pass expand=1 to turn expansion off"
            )
        check_count("max_trials", self.max_trials)
        check_below(
            "slope_fraction",
            check_positive("slope_fraction", self.slope_fraction),
            1,
            "to recognize short steps",
        )

    def search(self, ray: Ray, initial_length: float) -> Trial | None:
        trial = ray.at(initial_length)
        change = self._lengthened if ray.sufficient_decrease(trial, self.c) else self._shortened
        trial = change(ray, trial)
        # A step without a visible decrease is accepted only if it has changed the slope.
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
    """Strong Wolfe conditions on the decrease and on the slope after a step.

    The decrease suffices if E(Y + ηP) ≤ E(Y) + c₁η⟨G, P⟩. The derivative E′(η) along the ray must
    not exceed c₂ times E′(0) in absolute value, which makes the differences of gradients useful to
    conjugate gradients and L-BFGS. At the near end of the bracket the decrease suffices and the
    slope is too negative; at the far end the slope is positive or the decrease too small, so that
    points between them satisfy both conditions.

    Parameters
    ----------
    c1 : float, default=1e-4
        Required fraction of the decrease that the slope predicts.
    c2 : float, default=0.9
        Largest accepted slope as a fraction of the initial slope: 0.9 for quasi-Newton directions,
        0.1 for conjugate gradients, close to zero for a nearly exact minimum.
    expand : float, default=10.0
        Largest ratio of one trial length to the one before while no far end is known.
    max_trials : int, default=40
        Number of evaluations after which the lowest point so far is returned.
    bracket_margin : float, default=0.05
        Smallest distance of a trial from both ends of the bracket, as a fraction of its width.
    backtrack : float, default=0.1
        Position of the next trial in the bracket, as a fraction of its width, if the value at the
        far end is not finite.

    See Also
    --------
    Armijo : fewer evaluations, for Newton-like filters.
    LBFGS, ConjugateGradient : use it by default.

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
        check_below("c2", check_positive("c2", self.c2), 1, "to reduce the slope")
        c1 = check_positive("c1", self.c1)
        check_below("c1", c1, min(0.5, self.c2), "the smaller of 0.5 and c2")
        if check_positive("expand", self.expand) <= 1:
            raise ValueError(f"expand={self.expand} must be greater than 1; pass expand=10")
        check_count("max_trials", self.max_trials)
        check_below(
            "bracket_margin",
            check_nonnegative("bracket_margin", self.bracket_margin),
            0.5,
            "to leave room between the ends",
        )
        check_below(
            "backtrack", check_positive("backtrack", self.backtrack), 1, "to shorten trials"
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
    """An interval in which the slope changes its sign; the far end may not be known yet."""

    def __init__(self, rule: StrongWolfe, origin: Trial) -> None:
        self.rule, self.near, self.far, self.previous = rule, origin, None, origin
        self.same_end = 0  # consecutive updates of one end, negative for the far end

    near: Trial
    far: Trial | None
    previous: Trial

    @property
    def width(self) -> float:
        return inf if self.far is None else self.far.length - self.near.length

    def narrow(self, trial: Trial, descending: bool) -> None:
        """Replace the near end by the trial if it is `descending`, else the far end."""
        self.same_end = max(self.same_end, 0) + 1 if descending else min(self.same_end, 0) - 1
        if descending:
            self.previous, self.near = self.near, trial
        else:
            self.far = trial

    def next_length(self) -> float:
        """The length of the next trial."""
        if self.far is None:
            return self._extrapolated()
        if not self.far.point.is_finite:
            return self.near.length + self.rule.backtrack * self.width
        fraction = 0.5 if abs(self.same_end) > 1 else self._secant_fraction()
        margin = self.rule.bracket_margin
        return self.near.length + min(max(fraction, margin), 1 - margin) * self.width

    def _extrapolated(self) -> float:
        """Length at which the slope vanishes by linear extrapolation from the last two trials."""
        rise, done = self.near.slope - self.previous.slope, self.near.length - self.previous.length
        more = done * -self.near.slope / rise if rise > 0 else inf
        least, most = 1.1 * self.near.length, self.rule.expand * self.near.length
        return min(max(self.near.length + more, least), most)

    def _secant_fraction(self) -> float:
        """Fraction of the width at which the slope vanishes by linear interpolation."""
        assert self.far is not None
        if self.far.slope <= 0:  # the slope has changed its sign more than once
            return 0.5
        return self.near.slope / (self.near.slope - self.far.slope)
