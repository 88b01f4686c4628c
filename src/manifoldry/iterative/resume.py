"""Fits that save their searches in a checkpoint, and continue from it.

A fit is a sequence of searches; what it computes between them depends only on the data, the seed
and the results of the searches. So an interrupted fit is run again, with the searches that had
ended replaced by their saved results.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from manifoldry.base.input import Input
from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.objectives.base import Objective
from manifoldry.optimize.checkpoint import Checkpoint, SavedSearches
from manifoldry.optimize.optimizer import Iterate, Optimizer, Solution, Step, StepCallback
from manifoldry.util.fingerprint import describe
from manifoldry.util.saved import package_version
from manifoldry.util.typing import Array

# Parameters that do not change the result, or only its last digits.
_IRRELEVANT = ("callback", "verbose", "n_jobs", "device")


def describe_fit(estimator: BaseEstimator, data: Input) -> dict[str, str]:
    """The data and the parameters of a fit, in words that differ if the results may differ."""
    parameters = estimator.get_params(deep=False).items()
    return {
        "the estimator": type(estimator).__name__,
        "the version of manifoldry": package_version(),
        "the data": _describe_data(data.rows),
        **{name: describe(value) for name, value in parameters if name not in _IRRELEVANT},
    }


def _describe_data(rows: Any) -> str:
    if not isinstance(rows, NeighborGraph):
        return describe(rows)
    edges, points = rows.matrix(rows.distances), rows.index.points
    return f"a graph of distances, {describe(edges)}, and {describe(points)}"


@dataclass
class ResumableSearches:
    """The searches of one fit, each taken from the checkpoint or saved in it.

    Parameters
    ----------
    checkpoint : Checkpoint
        The file, and how often to write it.
    saved : SavedSearches
        What the file holds.
    """

    checkpoint: Checkpoint
    saved: SavedSearches
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    _position: int = 0  # number of searches of this fit that have ended

    def __post_init__(self) -> None:
        self._written = self.clock()

    @classmethod
    def of(cls, estimator: Any, data: Input) -> Self | None:
        """Those of a fit whose callback is a checkpoint; None for any other."""
        checkpoint = estimator.callback
        if not isinstance(checkpoint, Checkpoint):
            return None
        return cls(checkpoint, checkpoint.open(describe_fit(estimator, data)))

    @property
    def n_saved_steps(self) -> int:
        """Number of steps in the checkpoint."""
        current = [] if self.saved.state is None else self.saved.state["trace"]
        traces = [*(solution.trace for solution in self.saved.finished), current]
        return sum(step.iteration > 0 for trace in traces for step in trace)

    def next_finished(self, parameter: float) -> Solution | None:
        """The result of the next search if the checkpoint has it."""
        if self._position == len(self.saved.finished):
            return None
        before = self.saved.parameters[self._position]
        if not np.isclose(before, parameter, rtol=1e-6, equal_nan=True):
            warn(
                f"search {self._position + 1} of the checkpoint had the parameter {before:.6g}, "
                f"but this fit has {parameter:.6g}, which rounding errors can cause; the rest of "
                "the checkpoint is not used; continue with the same number of threads",
                ManifoldryWarning,
            )
            del self.saved.finished[self._position :], self.saved.parameters[self._position :]
            self.saved.state = None
            return None
        self._position += 1
        return self.saved.finished[self._position - 1]

    def add(self, solution: Solution, parameter: float) -> None:
        """Save the result of a search."""
        self.saved.finished.append(solution)
        self.saved.parameters.append(parameter)
        self.saved.state = None
        self._position += 1

    def update(self, iterate: Iterate) -> None:
        """Keep the state of the current search."""
        self.saved.state = iterate.saved_state()

    def write_if_due(self) -> None:
        """Write the checkpoint unless the last one is recent."""
        if self.clock() - self._written >= self.checkpoint.every_seconds:
            self.write()

    def write(self) -> None:
        """Write the checkpoint; an error, such as a full disk, does not end the fit."""
        try:
            self.saved.write(self.checkpoint.file)
        except OSError as error:
            warn(
                f"the checkpoint was not written ({error}); an older one, if any, is unchanged",
                ManifoldryWarning,
            )
        self._written = self.clock()


@dataclass(frozen=True, eq=False)
class Resumable(Optimizer):
    """An optimizer whose searches are taken from a checkpoint or saved in it.

    Parameters
    ----------
    optimizer : Optimizer
        Computes the searches that are not in the checkpoint.
    searches : ResumableSearches
        The searches of the fit.
    parameter : callable
        The parameter of the current search, NaN if there is none.
    replay : callable
        Called with the steps that were taken before the fit was interrupted.
    """

    optimizer: Optimizer
    searches: ResumableSearches
    parameter: Callable[[], float]
    replay: Callable[[Sequence[Step]], None]

    def minimize(
        self, objective: Objective, Y: Array, callback: StepCallback | None = None
    ) -> Solution:
        solution = self.searches.next_finished(self.parameter())
        if solution is not None:
            self.replay(solution.trace)
            return solution

        def save(iterate: Iterate) -> None:
            self.searches.update(iterate)
            if callback is not None:
                callback(iterate)
            self.searches.write_if_due()

        state = self.searches.saved.state
        if state is None:
            solution = self.optimizer.minimize(objective, Y, save)
        else:
            self.replay(state["trace"])
            solution = self.optimizer.resume(objective, state, save)
        if not solution.interrupted:
            self.searches.add(solution, self.parameter())
        return solution

    def with_stopping(self, max_iter: int | None, tol: float | None) -> Self:
        return replace(self, optimizer=self.optimizer.with_stopping(max_iter, tol))

    def with_looser_stopping(self, max_iter: int, tol: float) -> Self:
        return replace(self, optimizer=self.optimizer.with_looser_stopping(max_iter, tol))

    def with_cached_filter(self) -> Self:
        return replace(self, optimizer=self.optimizer.with_cached_filter())
