"""Maximum variance unfolding."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manifoldry.base.input import Input
from manifoldry.eigen import Spectra
from manifoldry.eigen.spectrum import fixed_signs
from manifoldry.exceptions import RankWarning
from manifoldry.extension.base import Extension
from manifoldry.extension.from_distances import Triangulation
from manifoldry.extension.layout import Layout, component_labels, component_rows
from manifoldry.extension.local import Barycentric
from manifoldry.iterative.base import Found, IterativeEmbedder, PosedSearch
from manifoldry.iterative.monitor import Callback, Monitor
from manifoldry.neighbors.distances import check_range
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.short_circuits import warn_of_short_circuits
from manifoldry.optimize.optimizer import Solution
from manifoldry.semidefinite.edge_lengths import DistinctPoints, EdgeLengths, has_clique_distances
from manifoldry.semidefinite.landmarks import landmark_interpolation, unfold_by_landmarks
from manifoldry.semidefinite.multipliers import MethodOfMultipliers, Round, UnfoldingResult
from manifoldry.semidefinite.start import unfolding_start
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding, UnfoldingProblem
from manifoldry.spectral.base import store_spectrum
from manifoldry.spectral.gram import PosedMap
from manifoldry.spectral.posed import all_coincide_message, connected_graph
from manifoldry.util.checks import (
    as_generator,
    check_at_most,
    check_below,
    check_count,
    check_nonnegative,
    check_option,
    check_positive,
)
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import split_by_label
from manifoldry.util.warn import warn


class MaximumVarianceUnfolding(IterativeEmbedder):
    """Pull the points as far apart as the distances between neighbors allow.

    Maximizes Σᵢ‖yᵢ − ȳ‖² over maps of any dimension in which neighbors keep their distance; the
    map shows the directions in which the result extends most. As a problem in the inner products
    of all points it is a semidefinite program, so that every fit can say how far it is from the
    best map there is (``gap_``), and the number of directions it needs estimates the dimension.
    Use it for sheets, with holes or without, where Isomap would stretch the map around the holes;
    a single false edge between two layers holds them together, as it does for Isomap, and of
    those you are warned. Where few edges cross beside a hole, the sheet may swing open there:
    then ``map_edge_error_`` is large.

    Solved by the method of multipliers on low-rank maps: time and memory grow with the number of
    edges, about in proportion.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates; by default two, or what the data allow. The search itself takes as
        many as it needs.
    n_neighbors : int, default=None
        Neighbors per point; by default 6, or half the points if those are fewer. Of a ready graph
        all, unless fewer are asked for.
    radius : float, default=None
        Take all neighbors within this distance instead.
    metric : str or callable, default="euclidean"
        Metric of the distances; ``"precomputed"`` for dense distances or a sparse graph of them.
    metric_params : dict, default=None
        Further arguments of the metric.
    cliques : bool, default=None
        Keep also the distances between any two neighbors of a point, which makes neighborhoods
        rigid; by default wherever those distances are known. Without it the graph may shear: pass
        10 neighbors or more then.
    constraint : {"equal", "at_most"}, default="equal"
        Whether neighbors keep their distance or may come closer too. Maps that may shrink tend
        to fold narrow directions.
    tolerance : float, default=0.005
        Fraction by which lengths of edges may be off; those below a hundredth of the median count
        as if they were that long. With none at all a curved sheet is rigid: its chords are shorter
        than it is itself.
    slack : float, default=None
        Fraction by which the squared length of an edge under mean tension may be off beyond that;
        edges under more tension give way in proportion. 0.01 is much, 0 holds all edges. By
        default 0, and 0.001 with landmarks, since it may be that none of their maps keeps all
        lengths.
    n_landmarks : int, default=None
        Search for the places of this many points only, and put every other where the weights of
        LLE have it between them; every component gets ``n_components + 1`` of them at least. Ten
        times as fast at 2000 points, and smoother. 100 are plenty for a sheet; data that are no
        sheet need more, or no landmarks.
    init : str, array of shape (n_samples, n_components) or estimator, default="isomap"
        Where to begin: ``"isomap"`` with landmarks; ``"laplacian"``, the same problem solved among
        mixtures of a Laplacian's smoothest eigenvectors; ``"spectral"``, ``"pca"``, ``"random"``,
        a map, or what makes one. It decides how long the search takes, not where it ends.
    disconnected : {"separate", "join", "largest", "error"}, default="separate"
        What to do when the graph falls into components, which nothing would hold together; see
        :class:`~manifoldry.neighbors.DisconnectedPolicy`.
    max_iter : int, default=20000
        Most steps of the search.
    tol : float, default=5e-4
        Part of the tolerance that is left to the search, which aims that far inside it: converged
        when no length is off by more than both allow, and the gap is closed.
    gap_tol : float, default=0.01
        The gap is closed when the variance is proved to be within this fraction of the largest
        possible.
    warm_start : bool, default=False
        Begin from the map of the last fit, if there is one. Tensions have to be found again, so
        that it saves little time.
    callback : callable, default=None
        Called with an :class:`~manifoldry.optimize.Iterate`, that is the map and figures on the
        last step; a true result stops the search.
    callback_every : int, default=1
        Steps between two calls.
    verbose : bool, default=False
        Show variance and violation as the search goes on.
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
        The map, in the units of the data, along its principal axes.
    extension_ : Extension
        Gives new points their coordinates.
    inverse_ : Inverse or None
        Leads from the map to the data; None where the data themselves were never seen.
    variance_ : float
        Sum of squared distances from the mean (of the component), in all directions of the
        solution: the trace of its matrix of inner products.
    variance_bound_ : float
        What the variance of no map that keeps the lengths can exceed, by duality; infinite where
        the search was over before it was sought. With slack it bounds the variance less what
        slack costs, and may be below ``variance_``; with landmarks it is about maps that landmarks
        can express. It is proved by tensions of their own, near ``multipliers_``.
    gap_ : float
        (bound − (variance − cost)) / variance, where the cost is that of slack: by what share the
        variance might be larger.
    mean_edge_error_, max_edge_error_ : float
        Errors of the lengths of edges, as fractions of them, in all directions of the solution;
        edges below a hundredth of the median length count as if they were that long.
    map_edge_error_ : float
        The mean on the map, that is without the directions it leaves out.
    rank_ : int
        Number of directions of the solution (in the component of most places: rows that coincide
        share one).
    eigenvalues_ : array of shape (rank,)
        Variance along every direction of the solution (in that component).
    unfolded_ : array of shape (n_samples, rank)
        All coordinates of the unfolded points, of which the map has the first.
    explained_variance_ratio_ : array of shape (rank,)
        The same as fractions of their sum.
    dimension_hint_ : int
        Number of directions with more than one percent of the variance.
    edges_ : array of shape (n_edges, 2)
        The pairs whose distances were kept; of rows that coincide, the first.
    multipliers_ : array of shape (n_edges,)
        How hard each of them pulls, in units of the variance per edge, so that their mean is about
        one; negative where it pushes, zero where its length came out by itself.
    component_labels_ : array of shape (n_samples,)
        Component of every point, 0 being the largest; -1 if it was left out.
    loss_ : float
        The negative of ``variance_``.
    converged_ : bool
        Whether lengths are kept and the gap is closed.
    status_ : str
        What was reached, in words.
    n_iter_, n_evaluations_ : int
        Steps of all rounds, and evaluations of the objective they took.
    rounds_ : structured array
        One entry per round: ``steps`` so far, ``stiffness``, ``variance``, ``violation`` and
        ``rank``.
    trace_ : structured array
        One entry per step: ``iteration``, ``value`` of the round's objective, ``gradient_norm``,
        ``length`` of the step, ``evaluations`` so far and ``parameter``, the round's stiffness.
    neighbor_search_ : str
        How neighbors were found, and why so; how many of them, where not all.

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

    _to_converge = (
        "raise max_iter, n_landmarks where there are any, tolerance or slack (to 0.01, say), or "
        "pass constraint='at_most' or cliques=False; see rounds_"
    )

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        radius: float | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        cliques: bool | None = None,
        constraint: str = "equal",
        tolerance: float = 0.005,
        slack: float | None = None,
        n_landmarks: int | None = None,
        init: Any = "isomap",
        disconnected: str = "separate",
        max_iter: int = 20_000,
        tol: float = 5e-4,
        gap_tol: float = 0.01,
        warm_start: bool = False,
        callback: Callback | None = None,
        callback_every: int = 1,
        verbose: bool = False,
        on_interrupt: str = "raise",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.metric_params = metric_params
        self.cliques = cliques
        self.constraint = constraint
        self.tolerance = tolerance
        self.slack = slack
        self.n_landmarks = n_landmarks
        self.init = init
        self.disconnected = disconnected
        self.max_iter = max_iter
        self.tol = tol
        self.gap_tol = gap_tol
        self.warm_start = warm_start
        self.callback = callback
        self.callback_every = callback_every
        self.verbose = verbose
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_search(self) -> None:
        super()._check_search()
        self._interval()
        self._slack()
        self._method()
        self._policy()
        if not (self.cliques is None or isinstance(self.cliques, bool | np.bool_)):
            raise TypeError(f"cliques={self.cliques!r} must be True, False or None; pass one")

    def _interval(self) -> tuple[float, float]:
        """Changes of squared lengths, as fractions, that cost nothing."""
        check_option("constraint", self.constraint, ("equal", "at_most"))
        t = check_nonnegative("tolerance", self.tolerance)
        check_below("tolerance", t, 1.0, "the whole length")
        low = -np.inf if self.constraint == "at_most" else (1 - t) ** 2 - 1
        return low, (1 + t) ** 2 - 1

    def _margin(self) -> float:
        """How far inside the band the search aims: what it may be off, if there is room."""
        if self._slack() > 0:
            return 0.0  # lengths that are off have their price
        return min(self._method().tol, self._interval()[1] / 2)

    def _method(self) -> MethodOfMultipliers:
        tol = 2 * check_positive("tol", self.tol)  # a fraction of squared lengths
        gap_tol = check_positive("gap_tol", self.gap_tol)
        return MethodOfMultipliers(tol, gap_tol, check_count("max_iter", self.max_iter))

    def _pose(self, data: Input) -> "PosedUnfolding":
        graph = connected_graph(self._neighbor_graph(data), self._policy(), data)
        self.neighbor_search_ = graph.search
        components = self._policy().components(graph.components()[1])
        labels = component_labels(components, graph.n_query)
        warn_of_short_circuits(graph)
        distinct = DistinctPoints.of(graph, labels >= 0)
        problem = self._problem(data, graph, distinct, labels[distinct.first])
        rng = as_generator(self.random_state, unset=0)
        return PosedUnfolding(data, graph, problem, rng, distinct, labels)

    def _problem(
        self, data: Input, graph: NeighborGraph, distinct: DistinctPoints, component: IntArray
    ) -> FreeUnfolding:
        cliques = (
            has_clique_distances(graph, data.distances) if self.cliques is None else self.cliques
        )
        edges = EdgeLengths.of(graph, distinct, bool(cliques), data.distances)
        if edges.count == 0:
            raise ValueError(all_coincide_message(int(distinct.multiplicity.sum())))
        for length in (edges.unit, edges.unit * edges.n):  # the map may be a straight line
            check_range(length)
        self._check_landmarks(edges.n, graph.index.points)
        multiplicity, margin = distinct.multiplicity, self._margin()
        return FreeUnfolding(
            edges, self._interval(), self._slack(), multiplicity, component, margin=margin
        )

    def _default_neighbors(self, n: int) -> int:
        # Few enough not to bridge layers; cliques make up for rigidity.
        return min(6, max(2, n // 2), n - 1)

    def _slack(self) -> float:
        if self.slack is None:  # landmarks cannot express maps that keep all lengths
            return 0.0 if self.n_landmarks is None else 1e-3
        return check_nonnegative("slack", self.slack)

    def _start(self, posed: "PosedUnfolding") -> Array:
        return unfolding_start(
            self.init,
            posed.data,
            posed.graph,
            self.n_components_,
            posed.objective,
            posed.distinct.first,
            posed.rng,
        )

    def _resume(self, posed: "PosedUnfolding", former: dict[str, Any], monitor: Monitor) -> Found:
        previous = former["embedding_"].astype(np.float64)[posed.distinct.first]
        start = np.nan_to_num(previous)  # some may not have been on the map
        return self._search(posed, start / posed.objective.edges.unit, monitor)

    def _search(self, posed: "PosedUnfolding", start: Array, monitor: Monitor) -> "FoundUnfolding":
        problem, method, rng = posed.objective, self._method(), posed.rng
        unit, k = problem.edges.unit, self.n_components_

        def begin(posing: UnfoldingProblem, last: Round | None, penalty: float) -> None:
            monitor.begin(penalty)
            monitor.view = lambda R: posed.flattened(posing.map(R), k)
            if last is not None:
                variance = last.variance * unit**2
                monitor.note = f"variance {variance:.4g}, violation {last.violation:.1e}, "

        if self.n_landmarks is None:
            found = method.solve(problem, start, rng, monitor, begin)
        else:
            Q = self._interpolation(posed)
            found = unfold_by_landmarks(method, problem, Q, start, rng, monitor, begin)
        Y, value = posed.flattened(found.map, k), -found.variance * unit**2
        solution = Solution(Y, value, found.converged, found.status, interrupted=found.interrupted)
        return FoundUnfolding(solution, problem, unfolded=found)

    def _check_landmarks(self, n_distinct: int, points: Matrix | None) -> None:
        if self.n_landmarks is None:
            return
        if points is None:
            raise ValueError(
                "n_landmarks needs the coordinates of the data, not only distances, to place the "
                "other points between landmarks; pass the data, or n_landmarks=None"
            )
        count = check_count("n_landmarks", self.n_landmarks, minimum=self.n_components_ + 1)
        check_at_most("n_landmarks", count, n_distinct, "the number of different points")

    def _interpolation(self, posed: "PosedUnfolding") -> Array:
        """The means of landmarks that stand for all places."""
        X: Any = posed.graph.index.points
        count, least = check_count("n_landmarks", self.n_landmarks), self.n_components_ + 1
        return landmark_interpolation(
            X[posed.distinct.first], posed.objective, count, posed.rng, least
        )

    def _store(self, posed: "PosedUnfolding", found: Any, monitor: Monitor) -> None:
        Y = posed.laid_out(found.solution.embedding)
        laid_out = replace(found, solution=replace(found.solution, embedding=Y))
        super()._store(posed, laid_out, monitor)
        self.component_labels_ = posed.labels
        self._store_evidence(posed, found.unfolded)
        missing = self.n_components_ - self.rank_
        if missing > 0:
            warn(
                f"{missing} of n_components={self.n_components_} coordinates are zero: the "
                "unfolded points do not extend along them. Pass fewer components",
                RankWarning,
            )

    def _loss(self, found: Found) -> float:
        return found.solution.value

    def _warn_of(self, solution: Solution) -> None:
        if not solution.converged:
            super()._warn_of(solution)

    def _store_evidence(
        self, posed: "PosedUnfolding", found: UnfoldingResult, noticeable: float = 0.01
    ) -> None:
        """Figures of the unfolding; a `noticeable` fraction of the variance makes a dimension."""
        problem, distinct = posed.objective, posed.distinct
        edges, squared = problem.edges, problem.edges.unit**2
        self.variance_, self.variance_bound_ = found.variance * squared, found.bound * squared
        self.gap_ = found.gap
        errors = edges.errors(found.map)
        self.mean_edge_error_, self.max_edge_error_ = float(errors.mean()), float(errors.max())
        shown = self.embedding_[distinct.first].astype(np.float64) / edges.unit
        self.map_edge_error_ = float(edges.errors(shown).mean())
        largest = np.bincount(problem.component).argmax()  # by places, of which copies share one
        values, _ = principal(problem, found.map, np.flatnonzero(problem.component == largest))
        self.eigenvalues_ = values * squared
        self.explained_variance_ratio_ = values / values.sum()
        self.rank_ = len(values)
        self.unfolded_ = posed.laid_out(posed.flattened(found.map, self.rank_))
        self.dimension_hint_ = int((self.explained_variance_ratio_ > noticeable).sum())
        self.edges_, self.multipliers_ = distinct.first[edges.ends], found.multipliers
        kinds = [(name, int if name in ("steps", "rank") else float) for name in Round._fields]
        self.rounds_ = np.array(found.rounds, dtype=kinds)
        self.rounds_["variance"] *= squared

    def pose(self, X: Any) -> PosedMap:
        """Unfold `X`, and state the eigenproblem of the Gram matrix of the unfolded points.

        For those who want other coordinates of them than the principal ones, as
        :class:`~manifoldry.NonRedundant` does, and hand the solution to :meth:`adopt`.
        """
        extension: Any = self.fit(X).extension_
        beyond = replace(extension, embedding=self.unfolded_)
        parts = component_rows(self.component_labels_)
        return PosedMap(self._read(X), self.unfolded_, parts, beyond, extension.graph)

    def adopt(self, posed: Any, spectra: Spectra) -> None:
        """Make the solution of a posed problem the fitted model; see :meth:`pose`.

        What is known of the unfolding stays; ``eigenvalues_``, with ``residuals_``, ``gaps_`` and
        ``solver_`` beside them, are then those of the coordinates.
        """
        del self.map_edge_error_  # of the principal coordinates
        store_spectrum(self, posed, spectra)
        self._adopt(posed, spectra)

    def _extend(self, posed: "PosedUnfolding", found: Found, reg: float = 1e-3) -> Extension:
        """By the weights of LLE, with its ridge, or where there are none by distances."""
        graph, labels = posed.graph, posed.labels
        euclidean = graph.metric in ("euclidean", "l2") and graph.n_neighbors is not None
        if euclidean and graph.index.points is not None:
            return Barycentric(graph, self.embedding_, reg, labels)
        return Triangulation(graph, self.embedding_, labels)


@dataclass(frozen=True, eq=False)
class PosedUnfolding(PosedSearch):
    """Lengths to be kept on a map of places, at which one point or several lie."""

    objective: FreeUnfolding
    distinct: DistinctPoints
    labels: IntArray  # component of every point, -1 where it is left out

    def flattened(self, R: Array, n_components: int) -> Array:
        """The map of all points: every component along its principal axes, about its mean."""
        Y = np.zeros((len(R), n_components))
        for rows in split_by_label(self.objective.component):
            _, turned = principal(self.objective, R, rows)
            kept = turned[:, :n_components]
            Y[rows, : kept.shape[1]] = kept
        return self.distinct.expand(Y) * self.objective.edges.unit

    def laid_out(self, Y: Array) -> Array:
        """The map with its components where they lie in the data."""
        layout = Layout.of(self.labels, Y, self.data.geometry, preserves_scale=True)
        return layout.place(Y, self.labels)


@dataclass(frozen=True, eq=False)
class FoundUnfolding(Found):
    """What an unfolding came to."""

    unfolded: UnfoldingResult | None = None


def principal(
    problem: FreeUnfolding, R: Array, rows: IntArray, nothing: float = 1e-6
) -> tuple[Array, Array]:
    """Variance along every principal axis of a component, and its coordinates along them."""
    centered = problem.centered(R)[rows]
    values, axes = np.linalg.eigh(centered.T @ (problem.multiplicity[rows, None] * centered))
    values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
    kept = values > nothing * values[0] if len(values) else []
    return values[kept], fixed_signs(centered @ axes[:, kept])


MVU = MaximumVarianceUnfolding
