"""An objective of a map that is kept inside a box."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.objectives.base import Objective
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Boxed(Objective):
    """E(η·sin(Z/η)): any search over all Z is one over maps Y with |Y| ≤ η.

    Searches need not know of the box, and :meth:`inside` gives the map of a solution. Near the
    centre Y ≈ Z. A minimum at a wall is an ordinary minimum in Z, at |Z| = η·π/2, with positive
    curvature; with tanh it would lie at infinity, and searches would creep. The price: the walls
    are stationary, so a start must lie inside (:meth:`outside` sees to that), and moving the map
    changes the value, so columns of the gradient no longer sum to zero.

    Parameters
    ----------
    objective : Objective
        The objective of the map Y.
    half_width : float
        η: half of the box's side.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives.kernel_regression import UKRObjective
    >>> boxed = Boxed(UKRObjective(np.eye(3), leave_one_out=False), half_width=2.0)
    >>> Y = np.array([[-2.5], [0.0], [1.0]])
    >>> boxed.inside(boxed.outside(Y)).round(2)
    array([[-1.98],
           [ 0.  ],
           [ 1.  ]])
    """

    objective: Objective
    half_width: float

    moves_freely = False

    def __post_init__(self) -> None:
        check_positive("half_width", self.half_width)

    @property
    def n(self) -> int:
        return self.objective.n

    @property
    def attraction(self) -> sparse.csr_array:
        return self.objective.attraction

    def inside(self, Z: Array) -> Array:
        """The map Y that Z stands for, (n, d)."""
        eta = np.asarray(self.half_width, dtype=Z.dtype)
        return np.asarray(eta * np.sin(Z / eta))

    def outside(self, Y: Array) -> Array:
        """Z for a map Y, whose points beyond 99 % of the box are moved to there."""
        eta = np.asarray(self.half_width, dtype=Y.dtype)
        return np.asarray(eta * np.arcsin(np.clip(Y / eta, -0.99, 0.99)))

    def value(self, Y: Array) -> float:
        return self.objective.value(self.inside(Y))

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        value, G = self.objective.value_and_gradient(self.inside(Y))
        return value, G * np.cos(Y / np.asarray(self.half_width, dtype=Y.dtype))

    def diagonal_curvature(self, Y: Array) -> Array:
        """Positive part of the chain rule's: h·cos² − g·sin/η, h the objective's own."""
        eta, inside = np.asarray(self.half_width, dtype=Y.dtype), self.inside(Y)
        h, G = (
            self.objective.diagonal_curvature(inside),
            self.objective.value_and_gradient(inside)[1],
        )
        return h * np.cos(Y / eta) ** 2 + np.maximum(-G * inside / eta**2, 0)
