"""Maximum variance unfolding as an optimization problem, and its augmented Lagrangian."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.eigen import (
    Auto,
    Dense,
    ShiftInvertLanczos,
    SolverFailed,
    SpectralProblem,
    Spectrum,
)
from manifoldry.exceptions import ManifoldryWarning, ignoring
from manifoldry.extension.layout import component_rows
from manifoldry.neighbors.shortest_paths import path_lengths_from
from manifoldry.objectives.base import Objective, check_embedding
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.spectral_direction import cheapest_filter
from manifoldry.semidefinite.edge_lengths import EdgeLengths
from manifoldry.semidefinite.variance_bound import raise_weights_locally
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import spread_rows


@dataclass(frozen=True, eq=False)
class UnfoldingLagrangian(Objective):
    """The augmented Lagrangian that one round of the method of multipliers minimizes.

    It is −variance/variance_per_edge plus, for every edge,
    maxᵤ u·c − h(u) − slack·u²/2 − (u − multiplier)²/(2·penalty), where c is the relative change of
    the squared length of the edge and h is the support function of the tolerance interval. The
    maximizer u is the updated multiplier of the edge, and the gradient of the sum over edges is
    that of Σ u/scale·‖rᵢ − rⱼ‖² at fixed u.

    Parameters
    ----------
    problem : UnfoldingProblem
        Edges, tolerance interval, slack and multiplicities.
    multipliers : array of shape (n_edges,)
        Multipliers of the last round, positive where the constraint keeps an edge from growing.
    penalty : float
        A relative change c of a squared length adds penalty·c to its multiplier.
    variance_per_edge : float
        Unit of the variance.
    """

    problem: "UnfoldingProblem"
    multipliers: Array
    penalty: float
    variance_per_edge: float

    @property
    def n(self) -> int:
        return self.problem.n

    def value_and_gradient(self, R: Array) -> tuple[float, Array]:
        problem, R = self.problem, check_embedding(R, self.n)
        steps = problem.edge_vectors(R)
        c = problem.edges.changes(steps)
        u = self.updated_multipliers(c)
        cost = (
            u * c
            - problem.penalized_support_function(u, problem.target_interval)
            - (u - self.multipliers) ** 2 / (2 * self.penalty)
        )
        half_gradient = problem.half_variance_gradient(R)
        value = (
            float(cost.sum())
            - float(np.einsum("nd,nd->", R, half_gradient)) / self.variance_per_edge
        )
        G = problem.edge_vectors_adjoint((2 * u / problem.edges.scales)[:, None] * steps)
        G -= (2 / self.variance_per_edge) * half_gradient
        return value, G.astype(R.dtype, copy=False)

    def updated_multipliers(self, changes: Array) -> Array:
        """Maximizers u of the terms of the edges, at relative changes of squared lengths."""
        low, high = self.problem.target_interval
        t = self.multipliers + self.penalty * changes
        free = np.clip(t, self.penalty * low, self.penalty * high)
        return (t - free) / (1 + self.penalty * self.problem.slack)

    @cached_property
    def attraction(self) -> sparse.csr_array:
        return self.problem.edges.weights(self.penalty / self.problem.edges.scales)

    def diagonal_curvature(self, Y: Array) -> Array:
        edges, Y = self.problem.edges, check_embedding(Y, self.n)
        steps = edges.edge_vectors(Y)
        u = self.updated_multipliers(edges.changes(steps))
        effective = self.penalty / (1 + self.penalty * self.problem.slack)
        stretching = 4 * effective * ((u != 0) / edges.scales**2)[:, None] * steps**2
        per_edge = 2 * (np.maximum(u, 0.0) / edges.scales)[:, None] + stretching
        return np.asarray(abs(edges.incidence).T @ per_edge).astype(Y.dtype, copy=False)


class SmallestEigenpairs(NamedTuple):
    """Smallest eigenvalues of an edge Laplacian, relative to multiplicities, and eigenvectors."""

    values: Array
    vectors: Array
    error: float
    """Bound on the error of the smallest eigenvalue."""


@dataclass(frozen=True, eq=False)
class UnfoldingProblem(ABC):
    """Maximize the variance of maps of any dimension that keep the lengths of edges.

    In terms of the Gram matrix this is a semidefinite program: every local maximum is global, and
    multipliers give an upper bound on it (see
    :class:`~manifoldry.semidefinite.variance_bound.VarianceBound`). The variables, (n, d), are the
    map itself or coefficients of basis functions.

    Parameters
    ----------
    edges : EdgeLengths
        The edges; they must connect all points of a component.
    interval : (float, float)
        Tolerance interval: relative changes of squared lengths that are allowed at no cost.
    slack : float
        Relative change beyond the interval of an edge with multiplier one, in proportion to which
        other edges change; 0 for hard constraints.
    margin : float, default=0.0
        Amount by which the search tightens the interval, to allow for its own inaccuracy.
    """

    edges: EdgeLengths
    interval: tuple[float, float]
    slack: float
    margin: float = field(default=0.0, kw_only=True)

    # Maximum number of steps in one round; beyond it, updating the multipliers helps more.
    steps_per_round: ClassVar[int] = 100
    # The maps that the variables can represent, for messages.
    map_description: ClassVar[str] = "map"

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows of the variables."""

    @property
    @abstractmethod
    def filter(self) -> Filter:
        """Preconditioner of the gradient."""

    @property
    @abstractmethod
    def expected_variance(self) -> float:
        """Estimate of the largest variance, to within a factor of about two."""

    @abstractmethod
    def map(self, R: Array) -> Array:
        """The map that the variables represent, with every component centered."""

    @abstractmethod
    def centered(self, R: Array) -> Array:
        """Variables of the same map with every component centered, if they can represent it."""

    @abstractmethod
    def edge_vectors(self, R: Array) -> Array:
        """Difference between the two ends of every edge on the map, (n_edges, d)."""

    @abstractmethod
    def edge_vectors_adjoint(self, vectors: Array) -> Array:
        """Adjoint of `edge_vectors`, (n, d)."""

    @abstractmethod
    def half_variance_gradient(self, R: Array) -> Array:
        """Half the gradient of the variance with respect to the variables."""

    @abstractmethod
    def smallest_eigenpairs(
        self, weights: Array, k: int, rng: np.random.Generator
    ) -> SmallestEigenpairs:
        """At most k smallest eigenpairs of the edge Laplacian, orthogonal to constants."""

    def raise_weights(self, weights: Array) -> Array:
        """Edge weights, raised where their Laplacian has eigenvalues below one, or as given."""
        return weights

    def lagrangian(
        self, multipliers: Array, penalty: float, variance_per_edge: float
    ) -> UnfoldingLagrangian:
        """The objective of one round of the method of multipliers."""
        return UnfoldingLagrangian(self, multipliers, penalty, variance_per_edge)

    def gram(self, R: Array) -> Array:
        """Inner products of the coordinates, (d, d), whose trace is the variance."""
        return R.T @ self.half_variance_gradient(R)

    def variance(self, R: Array) -> float:
        """Sum over points of multiplicity times squared distance from the mean."""
        return float(np.einsum("nd,nd->", R, self.half_variance_gradient(R)))

    def changes(self, R: Array) -> Array:
        """Relative changes of squared lengths."""
        return self.edges.changes(self.edge_vectors(R))

    @property
    def feasible_status(self) -> str:
        """Status message about the lengths of a feasible map."""
        if self.slack > 0:
            return "lengths are within the slack"
        return "no edge is too long" if np.isinf(self.interval[0]) else "lengths are kept"

    @property
    def target_interval(self) -> tuple[float, float]:
        """The tolerance interval, tightened by the margin at both ends."""
        low, high = self.interval
        return low + self.margin, high - self.margin

    def penalized_support_function(
        self, multipliers: Array, interval: tuple[float, float]
    ) -> Array:
        """h(u) + slack·u²/2 for every multiplier u, with h the support function of the interval."""
        low, high = interval
        end = np.where(multipliers > 0, high, 0.0) + np.where(multipliers < 0, low, 0.0)
        return multipliers * end + self.slack / 2 * multipliers**2

    def excess(self, changes: Array, multipliers: Array | float = 0.0) -> Array:
        """Violation: distance of changes from the target interval, shifted by slack·multiplier."""
        low, high = self.target_interval
        return np.abs(changes - np.clip(changes, low, high) - self.slack * multipliers)

    def slack_cost(self, changes: Array) -> float:
        """Cost of changes outside the interval, in units of the variance per edge."""
        if self.slack == 0:
            return 0.0
        return float((self.excess(changes) ** 2).sum() / (2 * self.slack))


