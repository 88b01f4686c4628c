"""The interface of optimizers and the solutions they return."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from manifoldry.device.vectors import centered, norms
from manifoldry.objectives.base import Objective
from manifoldry.util.arrays import all_finite, namespace, precision
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_count, check_option
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Point:
    """An embedding Y with the value and the gradient G of the objective at Y."""

    Y: Array
    value: float
    """Infinite if the value or the gradient is not finite."""
    G: Array

    @classmethod
    def nonfinite(cls, Y: Array) -> "Point":
        """A point where the value or the gradient is not finite."""
        return cls(Y, inf, namespace(Y).zeros_like(Y))

    @cached_property
    def _norms(self) -> list[float]:
        return norms(self.G, centered(self.Y))

    @property
    def gradient_norm(self) -> float:
        """Frobenius norm of the gradient."""
        return self._norms[0]

    @property
    def extent(self) -> float:
        """Size of the embedding: the Frobenius norm after centering."""
        return self._norms[1]

    @property
    def is_finite(self) -> bool:
        """Whether value and gradient are finite."""
        return isfinite(self.value)

    @property
    def rounding_error(self) -> float:
        """Bound on differences of the value due to rounding, in the precision of the embedding."""
        return 16 * precision(self.Y) * abs(self.value)


class Evaluator:
    """An objective that counts its evaluations."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.count = objective, 0

    def at(self, Y: Array) -> Point:
        """Value and gradient at `Y`."""
        if not all_finite(Y):
            return Point.nonfinite(Y)
        self.count += 1
        # A trial step may overflow; the line search then shortens it.
        with np.errstate(all="ignore"):
            value, G = self.objective.value_and_gradient(Y)
            point = Point(Y, float(value), G)
            finite = point.is_finite and isfinite(point.gradient_norm)
        return point if finite else Point.nonfinite(Y)

    def normalized(self, point: Point) -> Point:
        """The point after the objective's normalization of the embedding, without an evaluation."""
        Y, G = self.objective.retract(point.Y, point.G)
        return point if Y is point.Y else Point(Y, point.value, G)


class Step(NamedTuple):
    """One step of a search; the first of a trace, with iteration 0, is its start.

    Parameters
    ----------
    iteration : int
        Number of the step, over all searches of a fit.
    value, gradient_norm : float
        Value of the objective, and norm of its gradient.
    length : float
        Step length, a factor of the search direction; 0 if the line search failed.
    evaluations : int
        Evaluations of the objective so far.
    parameter : float
        Parameter of a homotopy; values at different parameters are of different objectives.

    See Also
    --------
    Solution : has the steps of a search in ``trace``.
    Iterate : a step together with its embedding.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import LBFGS
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)
    >>> start = LBFGS().minimize(objective, np.array([[0.0], [0.1]])).trace[0]
    >>> start.iteration, round(start.value, 3), start.evaluations
    (0, 2.701, 1)
    """

    iteration: int
    value: float
    gradient_norm: float
    length: float
    evaluations: int
    parameter: float = np.nan


def trace_array(steps: Sequence[Step]) -> Array:
    """The steps as a structured array."""
    counts = ("iteration", "evaluations")
    kinds = [(name, int if name in counts else float) for name in Step._fields]
    return np.array(steps, dtype=kinds)


SearchState: TypeAlias = dict[str, Any]
"""What a search needs to continue: numbers and arrays that later steps do not change, by name."""


def _no_saved_state() -> SearchState | None:
    """Return None, because the search cannot be continued."""
    return None


