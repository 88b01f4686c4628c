"""Spectral guidance: filters that smooth gradients, less and less as the search proceeds."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from manifoldry.device import say_on_cpu
from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import Filter, FilterOperator, Identity, Progress
from manifoldry.optimize.guidance_matrix import check_guidance_matrix, graph_matrix, lazy
from manifoldry.util.arrays import cast, double, like, on_host
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array, Matrix


class Schedule(ABC):
    """Base class of the rules when guidance advances to its next stage.

    Schedules have no state; operators count steps. A subclass defines :meth:`should_advance`.

    See Also
    --------
    OnSlowProgress, EveryStep, Never : the schedules of this package.
    Guidance : takes a schedule.

    Examples
    --------
    Stay at least five steps in a stage, and as long as steps still decrease the objective by one
    percent:

    >>> from manifoldry import SymmetricSNE
    >>> from manifoldry.optimize import GradientDescent, Heat, Schedule
    >>> class Patient(Schedule):
    ...     def should_advance(self, progress, n_steps):
    ...         return n_steps >= 5 and progress.decrease < 0.01
    >>> optimizer = GradientDescent(Heat(schedule=Patient()))
    >>> model = SymmetricSNE(init="random", optimizer=optimizer)
    """

    advances: bool = True
    """Whether it ever advances; if not, a search may converge in the first stage."""

    @abstractmethod
    def should_advance(self, progress: Progress, n_steps: int) -> bool:
        """Return whether to advance to the next stage.

        Parameters
        ----------
        progress : Progress
            The last step: its ``iteration``, ``value`` and relative ``decrease``.
        n_steps : int
            Number of steps in the current stage.

        Returns
        -------
        bool
            Whether to advance.
        """


@dataclass(frozen=True)
class EveryStep(Schedule):
    """Advance after every `period` steps, whatever their progress: Memisevic and Hinton's rule.

    Parameters
    ----------
    period : int, default=1
        Number of steps in a stage.

    See Also
    --------
    OnSlowProgress, Never : other schedules.
    Guidance : takes a schedule.

    Examples
    --------
    Two steps with each power of the matrix:

    >>> from manifoldry.optimize import EveryStep, GradientDescent, Power
    >>> optimizer = GradientDescent(Power(start=5, schedule=EveryStep(period=2)))
    """

    period: int = 1

    def __post_init__(self) -> None:
        check_count("period", self.period)

    def should_advance(self, progress: Progress, n_steps: int) -> bool:
        return n_steps >= self.period


@dataclass(frozen=True)
class OnSlowProgress(Schedule):
    """Advance when a step decreases the objective too little.

    A small embedding is close to a saddle point, which the first steps hardly leave. A schedule
    that counts steps may reach its last stage before the embedding has started to grow.

    Parameters
    ----------
    threshold : float, default=0.05
        Relative decrease of the objective below which a step is slow.
    min_steps : int, default=1
        Minimum number of steps in a stage.
    max_steps : int, default=20
        Maximum number of steps in a stage.

    See Also
    --------
    EveryStep, Never : other schedules.
    Guidance : takes a schedule.

    Examples
    --------
    >>> from manifoldry.optimize.filter import Progress
    >>> schedule = OnSlowProgress(threshold=0.05)
    >>> [schedule.should_advance(Progress(7, 1.0, decrease), n_steps=1) for decrease in (0.5, 0.01)]
    [False, True]
    """

    threshold: float = 0.05
    min_steps: int = 1
    max_steps: int = 20

    def __post_init__(self) -> None:
        check_positive("threshold", self.threshold)
        check_count("min_steps", self.min_steps)
        check_count("max_steps", self.max_steps, minimum=self.min_steps)

    def should_advance(self, progress: Progress, n_steps: int) -> bool:
        fast = progress.decrease >= self.threshold  # False for NaN
        return n_steps >= self.max_steps or (n_steps >= self.min_steps and not fast)


@dataclass(frozen=True)
class Never(Schedule):
    """Stay in the first stage, so that the filter is fixed.

    See Also
    --------
    OnSlowProgress, EveryStep : schedules that advance.
    Guidance : takes a schedule.

    Examples
    --------
    Minimize within the span of the first ten eigenvectors:

    >>> from manifoldry.optimize import LBFGS, Never, Projector
    >>> optimizer = LBFGS(Projector(start=10, schedule=Never()))
    """

    advances = False

    def should_advance(self, progress: Progress, n_steps: int) -> bool:
        return False


@dataclass(frozen=True, eq=False, kw_only=True)
class Guidance(Filter):
    """Base class of filters that favor the leading eigenvectors of a matrix M of the data.

    Early steps then move neighbors in similar directions and do not tangle the embedding (Memisevic
    and Hinton, 2005); later stages smooth less. Start from a small embedding: smooth steps cannot
    remove the irregularities of a large one.

    Parameters
    ----------
    matrix : array or sparse matrix of shape (n_samples, n_samples), default=None
        M, symmetric and positive semidefinite, such as a :func:`clustering_matrix`. It is scaled to
        norm one, which makes no difference to a line search. By default (I + D^{-½}WD^{-½})/2 with
        the objective's attraction W.
    schedule : Schedule, default=OnSlowProgress()
        When to advance to the next stage.
    final_filter : Filter or None, default=Identity()
        The filter that follows the last stage, such as ``SpectralDirection()``. ``None`` stays in
        the last stage.

    See Also
    --------
    Projector, Power, DeflatedPower, Heat : the filters of this kind.
    clustering_matrix, graph_matrix, kernel_pca_matrix : matrices M.
    Schedule : when to advance.

    Examples
    --------
    From a random start, three stages of guidance, then the spectral direction:

    >>> import numpy as np
    >>> from manifoldry import SymmetricSNE
    >>> from manifoldry.optimize import LBFGS, Power, SpectralDirection
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> guided = LBFGS(Power(start=3, final_filter=SpectralDirection()))
    >>> SymmetricSNE(init="random", optimizer=guided).fit(X).converged_
    True
    """

    matrix: Matrix | None = None
    schedule: Schedule = field(default_factory=OnSlowProgress)
    final_filter: Filter | None = field(default_factory=Identity)

    def operator_for(self, objective: Objective) -> FilterOperator:
        return _GuidanceOperator(self, objective)

    @abstractmethod
    def stages(self, n: int) -> Sequence[float]:
        """Return the parameter of every stage; none if there is nothing to smooth.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        sequence of float
            The parameters.
        """

    @abstractmethod
    def smooth(self, prepared: Any, parameter: float, G: Array) -> Array:
        """Multiply a gradient by the operator of a stage, in double precision.

        Parameters
        ----------
        prepared : object
            The result of `prepare`.
        parameter : float
            The parameter of the stage.
        G : array of shape (n, d)
            The gradient.

        Returns
        -------
        array of shape (n, d)
            The product.
        """

    def prepare(self, objective: Objective) -> Any:
        """Compute once what `smooth` needs: M or its eigenvectors.

        A numpy array is moved to the device of the gradient; anything else is used on the host.

        Parameters
        ----------
        objective : Objective
            The objective.

        Returns
        -------
        object
            What is passed to `smooth`.
        """
        if self.matrix is None:
            return lazy(graph_matrix(objective.attraction))
        return check_guidance_matrix(self.matrix, objective.n, definite=True)


class _GuidanceOperator(FilterOperator):
    def __init__(self, guidance: Guidance, objective: Objective) -> None:
        self._guidance, self._objective = guidance, objective
        self._stages = guidance.stages(objective.n)
        self._index = self._n_steps = 0
        self._next: FilterOperator | None = None
        if len(self._stages):
            self._prepared = guidance.prepare(objective)
            self._on_host = not isinstance(self._prepared, np.ndarray)
            if self._on_host:
                say_on_cpu("spectral guidance", "its matrix is sparse; gradients are copied")
        else:
            self._next = (guidance.final_filter or Identity()).operator_for(objective)

    def apply(self, G: Array, Y: Array) -> Array:
        if self._next is not None:
            return self._next.apply(G, Y)
        if self._on_host:
            return on_host(self._smooth, G)
        self._prepared = like(self._prepared, G)  # moved to the device once
        return cast(self._smooth(double(G)), G.dtype)

    def _smooth(self, G: Array) -> Array:
        return self._guidance.smooth(self._prepared, self._stages[self._index], G)

    def advance(self, progress: Progress) -> bool:
        if self._next is not None:
            return self._next.advance(progress)
        if progress.decrease == inf:  # before the first step
            return False
        self._n_steps += 1
        if self._is_final or not self._guidance.schedule.should_advance(progress, self._n_steps):
            return False
        self._advance_stage()
        return True

    def _advance_stage(self) -> None:
        self._n_steps = 0
        if not self._is_last:
            self._index += 1
        elif self._guidance.final_filter is not None:
            del self._prepared  # may be a dense matrix of all pairs
            self._next = self._guidance.final_filter.operator_for(self._objective)

    @property
    def _is_last(self) -> bool:
        return self._index == len(self._stages) - 1

    @property
    def _is_final(self) -> bool:
        """Whether the current stage is the final one."""
        return not self._guidance.schedule.advances or (
            self._is_last and self._guidance.final_filter is None
        )

    @property
    def finished(self) -> bool:
        return self._is_final if self._next is None else self._next.finished

    @property
    def newton_like(self) -> bool:  # type: ignore[override]  # depends on the stage
        return self._next is not None and self._next.newton_like

    @property
    def reason(self) -> str:  # type: ignore[override]  # depends on the stage
        if self._next is not None:
            return self._next.reason
        stages = f"stage {self._index + 1} of {len(self._stages)}"
        return f"{type(self._guidance).__name__} at {self._stages[self._index]:g}, {stages}"
