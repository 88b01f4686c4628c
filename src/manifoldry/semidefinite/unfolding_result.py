"""The map that the method of multipliers finds, and its state after each round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from manifoldry.semidefinite.unfolding_problem import UnfoldingProblem
from manifoldry.util.typing import Array


class Round(NamedTuple):
    """State of the search after one round."""

    steps: int
    """L-BFGS steps of all rounds so far."""
    penalty: float
    variance: float
    violation: float
    """Largest relative change of a squared length beyond what the constraints allow."""
    rank: int
    """Number of coordinates in use."""


class Candidate(NamedTuple):
    """A map with its multipliers and its largest violation of a constraint."""

    R: Array
    multipliers: Array
    variance_per_edge: float
    violation: float


# Called before every round with the problem, the previous round and the penalty of the next one.
RoundCallback: TypeAlias = Callable[[UnfoldingProblem, Round | None, float], None]


@dataclass(frozen=True, eq=False)
class UnfoldingResult:
    """The map found, its multipliers, and how close it is to the optimum."""

    R: Array
    """Variables of the problem, along principal axes."""
    map: Array
    """The map that they describe."""
    variance: float
    multipliers: Array
    bound: float
    """Upper bound on the variance of every feasible map (with slack, minus the cost of slack)."""
    gap: float
    """(bound − (variance − cost of slack)) / variance."""
    converged: bool
    status: str
    rounds: list[Round]
    interrupted: bool = False

    @property
    def steps(self) -> int:
        """Steps of all rounds."""
        return self.rounds[-1].steps if self.rounds else 0
