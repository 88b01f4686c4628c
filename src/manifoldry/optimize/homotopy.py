"""Following minimizers while a parameter of the objective changes."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from manifoldry.objectives.base import Objective
from manifoldry.optimize.optimizer import Callback, Optimizer, Solution
from manifoldry.optimize.saddle import leave_saddle, smallest_curvature
from manifoldry.util.arrays import cast, centered, largest, like, to_numpy
from manifoldry.util.checks import check_count, check_nonnegative, check_option, check_positive
from manifoldry.util.typing import Array


class PathStep(NamedTuple):
    """A minimizer at one value of the homotopy's parameter."""

    parameter: float
    value: float
    """The objective."""
    rank: int
    """Directions along which the map extends: 0 for a collapsed map, 1 for a line, ..."""
    curvature: float
    """Smallest curvature of the objective but for rigid motions; NaN where it was not looked at."""
    iterations: int
    converged: bool


@dataclass(repr=False)
class Path:
    """Every step of a homotopy; its maps too, as many as `budget` bytes hold, evenly spread.

    The first and the last map are always kept. ``kept`` has the numbers of the steps whose maps
    are in ``embeddings``, in numpy wherever the search was; scroll through them with
    :meth:`embedding_at`.

    Examples
    --------
    >>> import numpy as np
    >>> path = Path(budget=3 * 80)  # room for three maps of five points
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
    _stride: int = 1

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        if not self.steps:
            return "Path(no steps)"
        first, last = self.steps[0], self.steps[-1]
        return (
            f"Path({len(self)} steps, parameter {first.parameter:.3g} to {last.parameter:.3g}, "
            f"rank {first.rank} to {last.rank}, {len(self.kept)} maps kept)"
        )

    def record(self, step: PathStep, embedding: Array) -> None:
        """Add a step and, for the time being, its map."""
        if self.kept and self.kept[-1] % self._stride:
            self._drop(-1)  # it was there only as the last one
        self.steps.append(step)
        self.kept.append(len(self.steps) - 1)
        self.embeddings.append(np.array(to_numpy(embedding)))
        while len(self.kept) > 2 and sum(Y.nbytes for Y in self.embeddings) > self.budget:
            self._thin()

    def _thin(self) -> None:
        self._stride *= 2
        for i in range(len(self.kept) - 2, 0, -1):  # the last stays whatever its number
            if self.kept[i] % self._stride:
                self._drop(i)

    def _drop(self, i: int) -> None:
        del self.kept[i], self.embeddings[i]

    def column(self, name: str) -> Array:
        """One figure of all steps: ``"parameter"``, ``"value"``, ``"rank"``, ..."""
        check_option("name", name, PathStep._fields)
        return np.array([getattr(step, name) for step in self.steps])

    def embedding_at(self, parameter: float) -> Array:
        """The kept map whose parameter comes nearest, by ratio where all are positive."""
        at = self.column("parameter")[self.kept]
        positive = parameter > 0 and (at > 0).all()
        distance = np.log(at / parameter) if positive else at - parameter
        return self.embeddings[int(np.argmin(np.abs(distance)))]

    def seen_through(self, view: Callable[[float, Array], Array]) -> Self:
        """The same path where maps are functions of the parameter and what was searched for."""
        at = self.column("parameter")[self.kept]
        maps = [view(float(p), Y) for p, Y in zip(at, self.embeddings, strict=True)]
        return replace(self, embeddings=maps)

    @property
    def bifurcations(self) -> list[tuple[float, int]]:
        """Where the rank changes: the parameter, and the rank from there on."""
        ranks, at = self.column("rank"), self.column("parameter")
        changes = np.flatnonzero(np.diff(ranks)) + 1
        return [(float(at[i]), int(ranks[i])) for i in changes]


def rank(Y: Array, flat: float = 1e-3, collapsed: float = 1e-3) -> int:
    """Directions along which a map extends, relative to its longest; none if it is a point.

    A direction counts if the map extends along it by the fraction `flat` of its longest, and by
    `collapsed` in units of the map's kernel, below which a map is a point.
    """
    Y = to_numpy(Y)
    spread = np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False) / np.sqrt(len(Y))
    return int((spread > max(flat * spread[0], collapsed)).sum())


@dataclass(frozen=True)
class Homotopy:
    """Minimize a series of objectives, each from the minimizer of the one before.

    A map that grows out of one where the minimizer is known (for the elastic embedding: all points
    in one place, then on a line) ends in better minima than one from a random start, and the way
    there shows coarse structure before fine. Every step is kept, see :class:`Path`.

    Where a map ought to gain a dimension, the flat one is a saddle, at which a search may come to
    rest for long. So as long as a map has fewer dimensions than it may have, the direction of its
    smallest curvature is looked for after every search, and followed where that is negative.

    Parameters
    ----------
    n_steps : int, default=50
        Values of the parameter, evenly spaced by ratio.
    values : sequence of float, default=None
        The values themselves, instead; the one at which the estimator is to end is added if it is
        not the last.
    max_iter : int, default=100
        Steps of the search at each value but the last, which is the estimator's own.
    tol : float, default=1e-3
        Tolerance at each value but the last.
    jitter : float, default=1e-6
        Noise added before every search, as a fraction of the map's extent: no gradient leaves a
        saddle by itself.
    curvature : bool, default=False
        Compute the smallest curvature at every minimizer, not of flat maps only. It vanishes where
        the map is about to change its form, and the saddles just beyond are left. It takes several
        times as long as the searches.
    memory : float, default=2**28
        Bytes that the maps along the path may take.
    escapes : int, default=3
        Saddles left at one value of the parameter, at most.

    Examples
    --------
    >>> from manifoldry import ElasticEmbedding
    >>> from manifoldry.optimize import Homotopy
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X = make_swiss_roll(120, random_state=0).X
    >>> model = ElasticEmbedding(weight=1.0, homotopy=Homotopy(n_steps=10)).fit(X)
    >>> path = model.path_
    >>> len(path), int(path.steps[0].rank)
    (10, 1)
    """

    n_steps: int = 50
    values: tuple[float, ...] | None = None
    max_iter: int = 100
    tol: float = 1e-3
    jitter: float = 1e-6
    curvature: bool = False
    memory: float = 2.0**28
    escapes: int = field(default=3, kw_only=True)

    def __post_init__(self) -> None:
        check_count("n_steps", self.n_steps, minimum=2)
        check_count("max_iter", self.max_iter)
        check_nonnegative("tol", self.tol)
        check_nonnegative("jitter", self.jitter)
        check_positive("memory", self.memory)
        check_count("escapes", self.escapes, minimum=0)
        if self.values is not None:
            values = tuple(check_positive("values", value) for value in self.values)
            object.__setattr__(self, "values", values)

    def values_between(self, start: float, end: float) -> Array:
        """The values to run through: those given, or evenly spaced by ratio; the last is `end`."""
        if self.values is None:
            return np.geomspace(start, end, self.n_steps)
        return np.array([*self.values, end] if self.values[-1:] != (end,) else self.values)

    def start(self, objective: Any, n_components: int, rng: np.random.Generator) -> Array | None:
        """The map from which this homotopy begins; None where that is for the objective to say."""
        return None

    def walk(self, *under_way: Any) -> "Walk":
        """Set out: the arguments are those of :class:`Walk`."""
        return Walk(self, *under_way)

    def follow(self, walk: "Walk", values: Array) -> Solution:
        """Run through the `values`: the last is minimized carefully, those before it roughly."""
        for value in values[:-1]:
            solution = walk.to(float(value))
            if solution.interrupted:
                return solution
        return walk.to(float(values[-1]), careful=True)


class Walk:
    """A homotopy under way.

    Parameters
    ----------
    rule : Homotopy
    family : callable
        From a value of the parameter to the objective.
    Y : array of shape (n, d)
        The map from which the first search begins.
    optimizer : Optimizer
        What searches.
    rng : numpy.random.Generator
        What shakes the map between searches.
    watch : callable, default=None
        Sees every step of every search.
    begin : callable, default=None
        Is told each value before its search.
    """

    def __init__(
        self,
        rule: Homotopy,
        family: Callable[[float], Objective],
        Y: Array,
        optimizer: Optimizer,
        rng: np.random.Generator,
        watch: Callback | None = None,
        begin: Callable[[float], None] | None = None,
    ) -> None:
        self.rule, self.family, self.Y = rule, family, Y
        self.optimizer, self.rng = optimizer.with_cached_filter(), rng
        self.watch, self.begin = watch, begin
        self.path = Path(rule.memory)

    def to(self, value: float, careful: bool = False) -> Solution:
        """Minimize at the next value, from where the search before it ended."""
        solution = self.settle(value, self._shaken(), careful)
        solution, curvature = self._off_saddles(value, solution, careful)
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

    def settle(self, value: float, Y: Array, careful: bool = True) -> Solution:
        """Minimize at a value from the map `Y`, without a record."""
        if self.begin is not None:
            self.begin(value)
        rough = self.optimizer.with_looser_stopping(self.rule.max_iter, self.rule.tol)
        search = self.optimizer if careful else rough
        return search.minimize(self.family(value), Y, self.watch)

    def _off_saddles(
        self, value: float, solution: Solution, careful: bool
    ) -> tuple[Solution, float]:
        """A minimizer that no direction leaves downwards, and its curvature, if that was asked."""
        objective, left = self.family(value), 0
        try:
            while not solution.interrupted and self._may_be_saddle(solution.embedding):
                lowest = smallest_curvature(objective, solution.embedding)
                if not lowest.is_negative or left == self.rule.escapes:
                    return solution, lowest.value
                Y = leave_saddle(objective, solution.embedding, lowest.direction)
                if Y is solution.embedding:  # rounding hides the way down
                    return solution, lowest.value
                solution, left = self.settle(value, Y, careful), left + 1
        except KeyboardInterrupt:
            solution = solution.as_interrupted()
        return solution, np.nan

    def _may_be_saddle(self, Y: Array) -> bool:
        return self.rule.curvature or rank(Y) < Y.shape[1]

    def _shaken(self) -> Array:
        jitter = self.rule.jitter * largest(centered(self.Y))
        noise = jitter * self.rng.standard_normal(self.Y.shape)
        return cast(self.Y + like(noise, self.Y), self.Y.dtype)
