"""What new points minimize on a frozen map: attraction to neighbors, repulsion from all."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.objectives.pair_sums import dot, isotropic, second_moments, squared_lengths
from manifoldry.objectives.pairwise import NewPointTerms
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


class Evaluation(NamedTuple):
    """A function and its derivatives at one place for each of several points."""

    value: Array  # (n,)
    gradient: Array  # (n, d)
    hessian: Array  # (n, d, d)
    value_error: Array  # (n,): what rounding may have changed
    gradient_error: Array  # (n,)

    def take(self, rows: Any) -> "Evaluation":
        """The same of some of the points."""
        return Evaluation(*(part[rows] for part in self))

    def put(self, rows: Any, other: "Evaluation") -> None:
        """Overwrite some of the points."""
        for part, new in zip(self, other, strict=True):
            part[rows] = new


@dataclass(frozen=True, eq=False)
class NewPointObjective:
    """e(x) = Σₙ pₙ φ(‖x − xₙ‖²) + R(log Σₙ aₙ ψ(‖x − xₙ‖²)) for each of several new points.

    Parameters
    ----------
    Y : array of shape (n_train, d)
        The frozen map.
    P : sparse array of shape (n_new, n_train)
        Affinities of the new points.
    problem : NewPointTerms
        φ, ψ and R: what the map's own objective says of a point more.
    repulsion_weights : array of shape (n_new, n_train), default=None
        The aₙ of every new point; one by default.
    index : NeighborIndex, default=None
        Neighbor search on the map, where there is one already.
    columns : int, default=1024
        Points of the map that sums work on at a time.
    cached : int, default=12288
        Numbers of one array of theirs: small ones stay in the cache, and the system hands out
        memory for large ones anew each time, which took two thirds of the time.
    thread_pairs : int, default=2**20
        Pairs that are worth a thread.
    rounding : float, default=32 eps
        Error of sums, relative to the sum of the moduli.
    """

    Y: Array
    P: sparse.csr_array
    problem: NewPointTerms
    repulsion_weights: Array | None = None
    index: NeighborIndex | None = None
    columns: int = 1024
    cached: int = 12 * 1024
    thread_pairs: int = 2**20
    rounding: float = 32 * float(np.finfo(float).eps)

    def at(self, Z: Array, rows: IntArray) -> Evaluation:
        """The objective of the new points `rows`, which may repeat, at the places `Z`."""
        parts = row_blocks(len(Z), len(self.Y), self.thread_pairs)
        lists = map_threads(lambda part: self._part(Z[part], rows[part]), parts)
        blocks = [block for part in lists for block in part]
        return Evaluation(*(np.concatenate(component) for component in zip(*blocks, strict=True)))

    @cached_property
    def total_affinity(self) -> Array:
        """Sum of every new point's affinities."""
        return np.asarray(self.P.sum(axis=1)).ravel()

    @cached_property
    def neighbors(self) -> tuple[IntArray, Array]:
        """Columns and values of P's entries, (n_new, most entries of a row), zeros at the end."""
        counts = np.diff(self.P.indptr)
        filled = np.arange(counts.max(initial=1)) < counts[:, None]
        indices, values = np.zeros(filled.shape, dtype=np.intp), np.zeros(filled.shape)
        indices[filled], values[filled] = self.P.indices, self.P.data
        return indices, values

    @cached_property
    def _index(self) -> NeighborIndex:
        return self.index or choose_index(self.Y)

    def _part(self, Z: Array, rows: IntArray) -> list[Evaluation]:
        blocks = row_blocks(len(Z), min(len(self.Y), self.columns), self.cached)
        return [self._at(Z[block], rows[block]) for block in blocks]

    def _at(self, Z: Array, rows: IntArray) -> Evaluation:
        value, force, H, pull = self._attraction(Z, rows)
        repulsion_weights = None if self.repulsion_weights is None else self.repulsion_weights[rows]
        nearest = self._index.nearest(Z, 1)[1][:, 0] ** 2
        problem = self.problem
        log_sum, u, V = problem.pair_sums.at_positions(
            problem.potential, Z, self.Y, nearest, repulsion_weights
        )
        R, dR, ddR = problem.repulsion(log_sum, self.total_affinity[rows])
        # With L = log S: ∇R = R′∇L and ∇²R = R′∇²L + R″∇L∇Lᵀ, where ∇²L = V − uuᵀ.
        outer = u[:, :, None] * u[:, None, :]
        H = H + dR[:, None, None] * V + (ddR - dR)[:, None, None] * outer
        noise = self.rounding * (np.abs(value) + np.abs(R)), self.rounding * pull
        return Evaluation(value + R, force + dR[:, None] * u, H, *noise)

    def _attraction(self, Z: Array, rows: IntArray) -> tuple[Array, Array, Array, Array]:
        """Σ pφ, its derivatives, and the sum of the lengths of all forces."""
        indices, P = self.neighbors[0][rows], self.neighbors[1][rows]
        steps = [z[:, None] - y[indices] for z, y in zip(Z.T, self.Y.T, strict=True)]
        D, kernel = squared_lengths(steps), self.problem.kernel
        P1 = P * kernel.derivative(D)
        force = 2 * np.stack([dot(P1, step) for step in steps], axis=1)
        H = second_moments(P * (4 * kernel.second_derivative(D)), steps)
        H += isotropic(2 * P1.sum(axis=1), len(steps))
        return dot(P, kernel.phi(D)), force, H, 2 * dot(P1, np.sqrt(D))


