"""The filter that divides by the attraction's diagonal."""

from dataclasses import dataclass

import numpy as np

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import BoundFilter, Filter
from manifoldry.util.typing import Array

# Share of the mean below which a curvature does not count: steps of loose points stay bounded.
_FLOOR = 1e-3


@dataclass(frozen=True)
class Jacobi(Filter):
    """(4D)⁻¹, with D the degrees of the attraction: the elastic embedding's fixed point.

    With a step of one, every point goes where its attraction alone, at the repulsion of the
    present map, would put it. It costs nothing; but what many points have to do together takes
    many steps, so prefer :class:`SpectralDirection` where that can be had. Points without
    neighbours, or nearly so, are treated as if they had a thousandth of the mean degree.

    Examples
    --------
    >>> from manifoldry.optimize.jacobi import Jacobi
    >>> Jacobi().newton_like
    True
    """

    newton_like = True

    def bind(self, objective: Objective) -> BoundFilter:
        degree = np.asarray(objective.attraction.sum(axis=1), float).ravel()
        return _Diagonal(1 / (4 * floored(degree))[:, None])


class _Diagonal(BoundFilter):
    newton_like = True

    def __init__(self, inverse: Array) -> None:
        self._inverse = inverse  # (n, 1)

    def apply(self, G: Array, Y: Array) -> Array:
        return (self._inverse * G).astype(G.dtype, copy=False)


def floored(curvature: Array) -> Array:
    """Curvatures, raised to a thousandth of the mean of the positive ones; one if none is."""
    positive = curvature[curvature > 0]
    if positive.size == 0:
        return np.ones_like(curvature)
    return np.maximum(curvature, _FLOOR * positive.mean())
