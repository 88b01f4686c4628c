"""An objective of a map in other units."""

from dataclasses import dataclass

from scipy import sparse

from manifoldry.objectives.base import Objective
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Resized(Objective):
    """E(unit·U), as a function of U: as the unit grows, so does the map that U stands for.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives.kernel_regression import UKRObjective
    >>> objective = UKRObjective(np.array([[0.0], [1.0], [2.0]]))
    >>> U = np.array([[-1.0], [0.0], [1.0]])
    >>> Resized(objective, 2.0).value(U) == objective.value(2 * U)
    True
    """

    objective: Objective
    unit: float

    @property
    def moves_freely(self) -> bool:  # type: ignore[override]  # here it depends on the instance
        return self.objective.moves_freely

    @property
    def n(self) -> int:
        return self.objective.n

    @property
    def attraction(self) -> sparse.csr_array:
        return self.objective.attraction * self.unit**2

    def value(self, Y: Array) -> float:
        return self.objective.value(self.unit * Y)

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        value, G = self.objective.value_and_gradient(self.unit * Y)
        return value, self.unit * G

    def diagonal_curvature(self, Y: Array) -> Array:
        return self.unit**2 * self.objective.diagonal_curvature(self.unit * Y)
