"""Unsupervised kernel regression."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.affinity.gaussian import local_weights
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input, Points, RowMatcher
from manifoldry.base.resources import on_its_device
from manifoldry.device import Device
from manifoldry.extension.base import Inverse
from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.projection import (
    FramedProjection,
    FramedRegression,
    OrthogonalProjection,
    in_frame,
)
from manifoldry.iterative.base import IterativeEmbedder, PosedSearch, SearchResult
from manifoldry.iterative.forecast import Phase
from manifoldry.iterative.monitor import Monitor
from manifoldry.iterative.start import (
    OPTIONS,
    check_init,
    is_fitted,
    map_of_model,
    warn_if_too_large,
    well_scaled,
)
from manifoldry.iterative.ukr_floor import Floor
from manifoldry.iterative.ukr_start import StartSearch, box_size, grow_box, search_in_box
from manifoldry.neighbors.distances import Frame
from manifoldry.objectives.kernel_regression import UKRObjective, reinsert
from manifoldry.objectives.leave_one_out import leave_one_out_errors, minimize_over_scale
from manifoldry.objectives.regression_kernels import RegressionKernel
from manifoldry.objectives.regression_pairs import DEFAULT_PAIRS
from manifoldry.optimize.homotopy import Homotopy, Path
from manifoldry.optimize.methods import LBFGS
from manifoldry.optimize.optimizer import Callback, Iterate, Optimizer, Solution
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.optimize.stopping import Stopping
from manifoldry.spectral.posed import all_coincide_message
from manifoldry.util.checks import as_generator, check_nonnegative, check_positive
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, Matrix, RandomState
from manifoldry.util.validation import plan_memory


@shared_docs
class UKR(IterativeEmbedder):
    """Unsupervised kernel regression: the embedding from which the data are predicted best.

    Minimizes 1/n Σⱼ‖xⱼ − fⱼ‖², where fⱼ is the kernel regression of xⱼ on the other points of the
    embedding (:class:`~manifoldry.objectives.UKRObjective`): a nonlinear, nonparametric principal
    component analysis, whose objective is an error in data space. Use it for noisy curves and
    surfaces, and if the inverse matters: `inverse_transform` is the regression itself, with
    derivatives (`jacobian`), and `transform` the orthogonal projection onto it. For more than 2000
    points, pairs whose weights are negligible are left out
    (:class:`~manifoldry.objectives.RegressionPairs`), so that time is proportional to the number of
    points; not with ``kernel="student"`` or more than three components, which take time
    proportional to its square.

    Parameters
    ----------
    {n_components}
    kernel : {"gaussian", "student", "quartic", "triweight"}, default="gaussian"
        Kernel of the regression, a function of the squared distance in the embedding; the last two
        vanish at distances above one.
    leave_one_out : bool, default=True
        Predict each point from the others only, which keeps distances in the embedding bounded.
        Without it pass `box`.
    box : float, default=None
        Bound of the absolute value of every coordinate.
    density_floor : float, default=None
        Penalize isolated points: those at which the kernels of the other points sum to less than
        this value; 0 for no penalty. By default 10 in two dimensions, 3 in one and 32 in three, or
        a twentieth of the points if that is less. It keeps the embedding smooth: the leave-one-out
        error alone is small if points are so far apart that each is predicted by its nearest
        neighbor. It also applies to new points.
    n_neighbors : int, default=None
        Neighbors per point in the graph of ``init="spectral"`` and of the filters of `optimizer`;
        by default 10, or half the points if that is less.
    init : {"auto", "spectral", "pca", "random"}, estimator or array, default="auto"
        Start of the search: Laplacian eigenmaps, principal components, Gaussian noise, or the
        embedding of an estimator that is not fitted, all scaled to the smallest leave-one-out
        error; an array of shape (n_samples, n_components), which is used as it is; or a fitted
        model. ``"auto"`` tries the elastic embedding, Isomap and principal components, and takes
        the one with the smallest error. For more than 2000 points Isomap has landmarks; for more
        than 20 000, the elastic embedding is optimized without the spectral direction.
        {fitted_init}
    optimizer : str, Optimizer or Homotopy, default=None
        The search: a name, see :func:`~manifoldry.optimize.resolve_optimizer`, an
        :class:`~manifoldry.optimize.Optimizer`, which also holds the tolerances, or a
        :class:`~manifoldry.optimize.Homotopy`, which keeps the embedding in a box and enlarges it
        step by step to `box`, or to the size of the start if there is no `box`; ``"homotopy"`` is
        ``Homotopy()``. By default ``LBFGS(SpectralDirection(shift=0.1), stopping=rule)`` with the
        rule ``Stopping(tol=5e-3, max_reference_size=10.0)``: more steps lower the error a little,
        but do not improve the embedding.
    {extension}
    inverse : {"kernel_regression", "regression"} or regressor, default=None
        How ``inverse_transform`` computes data from coordinates: by the kernel regression of the
        method, the default; by local regression; or by a scikit-learn regressor that is fitted to
        predict `X` from ``embedding_``.
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
    loss_ : float
        The objective at the embedding, in squared units of the data: the mean squared error of the
        prediction plus the penalty of `density_floor`.
    {converged_}
    {status_}
    {n_iter_}
    trace_ : structured array
        One entry per step, and one for the start of every search if there are several:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and ``parameter``, the half width of the box of a homotopy; NaN without one. Values are
        those for the scaled data.
    path_ : Path or None
        The embeddings along a homotopy, by the half width of the box; None without one.
    leave_one_out_error_ : float
        Mean squared error of predicting each row from the others, as a fraction of the variance.
    start_ : str
        The starts that were tried, the best one first, each with its objective as a fraction of
        the variance, estimated from 1000 of the points if there are more than 2000; ``"given"`` if
        `init` is an array or a fitted model.
    pairs_ : str
        Whether all pairs of points were used in the regression or only nearby ones, and why.
    {neighbor_search_}

    See Also
    --------
    ElasticEmbedding : one of its starts.
    LieTransform : a manifold of transformations, from pairs of rows.
    ConformalInverse : says how far reconstructed data can be trusted.

    References
    ----------
    P. Meinicke, S. Klanke, R. Memisevic and H. Ritter, "Principal surfaces from unsupervised kernel
    regression", IEEE Transactions on Pattern Analysis and Machine Intelligence 27 (2005).

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
        self.kernel = kernel
        self.leave_one_out = leave_one_out
        self.box = box
        self.density_floor = density_floor
        self.n_neighbors = n_neighbors
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

    # Rows of distributed data that are fitted: they take about fifteen seconds.
    _landmarks = 2000

    _named_inverses = ("kernel_regression", "regression")
    _remedy = "pass a smaller n_components"
    # Smaller tolerances lower the error but not the quality: see docs/concepts/optimizers.md.
    _default_optimizer = LBFGS(
        SpectralDirection(shift=0.1), stopping=Stopping(tol=5e-3, max_reference_size=10.0)
    )
    # The objective is the squared Euclidean error.
    metric = "euclidean"
    metric_params = None

    def _pose(self, data: Input) -> "PosedRegression":
        if not self.leave_one_out and self.box is None:
            raise ValueError(
                "leave_one_out=False needs a box, without which the error tends to zero as points "
                "move apart; pass box=3, for example, or leave_one_out=True"
            )
        if data.points is None:
            raise ValueError(
                "UKR predicts the data, but the graph was built from distances; fit it on the data"
            )
        plan_fit(data.points)
        graph = self._neighbor_graph(data)
        self.neighbor_search_ = graph.search
        if not graph.distances.any():
            raise ValueError(all_coincide_message(graph.n_query))
        frame, X = in_frame(data.points)
        regression = UKRObjective(X, local_weights(graph), self.kernel, self.leave_one_out)
        self.pairs_ = regression.pairs.reason(self.kernel, regression.n, self.n_components_)
        floor = self._floor(regression)
        rng = as_generator(self.random_state, unset=0)
        return PosedRegression(
            data, graph, floor.add_penalty(regression), rng, regression, frame, floor
        )

    def _floor(self, regression: UKRObjective) -> "Floor":
        """The requested density floor, or the default."""
        n, kernel = regression.n, self.kernel
        if self.density_floor is None:
            return Floor.default(n, self.n_components_, regression.variance, kernel)
        count = check_nonnegative("density_floor", self.density_floor)
        if count >= n - 1:
            raise ValueError(
                f"density_floor={count:g} must be less than n_samples - 1 = {n - 1}, the number "
                f"of other points; pass density_floor={(n - 1) / 2:g}, for example"
            )
        return Floor(count, regression.variance, kernel)

    def _start(self, posed: "PosedRegression") -> Array:
        self.start_ = "given"
        shape = (posed.objective.n, self.n_components_)
        init = check_init(self.init, shape, ("auto", *OPTIONS))
        auto = isinstance(init, str) and init == "auto"
        # The isometric copy of the data has at most n features, so that starts are cheap.
        data = Points(posed.regression.data) if auto else posed.data
        search = StartSearch(data, posed.graph, shape[1], posed.objective, posed.rng)
        if isinstance(init, np.ndarray):
            warn_if_too_large(init, search.value)
            return init
        if is_fitted(init):
            Y = map_of_model(init, posed.data, shape[1])
            scale, _ = minimize_over_scale(search.value, Y)
            return well_scaled(Y, scale, search.value)
        Y = search.best() if auto else search.scaled(init)
        self.start_ = search.summary(posed.regression.variance)
        return Y

    def _search(self, posed: "PosedRegression", start: Array, monitor: Monitor) -> SearchResult:
        path, homotopy = None, self._homotopy()
        if homotopy is not None:
            solution, path = self._follow(homotopy, posed, start, monitor)
            if self.box is not None or solution.interrupted:
                return SearchResult(solution, posed.objective, path)
            start = solution.embedding
        solution = self._minimize_from(posed, start, monitor)
        return SearchResult(solution, posed.objective, path)

    def _growth_of_time(self, n: int) -> float:
        nearby = np.isfinite(DEFAULT_PAIRS.reach(self.kernel, n, self.n_components_))
        return 1.2 if nearby else super()._growth_of_time(n)  # graph and start included

    def _phases(self, posed: "PosedRegression", start: Array) -> list[Phase]:
        homotopy, last = self._homotopy(), super()._phases(posed, start)
        if homotopy is None:
            return last
        growth = Phase.homotopy("homotopy", homotopy, "half width of the box")
        return [growth] if self.box is not None else [growth, *last]

    def _follow(
        self, homotopy: Homotopy, posed: "PosedRegression", start: Array, monitor: Monitor
    ) -> tuple[Solution, Path]:
        """Follow the homotopy over the size of the box."""
        size = box_size(start) if self.box is None else check_positive("box", self.box)
        optimizer, rng = monitor.resumable(self._optimizer()), posed.rng
        return grow_box(homotopy, posed.objective, size, start, optimizer, rng, monitor)

    def _minimize_from(self, posed: "PosedRegression", start: Array, monitor: Monitor) -> Solution:
        """Minimize; repeat if points have ended beyond the kernels of all others."""
        if self.box is not None:
            box = check_positive("box", self.box)
            return search_in_box(self._minimize, posed.objective, box, start, monitor)
        # Such points have no gradient in the regression, and a huge one in the density floor.
        start = reinsert(posed.regression, start)
        solution = self._minimize(posed.objective, start, monitor)
        if solution.interrupted:
            return solution
        corrected = reinsert(posed.regression, solution.embedding)
        if corrected is solution.embedding:
            return solution
        return self._minimize(posed.objective, corrected, monitor)

    def _store(self, posed: "PosedRegression", result: SearchResult, monitor: Monitor) -> None:
        super()._store(posed, result, monitor)
        X, variance = posed.regression.data, posed.regression.variance
        errors = leave_one_out_errors(result.solution.embedding, X, self.kernel)
        self.leave_one_out_error_ = float(errors.mean()) / variance
        self.loss_ *= posed.frame.unit**2
        self.path_ = result.path

    def _extend(self, posed: "PosedRegression", result: SearchResult) -> FramedProjection:
        surface, floor = self._surface(posed), posed.floor
        projection = OrthogonalProjection(surface, floor=floor.min_kernel_sum, weight=floor.weight)
        return FramedProjection(posed.frame, projection)

    def _invert(self, posed: "PosedRegression") -> Inverse | None:
        if self.inverse == "regression":
            return super()._invert(posed)
        return FramedRegression(posed.frame, self._surface(posed))

    def _surface(self, posed: "PosedRegression") -> KernelRegressionMap:
        Y = self.embedding_.astype(np.float64)
        return KernelRegressionMap(Y, posed.regression.X, self.kernel)

    @on_its_device
    def jacobian(self, X: Any) -> Array:
        """Return the derivatives of `inverse_transform` with respect to the coordinates.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Coordinates in the embedding.

        Returns
        -------
        array of shape (n_samples, n_features, n_components)
            The derivative of each feature by each coordinate.
        """
        Z = self._check_coordinates(X)
        if not isinstance(self.inverse_, FramedRegression):
            raise ValueError(
                f"jacobian is that of the kernel regression, which inverse={self.inverse!r} "
                "replaces; fit with inverse=None"
            )
        return np.asarray(self.inverse_.jacobian(Z))


def plan_fit(points: Matrix, copies: int = 6) -> None:
    """Raise MemoryError if copies of the data, centered, scaled and fitted, do not fit."""
    n, n_features = points.shape
    what = f"kernel regression of {n} points with {n_features} features"
    plan_memory(8.0 * copies * n * n_features, what, "use fewer rows or features")


@dataclass(frozen=True, eq=False)
class PosedRegression(PosedSearch):
    """Kernel regression of the centered and scaled data on the embedding."""

    regression: UKRObjective
    frame: Frame
    floor: Floor

    @property
    def row_matcher(self) -> RowMatcher | None:
        return RowLookup.of(self.data.points)
