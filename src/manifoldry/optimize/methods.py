"""Optimizers: gradient descent, conjugate gradients, L-BFGS and momentum, each with a filter."""

from collections import deque
from dataclasses import dataclass, field
from math import sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from manifoldry.device.primitives import MomentumRule
from manifoldry.device.vectors import combination, inner, inner_products, momentum_step
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.optimize.descent import Descent, Move, NoStep, Stepper
from manifoldry.optimize.filter import FilterOperator
from manifoldry.optimize.line_search import LineSearch, Ray, StrongWolfe, Trial
from manifoldry.optimize.line_search_descent import LineSearchDescent, SearchDirection
from manifoldry.optimize.optimizer import Evaluator, Point, SearchState
from manifoldry.util.arrays import cast, hstack_columns, namespace
from manifoldry.util.checks import (
    check_below,
    check_count,
    check_nonnegative,
    check_option,
    check_positive,
)
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class GradientDescent(LineSearchDescent):
    """Gradient descent along −F·G, with the gradient G and a filter F.

    Without a filter it is the slowest of the optimizers. With a filter that contains the curvature
    of the attraction, such as the spectral direction, it is fast and needs no memory. With the
    Jacobi filter it is the fixed-point iteration of the elastic embedding.

    Parameters
    ----------
    filter : Filter, default=Identity()
        The operator F.
    line_search : LineSearch, default=Armijo()
        How to choose the step length. The initial trial is Barzilai and Borwein's step, the
        length at which the slope of the last step would have vanished; at most 1 for Newton-like
        filters.
    stopping : Stopping, default=Stopping()
        Stopping criteria.
    initial_step, max_growth : float, default=0.1, 10.0
        Initial trial lengths; see :class:`LBFGS`.

    See Also
    --------
    SpectralDirection, Jacobi : filters that make it fast.
    LBFGS : the method of choice without a filter.
    Momentum : without a line search.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import GradientDescent, SpectralDirection
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)  # minimum at distance 1
    >>> optimizer = GradientDescent(SpectralDirection())
    >>> solution = optimizer.minimize(objective, np.array([[0.0], [0.1]]))
    >>> solution.converged, round(float(np.ptp(solution.embedding)), 3)
    (True, 1.0)
    """

    def _search_direction(self, filter: FilterOperator) -> SearchDirection:
        return SearchDirection(self, filter)


@dataclass(frozen=True)
class ConjugateGradient(LineSearchDescent):
    """Polak and Ribière's nonlinear conjugate gradients, restarted if β would be negative.

    It stores one direction only, which suits embeddings that are too large for the memory of
    L-BFGS; L-BFGS usually needs fewer evaluations. It is also restarted when the filter changes.

    Parameters
    ----------
    filter : Filter, default=Identity()
        The preconditioner.
    line_search : LineSearch, default=StrongWolfe(c2=0.1)
        How to choose the step length.
    stopping : Stopping, default=Stopping()
        Stopping criteria.
    initial_step, max_growth : float, default=0.1, 10.0
        Initial trial lengths; see :class:`LBFGS`.

    See Also
    --------
    LBFGS : usually needs fewer evaluations.
    resolve_optimizer : makes optimizers from their names.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import ConjugateGradient
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)  # minimum at distance 1
    >>> solution = ConjugateGradient().minimize(objective, np.array([[0.0], [0.1]]))
    >>> solution.converged, round(float(np.ptp(solution.embedding)), 4)
    (True, 1.0)
    """

    line_search: LineSearch = field(default=StrongWolfe(c2=0.1))

    def _search_direction(self, filter: FilterOperator) -> SearchDirection:
        _warn_if_nonlinear(self)
        return _PolakRibiereDirection(self, filter)


def _warn_if_nonlinear(optimizer: LineSearchDescent) -> None:
    if not optimizer.filter.linear:
        name, filter = type(optimizer).__name__, type(optimizer.filter).__name__
        warn(
            f"{filter} depends on the gradient, but {name} assumes a fixed linear operator, so its "
            "directions may be poor; pass the same filter to GradientDescent",
            ConvergenceWarning,
        )


