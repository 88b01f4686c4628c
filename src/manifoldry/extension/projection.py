"""Extension by orthogonal projection onto the surface of a kernel regression."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr

from manifoldry.device import current_device
from manifoldry.extension.base import Extension, warn_if_not_converged
from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.new_points import first_minimum
from manifoldry.extension.on_device import BUDGET, copied_to, symmetric_eigh
from manifoldry.extension.projection_cost import CompiledDistance, CostExpansion, ProjectionCost
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.distances import Frame, check_range
from manifoldry.util.arrays import namespace, to_numpy
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.checks import check_count, check_nonnegative
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import plan_memory, power_of_two_scale, row_blocks

_LARGEST = float(np.finfo(np.float64).max)
_TINY = float(np.finfo(np.float64).tiny)


class ProjectionResult(NamedTuple):
    """Projections of new points onto the surface."""

    positions: Array
    """Coordinates, (n_new, n_components)."""
    residuals: Array
    """Distances from the surface, (n_new,)."""
    converged: NDArray[np.bool_]
    """Whether the searches converged, (n_new,)."""


@dataclass(frozen=True)
class DampedNewton:
    """Newton's method with adaptive damping (Levenberg-Marquardt).

    Parameters
    ----------
    max_iter : int, default=200
        Largest number of steps.
    tolerance : float, default=1e-11
        Step length at which a search ends, relative to the extent of the embedding.
    gain : float, default=1e-15
        Predicted decrease at which a search ends, relative to the cost.
    rounding : float, default=1e-13
        Rounding error of the cost, relative to squared norms; an increase below it is accepted.
    damping : float, default=1e-3
        Initial damping, relative to the largest curvature.
    """

    max_iter: int = 200
    tolerance: float = 1e-11
    gain: float = 1e-15
    rounding: float = 1e-13
    damping: float = 1e-3

    def minimize(
        self, cost: ProjectionCost, X: Array, Z: Array, low: Array, high: Array
    ) -> "_SearchResult":
        """Minimize the cost from each of the positions `Z` within the box from `low` to `high`."""
        xp, Z, extent = namespace(Z), Z.copy(), np.maximum(high - low, _TINY)
        moving, damping = xp.arange(len(Z)), xp.full(len(Z), self.damping)
        here, slack = cost.evaluate(X, Z), self.rounding * (X**2).sum(axis=1)
        for _ in range(self.max_iter):
            steps = _steps(here.rows(moving), damping[moving], Z[moving], low, high)
            trial = np.clip(Z[moving] + np.clip(steps, -extent, extent), low, high)
            length = (np.abs(trial - Z[moving]) / extent).max(axis=1)
            gain = -(steps * here.gradient[moving]).sum(axis=1)
            there = cost.evaluate(X[moving], trial)
            better = there.values <= here.values[moving] * (1 + self.rounding) + slack[moving]
            damping[moving] = self._next_damping(damping[moving], better)
            taken = moving[better]
            Z[taken] = trial[better]
            for old, new in zip(here, there, strict=True):
                old[taken] = new[better]
            moving = moving[(length > self.tolerance) & (gain > self.gain * there.values)]
            if len(moving) == 0:
                break
        converged = xp.ones(len(Z), dtype=bool)
        converged[moving] = False
        return _SearchResult(Z, here.values, converged)

    def _next_damping(self, now: Array, better: Array) -> Array:
        return np.where(better, now / 10, 10 * now + self.damping)


@dataclass(frozen=True, eq=False)
class OrthogonalProjection(Extension):
    """Coordinates z that minimize ‖x − f(z)‖ for every new point x, where f is a kernel regression.

    The cost is minimized by the Levenberg-Marquardt method from the training coordinates whose
    images are nearest; the best result is kept. Coordinates are confined to the bounding box of the
    embedding, widened by a tenth, beyond which f is constant. Each point is projected separately,
    to about 1e-9, so that the result does not depend on the other points.

    Outside the embedding f is a step function, whose steps would attract new points far from the
    embedding. A `floor` of the density prevents this: the cost is then
    ‖x − f(z)‖² + weight·max(0, log(floor/ρ(z)))², where ρ(z) = Σᵢ κ(‖z − zᵢ‖²). The projection is
    orthogonal where the density is at least the floor.

    Parameters
    ----------
    surface : KernelRegressionMap
        The kernel regression f.
    n_starts : int, default=5
        Number of starts for every point.
    floor : float, default=0.0
        Density below which coordinates are penalized; 0 for no penalty.
    weight : float, default=0.0
        Weight of the penalty, in squared units of the data.
    margin : float, default=0.1
        Margin of the bounding box, as a fraction of the extent of the embedding.
    farthest : float, default=1e6
        Largest distance of a point, relative to the scale of the data; farther points are clipped.
    tie : float, default=1e-12
        Costs that differ by less, in units of the largest value of the data, are equal, and the
        result of the nearest start is kept: a curve that crosses itself has several projections.
    search : DampedNewton
        Optimizer.
    compile_pairs : float, default=1e6
        Number of pairs of starts and training points from which compiled loops are used.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.linspace(-8, 8, 40)[:, None]
    >>> curve = KernelRegressionMap(Z, np.hstack([Z, 0 * Z]))
    >>> OrthogonalProjection(curve).transform(np.array([[1.0, 3.0]])).round(2)
    array([[1.]])
    """

    surface: KernelRegressionMap
    n_starts: int = 5
    floor: float = 0.0
    weight: float = 0.0
    margin: float = 0.1
    farthest: float = 1e6
    tie: float = 1e-12
    search: DampedNewton = DampedNewton()
    compile_pairs: float = 1e6

    __getstate__ = state_of_fields

    def __post_init__(self) -> None:
        check_nonnegative("floor", self.floor)
        check_nonnegative("weight", self.weight)

    def transform(self, X: Array) -> Array:
        Z, converged = self._search(X)
        warn_if_not_converged(converged)
        return Z

    def project(self, X: Array) -> ProjectionResult:
        """Coordinates of new points, and their distances from the surface."""
        Z, converged = self._search(X)
        return ProjectionResult(Z, self._distances(X, Z), converged)

    def _search(self, X: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Coordinates of new points, and whether the searches converged."""
        k = min(check_count("n_starts", self.n_starts), len(self._map.Z))
        Z, converged = np.empty((len(X), self._map.Z.shape[1])), np.empty(len(X), dtype=bool)
        cost, device = self._cost(k * len(X)), current_device()
        budget = {} if device is None else {"budget": BUDGET}
        for block in row_blocks(len(X), k * cost.numbers_per_row + X.shape[1], **budget):
            near = self._relative(X[block])
            starts = self._map.Z[self._images.nearest(near, k)[0].ravel()]
            posed = copied_to(device, near.repeat(k, axis=0), starts, *self._box)
            ends = _SearchResult(*map(to_numpy, self.search.minimize(cost, *posed)))
            best = first_minimum(ends.costs.reshape(-1, k).T, tie=self.tie)
            best = best + k * np.arange(len(near))
            Z[block], converged[block] = ends.positions[best], ends.converged[best]
        return Z, converged

    def _distances(self, X: Array, Z: Array) -> Array:
        out = np.empty(len(X))
        for block in row_blocks(len(X), 3 * X.shape[1]):
            R = X[block] - self.surface.predict(Z[block])
            size = np.maximum(
                np.abs(R).max(axis=1), _TINY
            )  # squares of distant points may overflow
            out[block] = size * np.linalg.norm(R / size[:, None], axis=1)
        return out

    def _relative(self, X: Array) -> Array:
        """New points in the coordinates of `_map`, projected onto the span of the data."""
        with np.errstate(over="ignore"):
            X = (np.asarray(X, dtype=np.float64) - self.surface.mean) / self._unit
        X = np.clip(X, -_LARGEST, _LARGEST)
        size = np.abs(X).max(axis=1, keepdims=True)
        X = X * (self.farthest / np.maximum(size, self.farthest))
        return X if self._basis is None else np.asarray(X @ self._basis)

    @cached_property
    def _unit(self) -> float:
        return power_of_two_scale(self.surface.centered)

    @cached_property
    def _basis(self) -> Array | None:
        """Orthonormal basis (n_features, n) of the data if n < n_features, else None."""
        X = self.surface.centered / self._unit
        return None if X.shape[1] <= len(X) else np.asarray(qr(X.T, mode="economic")[0])

    @cached_property
    def _map(self) -> KernelRegressionMap:
        """The surface for centered and scaled data, in at most n dimensions."""
        X = self.surface.centered / self._unit
        X = X if self._basis is None else X @ self._basis
        return replace(self.surface, Z=self.surface.positions, X=X)

    def _cost(self, n_positions: int) -> ProjectionCost:
        weight = self.weight / self._unit / self._unit if self.floor > 0 else 0.0
        if (device := current_device()) is not None:
            sources = self._map.sources_on(device)
            return ProjectionCost(self._map, self.floor, weight, sources=sources)
        many = n_positions * len(self._map.Z) > self.compile_pairs
        return ProjectionCost(self._map, self.floor, weight, self._compiled if many else None)

    @cached_property
    def _compiled(self) -> CompiledDistance | None:
        return CompiledDistance.of(self._map)

    @cached_property
    def _images(self) -> NeighborIndex:
        """Neighbor search among the images of the training coordinates."""
        return choose_index(self._map.predict(self._map.Z))

    @cached_property
    def _box(self) -> tuple[Array, Array]:
        low, high = self.surface.positions.min(axis=0), self.surface.positions.max(axis=0)
        return low - self.margin * (high - low), high + self.margin * (high - low)


