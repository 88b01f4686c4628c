"""Filters: positive semidefinite operators on gradients, which may change as a search goes on.

Those that divide by a diagonal are here; :class:`~manifoldry.optimize.SpectralDirection` and
spectral guidance have modules of their own.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from manifoldry.objectives.base import Objective
from manifoldry.util.arrays import cast, copied, double, equal, like, namespace
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class Progress:
    """How a search stands, for filters whose schedule follows it."""

    iteration: int
    """Steps taken."""
    value: float
    decrease: float
    """Fraction of the value that the last step took away; infinite before the first step."""


class FilterOperator(ABC):
    """A filter at work on one objective."""

    newton_like: bool = False
    """Whether a step of length one is the natural one for the operator of the moment."""
    columnwise: bool = False
    """Whether it takes any number of columns, each by itself, which costs less than one by one."""
    reason: str = ""
    """In words: what was chosen, and why, where there was a choice."""

    @abstractmethod
    def apply(self, G: Array, Y: Array) -> Array:
        """The operator times each column of `G`, (n, d), at the map `Y`."""

    def advance(self, progress: Progress) -> bool:
        """Move on in the schedule; True if the operator is another one now.

        To be called once after every step, and after a search for a step that found none (its
        decrease is zero): only so can a filter whose direction is exhausted go on.
        """
        return False

    @property
    def finished(self) -> bool:
        """Whether the schedule has run its course, so that a search may stop."""
        return True


class Filter(ABC):
    """A choice of filter; `bind` it to an objective to get the operator.

    The direction of a search is −F·G. It descends for any positive semidefinite F, and the line
    search always tests the true slope of the true objective.
    """

    newton_like: bool = False
    """Whether a step of length one is the natural one."""

    @abstractmethod
    def operator_for(self, objective: Objective) -> FilterOperator:
        """The operator for `objective`, at the start of its schedule."""

    def cached(self) -> "Filter":
        """The same filter for objectives that share their attraction."""
        return self


@dataclass(frozen=True)
class Identity(Filter):
    """No filter: the direction is the gradient's own."""

    def operator_for(self, objective: Objective) -> FilterOperator:
        return _IdentityOperator()


class _IdentityOperator(FilterOperator):
    def apply(self, G: Array, Y: Array) -> Array:
        return G


@dataclass(frozen=True)
class Jacobi(Filter):
    """(4D)⁻¹, with D the degrees of the attraction: the elastic embedding's fixed point.

    With a step of one, every point goes where its attraction alone, at the repulsion of the
    present map, would put it. It costs nothing; but what many points have to do together takes
    many steps, so prefer :class:`SpectralDirection` where that can be had.

    Parameters
    ----------
    floor : float, default=1e-3
        Fraction of the mean degree that every point has at least: steps of points without
        neighbors, or nearly so, stay bounded.

    Examples
    --------
    >>> from manifoldry.optimize.filter import Jacobi
    >>> Jacobi().newton_like
    True
    """

    floor: float = 1e-3
    newton_like = True

    def __post_init__(self) -> None:
        check_positive("floor", self.floor)

    def operator_for(self, objective: Objective) -> FilterOperator:
        degree = np.asarray(objective.attraction.sum(axis=1), float).ravel()
        return _DiagonalOperator(1 / (4 * floored(degree, self.floor))[:, None])


class _DiagonalOperator(FilterOperator):
    newton_like = True

    def __init__(self, inverse: Array) -> None:
        self._inverse = inverse  # (n, 1)

    def apply(self, G: Array, Y: Array) -> Array:
        self._inverse = like(self._inverse, G)  # moved to a device once
        return cast(self._inverse * double(G), G.dtype)


@dataclass(frozen=True)
class DiagonalHessian(Filter):
    """One over the positive part of the Hessian's diagonal, at every map anew.

    Like :class:`Jacobi`, with the curvature of repulsion too, so that a step of one is hardly
    ever too long. Every map costs one more sum over all pairs.

    Parameters
    ----------
    floor : float, default=1e-3
        Fraction of the mean curvature that every coordinate has at least; see :class:`Jacobi`.

    Examples
    --------
    >>> from manifoldry.optimize.filter import DiagonalHessian
    >>> DiagonalHessian().newton_like
    True
    """

    floor: float = 1e-3
    newton_like = True

    def __post_init__(self) -> None:
        check_positive("floor", self.floor)

    def operator_for(self, objective: Objective) -> FilterOperator:
        return _InverseHessianDiagonal(objective, self.floor)


class _InverseHessianDiagonal(FilterOperator):
    newton_like = True

    def __init__(self, objective: Objective, floor: float) -> None:
        self._objective, self._floor = objective, floor
        self._last: tuple[Array, Array] | None = None

    def apply(self, G: Array, Y: Array) -> Array:
        return cast(self._at(Y) * double(G), G.dtype)

    def _at(self, Y: Array) -> Array:
        """The inverse curvature at `Y`; kept, since a step may ask for it several times."""
        if self._last is None or not equal(self._last[0], Y):
            curvature = double(like(self._objective.diagonal_curvature(Y), Y))
            self._last = copied(Y), 1 / floored(curvature, self._floor)
        return self._last[1]


def floored(curvature: Array, floor: float) -> Array:
    """Curvatures, raised to a fraction of the mean of the positive ones; one if none is."""
    xp = namespace(curvature)
    positive = curvature[curvature > 0]
    if positive.size == 0:
        return xp.ones_like(curvature)
    return xp.maximum(curvature, floor * float(xp.mean(positive)))
