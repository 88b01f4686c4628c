"""The elastic embedding."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.base import Affinity
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.device import Device
from manifoldry.exceptions import DisconnectedGraphWarning, ManifoldryWarning, ignoring, warn
from manifoldry.extension.affinity_rows import AffinityRows, KernelRows
from manifoldry.extension.base import Inverse
from manifoldry.extension.elastic_inverse import ElasticInverse, affinity_kernels
from manifoldry.iterative.base import SearchResult
from manifoldry.iterative.elastic_weight import WeightSearch, scaled_data
from manifoldry.iterative.forecast import Phase
from manifoldry.iterative.monitor import Monitor
from manifoldry.iterative.neighbor_embedder import NeighborEmbedder, PosedNeighbors
from manifoldry.iterative.neighbor_weights import Neighbors, joint
from manifoldry.neighbors.disconnected import DisconnectedPolicy
from manifoldry.objectives.losses import elastic
from manifoldry.objectives.pair_kernel import MAX_COMPILED_DIMENSION
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.projected_distance import (
    ProjectedDistanceRepulsion,
    projected_distance_weights,
)
from manifoldry.objectives.squared_distance import squared_distance_weights
from manifoldry.optimize.homotopy import Homotopy
from manifoldry.optimize.optimizer import Callback, Iterate, Optimizer
from manifoldry.util.checks import check_option, check_positive
from manifoldry.util.typing import Array, Matrix, RandomState
from manifoldry.util.validation import plan_memory


@shared_docs
class ElasticEmbedding(NeighborEmbedder):
    """The elastic embedding: quadratic attraction between neighbors, repulsion between all points.

    Minimizes Σ W⁺ᵢⱼ‖yᵢ − yⱼ‖² + λ·Σ W⁻ᵢⱼ exp(−‖yᵢ − yⱼ‖²): Laplacian eigenmaps, with repulsion in
    place of constraints, so that coordinates do not repeat each other and points are spread
    evenly. It can be followed from coarse to fine structure as λ grows
    (``optimizer="homotopy"``), and places new points by minimizing its own objective, whose
    attraction vanishes far from the data: a new point far from all data is placed outside the
    embedding, at a distance that grows in proportion to its distance from the data (with binary
    affinities, which do not depend on the distance, much more slowly).

    Parameters
    ----------
    {n_components}
    perplexity : float, default=None
        Effective number of neighbors of each point; by default 20, or a third of the points if that
        is less. The graph has three times as many neighbors.
    affinity : str or Affinity, default=None
        W⁺, instead of entropic affinities of the given `perplexity`: an object of
        :mod:`manifoldry.affinity`, such as ``Gaussian(gamma=0.02)`` for one bandwidth, or its name,
        ``"gaussian"``, ``"self_tuning"`` or ``"binary"``. All points are neighbors if the
        bandwidth is given, else as many as by default; pass a :class:`~manifoldry.NeighborGraph` to
        ``fit`` for another number.
    weight : float or "auto", default="auto"
        The λ of the repulsion, for weights W⁺ and W⁻ that each sum to one. ``"auto"`` increases λ
        step by step, predicts each point from the embedding of the others, and takes the smallest
        λ whose error is within two standard errors of the best. The error is Euclidean, whatever
        the `metric`. A smaller λ gives denser clusters, which are often easier to read:
        ``plot_path(model)`` shows the embeddings of all λ, ``model.path_.embedding_at(30.0)`` is
        one of them, and ``weight=30.0`` with it as `init` fits a model there.
    repulsion : {"auto", "squared_distance", "uniform"}, matrix or Repulsion, default="auto"
        W⁻: proportional to the squared Euclidean distance in the data; equal for all pairs; or
        given as a matrix, dense or sparse, or as an object of :mod:`manifoldry.objectives`. By
        default squared distances, which give far better embeddings; uniform if only distances are
        given, or for more than 5000 points in more than three dimensions, where squared distances
        need a dense matrix (a warning says so). Beyond 5000 points in up to three dimensions, sums
        over pairs are approximate, and squared distances are those of the first 30 principal
        components if there are more features (with a warning if these hold less than 80 % of them).
    {metric}
    init : {"spectral", "pca", "random"}, estimator or array, default=None
        Start of the search: Laplacian eigenmaps, principal components, Gaussian noise, or the
        embedding of an estimator that is not fitted, all scaled to the smallest value of the
        objective; an array of shape (n_samples, n_components), which is used as it is; or a fitted
        model, together with its ``weight_``, because the search for the best λ starts at a coarse
        embedding. By default ``"spectral"``, for more than 200 000 points ``"pca"``, because the
        eigenproblem of Laplacian eigenmaps may then take longer than the search.
        {fitted_init}
    optimizer : str, Optimizer or Homotopy, default=None
        The search: a name, see :func:`~manifoldry.optimize.resolve_optimizer`, an
        :class:`~manifoldry.optimize.Optimizer`, which also holds the tolerances, or a
        :class:`~manifoldry.optimize.Homotopy`, which starts at a weight of repulsion at which the
        embedding is nearly a single point and raises it step by step, or a
        :class:`~manifoldry.optimize.ConstrainedHomotopy`, which starts from Laplacian eigenmaps;
        `init` is not used then. ``"homotopy"`` is ``Homotopy()``. By default
        ``"spectral-lbfgs"``, also for each search of a homotopy.
    extension : {"kernel", "normalized"} or regressor, default=None
        How ``transform`` computes the coordinates of new points. ``"kernel"``, the default, uses
        the affinities as a function of distance, so that points unlike the data are placed outside
        the embedding. With ``"normalized"`` the affinities of each new point sum to one, as for
        :class:`SNE`: new data like the training data are placed more accurately, and points
        unlike them near the rim. A scikit-learn regressor is fitted to predict ``embedding_``
        from `X`.
    inverse : {"regression", "elastic"} or regressor, default=None
        How ``inverse_transform`` computes data from coordinates: by local regression, the default;
        by minimizing the objective over the data at the given coordinates, with widths chosen by
        the leave-one-out error, which needs squared-distance repulsion, the Euclidean metric
        and, beyond 5000 points, at most 30 features (docs/mathematics.md, Elastic embedding); or by
        a scikit-learn regressor that is fitted to predict `X` from ``embedding_``.
    {max_iter}
    {callback}
    {verbose}
    {random_start}
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    {embedding_}
    {extension_}
    {inverse_}
    {objective_}
    {perplexity_}
    affinity_ : sparse array of shape (n_samples, n_samples)
        W⁺: symmetric, summing to one; connected components of the graph are joined by an edge.
    weight_ : float
        The value of λ.
    loss_ : float
        The objective at the embedding, for λ = ``weight_``.
    {converged_}
    {status_}
    {n_iter_}
    trace_ : structured array
        One entry per step, and one for the start of every search if there are several:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and ``parameter``, the λ of a homotopy or of the search for the best λ; NaN without either.
        Values at different λ belong to different objectives.
    path_ : Path or None
        The embeddings along a homotopy or the search for the best λ, which goes beyond
        ``weight_``; None without either.
    {bifurcation_}
    {learned_affinity_}
    {pairs_}
    {neighbor_search_}

    See Also
    --------
    SymmetricSNE : normalizes the repulsion.
    LaplacianEigenmaps : the attraction without repulsion.

    References
    ----------
    M. Á. Carreira-Perpiñán, "The elastic embedding algorithm for dimensionality reduction",
    ICML 2010.

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
        affinity: str | Affinity | None = None,
        weight: float | str = "auto",
        repulsion: Any = "auto",
        metric: Any = "euclidean",
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
        self.weight = weight
        self.repulsion = repulsion
        self.metric = metric
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

    # Rows of distributed data that are fitted: they take about ten seconds.
    _landmarks = 2000

    _named_extensions = ("kernel", "normalized")
    _named_inverses = ("regression", "elastic")
    _n_starts = 3
    _starts_outside = True
    _remedy = "pass a greater weight (see bifurcation_.weight), or repulsion='uniform'"
    # First weight of the search for the best one, at which only coarse structure shows; and the
    # default if only distances are given, close to the best one on all data sets of the study.
    _coarse_weight, _usual_weight = 1.0, 100.0
    # Maximum number of points for a dense matrix of repulsion by default. Its sums are exact, and
    # for 5000 digits as fast as those with factored weights.
    _pairs_kept = 5000

    def _default_perplexity(self, n: int) -> float:
        return 20.0

    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        repulsion = self._repulsion(neighbors.data)
        if isinstance(self.inverse, str) and self.inverse == "elastic":
            check_invertible(neighbors, self.repulsion, repulsion)
        return elastic(affinity, repulsion, self._given_weight(neighbors.data))

    def _affinity(self, neighbors: Neighbors) -> sparse.csr_array:
        """Add an edge between connected components, which would move apart without bound."""
        W, data = super()._affinity(neighbors), neighbors.data
        unknown = data.points is None and data.distances is None
        if unknown or neighbors.n_components == 1:
            return W
        graph = neighbors.strong
        with ignoring(DisconnectedGraphWarning):  # it was given before
            joined = DisconnectedPolicy("join", ("join",)).connect(graph, data.distances)
        edges, more = (g.matrix(np.ones(len(g.indices))) for g in (graph, joined))
        bridges = (more + more.T) > (edges + edges.T)
        return joint(W + bridges * (W.data.mean() / 2))

    def _new_rows(self, neighbors: Neighbors) -> AffinityRows:
        if isinstance(self.extension, str) and self.extension == "normalized":
            return super()._new_rows(neighbors)
        return KernelRows(neighbors.graph, neighbors.weights, neighbors.joint.total)

    def _searches_weight(self, data: Input) -> bool:
        """Whether to search for the weight, which needs the data."""
        return isinstance(self.weight, str) and data.points is not None

    def _given_weight(self, data: Input) -> float:
        if not isinstance(self.weight, str):
            return check_positive("weight", self.weight)
        check_option("weight", self.weight, ("auto",))
        return self._coarse_weight if self._searches_weight(data) else self._usual_weight

    def _repulsion(self, data: Input) -> Any:
        if not isinstance(self.repulsion, str):
            return self.repulsion
        check_option("repulsion", self.repulsion, ("auto", "squared_distance", "uniform"))
        known = data.points is not None
        many = data.n_samples > self._pairs_kept
        fast = many and self.n_components_ <= MAX_COMPILED_DIMENSION
        if self.repulsion == "auto" and known and many and not fast:
            warn(
                f"repulsion is uniform, because {data.n_samples} points, more than "
                f"{self._pairs_kept}, are embedded in more than {MAX_COMPILED_DIMENSION} "
                "dimensions; repulsion='squared_distance' usually separates clusters better, but "
                "takes time and memory proportional to n² there. Pass it, or fit a sample and "
                "transform the others; repulsion='uniform' avoids this warning",
                ManifoldryWarning,
            )
            return "uniform"
        if self.repulsion == "uniform" or (self.repulsion == "auto" and not known):
            return "uniform"
        if not known:
            raise ValueError(
                "repulsion='squared_distance' needs the data, but only distances were given; pass "
                "the matrix of squared distances as repulsion"
            )
        if not fast:
            return squared_distance_weights(data.points)
        weights = projected_distance_weights(data.points)
        warn_of_lost_distances(weights)
        return weights

    def _search(self, posed: PosedNeighbors, start: Array, monitor: Monitor) -> SearchResult:
        if not self._searches_weight(posed.data):
            return super()._search(posed, start, monitor)
        # Raise the weight until the prediction of the data no longer improves.
        run = self._run(posed, start, monitor)
        search = WeightSearch(scaled_data(posed.data.points), run)
        first = posed.first_weight() if self._follows_homotopy(posed) else posed.objective.weight
        weight, solution = search.run(first)
        return SearchResult(solution, posed.objective.with_weight(weight), run.path)

    def _phases(self, posed: PosedNeighbors, start: Array) -> list[Phase]:
        if not self._searches_weight(posed.data):
            return super()._phases(posed, start)
        n, rule = WeightSearch.expected_searches(), self._homotopy_rule()
        return [Phase.homotopy("choice of λ", rule, self._parameter_name, n)]

    def _store(self, posed: PosedNeighbors, result: SearchResult, monitor: Monitor) -> None:
        super()._store(posed, result, monitor)
        self.weight_ = result.objective.weight
        repulsion = result.objective.repulsion
        if isinstance(repulsion, ProjectedDistanceRepulsion) and posed.data.points is not None:
            of = f"{repulsion.rank} principal components of {posed.data.points.shape[1]}"
            self.pairs_ += f"; squared distances in {of}, which hold {repulsion.held:.0%} of them"

    def _invert(self, posed: PosedNeighbors) -> Inverse | None:
        if self.inverse != "elastic":
            return super()._invert(posed)
        X, Y = dense_rows(posed.data.points), self.embedding_.astype(np.float64)
        kernels = affinity_kernels(posed.neighbors.weights, posed.graph)
        return ElasticInverse(X, Y, *kernels, self.weight_).with_chosen_widths()


