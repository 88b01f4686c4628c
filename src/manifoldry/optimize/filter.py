"""Filters: positive semidefinite operators that multiply gradients and may change in a search.

Diagonal filters are defined here; :class:`~manifoldry.optimize.SpectralDirection` and spectral
guidance have modules of their own.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from manifoldry.objectives.base import Objective
from manifoldry.util.arrays import cast, copied, double, equal, like, namespace
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class Progress:
    """Progress of a search, as passed to filters that follow a schedule."""

    iteration: int
    """Number of steps taken."""
    value: float
    decrease: float
    """Relative decrease of the value in the last step; infinite before the first step."""


class FilterOperator(ABC):
    """A filter applied to one objective."""

    newton_like: bool = False
    """Whether the natural step length of the current operator is one."""
    columnwise: bool = False
    """Whether it filters any number of columns independently, cheaper at once than one by one."""
    reason: str = ""
    """Which algorithm was chosen and why, in words; empty if there was no choice."""

    @abstractmethod
    def apply(self, G: Array, Y: Array) -> Array:
        """The operator at the embedding `Y` times each column of `G`, of shape (n, d)."""

    def advance(self, progress: Progress) -> bool:
        """Advance the schedule; return whether the operator has changed.

        The search calls this once after every step, also after a line search that failed (with a
        decrease of zero), so that a filter whose direction cannot be improved is replaced.
        """
        return False

    @property
    def fixed(self) -> bool:
        """Whether it has no schedule, so that it is the same throughout a search."""
        return type(self).advance is FilterOperator.advance

    @property
    def finished(self) -> bool:
        """Whether the schedule has ended, so that the search may converge."""
        return True


class Filter(ABC):
    """Base class of the operators that multiply the gradient in a search.

    The search direction is −F·G with the gradient G and the operator F, which :meth:`operator_for`
    returns for an objective. It is a descent direction for any positive semidefinite F, and the
    line search tests the objective and its directional derivative.

    See Also
    --------
    SpectralDirection : the filter of choice for attraction and repulsion.
    Jacobi, DiagonalHessian, Identity : diagonal filters.
    Guidance : filters that change during the search.

    Examples
    --------
    Two points, and the gradient multiplied by the inverse of the degrees of the attraction:

    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import Jacobi
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)
    >>> Y = np.array([[0.0], [0.5]])
    >>> value, G = objective.value_and_gradient(Y)
    >>> G.round(3).ravel(), Jacobi().operator_for(objective).apply(G, Y).round(3).ravel()
    (array([ 1.117, -1.117]), array([ 0.559, -0.559]))
    """

    newton_like: bool = False
    """Whether the natural step length is one."""
    linear: bool = True
    """Whether the operator does not depend on the gradient, as conjugate gradients and L-BFGS
    assume."""

    @abstractmethod
    def operator_for(self, objective: Objective) -> FilterOperator:
        """Return the operator F for `objective`, at the start of its schedule.

        Parameters
        ----------
        objective : Objective
            The objective.

        Returns
        -------
        FilterOperator
            Its method ``apply`` multiplies a gradient by F.
        """

    def cached(self) -> "Filter":
        """Return a filter that computes its operator once for all objectives of one attraction.

        Returns
        -------
        Filter
            The filter.
        """
        return self


@dataclass(frozen=True)
class Identity(Filter):
    """No filter: the search direction is the negative gradient.

    See Also
    --------
    Jacobi, DiagonalHessian, SpectralDirection : filters that contain curvature.

    Examples
    --------
    It is the default of all optimizers:

    >>> from manifoldry.optimize import LBFGS
    >>> LBFGS().filter
    Identity()
    """

    def operator_for(self, objective: Objective) -> FilterOperator:
        return _IdentityOperator()


class _IdentityOperator(FilterOperator):
    def apply(self, G: Array, Y: Array) -> Array:
        return G


@dataclass(frozen=True)
class Jacobi(Filter):
    """Inverse degrees (4D)⁻¹ of the attraction: the fixed-point iteration of the elastic embedding.

    A step of length one solves the equation of every point for its own position, with the other
    points and the repulsion held fixed. It costs almost nothing, but joint movements of many
    points take many steps; prefer :class:`SpectralDirection` where it is available.

    Parameters
    ----------
    floor : float, default=1e-3
        Smaller degrees are raised to this fraction of the mean degree, so that points with few
        or no neighbors take bounded steps.

    See Also
    --------
    DiagonalHessian : includes the curvature of the repulsion.
    SpectralDirection : the whole Hessian of the attraction.

    Examples
    --------
    The degrees of two points are 1/2, so that gradients are divided by 2:

    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import Jacobi
    >>> operator = Jacobi().operator_for(elastic(np.array([[0, 0.5], [0.5, 0]])))
    >>> operator.apply(np.array([[1.0], [-1.0]]), np.zeros((2, 1)))
    array([[ 0.5],
           [-0.5]])
    """

    floor: float = 1e-3
    newton_like = True

    def __post_init__(self) -> None:
        check_positive("floor", self.floor)

    def operator_for(self, objective: Objective) -> FilterOperator:
        degrees = floored(objective.attraction_degrees, self.floor)
        return _DiagonalOperator(1 / (4 * degrees)[:, None])


class _DiagonalOperator(FilterOperator):
    newton_like = True

    def __init__(self, inverse: Array) -> None:
        self._inverse = inverse  # (n, 1)

    def apply(self, G: Array, Y: Array) -> Array:
        self._inverse = like(self._inverse, G)  # moved to the device once
        return cast(self._inverse * double(G), G.dtype)


@dataclass(frozen=True)
class DiagonalHessian(Filter):
    """Inverse of the positive part of the Hessian's diagonal, recomputed at every embedding.

    Like :class:`Jacobi`, but the diagonal includes the curvature of the repulsion, so that a step
    of length one is rarely too long. Every embedding costs one more sum over all pairs.

    Parameters
    ----------
    floor : float, default=1e-3
        Smaller entries are raised to this fraction of the mean of the positive ones.

    See Also
    --------
    Jacobi : the diagonal of the attraction only.
    SpectralDirection : the whole Hessian of the attraction.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import DiagonalHessian, GradientDescent
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)  # minimum at distance 1
    >>> optimizer = GradientDescent(DiagonalHessian())
    >>> solution = optimizer.minimize(objective, np.array([[0.0], [0.1]]))
    >>> solution.converged, round(float(np.ptp(solution.embedding)), 3)
    (True, 1.0)
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
        """The inverse diagonal at `Y`; cached, since a step may need it several times."""
        if self._last is None or not equal(self._last[0], Y):
            curvature = double(like(self._objective.diagonal_curvature(Y), Y))
            self._last = copied(Y), 1 / floored(curvature, self._floor)
        return self._last[1]


def floored(curvature: Array, floor: float) -> Array:
    """Curvatures raised to `floor` times the mean of the positive ones; ones if there are none."""
    xp = namespace(curvature)
    positive = curvature[curvature > 0]
    if positive.size == 0:
        return xp.ones_like(curvature)
    return xp.maximum(curvature, floor * float(xp.mean(positive)))
