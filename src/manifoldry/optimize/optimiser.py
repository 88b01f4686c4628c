"""What all optimisers share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from manifoldry._typing import Array
from manifoldry.objectives.base import Objective
from manifoldry.optimize.solution import Iterate, Solution

Watcher: TypeAlias = Callable[[Iterate], None]


class Optimiser(ABC):
    """A way to minimise an objective from a given start."""

    @abstractmethod
    def minimise(self, objective: Objective, Y: Array, watch: Watcher | None = None) -> Solution:
        """Search from `Y`; `watch` sees every step.

        On Ctrl-C the best map so far is returned, with ``interrupted`` set.
        """