class _PolakRibiereDirection(SearchDirection):
    P: Array | None = None  # the last direction; None to restart
    steepest = True  # whether the last direction was −F·G
    G: Array  # the gradient at the last point
    descent: float  # ⟨G, F·G⟩ at the last point

    def compute(self, point: Point) -> Array:
        Z = self.filtered(point.G, point)
        beta = 0.0 if self.P is None else inner(point.G - self.G, Z) / self.descent
        self.steepest = beta <= 0
        P = -Z if self.P is None or self.steepest else beta * self.P - Z
        self.descent, self.G, self.P = inner(point.G, Z), point.G, P
        return P

    def initial_length(self, ray: Ray) -> float:
        """The length at which the slope predicts the same decrease as for the last step."""
        if self.last is None:
            return super().initial_length(ray)
        return self.last.length * self.last.first_slope / ray.slope

    def reset(self) -> bool:
        self.P = self.last = None
        return not self.steepest

    def filter_changed(self) -> None:
        super().filter_changed()
        self.P = None

    def saved_state(self) -> SearchState:
        state = super().saved_state() | {"steepest": self.steepest}
        if self.P is not None:
            state |= {"P": self.P, "last_G": self.G, "descent": self.descent}
        return state

    def restore(self, state: SearchState) -> None:
        super().restore(state)
        self.steepest = bool(state["steepest"])
        if "P" in state:
            self.P, self.G, self.descent = state["P"], state["last_G"], float(state["descent"])


