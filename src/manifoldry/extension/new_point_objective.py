"""Objectives of new points given a fixed embedding, and Newton's method for many of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.device import Device
from manifoldry.extension.on_device import BUDGET, copied_to, symmetric_eigh
from manifoldry.objectives.pair_sums import (
    LogSums,
    dot,
    isotropic,
    second_moments,
    squared_lengths,
)
from manifoldry.objectives.pairwise import NewPointTerms
from manifoldry.objectives.position_sums import ExactPositionSums, NewWeights, PositionSums
from manifoldry.objectives.positions_on_device import placed_weights
from manifoldry.util.arrays import like, namespace
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


class Evaluation(NamedTuple):
    """Values and derivatives of several functions, each at one position."""

    value: Array  # (n,)
    gradient: Array  # (n, d)
    hessian: Array  # (n, d, d)
    value_error: Array  # (n,): rounding error
    gradient_error: Array  # (n,)

    def take(self, rows: Any) -> "Evaluation":
        """Return the entries of some functions."""
        return Evaluation(*(part[rows] for part in self))

    def put(self, rows: Any, other: "Evaluation") -> None:
        """Overwrite the entries of some functions."""
        for part, new in zip(self, other, strict=True):
            part[rows] = new


@dataclass(frozen=True, eq=False)
class NewPointObjective:
    """e(x) = Σₙ pₙ φ(‖x − xₙ‖²) + R(log Σₙ aₙ ψ(‖x − xₙ‖²)) for each of several new points.

    Each is divided by a scale of its own, so that the affinities of a point far from all data,
    which underflow, keep their ratios and their proportion to the repulsion.

    Parameters
    ----------
    Y : array of shape (n_train, d)
        The training embedding.
    P : sparse array of shape (n_new, n_train)
        Affinities of the new points, divided by their scales.
    problem : NewPointTerms
        φ, ψ and R of the objective of the embedding.
    repulsion_weights : array of shape (n_new, n_train) or FactoredWeights, default=None
        Weights aₙ of every new point; one by default.
    log_scale : array of shape (n_new,), default=None
        Logarithms of the scales; zero by default.
    position_sums : PositionSums, default=None
        Computes the sums of ψ; by default those of the objective of the embedding.
    cached : int, default=32768
        Size of temporary arrays, which stay in the cache.
    rounding : float, default=32 eps
        Rounding error of sums, relative to the sum of absolute values.
    """

    Y: Array
    P: sparse.csr_array
    problem: NewPointTerms
    repulsion_weights: NewWeights = None
    log_scale: Array | None = None
    position_sums: PositionSums | None = None
    cached: int = 2**15
    rounding: float = 32 * float(np.finfo(float).eps)

    def at(self, Z: Array, rows: IntArray) -> Evaluation:
        """Objectives of the new points `rows`, which may repeat, at the positions `Z`."""
        sums = self._sums.at(Z, self.repulsion_weights, rows)
        parts = self._cached_blocks(len(Z))
        blocks = map_threads(lambda b: self._at(Z[b], rows[b], sums.take(b)), parts)
        return Evaluation(*(stacked_parts(component) for component in zip(*blocks, strict=True)))

    def on(self, device: Device) -> "NewPointObjective":
        """The same for positions on a device, with exact sums."""
        (Y, log_scale), potential = (
            copied_to(device, self.Y, self.log_scale),
            self.problem.potential,
        )
        weights = placed_weights(device, self.repulsion_weights)
        sums = ExactPositionSums(potential, Y)
        return NewPointObjective(Y, self.P, self.problem, weights, log_scale, sums, BUDGET)

    def attraction(self, Z: Array, rows: IntArray) -> Array:
        """Attraction Σ pφ of the new points `rows` at the positions `Z`, without the repulsion."""
        blocks = self._cached_blocks(len(Z))
        parts = [self._attraction(Z[block], rows[block])[0] for block in blocks]
        return np.concatenate([np.empty(0), *parts])

    @cached_property
    def total_affinity(self) -> Array:
        """Sum of the affinities of every new point."""
        return like(np.asarray(self.P.sum(axis=1)).ravel(), self.Y)

    @cached_property
    def neighbors(self) -> tuple[IntArray, Array]:
        """Columns and values of the entries of P, padded with zeros to rows of equal length."""
        counts = np.diff(self.P.indptr)
        filled = np.arange(counts.max(initial=1)) < counts[:, None]
        indices, values = np.zeros(filled.shape, dtype=np.intp), np.zeros(filled.shape)
        indices[filled], values[filled] = self.P.indices, self.P.data
        where_they_are: tuple[Any, Any] = like(indices, self.Y), like(values, self.Y)
        return where_they_are

    @cached_property
    def means(self) -> Array:
        """Mean position of the neighbors of every new point, weighted by affinity, (n_new, d)."""
        indices, P = self.neighbors
        return np.einsum("nk,nkd->nd", P, self.Y[indices]) / self.total_affinity[:, None]

    @cached_property
    def spreads(self) -> Array:
        """Sum of the squared distances of the neighbors from their mean, weighted by affinity."""
        indices, P = self.neighbors
        return np.einsum("nk,nkd->n", P, (self.Y[indices] - self.means[:, None]) ** 2)

    @cached_property
    def _sums(self) -> PositionSums:
        return self.position_sums or self.problem.position_sums(self.Y)

    def _cached_blocks(self, n: int) -> list[slice]:
        """Blocks of positions whose temporary arrays stay in the cache."""
        d, n_neighbors = self.Y.shape[1], self.neighbors[0].shape[1]
        return row_blocks(n, d * d if self.problem.kernel.quadratic else n_neighbors, self.cached)

    def _at(self, Z: Array, rows: IntArray, sums: LogSums) -> Evaluation:
        value, force, H, forces = self._attraction(Z, rows)
        log_sum, u, V = sums
        log_scale = np.zeros_like(value) if self.log_scale is None else self.log_scale[rows]
        R, dR, ddR = self.problem.repulsion(log_sum, self.total_affinity[rows], log_scale)
        # With L = log S: ∇R = R′∇L and ∇²R = R′∇²L + R″∇L∇Lᵀ, where ∇²L = V − uuᵀ.
        outer = u[:, :, None] * u[:, None, :]
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite repulsion
            H = H + dR[:, None, None] * V + (ddR - dR)[:, None, None] * outer
            push = dR[:, None] * u
            # The exponent of the repulsion is a difference of numbers of the size of the logarithm.
            inexact = np.abs(log_scale * dR)
            error = self.rounding * (np.abs(value) + np.abs(R) + inexact)
            forces = forces + inexact * np.sqrt(squared_lengths(list(u.T)))
        return Evaluation(value + R, force + push, H, error, self.rounding * forces)

    def _attraction(self, Z: Array, rows: IntArray) -> tuple[Array, Array, Array, Array]:
        """Σ pφ, its gradient and Hessian, and the sum of the lengths of all forces."""
        if self.problem.kernel.quadratic:
            return self._quadratic_attraction(Z, rows)
        indices, P = self.neighbors[0][rows], self.neighbors[1][rows]
        steps = [z[:, None] - y[indices] for z, y in zip(Z.T, self.Y.T, strict=True)]
        D, kernel = squared_lengths(steps), self.problem.kernel
        P1 = P * kernel.derivative(D)
        force = 2 * np.stack([dot(P1, step) for step in steps], axis=1)
        H = second_moments(P * (4 * kernel.second_derivative(D)), steps)
        H += isotropic(2 * P1.sum(axis=1), len(steps))
        return dot(P, kernel.phi(D)), force, H, 2 * dot(P1, np.sqrt(D))

    def _quadratic_attraction(self, Z: Array, rows: IntArray) -> tuple[Array, Array, Array, Array]:
        """The same for φ = c·d², by the mean of the neighbors: Σ pd² = Σp·‖z − mean‖² + spread."""
        slope, steps = self.problem.kernel.derivative_at_zero, Z - self.means[rows]
        weights = slope * self.total_affinity[rows]
        value = weights * squared_lengths(list(steps.T)) + slope * self.spreads[rows]
        lengths = 2 * np.sqrt(weights * value)  # at least their sum, by Cauchy-Schwarz
        return value, 2 * weights[:, None] * steps, isotropic(2 * weights, Z.shape[1]), lengths


def stacked_parts(parts: Sequence[Array]) -> Array:
    """The parts below each other."""
    return namespace(parts[0]).concatenate(parts)


@dataclass(frozen=True)
class TrustRegion:
    """Trust region radii, controlled by the ratio of the actual to the predicted decrease."""

    accept: float = 1e-4  # ratio above which a step is accepted
    poor: float = 0.25  # ratio below which the radius is reduced
    good: float = 0.75  # ratio above which the radius is doubled
    longest: float = 4.0  # largest radius, in units of the scale

    def next_radius(self, radius: Array, length: Array, ratio: Array) -> Array:
        """Radius after a step of the given length and ratio of actual to predicted decrease."""
        grown = np.where(length >= radius, 2 * radius, radius)
        # A ratio of NaN fails both comparisons and reduces the radius.
        return np.where(ratio > self.good, grown, np.where(ratio > self.poor, radius, length / 4))


DEFAULT_REGION = TrustRegion()


class BatchObjective(Protocol):
    """Several functions, each of a few variables."""

    def at(self, Z: Array, rows: IntArray) -> Evaluation:
        """Values and derivatives of the functions `rows` at the positions `Z`."""
        ...


class Minima(NamedTuple):
    """Results of several searches."""

    positions: Array  # (n, d)
    values: Array  # (n,)
    gradients: Array  # (n, d)
    converged: NDArray[np.bool_]
    n_iter: IntArray

    @classmethod
    def empty(cls, n: int, d: int) -> "Minima":
        """Results of n searches that were left out: their values are infinite."""
        zeros = np.zeros((n, d))
        infinite = np.full(n, np.inf)
        return cls(zeros, infinite, zeros.copy(), np.zeros(n, bool), np.zeros(n, np.intp))


def minimize_each(
    problems: BatchObjective,
    Z: Array,
    rows: IntArray,
    scale: Array,
    centers: Array | None = None,
    tolerance: float = 1e-9,
    max_iter: int = 200,
    region: TrustRegion = DEFAULT_REGION,
) -> Minima:
    """Minimize the functions `rows` from the starts `Z`, (n, d), by trust region Newton steps.

    The eigenvalues of the Hessian are replaced by their absolute values, so that every step is a
    descent direction and leaves saddle points. The trust region is a box along the eigenvectors, in
    which the step is the exact minimizer of the quadratic model. A search converges when the
    unrestricted step is below `tolerance`. Radius and tolerance are in units of `scale`, (n,).

    Far outside the points that repel it, a function is small along an arc about them, which
    straight steps can follow only slowly. Searches with `centers`, (n, d), move along arcs about
    them; NaN for straight steps, which are the default.
    """
    xp = namespace(Z)
    Z, radius = xp.array(Z, dtype=np.float64), xp.array(scale, dtype=np.float64)
    centers = np.full_like(Z, np.nan) if centers is None else centers
    here = problems.at(Z, rows)
    converged, n_iter = xp.zeros(len(Z), dtype=bool), xp.zeros(len(Z), dtype=np.intp)
    active = xp.arange(len(Z))
    while len(active):
        now, arm = here.take(active), Z[active] - centers[active]
        step = _step(_on_arc(now, arm), radius[active], tolerance * scale[active])
        trial = Z[active] + _along_arc(step.move, arm)
        there = problems.at(trial, rows[active])
        error = now.value_error + there.value_error
        with np.errstate(invalid="ignore"):  # 0/0 for a constant function: the step is rejected
            ratio = (now.value - there.value + error) / (step.decrease + error)
        better = ratio > region.accept
        Z[active[better]] = trial[better]
        here.put(active[better], there.take(better))
        next_radius = region.next_radius(radius[active], step.length, ratio)
        radius[active] = np.minimum(next_radius, region.longest * scale[active])
        n_iter[active] += 1
        converged[active] = step.last
        failed = radius[active] <= tolerance * scale[active]
        active = active[~(step.last | failed) & (n_iter[active] < max_iter)]
    return Minima(Z, here.value, here.gradient, converged, n_iter)


def _along_arc(move: Array, arm: Array) -> Array:
    """Displacements that agree with `move` to first order and turn `arm`, (n, d), in its plane."""
    length = np.linalg.norm(arm, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # without an arm the step is straight
        outward = arm / length
        radial = np.einsum("nd,nd->n", move, outward)[:, None]
        turned = arm + move - radial * outward
        turned *= (length + radial) / np.linalg.norm(turned, axis=1, keepdims=True)
    return np.where(np.isfinite(turned).all(axis=1, keepdims=True), turned - arm, move)


def _on_arc(now: Evaluation, arm: Array) -> Evaluation:
    """The quadratic model along arcs, whose second derivative is −1/length towards the center."""
    square = np.einsum("nd,nd->n", arm, arm)
    with np.errstate(divide="ignore", invalid="ignore"):  # without an arm there is no bend
        outward = np.einsum("nd,nd->n", now.gradient, arm) / square
        along = arm[:, :, None] * arm[:, None, :] / square[:, None, None]
        bend = outward[:, None, None] * (namespace(arm).eye(arm.shape[1]) - along)
    return now._replace(hessian=np.where(np.isfinite(bend), now.hessian - bend, now.hessian))


class _Step(NamedTuple):
    """A trust region step."""

    move: Array  # (n, d)
    length: Array  # largest component along an eigenvector
    decrease: Array  # predicted by the quadratic model
    last: NDArray[np.bool_]  # whether the search has converged


def _step(now: Evaluation, radius: Array, tolerance: Array, flat: float = 1e-300) -> _Step:
    """Minimizer of the quadratic model in the box; curvatures are at least `flat`."""
    curvature, axes = symmetric_eigh(now.hessian)
    curvature = np.maximum(np.abs(curvature), flat)
    derivative = np.einsum("nij,ni->nj", axes, now.gradient)
    derivative[np.abs(derivative) <= now.gradient_error[:, None]] = 0.0
    with np.errstate(over="ignore"):  # with zero curvature the radius limits the step
        whole = -derivative / curvature
    along = np.clip(whole, -radius[:, None], radius[:, None])
    decrease = -(derivative * along + 0.5 * curvature * along**2).sum(axis=1)
    last = np.abs(whole).max(axis=1) <= tolerance
    move = np.einsum("nij,nj->ni", axes, along)
    return _Step(move, np.abs(along).max(axis=1), decrease, last)
