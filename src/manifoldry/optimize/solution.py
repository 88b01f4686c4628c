"""What a search returns: the map, how it was reached and whether it may be trusted."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from manifoldry._typing import Array


class Step(NamedTuple):
    """One step of a search."""

    iteration: int
    value: float
    gradient_norm: float
    length: float
    """Factor of the search direction that the line search accepted."""
    evaluations: int
    """Evaluations of the objective so far."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where a search is: what a callback sees."""

    embedding: Array
    step: Step


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimiser, as far as the search got."""

    embedding: Array
    value: float
    converged: bool
    status: str
    """In words: why the search stopped."""
    trace: list[Step] = field(default_factory=list)
    interrupted: bool = False

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return self.trace[-1].iteration if self.trace else 0

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the objective."""
        return self.trace[-1].evaluations if self.trace else 0

    def history(self, name: str) -> Array:
        """One figure of all steps, such as ``"value"`` or ``"gradient_norm"``."""
        return np.array([getattr(step, name) for step in self.trace])
