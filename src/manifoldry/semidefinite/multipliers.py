"""The method of multipliers for maximum variance unfolding.

Each round minimizes an augmented Lagrangian and then updates the Lagrange multipliers of the edges.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.iterative.monitor import Monitor
from manifoldry.optimize.methods import LBFGS
from manifoldry.optimize.optimizer import Optimizer, StepCallback
from manifoldry.optimize.stopping import Stopping
from manifoldry.semidefinite.rank_growth import descent_coordinates
from manifoldry.semidefinite.unfolding_problem import UnfoldingProblem
from manifoldry.semidefinite.unfolding_result import (
    Candidate,
    Round,
    RoundCallback,
    UnfoldingResult,
)
from manifoldry.semidefinite.variance_bound import VarianceBound, dual_value
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import above, check_count, check_instance, check_positive
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class MethodOfMultipliers:
    """Maximize the variance of a low-rank map by an augmented Lagrangian (Burer and Monteiro).

    Each round minimizes the augmented Lagrangian over the map and then updates the multipliers. The
    penalty grows until all lengths are kept. After that, each cycle adds coordinates in which the
    multipliers show that the map can be improved, runs some rounds at a low penalty, in which the
    multipliers converge, computes a bound on the variance from them, and raises the penalty again
    until the lengths are kept. Coordinates that are not used are dropped after every round.

    Parameters
    ----------
    tol : float, default=5e-4
        Largest relative error of an edge length, beyond what the constraint allows.
    rough_tol : float, default=5e-3
        The same for the rounds before the multipliers have converged.
    gap_tol : float, default=0.01
        Largest relative gap between the variance and its bound.
    max_iter : int, default=20000
        Maximum number of L-BFGS steps, over all rounds.
    penalty, max_penalty : float, default=100.0, 1e4
        Penalty of the first round, and the largest penalty. A relative change c of a squared length
        adds penalty·c to the multiplier of its edge.
    penalty_growth : float, default=3.0
        Factor by which the penalty grows after a round that did not halve the violation.
    low_penalty : float, default=100.0
        Penalty of the rounds in which the multipliers converge.
    low_penalty_rounds : int, default=4
        Number of such rounds in the first cycle; it doubles from the third cycle on.
    cycles : int, default=5
        Maximum number of cycles; they end once the gap is at most `gap_tol`.
    extra_coordinates : int, default=3
        Number of random coordinates that are added to those in use before every round.
    descent_coordinates : int, default=20
        Maximum number of coordinates that are added at the beginning of a cycle instead, along
        which the Lagrangian decreases.
    min_extent, extra_scale : float, default=0.01, 1e-3
        A coordinate is in use if its largest absolute value exceeds `min_extent`; added coordinates
        are random with standard deviation `extra_scale`. Both in units of the root mean squared
        edge length.
    stopping : Stopping, optional
        Stopping rule of a round; its `max_iter` is replaced by the problem's `steps_per_round`.
    init : str, array of shape (n_samples, n_components) or estimator, default="isomap"
        Start of the search: ``"isomap"`` with landmarks; ``"laplacian"``, the same problem solved
        in the span of the smoothest eigenvectors of a graph Laplacian; ``"spectral"``, ``"pca"``,
        ``"random"``, an array, or an estimator, fitted or not. It affects how long the search
        takes, not its result.

    See Also
    --------
    manifoldry.MaximumVarianceUnfolding : takes it as ``optimizer``.
    EdgeConstraint : which lengths are kept.

    Examples
    --------
    >>> from manifoldry import MVU
    >>> from manifoldry.semidefinite import MethodOfMultipliers
    >>> model = MVU(optimizer=MethodOfMultipliers(gap_tol=1e-3))
    """

    tol: float = 5e-4
    rough_tol: float = 5e-3
    gap_tol: float = 0.01
    max_iter: int = 20_000
    penalty: float = 100.0
    max_penalty: float = 1e4
    penalty_growth: float = 3.0
    low_penalty: float = 100.0
    low_penalty_rounds: int = 4
    cycles: int = 5
    extra_coordinates: int = 3
    descent_coordinates: int = 20
    min_extent: float = 0.01
    extra_scale: float = 1e-3
    stopping: Stopping = field(default=Stopping(tol=1e-6, value_tol=1e-12, gradient_tol=1e-7))
    init: Any = field(default="isomap", kw_only=True)

    def __post_init__(self) -> None:
        positive = (
            "tol",
            "rough_tol",
            "gap_tol",
            "penalty",
            "max_penalty",
            "penalty_growth",
            "low_penalty",
        )
        for name in positive:
            check_positive(name, getattr(self, name))
        for name in ("max_iter", "low_penalty_rounds", "cycles"):
            check_count(name, getattr(self, name))
        check_instance("stopping", self.stopping, Stopping)

    @property
    def squared_tol(self) -> float:
        """Largest relative error of a squared length, in which the problem is stated."""
        return 2 * self.tol

    def solve(
        self,
        problem: UnfoldingProblem,
        R: Array,
        rng: np.random.Generator,
        callback: StepCallback | None = None,
        on_round: RoundCallback | None = None,
        before: UnfoldingResult | None = None,
    ) -> UnfoldingResult:
        """Maximize the variance, starting from the variables `R` and from multipliers of one.

        Parameters
        ----------
        problem : UnfoldingProblem
            The variance and the lengths to keep.
        R : array of shape (n, n_coordinates)
            The start.
        rng : numpy.random.Generator
            Generator of the coordinates that are added.
        callback : callable, default=None
            Called after every step.
        on_round : callable, default=None
            Called before every round with the problem, the previous round and the penalty of the
            next one.
        before : UnfoldingResult, default=None
            An earlier result: the search continues with its multipliers, and its steps count toward
            `max_iter`.

        Returns
        -------
        UnfoldingResult
            The map, its variance and the bound on it.
        """
        R = _rescaled(problem, R, rng) if before is None else R
        search = _Search(self, problem, R, rng, callback, on_round)
        if before is not None:
            search.multipliers, search.rounds = before.multipliers, list(before.rounds)
        try:
            with one_blas_thread():  # more threads slow down products with so few columns
                search.run()
        except KeyboardInterrupt:
            return search.result(interrupted=True)
        return search.result()


def _rescaled(problem: UnfoldingProblem, R: Array, rng: np.random.Generator) -> Array:
    """`R` scaled to fit the edge lengths; a random map if all its edges have length zero.

    Multipliers are in units of the variance per edge, so that the size of the first map matters.
    """
    R = problem.centered(R)
    extent = float(np.abs(R).max())
    for start in (R / (extent or 1.0), problem.centered(rng.standard_normal(R.shape))):
        steps = problem.edge_vectors(start)
        ratios = np.einsum("ed,ed->e", steps, steps) / problem.edges.scales
        if ratios.max(initial=0.0) > 1e-100:  # shorter edges are rounding errors of positions
            break
    return start * float(np.sqrt(ratios.sum() / (ratios**2).sum()))


class _Search:
    """State of one run of the method of multipliers."""

    def __init__(
        self,
        method: MethodOfMultipliers,
        problem: UnfoldingProblem,
        R: Array,
        rng: np.random.Generator,
        callback: StepCallback | None,
        on_round: RoundCallback | None,
    ) -> None:
        self.method, self.problem, self.rng = method, problem, rng
        self.callback, self.on_round = callback, on_round
        self.R = self._with_extra_coordinates(R)
        self.multipliers: Array = np.ones(problem.edges.count)
        self.variance_per_edge = problem.expected_variance / problem.edges.count
        self.bound_weights: Array | None = None  # edge weights from which the bound follows
        self.candidate: Candidate | None = None  # the last map that keeps the lengths
        self.infeasible = False
        self.rounds: list[Round] = []

    def run(self) -> None:
        """Run rounds until the lengths are kept and the gap is at most `gap_tol`."""
        penalty = self._enforce_lengths(
            self.method.penalty, max(self.method.rough_tol, self.method.tol)
        )
        for cycle in range(self.method.cycles):
            for number in range(self.method.low_penalty_rounds << max(0, cycle - 1)):
                if self._exhausted or self.infeasible:
                    return
                self._round(self.method.low_penalty, grow=number == 0)
            self._update_bound()
            penalty = self._enforce_lengths(penalty, self.method.tol)
            if self.gap <= self.method.gap_tol:
                return

    def _enforce_lengths(self, penalty: float, tol: float) -> float:
        """Run rounds with a growing penalty until lengths are within `tol` or proved infeasible.

        Stores the last map if its lengths are kept; returns the last penalty.
        """
        before = np.inf
        while not (self._exhausted or self.infeasible):
            self._round(penalty)
            if self.violation <= 2 * tol:
                break
            if self.violation > before / 2:
                self.infeasible = self._is_infeasible()
                penalty = min(self.method.penalty_growth * penalty, self.method.max_penalty)
            before = self.violation
        if self.violation <= self.method.squared_tol:
            self.candidate = self._current
        return penalty

    def _update_bound(self) -> None:
        """Compute a bound on the variance from the multipliers; keep it if it is lower."""
        found = VarianceBound.of(self.problem, self.multipliers, self.variance_per_edge, self.rng)
        weights = self.variance_per_edge * found.multipliers
        if self._bound(weights) < self.bound:
            self.bound_weights = weights

    def _is_infeasible(self) -> bool:
        """Whether the multipliers prove that no map keeps the lengths.

        The proof is a negative bound on the variance, at which multipliers arrive if they diverge.
        With slack every map is feasible.
        """
        if self.problem.slack > 0 or not self._proves_infeasible(self.multipliers):
            return False
        found = VarianceBound.of(self.problem, self.multipliers, self.variance_per_edge, self.rng)
        return bool(np.isfinite(found.value)) and self._proves_infeasible(found.multipliers)

    def _proves_infeasible(self, multipliers: Array) -> bool:
        """Whether the dual value is negative, even if lengths may be off by `tol`."""
        allowance = self.method.squared_tol * float(np.abs(multipliers).sum())
        return dual_value(self.problem, multipliers) < -allowance

    def _round(self, penalty: float, *, grow: bool = False) -> None:
        """Minimize the augmented Lagrangian and update the multipliers.

        With `grow`, the new coordinates are those in which the Lagrangian decreases, if any.
        """
        if self.on_round is not None:
            self.on_round(self.problem, self.rounds[-1] if self.rounds else None, penalty)
        objective = self.problem.lagrangian(self.multipliers, penalty, self.variance_per_edge)
        most = min(self._steps_left, self.problem.steps_per_round)
        stopping = replace(self.method.stopping, max_iter=most)
        search: Optimizer = LBFGS(self.problem.filter, stopping=stopping)
        if isinstance(self.callback, Monitor):
            search = self.callback.resumable(search)
        start = self._with_descent_coordinates(penalty) if grow else None
        start = self._with_extra_coordinates(self.R) if start is None else start
        solution = search.minimize(objective, start, self.callback)
        self.R = self._along_principal_axes(self.problem.centered(solution.embedding))
        changes = self.problem.changes(self.R)
        multipliers = objective.updated_multipliers(changes)
        violation = float(self.problem.excess(changes, multipliers).max())
        former, self.variance_per_edge = self.variance_per_edge, self._variance_per_edge()
        # Multipliers are in units of the variance per edge, which has changed.
        self.multipliers = multipliers * (former / self.variance_per_edge)
        variance = self.variance_per_edge * self.problem.edges.count
        rank = self._in_use(self.R).sum()
        # A round counts as one step at least, so that the search ends.
        steps = self.method.max_iter - self._steps_left + max(solution.n_iter, 1)
        self.rounds.append(Round(steps, penalty, variance, violation, int(rank)))
        if solution.interrupted:
            raise KeyboardInterrupt

    @property
    def _steps_left(self) -> int:
        """Steps left of `max_iter`."""
        return self.method.max_iter - (self.rounds[-1].steps if self.rounds else 0)

    @property
    def _exhausted(self) -> bool:
        return self._steps_left <= 0

    def _variance_per_edge(self) -> float:
        return self.problem.variance(self.R) / self.problem.edges.count

    def _with_descent_coordinates(self, penalty: float) -> Array | None:
        """The coordinates in use, and those that decrease the Lagrangian; None if none do."""
        count = self.method.descent_coordinates
        if count == 0:
            return None
        new = descent_coordinates(
            self.problem, self.multipliers, self.variance_per_edge, penalty, count, self.rng
        )
        used = self.R[:, self._in_use(self.R)]
        return self.problem.centered(np.hstack([used, new])) if new.shape[1] else None

    def _with_extra_coordinates(self, R: Array) -> Array:
        """The principal coordinates in use, and a few additional small random ones."""
        R = self._along_principal_axes(R)
        extra = self.rng.standard_normal((len(R), self.method.extra_coordinates))
        extra *= self.method.extra_scale * self._rms_length / self.problem.map(extra).std(axis=0)
        return self.problem.centered(np.hstack([R[:, self._in_use(R)], extra]))

    def _along_principal_axes(self, R: Array) -> Array:
        """The variables rotated to the principal axes of their map, largest variance first."""
        return R @ np.linalg.eigh(self.problem.gram(R))[1][:, ::-1]

    def _in_use(self, R: Array) -> NDArray[np.bool_]:
        """Mask of the coordinates whose largest absolute value exceeds `min_extent`."""
        return np.asarray(
            np.abs(self.problem.map(R)).max(axis=0) > self.method.min_extent * self._rms_length
        )

    @cached_property
    def _rms_length(self) -> float:
        return float(np.sqrt(self.problem.edges.squares.mean()))

    @property
    def violation(self) -> float:
        """Largest relative change of a squared length beyond what the constraints allow."""
        return self.rounds[-1].violation if self.rounds else np.inf

    @property
    def _current(self) -> Candidate:
        return Candidate(self.R, self.multipliers, self.variance_per_edge, self.violation)

    @property
    def best(self) -> Candidate:
        """The map to return: the last one that keeps the lengths, or else the current one."""
        return self.candidate or self._current

    @property
    def bound(self) -> float:
        """Upper bound on the variance minus the cost of slack; infinite if none is known."""
        return np.inf if self.bound_weights is None else self._bound(self.bound_weights)

    def _bound(self, weights: Array) -> float:
        """The bound that edge weights give, in units of the variance per edge of the best map."""
        unit = self.best.variance_per_edge
        return unit * dual_value(self.problem, weights / unit)

    @property
    def gap(self) -> float:
        """(bound − (variance − cost of slack)) / variance."""
        count, best = self.problem.edges.count, self.best
        cost = self.problem.slack_cost(self.problem.changes(best.R))
        return self.bound / (best.variance_per_edge * count) - (1 - cost / count)

    def status(self) -> tuple[bool, str]:
        """Whether the search converged, and its status in words."""
        gap_tol, lengths = self.method.gap_tol, self.problem.feasible_status
        if self.infeasible:
            kind = self.problem.map_description
            return False, f"the Lagrange multipliers prove that no {kind} keeps these lengths"
        steps = f"max_iter={self.method.max_iter} steps were taken, and "
        prefix = steps if self._exhausted else ""
        if self.best.violation > self.method.squared_tol:
            return False, (
                f"{prefix}a squared edge length is off by a fraction of {self.best.violation:.1e} "
                "beyond the tolerance"
            )
        if self.gap == np.inf:
            return False, f"{prefix}{lengths}, but no bound on the variance was found"
        if self.gap > gap_tol:
            return False, (
                f"{prefix}{lengths}, but the variance is proved only to be within a fraction of "
                f"{above(self.gap, gap_tol)} of the largest possible, more than gap_tol={gap_tol:g}"
            )
        gap = max(self.gap, 0.0)  # negative where lengths are off by up to tol
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