def warn_of_lost_distances(weights: ProjectedDistanceRepulsion, least: float = 0.8) -> None:
    """Warn if the principal components hold less than a fraction `least` of squared distances."""
    if weights.held < least:
        warn(
            f"repulsion of {weights.n} points is by the squared distances of {weights.rank} "
            f"principal components, which hold {weights.held:.0%} of the squared distances in the "
            "data; for more components pass "
            "repulsion=manifoldry.objectives.projected_distance_weights(X, max_rank=...), which "
            "avoids this warning for any max_rank",
            ManifoldryWarning,
        )


def check_invertible(neighbors: Neighbors, asked: Any, repulsion: Any) -> None:
    """Raise ValueError if the objective, a function of the data, has no minimizer or is unknown.

    `repulsion` is what the parameter `asked` means for these data.
    """
    if not isinstance(asked, str) or isinstance(repulsion, str):
        given = repr(asked) if isinstance(asked, str) else "a matrix"
        raise ValueError(
            "inverse='elastic' needs repulsion='squared_distance', whose weights are known for any "
            f"data, but for {neighbors.graph.n_query} points repulsion={given} is not that; pass "
            "repulsion='squared_distance' or inverse='regression'"
        )
    if isinstance(repulsion, ProjectedDistanceRepulsion):
        check_all_features(repulsion)
    metric = neighbors.graph.metric
    if not (isinstance(metric, str) and metric in ("euclidean", "l2")):
        raise ValueError(
            f"inverse='elastic' needs affinities of Euclidean distances, not metric={metric!r}; "
            "pass metric='euclidean' or inverse='regression'"
        )
    affinity_kernels(neighbors.weights, neighbors.graph)


def check_all_features(repulsion: ProjectedDistanceRepulsion) -> None:
    """Raise ValueError if the repulsion is not by the distances in all features."""
    if repulsion.rank < repulsion.n_features:
        raise ValueError(
            "inverse='elastic' needs repulsion by the squared distances of all "
            f"n_features={repulsion.n_features}, but that of {repulsion.n} points uses "
            f"{repulsion.rank} principal components; pass inverse='regression', or the principal "
            "components as X"
        )


def dense_rows(X: Matrix) -> Array:
    """The data as a dense array."""
    if not sparse.issparse(X):
        return np.asarray(X)
    plan_memory(8.0 * np.prod(X.shape), "sparse data as a dense array", "pass inverse='regression'")
    return np.asarray(X.toarray())
