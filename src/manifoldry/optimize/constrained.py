"""Minimizing under a constraint on the covariance of the map, alone and along a homotopy."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from manifoldry.eigen import Auto, SpectralProblem
from manifoldry.objectives.base import Objective
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.scale import best_scale
from manifoldry.objectives.transformed import Whitened
from manifoldry.objectives.weights import laplacian
from manifoldry.optimize.descent import checked_start
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.homotopy import Homotopy, Walk
from manifoldry.optimize.optimizer import Callback, Optimizer, Solution
from manifoldry.util.checks import check_option, check_positive
from manifoldry.util.typing import Array

_NO_SPRINGS = (
    "homotopy=ConstrainedHomotopy() begins at Laplacian eigenmaps, which needs attraction by "
    "springs, as of ElasticEmbedding, SymmetricSNE and SNE; pass homotopy=Homotopy()"
)


@dataclass(frozen=True, eq=False)
class Constrained(Optimizer):
    """Minimize E(Y) subject to YᵀBY = size²·I about the mean, with any optimizer.

    No coordinate of the map can vanish or repeat another one then. Where E is attraction
    Σ Wᵢⱼ‖yᵢ − yⱼ‖² alone, the minimizer is known: Laplacian eigenmaps, up to turning the map. Every
    map of the search keeps the constraint, and every line search tests E along maps that do; see
    :class:`~manifoldry.objectives.Whitened`.

    Parameters
    ----------
    optimizer : Optimizer
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
    >>> y = Constrained(LBFGS()).minimize(springs, start).embedding.ravel()
    >>> (y / y[0]).round(2)
    array([ 1.  ,  0.73,  0.27, -0.27, -0.73, -1.  ])
    """

    optimizer: Optimizer
    mass: Array | None = None
    size: float = 1.0

    def minimize(
        self, objective: Objective, Y: Array, callback: Callback | None = None
    ) -> Solution:
        whitened = Whitened(objective, self.mass, self.size)
        start = whitened.nearest(checked_start(objective, Y))
        return self.optimizer.minimize(whitened, start, callback)

    def with_stopping(self, max_iter: int | None, tol: float | None) -> Self:
        return replace(self, optimizer=self.optimizer.with_stopping(max_iter, tol))

    def with_looser_stopping(self, max_iter: int, tol: float) -> Self:
        return replace(self, optimizer=self.optimizer.with_looser_stopping(max_iter, tol))

    def with_filter(self, filter: Filter) -> Self:
        return replace(self, optimizer=self.optimizer.with_filter(filter))


@dataclass(frozen=True)
class ConstrainedHomotopy(Homotopy):
    """Begin at Laplacian eigenmaps, raise repulsion under their constraint, then let the map go.

    The constraint is YᵀBY = s²·I about the mean, with weights B that sum to one: every coordinate
    has standard deviation s, and none repeats another. Without repulsion the minimizer is Laplacian
    eigenmaps, of any size s; the map begins there with all of its coordinates, where a plain
    :class:`Homotopy` begins with a point and gains them one by one. After the last weight the
    constraint is dropped.

    Published is s = 1 throughout (with weights of attraction that sum to one, YᵀDY = I says just
    that), but the kernel of repulsion has width one as well, so at large weights such a
    map is crammed into a few widths. By default the size therefore grows with the weight,
    to that at which the map costs least. On rolls of 250 points this ended in minima as low as
    those of a plain homotopy, or lower, and a fixed size in higher ones
    (docs/studies/constrained_homotopy.py).

    Parameters
    ----------
    n_steps, values, max_iter, tol, jitter, memory
        As of :class:`Homotopy`. The path has two more steps: weight zero, and the last weight
        without the constraint.
    curvature : bool, default=False
        Must be false: curvatures of the free objective say nothing of a map that is held.
    mass : {"degree", "uniform"}, default="degree"
        B: the degrees of attraction, or the same weight for all points.
    size : float, default=1.0
        The s at weight zero; it never gets less.
    grows : bool, default=True
        Whether the size grows.

    References
    ----------
    M. Á. Carreira-Perpiñán, "The elastic embedding algorithm for dimensionality reduction",
    ICML 2010.

    Examples
    --------
    >>> from manifoldry import ElasticEmbedding
    >>> from manifoldry.optimize import ConstrainedHomotopy
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X = make_swiss_roll(120, random_state=0).X
    >>> rule = ConstrainedHomotopy(n_steps=10)
    >>> path = ElasticEmbedding(weight=10.0, homotopy=rule).fit(X).path_
    >>> len(path), float(path.steps[0].parameter), int(path.steps[0].rank)
    (12, 0.0, 2)
    """

    mass: str = "degree"
    size: float = 1.0
    grows: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option("mass", self.mass, ("degree", "uniform"))
        check_positive("size", self.size)
        if self.curvature:
            raise ValueError(
                "curvature=True is for maps without a constraint; pass Homotopy(curvature=True)"
            )

    def start(self, objective: Pairwise, n_components: int, rng: np.random.Generator) -> Array:
        """Laplacian eigenmaps of the attraction, of the size asked for."""
        mass = self.mass_of(objective)
        problem = SpectralProblem(
            laplacian(objective.attraction),
            "smallest",
            mass=mass,
            deflate=np.ones(objective.n),
            bounds=(0.0, np.inf),
        )
        V = Auto().solve(problem, n_components, rng).vectors
        return Whitened(objective, mass, self.size).nearest(V)

    def walk(self, *under_way: Any) -> "ConstrainedWalk":
        return ConstrainedWalk(self, *under_way)

    def follow(self, walk: Walk, values: Array) -> Solution:
        """Run through the `values` under the constraint, then minimize carefully without it."""
        if not isinstance(walk, ConstrainedWalk):
            raise ValueError(_NO_SPRINGS)
        for value in values:
            solution = walk.to(float(value))
            if solution.interrupted:
                return solution
        return walk.let_go(float(values[-1]))

    def mass_of(self, objective: Any) -> Array:
        """The diagonal of B."""
        if not (isinstance(objective, Pairwise) and objective.kernel.quadratic):
            raise ValueError(_NO_SPRINGS)
        if self.mass == "uniform":
            return np.ones(objective.n)
        return np.asarray(objective.attraction.sum(axis=1)).ravel()


class ConstrainedWalk(Walk):
    """A homotopy under way whose maps are held; its path begins at weight zero."""

    rule: ConstrainedHomotopy
    family: Callable[[float], Pairwise]

    def to(self, value: float, careful: bool = False) -> Solution:
        if not len(self.path):
            solution = self._held(0.0, careful=False)
            if solution.interrupted:
                return solution
        return self._held(value, careful)

    def let_go(self, value: float) -> Solution:
        """Minimize without the constraint, from where the last search under it ended."""
        return super().to(value, careful=True)

    def _held(self, value: float, careful: bool) -> Solution:
        free, self.optimizer = self.optimizer, self._constrained(value)
        try:
            return super().to(value, careful)
        finally:
            self.optimizer = free

    def _may_be_saddle(self, Y: Array) -> bool:
        return not isinstance(self.optimizer, Constrained) and super()._may_be_saddle(Y)

    def _constrained(self, value: float) -> Constrained:
        objective, rule = self.family(value), self.rule
        mass, size = rule.mass_of(objective), rule.size
        if rule.grows:
            unit = Whitened(objective, mass).nearest(self.Y)
            size = max(size, best_scale(objective, unit))
        return Constrained(self.optimizer, mass, size)
