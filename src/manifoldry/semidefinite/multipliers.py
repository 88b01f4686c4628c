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
    penalty: float
    variance: float
    violation: float
    """Largest change of a squared length beyond what is granted, as a fraction of it."""
    rank: int
    """Coordinates in use."""


class Candidate(NamedTuple):
    """A map, with what belongs to it."""

    R: Array
    multipliers: Array
    variance_per_edge: float
    """Variance per edge."""
    violation: float


RoundCallback: TypeAlias = Callable[[UnfoldingProblem, Round | None, float], None]


@dataclass(frozen=True, eq=False)
class UnfoldingResult:
    """A map of large variance, and the evidence."""

    R: Array
    """Variables of the problem, along principal axes."""
    map: Array
    """The map they make."""
    variance: float
    multipliers: Array
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
    :class:`~manifoldry.semidefinite.unfolding_problem.UnfoldingLagrangian`, and the multipliers it ends with
    are those from which the next one's springs pull. Stiffness grows as long as lengths do not
    come right by themselves. Once they are, calm rounds let multipliers settle, which proves how far
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
    penalty, max_penalty : float, default=100.0, 1e4
        Of the first round, and of the max_penalty: the error of a multipliers is penalty times that of a
        length.
    penalty_growth : float, default=3.0
        Factor from one round to the next where the violation has not been halved.
    low_penalty : float, default=100.0
        Stiffness of rounds that let multipliers settle.
    low_penalty_rounds : int, default=4
        Of those in the first cycle, twice as many in every next.
    cycles : int, default=4
        Of calm rounds and stiff ones, as long as the bound is not met.
    extra_coordinates : int, default=3
        Coordinates beyond those in use.
    min_extent, extra_scale : float, default=0.01, 1e-3
        Largest value from which a coordinate is in use, and spread of a fresh one, both in units of
        the mean edge.
    stopping : Stopping
        When the search of a round ends; its `max_iter` is the problem's.
    """

    tol: float = 1e-3
    gap_tol: float = 0.01
    max_iter: int = 20_000
    penalty: float = 100.0
    max_penalty: float = 1e4
    penalty_growth: float = 3.0
    low_penalty: float = 100.0
    low_penalty_rounds: int = 4
    cycles: int = 4
    extra_coordinates: int = 3
    min_extent: float = 0.01
    extra_scale: float = 1e-3
    stopping: Stopping = field(default=Stopping(tol=1e-6, value_tol=1e-12, gradient_tol=1e-7))

    def solve(
        self,
        problem: UnfoldingProblem,
        R: Array,
        rng: np.random.Generator,
        watch: Callback | None = None,
        on_round: RoundCallback | None = None,
        before: UnfoldingResult | None = None,
    ) -> UnfoldingResult:
        """Unfold from the map that `R` makes, and from multipliers of one.

        `on_round` is told the problem, of the round before, and the penalty of the next. Where the
        search goes on from one `before`, it begins from its multipliers, and its steps count.
        """
        R = _rescaled(problem, R, rng) if before is None else R
        search = _Search(self, problem, R, rng, watch, on_round)
        if before is not None:
            search.multipliers, search.rounds = before.multipliers, list(before.rounds)
        try:
            search.run()
        except KeyboardInterrupt:
            return search.result(interrupted=True)
        return search.result()


def _rescaled(problem: UnfoldingProblem, R: Array, rng: np.random.Generator) -> Array:
    """A map whose edges have about their length, random if the one given has none.

    Tensions are counted in units of the map's variance, which therefore has to be about right.
    """
    R = problem.centered(R)
    extent = float(np.abs(R).max())
    for start in (R / (extent or 1.0), problem.centered(rng.standard_normal(R.shape))):
        steps = problem.edge_vectors(start)
        fractions = np.einsum("ed,ed->e", steps, steps) / problem.edges.scales
        if fractions.any():
            break
    return start * float(np.sqrt(fractions.sum() / (fractions**2).sum()))


class _Search:
    def __init__(
        self,
        method: MethodOfMultipliers,
        problem: UnfoldingProblem,
        R: Array,
        rng: np.random.Generator,
        watch: Callback | None,
        on_round: RoundCallback | None,
    ) -> None:
        self.method, self.problem, self.rng = method, problem, rng
        self.watch, self.on_round = watch, on_round
        self.R = self._with_extra_coordinates(R)
        self.multipliers: Array = np.ones(problem.edges.count)
        self.variance_per_edge = problem.expected_variance / problem.edges.count
        self.bound_weights: Array | None = None  # weights of edges that prove the bound
        self.feasible: Candidate | None = None  # what there is to return
        self.infeasible = False
        self.rounds: list[Round] = []

    def run(self) -> None:
        """Search until lengths are kept and the variance is provably large enough."""
        penalty = self._enforce_lengths(self.method.penalty)
        for cycle in range(self.method.cycles):
            for _ in range(self.method.low_penalty_rounds << cycle):
                if self._exhausted or self.infeasible:
                    return
                self._round(self.method.low_penalty)
            self._update_bound()
            penalty = self._enforce_lengths(penalty)
            if self.gap <= self.method.gap_tol:
                return

    def _enforce_lengths(self, penalty: float) -> float:
        """Rounds, ever penalty_growth if need be, until lengths are kept, or proved not to be.

        The map they end with is what there is to return, if its lengths are kept.
        """
        before = np.inf
        while not (self._exhausted or self.infeasible):
            self._round(penalty)
            if self.violation <= self.method.tol:
                break
            self.infeasible = self._is_infeasible()
            if self.violation > before / 2:
                penalty = min(self.method.penalty_growth * penalty, self.method.max_penalty)
            before = self.violation
        if self.feasible is None or self.violation <= self.method.tol:
            self.feasible = self._current
        return penalty

    def _update_bound(self) -> None:
        """See what variance the multipliers prove to be the largest."""
        found = VarianceBound.of(self.problem, self.multipliers, self.variance_per_edge, self.rng)
        weights = self.variance_per_edge * found.multipliers
        if self._bound(weights) < self.bound:
            self.bound_weights = weights

    def _is_infeasible(self) -> bool:
        """Whether multipliers, which grow without bound then, prove that no map keeps the lengths.

        A negative bound of the variance is a proof; with slack every map is granted, at a price.
        """
        if self.problem.slack > 0 or not self._proves_infeasible(self.multipliers):
            return False
        found = VarianceBound.of(self.problem, self.multipliers, self.variance_per_edge, self.rng)
        return bool(np.isfinite(found.value)) and self._proves_infeasible(found.multipliers)

    def _proves_infeasible(self, multipliers: Array) -> bool:
        """Whether a bound is negative, even of maps whose lengths are off by tol."""
        return dual_value(self.problem, multipliers) < -self.method.tol * float(
            np.abs(multipliers).sum()
        )

    def _round(self, penalty: float) -> None:
        if self.on_round is not None:
            self.on_round(self.problem, self.rounds[-1] if self.rounds else None, penalty)
        objective = self.problem.lagrangian(self.multipliers, penalty, self.variance_per_edge)
        most = min(self._steps_left, self.problem.steps_per_round)
        search = LBFGS(self.problem.filter, stopping=replace(self.method.stopping, max_iter=most))
        solution = search.minimize(objective, self._with_extra_coordinates(self.R), self.watch)
        self.R = self._along_principal_axes(self.problem.centered(solution.embedding))
        changes = self.problem.changes(self.R)
        multipliers = objective.updated_multipliers(changes)
        violation = float(self.problem.excess(changes, multipliers).max())
        former, self.variance_per_edge = self.variance_per_edge, self._variance_per_edge()
        self.multipliers = multipliers * (
            former / self.variance_per_edge
        )  # that of the mean edge is one, always
        variance, rank = (
            self.variance_per_edge * self.problem.edges.count,
            self._in_use(self.R).sum(),
        )
        steps = (
            self.method.max_iter - self._steps_left + max(solution.n_iter, 1)
        )  # or it might never end
        self.rounds.append(Round(steps, penalty, variance, violation, int(rank)))
        if solution.interrupted:
            raise KeyboardInterrupt

    @property
    def _steps_left(self) -> int:
        """Steps that may still be taken."""
        return self.method.max_iter - (self.rounds[-1].steps if self.rounds else 0)

    @property
    def _exhausted(self) -> bool:
        return self._steps_left <= 0

    def _variance_per_edge(self) -> float:
        return self.problem.variance(self.R) / self.problem.edges.count

    def _with_extra_coordinates(self, R: Array) -> Array:
        """The map along its principal axes: those in use, and a few that are next to nothing."""
        R = self._along_principal_axes(R)
        extra = self.rng.standard_normal((len(R), self.method.extra_coordinates))
        extra *= self.method.extra_scale * self._rms_length / self.problem.map(extra).std(axis=0)
        return self.problem.centered(np.hstack([R[:, self._in_use(R)], extra]))

    def _along_principal_axes(self, R: Array) -> Array:
        """The map along its principal axes."""
        return R @ np.linalg.eigh(self.problem.gram(R))[1][:, ::-1]

    def _in_use(self, R: Array) -> NDArray[np.bool_]:
        """Which coordinates of a map along its principal axes are more than next to nothing."""
        return np.asarray(
            np.abs(self.problem.map(R)).max(axis=0) > self.method.min_extent * self._rms_length
        )

    @cached_property
    def _rms_length(self) -> float:
        return float(np.sqrt(self.problem.edges.squares.mean()))

    @property
    def violation(self) -> float:
        """Largest change of a squared length beyond what is granted."""
        return self.rounds[-1].violation if self.rounds else np.inf

    @property
    def _current(self) -> Candidate:
        return Candidate(self.R, self.multipliers, self.variance_per_edge, self.violation)

    @property
    def best(self) -> Candidate:
        """What the search has to offer."""
        return self.feasible or self._current

    @property
    def bound(self) -> float:
        """What the variance, less what slack costs, cannot exceed."""
        return np.inf if self.bound_weights is None else self._bound(self.bound_weights)

    def _bound(self, weights: Array) -> float:
        """The same by given weights of edges, at the share that the map has."""
        unit = self.best.variance_per_edge
        return unit * dual_value(self.problem, weights / unit)

    @property
    def gap(self) -> float:
        """Fraction of the variance by which it, less what slack costs, might be larger."""
        count, best = self.problem.edges.count, self.best
        price = self.problem.slack_cost(self.problem.changes(best.R))
        return self.bound / (best.variance_per_edge * count) - (1 - price / count)

    def status(self) -> tuple[bool, str]:
        """Whether all is well, and what there is to say."""
        tol, gap_tol, lengths = self.method.tol, self.method.gap_tol, self.problem.feasible_status
        if self.infeasible:
            return (
                False,
                f"multipliers prove that no {self.problem.map_description} keeps these lengths",
            )
        prefix = (
            f"max_iter={self.method.max_iter} steps were taken, and " if self._exhausted else ""
        )
        if self.best.violation > tol:
            return False, (
                f"{prefix}some squared length still changes by {self.best.violation:.1e} of it "
                "beyond what is granted"
            )
        if self.gap == np.inf:
            return False, f"{prefix}{lengths}, but nothing is proved about the variance"
        if self.gap > gap_tol:
            return False, (
                f"{prefix}{lengths}, but the variance is proved only to be within "
                f"{self.gap:.1%} of the largest possible, not gap_tol={gap_tol:.1%}"
            )
        gap = max(self.gap, 0.0)  # lengths that are off by tol may let it be larger
        return True, f"{lengths}, and the variance is within {gap:.2%} of the largest"

    def result(self, interrupted: bool = False) -> UnfoldingResult:
        converged, status = (False, "interrupted") if interrupted else self.status()
        R, multipliers, *_ = self.best
        return UnfoldingResult(
            R,
            self.problem.map(R),
            self.problem.variance(R),
            multipliers,
            self.bound,
            self.gap,
            converged,
            status,
            self.rounds,
            interrupted,
        )