@dataclass(frozen=True)
class TrustRegion:
    """How far a quadratic model is trusted, by the fraction of its promise that a step has kept."""

    accept: float = 1e-4  # fraction of the promised decrease that a step has to bring
    poor: float = 0.25  # share below which the model is trusted less
    good: float = 0.75  # share above which it is trusted more
    longest: float = 4.0  # radius, in units of the scale

    def next_radius(self, radius: Array, length: Array, kept: Array) -> Array:
        """Of the next step, after one of that length that has `kept` a fraction of its promise."""
        grown = np.where(length >= radius, 2 * radius, radius)
        # Where the trial has no value at all, neither comparison holds: that is a failure too.
        return np.where(kept > self.good, grown, np.where(kept > self.poor, radius, length / 4))


DEFAULT_REGION = TrustRegion()


class BatchObjective(Protocol):
    """Functions of a few variables each."""

    def at(self, Z: Array, rows: IntArray) -> Evaluation:
        """The functions `rows` and their derivatives at the places `Z`."""
        ...


class Minima(NamedTuple):
    """Where the searches ended."""

    positions: Array  # (n, d)
    values: Array  # (n,)
    gradients: Array  # (n, d)
    converged: NDArray[np.bool_]
    n_iter: IntArray


def minimize_each(
    problems: BatchObjective,
    Z: Array,
    rows: IntArray,
    scale: Array,
    tolerance: float = 1e-9,
    max_iter: int = 200,
    region: TrustRegion = DEFAULT_REGION,
) -> Minima:
    """Minimize the functions `rows` from the starts `Z`, (n, d), by safeguarded Newton steps.

    Curvatures count by their modulus, so that a step descends everywhere and leaves saddles. Along
    each axis of curvature a step is no longer than a radius, which grows and shrinks with the
    success of the quadratic model; that is the exact minimizer of the model in the box. A search
    ends when its step is below `tolerance`. Radius and tolerance are in units of `scale`, (n,).
    """
    Z, radius = np.array(Z, dtype=np.float64), np.array(scale, dtype=np.float64)
    here = problems.at(Z, rows)
    converged, n_iter = np.zeros(len(Z), dtype=bool), np.zeros(len(Z), dtype=np.intp)
    active = np.arange(len(Z))
    while len(active):
        now = here.take(active)
        step = _step(now, radius[active], tolerance * scale[active])
        there = problems.at(Z[active] + step.move, rows[active])
        noise = now.value_error + there.value_error
        with np.errstate(invalid="ignore"):  # flat without rounding: 0/0 is no success
            success = (now.value - there.value + noise) / (step.decrease + noise)
        better = success > region.accept
        Z[active[better]] += step.move[better]
        here.put(active[better], there.take(better))
        wider = region.next_radius(radius[active], step.length, success)
        radius[active] = np.minimum(wider, region.longest * scale[active])
        n_iter[active] += 1
        converged[active] = step.last
        failed = radius[active] <= tolerance * scale[active]
        active = active[~(step.last | failed) & (n_iter[active] < max_iter)]
    return Minima(Z, here.value, here.gradient, converged, n_iter)


class _Step(NamedTuple):
    """Where to go next."""

    move: Array  # (n, d)
    length: Array  # along the longest axis of curvature
    decrease: Array  # what the model promises
    last: NDArray[np.bool_]


def _step(now: Evaluation, radius: Array, tolerance: Array, flat: float = 1e-300) -> _Step:
    """The minimizer of the quadratic model in the box; a curvature of `flat` stands for none."""
    curvature, axes = np.linalg.eigh(now.hessian)
    curvature = np.maximum(np.abs(curvature), flat)
    derivative = np.einsum("nij,ni->nj", axes, now.gradient)
    derivative[np.abs(derivative) <= now.gradient_error[:, None]] = 0.0
    with np.errstate(over="ignore"):  # on flat ground the radius is the limit
        whole = -derivative / curvature
    along = np.clip(whole, -radius[:, None], radius[:, None])
    decrease = -(derivative * along + 0.5 * curvature * along**2).sum(axis=1)
    last = np.abs(whole).max(axis=1) <= tolerance
    move = np.einsum("nij,nj->ni", axes, along)
    return _Step(move, np.abs(along).max(axis=1), decrease, last)