@dataclass(frozen=True, eq=False)
class FreeUnfolding(UnfoldingProblem):
    """All points are variables: maximize Σ mᵢ‖rᵢ − r̄‖².

    Parameters
    ----------
    multiplicity : array of shape (n,)
        Number of data points at every distinct point, mᵢ.
    component : array of shape (n,)
        Connected component of every point; r̄ is the mean of its component.
    dense_up_to : int, default=200
        Number of points up to which the dense eigensolver is used.
    angle : float, default=1e-3
        Tolerance of the eigenvectors, which only show where to raise multipliers.
    sources : int, default=5
        Number of sources per component of the shortest paths that estimate the variance.
    """

    multiplicity: Array
    component: IntArray
    dense_up_to: int = field(default=200, kw_only=True)
    angle: float = field(default=1e-3, kw_only=True)
    sources: int = field(default=5, kw_only=True)

    @property
    def n(self) -> int:
        return self.edges.n

    @cached_property
    def filter(self) -> Filter:
        return cheapest_filter(self.lagrangian(np.ones(self.edges.count), 1.0, 1.0))

    def map(self, R: Array) -> Array:
        return self.centered(R)

    def centered(self, R: Array) -> Array:
        means = np.asarray(self._averaging @ R)
        return R - (means if self.n_components == 1 else means[self.component])

    def edge_vectors(self, R: Array) -> Array:
        return self.edges.edge_vectors(R)

    def edge_vectors_adjoint(self, vectors: Array) -> Array:
        return self.edges.edge_vectors_adjoint(vectors)

    def half_variance_gradient(self, R: Array) -> Array:
        return self.multiplicity[:, None] * self.centered(R)

    def raise_weights(self, weights: Array) -> Array:
        return raise_weights_locally(self.edges, self.multiplicity, weights)

    def smallest_eigenpairs(
        self, weights: Array, k: int, rng: np.random.Generator
    ) -> SmallestEigenpairs:
        L, constants = self.edges.laplacian(weights), np.eye(self.n_components)[self.component]
        posed = SpectralProblem(L, "smallest", mass=self.multiplicity, deflate=constants)
        k = min(k, self.n - self.n_components)
        with ignoring(ManifoldryWarning):  # the bound includes the error
            found = self._solved(posed, k, rng)
        return SmallestEigenpairs(found.values, found.vectors, float(found.residuals[0]))

    def _solved(self, posed: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        if posed.n <= self.dense_up_to:
            return Dense().solve(posed, k, rng)
        try:
            return ShiftInvertLanczos(full_multiplicity=False, angle=self.angle).solve(
                posed, k, rng
            )
        except SolverFailed:  # the factorization fails if magnitudes differ too much
            return Auto(full_multiplicity=False).solve(posed, k, rng)

    @cached_property
    def expected_variance(self) -> float:
        """Half the variance of shortest-path lengths, which bound distances on the map."""
        total = 0.0
        for rows in component_rows(self.component):
            sources = rows[spread_rows(len(rows), self.sources)]
            paths = path_lengths_from(self.edges.lengths, sources)[:, rows]
            total += float(self.multiplicity[rows].sum() * (paths**2).mean()) / 2
        return total / 2

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(self.component.max()) + 1

    @cached_property
    def _averaging(self) -> sparse.csr_array:
        """Matrix that maps the variables to the weighted means of the components."""
        weight = self.multiplicity / np.bincount(self.component, self.multiplicity)[self.component]
        entries = (weight, (self.component, np.arange(len(self.component))))
        return sparse.csr_array(entries, shape=(self.n_components, len(self.component)))
