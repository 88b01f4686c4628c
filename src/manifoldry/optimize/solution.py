"""What a search returns: the map, how it was reached and whether it may be trusted."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from manifoldry.util.typing import Array


class Step(NamedTuple):
    """One step of a search; the first of a trace, with iteration 0, is its start."""

    iteration: int
    value: float
    gradient_norm: float
    length: float
    """Factor of the search direction that was gone; 0 if no lower value was found along it."""
    evaluations: int
    """Evaluations of the objective so far."""
    parameter: float = np.nan
    """What a homotopy was varying; values at different parameters are of different objectives."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where a search is: what a callback sees. The embedding must not be written to."""

    embedding: Array
    step: Step


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimiser, as far as the search got."""

    embedding: Array
    """The map of smallest value, or the last one where a method makes no promise to descend."""
    value: float
    converged: bool
    status: str
    """In words: why the search stopped."""
    trace: list[Step] = field(default_factory=list)
    interrupted: bool = False
    n_evaluations: int = 0
    """Evaluations of the objective, those after the last step included."""

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return self.trace[-1].iteration if self.trace else 0

    def cut_short(self) -> Self:
        """The same after an interrupt between this search and the next."""
        return replace(self, converged=False, status="interrupted", interrupted=True)

    def history(self, name: str) -> Array:
        """One figure of all steps, such as ``"value"`` or ``"gradient_norm"``."""
        return np.array([getattr(step, name) for step in self.trace])
