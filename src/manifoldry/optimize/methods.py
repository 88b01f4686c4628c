"""How filtered gradients become steps: plain descent, conjugate gradients, L-BFGS, momentum."""

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from manifoldry.optimize.descent import (
    Descent,
    LineSearchDescent,
    Move,
    NoStep,
    SearchDirection,
    Stepper,
)
from manifoldry.optimize.filter import FilterOperator
from manifoldry.optimize.line_search import LineSearch, Ray, StrongWolfe, Trial
from manifoldry.optimize.optimizer import Evaluator, Point
from manifoldry.util.arrays import beside, cast, inner, namespace, norm
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
    """Go along −F·G, the gradient G times a filter F.

    Plain (without a filter) it is the slowest of all; with a filter that knows the curvature of
    attraction, such as the spectral direction, it is simple, memoryless and fast. With the
    Jacobi filter it is the fixed-point iteration of the elastic embedding.

    Parameters
    ----------
    filter : Filter, default=Identity()
        The operator F.
    line_search : LineSearch, default=Armijo()
        How far to go. The first trial is Barzilai and Borwein's, the length at which the last
        step would have met a flat slope; at most 1 for filters whose natural length is one.
    stopping : Stopping, default=Stopping()
        When to stop.
    initial_step, max_growth
        First trials; see :class:`~manifoldry.optimize.descent.LineSearchDescent`.

    Examples
    --------
    >>> from manifoldry.optimize.stopping import Stopping
    >>> optimizer = GradientDescent(stopping=Stopping(max_iter=200))
    >>> optimizer.stopping.max_iter
    200
    """

    def _search_direction(self, filter: FilterOperator) -> SearchDirection:
        return SearchDirection(self, filter)


@dataclass(frozen=True)
class ConjugateGradient(LineSearchDescent):
    """Polak and Ribière's conjugate gradients, started afresh where β would be negative.

    Remembers one direction only, so it suits maps that are large for the memory of L-BFGS, which
    usually needs fewer evaluations. It also starts afresh when the filter changes.

    Parameters
    ----------
    filter : Filter, default=Identity()
        The preconditioner.
    line_search : LineSearch, default=StrongWolfe(c2=0.1)
        How far to go.
    stopping : Stopping, default=Stopping()
        When to stop.
    initial_step, max_growth
        First trials; see :class:`~manifoldry.optimize.descent.LineSearchDescent`.

    Examples
    --------
    >>> ConjugateGradient().stopping.max_iter
    1000
    """

    line_search: LineSearch = field(default=StrongWolfe(c2=0.1))

    def _search_direction(self, filter: FilterOperator) -> SearchDirection:
        return _PolakRibiereDirection(self, filter)


class _PolakRibiereDirection(SearchDirection):
    P: Array | None = None  # the last direction, unless a fresh start is due
    steepest = True  # whether that was −F·G
    G: Array  # the gradient it was made from
    descent: float  # ⟨G, F·G⟩ there

    def compute(self, point: Point) -> Array:
        Z = self.filtered(point.G, point)
        beta = 0.0 if self.P is None else inner(point.G - self.G, Z) / self.descent
        self.steepest = beta <= 0
        P = -Z if self.P is None or self.steepest else beta * self.P - Z
        self.descent, self.G, self.P = inner(point.G, Z), point.G, P
        return P

    def initial_length(self, ray: Ray) -> float:
        """The length that promises the decrease that the last one did."""
        if self.last_trial is None:
            return super().initial_length(ray)
        return self.last_trial.length * self.last_slope / ray.slope

    def reset(self) -> bool:
        self.P = self.last_trial = None
        return not self.steepest

    def filter_changed(self) -> None:
        super().filter_changed()
        self.P = None


