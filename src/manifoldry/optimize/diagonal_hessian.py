"""The filter that divides by the positive part of the Hessian's diagonal."""

from dataclasses import dataclass

import numpy as np

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import BoundFilter, Filter
from manifoldry.optimize.jacobi import floored
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class DiagonalHessian(Filter):
    """One over the positive part of the Hessian's diagonal, at every map anew.

    Like :class:`Jacobi`, with the curvature of repulsion too, so that a step of one is hardly
    ever too long. Every map costs one more sum over all pairs.

    Examples
    --------
    >>> from manifoldry.optimize.diagonal_hessian import DiagonalHessian
    >>> DiagonalHessian().newton_like
    True
    """

    newton_like = True

    def bind(self, objective: Objective) -> BoundFilter:
        return _InverseCurvature(objective)


class _InverseCurvature(BoundFilter):
    newton_like = True

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._Y: Array = np.empty((0, 0))
        self._inverse: Array = self._Y

    def apply(self, G: Array, Y: Array) -> Array:
        return (self._at(Y) * G).astype(G.dtype, copy=False)

    def _at(self, Y: Array) -> Array:
        """The inverse curvature at `Y`; kept, since a step may ask for it several times."""
        if not np.array_equal(self._Y, Y):
            curvature = np.asarray(self._objective.diagonal_curvature(Y), float)
            self._Y, self._inverse = Y.copy(), 1 / floored(curvature)
        return self._inverse
