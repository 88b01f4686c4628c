"""Spectral guidance: filters that start smooth and fade as the search goes on."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import BoundFilter, Filter, Identity, Progress
from manifoldry.optimize.guidance_matrix import graph_matrix, guidance_matrix, lazy
from manifoldry.optimize.schedule import OnSlowProgress, Schedule
from manifoldry.util.typing import Array, Matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class Guidance(Filter):
    """Keep to the leading eigenvectors of a matrix M of the data first, give way later.

    Early steps then move neighbours alike and do not tangle the map (Memisevic and Hinton, 2005).
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
        """The operator of a level times `G`, in double precision."""

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
        level = self._levels[self._stage]
        smooth = self._guidance.smoothed(self._prepared, level, np.asarray(G, np.float64))
        return smooth.astype(G.dtype, copy=False)

    def advance(self, progress: Progress) -> bool:
        if self._after is not None:
            return self._after.advance(progress)
        if np.isposinf(progress.decrease):  # no step has been taken yet
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
