"""Unsupervised kernel regression."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.affinity.gaussian import local_weights
from manifoldry.base.input import Input, Points, RowMatcher
from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.projection import (
    FramedProjection,
    FramedRegression,
    OrthogonalProjection,
    in_frame,
)
from manifoldry.iterative.base import Found, IterativeEmbedder, PosedSearch, check_homotopy
from manifoldry.iterative.monitor import Callback, Monitor
from manifoldry.iterative.start import OPTIONS, check_init, warn_if_too_large
from manifoldry.iterative.ukr_start import StartSearch, extent, grow_box, search_in_box
from manifoldry.neighbors.distances import Frame
from manifoldry.objectives.base import Objective
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.kernel_regression import UKRObjective, reinsert
from manifoldry.objectives.leave_one_out import leave_one_out_errors
from manifoldry.objectives.regression_kernels import RegressionKernel
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.homotopy import Homotopy, Path
from manifoldry.optimize.methods import LBFGS
from manifoldry.optimize.optimizer import Optimizer, Solution
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.optimize.stopping import Stopping
from manifoldry.spectral.posed import all_coincide_message
from manifoldry.util.checks import as_generator, check_nonnegative, check_positive
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, RandomState


class UKR(IterativeEmbedder):
    """Find the map from which kernel regression predicts the data best.

    Minimizes 1/n Σⱼ‖xⱼ − fⱼ‖², where fⱼ is the mean of the other data, weighted by how near they
    are on the map (:class:`~manifoldry.objectives.UKRObjective`): a nonlinear principal component
    analysis without a parametric form, whose objective is an error in data space. Use it for
    curves and surfaces with noise, up to a few thousand points, and where the way from the map
    to the data matters: `inverse_transform` is the regression itself, with derivatives
    (`jacobian`), and `transform` its orthogonal projection.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates; by default two, or what the data allow.
    kernel : {"gaussian", "student", "quartic", "triweight"}, default="gaussian"
        How the say of a point falls with its squared distance on the map; the last two reach no
        further than one.
    leave_one_out : bool, default=True
        Leave each point out of its own prediction, which keeps the map from flying apart. Without
        it pass `box`.
    box : float, default=None
        Keep the map within this distance of zero, in every coordinate.
    density_floor : float, default=None
        Call points back where the others' kernels sum to less than this, that is, where fewer
        others are within reach; 0 for no floor. By default 10 on a plane, 3 on a line and 32 in
        space, or a twentieth of the points if those are fewer. It is what keeps the map smooth:
        leaving points out alone rewards maps in which points stand so far apart that each is
        predicted by its nearest neighbor. New points heed it too.
    n_neighbors : int, default=None
        Neighbors in the graph of ``init="spectral"`` and of the filters in `guidance` and
        `optimizer`; by default 10, or half the points if those are fewer.
    init : {"auto", "spectral", "pca", "random"}, estimator or array, default="auto"
        Where the search begins: Laplacian eigenmaps, principal components, a small cloud, the map
        of any estimator, or a map of shape (n_samples, n_components) as it is. All but the last
        are scaled to the least leave-one-out error. ``"auto"`` takes that of the elastic
        embedding, Isomap and principal components whose error is smallest.
    optimizer : str or Optimizer, default=None
        What searches; see :func:`manifoldry.optimize.resolve_optimizer`. By default L-BFGS
        with a mild spectral direction, which stops when steps move the map by less than 0.005 of
        its size; further steps predict the data better by a trifle and cost the map as much as
        they give.
    guidance : str or Filter, default=None
        A filter of the gradient that changes as the search goes on, see
        :func:`manifoldry.optimize.resolve_guidance`: it holds a map from a poor start to the
        smooth functions of the data first, in place of the optimizer's own filter. A good start
        needs none.
    homotopy : bool or Homotopy, default=False
        Begin in a box so small that all points see each other, and let it grow step by step to
        `box`, or, without one, to the size that the start has at its best scale; see
        :class:`~manifoldry.optimize.Homotopy`.
    max_iter : int, default=None
        Most steps of the search, along a homotopy of each search; by default the optimizer's own.
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
    loss_ : float
        The objective at the map, in squared units of the data: the mean squared error of
        prediction, and the penalty of the density's floor.
    converged_ : bool
        Whether the search came to rest.
    status_ : str
        Why the search stopped, in words.
    n_iter_, n_evaluations_ : int
        Steps of the search, and evaluations of the objective they took.
    trace_ : structured array
        One entry per step, and one for the start of every search of which the fit consists:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and ``parameter``, the half width of a growing box; NaN without a homotopy. Values
        are those of data in the search's own units.
    path_ : Path or None
        The maps along a homotopy, by the half width of the box; None without one.
    leave_one_out_error_ : float
        Mean squared error of predicting each row from the others, as a fraction of the variance.
    start_ : str
        The starts that were tried, the best first, each with the objective as a fraction of the
        variance; ``"given"`` where a map was given, empty if there was nothing to try.
    neighbor_search_ : str
        How neighbors were found, and why so; how many of them, where not all.

    Examples
    --------
    >>> from manifoldry import UKR
    >>> from manifoldry.datasets import make_helix
    >>> X, angle = make_helix(300, random_state=0)
    >>> model = UKR(n_components=1).fit(X)
    >>> model.leave_one_out_error_ < 0.02
    True
    >>> model.jacobian(model.embedding_[:5]).shape
    (5, 3, 1)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: str | RegressionKernel = "gaussian",
        leave_one_out: bool = True,
        box: float | None = None,
        density_floor: float | None = None,
        n_neighbors: int | None = None,
        init: Any = "auto",
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
        self.kernel = kernel
        self.leave_one_out = leave_one_out
        self.box = box
        self.density_floor = density_floor
        self.n_neighbors = n_neighbors
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

    _remedy = "pass a smaller n_components"
    # Longer searches lower the error and leave no better maps: docs/iterative.md has the study.
    _default_optimizer = LBFGS(
        SpectralDirection(shift=0.1), stopping=Stopping(tol=5e-3, max_reference_size=10.0)
    )
    # Errors are lengths of differences.
    metric = "euclidean"
    metric_params = None

    def _pose(self, data: Input) -> "PosedRegression":
        if not self.leave_one_out and self.box is None:
            raise ValueError(
                "without leave_one_out every point predicts itself best, alone on a map without "
                "bounds; pass box=3, say, or leave_one_out=True"
            )
        if data.points is None:
            raise ValueError(
                "UKR predicts the data, but this graph was made from distances; fit it on the data"
            )
        graph = self._neighbor_graph(data)
        self.neighbor_search_ = graph.search
        if not graph.distances.any():
            raise ValueError(all_coincide_message(graph.n_query))
        frame, X = in_frame(data.points)
        regression = UKRObjective(X, local_weights(graph), self.kernel, self.leave_one_out)
        floor = self._floor(regression)
        rng = as_generator(self.random_state, unset=0)
        return PosedRegression(data, graph, floor.on(regression), rng, regression, frame, floor)

    def _floor(self, regression: UKRObjective) -> "Floor":
        """How many others there are to be near every point."""
        n, kernel = regression.n, self.kernel
        if self.density_floor is None:
            return Floor.default(n, self.n_components_, regression.variance, kernel)
        count = check_nonnegative("density_floor", self.density_floor)
        if count >= n - 1:
            raise ValueError(
                f"density_floor={count:g} must be less than n_samples - 1 = {n - 1}, the number "
                f"of others; pass density_floor={(n - 1) / 2:g}, say"
            )
        return Floor(count, regression.variance, kernel)

    def _start(self, posed: "PosedRegression") -> Array:
        self.start_ = "given"
        shape = (posed.objective.n, self.n_components_)
        init = check_init(self.init, shape, ("auto", *OPTIONS))
        if isinstance(init, np.ndarray):
            warn_if_too_large(init, posed.objective)
            return init
        auto = isinstance(init, str) and init == "auto"
        # The isometric copy has at most n features: starts cost no more than the search.
        data = Points(posed.regression.data) if auto else posed.data
        tries = StartSearch(data, posed.graph, shape[1], posed.objective.value, posed.rng)
        Y = tries.best() if auto else tries.sized(init)
        self.start_ = tries.summary(posed.regression.variance)
        return Y

    def _check_search(self) -> None:
        super()._check_search()
        self._optimizer()
        check_homotopy(self.homotopy)

    def _search(self, posed: "PosedRegression", start: Array, monitor: Monitor) -> Found:
        path = None
        if self.homotopy:
            solution, path = self._grown(posed, start, monitor)
            if self.box is not None or solution.interrupted:
                return Found(solution, posed.objective, path)
            start = solution.embedding
        return Found(self._settled(posed, start, monitor), posed.objective, path)

    def _resume(self, posed: "PosedRegression", former: dict[str, Any], monitor: Monitor) -> Found:
        self.start_ = "given"
        start = former["embedding_"].astype(np.float64)
        return Found(self._settled(posed, start, monitor), posed.objective)

    def _grown(
        self, posed: "PosedRegression", start: Array, monitor: Monitor
    ) -> tuple[Solution, Path]:
        """Search along a homotopy in which a box grows."""
        size = extent(start) if self.box is None else check_positive("box", self.box)
        rule = self.homotopy if isinstance(self.homotopy, Homotopy) else Homotopy()
        return grow_box(rule, posed.objective, size, start, self._optimizer(), posed.rng, monitor)

    def _settled(self, posed: "PosedRegression", start: Array, monitor: Monitor) -> Solution:
        """Minimize, once more where points have got out of reach of all others."""
        if self.box is not None:
            box = check_positive("box", self.box)
            return search_in_box(self._minimize, posed.objective, box, start, monitor)
        # Points out of reach have no gradient in the regression, and a huge one in the floor.
        start = reinsert(posed.regression, start)
        solution = self._minimize(posed.objective, start, monitor)
        if solution.interrupted:
            return solution
        found = reinsert(posed.regression, solution.embedding)
        if found is solution.embedding:
            return solution
        return self._minimize(posed.objective, found, monitor)

    def _store(self, posed: "PosedRegression", found: Found, monitor: Monitor) -> None:
        super()._store(posed, found, monitor)
        X, variance = posed.regression.data, posed.regression.variance
        errors = leave_one_out_errors(found.solution.embedding, X, self.kernel)
        self.leave_one_out_error_ = float(errors.mean()) / variance
        self.loss_ *= posed.frame.unit**2
        self.path_ = found.path

    def _extend(self, posed: "PosedRegression", found: Found) -> FramedProjection:
        surface, floor = self._surface(posed), posed.floor
        projection = OrthogonalProjection(surface, floor=floor.count, weight=floor.weight)
        return FramedProjection(posed.frame, projection)

    def _invert(self, posed: "PosedRegression") -> FramedRegression:
        return FramedRegression(posed.frame, self._surface(posed))

    def _surface(self, posed: "PosedRegression") -> KernelRegressionMap:
        Y = self.embedding_.astype(np.float64)
        return KernelRegressionMap(Y, posed.regression.X, self.kernel)

    def jacobian(self, X: Any) -> Array:
        """Derivatives of `inverse_transform` by the coordinates.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Positions on the map.

        Returns
        -------
        array of shape (n_samples, n_features, n_components)
        """
        surface: Any = self.inverse_
        return np.asarray(surface.jacobian(self._check_coordinates(X)))


@dataclass(frozen=True)
class Floor:
    """Others to be near every point, and what it costs where there are fewer."""

    count: float
    variance: float  # of the data
    kernel: str | RegressionKernel
    fraction: float = 0.01  # weight of the penalty, in units of that variance

    @classmethod
    def default(
        cls, n: int, n_components: int, variance: float, kernel: str | RegressionKernel
    ) -> "Floor":
        """√10 in each direction of the map (100 of them at most), or a twentieth of the points."""
        return cls(min(10 ** (min(n_components, 100) / 2), n / 20), variance, kernel)

    @property
    def weight(self) -> float:
        """Weight of the penalty."""
        return self.fraction * self.variance

    def on(self, regression: UKRObjective) -> Objective:
        """The objective with the penalty, if there is one."""
        if self.count == 0:
            return regression
        return DensityFloor(regression, self.count, self.weight, self.kernel)


@dataclass(frozen=True, eq=False)
class PosedRegression(PosedSearch):
    """Kernel regression of the data, in a frame of their own, on the map."""

    regression: UKRObjective
    frame: Frame
    floor: Floor

    @property
    def row_matcher(self) -> RowMatcher | None:
        return RowLookup.of(self.data.points)
