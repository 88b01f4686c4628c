"""Base class of the estimators that minimize an objective: read, pose, search, extend, invert."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from manifoldry.base.docs import shared_docs
from manifoldry.base.embedder import Embedder
from manifoldry.base.input import Input, RowMatcher
from manifoldry.exceptions import ConvergenceWarning, RankWarning, warn
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.regression import regression_inverse
from manifoldry.extension.regressor import check_can_fit
from manifoldry.iterative.forecast import Forecast, Phase
from manifoldry.iterative.monitor import Monitor
from manifoldry.iterative.resume import ResumableSearches
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.optimize.homotopy import Homotopy, Path, rank
from manifoldry.optimize.optimizer import Callback, Iterate, Optimizer, Solution
from manifoldry.optimize.resolve import resolve_optimizer
from manifoldry.util.checks import check_count
from manifoldry.util.progress import ProgressReporter
from manifoldry.util.typing import Array
from manifoldry.util.validation import in_precision

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks
    CallbackSupportMixin = object

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


_INTERRUPTED = "interrupted"
_STOPPED = "stopped by a callback"


@dataclass(frozen=True, eq=False)
class PosedSearch:
    """The optimization problem of a method for given data: the objective and the graph."""

    data: Input
    graph: NeighborGraph
    objective: Any
    rng: np.random.Generator

    @property
    def row_matcher(self) -> RowMatcher | None:
        """Finds training points among new rows."""
        return self.graph


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of a search."""

    solution: Solution
    objective: Any
    """The objective that the embedding minimizes; the search may have chosen its weight."""
    path: Path | None = None
    """The embeddings along a homotopy, None without one."""