@dataclass(frozen=True)
class LBFGS(LineSearchDescent):
    """L-BFGS, whose first guess of the inverse Hessian is a filter.

    The method of choice where nothing is known of the objective. The filter F counts as γ·F, γ
    fitted to the last step, and may change at every step without anything being forgotten.

    Parameters
    ----------
    filter : Filter, default=Identity()
        First guess of the inverse Hessian.
    line_search : LineSearch, default=StrongWolfe()
        How far to go.
    memory : int, default=10
        Number of past steps that are remembered, each as large as two maps.
    stopping : Stopping, default=Stopping()
        When to stop.
    min_cosine : float, default=1e-10
        Between a step and its change of gradient; a step of less teaches nothing and is forgotten.
    initial_step, max_growth
        First trials; see :class:`~manifoldry.optimize.descent.LineSearchDescent`.

    Examples
    --------
    >>> LBFGS(memory=20).memory
    20
    """

    line_search: LineSearch = field(default=StrongWolfe())
    memory: int = 10
    min_cosine: float = field(default=1e-10, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("memory", self.memory)
        check_nonnegative("min_cosine", self.min_cosine)

    def _search_direction(self, filter: FilterOperator) -> SearchDirection:
        return _LBFGSDirection(self, filter)


class _CurvaturePair(NamedTuple):
    """A step and the change of the gradient that it brought."""

    s: Array
    y: Array
    curvature: float


class _LBFGSDirection(SearchDirection):
    def __init__(self, optimizer: LBFGS, filter: FilterOperator) -> None:
        super().__init__(optimizer, filter)
        self.pairs: deque[_CurvaturePair] = deque(maxlen=optimizer.memory)
        self.min_cosine = optimizer.min_cosine

    def compute(self, point: Point) -> Array:
        Q, alphas = point.G, []
        for pair in reversed(self.pairs):
            alphas.append(inner(pair.s, Q) / pair.curvature)
            Q = Q - alphas[-1] * pair.y
        Z = self._first_guess(Q, point)
        for pair, alpha in zip(self.pairs, reversed(alphas), strict=True):
            Z = Z + (alpha - inner(pair.y, Z) / pair.curvature) * pair.s
        return -Z

    def _first_guess(self, Q: Array, point: Point) -> Array:
        """γ·F·Q, with the γ that maps the last change of gradient to a step as long as it was."""
        if not self.pairs:
            return self.filtered(Q, point)
        last = self.pairs[-1]
        Z, step = self._filter_both(Q, last.y, point)
        length = inner(last.y, step)
        return (last.curvature / length if length > 0 else 1.0) * Z

    def _filter_both(self, A: Array, B: Array, point: Point) -> tuple[Array, Array]:
        """F·A and F·B, at once where that is cheaper."""
        if not self.filter.columnwise:
            return self.filtered(A, point), self.filtered(B, point)
        both = self.filtered(beside(A, B), point)
        return both[:, : A.shape[1]], both[:, A.shape[1] :]

    def initial_length(self, ray: Ray) -> float:
        return 1.0 if self.pairs else super().initial_length(ray)

    def update(self, ray: Ray, trial: Trial) -> None:
        super().update(ray, trial)
        s, y = trial.point.Y - ray.start.Y, trial.point.G - ray.start.G
        curvature = inner(s, y)
        if curvature > self.min_cosine * norm(s) * norm(y):
            self.pairs.append(_CurvaturePair(s, y, curvature))

    def reset(self) -> bool:
        remembered = bool(self.pairs)
        self.pairs.clear()
        self.last_trial = None
        return remembered


@dataclass(frozen=True)
class Momentum(Descent):
    """Steps without a line search: V ← m·V − η·gains∘F·G, Y ← Y + V.

    A coordinate's gain grows while it keeps its direction and shrinks when it turns back. One
    evaluation per step, no promise that the value falls: the last map is returned, which need
    not be the best. Every search starts at rest; t-SNE's early exaggeration is a search of its
    own before the proper one.

    Parameters
    ----------
    filter : Filter, default=Identity()
        What the gradient is multiplied with.
    learning_rate : float or "auto", default="auto"
        The factor η; "auto" is max(n/12, 50), for objectives whose weights sum to one.
    momentum : float, default=0.8
        Fraction of the last step that is added to the next, below one. Early exaggeration takes
        0.5.
    stopping : Stopping, default=Stopping()
        When to stop.
    gain_increment, gain_decay, min_gain : float, default=0.2, 0.8, 0.01
        Van der Maaten and Hinton's rule for the gains: what is added to one that grows, the factor
        of one that shrinks, and the least.

    Examples
    --------
    >>> Momentum(momentum=0.5).momentum
    0.5
    """

    # Its value often lies above that of the start on the way to a better map.
    returns_best: ClassVar[bool] = False

    learning_rate: float | Literal["auto"] = "auto"
    momentum: float = 0.8
    gain_increment: float = field(default=0.2, kw_only=True)
    gain_decay: float = field(default=0.8, kw_only=True)
    min_gain: float = field(default=0.01, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.learning_rate, str):
            check_option("learning_rate", self.learning_rate, ("auto",))
        else:
            check_positive("learning_rate", self.learning_rate)
        momentum = check_nonnegative("momentum", self.momentum)
        check_below("momentum", momentum, 1, "else steps never die out")
        for name in ("gain_increment", "gain_decay", "min_gain"):
            check_positive(name, getattr(self, name))

    def _stepper(self, evaluator: Evaluator, filter: FilterOperator) -> Stepper:
        rate = self.learning_rate
        if rate == "auto":
            rate = max(evaluator.objective.n / 12, 50.0)
        return _MomentumStepper(self, evaluator, filter, float(rate))


class _MomentumStepper(Stepper):
    """Steps with a velocity and gains."""

    def __init__(
        self, rule: Momentum, evaluator: Evaluator, filter: FilterOperator, rate: float
    ) -> None:
        self.rule, self.evaluator, self.filter, self.rate = rule, evaluator, filter, rate
        self.state: tuple[Array, Array] | None = None  # velocity and gains

    def step(self, point: Point) -> Move | NoStep:
        Z = cast(self.filter.apply(point.G, point.Y), point.Y.dtype)
        xp, rule = namespace(Z), self.rule
        V, gains = self.state or (xp.zeros_like(Z), xp.ones_like(Z))
        gains = xp.where(V * Z < 0, gains + rule.gain_increment, gains * rule.gain_decay)
        gains = xp.maximum(gains, rule.min_gain)
        V = rule.momentum * V - self.rate * gains * Z
        self.state = V, gains
        new = self.evaluator.at(point.Y + V)
        if not new.is_finite:
            return NoStep(
                message=f"the value is no longer finite; lower learning_rate={self.rate:g}"
            )
        return Move(new, self.rate)

    def filter_changed(self) -> None:
        """Glide on: a velocity is one of the map, whatever gave it."""
