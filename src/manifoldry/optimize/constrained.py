"""Minimize under a constraint on the covariance of the embedding, alone or along a homotopy."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from manifoldry.eigen import Auto, SpectralProblem
from manifoldry.objectives.base import Objective
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.scale import best_scale
from manifoldry.objectives.transformed import Whitened
from manifoldry.objectives.weights import graph_laplacian
from manifoldry.optimize.descent import checked_start
from manifoldry.optimize.homotopy import Homotopy, HomotopyRun
from manifoldry.optimize.optimizer import Optimizer, Solution, StepCallback
from manifoldry.util.checks import check_option, check_positive
from manifoldry.util.typing import Array

_NOT_QUADRATIC = (
    "optimizer=ConstrainedHomotopy() starts from Laplacian eigenmaps, which needs quadratic "
    "attraction, as that of ElasticEmbedding, SymmetricSNE and SNE; pass optimizer=Homotopy()"
)


@dataclass(frozen=True, eq=False)
class Constrained(Optimizer):
    """Minimize E(Y) subject to YᵀBY = size²·I about the mean, with any optimizer.

    The constraint keeps coordinates from vanishing or repeating each other. If E is the attraction
    Σ Wᵢⱼ‖yᵢ − yⱼ‖² alone, the minimizer is known: Laplacian eigenmaps, up to a rotation. Every
    iterate satisfies the constraint, and every line search evaluates E along embeddings that do;
    see :class:`~manifoldry.objectives.Whitened`.

    Parameters
    ----------
    optimizer : Optimizer
        The search. With the spectral direction as filter and no repulsion, its unit steps are
        those of inverse iteration.
    mass : array of shape (n,), default=None
        The diagonal of B, which is scaled to sum to one; by default equal for all points.
    size : float, default=1.0
        Standard deviation of every coordinate.

    See Also
    --------
    ConstrainedHomotopy : raises the repulsion under the constraint.
    manifoldry.objectives.Whitened : the objective under the constraint.

    Examples
    --------
    Six points on a line, with quadratic attraction: the smoothest coordinate is half a cosine.

    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import LBFGS, Constrained
    >>> W = np.eye(6, k=1) + np.eye(6, k=-1)
    >>> attraction = elastic(W / W.sum(), weight=0.0)
    >>> start = np.random.default_rng(0).normal(size=(6, 1))
    >>> y = Constrained(LBFGS()).minimize(attraction, start).embedding.ravel()
    >>> (y / y[0]).round(2)
    array([ 1.  ,  0.73,  0.27, -0.27, -0.73, -1.  ])
    """

    optimizer: Optimizer
    mass: Array | None = None
    size: float = 1.0

    def minimize(
        self, objective: Objective, Y: Array, callback: StepCallback | None = None
    ) -> Solution:
        whitened = Whitened(objective, self.mass, self.size)
        start = whitened.nearest(checked_start(objective, Y))
        return self.optimizer.minimize(whitened, start, callback)

    def with_stopping(self, max_iter: int | None, tol: float | None) -> Self:
        return replace(self, optimizer=self.optimizer.with_stopping(max_iter, tol))

    def with_looser_stopping(self, max_iter: int, tol: float) -> Self:
        return replace(self, optimizer=self.optimizer.with_looser_stopping(max_iter, tol))


@dataclass(frozen=True)
class ConstrainedHomotopy(Homotopy):
    """Start from Laplacian eigenmaps, raise the repulsion under their constraint, then drop it.

    The constraint is YᵀBY = s²·I about the mean, with weights B that sum to one: every coordinate
    has standard deviation s, and coordinates are uncorrelated. Without repulsion the minimizer is
    Laplacian eigenmaps, for any size s. The path starts there with all coordinates, where a plain
    :class:`Homotopy` starts with a single point and gains them one by one. After the last weight
    the constraint is dropped.

    The published method uses s = 1 throughout (for attraction weights that sum to one this is
    YᵀDY = I). But the kernel of the repulsion has width one too, so that at large weights all
    points lie within a few kernel widths. By default the size therefore grows with the weight, to
    the one with the smallest objective. On Swiss rolls of 250 points this ended in minima as low as
    those of a plain homotopy, or lower, and a fixed size in higher ones
    (docs/studies/constrained_homotopy.py).

    Parameters
    ----------
    n_steps : int, default=50
        Number of values of the weight, spaced geometrically. The path has two more steps: weight
        zero first, and the last weight without the constraint at the end.
    values : sequence of float, default=None
        The weights themselves, instead of `n_steps`.
    max_iter : int, default=100
        Maximum number of steps of the search at each weight except the last.
    tol : float, default=1e-3
        Tolerance of the search at each weight except the last.
    jitter : float, default=1e-6
        Noise added before every search, as a fraction of the embedding's size.
    curvature : bool, default=False
        Must be False: the curvature of the unconstrained objective does not apply under the
        constraint.
    memory : float, default=2**28
        Maximum number of bytes of the embeddings in the path.
    constraint_weights : {"degree", "uniform"}, default="degree"
        The diagonal of B: the degrees of the attraction, or equal for all points.
    size : float, default=1.0
        The value of s at weight zero, and the smallest one later.
    grow_size : bool, default=True
        Whether s grows with the weight.
    max_saddle_escapes : int, default=3
        Maximum number of searches restarted from a saddle point at one weight.
    optimizer : str or Optimizer, default=None
        The search at each weight; see :func:`resolve_optimizer`. By default that of the estimator.

    See Also
    --------
    Homotopy : starts from a single point.
    Constrained : a search under the constraint.
    manifoldry.LaplacianEigenmaps : the start.

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
    >>> homotopy = ConstrainedHomotopy(n_steps=10)
    >>> path = ElasticEmbedding(weight=10.0, optimizer=homotopy).fit(X).path_
    >>> len(path), float(path.steps[0].parameter), int(path.steps[0].rank)
    (12, 0.0, 2)
    """

    constraint_weights: str = "degree"
    size: float = 1.0
    grow_size: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option("constraint_weights", self.constraint_weights, ("degree", "uniform"))
        check_positive("size", self.size)
        if self.curvature:
            raise ValueError(
                "curvature=True needs a homotopy without a constraint; pass "
                "Homotopy(curvature=True)"
            )

    def start(self, objective: Pairwise, n_components: int, rng: np.random.Generator) -> Array:
        """Return Laplacian eigenmaps of the attraction, of the requested size.

        Parameters
        ----------
        objective : Pairwise
            The objective.
        n_components : int
            Number of coordinates.
        rng : numpy.random.Generator
            Generator of the eigensolver's start vectors.

        Returns
        -------
        array of shape (n, n_components)
            The embedding.
        """
        mass = self.diagonal_of(objective)
        problem = SpectralProblem(
            graph_laplacian(objective.attraction),
            "smallest",
            mass=mass,
            deflate=np.ones(objective.n),
            bounds=(0.0, np.inf),
        )
        V = Auto().solve(problem, n_components, rng).vectors
        return Whitened(objective, mass, self.size).nearest(V)

    def run(self, *arguments: Any) -> "ConstrainedRun":
        return ConstrainedRun(self, *arguments)

    def follow(self, run: HomotopyRun, values: Array) -> Solution:
        """Minimize at all `values` under the constraint, then at the last one without it.

        Parameters
        ----------
        run : HomotopyRun
            The run.
        values : array
            The values of the parameter.

        Returns
        -------
        Solution
            The last search.
        """
        if not isinstance(run, ConstrainedRun):
            raise ValueError(_NOT_QUADRATIC)
        for value in values:
            solution = run.advance(float(value))
            if solution.interrupted:
                return solution
        return run.advance_unconstrained(float(values[-1]))

    def diagonal_of(self, objective: Any) -> Array:
        """Return the diagonal of B.

        Parameters
        ----------
        objective : Pairwise
            The objective.

        Returns
        -------
        array of shape (n,)
            The diagonal.
        """
        if not (isinstance(objective, Pairwise) and objective.kernel.quadratic):
            raise ValueError(_NOT_QUADRATIC)
        if self.constraint_weights == "uniform":
            return np.ones(objective.n)
        return objective.attraction_degrees


class ConstrainedRun(HomotopyRun):
    """The state of a homotopy under the constraint; its path starts at weight zero."""

    homotopy: ConstrainedHomotopy
    family: Callable[[float], Pairwise]

    def advance(self, value: float, final: bool = False) -> Solution:
        if not len(self.path):
            solution = self._advance_constrained(0.0, final=False)
            if solution.interrupted:
                return solution
        return self._advance_constrained(value, final)

    def advance_unconstrained(self, value: float) -> Solution:
        """Minimize without the constraint, from the last minimizer under it."""
        return super().advance(value, final=True)

    def _advance_constrained(self, value: float, final: bool) -> Solution:
        unconstrained, self.optimizer = self.optimizer, self._constrained(value)
        try:
            return super().advance(value, final)
        finally:
            self.optimizer = unconstrained

    def _may_be_saddle(self, Y: Array) -> bool:
        return not isinstance(self.optimizer, Constrained) and super()._may_be_saddle(Y)

    def _constrained(self, value: float) -> Constrained:
        objective, homotopy = self.family(value), self.homotopy
        mass, size = homotopy.diagonal_of(objective), homotopy.size
        if homotopy.grow_size:
            unit = Whitened(objective, mass).nearest(self.Y)
            size = max(size, best_scale(objective, unit))
        return Constrained(self.optimizer, mass, size)
