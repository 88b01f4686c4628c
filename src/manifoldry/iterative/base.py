"""What all estimators share whose map is found by a search: read, pose, search, extend, invert."""

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np

from manifoldry.base.embedder import Embedder
from manifoldry.base.input import Input, RowMatcher
from manifoldry.exceptions import ConvergenceWarning, RankWarning
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.regression import regression_inverse
from manifoldry.iterative.monitor import Callback, Monitor
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.optimize.homotopy import Homotopy, Path, rank
from manifoldry.optimize.optimizer import Iterate, Optimizer, Solution
from manifoldry.optimize.resolve import resolve_guidance, resolve_optimizer
from manifoldry.util.checks import check_count, check_nonnegative, check_option
from manifoldry.util.progress import ProgressReporter
from manifoldry.util.typing import Array
from manifoldry.util.warn import warn

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9: there is nothing to support, nor to tear down
    CallbackSupportMixin = object

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


_INTERRUPTED = "interrupted"
_STOPPED = "stopped by a callback"


@dataclass(frozen=True, eq=False)
class PosedSearch:
    """A method stated for its data: what is minimized, over maps of the points of which graph."""

    data: Input
    graph: NeighborGraph
    objective: Any
    rng: np.random.Generator

    @property
    def row_matcher(self) -> RowMatcher | None:
        """What finds training points among new rows."""
        return self.graph


@dataclass(frozen=True, eq=False)
class Found:
    """What a search came to."""

    solution: Solution
    objective: Any
    """What the map minimizes; a search may have settled a weight of it."""
    path: Path | None = None
    """The maps along a homotopy, where there was one."""


