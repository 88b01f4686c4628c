"""Unsupervised kernel regression."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry._checks import as_generator, check_positive
from manifoldry._rows import RowLookup
from manifoldry._typing import Array, Matrix, RandomState
from manifoldry._validation import plan_memory
from manifoldry.affinity.self_tuning import local_weights
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.projection import OrthogonalProjection
from manifoldry.iterative.base import IterativeEmbedder
from manifoldry.iterative.monitor import Callback, Monitor
from manifoldry.iterative.start import check_init, starting_map
from manifoldry.neighbors.distances import Frame
from manifoldry.objectives.base import Objective
from manifoldry.objectives.boxed import Boxed
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.kernel_regression import UKRObjective
from manifoldry.objectives.leave_one_out import best_scale
from manifoldry.objectives.regression_kernels import RegressionKernel
from manifoldry.objectives.reinsertion import reinsert
from manifoldry.objectives.resized import Resized
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.homotopy import Homotopy, Walk
from manifoldry.optimize.optimiser import Optimiser
from manifoldry.optimize.solution import Solution
from manifoldry.spectral.graph_embedder import all_coincide
from manifoldry.spectral.linear_pose import check_range

_FIXED_SEED = 0  # without a seed every fit takes the same start
_SMALLEST_BOX = 0.1  # in which a homotopy begins: all points see each other
_FLOOR_WEIGHT = 0.01  # of the density's penalty, as a share of the data's variance


class UKR(IterativeEmbedder):
    """Find the map from which kernel regression predicts the data best.

    Minimises 1/n Σⱼ‖xⱼ − fⱼ‖², where fⱼ is the mean of the other data, weighted by how near they
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
        Call points back where the others' kernels sum to less than this.
    n_neighbors : int, default=None
        Neighbours in the graph from which the start is made; by default 10, or half the points
        if those are fewer.
    init : {"spectral", "pca", "random"}, estimator or array, default="spectral"
        Where the search begins: Laplacian eigenmaps, principal components, a small cloud, the map
        of any estimator, or a map of shape (n_samples, n_components) as it is. All but the last
        are scaled to the least leave-one-out error.
    optimizer : str or Optimiser, default=None
        What searches; see :func:`manifoldry.optimize.resolve_optimiser`. By default L-BFGS.
    guidance : Filter, default=None
        A filter of the gradient that changes as the search goes on, see
        :mod:`manifoldry.optimize`: it holds a map from a poor start to the smooth functions of
        the data first. A good start needs none.
    homotopy : bool or Homotopy, default=False
        Begin in a box so small that all points see each other, and let it grow step by step to
        `box`, or, without one, to the size that the start has at its best scale; see
        :class:`~manifoldry.optimize.Homotopy`.
    max_iter : int, default=None
        Most steps of the search, along a homotopy of each search; by default the optimiser's own.
    tol : float, default=None
        Converged when steps move the map by less than this share of its size; by default the
        optimiser's own.
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
    leave_one_out_error_ : float
        Mean squared error of predicting each row from the others, as a share of the variance.

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
        init: Any = "spectral",
        optimizer: str | Optimiser | None = None,
        guidance: Filter | None = None,
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

    _default_optimizer = "lbfgs"
    # Errors are lengths of differences.
    metric = "euclidean"
    metric_params = None

    def _pose(self, data: Any) -> Objective:
        if not self.leave_one_out and self.box is None:
            raise ValueError(
                "without leave_one_out every point predicts itself best, alone on a map without "
                "bounds; pass box=3, say, or leave_one_out=True"
            )
        if self._points(data) is None:
            raise ValueError(
                "UKR predicts the data, but this graph was made from distances; fit it on the data"
            )
        graph = self._graph = self._unconnected(data)
        self.search_ = graph.search
        if not graph.distances.any():
            raise ValueError(all_coincide(graph.n_query))
        self._frame, X = _in_frame(self._points(data))
        self._rng = as_generator(self.random_state, unset=_FIXED_SEED)
        self._regression = UKRObjective(X, local_weights(graph), self.kernel, self.leave_one_out)
        if self.density_floor is None:
            return self._regression
        floor = check_positive("density_floor", self.density_floor)
        weight = _FLOOR_WEIGHT * self._regression.variance
        return DensityFloor(self._regression, floor, weight, self.kernel)

    def _start(self, data: Any, objective: Objective) -> Array:
        shape = (objective.n, self.n_components_)
        init = check_init(self.init, shape)
        if isinstance(init, np.ndarray):
            return init
        Y = starting_map(init, self._seen(data), shape[1], self._rng)
        return best_scale(Y, self._regression.data, self.kernel).scale * Y

    def _minimise(self, objective: Objective, start: Array, monitor: Monitor) -> Solution:
        if self.box is not None:
            return self._boxed(objective, check_positive("box", self.box), start, monitor)
        solution = super()._minimise(objective, start, monitor)
        if solution.interrupted:
            return solution
        found = reinsert(self._regression, solution.embedding)
        if found is solution.embedding:
            return solution
        return super()._minimise(objective, found, monitor)

    def _boxed(self, objective: Objective, size: float, start: Array, monitor: Monitor) -> Solution:
        boxed = Boxed(objective, size)
        monitor.view = boxed.inside
        found = super()._minimise(boxed, boxed.outside(start), monitor)
        return replace(found, embedding=boxed.inside(found.embedding))

    def _follow(self, objective: Objective, start: Array, monitor: Monitor) -> Solution:
        """Let a box grow: the map, in units of the box, is the start at every next size."""
        extent = float(np.abs(start - start.mean(axis=0)).max())
        size = extent if self.box is None else check_positive("box", self.box)
        rule = self._homotopy

        def family(eta: float) -> Objective:
            monitor.view = lambda U: eta * np.sin(U)
            return Resized(Boxed(objective, eta), eta)

        U = Boxed(objective, 1.0).outside((start - start.mean(axis=0)) / extent)
        optimiser = self._optimiser(self._default_optimizer)
        walk = Walk(rule, family, U, optimiser, self._rng, monitor, monitor.begin)
        sizes = rule.values_between(min(_SMALLEST_BOX, size / 2), size)
        found = rule.follow(walk, sizes)
        self.path_ = walk.path.seen_through(lambda eta, U: eta * np.sin(U))
        monitor.view = None
        found = replace(found, embedding=self.path_.embeddings[-1])
        if self.box is None and not found.interrupted:
            found = self._minimise(objective, found.embedding, monitor)
        return found

    def _store(self, data: Any, solution: Solution, monitor: Monitor) -> None:
        super()._store(data, solution, monitor)
        regression = UKRObjective(self._regression.X, kernel=self.kernel)
        self.leave_one_out_error_ = regression.value(solution.embedding) / regression.variance
        self.loss_ *= self._frame.unit**2
        del self._rng  # it may be the caller's

    def _extend(self, data: Any) -> Extension:
        self._lookup = RowLookup.of(self._points(data))
        X = self._regression.X
        self._surface = KernelRegressionMap(self.embedding_.astype(np.float64), X, self.kernel)
        del self._regression, self._objective  # they hold the data once more
        return FramedProjection(self._frame, OrthogonalProjection(self._surface))

    def _way_back(self, data: Any) -> Inverse:
        return FramedRegression(self._frame, self._surface)

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
        Z = self._check_positions(X)
        return self._frame.unit * self._surface.jacobian(Z)


@dataclass(frozen=True, eq=False)
class FramedProjection(Extension):
    """Orthogonal projection of data in their own units."""

    frame: Frame
    projection: OrthogonalProjection

    def transform(self, X: Matrix) -> Array:
        return self.projection.transform(_dense(self.frame.apply(X)))


@dataclass(frozen=True, eq=False)
class FramedRegression:
    """The data at map positions, in their own units."""

    frame: Frame
    surface: KernelRegressionMap

    def predict(self, Z: Array) -> Array:
        """Data at map positions `Z`, (n_new, n_features)."""
        return self.frame.origin + self.frame.unit * self.surface.predict(Z)


def _dense(X: Matrix) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def _in_frame(points: Matrix) -> tuple[Frame, Array]:
    """The data in units in which squares neither overflow nor vanish."""
    if sparse.issparse(points):
        plan_memory(8.0 * np.prod(points.shape), "sparse data as a dense array", "use fewer rows")
    frame = Frame.of(points)
    check_range(frame.unit)
    return frame, _dense(frame.apply(points))
