"""Estimators that set attraction between neighbors against repulsion between all points."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.entropic import (
    Entropic,
    EntropicWeights,
    default_perplexity,
    neighbors_for,
)
from manifoldry.base.input import Input
from manifoldry.exceptions import DisconnectedGraphWarning, UniformAffinityWarning
from manifoldry.extension.new_points import NewPointOptimizer, OptimizedExtension
from manifoldry.iterative.base import Found, IterativeEmbedder, PosedSearch, check_homotopy
from manifoldry.iterative.monitor import Callback, Monitor
from manifoldry.iterative.start import check_init, starting_map, warn_if_too_large
from manifoldry.neighbors.base import Edges
from manifoldry.neighbors.graph import NeighborGraph, replace_edges
from manifoldry.objectives.bifurcation import Bifurcation
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.repulsion import UniformRepulsion
from manifoldry.objectives.scale import best_scale
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.homotopy import Homotopy, Walk
from manifoldry.optimize.optimizer import Optimizer
from manifoldry.spectral.posed import all_coincide_message
from manifoldry.util.checks import as_generator
from manifoldry.util.typing import Array, Matrix, RandomState
from manifoldry.util.warn import warn


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The data, their graph, and the probabilities with which points pick each other on it."""

    data: Input
    graph: NeighborGraph
    weights: EntropicWeights
    negligible: float = 1e-10  # probability of a neighbor that a search cannot tell from none

    @property
    def conditional(self) -> sparse.csr_array:
        """Probabilities p(j|i), whose rows sum to one."""
        return self.weights.conditional(self.graph)

    @cached_property
    def strong(self) -> NeighborGraph:
        """The graph without edges so improbable that they would not hold anything together."""
        edges = Edges(self.graph.indptr, self.graph.indices, self.graph.distances)
        kept = self.weights.exponents(self.graph, self.graph) < -np.log(self.negligible)
        return replace_edges(self.graph, edges.keep(kept))


@dataclass(frozen=True, eq=False)
class PosedNeighbors(PosedSearch):
    """Attraction between neighbors, and repulsion between all points."""

    objective: Pairwise
    weights: EntropicWeights
    n_components: int

    @cached_property
    def bifurcation(self) -> Bifurcation:
        """Where the map leaves one point."""
        return Bifurcation.of(self.objective, self.n_components)

    def opening(self, size: float = 1e-2) -> Array:
        """The collapsed map as it begins to open, of that root mean square radius."""
        return size * np.sqrt(self.objective.n) * self.bifurcation.directions

    def first_weight(self, beyond: float = 1.05, faint: float = 1e-4) -> float:
        """Where a homotopy begins: just beyond the critical weight.

        Or, where none is critical since nothing holds the graph together, at a faint fraction of
        the last weight.
        """
        last = self.objective.weight
        return min(beyond * self.bifurcation.weight, last) or faint * last