@dataclass(frozen=True)
class LBFGS(LineSearchDescent):
    """L-BFGS with a filter as initial approximation of the inverse Hessian.

    The method of choice if nothing is known about the objective. The filter F is scaled to γ·F,
    with γ fitted to the last step; it may change at every step without discarding past steps.

    Parameters
    ----------
    filter : Filter, default=Identity()
        Initial approximation of the inverse Hessian.
    line_search : LineSearch, default=StrongWolfe()
        How to choose the step length.
    memory : int, default=10
        Number of past steps that are stored, each as two arrays of the embedding's shape.
    stopping : Stopping, default=Stopping()
        Stopping criteria.
    initial_step : float, default=0.1
        Size of the first trial step of a search relative to that of the embedding; not used with
        Newton-like filters.
    max_growth : float, default=10.0
        Largest ratio of the initial trial length of a step to the length of the step before.
    min_cosine : float, default=1e-10
        Smallest cosine of the angle between a step and its change of gradient; steps below it
        contain no curvature information and are not stored.

    See Also
    --------
    ConjugateGradient : needs less memory.
    SpectralDirection : a filter that makes it faster.
    resolve_optimizer : makes optimizers from their names.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import LBFGS
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)  # minimum at distance 1
    >>> solution = LBFGS(memory=20).minimize(objective, np.array([[0.0], [0.1]]))
    >>> solution.converged, round(float(np.ptp(solution.embedding)), 4)
    (True, 1.0)
    """

    line_search: LineSearch = field(default=StrongWolfe())
    memory: int = 10
    min_cosine: float = field(default=1e-10, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("memory", self.memory)
        check_nonnegative("min_cosine", self.min_cosine)

    def _search_direction(self, filter: FilterOperator) -> SearchDirection:
        _warn_if_nonlinear(self)
        return _LBFGSDirection(self, filter)


class _CurvaturePair(NamedTuple):
    """A step s, the change y of the gradient, and ⟨s, y⟩."""

    s: Array
    y: Array
    curvature: float


class _LBFGSDirection(SearchDirection):
    """The two loops over past steps in closed form, so that they take few passes over the data.

    Let S and Y have the steps and the changes of the gradient as columns, R the entries of SᵀY on
    and above its diagonal D. The first loop yields α = R⁻¹·SᵀG and Q = G − Yα. The second one adds
    S·δ to Z = γ·F·Q, with δ = R⁻ᵀ(Dα − YᵀZ).
    """

    def __init__(self, optimizer: LBFGS, filter: FilterOperator) -> None:
        super().__init__(optimizer, filter)
        self.pairs: deque[_CurvaturePair] = deque(maxlen=optimizer.memory)
        self.min_cosine = optimizer.min_cosine
        self.R = np.empty((0, 0))

    def compute(self, point: Point) -> Array:
        if not self.pairs:
            return super().compute(point)
        steps, changes = [pair.s for pair in self.pairs], [pair.y for pair in self.pairs]
        slopes = inner_products(*((s, point.G) for s in steps))
        alpha = solve_triangular(self.R, slopes, check_finite=False)
        Q = combination([1.0, *-alpha], [point.G, *changes])
        Z, last = self._filter_both(Q, changes[-1], point)
        length, *products = inner_products((changes[-1], last), *((y, Z) for y in changes))
        # γ = ⟨s, y⟩/⟨y, F·y⟩ of the last step s and its change y of the gradient
        gamma = self.pairs[-1].curvature / length if length > 0 else 1.0
        rest = np.diagonal(self.R) * alpha - gamma * np.array(products)
        delta = solve_triangular(self.R, rest, trans=1, check_finite=False)
        return combination([-gamma, *-delta], [Z, *steps])

    def _filter_both(self, A: Array, B: Array, point: Point) -> tuple[Array, Array]:
        """F·A and F·B, in one call if that is cheaper."""
        if not self.filter.columnwise:
            return self.filtered(A, point), self.filtered(B, point)
        both = self.filtered(hstack_columns(A, B), point)
        return both[:, : A.shape[1]], both[:, A.shape[1] :]

    def initial_length(self, ray: Ray) -> float:
        return 1.0 if self.pairs else super().initial_length(ray)

    def update(self, ray: Ray, trial: Trial) -> None:
        super().update(ray, trial)
        s, y = trial.point.Y - ray.start.Y, trial.point.G - ray.start.G
        square, curvature, change = inner_products((s, s), (s, y), (y, y))
        if curvature > self.min_cosine * sqrt(square) * sqrt(change):
            self._add(_CurvaturePair(s, y, curvature))

    def _add(self, pair: _CurvaturePair) -> None:
        if len(self.pairs) == self.pairs.maxlen:
            self.R = self.R[1:, 1:]
        self.pairs.append(pair)
        earlier = [(known.s, pair.y) for known in self.pairs][:-1]
        column = np.array([*inner_products(*earlier), pair.curvature])[:, None]
        self.R = np.hstack([np.vstack([self.R, np.zeros((1, len(self.R)))]), column])

    def reset(self) -> bool:
        remembered = bool(self.pairs)
        self.pairs.clear()
        self.R, self.last = np.empty((0, 0)), None
        return remembered

    def saved_state(self) -> SearchState:
        pairs = enumerate(self.pairs)
        named = {f"{name}{i}": value for i, pair in pairs for name, value in pair._asdict().items()}
        return super().saved_state() | named | {"n_pairs": len(self.pairs)}

    def restore(self, state: SearchState) -> None:
        super().restore(state)
        for i in range(int(state["n_pairs"])):
            curvature = float(state[f"curvature{i}"])
            self._add(_CurvaturePair(state[f"s{i}"], state[f"y{i}"], curvature))


@dataclass(frozen=True)
class Momentum(Descent):
    """Gradient descent with momentum: V ← m·V − η·gains∘F·G, Y ← Y + V.

    The gain of a coordinate grows while its steps keep their sign and shrinks when the sign
    changes. There is no line search: a step takes one evaluation and may increase the value, and
    the last embedding is returned, which need not be the best. Every search starts with V = 0;
    t-SNE runs early exaggeration as a separate search before the main one.

    Parameters
    ----------
    filter : Filter, default=Identity()
        Positive semidefinite operator that multiplies the gradient.
    learning_rate : float or "auto", default="auto"
        The factor η; "auto" is max(n/12, 50), which suits objectives whose weights sum to one.
    momentum : float, default=0.8
        The factor m, the fraction of the last step that is added to the next; less than one.
    stopping : Stopping, default=Stopping()
        Stopping criteria.
    gain_increment, gain_decay, min_gain : float, default=0.2, 0.8, 0.01
        Van der Maaten and Hinton's rule for the gains: a gain grows by adding `gain_increment`,
        shrinks by the factor `gain_decay`, and is at least `min_gain`.
    settling_steps, settling_momentum : int, float, default=0, 0.8
        Number of steps at the end of a search of ``stopping.max_iter`` steps that have another
        momentum, so that points which a large momentum has carried too far come to rest. A search
        that ends before, because it has converged, has no such steps.

    See Also
    --------
    manifoldry.TSNE : uses it by default.
    GradientDescent : with a line search.
    EarlyExaggeration : the phase before the main search of t-SNE.

    Examples
    --------
    >>> from manifoldry import TSNE
    >>> from manifoldry.optimize import Momentum, Stopping
    >>> optimizer = Momentum(learning_rate=200.0, momentum=0.5, stopping=Stopping(max_iter=500))
    >>> model = TSNE(optimizer=optimizer)
    """

    # The value often rises above that of the start before it reaches a better minimum.
    returns_best: ClassVar[bool] = False

    learning_rate: float | Literal["auto"] = "auto"
    momentum: float = 0.8
    gain_increment: float = field(default=0.2, kw_only=True)
    gain_decay: float = field(default=0.8, kw_only=True)
    min_gain: float = field(default=0.01, kw_only=True)
    settling_steps: int = field(default=0, kw_only=True)
    settling_momentum: float = field(default=0.8, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.learning_rate, str):
            check_option("learning_rate", self.learning_rate, ("auto",))
        else:
            check_positive("learning_rate", self.learning_rate)
        for name in ("momentum", "settling_momentum"):
            momentum = check_nonnegative(name, getattr(self, name))
            check_below(name, momentum, 1, "for steps to decay")
        check_count("settling_steps", self.settling_steps, minimum=0)
        for name in ("gain_increment", "gain_decay", "min_gain"):
            check_positive(name, getattr(self, name))

    @property
    def expected_steps(self) -> int:
        return self.max_steps  # it rarely converges before

    def _stepper(self, evaluator: Evaluator, filter: FilterOperator) -> Stepper:
        rate = self.learning_rate
        if rate == "auto":
            rate = max(evaluator.objective.n / 12, 50.0)
        return _MomentumStepper(self, evaluator, filter, float(rate))


class _MomentumStepper(Stepper):
    """Steps with momentum and gains."""

    def __init__(
        self, rule: Momentum, evaluator: Evaluator, filter: FilterOperator, rate: float
    ) -> None:
        self.rule, self.evaluator, self.filter, self.rate = rule, evaluator, filter, rate
        self.state: tuple[Array, Array] | None = None  # velocity and gains
        self.n_steps = 0

    def step(self, point: Point) -> Move | NoStep:
        Z = cast(self.filter.apply(point.G, point.Y), point.Y.dtype)
        xp, rule = namespace(Z), self.rule
        V, gains = self.state or (xp.zeros_like(Z), xp.ones_like(Z))
        of_gains = rule.gain_increment, rule.gain_decay, rule.min_gain
        numbers = MomentumRule(*of_gains, self._momentum, self.rate)
        Y, V, gains = momentum_step((point.Y, Z, V, gains), numbers)
        self.state, self.n_steps = (V, gains), self.n_steps + 1
        new = self.evaluator.at(Y)
        if not new.is_finite:
            return NoStep(
                message=f"the value is no longer finite; lower learning_rate={self.rate:g}"
            )
        return Move(new, self.rate)

    @property
    def _momentum(self) -> float:
        """The momentum of the next step."""
        left = self.rule.stopping.max_iter - self.n_steps
        return (
            self.rule.momentum if left > self.rule.settling_steps else self.rule.settling_momentum
        )

    def filter_changed(self) -> None:
        """Keep the velocity, which does not depend on the filter."""

    def saved_state(self) -> SearchState:
        if self.state is None:
            return {}
        return {"velocity": self.state[0], "gains": self.state[1], "n_momentum": self.n_steps}

    def restore(self, state: SearchState) -> None:
        if "velocity" in state:
            self.state = state["velocity"], state["gains"]
            self.n_steps = int(state["n_momentum"])
