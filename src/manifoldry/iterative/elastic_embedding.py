"""The elastic embedding."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.input import Input
from manifoldry.exceptions import DisconnectedGraphWarning
from manifoldry.iterative.base import Found
from manifoldry.iterative.elastic_weight import WeightSearch, in_own_units
from manifoldry.iterative.monitor import Callback, Monitor
from manifoldry.iterative.neighbor_embedder import (
    NeighborEmbedder,
    Neighbors,
    PosedNeighbors,
    joint,
)
from manifoldry.neighbors.disconnected import DisconnectedPolicy
from manifoldry.objectives.losses import elastic
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.squared_distance import squared_distance_weights
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.homotopy import Homotopy
from manifoldry.optimize.optimizer import Optimizer
from manifoldry.util.checks import check_option, check_positive
from manifoldry.util.typing import Array, RandomState


class ElasticEmbedding(NeighborEmbedder):
    """Balance springs between neighbors against repulsion between all points.

    Minimizes Σ W⁺ᵢⱼ‖yᵢ − yⱼ‖² + λ·Σ W⁻ᵢⱼ exp(−‖yᵢ − yⱼ‖²): Laplacian eigenmaps, with repulsion in
    place of constraints, so that no coordinate repeats another and the map fills its space evenly.
    It can be followed from the first unfolding to fine detail as λ grows (``homotopy``), and
    places new points by its own objective.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates; by default two, or what the data allow.
    perplexity : float, default=None
        Effective number of neighbors of every point; by default 20, or a third of the
        points if those are fewer. The graph has three times as many.
    weight : float or "auto", default="auto"
        The λ of repulsion, for weights W⁺ and W⁻ that each sum to one. ``"auto"`` follows the map
        as λ grows and takes the smallest at which the data can be predicted from the map as well
        as from the best, within two standard errors, leaving each point out. Errors of prediction
        are Euclidean, whatever the `metric`.
    repulsion : {"auto", "squared_distance", "uniform"} or matrix, default="auto"
        W⁻: proportional to the squared Euclidean distance in the data, which keeps a matrix of all
        pairs while it fits; the same between all pairs; or given, dense or sparse. By default
        squared distances for up to 20 000 points, if the data are known: their maps are better.
    metric : str or callable, default="euclidean"
        Metric of the neighbor graph; ``"precomputed"`` for dense distances or a sparse graph
        of distances.
    metric_params : dict, default=None
        Further arguments of the metric.
    init : {"spectral", "pca", "random"}, estimator or array, default=None
        Where the search begins: Laplacian eigenmaps, principal components, a small cloud, the map
        of any estimator, or a map of shape (n_samples, n_components) as it is. All but the last
        are scaled to where the objective is lowest. By default
        ``"spectral"``.
    optimizer : str or Optimizer, default=None
        What searches; see :func:`manifoldry.optimize.resolve_optimizer`. By
        default L-BFGS with the spectral direction.
    guidance : str or Filter, default=None
        A filter of the gradient that changes as the search goes on, see
        :func:`manifoldry.optimize.resolve_guidance`: it holds a map from a poor start to the
        smooth functions of the data first, in place of the optimizer's own filter. A good start
        needs none.
    homotopy : bool or Homotopy, default=False
        Begin where repulsion is so weak that the map is about to leave one point, and raise it
        step by step; see :class:`~manifoldry.optimize.Homotopy`, and
        :class:`~manifoldry.optimize.ConstrainedHomotopy` to begin at Laplacian eigenmaps. `init`
        is not used then.
    max_iter : int, default=None
        Most steps of the search, along a homotopy of each search; by default the optimizer's own.
    tol : float, default=None
        Converged when steps move the map by less than this fraction of its size; by default the
        optimizer's own.
    warm_start : bool, default=False
        Begin from the map of the last fit, if there is one; it must have as many points and
        coordinates. What comes before the search proper, such as a homotopy, is left out then, and
        a weight that was found is kept.
    callback : callable, default=None
        Called with an :class:`~manifoldry.optimize.Iterate`, that is the map and figures on the
        last step; a true result stops the search.
    callback_every : int, default=1
        Steps between two calls.
    verbose : bool, default=False
        Show the value and the gradient's norm as the search goes on.
    on_interrupt : {"raise", "keep"}, default="raise"
        After Ctrl-C the model has the best map so far either way; raise the interrupt again, or
        go on.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start; ``None`` is a fixed seed.
    n_jobs : int, default=None
        Threads, by default one per core; BLAS keeps its own number.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates in use.
    embedding_ : array of shape (n_samples, n_components)
        The map.
    extension_ : Extension
        Gives new points their coordinates.
    inverse_ : Inverse or None
        Leads from the map to the data; None where the data themselves were never seen.
    objective_ : Pairwise
        What the map minimizes.
    perplexity_ : float
        The perplexity in use.
    affinity_ : sparse array of shape (n_samples, n_samples)
        W⁺: symmetric, with sum one; with a spring between any components of the graph.
    weight_ : float
        The λ in use.
    loss_ : float
        The objective at the map, for λ = ``weight_``.
    converged_ : bool
        Whether the search came to rest.
    status_ : str
        Why the search stopped, in words.
    n_iter_, n_evaluations_ : int
        Steps of the search, and evaluations of the objective they took.
    trace_ : structured array
        One entry per step, and one for the start of every search of which the fit consists:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and ``parameter``, the λ of a homotopy or of the search for the best; NaN
        where there was neither. Values at different λ are of different objectives.
    path_ : Path or None
        The maps along a homotopy or the search for the best λ, which goes beyond ``weight_``;
        None where there was neither.
    bifurcation_ : Bifurcation
        The weight of repulsion at which the map leaves one point, with the published bounds; made
        when asked for.
    learned_affinity_ : array or sparse array of shape (n_samples, n_samples)
        Attraction minus repulsion at the map, made when asked for; dense up to 5000 points, on the
        edges of ``affinity_`` beyond.
    neighbor_search_ : str
        How neighbors were found, and why so; how many of them, where not all.

    Examples
    --------
    >>> from manifoldry import ElasticEmbedding
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(300, random_state=0)
    >>> model = ElasticEmbedding().fit(X)
    >>> model.embedding_.shape, model.converged_
    ((300, 2), True)
    >>> model.transform(X[:3] + 0.01).shape
    (3, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        perplexity: float | None = None,
        weight: float | str = "auto",
        repulsion: Any = "auto",
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = None,
        optimizer: str | Optimizer | None = None,
        guidance: str | Filter | None = None,
        homotopy: bool | Homotopy = False,
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
        self.weight = weight
        self.repulsion = repulsion
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

    _n_starts = 3
    _starts_outside = True
    _remedy = "pass a greater weight (see bifurcation_.weight), or repulsion='uniform'"
    # The weight at which the search for the best begins: a coarse map; and that where the data are
    # not known, near the best on all sets of the study.
    _coarse_weight, _usual_weight = 1.0, 100.0
    # Points up to which a matrix of all pairs is kept unasked: 1.6 GB.
    _pairs_kept = 20_000

    def _default_perplexity(self, n: int) -> float:
        return 20.0

    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        repulsion = self._repulsion(neighbors.data)
        return elastic(affinity, repulsion, self._given_weight(neighbors.data))

    def _affinity(self, neighbors: Neighbors) -> sparse.csr_array:
        """With a spring between components of the graph, which else would fly apart."""
        W, data = super()._affinity(neighbors), neighbors.data
        graph, unknown = neighbors.strong, data.points is None and data.distances is None
        if unknown or graph.components()[0] == 1:
            return W
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisconnectedGraphWarning)  # that was told before
            joined = DisconnectedPolicy("join", ("join",)).connect(graph, data.distances)
        edges, more = (g.matrix(np.ones(len(g.indices))) for g in (graph, joined))
        bridges = (more + more.T) > (edges + edges.T)
        return joint(W + bridges * (W.data.mean() / 2))

    def _chooses(self, data: Input) -> bool:
        """Whether the weight is to be found, which takes the data."""
        return isinstance(self.weight, str) and data.points is not None

    def _given_weight(self, data: Input) -> float:
        if not isinstance(self.weight, str):
            return check_positive("weight", self.weight)
        check_option("weight", self.weight, ("auto",))
        return self._coarse_weight if self._chooses(data) else self._usual_weight

    def _repulsion(self, data: Input) -> Any:
        if not isinstance(self.repulsion, str):
            return self.repulsion
        check_option("repulsion", self.repulsion, ("auto", "squared_distance", "uniform"))
        known, few = data.points is not None, data.n_samples <= self._pairs_kept
        if self.repulsion == "uniform" or (self.repulsion == "auto" and not (known and few)):
            return "uniform"
        if not known:
            raise ValueError(
                "repulsion='squared_distance' needs the data, of which this fit saw only "
                "distances; pass the matrix of squared distances as repulsion"
            )
        return squared_distance_weights(data.points)

    def _search(self, posed: PosedNeighbors, start: Array, monitor: Monitor) -> Found:
        if not self._chooses(posed.data):
            return super()._search(posed, start, monitor)
        # Raise the weight until the map predicts the data no better; take the smallest.
        walk = self._walk(posed, start, monitor)
        search = WeightSearch(in_own_units(posed.data.points), walk)
        first = posed.first_weight() if self._follows(posed) else posed.objective.weight
        weight, solution = search.run(first)
        return Found(solution, posed.objective.with_weight(weight), walk.path)

    def _resume(self, posed: PosedNeighbors, former: dict[str, Any], monitor: Monitor) -> Found:
        objective = posed.objective
        if self._chooses(posed.data):
            objective = objective.with_weight(former["weight_"])
        start = former["embedding_"].astype(np.float64)
        return Found(self._minimize(objective, start, monitor), objective)

    def _store(self, posed: PosedNeighbors, found: Found, monitor: Monitor) -> None:
        super()._store(posed, found, monitor)
        self.weight_ = found.objective.weight
