"""Homotopies: minimize while a parameter of the objective changes, and record the path."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from manifoldry.device.vectors import centered
from manifoldry.objectives.base import Objective
from manifoldry.optimize.optimizer import Optimizer, Solution, StepCallback
from manifoldry.optimize.resolve import resolve_optimizer
from manifoldry.optimize.saddle import leave_saddle, smallest_curvature, thinnest_axis
from manifoldry.util.arrays import cast, largest, like, to_numpy
from manifoldry.util.checks import check_count, check_nonnegative, check_option, check_positive
from manifoldry.util.typing import Array


class PathStep(NamedTuple):
    """Minimizer at one value of the homotopy's parameter.

    Parameters
    ----------
    parameter : float
        The value of the parameter.
    value : float
        Value of the objective.
    rank : int
        Number of directions along which the embedding extends: 0 if it is a single point.
    curvature : float
        Smallest curvature of the objective, rigid motions excluded; NaN if it was not computed.
    iterations : int
        Number of steps of the search.
    converged : bool
        Whether the search converged.

    See Also
    --------
    Path : all steps of a homotopy.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import ElasticEmbedding
    >>> from manifoldry.optimize import Homotopy
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> model = ElasticEmbedding(weight=1.0, optimizer=Homotopy(n_steps=5)).fit(X)
    >>> last = model.path_.steps[-1]
    >>> last.parameter, last.rank, last.converged
    (1.0, 2, True)
    """

    parameter: float
    value: float
    rank: int
    curvature: float
    iterations: int
    converged: bool


@dataclass(repr=False)
class Path:
    """Steps of a homotopy, and as many of its embeddings as fit into `budget` bytes.

    If not all embeddings fit, every 2nd, 4th, ... is kept, and always the first and the last.
    :meth:`embedding_at` returns the one nearest to a value of the parameter, and :meth:`column` a
    field of all steps as an array. Estimators have the path of their homotopy as ``path_``.

    Parameters
    ----------
    budget : float, default=2**28
        Number of bytes for embeddings.
    steps : list of PathStep, optional
        All steps.
    kept : list of int, optional
        Step numbers of the embeddings.
    embeddings : list of arrays, optional
        The embeddings that are kept, as NumPy arrays on any device.

    See Also
    --------
    Homotopy : records it.
    PathStep : one of its steps.
    manifoldry.ElasticEmbedding : an estimator with ``path_``.

    Examples
    --------
    >>> import numpy as np
    >>> path = Path(budget=3 * 80)  # room for three embeddings of five points
    >>> for step in range(7):
    ...     path.record(PathStep(step, -step, 2, np.nan, 1, True), np.full((5, 2), float(step)))
    >>> path.kept
    [0, 4, 6]
    >>> path.embedding_at(3.8)[0]
    array([4., 4.])
    """

    budget: float = 2.0**28
    steps: list[PathStep] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    embeddings: list[Array] = field(default_factory=list)
    _stride: int = field(default=1, init=False)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        if not self.steps:
            return "Path(no steps)"
        first, last = self.steps[0], self.steps[-1]
        return (
            f"Path({len(self)} steps, parameter {first.parameter:.3g} to {last.parameter:.3g}, "
            f"rank {first.rank} to {last.rank}, {len(self.kept)} embeddings kept)"
        )

    def record(self, step: PathStep, embedding: Array) -> None:
        """Add a step and its embedding, and drop embeddings that exceed the budget.

        Parameters
        ----------
        step : PathStep
            The step.
        embedding : array of shape (n, d)
            Its embedding.
        """
        if self.kept and self.kept[-1] % self._stride:
            self._drop(-1)  # it was kept only because it was the last one
        self.steps.append(step)
        self.kept.append(len(self.steps) - 1)
        self.embeddings.append(np.array(to_numpy(embedding)))
        while len(self.kept) > 2 and sum(Y.nbytes for Y in self.embeddings) > self.budget:
            self._thin()

    def _thin(self) -> None:
        self._stride *= 2
        for i in range(len(self.kept) - 2, 0, -1):  # the last one is always kept
            if self.kept[i] % self._stride:
                self._drop(i)

    def _drop(self, i: int) -> None:
        del self.kept[i], self.embeddings[i]

    def column(self, name: str) -> Array:
        """Return one field of all steps as an array.

        Parameters
        ----------
        name : str
            The field: ``"parameter"``, ``"value"``, ``"rank"``, ``"curvature"``, ``"iterations"``
            or ``"converged"``.

        Returns
        -------
        array
            One entry per step.
        """
        check_option("name", name, PathStep._fields)
        return np.array([getattr(step, name) for step in self.steps])

    def embedding_at(self, parameter: float) -> Array:
        """Return the kept embedding with the nearest parameter, by ratio if all are positive.

        Parameters
        ----------
        parameter : float
            The value of the parameter.

        Returns
        -------
        array of shape (n, d)
            The embedding.
        """
        at = self.column("parameter")[self.kept]
        positive = parameter > 0 and (at > 0).all()
        distance = np.log(at / parameter) if positive else at - parameter
        return self.embeddings[int(np.argmin(np.abs(distance)))]

    def transformed(self, function: Callable[[float, Array], Array]) -> Self:
        """Return the same path with other embeddings.

        Parameters
        ----------
        function : callable
            Called with the parameter and the embedding of every kept step; returns the new
            embedding.

        Returns
        -------
        Path
            The path.
        """
        at = self.column("parameter")[self.kept]
        changed = [function(float(p), Y) for p, Y in zip(at, self.embeddings, strict=True)]
        path = copy(self)
        path.embeddings = changed
        return path

    @property
    def bifurcations(self) -> list[tuple[float, int]]:
        """Parameters at which the rank changes, each with the new rank."""
        ranks, at = self.column("rank"), self.column("parameter")
        changes = np.flatnonzero(np.diff(ranks)) + 1
        return [(float(at[i]), int(ranks[i])) for i in changes]


def rank(Y: Array, flat: float = 1e-3, collapsed: float = 1e-3) -> int:
    """Number of directions along which an embedding extends; 0 if it is a single point.

    A principal axis counts if the standard deviation along it is more than the fraction `flat` of
    the largest one, and more than `collapsed`, in units of the kernel's width.
    """
    C = centered(to_numpy(Y).astype(np.float64, copy=False))
    # From the covariance, since a singular value decomposition of many rows takes far longer.
    variances = np.linalg.eigvalsh(C.T @ C / len(C))
    spread = np.sqrt(np.maximum(variances, 0.0))
    return int((spread > max(flat * spread[-1], collapsed)).sum())


@dataclass(frozen=True)
class EarlyExaggeration:
    """The first phase of t-SNE, in which attraction is multiplied by a factor.

    The factor decreases to one step by step: clusters form while it is large, and neighbors that
    were torn apart find each other while it decreases.

    Parameters
    ----------
    factor : float, default=12.0
        First factor of the attraction; 1 for no such phase.
    n_iter : int, default=120
        Maximum number of steps of the phase; 0 for no such phase.
    n_levels : int, default=6
        Number of different factors, in a geometric series that would reach one with another term;
        1 for a constant factor. Each has the same number of steps.

    See Also
    --------
    manifoldry.TSNE : takes it as ``early_exaggeration``.
    Homotopy : a series of objectives for any method.

    Examples
    --------
    >>> from manifoldry import TSNE
    >>> from manifoldry.optimize import EarlyExaggeration
    >>> model = TSNE(early_exaggeration=EarlyExaggeration(factor=4.0, n_iter=100))
    >>> [round(factor, 2) for factor, n_iter in EarlyExaggeration(n_levels=3).levels]
    [12.0, 5.24, 2.29]
    """

    factor: float = 12.0
    n_iter: int = 120
    n_levels: int = 6

    def __post_init__(self) -> None:
        check_positive("factor", self.factor)
        check_count("n_iter", self.n_iter, minimum=0)
        check_count("n_levels", self.n_levels)

    @property
    def is_needed(self) -> bool:
        """Whether there is such a phase."""
        return self.n_iter > 0 and self.factor != 1

    @property
    def levels(self) -> list[tuple[float, int]]:
        """The factors, and the number of steps with each."""
        n = min(self.n_levels, self.n_iter)
        steps = np.diff(np.arange(n + 1) * self.n_iter // n).tolist() if self.is_needed else []
        return [(self.factor ** (1 - level / n), count) for level, count in enumerate(steps)]


@dataclass(frozen=True)
class Homotopy:
    """Minimize a series of objectives, each from the minimizer of the one before.

    Start with a parameter at which the minimizer is known, and change it step by step to its final
    value. For the elastic embedding, symmetric SNE and SNE the parameter is the weight of
    repulsion, and the first embedding is nearly a single point; for t-SNE it is one over the
    exaggeration, for UKR the half width of a box that contains the embedding. This ends in better
    minima than a search from a random start, and the path shows coarse structure before fine
    structure. It is recorded in ``path_``, a :class:`Path`.

    An embedding that is about to gain a dimension is a saddle point, where a search may hardly
    progress. As long as an embedding has fewer dimensions than it may have, the direction of
    smallest curvature is computed after every search, and followed if that curvature is negative.

    Parameters
    ----------
    n_steps : int, default=50
        Number of values of the parameter, spaced geometrically.
    values : sequence of float, default=None
        The values themselves, instead of `n_steps`; the final value of the estimator is appended
        if it is missing.
    max_iter : int, default=100
        Maximum number of steps of the search at each value except the last, where the bound of the
        optimizer applies.
    tol : float, default=1e-3
        Tolerance of the search at each value except the last.
    jitter : float, default=1e-6
        Noise added before every search, as a fraction of the embedding's size, because the gradient
        at a saddle point does not lead away from it.
    curvature : bool, default=False
        Compute the smallest curvature at every minimizer, not only at those that have fewer
        dimensions than allowed. It is zero at a bifurcation of the path; at a saddle point beyond
        one it is negative, and the search continues along that direction. Takes several times as
        long as the searches.
    memory : float, default=2**28
        Maximum number of bytes of the embeddings in the path.
    max_saddle_escapes : int, default=3
        Maximum number of searches restarted from a saddle point at one value of the parameter.
    optimizer : str or Optimizer, default=None
        The search at each value; see :func:`resolve_optimizer`. By default that of the estimator.

    See Also
    --------
    ConstrainedHomotopy : starts from Laplacian eigenmaps.
    Path : the embeddings along the homotopy.
    manifoldry.objectives.Bifurcation : the weight of repulsion at which it starts.

    Examples
    --------
    >>> from manifoldry import ElasticEmbedding
    >>> from manifoldry.optimize import Homotopy
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X = make_swiss_roll(120, random_state=0).X
    >>> model = ElasticEmbedding(weight=1.0, optimizer=Homotopy(n_steps=10)).fit(X)
    >>> path = model.path_
    >>> len(path), int(path.steps[0].rank)
    (10, 1)
    """

    # Steps at each value, for time estimates: 16 to 21 in fits of 10 000 to 70 000 digits.
    usual_steps: ClassVar[int] = 20

    n_steps: int = 50
    values: tuple[float, ...] | None = None
    max_iter: int = 100
    tol: float = 1e-3
    jitter: float = 1e-6
    curvature: bool = False
    memory: float = 2.0**28
    max_saddle_escapes: int = field(default=3, kw_only=True)
    optimizer: str | Optimizer | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_count("n_steps", self.n_steps, minimum=2)
        check_count("max_iter", self.max_iter)
        check_nonnegative("tol", self.tol)
        check_nonnegative("jitter", self.jitter)
        check_positive("memory", self.memory)
        check_count("max_saddle_escapes", self.max_saddle_escapes, minimum=0)
        if self.optimizer is not None:
            resolve_optimizer(self.optimizer)
        if self.values is not None:
            values = tuple(check_positive("values", value) for value in self.values)
            object.__setattr__(self, "values", values)

    def values_between(self, start: float, end: float) -> Array:
        """Return the values of the parameter: those given, or spaced geometrically.

        Parameters
        ----------
        start, end : float
            The first and the last value.

        Returns
        -------
        array
            The values; the last is `end`.
        """
        if self.values is None:
            return np.geomspace(start, end, self.n_steps)
        return np.array([*self.values, end] if self.values[-1:] != (end,) else self.values)

    def start(self, objective: Any, n_components: int, rng: np.random.Generator) -> Array | None:
        """Return the embedding from which this homotopy starts.

        Parameters
        ----------
        objective : Objective
            The objective.
        n_components : int
            Number of coordinates.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        array of shape (n, n_components) or None
            The embedding; None for that of the estimator.
        """
        return None

    def run(self, *arguments: Any) -> "HomotopyRun":
        """Start a run.

        Parameters
        ----------
        *arguments : tuple
            Those of :class:`HomotopyRun` after the first.

        Returns
        -------
        HomotopyRun
            The run.
        """
        return HomotopyRun(self, *arguments)

    def follow(self, run: "HomotopyRun", values: Array) -> Solution:
        """Minimize at all values, with the tolerance of the optimizer itself at the last only.

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
        for value in values[:-1]:
            solution = run.advance(float(value))
            if solution.interrupted:
                return solution
        return run.advance(float(values[-1]), final=True)


