"""A line search for methods that learn from slopes: the value falls and the slope flattens."""

from dataclasses import dataclass

import numpy as np

from manifoldry.optimize.line_search import LineSearch, Ray, Trial
from manifoldry.util.checks import check_below, check_count, check_positive

_EDGE = 0.05  # a trial inside a bracket keeps this share of its width away from both ends
_BEYOND_REACH = 0.1  # share of the bracket to go back to where the far end has no finite value


@dataclass(frozen=True)
class StrongWolfe(LineSearch):
    """E(Y + ηP) ≤ E(Y) + c₁η⟨G, P⟩ and a slope of at most c₂ times the slope at the start.

    The second condition makes the differences of gradients useful to conjugate gradients and
    L-BFGS. The near end of the bracket always falls steeply with enough decrease and the far end
    rises or has too little, so that there are such points between them.

    Parameters
    ----------
    c1 : float, default=1e-4
        Share of the promised decrease that is asked for.
    c2 : float, default=0.9
        Share of the slope that may be left: 0.9 for quasi-Newton directions, 0.1 for conjugate
        gradients, close to zero for a nearly exact minimum.
    expand : float, default=10.0
        Largest factor from one trial to the next while no far end is known.
    max_trials : int, default=40
        Evaluations after which the lowest point so far is taken.

    Examples
    --------
    >>> from manifoldry.optimize.conjugate_gradient import ConjugateGradient
    >>> ConjugateGradient().line_search.c2
    0.1
    """

    c1: float = 1e-4
    c2: float = 0.9
    expand: float = 10.0
    max_trials: int = 40

    def __post_init__(self) -> None:
        check_below("c2", check_positive("c2", self.c2), 1, "the slope has to flatten")
        c1 = check_positive("c1", self.c1)
        check_below("c1", c1, min(0.5, self.c2), "the smaller of 1/2 and c2")
        if check_positive("expand", self.expand) <= 1:
            raise ValueError(f"expand={self.expand} must be greater than 1; pass expand=10")
        check_count("max_trials", self.max_trials)

    def search(self, ray: Ray, first: float) -> Trial | None:
        bracket, lowest, length = _Bracket(ray.origin), ray.origin, first
        for _ in range(self.max_trials):
            trial = ray.at(length)
            lowers = ray.lowers(trial, self.c1)
            if lowers and abs(trial.slope) <= -self.c2 * ray.slope:
                return trial
            if lowers and trial.point.value < lowest.point.value:
                lowest = trial
            bracket.narrow(trial, falling=lowers and trial.slope < 0)
            if bracket.width <= ray.shortest:
                break
            length = bracket.next_length(self.expand)
        return lowest if lowest.length > 0 else None


class _Bracket:
    """Two ends between which the slope changes its sign, the far one perhaps not known yet."""

    def __init__(self, origin: Trial) -> None:
        self.near, self.far, self.before = origin, None, origin
        self.same_end = 0  # how often running the same end has moved

    near: Trial
    far: Trial | None
    before: Trial

    @property
    def width(self) -> float:
        return np.inf if self.far is None else self.far.length - self.near.length

    def narrow(self, trial: Trial, falling: bool) -> None:
        """Put a trial in the place of the end that it is like."""
        self.same_end = max(self.same_end, 0) + 1 if falling else min(self.same_end, 0) - 1
        if falling:
            self.before, self.near = self.near, trial
        else:
            self.far = trial

    def next_length(self, expand: float) -> float:
        """Where to look next."""
        if self.far is None:
            return self._further(expand)
        if not self.far.point.usable:
            return self.near.length + _BEYOND_REACH * self.width
        share = 0.5 if abs(self.same_end) > 1 else self._share()
        return self.near.length + float(np.clip(share, _EDGE, 1 - _EDGE)) * self.width

    def _further(self, expand: float) -> float:
        """Where the slope would vanish if it went on as between the last two trials."""
        rise, done = self.near.slope - self.before.slope, self.near.length - self.before.length
        more = done * -self.near.slope / rise if rise > 0 else np.inf
        return float(
            np.clip(self.near.length + more, 1.1 * self.near.length, expand * self.near.length)
        )

    def _share(self) -> float:
        """Share of the width at which the slope would vanish if it were linear."""
        assert self.far is not None
        if self.far.slope <= 0:  # it fell and rose again in between
            return 0.5
        return self.near.slope / (self.near.slope - self.far.slope)
