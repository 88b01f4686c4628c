"""The method of multipliers: rounds of search, after each of which edges pull harder."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manifoldry.optimize.methods import LBFGS
from manifoldry.optimize.optimizer import Callback
from manifoldry.optimize.stopping import Stopping
from manifoldry.semidefinite.unfolding_problem import UnfoldingProblem
from manifoldry.semidefinite.variance_bound import VarianceBound, dual_value
from manifoldry.util.typing import Array


class Round(NamedTuple):
    """How matters stood after one round."""

    steps: int
    """Steps of all searches so far."""
    stiffness: float
    variance: float
    violation: float
    """Largest change of a squared length beyond what is granted, as a fraction of it."""
    rank: int
    """Coordinates in use."""


class Kept(NamedTuple):
    """A map, with what belongs to it."""

    R: Array
    tension: Array
    fraction: float
    """Variance per edge."""
    violation: float


Begin: TypeAlias = Callable[[UnfoldingProblem, Round | None, float], None]


@dataclass(frozen=True, eq=False)
class Unfolded:
    """A map of large variance, and the evidence."""

    R: Array
    """Variables of the problem, along principal axes."""
    map: Array
    """The map they make."""
    variance: float
    tension: Array
    bound: float
    """Variance that no map can exceed."""
    gap: float
    """Fraction of the variance by which it, less what slack costs, might be larger."""
    converged: bool
    status: str
    rounds: list[Round]
    interrupted: bool = False

    @property
    def steps(self) -> int:
        """Steps of all rounds."""
        return self.rounds[-1].steps if self.rounds else 0


@dataclass(frozen=True)
class MethodOfMultipliers:
    """Unfold by rounds of search (Burer and Monteiro's method on relative lengths).

    In each round the map minimizes an
    :class:`~manifoldry.semidefinite.unfolding_problem.Unfolding`, and the tensions it ends with
    are those from which the next one's springs pull. Stiffness grows as long as lengths do not
    come right by themselves. Once they are, calm rounds let tensions settle, which proves how far
    the variance is from the largest possible, and stiff ones restore the lengths. The number of
    coordinates follows those in use.

    Parameters
    ----------
    tol : float, default=1e-3
        Largest change of a squared length, beyond what is granted, as a fraction of it.
    gap_tol : float, default=0.01
        Largest gap between variance and bound.
    max_iter : int, default=20000
        Most steps of all searches.
    stiffness, stiffest : float, default=100.0, 1e4
        Of the first round, and of the stiffest: the error of a tension is stiffness times that of a
        length.
    stiffer : float, default=3.0
        Factor from one round to the next where the violation has not been halved.
    calm : float, default=100.0
        Stiffness of rounds that let tensions settle.
    calm_rounds : int, default=4
        Of those in the first cycle, twice as many in every next.
    cycles : int, default=4
        Of calm rounds and stiff ones, as long as the bound is not met.
    spare : int, default=3
        Coordinates beyond those in use.
    used, fresh : float, default=0.01, 1e-3
        Largest value from which a coordinate is in use, and spread of a fresh one, both in units of
        the mean edge.
    stopping : Stopping
        When the search of a round ends; its `max_iter` is the problem's.
    """

    tol: float = 1e-3
    gap_tol: float = 0.01
    max_iter: int = 20_000
    stiffness: float = 100.0
    stiffest: float = 1e4
    stiffer: float = 3.0
    calm: float = 100.0
    calm_rounds: int = 4
    cycles: int = 4
    spare: int = 3
    used: float = 0.01
    fresh: float = 1e-3
    stopping: Stopping = field(default=Stopping(tol=1e-6, value_tol=1e-12, gradient_tol=1e-7))

    def solve(
        self,
        problem: UnfoldingProblem,
        R: Array,
        rng: np.random.Generator,
        watch: Callback | None = None,
        begin: Begin | None = None,
        before: Unfolded | None = None,
    ) -> Unfolded:
        """Unfold from the map that `R` makes, and from tensions of one.

        `begin` is told the problem, of the round before, and the stiffness of the next. Where the
        search goes on from one `before`, it begins from its tensions, and its steps count.
        """
        R = _sized(problem, R, rng) if before is None else R
        search = _Search(self, problem, R, rng, watch, begin)
        if before is not None:
            search.tension, search.rounds = before.tension, list(before.rounds)
        try:
            search.run()
        except KeyboardInterrupt:
            return search.result(interrupted=True)
        return search.result()


def _sized(problem: UnfoldingProblem, R: Array, rng: np.random.Generator) -> Array:
    """A map whose edges have about their length, random if the one given has none.

    Tensions are counted in units of the map's variance, which therefore has to be about right.
    """
    R = problem.centered(R)
    extent = float(np.abs(R).max())
    for start in (R / (extent or 1.0), problem.centered(rng.standard_normal(R.shape))):
        steps = problem.steps(start)
        fractions = np.einsum("ed,ed->e", steps, steps) / problem.edges.scales
        if fractions.any():
            break
    return start * float(np.sqrt(fractions.sum() / (fractions**2).sum()))


class _Search:
    def __init__(
        self,
        rule: MethodOfMultipliers,
        problem: UnfoldingProblem,
        R: Array,
        rng: np.random.Generator,
        watch: Callback | None,
        begin: Begin | None,
    ) -> None:
        self.rule, self.problem, self.rng = rule, problem, rng
        self.watch, self.begin = watch, begin
        self.R = self._fresh(R)
        self.tension: Array = np.ones(problem.edges.count)
        self.fraction = problem.expected_variance / problem.edges.count
        self.proof: Array | None = None  # weights of edges that prove the bound
        self.kept: Kept | None = None  # what there is to return
        self.impossible = False
        self.rounds: list[Round] = []

    def run(self) -> None:
        """Search until lengths are kept and the variance is provably large enough."""
        stiffness = self._stiffen(self.rule.stiffness)
        for cycle in range(self.rule.cycles):
            for _ in range(self.rule.calm_rounds << cycle):
                if self._over or self.impossible:
                    return
                self._round(self.rule.calm)
            self._prove()
            stiffness = self._stiffen(stiffness)
            if self.gap <= self.rule.gap_tol:
                return

    def _stiffen(self, stiffness: float) -> float:
        """Rounds, ever stiffer if need be, until lengths are kept, or proved not to be.

        The map they end with is what there is to return, if its lengths are kept.
        """
        before = np.inf
        while not (self._over or self.impossible):
            self._round(stiffness)
            if self.violation <= self.rule.tol:
                break
            self.impossible = self._proved_impossible()
            if self.violation > before / 2:
                stiffness = min(self.rule.stiffer * stiffness, self.rule.stiffest)
            before = self.violation
        if self.kept is None or self.violation <= self.rule.tol:
            self.kept = self._present
        return stiffness

    def _prove(self) -> None:
        """See what variance the tensions prove to be the largest."""
        found = VarianceBound.of(self.problem, self.tension, self.fraction, self.rng)
        weights = self.fraction * found.tension
        if self._bound(weights) < self.bound:
            self.proof = weights

    def _proved_impossible(self) -> bool:
        """Whether tensions, which grow without bound then, prove that no map keeps the lengths.

        A negative bound of the variance is a proof; with slack every map is granted, at a price.
        """
        if self.problem.slack > 0 or not self._contradicts(self.tension):
            return False
        found = VarianceBound.of(self.problem, self.tension, self.fraction, self.rng)
        return bool(np.isfinite(found.value)) and self._contradicts(found.tension)

    def _contradicts(self, tension: Array) -> bool:
        """Whether a bound is negative, even of maps whose lengths are off by tol."""
        return dual_value(self.problem, tension) < -self.rule.tol * float(np.abs(tension).sum())

    def _round(self, stiffness: float) -> None:
        if self.begin is not None:
            self.begin(self.problem, self.rounds[-1] if self.rounds else None, stiffness)
        objective = self.problem.round(self.tension, stiffness, self.fraction)
        most = min(self._left, self.problem.steps_per_round)
        search = LBFGS(self.problem.filter, stopping=replace(self.rule.stopping, max_iter=most))
        solution = search.minimize(objective, self._fresh(self.R), self.watch)
        self.R = self._turned(self.problem.centered(solution.embedding))
        changes = self.problem.changes(self.R)
        tension = objective.pull(changes)
        violation = float(self.problem.excess(changes, tension).max())
        fraction, self.fraction = self.fraction, self._fraction()
        self.tension = tension * (fraction / self.fraction)  # that of the mean edge is one, always
        variance, rank = self.fraction * self.problem.edges.count, self._in_use(self.R).sum()
        steps = self.rule.max_iter - self._left + max(solution.n_iter, 1)  # or it might never end
        self.rounds.append(Round(steps, stiffness, variance, violation, int(rank)))
        if solution.interrupted:
            raise KeyboardInterrupt

    @property
    def _left(self) -> int:
        """Steps that may still be taken."""
        return self.rule.max_iter - (self.rounds[-1].steps if self.rounds else 0)

    @property
    def _over(self) -> bool:
        return self._left <= 0

    def _fraction(self) -> float:
        return self.problem.variance(self.R) / self.problem.edges.count

    def _fresh(self, R: Array) -> Array:
        """The map along its principal axes: those in use, and a few that are next to nothing."""
        R = self._turned(R)
        spare = self.rng.standard_normal((len(R), self.rule.spare))
        spare *= self.rule.fresh * self._edge / self.problem.map(spare).std(axis=0)
        return self.problem.centered(np.hstack([R[:, self._in_use(R)], spare]))

    def _turned(self, R: Array) -> Array:
        """The map along its principal axes."""
        return R @ np.linalg.eigh(self.problem.gram(R))[1][:, ::-1]

    def _in_use(self, R: Array) -> NDArray[np.bool_]:
        """Which coordinates of a map along its principal axes are more than next to nothing."""
        return np.asarray(np.abs(self.problem.map(R)).max(axis=0) > self.rule.used * self._edge)

    @cached_property
    def _edge(self) -> float:
        return float(np.sqrt(self.problem.edges.squares.mean()))

    @property
    def violation(self) -> float:
        """Largest change of a squared length beyond what is granted."""
        return self.rounds[-1].violation if self.rounds else np.inf

    @property
    def _present(self) -> Kept:
        return Kept(self.R, self.tension, self.fraction, self.violation)

    @property
    def best(self) -> Kept:
        """What the search has to offer."""
        return self.kept or self._present

    @property
    def bound(self) -> float:
        """What the variance, less what slack costs, cannot exceed."""
        return np.inf if self.proof is None else self._bound(self.proof)

    def _bound(self, weights: Array) -> float:
        """The same by given weights of edges, at the share that the map has."""
        fraction = self.best.fraction
        return fraction * dual_value(self.problem, weights / fraction)

    @property
    def gap(self) -> float:
        """Fraction of the variance by which it, less what slack costs, might be larger."""
        count, best = self.problem.edges.count, self.best
        price = self.problem.price(self.problem.changes(best.R))
        return self.bound / (best.fraction * count) - (1 - price / count)

    def status(self) -> tuple[bool, str]:
        """Whether all is well, and what there is to say."""
        tol, gap_tol, success = self.rule.tol, self.rule.gap_tol, self.problem.success
        if self.impossible:
            return False, f"tensions prove that no {self.problem.maps} keeps these lengths"
        over = f"max_iter={self.rule.max_iter} steps were taken, and " if self._over else ""
        if self.best.violation > tol:
            return False, (
                f"{over}some squared length still changes by {self.best.violation:.1e} of it "
                "beyond what is granted"
            )
        if self.gap == np.inf:
            return False, f"{over}{success}, but nothing is proved about the variance"
        if self.gap > gap_tol:
            return False, (
                f"{over}{success}, but the variance is proved only to be within "
                f"{self.gap:.1%} of the largest possible, not gap_tol={gap_tol:.1%}"
            )
        gap = max(self.gap, 0.0)  # lengths that are off by tol may let it be larger
        return True, f"{success}, and the variance is within {gap:.2%} of the largest"

    def result(self, interrupted: bool = False) -> Unfolded:
        converged, status = (False, "interrupted") if interrupted else self.status()
        R, tension, *_ = self.best
        return Unfolded(
            R,
            self.problem.map(R),
            self.problem.variance(R),
            tension,
            self.bound,
            self.gap,
            converged,
            status,
            self.rounds,
            interrupted,
        )