@dataclass(frozen=True, eq=False)
class Iterate:
    """The current state of a search, as passed to callbacks.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
        The current embedding, read-only.
    step : Step
        Its ``iteration``, ``value``, ``gradient_norm``, ``length``, ``evaluations``, ``parameter``.
    saved_state : callable, optional
        Returns what :meth:`Optimizer.resume` needs to continue from here; None if it cannot. To be
        called before the callback returns.

    See Also
    --------
    Callback : which function is called, and how often.
    Step : the numbers of a step.

    Examples
    --------
    Record the value of the objective at the start and after every step:

    >>> import numpy as np
    >>> from manifoldry import SymmetricSNE
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> values = []
    >>> def record(iterate):
    ...     values.append(iterate.step.value)
    >>> model = SymmetricSNE(init="pca", callback=record).fit(X)
    >>> len(values) == model.n_iter_ + 1, values[-1] < values[0]
    (True, True)
    """

    embedding: Array = field(repr=False)
    step: Step
    saved_state: Callable[[], SearchState | None] = field(default=_no_saved_state, repr=False)


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of a search.

    Parameters
    ----------
    embedding : array of shape (n, d)
        The embedding of smallest value, or the last one if the optimizer has no line search.
    value : float
        Value of the objective at it.
    converged : bool
        Whether the search converged.
    status : str
        Why the search stopped, in words.
    trace : list of Step, optional
        The start and every step.
    interrupted : bool, default=False
        Whether the search was stopped by Ctrl-C.
    n_evaluations : int, default=0
        Evaluations of the objective, including those after the last step.

    See Also
    --------
    Optimizer : returns it.
    Step : one entry of the trace.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import LBFGS
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)
    >>> solution = LBFGS().minimize(objective, np.array([[0.0], [0.1]]))
    >>> solution.converged, round(solution.value, 4)
    (True, 2.0)
    >>> bool((np.diff(solution.history("value")) <= 0).all())
    True
    """

    embedding: Array
    value: float
    converged: bool
    status: str
    trace: list[Step] = field(default_factory=list)
    interrupted: bool = False
    n_evaluations: int = 0

    @property
    def n_iter(self) -> int:
        """Number of steps taken."""
        return self.trace[-1].iteration if self.trace else 0

    def as_interrupted(self) -> Self:
        """Return a copy marked as interrupted, for an interrupt after the search has ended.

        Returns
        -------
        Solution
            The copy.
        """
        return replace(self, converged=False, status="interrupted", interrupted=True)

    def history(self, name: str) -> Array:
        """Return one field of all steps as an array.

        Parameters
        ----------
        name : str
            The field, such as ``"value"`` or ``"gradient_norm"``.

        Returns
        -------
        array
            One entry per step, and one for the start.
        """
        return np.array([getattr(step, name) for step in self.trace])


StepCallback: TypeAlias = Callable[[Iterate], None]


@dataclass(frozen=True)
class Callback:
    """A function that is called during the search of an estimator, and when.

    Parameters
    ----------
    function : callable, default=None
        Called with an :class:`Iterate`; the search stops if it returns True.
    every : int, default=1
        Number of steps between two calls.
    on_interrupt : {"raise", "keep"}, default="raise"
        What ``fit`` does after Ctrl-C, once it has stored the best embedding found so far (the
        latest, with :class:`Momentum`): raise KeyboardInterrupt again, or return the estimator.

    See Also
    --------
    Iterate : what the function is called with.
    Checkpoint : also saves the fit in a file.

    Examples
    --------
    >>> from manifoldry import SNE
    >>> from manifoldry.optimize import Callback
    >>> report = Callback(lambda it: print(it.step.iteration, it.step.value), every=10)
    >>> model = SNE(callback=report)
    """

    function: Callable[[Iterate], Any] | None = None
    every: int = field(default=1, kw_only=True)
    on_interrupt: str = field(default="raise", kw_only=True)

    def __post_init__(self) -> None:
        if not (self.function is None or callable(self.function)):
            raise TypeError(f"function={self.function!r} must be callable; pass a function or None")
        check_count("every", self.every)
        check_option("on_interrupt", self.on_interrupt, ("raise", "keep"))

    @classmethod
    def of(cls, callback: Any) -> "Callback":
        """Convert the `callback` of an estimator.

        Parameters
        ----------
        callback : None, callable or Callback
            The parameter of the estimator.

        Returns
        -------
        Callback
            The callback.
        """
        if isinstance(callback, Callback):
            return callback
        if callback is None or (callable(callback) and callback is not Callback):
            return cls(callback)
        raise TypeError(
            f"callback={callback!r} must be callable, a manifoldry.optimize.Callback or None; "
            "pass a function of an Iterate"
        )


class Optimizer(ABC):
    """Base class of methods that minimize an objective from a given embedding.

    Pass one to an iterative estimator as ``optimizer=``. A subclass defines :meth:`minimize`,
    :meth:`with_stopping` and :meth:`with_looser_stopping`.

    See Also
    --------
    LBFGS, GradientDescent, ConjugateGradient, Momentum : the optimizers of this package.
    Constrained : wraps an optimizer.
    resolve_optimizer : makes optimizers from their names.

    Examples
    --------
    Gradient descent with a fixed step length:

    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> from manifoldry.optimize import Optimizer, Solution
    >>> class FixedStep(Optimizer):
    ...     def minimize(self, objective, Y, callback=None):
    ...         for _ in range(200):
    ...             value, gradient = objective.value_and_gradient(Y)
    ...             Y = Y - 0.1 * gradient
    ...         return Solution(Y, value, converged=True, status="200 steps taken")
    ...     def with_stopping(self, max_iter, tol):
    ...         return self
    ...     def with_looser_stopping(self, max_iter, tol):
    ...         return self
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)  # minimum at distance 1
    >>> solution = FixedStep().minimize(objective, np.array([[0.0], [0.1]]))
    >>> round(float(np.ptp(solution.embedding)), 4)
    1.0
    """

    @property
    def expected_steps(self) -> int | None:
        """Number of steps that a search usually takes, for time estimates; None if not known."""
        return None

    @property
    def max_steps(self) -> int | None:
        """Maximum number of steps of a search; None if there is none."""
        return None

    @abstractmethod
    def minimize(
        self, objective: Objective, Y: Array, callback: StepCallback | None = None
    ) -> Solution:
        """Minimize the objective.

        On Ctrl-C the best embedding so far is returned, with ``interrupted`` set.

        Parameters
        ----------
        objective : Objective
            The objective.
        Y : array of shape (n, d)
            The start.
        callback : callable, default=None
            Called with an :class:`Iterate` at every step; the search stops if it returns True.

        Returns
        -------
        Solution
            The embedding, and how the search ended.
        """

    def resume(
        self, objective: Objective, state: SearchState, callback: StepCallback | None = None
    ) -> Solution:
        """Continue a search from the ``saved_state`` of one of its iterates.

        Parameters
        ----------
        objective : Objective
            The objective.
        state : dict
            The saved state.
        callback : callable, default=None
            As for :meth:`minimize`.

        Returns
        -------
        Solution
            The embedding, and how the search ended.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot continue a search")

    @abstractmethod
    def with_stopping(self, max_iter: int | None, tol: float | None) -> Self:
        """Return a copy with other stopping criteria.

        Parameters
        ----------
        max_iter : int or None
            Maximum number of steps; None leaves it as it is.
        tol : float or None
            Tolerance; None leaves it as it is.

        Returns
        -------
        Optimizer
            The copy.
        """

    @abstractmethod
    def with_looser_stopping(self, max_iter: int, tol: float) -> Self:
        """Return a copy with at most `max_iter` steps and a tolerance of at least `tol`.

        Parameters
        ----------
        max_iter : int
            Upper bound on the maximum number of steps.
        tol : float
            Lower bound on the tolerance.

        Returns
        -------
        Optimizer
            The copy.
        """

    def with_cached_filter(self) -> Self:
        """Return a copy whose filter is computed once for all objectives of one attraction.

        Returns
        -------
        Optimizer
            The copy.
        """
        return self