class IterativeEmbedder(Embedder, CallbackSupportMixin):
    """Base of the estimators whose coordinates minimize an objective.

    A subclass states it in ``_pose``, says in ``_start`` where to begin, searches in ``_search``
    and says in ``_extend`` how new points find their place.

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
    neighbor_search_ : str
        How neighbors were found, and why so; how many of them, where not all.
    """

    init: Any
    optimizer: Any
    guidance: Any
    homotopy: Any
    max_iter: int | None
    tol: float | None
    warm_start: bool
    callback: Callback | None
    callback_every: int
    on_interrupt: str
    verbose: bool
    random_state: Any
    n_components_: int

    # The graph has as many neighbors as the method needs.
    n_neighbors: int | None = None
    radius: float | None = None
    _accepts_graphs = True
    # What searches, unless the user says otherwise.
    _default_optimizer: str | Optimizer
    # What opens a map that has collapsed.
    _remedy: str
    # Whether a search that took all its steps is worth a warning, and what to do about it.
    _must_converge = True
    _to_converge = "raise max_iter or tol, or look at trace_"

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of `X`.

        Ctrl-C keeps the best map so far, with ``converged_ = False``, and is raised again unless
        ``on_interrupt="keep"``.

        Parameters
        ----------
        X : array, sparse matrix, frame of shape (n_samples, n_features), or NeighborGraph
            The data, distances if ``metric="precomputed"``, or their neighbor graph.
        y : ignored
            Present for scikit-learn's sake.
        """
        self._check_search()  # before callbacks hear of a fit
        if hasattr(self, "_skl_callbacks"):
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self)
        super().fit(X)
        if hasattr(self, "_callback_fit_ctx"):
            self._callback_fit_ctx.call_on_fit_task_end(estimator=self)
        if self.status_ == _INTERRUPTED and self.on_interrupt == "raise":
            raise KeyboardInterrupt
        return self

    def _fit(self, X: Any, former: dict[str, Any]) -> None:
        data = self._read(X)
        self.n_components_ = self._resolve_n_components(data)
        posed = self._pose(data)
        with self._monitor() as monitor:
            found = self._find(posed, former, monitor)
        self._store(posed, found, monitor)
        self.extension_ = self._extend(posed, found)
        self.inverse_ = self._invert(posed)
        self._row_matcher = posed.row_matcher

    @abstractmethod
    def _pose(self, data: Input) -> Any:
        """State what is minimized."""

    @abstractmethod
    def _start(self, posed: Any) -> Array:
        """The map from which the search begins."""

    @abstractmethod
    def _search(self, posed: Any, start: Array, monitor: Monitor) -> Found:
        """Search for the map."""

    @abstractmethod
    def _extend(self, posed: Any, found: Found) -> Extension:
        """Say how new points get coordinates."""

    def _invert(self, posed: Any) -> Inverse | None:
        """What leads from the map back to the data."""
        return regression_inverse(self.embedding_, posed.data.points)

    def _find(self, posed: Any, former: dict[str, Any], monitor: Monitor) -> Found:
        """Search from the start, or from the map of the fit before."""
        previous = former.get("embedding_") if self.warm_start else None
        if previous is None:
            return self._search(posed, self._start(posed), monitor)
        shape = (posed.data.n_samples, self.n_components_)
        if previous.shape != shape:
            raise ValueError(
                f"warm_start=True begins from the map of the last fit, whose shape is "
                f"{previous.shape}; this fit needs one of shape {shape}; pass warm_start=False"
            )
        return self._resume(posed, former, monitor)

    def _resume(self, posed: Any, former: dict[str, Any], monitor: Monitor) -> Found:
        """Search from the map of the fit before, which has been through any first phases."""
        start = former["embedding_"].astype(np.float64)
        return Found(self._minimize(posed.objective, start, monitor), posed.objective)

    def _minimize(self, objective: Any, start: Array, monitor: Monitor) -> Solution:
        monitor.begin()
        return self._optimizer().minimize(objective, start, monitor)

    def _optimizer(self) -> Optimizer:
        """The optimizer asked for, with the guidance and the bounds asked for."""
        asked = self._default_optimizer if self.optimizer is None else self.optimizer
        optimizer = resolve_optimizer(asked)
        if self.guidance is not None:
            optimizer = optimizer.with_filter(resolve_guidance(self.guidance))
        max_iter = None if self.max_iter is None else check_count("max_iter", self.max_iter)
        tol = None if self.tol is None else check_nonnegative("tol", self.tol)
        return optimizer.with_stopping(max_iter, tol)

    def _check_search(self) -> None:
        """Refuse what makes no search, before the work on the data."""
        check_option("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_count("callback_every", self.callback_every)
        if not (self.callback is None or callable(self.callback)):
            raise TypeError(f"callback={self.callback!r} must be callable; pass a function or None")

    def _monitor(self) -> Monitor:
        ticker = ProgressReporter(type(self).__name__, None, bool(self.verbose))
        hook = self._tell_scikit_learn if hasattr(self, "_callback_fit_ctx") else None
        return Monitor(self.callback, self.callback_every, ticker, hook)

    def _tell_scikit_learn(self, iterate: Iterate) -> bool:
        """Tell scikit-learn's callbacks of a step; whether one of them asks to stop."""
        task = self._callback_fit_ctx.subcontext(task_name="step")
        task.call_on_fit_task_begin(estimator=self)
        return bool(task.call_on_fit_task_end(estimator=self))

    def _store(self, posed: Any, found: Found, monitor: Monitor) -> None:
        solution = found.solution
        self.embedding_ = solution.embedding.astype(posed.data.dtype, copy=False)
        self.loss_ = self._loss(found)
        self.trace_ = monitor.trace
        self.n_iter_, self.n_evaluations_ = monitor.n_iter, monitor.n_evaluations
        self.converged_ = solution.converged
        self.status_ = _STOPPED if monitor.stopped else solution.status
        self._warn_of(solution)

    def _loss(self, found: Found) -> float:
        """The objective at the map."""
        if found.solution.interrupted:  # maybe at another objective, on the way to this one
            return float(found.objective.value(found.solution.embedding))
        return found.solution.value

    def _warn_of(self, solution: Solution) -> None:
        """Say so where the search did not come to rest, or where the map is flat."""
        if solution.converged:
            warn_if_flat(solution.embedding, self._remedy)
        elif self._must_converge and not solution.interrupted:
            warn(
                f"{type(self).__name__} did not converge: {solution.status}; {self._to_converge}",
                ConvergenceWarning,
            )


def warn_if_flat(Y: Array, remedy: str) -> None:
    """Say so where a map extends along fewer directions than it has coordinates."""
    extends = rank(Y)
    if extends == 0:
        warn(f"the map has collapsed to one point; {remedy}", RankWarning)
    elif extends < Y.shape[1]:
        warn(
            f"the map extends along {extends} of n_components={Y.shape[1]} directions "
            f"only; scale or leave out outliers, if they are the cause, or {remedy}",
            RankWarning,
        )


def check_homotopy(homotopy: Any) -> None:
    """Refuse what is no homotopy."""
    if not isinstance(homotopy, bool | np.bool_ | Homotopy | None):
        count = isinstance(homotopy, Integral) and int(homotopy) > 1  # meant as a number of steps
        instead = f"Homotopy(n_steps={homotopy})" if count else "True"
        raise TypeError(
            f"homotopy={homotopy!r} must be True, False or a Homotopy; pass homotopy={instead}"
        )