@shared_docs
class IterativeEmbedder(Embedder, CallbackSupportMixin):
    """Base class of the estimators whose coordinates minimize an objective.

    A subclass defines the objective in ``_pose``, the starting point in ``_start``, the search in
    ``_search`` and the out-of-sample extension in ``_extend``.

    Attributes
    ----------
    {n_components_}
    {embedding_}
    loss_ : float
        Value of the objective at the embedding.
    {converged_}
    {status_}
    {n_iter_}
    trace_ : structured array
        One entry per step, and one for the start of every search if there are several:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and the ``parameter`` that differs between the searches.
    {neighbor_search_}

    See Also
    --------
    NeighborEmbedder : base class of methods with attraction and repulsion.
    manifoldry.UKR : a method of another form.
    manifoldry.spectral.SpectralEmbedder : the counterpart for eigenvectors.

    Examples
    --------
    All iterative estimators say whether and why their search ended:

    >>> import numpy as np
    >>> from manifoldry import SymmetricSNE
    >>> from manifoldry.iterative import IterativeEmbedder
    >>> issubclass(SymmetricSNE, IterativeEmbedder)
    True
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> model = SymmetricSNE(init="pca").fit(X)
    >>> model.converged_, model.status_
    (True, 'steps change the embedding by less than tol=1e-05 of its size')
    >>> bool(model.trace_["value"][-1] < model.trace_["value"][0])
    True
    """

    n_components_: int

    # Parameters of the search, with the values that an estimator without them uses.
    init: Any = None
    optimizer: Any = None
    max_iter: int | None = None
    callback: Any = None
    verbose: bool = False
    random_state: Any = None

    # By default the graph has as many neighbors as the method needs.
    n_neighbors: int | None = None
    radius: float | None = None
    _accepts_graphs = True
    # By name: local regression, the default unless the method has an inverse of its own.
    _named_inverses: tuple[str, ...] = ("regression",)
    # The search if `optimizer` is None, and the homotopy of optimizer="homotopy".
    _default_optimizer: str | Optimizer
    _default_homotopy: Homotopy | None = None
    # Remedy for an embedding that has collapsed.
    _remedy: str
    # Whether to warn if the search did not converge, and the remedy.
    _must_converge = True
    _to_converge = "raise max_iter, or the tol of the optimizer's Stopping; see trace_"

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of `X`.

        After Ctrl-C the best embedding found so far is stored, with ``converged_ = False``, and
        KeyboardInterrupt is raised again unless ``callback=Callback(on_interrupt="keep")``.

        Parameters
        ----------
        X : array, sparse matrix, frame of shape (n_samples, n_features), or NeighborGraph
            The data, distances if ``metric="precomputed"``, or their neighbor graph.
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        self._check_search()  # before callbacks are called
        if hasattr(self, "_skl_callbacks"):
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self)
        super().fit(X)
        if hasattr(self, "_callback_fit_ctx"):
            self._callback_fit_ctx.call_on_fit_task_end(estimator=self)
        if self.status_ == _INTERRUPTED and Callback.of(self.callback).on_interrupt == "raise":
            raise KeyboardInterrupt
        return self

    def _fit(self, X: Any) -> None:
        data = self._read(X)
        searches = ResumableSearches.of(self, data)
        self.n_components_ = self._resolve_n_components(data)
        posed = self._pose(data)
        start = self._start(posed)
        with self._monitor(posed, start, searches) as monitor:
            result = self._search(posed, start, monitor)
            monitor.end(result.solution.status)
        self._store(posed, result, monitor)
        formula = self._extend(posed, result)
        invert = partial(self._invert, posed)
        self._set_extension_and_inverse(posed.data, posed.row_matcher, formula, invert)

    def _read(self, X: Any) -> Input:
        data, inverse = super()._read(X), getattr(self, "inverse", None)
        if isinstance(inverse, str):
            check_can_fit("inverse", inverse, data.points, data.description)
        return data

    @abstractmethod
    def _pose(self, data: Input) -> Any:
        """State the optimization problem."""

    @abstractmethod
    def _start(self, posed: Any) -> Array:
        """The embedding from which the search starts."""

    @abstractmethod
    def _search(self, posed: Any, start: Array, monitor: Monitor) -> SearchResult:
        """Search for the embedding."""

    @abstractmethod
    def _extend(self, posed: Any, result: SearchResult) -> Extension:
        """The object that computes the coordinates of new points."""

    def _invert(self, posed: Any) -> Inverse | None:
        """The object that computes data from coordinates."""
        return regression_inverse(self.embedding_, posed.data.points)

    def _minimize(self, objective: Any, start: Array, monitor: Monitor) -> Solution:
        monitor.begin()
        optimizer = monitor.resumable(self._optimizer(objective.n))
        return optimizer.minimize(objective, start, monitor)

    def _optimizer(self, n_samples: int | None = None) -> Optimizer:
        """The search, or that at each value of a homotopy, with the estimator's `max_iter`.

        The default of a method may depend on the number of points, once that is known.
        """
        homotopy = self._homotopy()
        requested = self.optimizer if homotopy is None else homotopy.optimizer
        optimizer = resolve_optimizer(self._default_optimizer if requested is None else requested)
        max_iter = None if self.max_iter is None else check_count("max_iter", self.max_iter)
        return optimizer.with_stopping(max_iter, None)

    def _homotopy(self) -> Homotopy | None:
        """The homotopy passed as `optimizer`, None for any other value."""
        if isinstance(self.optimizer, str) and self.optimizer == "homotopy":
            return self._default_homotopy or Homotopy()
        return self.optimizer if isinstance(self.optimizer, Homotopy) else None

    def _check_search(self) -> None:
        """Check the parameters of the search before the data are processed."""
        Callback.of(self.callback)
        self._optimizer()
        if self.init is self:  # get_params, and so clone and set_params, would never end
            raise ValueError(
                "init is this estimator itself; assign model.init = None, and pass the fitted "
                f"model to a new one, {type(self).__name__}(init=model)"
            )

    def _phases(self, posed: Any, start: Array) -> list[Phase]:
        """The searches of the fit, from which progress and time are predicted."""
        return [Phase.search("search", self._optimizer(posed.data.n_samples))]

    def _monitor(self, posed: Any, start: Array, searches: ResumableSearches | None) -> Monitor:
        progress = ProgressReporter(type(self).__name__, bool(self.verbose))
        forecast = Forecast(self._phases(posed, start))
        sklearn_callback = (
            self._call_sklearn_callbacks if hasattr(self, "_callback_fit_ctx") else None
        )
        callback, n = Callback.of(self.callback), posed.data.n_samples
        return Monitor(
            callback,
            progress,
            forecast,
            n,
            sklearn_callback,
            searches,
            growth=self._growth_of_time(n),
        )

    def _growth_of_time(self, n: int) -> float:
        """The power of n with which the time of a fit grows."""
        return 2.0

    def _call_sklearn_callbacks(self, iterate: Iterate) -> bool:
        """Call scikit-learn's callbacks after a step; return whether one of them stops it."""
        task = self._callback_fit_ctx.subcontext(task_name="step")
        task.call_on_fit_task_begin(estimator=self)
        return bool(task.call_on_fit_task_end(estimator=self))

    def _store(self, posed: Any, result: SearchResult, monitor: Monitor) -> None:
        solution = result.solution
        self.embedding_ = in_precision(solution.embedding, posed.data.dtype)
        self.loss_ = self._loss(result)
        self.trace_ = monitor.trace
        self.n_iter_, self.n_evaluations_ = monitor.n_iter, monitor.n_evaluations
        self.converged_ = solution.converged
        self.status_ = _STOPPED if monitor.stopped else solution.status
        self._warn_about(solution)

    def _loss(self, result: SearchResult) -> float:
        """The value of the objective at the embedding."""
        if result.solution.interrupted:  # its value may be that of another objective
            return float(result.objective.value(result.solution.embedding))
        return result.solution.value

    def _warn_about(self, solution: Solution) -> None:
        """Warn if the search did not converge, or if the embedding is degenerate."""
        if solution.converged:
            warn_if_flat(solution.embedding, self._remedy)
        elif self._must_converge and not solution.interrupted:
            warn(
                f"{type(self).__name__} did not converge: {solution.status}; {self._to_converge}",
                ConvergenceWarning,
            )


def warn_if_flat(Y: Array, remedy: str) -> None:
    """Warn if the rank of an embedding is less than its number of coordinates."""
    directions = rank(Y)
    if directions == 0:
        warn(f"the embedding has collapsed to one point; {remedy}", RankWarning)
    elif directions < Y.shape[1]:
        warn(
            f"the embedding has rank {directions}, less than n_components={Y.shape[1]}; remove or "
            f"rescale outliers, if they are the cause, or {remedy}",
            RankWarning,
        )
