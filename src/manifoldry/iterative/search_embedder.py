"""What all estimators share whose map is found by a search: start, progress, Ctrl-C, the trace."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from manifoldry.base.embedder import float_dtype
from manifoldry.base.graph_reader import GraphReader
from manifoldry.exceptions import ConvergenceWarning
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.regression import LocalRegression
from manifoldry.iterative._sklearn_callbacks import (
    CallbackSupportMixin,
    begin_fit,
    end_fit,
    step_hook,
    with_callbacks,
)
from manifoldry.iterative.monitor import Callback, Monitor
from manifoldry.iterative.start import Seen
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.optimize.optimizer import Solution
from manifoldry.util.checks import check_count, check_option
from manifoldry.util.progress import Ticker
from manifoldry.util.typing import Array
from manifoldry.util.warn import warn

_INTERRUPTED = "interrupted"
_STOPPED = "stopped by a callback"


class SearchEmbedder(CallbackSupportMixin, GraphReader):
    """Base of the estimators that search for their map.

    A subclass poses in ``_pose`` what is sought, says in ``_start`` where to begin, searches in
    ``_search`` and says in ``_extend`` how new points find their place.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates in use.
    embedding_ : array of shape (n_samples, n_components)
        The map.
    loss_ : float
        The objective at the map.
    n_iter_, n_evaluations_ : int
        Steps of the search, and evaluations of the objective they took.
    converged_ : bool
        Whether the search came to rest.
    status_ : str
        Why the search stopped, in words.
    trace_ : structured array
        One entry per step, and one for the start of every search of which the fit consists:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and the ``parameter`` that was varied from search to search.
    search_ : str
        How neighbours were found, and why so; how many of them, where not all.
    """

    init: Any
    max_iter: int | None
    tol: float | None
    warm_start: bool
    callback: Callback | None
    callback_every: int
    on_interrupt: str
    verbose: bool
    random_state: Any

    # Whether a search that took all its steps is worth a warning.
    _must_converge = True
    # What to do about it.
    _to_converge = "raise max_iter or tol, or look at trace_"
    # The neighbours of the training points.
    _graph: NeighborGraph
    # What is sought.
    _objective: Any

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of `X`.

        Ctrl-C keeps the best map so far, with ``converged_ = False``, and is raised again unless
        ``on_interrupt="keep"``.

        Parameters
        ----------
        X : array, sparse matrix, frame of shape (n_samples, n_features), or NeighborGraph
            The data, distances if ``metric="precomputed"``, or their neighbour graph.
        y : ignored
            Present for scikit-learn's sake.
        """
        self._check_search()  # a mistake here costs no model fitted before
        begin_fit(self)
        super().fit(X)
        end_fit(self)
        if self.status_ == _INTERRUPTED and self.on_interrupt == "raise":
            raise KeyboardInterrupt
        return self

    def _fit(self, X: Any) -> None:
        previous = self.__dict__.pop("_previous", None)
        data = self._read(X, reset=True)
        self._check_components(data)
        self._objective = self._pose(data)
        with self._monitor() as monitor:
            solution = self._found(data, previous, monitor)
        self._store(data, solution, monitor)
        self._extension = self._extend(data)
        self._inverse = self._way_back(data)

    def _found(self, data: Any, previous: Array | None, monitor: Monitor) -> Solution:
        """Search from the start, or from the map of the fit before."""
        objective = self._objective
        if previous is None:
            return self._search(objective, self._start(data, objective), monitor)
        shape = (data.shape[0], self.n_components_)
        if previous.shape != shape:
            raise ValueError(
                f"warm_start=True begins from the map of the last fit, whose shape is "
                f"{previous.shape}; this fit needs one of shape {shape}; pass warm_start=False"
            )
        return self._resume(objective, previous.astype(np.float64), monitor)

    def _check_search(self) -> None:
        """Refuse what makes no search, before the work on the data."""
        check_option("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_count("callback_every", self.callback_every)
        if not (self.callback is None or callable(self.callback)):
            raise TypeError(f"callback={self.callback!r} must be callable; pass a function or None")

    @abstractmethod
    def _pose(self, data: Any) -> Any:
        """State what is sought; keep on `self` what the extension will need."""

    @abstractmethod
    def _start(self, data: Any, objective: Any) -> Array:
        """The map from which the search begins."""

    @abstractmethod
    def _search(self, objective: Any, start: Array, monitor: Monitor) -> Solution:
        """Search for the map."""

    def _resume(self, objective: Any, previous: Array, monitor: Monitor) -> Solution:
        """Search from the map of the fit before, which has been through any first phases."""
        return self._search(objective, previous, monitor)

    @abstractmethod
    def _extend(self, data: Any) -> Extension:
        """Say how new points get coordinates."""

    def _way_back(self, data: Any) -> Inverse | None:
        points = self._points(data)
        return None if points is None else LocalRegression(self.embedding_, points)

    def _seen(self, data: Any) -> Seen:
        return Seen(self._points(data), self._dense_distances(data), self._graph)

    def _monitor(self) -> Monitor:
        ticker = Ticker(type(self).__name__, None, bool(self.verbose))
        return Monitor(self.callback, self.callback_every, ticker, step_hook(self))

    def _store(self, data: Any, solution: Solution, monitor: Monitor) -> None:
        self.embedding_ = solution.embedding.astype(float_dtype(data), copy=False)
        self.loss_ = self._loss(solution)
        self.trace_ = monitor.trace
        self.n_iter_, self.n_evaluations_ = monitor.n_iter, monitor.n_evaluations
        self.converged_ = solution.converged
        self.status_ = _STOPPED if monitor.stopped else solution.status
        if self._must_converge and not (solution.converged or solution.interrupted):
            warn(
                f"{type(self).__name__} did not converge: {solution.status}; {self._to_converge}",
                ConvergenceWarning,
            )

    def _loss(self, solution: Solution) -> float:
        """The objective at the map."""
        if solution.interrupted:  # maybe at another objective, on the way to this one
            return float(self._objective.value(solution.embedding))
        return solution.value

    def _forget(self) -> None:
        previous = getattr(self, "embedding_", None) if self.warm_start else None
        super()._forget()
        self.__dict__.pop("_previous", None)
        if previous is not None:
            self._previous = previous
