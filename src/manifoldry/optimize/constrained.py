"""Minimising under a constraint on the covariance of the map."""

from dataclasses import dataclass, replace
from typing import Self

from manifoldry.objectives.base import Objective
from manifoldry.objectives.transformed import Whitened
from manifoldry.optimize.descent import checked_start
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.optimiser import Optimiser, Watcher
from manifoldry.optimize.solution import Solution
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Constrained(Optimiser):
    """Minimise E(Y) subject to YᵀBY = size²·I about the mean, with any optimiser.

    No coordinate of the map can vanish or repeat another one then. Where E is attraction
    Σ Wᵢⱼ‖yᵢ − yⱼ‖² alone, the minimiser is known: Laplacian eigenmaps, up to turning the map. Every
    map of the search keeps the constraint, and every line search tests E along maps that do; see
    :class:`~manifoldry.objectives.Whitened`.

    Parameters
    ----------
    optimiser : Optimiser
        What searches. With the spectral direction as filter, its plain steps are those of inverse
        iteration where there is no repulsion.
    mass : array of shape (n,), default=None
        The diagonal of B, which is scaled to sum to one; by default the same for all points.
    size : float, default=1.0
        Standard deviation of every coordinate.

    Examples
    --------
    Six points on a line, held together by springs: the smoothest coordinate is half a cosine.

    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import LBFGS, Constrained
    >>> W = np.eye(6, k=1) + np.eye(6, k=-1)
    >>> springs = elastic(W / W.sum(), weight=0.0)
    >>> start = np.random.default_rng(0).normal(size=(6, 1))
    >>> y = Constrained(LBFGS()).minimise(springs, start).embedding.ravel()
    >>> (y / y[0]).round(2)
    array([ 1.  ,  0.73,  0.27, -0.27, -0.73, -1.  ])
    """

    optimiser: Optimiser
    mass: Array | None = None
    size: float = 1.0

    def minimise(self, objective: Objective, Y: Array, watch: Watcher | None = None) -> Solution:
        whitened = Whitened(objective, self.mass, self.size)
        start = whitened.nearest(checked_start(objective, Y))
        return self.optimiser.minimise(whitened, start, watch)

    def stopping_at(self, max_iter: int | None, tol: float | None) -> Self:
        return replace(self, optimiser=self.optimiser.stopping_at(max_iter, tol))

    def hurried(self, max_iter: int, tol: float) -> Self:
        return replace(self, optimiser=self.optimiser.hurried(max_iter, tol))

    def guided_by(self, filter: Filter) -> Self:
        return replace(self, optimiser=self.optimiser.guided_by(filter))