class NeighborEmbedder(IterativeEmbedder):
    """Base of SNE, symmetric SNE, t-SNE and the elastic embedding.

    Attributes
    ----------
    perplexity_ : float
        The perplexity in use.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The weights of attraction, which sum to one.
    path_ : Path or None
        The maps along a homotopy; None where there was none.
    objective_ : Pairwise
        What the map minimizes.
    bifurcation_ : Bifurcation
        The weight of repulsion at which the map leaves one point, with the published bounds; made
        when asked for.
    learned_affinity_ : array or sparse array of shape (n_samples, n_samples)
        Attraction minus repulsion at the map, made when asked for; dense up to 5000 points, on the
        edges of ``affinity_`` beyond. Near neighbors attract, those at some distance repel.
    """

    objective_: Pairwise
    _bifurcation: Bifurcation | None

    # What is used unless the user says otherwise.
    _default_optimizer: str | Optimizer = "spectral-lbfgs"
    _default_init = "spectral"
    _default_homotopy: Homotopy | None = None
    _remedy = "pass a smaller perplexity"
    # Neighbors whose places new points try, beside the mean of all; and places outside the map.
    _n_starts = 1
    _starts_outside = False
    # Points that need no homotopy, and up to which learned affinities are a matrix of all pairs.
    _few = 5
    _dense_affinity = 5000

    def __init__(
        self,
        n_components: int | None = None,
        *,
        perplexity: float | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = None,
        optimizer: str | Optimizer | None = None,
        guidance: str | Filter | None = None,
        homotopy: bool | Homotopy | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        callback_every: int = 1,
        verbose: bool = False,
        on_interrupt: str = "raise",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.metric = metric
        self.metric_params = metric_params
        self.init = init
        self.optimizer = optimizer
        self.guidance = guidance
        self.homotopy = homotopy
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.callback = callback
        self.callback_every = callback_every
        self.verbose = verbose
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _pose(self, data: Input) -> PosedNeighbors:
        graph = self._neighbor_graph(data)
        self.neighbor_search_ = graph.search
        check_edges(graph)
        few = float(np.median(np.diff(graph.indptr)))  # neighbors, where the graph was given
        weights = Entropic(self._perplexity(graph.n_query, few)).fit(graph)
        self.perplexity_ = weights.perplexity
        neighbors = Neighbors(data, graph, weights)
        warn_of_components(neighbors.strong)
        self.affinity_ = affinity = self._affinity(neighbors)
        objective = self._objective(neighbors, affinity)
        if self.perplexity is not None:
            warn_of_uniformity(objective, self.perplexity_)
        rng = as_generator(self.random_state, unset=0)
        return PosedNeighbors(data, graph, objective, rng, weights, self.n_components_)

    def _affinity(self, neighbors: Neighbors) -> sparse.csr_array:
        """The weights of attraction, of every pair."""
        return joint(neighbors.conditional)

    @abstractmethod
    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        """What is minimized, from the weights of attraction of every pair.

        They are symmetric and sum to one; ``neighbors.conditional`` has those of every point's own
        neighbors, whose rows sum to one.
        """

    def _perplexity(self, n: int, n_neighbors: float) -> float:
        """What was asked for, or what suits the method, `n` points and as many neighbors."""
        if self.perplexity is not None:
            return self.perplexity
        return min(self._default_perplexity(n), default_perplexity(n_neighbors))

    def _default_neighbors(self, n: int) -> int:
        return neighbors_for(self._perplexity(n, n - 1), n)

    def _default_perplexity(self, n: int) -> float:
        """The perplexity that suits `n` points."""
        return 10.0

    def _start(self, posed: PosedNeighbors) -> Array:
        shape = (posed.objective.n, self.n_components_)
        init = check_init(self._init(posed.data), shape)
        if self._follows(posed):
            start = self._homotopy.start(posed.objective, shape[1], posed.rng)
            return posed.opening() if start is None else start
        if isinstance(init, np.ndarray):
            warn_if_too_large(init, posed.objective)
            return init
        Y = starting_map(init, posed.data, posed.graph, shape[1], posed.rng)
        return self._scaled(posed.objective, Y)

    def _init(self, data: Input) -> Any:
        """What was asked for as a start, or what suits the method."""
        return self._default_init if self.init is None else self.init

    def _scaled(self, objective: Pairwise, Y: Array) -> Array:
        """A start of given shape at the size at which it costs least."""
        return best_scale(objective, Y) * Y

    def _follows(self, posed: PosedNeighbors) -> bool:
        """Whether the search follows a homotopy."""
        # A start that was asked for is not to be passed over, and guidance is for a single search.
        if self.homotopy is None and self.init is None and self.guidance is None:
            return self._default_homotopy is not None and posed.graph.n_query > self._few
        return bool(self.homotopy)

    @property
    def _homotopy(self) -> Homotopy:
        if isinstance(self.homotopy, Homotopy):
            return self.homotopy
        return self._default_homotopy or Homotopy()

    def _check_search(self) -> None:
        super()._check_search()
        self._optimizer()
        check_homotopy(self.homotopy)

    def _search(self, posed: PosedNeighbors, start: Array, monitor: Monitor) -> Found:
        objective = posed.objective
        if not self._follows(posed):
            return Found(self._minimize(objective, start, monitor), objective)
        walk = self._walk(posed, start, monitor)
        weights = walk.rule.values_between(self._first_weight(posed), objective.weight)
        return Found(walk.rule.follow(walk, weights), objective, walk.path)

    def _first_weight(self, posed: PosedNeighbors) -> float:
        """Where a homotopy begins."""
        return posed.first_weight()

    def _walk(self, posed: PosedNeighbors, start: Array, monitor: Monitor) -> Walk:
        return self._homotopy.walk(
            posed.objective.with_weight,
            start,
            self._optimizer(),
            posed.rng,
            monitor,
            monitor.begin,
        )

    def _store(self, posed: PosedNeighbors, found: Found, monitor: Monitor) -> None:
        super()._store(posed, found, monitor)
        self.path_ = found.path
        self.objective_ = found.objective.without_cache()
        self._bifurcation = None

    def _extend(self, posed: PosedNeighbors, found: Found) -> OptimizedExtension:
        Y = self.embedding_.astype(np.float64)
        problem = self.objective_.for_new_points(Y)
        optimizer = NewPointOptimizer(Y, problem, self._n_starts, self._starts_outside)
        return OptimizedExtension(
            optimizer, ConditionalRows(posed.graph, posed.weights), problem.new_point_weights
        )

    @property
    def bifurcation_(self) -> Bifurcation:
        if self._bifurcation is None:
            self._bifurcation = Bifurcation.of(self.objective_, self.n_components_)
        return self._bifurcation

    @property
    def learned_affinity_(self) -> Any:
        Y = self.embedding_.astype(np.float64)
        objective = self.objective_.without_cache()  # its weights of all pairs go when this is done
        if objective.n <= self._dense_affinity:
            return objective.learned_affinity(Y)
        return objective.learned_affinity_edges(Y, self.affinity_)


@dataclass(frozen=True, eq=False)
class ConditionalRows:
    """Probabilities with which new points pick training points as neighbors."""

    graph: NeighborGraph
    weights: EntropicWeights

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return self.graph.n_reference

    def rows(self, X: Matrix) -> sparse.csr_array:
        """Probabilities p(j|x), (n_new, n_train)."""
        return self.weights.conditional(self.graph.query(X)[0])


def check_edges(graph: NeighborGraph) -> None:
    """Refuse graphs that say nothing."""
    if len(graph.distances) == 0:
        raise ValueError(
            f"no two of the {graph.n_query} points are neighbors in the graph that was passed; "
            "build it with more neighbors, three times the perplexity, or a greater radius"
        )
    if not graph.distances.any():
        raise ValueError(all_coincide_message(graph.n_query, "perplexity"))


def warn_of_components(graph: NeighborGraph) -> None:
    """Say so where nothing but repulsion decides how far parts of the map lie from each other."""
    count, _ = graph.components()
    if count > 1:
        warn(
            f"the neighbor graph falls into {count} components, which nothing attracts to each other: "
            "how they lie on the map says little; raise perplexity to join them",
            DisconnectedGraphWarning,
        )


def warn_of_uniformity(objective: Pairwise, perplexity: float, nearly_all: float = 0.9) -> None:
    """Say so where points attract, and repel, all others nearly alike: then the data hardly count.

    Repulsion that follows the data, such as that of the elastic embedding, makes up for it.
    Beyond `nearly_all` of the others the nearest is hardly more probable than the farthest: by a
    factor of 4 to 11 in three sets of 100 points, where at a third of the others it is thousands.
    """
    others = objective.n - 1
    known = not isinstance(objective.repulsion, UniformRepulsion)
    bound = max(1.0, nearly_all * others)
    if perplexity > bound and not known:
        warn(
            f"perplexity={perplexity:g} exceeds {bound:g}, nine tenths of the other points: nearly "
            "all are neighbors alike, and the map says little about the data; pass "
            f"perplexity={default_perplexity(others):.2g} or so",
            UniformAffinityWarning,
        )


def joint(P: sparse.csr_array) -> sparse.csr_array:
    """Joint probabilities of pairs from those with which each point picks the other."""
    W = sparse.csr_array(P + P.T)
    return W / W.sum()