class HomotopyRun:
    """State of a homotopy between two values of its parameter.

    Estimators follow homotopies by themselves; use it for an objective of your own.

    Parameters
    ----------
    homotopy : Homotopy
        The bounds of the searches.
    family : callable
        Maps a value of the parameter to the objective.
    Y : array of shape (n, d)
        The embedding from which the first search starts.
    optimizer : Optimizer
        The search at each value.
    rng : numpy.random.Generator
        Generator of the noise added between searches.
    callback : callable, default=None
        Called after every step of every search.
    begin : callable, default=None
        Called with each value before its search.

    See Also
    --------
    Homotopy : its method `run` starts a run.
    Path : the recorded steps.

    Examples
    --------
    Four points in a row, with increasing weight of repulsion: they leave the single point in which
    they start.

    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import LBFGS, Homotopy
    >>> W = (np.eye(4, k=1) + np.eye(4, k=-1)) / 6
    >>> start = 1e-3 * np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> family, rng = lambda weight: elastic(W, weight=weight), np.random.default_rng(0)
    >>> run = Homotopy().run(family, start, LBFGS(), rng)
    >>> for weight in (0.1, 1.0, 10.0):
    ...     solution = run.advance(weight)
    >>> [step.rank for step in run.path.steps]
    [0, 1, 1]
    """

    def __init__(
        self,
        homotopy: Homotopy,
        family: Callable[[float], Objective],
        Y: Array,
        optimizer: Optimizer,
        rng: np.random.Generator,
        callback: StepCallback | None = None,
        begin: Callable[[float], None] | None = None,
    ) -> None:
        self.homotopy, self.family, self.Y = homotopy, family, Y
        self.optimizer, self.rng = optimizer.with_cached_filter(), rng
        self.callback, self.begin = callback, begin
        self.path = Path(homotopy.memory)

    def advance(self, value: float, final: bool = False) -> Solution:
        """Minimize at the next value, from the minimizer of the previous one, and record it.

        Parameters
        ----------
        value : float
            The value of the parameter.
        final : bool, default=False
            Whether this is the last value; otherwise the search stops at the bounds of the
            homotopy.

        Returns
        -------
        Solution
            The search.
        """
        solution = self.minimize(value, self._perturbed(), final)
        solution, curvature = self._leave_saddles(value, solution, final)
        self.Y = solution.embedding
        step = PathStep(
            value,
            solution.value,
            rank(self.Y),
            curvature,
            solution.n_iter,
            solution.converged,
        )
        self.path.record(step, self.Y)
        return solution

    def minimize(self, value: float, Y: Array, final: bool = True) -> Solution:
        """Minimize at a value of the parameter without recording it.

        Parameters
        ----------
        value : float
            The value of the parameter.
        Y : array of shape (n, d)
            The start.
        final : bool, default=True
            Whether the search stops at its own bounds, not at those of the homotopy.

        Returns
        -------
        Solution
            The search.
        """
        if self.begin is not None:
            self.begin(value)
        rough = self.optimizer.with_looser_stopping(self.homotopy.max_iter, self.homotopy.tol)
        search = self.optimizer if final else rough
        return search.minimize(self.family(value), Y, self.callback)

    def _leave_saddles(
        self, value: float, solution: Solution, final: bool
    ) -> tuple[Solution, float]:
        """Leave saddle points; return a minimizer and its smallest curvature if it was computed."""
        objective, left = self.family(value), 0
        try:
            while not solution.interrupted and self._may_be_saddle(solution.embedding):
                axis = self._axis(solution.embedding)
                lowest = smallest_curvature(objective, solution.embedding, axis=axis)
                if not lowest.is_negative or left == self.homotopy.max_saddle_escapes:
                    return solution, lowest.value
                Y = leave_saddle(objective, solution.embedding, lowest.direction)
                if Y is solution.embedding:  # no decrease beyond rounding errors
                    return solution, lowest.value
                solution, left = self.minimize(value, Y, final), left + 1
        except KeyboardInterrupt:
            solution = solution.as_interrupted()
        return solution, np.nan

    def _may_be_saddle(self, Y: Array) -> bool:
        return self.homotopy.curvature or rank(Y) < Y.shape[1]

    def _axis(self, Y: Array) -> Array | None:
        """The axis along which a flat embedding is displaced; None for all of them.

        Where an embedding is flat, the Hessian does not couple displacements along that axis with
        the others, and these were minimized: n unknowns instead of n·d.
        """
        return None if self.homotopy.curvature else thinnest_axis(Y)

    def _perturbed(self) -> Array:
        jitter = self.homotopy.jitter * largest(centered(self.Y))
        noise = jitter * self.rng.standard_normal(self.Y.shape)
        return cast(self.Y + like(noise, self.Y), self.Y.dtype)
