"""An objective of maps that are held to one covariance."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from manifoldry.objectives.base import Objective
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array

# Variance, as a share of the largest, below which a map has no extent along a direction.
_FLAT = 1e-14


@dataclass(frozen=True, eq=False)
class Whitened(Objective):
    """E at the nearest map whose covariance is size²·I, as a function of any map.

    The covariance is YᵀBY about the mean, where B is a diagonal of weights that sum to one. To
    minimise this function freely is to minimise E under the constraint YᵀBY = size²·I: a straight
    step from a map that keeps it, followed by :meth:`nearest`, is the polar retraction of the
    Stiefel manifold, and the gradient at such a map is B·ξ, ξ = B⁻¹G − Y·sym(YᵀG)/size² being the
    Riemannian gradient in the metric B. So all filters and searches serve it as they are; they
    go on from the nearest map after every step.

    Parameters
    ----------
    objective : Objective
        E, which must not change when a map is moved or turned.
    mass : array of shape (n,), default=None
        The diagonal of B, up to a factor; by default the same for all points.
    size : float, default=1.0
        Standard deviation of every coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import ElasticObjective, Whitened
    >>> objective = Whitened(ElasticObjective(np.array([[0, 0.5], [0.5, 0]])), size=2.0)
    >>> objective.nearest(np.array([[5.0], [6.0]])).ravel()
    array([-2.,  2.])
    """

    objective: Objective
    mass: Array | None = None
    size: float = 1.0

    def __post_init__(self) -> None:
        check_positive("size", self.size)
        if self.mass is None:
            return
        mass = np.asarray(self.mass, dtype=np.float64)
        if mass.shape != (self.n,):
            raise ValueError(f"mass has shape {mass.shape}; pass one weight for each of n={self.n}")
        if not (np.isfinite(mass).all() and (mass > 0).all()):
            raise ValueError("mass has entries that are not positive and finite; pass such weights")

    @property
    def n(self) -> int:
        return self.objective.n

    @property
    def attraction(self) -> sparse.csr_array:
        return self.objective.attraction

    def nearest(self, Z: Array) -> Array:
        """The map of covariance size²·I and mean zero that is nearest to `Z` in the metric B."""
        Y, A = self._polar(Z)
        if not np.isfinite(A).all():
            raise ValueError(
                f"the map does not extend along all of its {A.shape[0]} coordinates, so that none "
                "of covariance size²·I is nearest to it; add noise, or drop a coordinate"
            )
        return Y

    def value(self, Y: Array) -> float:
        return self.objective.value(self.nearest(Y))

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        X, A = self._polar(Y)
        if not np.isfinite(A).all():
            return np.inf, np.zeros_like(Y)  # which a line search takes as gone too far
        value, G = self.objective.value_and_gradient(X)
        return value, (self.tangent(X, G) @ A).astype(X.dtype, copy=False)

    def normalised(self, Y: Array, G: Array) -> tuple[Array, Array]:
        X, A = self._polar(Y)
        return X, np.linalg.solve(A, G.T.astype(np.float64)).T.astype(X.dtype, copy=False)

    def tangent(self, Y: Array, G: Array) -> Array:
        """B·ξ at a map that keeps the constraint, from the gradient G of E there."""
        Y, G = np.asarray(Y, dtype=np.float64), np.asarray(G, dtype=np.float64)
        M = Y.T @ G
        return np.asarray(G - self._shares * Y @ (M + M.T) / (2 * self.size**2))

    def diagonal_curvature(self, Y: Array) -> Array:
        return self.objective.diagonal_curvature(self.nearest(Y))

    @cached_property
    def _shares(self) -> Array:
        """The diagonal of B, (n, 1)."""
        mass = np.ones(self.n) if self.mass is None else np.asarray(self.mass, dtype=np.float64)
        mass = mass / mass.max()  # a sum that cannot overflow
        return (mass / mass.sum())[:, None]

    def _polar(self, Z: Array) -> tuple[Array, Array]:
        """The nearest map, and size·(ZᵀBZ)^{-1/2}, (d, d), with which it is made; NaN if flat."""
        centred = np.asarray(Z, dtype=np.float64)
        centred = centred - (self._shares * centred).sum(axis=0)
        unit = float(np.abs(centred).max()) or 1.0  # in which squares do not overflow
        centred /= unit
        variances, Q = np.linalg.eigh(centred.T @ (self._shares * centred))
        flat = variances <= _FLAT * variances[-1]
        A = (Q * (self.size / np.sqrt(np.where(flat, np.nan, variances)))) @ Q.T
        return (centred @ A).astype(Z.dtype, copy=False), A / unit
