"""Maximum variance unfolding with landmarks: other points are interpolated between them."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from manifoldry.eigen.inverse import ShiftedInverse
from manifoldry.extension.layout import component_rows
from manifoldry.neighbors.geodesics import farthest_points
from manifoldry.neighbors.neighborhoods import Neighborhoods
from manifoldry.optimize.filter import Filter, Identity
from manifoldry.optimize.optimizer import StepCallback
from manifoldry.semidefinite.edge_lengths import EdgeLengths
from manifoldry.semidefinite.multipliers import MethodOfMultipliers
from manifoldry.semidefinite.unfolding_problem import (
    FreeUnfolding,
    SmallestEigenpairs,
    UnfoldingProblem,
)
from manifoldry.semidefinite.unfolding_result import RoundCallback, UnfoldingResult
from manifoldry.spectral.lle import residual_weights
from manifoldry.util.typing import Array, IntArray, Matrix


def landmark_interpolation(
    X: Matrix,
    full: FreeUnfolding,
    count: int,
    rng: np.random.Generator,
    min_per_component: int = 1,
    *,
    n_neighbors: int = 12,
    reg: float = 1e-3,
    ridge: float = 1e-12,
) -> Array:
    """Matrix Q, (n, m), that interpolates a map of the points `X` as Q·Z from landmarks at Z.

    Q·Z minimizes LLE's cost given its values at the landmarks, with the edges as neighbors.
    Landmarks are chosen by farthest-point sampling, about `count` in total: every component gets a
    number in proportion to its size, and at least `min_per_component`.

    `n_neighbors` is the number of neighbors in LLE's weights (with fewer than 12 the interpolation
    is rough) and `reg` their regularization. `ridge`, relative to the largest diagonal entry,
    regularizes the interpolation, which flat data leave underdetermined.
    """
    n = full.n
    landmarks = _evenly_spread(full.edges.lengths, full.component, count, min_per_component, rng)
    cost = Neighborhoods(X, full.edges.nearest(n_neighbors)).rows(
        partial(residual_weights, reg=reg)
    )
    columns, rest = sparse.csc_array(cost), np.setdiff1d(np.arange(n), landmarks)
    Q = np.zeros((n, len(landmarks)))
    Q[landmarks, np.arange(len(landmarks))] = 1.0
    if len(rest):
        free, held = columns[:, rest], columns[:, landmarks]
        normal = sparse.csr_array(free.T @ free)
        inverse = ShiftedInverse(normal, -ridge * normal.diagonal().max(), "smallest")
        Q[rest] = -inverse.solve((free.T @ held).toarray())
    return Q


def _evenly_spread(
    lengths: sparse.csr_array,
    component: IntArray,
    count: int,
    min_per_component: int,
    rng: np.random.Generator,
) -> IntArray:
    found = []
    for rows in component_rows(component):
        few = min(max(min_per_component, round(count * len(rows) / len(component))), len(rows))
        found.append(farthest_points(lengths, rows, few, int(rng.choice(rows))))
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class LandmarkUnfolding(UnfoldingProblem):
    """The map is a linear combination of given functions, whose coefficients are the variables.

    Parameters
    ----------
    functions : array of shape (n_points, n)
        Functions on the points, centered on every component and orthonormal with respect to the
        edge Laplacian with weights 1/scale, so that the search needs no preconditioner.
    differences : array of shape (n_edges, n)
        Differences of the functions between the ends of every edge.
    covariance : array of shape (n, n)
        Inner products of the functions, weighted by multiplicity.
    variance_guess : float
        Estimate of the largest variance.
    """

    functions: Array
    differences: Array
    covariance: Array
    variance_guess: float

    steps_per_round: ClassVar[int] = 50
    map_description: ClassVar[str] = "map that these landmarks can represent"

    @classmethod
    def of(
        cls, full: FreeUnfolding, Q: Array, rows: IntArray, rank_tol: float = 1e-9
    ) -> "LandmarkUnfolding":
        """Combinations of the columns of `Q` that keep the lengths of the edges `rows`.

        Combinations with less than `rank_tol` of the largest Laplacian energy change no edge, and
        are left out.
        """
        edges = full.edges
        energy = Q.T @ (edges.laplacian(1 / edges.scales) @ Q)
        values, vectors = np.linalg.eigh((energy + energy.T) / 2)
        kept = values > rank_tol * values[-1]
        F = full.centered(Q @ (vectors[:, kept] / np.sqrt(values[kept])))
        return cls._with(full, F, rows)

    @classmethod
    def _with(cls, full: FreeUnfolding, F: Array, rows: IntArray) -> "LandmarkUnfolding":
        edges: EdgeLengths = full.edges.subset(rows)
        i, j = edges.ends.T
        covariance = F.T @ full.half_variance_gradient(F)
        D, guess = F[i] - F[j], full.expected_variance
        return cls(edges, full.interval, full.slack, F, D, covariance, guess, margin=full.margin)

    def with_edges(self, full: FreeUnfolding, rows: IntArray) -> "LandmarkUnfolding":
        """The same problem with the constraints of other edges."""
        return self._with(full, self.functions, rows)

    def variables(self, Y: Array) -> Array:
        """Coefficients of the least-squares approximation of a map."""
        return np.asarray(np.linalg.lstsq(self.functions, Y, rcond=None)[0])

    @property
    def n(self) -> int:
        return self.functions.shape[1]

    @property
    def filter(self) -> Filter:
        return Identity()

    @property
    def expected_variance(self) -> float:
        return self.variance_guess

    def map(self, R: Array) -> Array:
        return self.functions @ R

    def centered(self, R: Array) -> Array:
        return R

    def edge_vectors(self, R: Array) -> Array:
        return self.differences @ R

    def edge_vectors_adjoint(self, vectors: Array) -> Array:
        return self.differences.T @ vectors

    def half_variance_gradient(self, R: Array) -> Array:
        return self.covariance @ R

    def smallest_eigenpairs(
        self, weights: Array, k: int, rng: np.random.Generator
    ) -> SmallestEigenpairs:
        L = self.differences.T @ (weights[:, None] * self.differences)
        values, vectors = eigh((L + L.T) / 2, self.covariance)
        k = max(k, int((values < 1).sum()))  # all are computed anyway
        return SmallestEigenpairs(values[:k], vectors[:, :k], 0.0)


def unfold_by_landmarks(
    method: MethodOfMultipliers,
    full: FreeUnfolding,
    Q: Array,
    Y: Array,
    rng: np.random.Generator,
    callback: StepCallback | None = None,
    on_round: RoundCallback | None = None,
    *,
    edges_per_landmark: int = 30,
    added_per_landmark: int = 10,
) -> UnfoldingResult:
    """Maximize the variance over maps Q·Z, starting from the one nearest to the map `Y`.

    Only a random sample of the edges is constrained, `edges_per_landmark` times the number of
    landmarks. Without slack, the edges that violate their constraint most are then added,
    `added_per_landmark` times the number of landmarks at a time, until none does.
    """
    m = Q.shape[1]
    return _solve_with_more_edges(
        method,
        full,
        Q,
        Y,
        rng,
        callback,
        on_round,
        edges_per_landmark * m,
        added_per_landmark * m,
    )


def _solve_with_more_edges(
    method: MethodOfMultipliers,
    full: FreeUnfolding,
    Q: Array,
    Y: Array,
    rng: np.random.Generator,
    callback: StepCallback | None,
    on_round: RoundCallback | None,
    n_edges: int,
    n_added: int,
) -> UnfoldingResult:
    count = full.edges.count
    rows = np.sort(rng.choice(count, min(n_edges, count), replace=False))
    problem = LandmarkUnfolding.of(full, Q, rows)
    found = method.solve(problem, problem.variables(Y), rng, callback, on_round)
    worst = _violated_edges(full, found, rows, method.squared_tol)
    while len(worst) > 0 and found.steps < method.max_iter and not found.interrupted:
        rows = np.concatenate([rows, worst[:n_added]])
        multipliers = np.concatenate([found.multipliers, np.zeros(len(worst[:n_added]))])
        problem, before = problem.with_edges(full, rows), replace(found, multipliers=multipliers)
        found = method.solve(problem, found.R, rng, callback, on_round, before)
        worst = _violated_edges(full, found, rows, method.squared_tol)
    if found.converged and len(worst) > 0:
        steps = f"max_iter={method.max_iter} steps were taken"
        status = f"{steps}, and {len(worst)} edges are too long or too short"
        found = replace(found, converged=False, status=status)
    multipliers = np.zeros(count)
    multipliers[rows] = found.multipliers
    return replace(found, multipliers=multipliers)


def _violated_edges(
    full: FreeUnfolding, found: UnfoldingResult, rows: IntArray, tol: float
) -> IntArray:
    """Edges outside `rows` that violate their constraint, worst first; none with slack."""
    if full.slack > 0:
        return np.empty(0, dtype=np.intp)
    excess = full.excess(full.changes(found.map))
    excess[rows] = 0.0
    worst = np.argsort(-excess)
    return worst[excess[worst] > tol]
