"""What estimators share that minimise an objective: optimiser, guidance, homotopy."""

from abc import abstractmethod
from numbers import Integral
from typing import Any

import numpy as np

from manifoldry.exceptions import RankWarning
from manifoldry.iterative.monitor import Monitor
from manifoldry.iterative.search_embedder import SearchEmbedder
from manifoldry.objectives.base import Objective
from manifoldry.optimize.homotopy import Homotopy
from manifoldry.optimize.optimizer import Optimiser, Solution
from manifoldry.optimize.path import Path, rank
from manifoldry.optimize.resolve import resolve_guidance, resolve_optimiser
from manifoldry.util.checks import check_count, check_nonnegative
from manifoldry.util.typing import Array
from manifoldry.util.warn import warn


class IterativeEmbedder(SearchEmbedder):
    """Base of the estimators whose coordinates minimise an objective.

    A subclass poses the :class:`~manifoldry.objectives.Objective` in ``_pose``, says in ``_start``
    where to begin and in ``_extend`` how new points find their place.

    Attributes
    ----------
    path_ : Path or None
        The maps along a homotopy; None where there was none.
    """

    optimizer: Any
    guidance: Any
    homotopy: Any

    path_: Path | None

    # What searches, unless the user says otherwise.
    _default_optimizer: str | Optimiser
    # What opens a map that has collapsed.
    _remedy: str
    # The graph has as many neighbours as the affinity needs.
    n_neighbors: int | None = None
    radius: None = None

    def _fit(self, X: Any) -> None:
        self.path_ = None
        super()._fit(X)

    def _check_search(self) -> None:
        super()._check_search()
        self._optimiser(self._default_optimizer)
        if not isinstance(self.homotopy, bool | np.bool_ | Homotopy | None):
            steps = f"Homotopy(n_steps={self.homotopy})" if _is_count(self.homotopy) else "True"
            raise TypeError(
                f"homotopy={self.homotopy!r} must be True, False or a Homotopy; pass "
                f"homotopy={steps}"
            )

    @abstractmethod
    def _pose(self, data: Any) -> Objective:
        """State the objective; keep on `self` what the extension will need."""

    @abstractmethod
    def _follow(self, objective: Any, start: Array, monitor: Monitor) -> Solution:
        """Search along a homotopy that ends with the objective."""

    def _optimiser(self, default: str | Optimiser) -> Optimiser:
        """The optimiser asked for, with the guidance and the bounds asked for."""
        optimiser = resolve_optimiser(default if self.optimizer is None else self.optimizer)
        if self.guidance is not None:
            optimiser = optimiser.guided_by(resolve_guidance(self.guidance))
        max_iter = None if self.max_iter is None else check_count("max_iter", self.max_iter)
        tol = None if self.tol is None else check_nonnegative("tol", self.tol)
        return optimiser.stopping_at(max_iter, tol)

    @property
    def _follows(self) -> bool:
        """Whether the search follows a homotopy."""
        return bool(self.homotopy)

    @property
    def _homotopy(self) -> Homotopy:
        return self.homotopy if isinstance(self.homotopy, Homotopy) else Homotopy()

    def _search(self, objective: Objective, start: Array, monitor: Monitor) -> Solution:
        search = self._follow if self._follows else self._minimise
        return search(objective, start, monitor)

    def _resume(self, objective: Objective, previous: Array, monitor: Monitor) -> Solution:
        """Search from the map of the fit before, which has been through any first phases."""
        return self._minimise(objective, previous, monitor)

    def _minimise(self, objective: Objective, start: Array, monitor: Monitor) -> Solution:
        monitor.begin()
        return self._optimiser(self._default_optimizer).minimise(objective, start, monitor)

    def _store(self, data: Any, solution: Solution, monitor: Monitor) -> None:
        if solution.converged:
            self._check_extent(solution.embedding)
        super()._store(data, solution, monitor)

    def _check_extent(self, Y: Array) -> None:
        extends = rank(Y)
        if extends == 0:
            warn(f"the map has collapsed to one point; {self._remedy}", RankWarning)
        elif extends < self.n_components_:
            warn(
                f"the map extends along {extends} of n_components={self.n_components_} directions "
                f"only; scale or leave out outliers, if they are the cause, or {self._remedy}",
                RankWarning,
            )


def _is_count(value: Any) -> bool:
    """Whether a user may have meant a number of steps."""
    return isinstance(value, Integral) and int(value) > 1
