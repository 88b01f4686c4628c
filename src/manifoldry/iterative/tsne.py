"""t-distributed stochastic neighbor embedding."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.input import Input
from manifoldry.iterative.base import Found
from manifoldry.iterative.monitor import Callback, Monitor
from manifoldry.iterative.neighbor_embedder import NeighborEmbedder, Neighbors, PosedNeighbors
from manifoldry.objectives.losses import tsne
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.homotopy import Homotopy
from manifoldry.optimize.methods import Momentum
from manifoldry.optimize.optimizer import Optimizer, Solution
from manifoldry.optimize.stopping import Stopping
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array, RandomState


class TSNE(NeighborEmbedder):
    """Place points so that pairs are as probable on the map as in the data, with room for all.

    Minimizes KL(P‖Q) over pairs: P are entropic affinities, made symmetric, Q is proportional to
    Student's kernel (1 + ‖yᵢ − yⱼ‖²/α)^{−(α+1)/2} on the map. Its heavy tails part clusters
    widely: the method of choice to see clusters, at the price that distances between them and
    their sizes mean little. This is the exact method, whose time grows with n².

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates; by default two, or what the data allow.
    perplexity : float, default=None
        Effective number of neighbors of every point; by default 30, or a fortieth of
        the points if that is less, but 20 if they allow it. The graph has three times as many.
    degrees_of_freedom : float, default=1.0
        The α of the kernel: less than one parts clusters further, more approaches SNE.
    early_exaggeration : float, default=12.0
        Factor on the attraction in the first phase, in which clusters find each other.
    early_exaggeration_iter : int, default=250
        Most steps of that phase; 0 for none.
    metric : str or callable, default="euclidean"
        Metric of the neighbor graph; ``"precomputed"`` for dense distances or a sparse graph
        of distances.
    metric_params : dict, default=None
        Further arguments of the metric.
    init : {"spectral", "pca", "random"}, estimator or array, default=None
        Where the search begins: Laplacian eigenmaps, principal components, a small cloud, the map
        of any estimator, or a map of shape (n_samples, n_components) as it is. All but the
        last are shrunk to a spread of 1e-4. By default principal components, of the distances
        if only those are known; Laplacian eigenmaps if only a graph is.
    optimizer : str or Optimizer, default=None
        What searches; see :func:`manifoldry.optimize.resolve_optimizer`. By
        default gradient steps with momentum.
    guidance : str or Filter, default=None
        A filter of the gradient that changes as the search goes on, see
        :func:`manifoldry.optimize.resolve_guidance`: it holds a map from a poor start to the
        smooth functions of the data first, in place of the optimizer's own filter. A good start
        needs none.
    homotopy : bool or Homotopy, default=False
        Lower the exaggeration from `early_exaggeration` to one step by step, instead of at once;
        see :class:`~manifoldry.optimize.Homotopy`. `init` is not used then.
    max_iter : int, default=None
        Most steps after the first phase, along a homotopy of each search; by default 500:
        maps are good then, but still move, so that ``converged_`` is mostly False.
    tol : float, default=None
        Converged when steps move the map by less than this fraction of its size; by default the
        optimizer's own.
    warm_start : bool, default=False
        Begin from the map of the last fit, if there is one; it must have as many points and
        coordinates. What comes before the search proper, such as a homotopy, is left out then.
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
        Joint probabilities P of pairs: symmetric, with sum one.
    loss_ : float
        The divergence KL(P‖Q) at the map, without exaggeration.
    converged_ : bool
        Whether the search came to rest.
    status_ : str
        Why the search stopped, in words.
    n_iter_, n_evaluations_ : int
        Steps of the search, and evaluations of the objective they took.
    trace_ : structured array
        One entry per step, and one for the start of every search of which the fit consists:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and ``parameter``, one over the exaggeration; NaN where there is none. Values at
        different exaggerations are of different objectives.
    path_ : Path or None
        The maps along a homotopy, by one over the exaggeration; None without one.
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
    >>> from manifoldry import TSNE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(300, random_state=0)
    >>> model = TSNE().fit(X)
    >>> model.embedding_.shape
    (300, 2)
    >>> model.transform(X[:3] + 0.01).shape
    (3, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        perplexity: float | None = None,
        degrees_of_freedom: float = 1.0,
        early_exaggeration: float = 12.0,
        early_exaggeration_iter: int = 250,
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
        self.degrees_of_freedom = degrees_of_freedom
        self.early_exaggeration = early_exaggeration
        self.early_exaggeration_iter = early_exaggeration_iter
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

    # After the first phase. Values go on falling slowly, and maps of sheets tear while they do.
    _default_optimizer = Momentum(stopping=Stopping(max_iter=500, value_tol=1e-5))
    _early_momentum = 0.5
    # A search with momentum is a number of steps, not one that comes to rest.
    _must_converge = False
    # Spread of the start: all of it within the kernel's reach.
    _spread = 1e-4

    def _default_perplexity(self, n: int) -> float:
        return min(30.0, max(20.0, n / 40))  # in small data neighborhoods stay local

    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        dof = check_positive("degrees_of_freedom", self.degrees_of_freedom)
        return tsne(affinity, dof)

    def _init(self, data: Input) -> Any:
        if self.init is not None:
            return self.init
        only_graph = data.points is None and data.distances is None
        return "spectral" if only_graph else "pca"

    def _scaled(self, objective: Pairwise, Y: Array) -> Array:
        return self._spread / Y.std(axis=0).max() * Y

    def _first_weight(self, posed: PosedNeighbors) -> float:
        return 1 / check_positive("early_exaggeration", self.early_exaggeration)

    def _search(self, posed: PosedNeighbors, start: Array, monitor: Monitor) -> Found:
        if self._follows(posed):
            return super()._search(posed, start, monitor)
        early = self._exaggerated(posed.objective, start, monitor)
        if early.interrupted:
            return Found(early, posed.objective)
        return super()._search(posed, early.embedding, monitor)

    def _exaggerated(self, objective: Pairwise, start: Array, monitor: Monitor) -> Solution:
        """The first phase, in which clusters find each other."""
        factor = check_positive("early_exaggeration", self.early_exaggeration)
        steps = check_count("early_exaggeration_iter", self.early_exaggeration_iter, minimum=0)
        if steps == 0 or factor == 1:
            return Solution(start, np.nan, converged=True, status="no early exaggeration")
        optimizer = self._optimizer().with_stopping(steps, None)
        if isinstance(optimizer, Momentum):
            optimizer = replace(optimizer, momentum=self._early_momentum)
        monitor.begin(1 / factor)
        return optimizer.minimize(replace(objective, exaggeration=factor), start, monitor)
