"""Maximum variance unfolding."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.device import Device, using_device
from manifoldry.eigen import Spectra
from manifoldry.exceptions import RankWarning, warn
from manifoldry.extension.base import Extension
from manifoldry.extension.from_distances import Triangulation
from manifoldry.extension.layout import component_labels, component_rows
from manifoldry.extension.local import Barycentric
from manifoldry.iterative.base import IterativeEmbedder, SearchResult
from manifoldry.iterative.forecast import Phase
from manifoldry.iterative.monitor import Monitor
from manifoldry.neighbors.distances import check_range
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.short_circuits import warn_of_short_circuits
from manifoldry.optimize.optimizer import Callback, Iterate, Solution
from manifoldry.semidefinite.edge_lengths import (
    DistinctPoints,
    EdgeConstraint,
    EdgeLengths,
    has_clique_distances,
)
from manifoldry.semidefinite.landmarks import landmark_interpolation, unfold_by_landmarks
from manifoldry.semidefinite.multipliers import MethodOfMultipliers
from manifoldry.semidefinite.posed_unfolding import PosedUnfolding, UnfoldingSearchResult
from manifoldry.semidefinite.start import unfolding_start
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding, UnfoldingProblem
from manifoldry.semidefinite.unfolding_result import Round
from manifoldry.spectral.base import store_spectrum
from manifoldry.spectral.gram import PosedMap
from manifoldry.spectral.posed import all_coincide_message, connected_graph
from manifoldry.util.checks import (
    as_generator,
    check_at_most,
    check_count,
)
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState


@shared_docs
class MaximumVarianceUnfolding(IterativeEmbedder):
    """Maximum variance unfolding: maximize the variance, preserve distances between neighbors.

    Maximizes Σᵢ‖yᵢ − ȳ‖² over embeddings of any dimension that preserve the distances between
    neighbors; the coordinates are the directions of largest variance of the solution. As a problem
    in the Gram matrix it is a semidefinite program, so that every fit reports how far it is from
    the optimum (``gap_``), and the number of directions estimates the dimension. Use it for sheets,
    with or without holes, where Isomap would stretch the embedding around the holes. A single false
    edge between two layers prevents the unfolding, as it does for Isomap; a warning reports such
    edges. If only a few edges connect two parts of a sheet beside a hole, these parts can rotate
    about them, and ``map_edge_error_`` is large.

    The semidefinite program is solved by the method of multipliers on a low-rank factor of the Gram
    matrix; time and memory are roughly proportional to the number of edges.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates; by default two, or the most that the data allow. The search uses as
        many coordinates as it needs.
    n_neighbors : int, default=None
        Neighbors per point; by default 6, or half of the points if that is less. A graph that is
        passed to ``fit``, such as ``NeighborGraph.build(X, radius=2.0)``, is used as it is, or
        reduced to `n_neighbors`.
    metric : str or callable, default="euclidean"
        Metric of the distances; ``"precomputed"`` if the data are a dense matrix of distances or a
        sparse graph of them.
    {metric_params}
    constraint : {"equal", "at_most"} or EdgeConstraint, default="equal"
        Whether distances between neighbors are preserved or may also shrink, which tends to fold
        narrow directions. An :class:`~manifoldry.semidefinite.EdgeConstraint` also sets the
        tolerance, the slack, whether neighbors of the same point keep their distance, and whether
        to search for short circuits: ``EdgeConstraint(short_circuits="ignore")`` is what Isomap's
        ``short_circuits="ignore"`` is.
    n_landmarks : int, default=None
        Optimize the positions of this many points only, and interpolate the others with the weights
        of LLE; each connected component gets at least ``n_components + 1``. Ten times as fast at
        2000 points, and smoother. 100 are enough for a sheet; other data need more, or no
        landmarks.
    disconnected : {"separate", "join", "largest", "error"}, default="separate"
        {disconnected}
    optimizer : MethodOfMultipliers, default=None
        The :class:`~manifoldry.semidefinite.MethodOfMultipliers`, which holds the tolerances and
        the start of the search.
    {extension}
    {inverse}
    max_iter : int, default=None
        Maximum number of steps. None means that of the optimizer, 20000.
    {callback}
    verbose : bool, default=False
        Show variance and constraint violation during the search.
    {random_start}
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    embedding_ : array of shape (n_samples, n_components)
        Coordinates of the training points along the principal axes, in units of the data.
    {extension_}
    {inverse_}
    variance_ : float
        Sum of squared distances from the mean (of the connected component) in all directions of
        the solution: the trace of its Gram matrix.
    variance_bound_ : float
        Upper bound of the variance of any embedding that satisfies the constraints, by duality;
        infinite if the search ended before it was computed. With slack it bounds the variance minus
        the cost of the slack, and may be below ``variance_``; with landmarks it holds for
        embeddings that landmarks can represent. It is computed from multipliers
        close to ``multipliers_``.
    gap_ : float
        (bound − (variance − cost of slack)) / variance: the largest possible relative increase of
        the variance.
    mean_edge_error_, max_edge_error_ : float
        Relative errors of edge lengths, in all directions of the solution. The errors of edges
        shorter than a hundredth of the median length are relative to that length.
    map_edge_error_ : float
        Mean relative error of edge lengths in ``embedding_``, which has fewer directions.
    rank_ : int
        Number of directions of the solution, in the connected component with the most distinct
        points.
    eigenvalues_ : array of shape (rank,)
        Variance along every direction of the solution, in that component.
    unfolded_ : array of shape (n_samples, rank)
        Coordinates in all directions of the solution; the first ones are ``embedding_``.
    explained_variance_ratio_ : array of shape (rank,)
        The eigenvalues divided by their sum.
    dimension_hint_ : int
        Number of directions with more than one percent of the variance.
    edges_ : array of shape (n_edges, 2)
        The pairs of points whose distances are constrained; duplicated points are represented by
        their first occurrence.
    multipliers_ : array of shape (n_edges,)
        Lagrange multiplier of each edge, in units of the variance per edge, so that their mean is
        about one; negative if the constraint keeps the edge from shrinking, zero if it is inactive.
    {component_labels_}
    loss_ : float
        Minus ``variance_``.
    converged_ : bool
        Whether the constraints are satisfied and the gap is small enough.
    status_ : str
        Why the search stopped.
    {n_iter_}
    rounds_ : structured array
        One entry per round of the method of multipliers: ``steps`` so far, ``penalty``,
        ``variance``, ``violation`` and ``rank``.
    trace_ : structured array
        One entry per step: ``iteration``, ``value`` of the round's objective, ``gradient_norm``,
        ``length`` of the step, ``evaluations`` so far and ``parameter``, the round's penalty.
    {neighbor_search_}

    See Also
    --------
    Isomap : faster, for sheets without holes.
    LTSA : faster, for little noise.

    References
    ----------
    K. Q. Weinberger and L. K. Saul, "Unsupervised learning of image manifolds by semidefinite
    programming", International Journal of Computer Vision 70 (2006).

    Examples
    --------
    >>> from manifoldry import MaximumVarianceUnfolding
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import procrustes
    >>> X, coordinates = make_swiss_roll(300, hole=True, random_state=0)
    >>> model = MaximumVarianceUnfolding().fit(X)
    >>> model.dimension_hint_, bool(model.gap_ < 0.01), bool(model.mean_edge_error_ < 0.005)
    (2, True, True)
    """

    rank_: int
    unfolded_: Array
    map_edge_error_: float

    _runs_on_host = "only the search for neighbors is computed there"
    _to_converge = (
        "raise max_iter, or n_landmarks if landmarks are used; or relax the constraint: pass "
        "constraint='at_most', or an EdgeConstraint with a larger tolerance, slack=0.01 or "
        "cliques=False; see rounds_"
    )

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        constraint: str | EdgeConstraint = "equal",
        n_landmarks: int | None = None,
        disconnected: str = "separate",
        optimizer: MethodOfMultipliers | None = None,
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
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.constraint = constraint
        self.n_landmarks = n_landmarks
        self.disconnected = disconnected
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
    _landmarks = 1000

    def _check_search(self) -> None:
        Callback.of(self.callback)
        EdgeConstraint.of(self.constraint)
        self._method()
        self._policy()

    def _method(self) -> MethodOfMultipliers:
        method = MethodOfMultipliers() if self.optimizer is None else self.optimizer
        if not isinstance(method, MethodOfMultipliers):
            raise TypeError(
                f"optimizer={self.optimizer!r} must be a MethodOfMultipliers or None; pass "
                "manifoldry.semidefinite.MethodOfMultipliers()"
            )
        if self.max_iter is None:
            return method
        return replace(method, max_iter=check_count("max_iter", self.max_iter))

    def _margin(self) -> float:
        """Amount by which the search tightens the interval: `tol`, at most half the upper end."""
        if self._slack() > 0:
            return 0.0  # violations have a finite cost
        return min(self._method().squared_tol, EdgeConstraint.of(self.constraint).interval[1] / 2)

    def _pose(self, data: Input) -> PosedUnfolding:
        graph = connected_graph(self._neighbor_graph(data), self._policy(), data)
        self.neighbor_search_ = graph.search
        components = self._policy().components(graph.components()[1])
        labels = component_labels(components, graph.n_query)
        if EdgeConstraint.of(self.constraint).short_circuits == "warn":
            warn_of_short_circuits(graph)
        distinct = DistinctPoints.of(graph, labels >= 0)
        problem = self._problem(data, graph, distinct, labels[distinct.first])
        rng = as_generator(self.random_state, unset=0)
        return PosedUnfolding(data, graph, problem, rng, distinct, labels)

    def _problem(
        self, data: Input, graph: NeighborGraph, distinct: DistinctPoints, component: IntArray
    ) -> FreeUnfolding:
        constraint = EdgeConstraint.of(self.constraint)
        cliques = constraint.cliques
        if cliques is None:
            cliques = has_clique_distances(graph, data.distances)
        edges = EdgeLengths.of(graph, distinct, bool(cliques), data.distances)
        if edges.count == 0:
            raise ValueError(all_coincide_message(int(distinct.multiplicity.sum())))
        for length in (edges.unit, edges.unit * edges.n):  # the solution may be a straight line
            check_range(length)
        self._check_landmarks(edges.n, graph.index.points)
        multiplicity, margin = distinct.multiplicity, self._margin()
        return FreeUnfolding(
            edges, constraint.interval, self._slack(), multiplicity, component, margin=margin
        )

    def _default_neighbors(self, n: int) -> int:
        # Few, so that no edge joins two layers; the constraints on cliques make the graph rigid.
        return min(6, max(2, n // 2), n - 1)

    def _slack(self) -> float:
        slack = EdgeConstraint.of(self.constraint).slack
        if slack is not None:
            return slack
        return 0.0 if self.n_landmarks is None else 1e-3  # landmarks cannot preserve all lengths

    def _start(self, posed: PosedUnfolding) -> Array:
        return unfolding_start(
            self._method().init,
            posed.data,
            posed.graph,
            self.n_components_,
            posed.objective,
            posed.distinct.first,
            posed.rng,
        )

    def _phases(self, posed: PosedUnfolding, start: Array) -> list[Phase]:
        return [Phase("unfolding", None, None, parameter="penalty")]  # not predictable

    @using_device("cpu")  # as `_runs_on_host` says
    def _search(
        self, posed: PosedUnfolding, start: Array, monitor: Monitor
    ) -> UnfoldingSearchResult:
        problem, method, rng = posed.objective, self._method(), posed.rng
        unit, k = problem.edges.unit, self.n_components_

        def begin(posing: UnfoldingProblem, last: Round | None, penalty: float) -> None:
            monitor.begin(penalty)
            monitor.view = lambda R: posed.flattened(posing.map(R), k)
            if last is not None:
                variance = last.variance * unit**2
                monitor.note = f"variance {variance:.4g}, violation {last.violation:.1e}, "

        if self.n_landmarks is None:
            result = method.solve(problem, start, rng, monitor, begin)
        else:
            Q = self._interpolation(posed)
            result = unfold_by_landmarks(method, problem, Q, start, rng, monitor, begin)
        Y, value = posed.flattened(result.map, k), -result.variance * unit**2
        solution = Solution(
            Y, value, result.converged, result.status, interrupted=result.interrupted
        )
        return UnfoldingSearchResult(solution, problem, unfolding=result)

    def _check_landmarks(self, n_distinct: int, points: Matrix | None) -> None:
        if self.n_landmarks is None:
            return
        if points is None:
            raise ValueError(
                "n_landmarks needs the coordinates of the data, not only distances, to interpolate "
                "between landmarks; pass the data, or n_landmarks=None"
            )
        count = check_count("n_landmarks", self.n_landmarks, minimum=self.n_components_ + 1)
        check_at_most("n_landmarks", count, n_distinct, "the number of different points")

    def _interpolation(self, posed: PosedUnfolding) -> Array:
        """The weights with which distinct points are interpolated between landmarks."""
        X: Any = posed.graph.index.points
        count, least = check_count("n_landmarks", self.n_landmarks), self.n_components_ + 1
        return landmark_interpolation(
            X[posed.distinct.first], posed.objective, count, posed.rng, least
        )

    def _store(self, posed: PosedUnfolding, result: Any, monitor: Monitor) -> None:
        Y = posed.laid_out(result.solution.embedding)
        laid_out = replace(result, solution=replace(result.solution, embedding=Y))
        super()._store(posed, laid_out, monitor)
        self.component_labels_ = posed.labels
        for name, value in posed.fitted_attributes(result.unfolding, self.embedding_).items():
            setattr(self, name, value)
        missing = self.n_components_ - self.rank_
        if missing > 0:
            warn(
                f"{missing} of n_components={self.n_components_} coordinates are zero: the "
                f"solution has only {self.rank_} directions; pass n_components={self.rank_}",
                RankWarning,
            )

    def _loss(self, result: SearchResult) -> float:
        return result.solution.value

    def _warn_about(self, solution: Solution) -> None:
        if not solution.converged:
            super()._warn_about(solution)

    def pose(self, X: Any) -> PosedMap:
        """Unfold `X`, and return the eigenproblem of the Gram matrix of the solution.

        :class:`~manifoldry.NonRedundant` uses it to compute other coordinates than the principal
        axes, and passes its solution to :meth:`adopt`.

        Parameters
        ----------
        X : array, sparse matrix, frame, NeighborGraph or AnnData
            The data, as for :meth:`fit`.

        Returns
        -------
        PosedMap
            The problem of the unfolded data.
        """
        self.fit(X)
        graph: Any = self._row_matcher
        components = component_rows(self.component_labels_)
        formula = self._formula(graph, self.unfolded_)
        return PosedMap(self._read(X), self.unfolded_, components, formula, graph)

    def adopt(self, posed: Any, spectra: Spectra) -> None:
        """Use the solution of the problem of :meth:`pose` as the fitted model.

        Attributes of the unfolding are kept; ``eigenvalues_``, ``residuals_``, ``gaps_`` and
        ``solver_`` are then those of the new coordinates.

        Parameters
        ----------
        posed : PosedMap
            The problem.
        spectra : Spectra
            Its solution.
        """
        del self.map_edge_error_  # of the principal coordinates
        store_spectrum(self, posed, spectra)
        self._adopt(posed, spectra)

    def _extend(self, posed: PosedUnfolding, result: SearchResult) -> Extension:
        return self._formula(posed.graph, self.embedding_)

    def _formula(self, graph: NeighborGraph, Y: Array, reg: float = 1e-3) -> Extension:
        """Interpolation with the weights of LLE, or triangulation if only distances are given."""
        euclidean = graph.metric in ("euclidean", "l2") and graph.n_neighbors is not None
        if euclidean and graph.index.points is not None:
            return Barycentric(graph, Y, reg, self.component_labels_)
        return Triangulation(graph, Y, self.component_labels_)


MVU = MaximumVarianceUnfolding