class _SearchResult(NamedTuple):
    """Positions found by several searches, their costs, and whether each search converged."""

    positions: Array
    costs: Array
    converged: Array


def _steps(local: CostExpansion, damping: Array, Z: Array, low: Array, high: Array) -> Array:
    """Damped Newton steps; coordinates at an active bound of the box are fixed."""
    g, H = local.gradient.copy(), local.hessian.copy()
    held = ((low >= Z) & (g > 0)) | ((high <= Z) & (g < 0))
    g[held] = 0
    H[held[:, :, None] | held[:, None, :]] = 0
    values, U = symmetric_eigh(H)
    size = np.abs(values)  # a descent direction even if an eigenvalue is negative
    size += damping[:, None] * size.max(axis=1, keepdims=True)
    along = np.einsum("nlm,nl->nm", U, g) / np.maximum(size, _TINY)
    return -np.einsum("nlm,nm->nl", U, along)


@dataclass(frozen=True, eq=False)
class FramedProjection(Extension):
    """Orthogonal projection of data in their original units."""

    frame: Frame
    projection: OrthogonalProjection

    def transform(self, X: Matrix) -> Array:
        return self.projection.transform(_dense(self.frame.apply(X)))


@dataclass(frozen=True, eq=False)
class FramedRegression:
    """Kernel regression of data in their original units."""

    frame: Frame
    surface: KernelRegressionMap

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        return self.frame.origin + self.frame.unit * self.surface.predict(Z)

    def jacobian(self, Z: Array) -> Array:
        """Derivatives of the data by the coordinates, (n_new, n_features, n_components)."""
        return self.frame.unit * self.surface.jacobian(Z)


def in_frame(points: Matrix) -> tuple[Frame, Array]:
    """Dense data in units in which squares neither overflow nor underflow."""
    if sparse.issparse(points):
        plan_memory(8.0 * np.prod(points.shape), "sparse data as a dense array", "use fewer rows")
    frame = Frame.of(points)
    check_range(frame.unit)
    return frame, _dense(frame.apply(points))


def _dense(X: Matrix) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
