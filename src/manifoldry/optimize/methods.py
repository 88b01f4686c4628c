"""How filtered gradients become steps: plain descent, conjugate gradients, L-BFGS, momentum."""

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from manifoldry.optimize.descent import (
    Descent,
    DirectionRule,
    LineSearchDescent,
    Move,
    Stepper,
    Stuck,
)
from manifoldry.optimize.filter import BoundFilter
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
    first_move, growth
        First trials; see :class:`~manifoldry.optimize.descent.LineSearchDescent`.

    Examples
    --------
    >>> from manifoldry.optimize.stopping import Stopping
    >>> optimizer = GradientDescent(stopping=Stopping(max_iter=200))
    >>> optimizer.stopping.max_iter
    200
    """

    def _rule(self, filter: BoundFilter) -> DirectionRule:
        return DirectionRule(self, filter)


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
    first_move, growth
        First trials; see :class:`~manifoldry.optimize.descent.LineSearchDescent`.

    Examples
    --------
    >>> ConjugateGradient().stopping.max_iter
    1000
    """

    line_search: LineSearch = field(default=StrongWolfe(c2=0.1))

    def _rule(self, filter: BoundFilter) -> DirectionRule:
        return _PolakRibiere(self, filter)


class _PolakRibiere(DirectionRule):
    P: Array | None = None  # the last direction, unless a fresh start is due
    steepest = True  # whether that was −F·G
    G: Array  # the gradient it was made from
    descent: float  # ⟨G, F·G⟩ there

    def direction(self, point: Point) -> Array:
        Z = self.filtered(point.G, point)
        beta = 0.0 if self.P is None else inner(point.G - self.G, Z) / self.descent
        self.steepest = beta <= 0
        P = -Z if self.P is None or self.steepest else beta * self.P - Z
        self.descent, self.G, self.P = inner(point.G, Z), point.G, P
        return P

    def first_length(self, ray: Ray) -> float:
        """The length that promises the decrease that the last one did."""
        if self.last is None:
            return super().first_length(ray)
        return self.last.length * self.last_slope / ray.slope

    def forget(self) -> bool:
        self.P = self.last = None
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
    least_cosine : float, default=1e-10
        Between a step and its change of gradient; a step of less teaches nothing and is forgotten.
    first_move, growth
        First trials; see :class:`~manifoldry.optimize.descent.LineSearchDescent`.

    Examples
    --------
    >>> LBFGS(memory=20).memory
    20
    """

    line_search: LineSearch = field(default=StrongWolfe())
    memory: int = 10
    least_cosine: float = field(default=1e-10, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("memory", self.memory)
        check_nonnegative("least_cosine", self.least_cosine)

    def _rule(self, filter: BoundFilter) -> DirectionRule:
        return _TwoLoops(self, filter)


class _Pair(NamedTuple):
    """A step and the change of the gradient that it brought."""

    s: Array
    y: Array
    curvature: float


class _TwoLoops(DirectionRule):
    def __init__(self, optimizer: LBFGS, filter: BoundFilter) -> None:
        super().__init__(optimizer, filter)
        self.pairs: deque[_Pair] = deque(maxlen=optimizer.memory)
        self.least_cosine = optimizer.least_cosine

    def direction(self, point: Point) -> Array:
        Q, fractions = point.G, []
        for pair in reversed(self.pairs):
            fractions.append(inner(pair.s, Q) / pair.curvature)
            Q = Q - fractions[-1] * pair.y
        Z = self._first_guess(Q, point)
        for pair, fraction in zip(self.pairs, reversed(fractions), strict=True):
            Z = Z + (fraction - inner(pair.y, Z) / pair.curvature) * pair.s
        return -Z

    def _first_guess(self, Q: Array, point: Point) -> Array:
        """γ·F·Q, with the γ that maps the last change of gradient to a step as long as it was."""
        if not self.pairs:
            return self.filtered(Q, point)
        last = self.pairs[-1]
        Z, step = self._filtered_both(Q, last.y, point)
        length = inner(last.y, step)
        return (last.curvature / length if length > 0 else 1.0) * Z

    def _filtered_both(self, A: Array, B: Array, point: Point) -> tuple[Array, Array]:
        """F·A and F·B, at once where that is cheaper."""
        if not self.filter.columnwise:
            return self.filtered(A, point), self.filtered(B, point)
        both = self.filtered(beside(A, B), point)
        return both[:, : A.shape[1]], both[:, A.shape[1] :]

    def first_length(self, ray: Ray) -> float:
        return 1.0 if self.pairs else super().first_length(ray)

    def accepted(self, ray: Ray, trial: Trial) -> None:
        super().accepted(ray, trial)
        s, y = trial.point.Y - ray.start.Y, trial.point.G - ray.start.G
        curvature = inner(s, y)
        if curvature > self.least_cosine * norm(s) * norm(y):
            self.pairs.append(_Pair(s, y, curvature))

    def forget(self) -> bool:
        remembered = bool(self.pairs)
        self.pairs.clear()
        self.last = None
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
    faster, slower, least_gain : float, default=0.2, 0.8, 0.01
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
    faster: float = field(default=0.2, kw_only=True)
    slower: float = field(default=0.8, kw_only=True)
    least_gain: float = field(default=0.01, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.learning_rate, str):
            check_option("learning_rate", self.learning_rate, ("auto",))
        else:
            check_positive("learning_rate", self.learning_rate)
        fraction = check_nonnegative("momentum", self.momentum)
        check_below("momentum", fraction, 1, "else steps never die out")
        for name in ("faster", "slower", "least_gain"):
            check_positive(name, getattr(self, name))

    def _stepper(self, evaluator: Evaluator, filter: BoundFilter) -> Stepper:
        rate = self.learning_rate
        if rate == "auto":
            rate = max(evaluator.objective.n / 12, 50.0)
        return _Glide(self, evaluator, filter, float(rate))


class _Glide(Stepper):
    """Steps with a velocity and gains."""

    def __init__(
        self, rule: Momentum, evaluator: Evaluator, filter: BoundFilter, rate: float
    ) -> None:
        self.rule, self.evaluator, self.filter, self.rate = rule, evaluator, filter, rate
        self.moving: tuple[Array, Array] | None = None  # velocity and gains

    def step(self, point: Point) -> Move | Stuck:
        Z = cast(self.filter.apply(point.G, point.Y), point.Y.dtype)
        xp, rule = namespace(Z), self.rule
        V, gains = self.moving or (xp.zeros_like(Z), xp.ones_like(Z))
        gains = xp.where(V * Z < 0, gains + rule.faster, gains * rule.slower)
        gains = xp.maximum(gains, rule.least_gain)
        V = rule.momentum * V - self.rate * gains * Z
        self.moving = V, gains
        new = self.evaluator.at(point.Y + V)
        if not new.usable:
            return Stuck(status=f"the value is no longer finite; lower learning_rate={self.rate:g}")
        return Move(new, self.rate)

    def filter_changed(self) -> None:
        """Glide on: a velocity is one of the map, whatever gave it."""
