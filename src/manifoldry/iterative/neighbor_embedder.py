"""Estimators that set attraction between neighbours against repulsion between all points."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.entropic import (
    Entropic,
    EntropicWeights,
    default_perplexity,
    neighbors_for,
)
from manifoldry.exceptions import (
    DisconnectedGraphWarning,
    UniformAffinityWarning,
)
from manifoldry.extension.base import Extension
from manifoldry.extension.frozen import FrozenExtension, FrozenMap
from manifoldry.iterative.base import IterativeEmbedder
from manifoldry.iterative.monitor import Monitor
from manifoldry.iterative.start import check_init, starting_map, warn_if_too_large
from manifoldry.neighbors.base import Edges
from manifoldry.neighbors.graph import NeighborGraph, replace_edges
from manifoldry.objectives.bifurcation import Bifurcation
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.repulsion import UniformRepulsion
from manifoldry.objectives.scale import best_scale
from manifoldry.optimize.homotopy import Homotopy, Walk
from manifoldry.optimize.solution import Solution
from manifoldry.spectral.graph_embedder import all_coincide
from manifoldry.util.checks import as_generator
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.warn import warn

_JUST_BEYOND = 1.05  # of the critical weight, at which homotopies begin
_FAINT = 1e-4  # share of the last weight at which they begin where none is critical
_FEW = 5  # points that need no homotopy
# Share of the others beyond which the nearest is hardly more probable than the farthest: by a
# factor of 4 to 11 in three sets of 100 points, where at a third of the others it is thousands.
_NEARLY_ALL = 0.9
_NEGLIGIBLE = 1e-10  # probability of a neighbour that might as well be none
_OPENING = 1e-2  # size of the map there
_NO_EDGES = (
    "no two of the {} points are neighbours in the graph that was passed; build it with more "
    "neighbours, three times the perplexity, or a greater radius"
)
_DENSE_AFFINITY = 5000  # points up to which learned affinities are a matrix of all pairs


class NeighborEmbedder(IterativeEmbedder):
    """Base of SNE, symmetric SNE, t-SNE and the elastic embedding.

    Attributes
    ----------
    perplexity_ : float
        The perplexity in use.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The weights of attraction, which sum to one.
    bifurcation_ : Bifurcation
        The weight of repulsion at which the map leaves one point, with the published bounds; made
        when asked for.
    learned_affinity_ : array or sparse array of shape (n_samples, n_samples)
        Attraction minus repulsion at the map, made when asked for; dense up to 5000 points, on the
        edges of ``affinity_`` beyond. Near neighbours attract, those at some distance repel.
    """

    perplexity: float | None

    # Where the search begins, and the homotopy that it follows, unless the user says otherwise.
    _default_init = "spectral"
    _default_homotopy: Homotopy | None = None
    # Neighbours whose places new points try, beside the mean of all.
    _n_starts = 1
    # Whether places outside the map are tried too.
    _starts_outside = False
    _weights: EntropicWeights
    _objective: Pairwise
    _bifurcation: Bifurcation | None

    def _pose(self, data: Any) -> Pairwise:
        graph = self._graph = self._unconnected(data)
        self.search_ = graph.search
        if len(graph.distances) == 0:
            raise ValueError(_NO_EDGES.format(graph.n_query))
        if not graph.distances.any():
            raise ValueError(all_coincide(graph.n_query, "perplexity"))
        few = float(np.median(np.diff(graph.indptr)))  # neighbours, where the graph was given
        self._weights = Entropic(self._perplexity(graph.n_query, few)).fit(graph)
        self.perplexity_ = self._weights.perplexity
        warn_of_pieces(telling_edges(graph, self._weights))
        self._rng = as_generator(self.random_state, unset=0)
        self.affinity_ = joint(self._weights.conditional(graph))
        self._bifurcation = None
        objective = self._state(data)
        if self.perplexity is not None:
            warn_of_uniformity(objective, self.perplexity_)
        return objective

    @abstractmethod
    def _state(self, data: Any) -> Pairwise:
        """The objective, from the affinities."""

    def _perplexity(self, n: int, n_neighbors: float) -> float:
        """What was asked for, or what suits the method, `n` points and as many neighbours."""
        if self.perplexity is not None:
            return self.perplexity
        return min(self._default_perplexity(n), default_perplexity(n_neighbors))

    def _default_neighbors(self, n: int) -> int:
        return neighbors_for(self._perplexity(n, n - 1), n)

    @abstractmethod
    def _default_perplexity(self, n: int) -> float:
        """The perplexity that suits `n` points."""

    def _start(self, data: Any, objective: Any) -> Array:
        shape = (objective.n, self.n_components_)
        init = check_init(self._init(data), shape)
        if self._follows:
            return self._opening(objective)
        if isinstance(init, np.ndarray):
            warn_if_too_large(init, objective)
            return init
        Y = starting_map(init, self._seen(data), shape[1], self._rng)
        return self._scaled(objective, Y)

    def _init(self, data: Any) -> Any:
        """What was asked for as a start, or what suits the method."""
        return self._default_init if self.init is None else self.init

    @property
    def _follows(self) -> bool:
        # A start that was asked for is not to be passed over, and guidance is for a single search.
        if self.homotopy is None and self.init is None and self.guidance is None:
            return self._default_homotopy is not None and self._graph.n_query > _FEW
        return bool(self.homotopy)

    @property
    def _homotopy(self) -> Homotopy:
        if isinstance(self.homotopy, Homotopy):
            return self.homotopy
        return self._default_homotopy or Homotopy()

    def _scaled(self, objective: Any, Y: Array) -> Array:
        """A start of given shape at the size at which it costs least."""
        return best_scale(objective, Y) * Y

    def _opening(self, objective: Any) -> Array:
        """The collapsed map as it begins to open, unless the homotopy has a start of its own."""
        start = self._homotopy.start(objective, self.n_components_, self._rng)
        if start is not None:
            return start
        return _OPENING * np.sqrt(objective.n) * self.bifurcation_.directions

    def _first_weight(self, objective: Any) -> float:
        """Where a homotopy begins."""
        # Pieces of the graph that nothing holds together part at any weight.
        first = min(_JUST_BEYOND * self.bifurcation_.weight, objective.weight)
        return first or _FAINT * objective.weight

    def _follow(self, objective: Any, start: Array, monitor: Monitor) -> Solution:
        walk = self._walk(objective, start, monitor)
        first = self._first_weight(objective)
        solution = walk.rule.follow(walk, walk.rule.values_between(first, objective.weight))
        self.path_ = walk.path
        return solution

    def _walk(self, objective: Any, start: Array, monitor: Monitor) -> Walk:
        return self._homotopy.walk(
            objective.with_weight,
            start,
            self._optimiser(self._default_optimizer),
            self._rng,
            monitor,
            monitor.begin,
        )

    @property
    def bifurcation_(self) -> Bifurcation:
        if self._bifurcation is None:
            self._bifurcation = Bifurcation.of(self._objective, self.n_components_)
        return self._bifurcation

    _remedy = "pass a smaller perplexity"

    def _extend(self, data: Any) -> Extension:
        objective = self._objective
        Y = self.embedding_.astype(np.float64)
        problem = objective.for_new_points(Y)
        frozen = FrozenMap(Y, problem, self._n_starts, self._starts_outside)
        del self._rng  # it may be the caller's
        rows = ConditionalRows(self._graph, self._weights)
        return FrozenExtension(frozen, rows, problem.charges)

    @property
    def learned_affinity_(self) -> Any:
        Y = self.embedding_.astype(np.float64)
        objective = self._objective.released()  # its weights of all pairs go when this is done
        if objective.n <= _DENSE_AFFINITY:
            return objective.learned_affinity(Y)
        return objective.learned_affinity_edges(Y, self.affinity_)

    def _identical(self, data: Matrix) -> IntArray:
        return self._graph.identical(data)


@dataclass(frozen=True, eq=False)
class ConditionalRows:
    """Probabilities with which new points pick training points as neighbours."""

    graph: NeighborGraph
    weights: EntropicWeights

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return self.graph.n_reference

    def rows(self, X: Matrix) -> sparse.csr_array:
        """Probabilities p(j|x), (n_new, n_train)."""
        return self.weights.conditional(self.graph.query(X)[0])


def telling_edges(graph: NeighborGraph, weights: EntropicWeights) -> NeighborGraph:
    """The graph without edges so faint that a search cannot tell them from none.

    Points with more neighbours than their cluster has members reach into others, all the same.
    """
    edges = Edges(graph.indptr, graph.indices, graph.distances)
    told = weights.exponents(graph, graph) < -np.log(_NEGLIGIBLE)
    return replace_edges(graph, edges.keep(told))


def warn_of_pieces(graph: NeighborGraph) -> None:
    """Say so where nothing but repulsion decides how far parts of the map lie from each other."""
    count, _ = graph.components()
    if count > 1:
        warn(
            f"the neighbour graph falls into {count} pieces, which nothing attracts to each other: "
            "how they lie on the map says little; raise perplexity to join them",
            DisconnectedGraphWarning,
        )


def warn_of_uniformity(objective: Pairwise, perplexity: float) -> None:
    """Say so where points attract, and repel, all others nearly alike: then the data hardly count.

    Repulsion that follows the data, such as that of the elastic embedding, makes up for it.
    """
    others = objective.n - 1
    known = not isinstance(objective.repulsion, UniformRepulsion)
    bound = max(1.0, _NEARLY_ALL * others)
    if perplexity > bound and not known:
        warn(
            f"perplexity={perplexity:g} exceeds {bound:g}, nine tenths of the other points: nearly "
            "all are neighbours alike, and the map says little about the data; pass "
            f"perplexity={default_perplexity(others):.2g} or so",
            UniformAffinityWarning,
        )


def joint(P: sparse.csr_array) -> sparse.csr_array:
    """Joint probabilities of pairs from those with which each point picks the other."""
    W = sparse.csr_array(P + P.T)
    return W / W.sum()
