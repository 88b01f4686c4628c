"""Spectral guidance: filters that start smooth and fade as the search goes on, by a schedule."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from scipy import sparse

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import BoundFilter, Filter, Identity, Progress
from manifoldry.optimize.guidance_matrix import graph_matrix, guidance_matrix, lazy
from manifoldry.util.arrays import cast, double, like, on_host
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array, Matrix


class Schedule(ABC):
    """A rule for going on; it has no state, what it counts is kept by the bound filter."""

    ends: bool = True
    """Whether it will go on some day; a search need not wait for one that never does."""

    @abstractmethod
    def due(self, progress: Progress, steps: int) -> bool:
        """Whether to go on, after `steps` steps in the present stage."""


@dataclass(frozen=True)
class EveryStep(Schedule):
    """Go on after every step, or every few, whatever they achieved: Memisevic and Hinton's rule.

    Examples
    --------
    >>> from manifoldry.optimize.filter import Progress
    >>> EveryStep(period=2).due(Progress(7, 1.0, 0.5), steps=1)
    False
    """

    period: int = 1

    def __post_init__(self) -> None:
        check_count("period", self.period)

    def due(self, progress: Progress, steps: int) -> bool:
        return steps >= self.period


@dataclass(frozen=True)
class OnSlowProgress(Schedule):
    """Go on when a step took away too little of the objective: this stage has done its work.

    A small map is a saddle that the first steps hardly leave; a schedule that counts steps has
    spent its filter by then.

    Parameters
    ----------
    threshold : float, default=0.05
        Fraction of the objective's value; a step that takes away less is slow.
    at_least : int, default=1
        Steps in a stage before any is called slow.
    at_most : int, default=20
        Steps in a stage, however good.

    Examples
    --------
    >>> from manifoldry.optimize.filter import Progress
    >>> schedule = OnSlowProgress(threshold=0.05)
    >>> [schedule.due(Progress(7, 1.0, decrease), steps=1) for decrease in (0.5, 0.01)]
    [False, True]
    """

    threshold: float = 0.05
    at_least: int = 1
    at_most: int = 20

    def __post_init__(self) -> None:
        check_positive("threshold", self.threshold)
        check_count("at_least", self.at_least)
        check_count("at_most", self.at_most, minimum=self.at_least)

    def due(self, progress: Progress, steps: int) -> bool:
        fast = progress.decrease >= self.threshold  # a decrease that is not a number is not fast
        return steps >= self.at_most or (steps >= self.at_least and not fast)


@dataclass(frozen=True)
class Never(Schedule):
    """Stay in the first stage: one fixed filter.

    Examples
    --------
    >>> from manifoldry.optimize.filter import Progress
    >>> Never().due(Progress(7, 1.0, 0.0), steps=1000)
    False
    """

    ends = False

    def due(self, progress: Progress, steps: int) -> bool:
        return False


@dataclass(frozen=True, eq=False, kw_only=True)
class Guidance(Filter):
    """Keep to the leading eigenvectors of a matrix M of the data first, give way later.

    Early steps then move neighbors alike and do not tangle the map (Memisevic and Hinton, 2005).
    Start from a small map: what is rough about a large one cannot be removed by smooth steps.

    Parameters
    ----------
    matrix : array or sparse matrix of shape (n_samples, n_samples), default=None
        M, symmetric and positive semidefinite, such as a :func:`clustering_matrix`. It is scaled to
        norm one, which a line search does not notice. By default (I + D^{-½}WD^{-½})/2 of the
        objective's attraction W.
    schedule : Schedule, default=OnSlowProgress()
        When to go on to the next level.
    then : Filter or None, default=Identity()
        The filter that follows the last level, such as ``SpectralDirection()``. ``None`` stays at
        the last level.
    """

    matrix: Matrix | None = None
    schedule: Schedule = field(default_factory=OnSlowProgress)
    then: Filter | None = field(default_factory=Identity)

    def bind(self, objective: Objective) -> BoundFilter:
        return _Guided(self, objective)

    @abstractmethod
    def levels(self, n: int) -> Sequence[float]:
        """How strongly to smooth, stage by stage, for `n` points; none for the identity."""

    @abstractmethod
    def smoothed(self, prepared: Any, level: float, G: Array) -> Array:
        """The operator of a level times `G`, in double precision, in the namespace of both."""

    def prepared(self, objective: Objective) -> Any:
        """What `smoothed` works with, computed once: M itself, or something made of it."""
        if self.matrix is None:
            return lazy(graph_matrix(objective.attraction))
        return guidance_matrix(self.matrix, objective.n, definite=True)


class _Guided(BoundFilter):
    def __init__(self, guidance: Guidance, objective: Objective) -> None:
        self._guidance, self._objective = guidance, objective
        self._levels = guidance.levels(objective.n)
        self._stage = self._steps = 0
        self._after: BoundFilter | None = None
        if len(self._levels):
            self._prepared = guidance.prepared(objective)
        else:
            self._after = (guidance.then or Identity()).bind(objective)

    def apply(self, G: Array, Y: Array) -> Array:
        if self._after is not None:
            return self._after.apply(G, Y)
        if sparse.issparse(self._prepared):
            return on_host(self._smoothed, G)
        self._prepared = like(self._prepared, G)  # moved to a device once
        return cast(self._smoothed(double(G)), G.dtype)

    def _smoothed(self, G: Array) -> Array:
        return self._guidance.smoothed(self._prepared, self._levels[self._stage], G)

    def advance(self, progress: Progress) -> bool:
        if self._after is not None:
            return self._after.advance(progress)
        if progress.decrease == inf:  # no step has been taken yet
            return False
        self._steps += 1
        if self._stays or not self._guidance.schedule.due(progress, self._steps):
            return False
        self._go_on()
        return True

    def _go_on(self) -> None:
        self._steps = 0
        if not self._is_last:
            self._stage += 1
        elif self._guidance.then is not None:
            del self._prepared  # a matrix of all pairs, perhaps, that nobody needs any more
            self._after = self._guidance.then.bind(self._objective)

    @property
    def _is_last(self) -> bool:
        return self._stage == len(self._levels) - 1

    @property
    def _stays(self) -> bool:
        """Whether the present level is there for good."""
        return not self._guidance.schedule.ends or (self._is_last and self._guidance.then is None)

    @property
    def settled(self) -> bool:
        return self._stays if self._after is None else self._after.settled

    @property
    def newton_like(self) -> bool:  # type: ignore[override]  # it changes with the stage
        return self._after is not None and self._after.newton_like

    @property
    def reason(self) -> str:  # type: ignore[override]  # it changes with the stage
        if self._after is not None:
            return self._after.reason
        stages = f"stage {self._stage + 1} of {len(self._levels)}"
        return f"{type(self._guidance).__name__} at {self._levels[self._stage]:g}, {stages}"
