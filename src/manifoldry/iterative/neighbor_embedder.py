"""Base class of estimators with attraction between neighbors and repulsion between all points."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.base import Affinity
from manifoldry.affinity.entropic import Entropic, default_perplexity, neighbors_for
from manifoldry.affinity.resolve import resolve_affinity
from manifoldry.base.distributed import DistributedFit
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.device import Device
from manifoldry.distributed.rows import Rows
from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.extension.affinity_rows import AffinityRows, ProbabilityRows
from manifoldry.extension.new_points import NewPointOptimizer, OptimizedExtension
from manifoldry.iterative.base import IterativeEmbedder, PosedSearch, SearchResult
from manifoldry.iterative.distributed import refined_fit
from manifoldry.iterative.forecast import Phase
from manifoldry.iterative.monitor import Monitor
from manifoldry.iterative.neighbor_weights import (
    Neighbors,
    check_edges,
    warn_of_components,
    warn_of_few_neighbors,
    warn_of_uniformity,
)
from manifoldry.iterative.start import (
    check_init,
    is_fitted,
    map_of_model,
    starting_map,
    warn_if_too_large,
    well_scaled,
)
from manifoldry.objectives.bifurcation import Bifurcation
from manifoldry.objectives.fastest import Fastest
from manifoldry.objectives.pair_kernel import MAX_COMPILED_DIMENSION
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.scale import best_scale
from manifoldry.optimize.homotopy import Homotopy, HomotopyRun
from manifoldry.optimize.optimizer import Callback, Iterate, Optimizer
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import as_generator
from manifoldry.util.memory import memory_remedy
from manifoldry.util.typing import Array, RandomState

# By default more points than this start from principal components: the eigenproblem of a graph of
# so many with close eigenvalues may take longer than the search.
MAX_SPECTRAL_START = 200_000


@dataclass(frozen=True, eq=False)
class PosedNeighbors(PosedSearch):
    """An objective with attraction between neighbors and repulsion between all points."""

    objective: Pairwise
    neighbors: Neighbors
    n_components: int

    @cached_property
    def bifurcation(self) -> Bifurcation:
        """The weight of repulsion at which the embedding stops being a single point."""
        return Bifurcation.of(self.objective, self.n_components)

    def start_beyond_bifurcation(self, size: float = 1e-2) -> Array:
        """The embedding just beyond the bifurcation, with root mean square radius `size`."""
        return size * np.sqrt(self.objective.n) * self.bifurcation.directions

    def first_weight(self, beyond: float = 1.05, fraction: float = 1e-4) -> float:
        """The first weight of a homotopy: just beyond the critical weight.

        If the critical weight is zero, because the graph is not connected, a small fraction of the
        last weight.
        """
        last = self.objective.weight
        return min(beyond * self.bifurcation.weight, last) or fraction * last


@shared_docs
class NeighborEmbedder(IterativeEmbedder):
    """Base class of SNE, symmetric SNE, t-SNE and the elastic embedding.

    A subclass returns its objective from ``_objective(neighbors, affinity)``: a
    :class:`~manifoldry.objectives.Pairwise` of the attraction weights `affinity`, which sum to one.
    Gradients, optimizers, homotopies, new points and the inverse follow from it.

    Parameters
    ----------
    {n_components}
    {sne_perplexity}
    {sne_affinity}
    {sne_gamma}
    {metric}
    {metric_params}
    {sne_init}
    {sne_optimizer}
    {extension}
    {regression_inverse}
    {max_iter}
    {callback}
    {verbose}
    {random_start}
    {n_jobs}
    {device}

    Attributes
    ----------
    {perplexity_}
    affinity_ : sparse array of shape (n_samples, n_samples)
        The weights of attraction, which sum to one.
    {path_}
    {objective_}
    {bifurcation_}
    {learned_affinity_}

    See Also
    --------
    manifoldry.SNE, manifoldry.SymmetricSNE, manifoldry.TSNE : subclasses.
    manifoldry.objectives.Pairwise : what ``_objective`` returns.
    IterativeEmbedder : base class of methods of any form.

    Examples
    --------
    t-SNE with half the repulsion:

    >>> import numpy as np
    >>> from manifoldry.iterative import NeighborEmbedder
    >>> from manifoldry.objectives import Joint, Pairwise, StudentKernel
    >>> class Compact(NeighborEmbedder):
    ...     def _objective(self, neighbors, affinity):
    ...         return Pairwise(affinity, StudentKernel(), Joint(), weight=0.5)
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> model = Compact(init="pca", max_iter=200).fit(X)
    >>> model.embedding_.shape, model.transform(X[:2] + 0.1).shape
    ((40, 2), (2, 2))
    """

    objective_: Pairwise
    _bifurcation: Bifurcation | None

    # Parameters that not all subclasses have.
    perplexity: float | None = None
    affinity: str | Affinity | None = None
    gamma: float | None = None
    _default_optimizer: str | Optimizer = "spectral-lbfgs"
    _default_init = "spectral"
    # The parameter of a homotopy, for the progress report.
    _parameter_name = "λ"
    _remedy = "pass a weight of repulsion above bifurcation_.weight, or a smaller perplexity"
    # New points start from this many neighbors besides their mean, and possibly outside the map.
    _n_starts = 1
    _starts_outside = False
    # Maximum number of points without a homotopy, and with a dense `learned_affinity_`.
    _few = 5
    _dense_affinity = 5000

    def __init__(
        self,
        n_components: int | None = None,
        *,
        perplexity: float | None = None,
        affinity: str | Affinity | None = None,
        gamma: float | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = None,
        optimizer: str | Optimizer | Homotopy | None = None,
        extension: Any = None,
        inverse: Any = None,
        max_iter: int | None = None,
        callback: Callable[[Iterate], Any] | Callback | None = None,
        verbose: bool = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.affinity = affinity
        self.gamma = gamma
        self.metric = metric
        self.metric_params = metric_params
        self.init = init
        self.optimizer = optimizer
        self.extension = extension
        self.inverse = inverse
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def _pose(self, data: Input) -> PosedNeighbors:
        with memory_remedy(self._fewer_neighbors):
            graph = self._neighbor_graph(data)
        self.neighbor_search_ = graph.search
        check_edges(graph)
        degree = float(np.median(np.diff(graph.indptr)))  # of a graph that was passed
        weights = self._affinity_rule(graph.n_query, degree).fit(graph)
        self.perplexity_ = getattr(weights, "perplexity", None)
        if self.perplexity_ is not None and self.affinity is None:
            usual = self._perplexity(graph.n_query, graph.n_query - 1)
            warn_of_few_neighbors(self.perplexity_, usual, degree)
        neighbors = Neighbors(data, graph, weights)
        remedy = "lower gamma" if self.perplexity_ is None else "raise perplexity"
        warn_of_components(neighbors.n_components, remedy)
        self.affinity_ = affinity = self._affinity(neighbors)
        objective = self._objective(neighbors, affinity)
        if not isinstance(objective, Pairwise):
            raise TypeError(
                f"{type(self).__name__}._objective must return a manifoldry.objectives.Pairwise, "
                f"not {objective!r}"
            )
        if self.perplexity is not None and self.perplexity_ is not None:
            warn_of_uniformity(objective, self.perplexity_)
        rng = as_generator(self.random_state, unset=0)
        return PosedNeighbors(data, graph, objective, rng, neighbors, self.n_components_)

    def _affinity(self, neighbors: Neighbors) -> sparse.csr_array:
        """The weights of attraction of all pairs."""
        return neighbors.joint.matrix

    @abstractmethod
    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        """The objective, given the weights of attraction of all pairs.

        `affinity` is symmetric and sums to one; the rows of ``neighbors.conditional``, the neighbor
        probabilities of each point, sum to one.
        """

    def _perplexity(self, n: int, n_neighbors: float) -> float:
        """The requested perplexity, or the default for `n` points and `n_neighbors` neighbors."""
        if self.perplexity is not None:
            return self.perplexity
        return min(self._default_perplexity(n), default_perplexity(n_neighbors))

    def _affinity_rule(self, n: int, n_neighbors: float) -> Affinity:
        """The affinity that the parameters describe, by default entropic."""
        default = Entropic(self._perplexity(n, n_neighbors))
        rule = resolve_affinity(self.affinity, self.gamma, default)
        if rule is not default and self.perplexity is not None:
            raise ValueError(
                f"perplexity={self.perplexity} is not used by {rule}; pass no perplexity, or "
                "affinity=manifoldry.affinity.Entropic(perplexity)"
            )
        return rule

    def _default_neighbors(self, n: int) -> int:
        """All other points for a Gaussian of given width, else as many as the affinity needs."""
        rule = self._affinity_rule(n, n - 1)
        if rule.has_given_width:
            return n - 1
        return rule.neighbors(n) or neighbors_for(self._perplexity(n, n - 1), n)

    @property
    def _fewer_neighbors(self) -> str:
        """How to get a graph with fewer neighbors."""
        if self.affinity is None and self.gamma is None:
            return "pass a smaller perplexity"
        return "pass a NeighborGraph with fewer neighbors to fit"

    def _default_perplexity(self, n: int) -> float:
        """The default perplexity for `n` points."""
        return 10.0

    def _start(self, posed: PosedNeighbors) -> Array:
        shape = (posed.objective.n, self.n_components_)
        init = check_init(self._init(posed.data), shape)
        if self._follows_homotopy(posed):
            warn_if_unused(self.init)
            start = self._homotopy_rule().start(posed.objective, shape[1], posed.rng)
            return posed.start_beyond_bifurcation() if start is None else start
        if isinstance(init, np.ndarray):
            warn_if_too_large(init, posed.objective.value)
            return init
        if is_fitted(init):
            return self._from_model(posed.objective, map_of_model(init, posed.data, shape[1]))
        Y = starting_map(init, posed.data, posed.graph, shape[1], posed.rng)
        return self._scaled(posed.objective, Y)

    def _init(self, data: Input) -> Any:
        """The requested `init`, or the default, which is linear for very many points."""
        if self.init is not None:
            return self.init
        many = data.points is not None and data.points.shape[0] > MAX_SPECTRAL_START
        return "pca" if many else self._default_init

    def _scaled(self, objective: Pairwise, Y: Array) -> Array:
        """The start, scaled to the smallest value of the objective."""
        return best_scale(objective, Y) * Y

    def _from_model(self, objective: Pairwise, Y: Array) -> Array:
        """The start from the map of a fitted model."""
        return well_scaled(Y, best_scale(objective, Y), objective.value)

    def _follows_homotopy(self, posed: PosedNeighbors) -> bool:
        """Whether the search follows a homotopy: by default unless a start is requested."""
        if self.optimizer is None and self.init is None:
            return self._default_homotopy is not None and posed.graph.n_query > self._few
        return self._homotopy() is not None

    def _homotopy_rule(self) -> Homotopy:
        """The requested homotopy, or the default."""
        return self._homotopy() or self._default_homotopy or Homotopy()

    def _search(self, posed: PosedNeighbors, start: Array, monitor: Monitor) -> SearchResult:
        objective = posed.objective
        if not self._follows_homotopy(posed):
            return SearchResult(self._minimize(objective, start, monitor), objective)
        run = self._run(posed, start, monitor)
        weights = run.homotopy.values_between(self._first_weight(posed), objective.weight)
        return SearchResult(run.homotopy.follow(run, weights), objective, run.path)

    def _phases(self, posed: PosedNeighbors, start: Array) -> list[Phase]:
        if not self._follows_homotopy(posed):
            return super()._phases(posed, start)
        return [Phase.homotopy("homotopy", self._homotopy_rule(), self._parameter_name)]

    def _first_weight(self, posed: PosedNeighbors) -> float:
        """The first weight of a homotopy."""
        return posed.first_weight()

    def _run(self, posed: PosedNeighbors, start: Array, monitor: Monitor) -> HomotopyRun:
        return self._homotopy_rule().run(
            posed.objective.with_weight,
            start,
            monitor.resumable(self._optimizer()),
            posed.rng,
            monitor,
            monitor.begin,
        )

    def _store(self, posed: PosedNeighbors, result: SearchResult, monitor: Monitor) -> None:
        super()._store(posed, result, monitor)
        self.path_ = result.path
        self.pairs_ = result.objective.pairs_reason(self.embedding_)
        self.objective_ = result.objective.without_cache()
        self._bifurcation = None

    def _extend(self, posed: PosedNeighbors, result: SearchResult) -> OptimizedExtension:
        Y = self.embedding_.astype(np.float64)
        problem = self.objective_.for_new_points(Y)
        optimizer = NewPointOptimizer(Y, problem, self._n_starts, self._starts_outside)
        rows = self._new_rows(posed.neighbors)
        return OptimizedExtension(optimizer, rows, problem.new_point_weights)

    def _new_rows(self, neighbors: Neighbors) -> AffinityRows:
        """The object that computes the affinities of new points: neighbor probabilities."""
        return ProbabilityRows(neighbors.graph, neighbors.weights)

    def _fit_refined(self, rows: Rows) -> DistributedFit:
        """Fit a sample of distributed rows, place the others, and move all of them."""
        n = rows.n_samples
        n_neighbors = self._default_neighbors(n)
        return refined_fit(self, rows, n_neighbors, self._affinity_rule(n, n_neighbors))

    def _growth_of_time(self, n: int) -> float:
        exact = self.n_components_ > MAX_COMPILED_DIMENSION or n <= Fastest.exact_up_to
        return 2.0 if exact else 1.2  # graph and search included

    @property
    def bifurcation_(self) -> Bifurcation:
        """Critical weight of the repulsion, below which all points coincide."""
        if self._bifurcation is None:
            self._bifurcation = Bifurcation.of(self.objective_, self.n_components_)
        return self._bifurcation

    @property
    def learned_affinity_(self) -> Any:
        """Attraction minus repulsion of every pair at the embedding."""
        Y = self.embedding_.astype(np.float64)
        objective = self.objective_.without_cache()
        if objective.n <= self._dense_affinity:
            return objective.learned_affinity(Y)
        return objective.learned_affinity_edges(Y, self.affinity_)


def warn_if_unused(init: Any) -> None:
    """Warn that a homotopy, which has its own start, does not use `init`."""
    if init is not None:
        name = repr(init) if isinstance(init, str) else f"a {type(init).__name__}"
        warn(
            f"init={name} is not used, because a homotopy has its own start; pass "
            "optimizer='spectral-lbfgs' for a single search from init",
            ManifoldryWarning,
        )
