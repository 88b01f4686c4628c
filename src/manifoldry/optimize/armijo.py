"""Backtracking: the step is halved until the value has fallen enough."""

from dataclasses import dataclass

from manifoldry.optimize.line_search import LineSearch, Ray, Trial
from manifoldry.util.checks import check_below, check_count, check_positive

# A step was far too short if the slope after it is still this share of the slope before it.
_STILL_STEEP = 0.9


@dataclass(frozen=True)
class Armijo(LineSearch):
    """Shorten the step until E(Y + ηP) ≤ E(Y) + c·η⟨G, P⟩; lengthen it where it was too timid.

    One evaluation per step where the first length is right, which suits directions that know
    their own length (Jacobi, diagonal Hessian, spectral direction). A step after which the slope
    has hardly changed is lengthened, as a small map near a saddle needs it.

    Parameters
    ----------
    c : float, default=0.1
        Share of the promised decrease that is asked for, below one half.
    shrink : float, default=0.5
        Factor of a step that is too long.
    expand : float, default=4.0
        Factor of a step that is too short; 1 never lengthens a step.
    max_trials : int, default=60
        Evaluations after which the search gives up.

    Examples
    --------
    >>> from manifoldry.optimize.gradient_descent import GradientDescent
    >>> GradientDescent(line_search=Armijo(shrink=0.8)).line_search.shrink
    0.8
    """

    c: float = 0.1
    shrink: float = 0.5
    expand: float = 4.0
    max_trials: int = 60

    def __post_init__(self) -> None:
        check_below("c", check_positive("c", self.c), 0.5, "a parabola's minimum must pass")
        check_below("shrink", check_positive("shrink", self.shrink), 1, "steps get shorter by it")
        if check_positive("expand", self.expand) < 1:
            raise ValueError(f"expand={self.expand} must be at least 1; pass expand=1 for none")
        check_count("max_trials", self.max_trials)

    def search(self, ray: Ray, first: float) -> Trial | None:
        trial = ray.at(first)
        change = self._lengthened if ray.lowers(trial, self.c) else self._shortened
        trial = change(ray, trial)
        # A step that is hidden by rounding shows nothing unless the slope has changed.
        hidden = trial.point.value >= ray.start.value and _steep(ray, trial)
        return trial if ray.lowers(trial, self.c) and not hidden else None

    def _shortened(self, ray: Ray, trial: Trial) -> Trial:
        for _ in range(self.max_trials - 1):
            length = trial.length * self.shrink
            if ray.lowers(trial, self.c) or length <= ray.shortest:
                break
            trial = ray.at(length)
        return trial

    def _lengthened(self, ray: Ray, trial: Trial) -> Trial:
        for _ in range(self.max_trials - 1):
            if self.expand == 1 or not _steep(ray, trial):
                break
            further = ray.at(trial.length * self.expand)
            worse = further.point.value > trial.point.value + ray.start.rounding
            if worse or not ray.lowers(further, self.c):
                break
            trial = further
        return trial


def _steep(ray: Ray, trial: Trial) -> bool:
    return trial.slope <= _STILL_STEEP * ray.slope
