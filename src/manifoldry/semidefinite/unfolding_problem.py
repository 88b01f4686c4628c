"""Maximum variance unfolding as a problem: edges, how far they may give, what is spread."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from manifoldry.objectives.base import Objective, check_map
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.semidefinite.unfolding_problem import UnfoldingProblem
import warnings
from abc import ABC, abstractmethod
from dataclasses import field
from typing import ClassVar, NamedTuple

from scipy.sparse.csgraph import dijkstra

from manifoldry.eigen import (
    Auto,
    Dense,
    ShiftInvertLanczos,
    SolverFailed,
    SpectralProblem,
    Spectrum,
)
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.extension.layout import component_rows
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.semidefinite.edge_lengths import EdgeLengths
from manifoldry.semidefinite.variance_bound import raise_weights_locally
from manifoldry.util.typing import IntArray
from manifoldry.util.validation import spread_rows


@dataclass(frozen=True, eq=False)
class UnfoldingLagrangian(Objective):
    """−variance/share, and what the edges' springs cost: an augmented Lagrangian.

    With c the change of an edge's squared length as a fraction of it, a spring costs
    maxᵤ u·c − h(u) − slack·u²/2 − (u − multipliers)²/(2·penalty), where h is the support function
    of the band in which c is free. The maximizer u is the spring's multipliers at the map, and the
    gradient is that of the Laplacian Σ u/scale·‖rᵢ − rⱼ‖².

    Parameters
    ----------
    problem : UnfoldingProblem
        Edges, interval, slack and masses.
    multipliers : array of shape (n_edges,)
        Tensions from which the springs pull; the last round's, positive where an edge is held
        together.
    penalty : float
        Tension that a change by all of a squared length adds.
    variance_per_edge : float
        Variance that counts as one.
    """

    problem: "UnfoldingProblem"
    multipliers: Array
    penalty: float
    variance_per_edge: float

    @property
    def n(self) -> int:
        return self.problem.n

    def value_and_gradient(self, R: Array) -> tuple[float, Array]:
        problem, R = self.problem, check_map(R, self.n)
        steps = problem.edge_vectors(R)
        c = problem.edges.changes(steps)
        u = self.updated_multipliers(c)
        cost = (
            u * c
            - problem.support(u, problem.target_interval)
            - (u - self.multipliers) ** 2 / (2 * self.penalty)
        )
        spread = problem.spread(R)
        value = float(cost.sum()) - float(np.einsum("nd,nd->", R, spread)) / self.variance_per_edge
        G = problem.gather((2 * u / problem.edges.scales)[:, None] * steps)
        G -= (2 / self.variance_per_edge) * spread
        return value, G.astype(R.dtype, copy=False)

    def updated_multipliers(self, changes: Array) -> Array:
        """Tensions of the springs at given changes of squared lengths."""
        low, high = self.problem.target_interval
        t = self.multipliers + self.penalty * changes
        free = np.clip(t, self.penalty * low, self.penalty * high)
        return (t - free) / (1 + self.penalty * self.problem.slack)

    @cached_property
    def attraction(self) -> sparse.csr_array:
        return self.problem.edges.weights(self.penalty / self.problem.edges.scales)

    def diagonal_curvature(self, Y: Array) -> Array:
        edges, Y = self.problem.edges, check_map(Y, self.n)
        steps = edges.edge_vectors(Y)
        u = self.updated_multipliers(edges.changes(steps))
        effective = self.penalty / (1 + self.penalty * self.problem.slack)
        stretching = 4 * effective * ((u != 0) / edges.scales**2)[:, None] * steps**2
        per_edge = 2 * (np.maximum(u, 0.0) / edges.scales)[:, None] + stretching
        return np.asarray(abs(edges.incidence).T @ per_edge).astype(Y.dtype, copy=False)


class SmallestEigenpairs(NamedTuple):
    """Smallest eigenvalues of a Laplacian, relative to the masses, and their vectors."""

    values: Array
    vectors: Array
    error: float
    """Bound of the error of the smallest."""


@dataclass(frozen=True, eq=False)
class UnfoldingProblem(ABC):
    """Maximize the variance of maps of any dimension that keep the lengths of edges.

    As a problem in the inner products of all points it is a semidefinite program: all its maxima
    are equally good, and multipliers prove how good (see
    :class:`~manifoldry.semidefinite.variance_bound.VarianceBound`). The variables, (n, d), are the
    map or what a map is made of.

    Parameters
    ----------
    edges : EdgeLengths
        The edges; they must connect all points of a component.
    interval : (float, float)
        Changes of squared lengths, as fractions of them, within which edges are free.
    slack : float
        Change beyond the interval that an edge of mean multipliers is granted; 0 holds all edges.
    margin : float, default=0.0
        How far inside the interval a search aims, so that it need not end there exactly.
    """

    edges: EdgeLengths
    interval: tuple[float, float]
    slack: float
    margin: float = field(default=0.0, kw_only=True)

    # What the gradient of a round is multiplied with.
    filter: ClassVar[Filter]
    # More of them do less good than another round.
    steps_per_round: ClassVar[int] = 100
    # The maps that the variables can make, in words.
    map_description: ClassVar[str] = "map"

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows of the variables."""

    @property
    @abstractmethod
    def expected_variance(self) -> float:
        """A guess of the largest variance, good to a factor of two or so."""

    @abstractmethod
    def map(self, R: Array) -> Array:
        """The map that the variables make, every component about its mean."""

    @abstractmethod
    def centered(self, R: Array) -> Array:
        """Variables of the same map, every component about its mean where they can express that."""

    @abstractmethod
    def edge_vectors(self, R: Array) -> Array:
        """What leads along every edge, (n_edges, d)."""

    @abstractmethod
    def gather(self, steps: Array) -> Array:
        """The transpose of `steps`."""

    @abstractmethod
    def spread(self, R: Array) -> Array:
        """Half the gradient of the variance by the variables."""

    @abstractmethod
    def smallest_eigenpairs(
        self, weights: Array, k: int, rng: np.random.Generator
    ) -> SmallestEigenpairs:
        """At most k smallest eigenvalues, beside constants', of the edges' Laplacian."""

    def raise_weights(self, weights: Array) -> Array:
        """Edge weights near given ones whose Laplacian has fewer eigenvalues below one."""
        return weights

    def lagrangian(
        self, multipliers: Array, penalty: float, variance_per_edge: float
    ) -> UnfoldingLagrangian:
        """What a round of the method of multipliers minimizes."""
        return UnfoldingLagrangian(self, multipliers, penalty, variance_per_edge)

    def gram(self, R: Array) -> Array:
        """Inner products of the map's coordinates, (d, d); its trace is the variance."""
        return R.T @ self.spread(R)

    def variance(self, R: Array) -> float:
        """Sum over all points of multiplicity times squared distance from the mean."""
        return float(np.einsum("nd,nd->", R, self.spread(R)))

    def changes(self, R: Array) -> Array:
        """Changes of squared lengths, as fractions of them."""
        return self.edges.changes(self.edge_vectors(R))

    @property
    def feasible_status(self) -> str:
        """What is true of lengths, in words, once nothing exceeds what is granted."""
        if self.slack > 0:
            return "lengths are within what slack grants"
        return "no length is exceeded" if np.isinf(self.interval[0]) else "lengths are kept"

    @property
    def target_interval(self) -> tuple[float, float]:
        """The interval that a search aims at."""
        low, high = self.interval
        return low + self.margin, high - self.margin

    def support(self, multipliers: Array, interval: tuple[float, float]) -> Array:
        """What multipliers make of a interval and the slack in the dual: h(u) + slack·u²/2."""
        low, high = interval
        pulled = np.where(multipliers > 0, high, 0.0) + np.where(multipliers < 0, low, 0.0)
        return multipliers * pulled + self.slack / 2 * multipliers**2

    def excess(self, changes: Array, multipliers: Array | float = 0.0) -> Array:
        """How far changes are beyond what aim, slack and multipliers grant them."""
        low, high = self.target_interval
        return np.abs(changes - np.clip(changes, low, high) - self.slack * multipliers)

    def slack_cost(self, changes: Array) -> float:
        """What edges pay that give way beyond the interval, in units of the fraction of variance."""
        if self.slack == 0:
            return 0.0
        return float((self.excess(changes) ** 2).sum() / (2 * self.slack))


@dataclass(frozen=True, eq=False)
class FreeUnfolding(UnfoldingProblem):
    """Every point goes where it likes: maximize Σ mᵢ‖rᵢ − r̄‖².

    Parameters
    ----------
    multiplicity : array of shape (n,)
        Weight of every point.
    component : array of shape (n,)
        Component of every point; each is spread about its own mean.
    dense_up_to : int, default=200
        Points for which all eigenvectors cost next to nothing.
    angle : float, default=1e-3
        Error of eigenvectors: they say where multipliers is missing, no more.
    sources : int, default=5
        Of shortest paths, in every component, that tell how wide it might become.
    """

    multiplicity: Array
    component: IntArray
    dense_up_to: int = field(default=200, kw_only=True)
    angle: float = field(default=1e-3, kw_only=True)
    sources: int = field(default=5, kw_only=True)

    filter: ClassVar[Filter] = SpectralDirection()

    @property
    def n(self) -> int:
        return self.edges.n

    def map(self, R: Array) -> Array:
        return self.centered(R)

    def centered(self, R: Array) -> Array:
        means = np.asarray(self._averaging @ R)
        return R - (means if self.n_components == 1 else means[self.component])

    def edge_vectors(self, R: Array) -> Array:
        return self.edges.edge_vectors(R)

    def gather(self, steps: Array) -> Array:
        return self.edges.gather(steps)

    def spread(self, R: Array) -> Array:
        return self.multiplicity[:, None] * self.centered(R)

    def raise_weights(self, weights: Array) -> Array:
        return raise_weights_locally(self.edges, self.multiplicity, weights)

    def smallest_eigenpairs(
        self, weights: Array, k: int, rng: np.random.Generator
    ) -> SmallestEigenpairs:
        L, constants = self.edges.laplacian(weights), np.eye(self.n_components)[self.component]
        posed = SpectralProblem(L, "smallest", mass=self.multiplicity, deflate=constants)
        k = min(k, self.n - self.n_components)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ManifoldryWarning)  # the error is allowed for
            found = self._solved(posed, k, rng)
        return SmallestEigenpairs(found.values, found.vectors, float(found.residuals[0]))

    def _solved(self, posed: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        if posed.n <= self.dense_up_to:
            return Dense().solve(posed, k, rng)
        try:
            return ShiftInvertLanczos(copies=False, angle=self.angle).solve(posed, k, rng)
        except SolverFailed:  # entries of all magnitudes, where factors break down
            return Auto(copies=False).solve(posed, k, rng)

    @cached_property
    def expected_variance(self) -> float:
        """Half of what lengths of paths would have it, which are as long as maps can be wide."""
        total = 0.0
        for rows in component_rows(self.component):
            sources = rows[spread_rows(len(rows), self.sources)]
            paths = dijkstra(self.edges.lengths, indices=sources)[:, rows]
            total += float(self.multiplicity[rows].sum() * (paths**2).mean()) / 2
        return total / 2

    @property
    def n_components(self) -> int:
        """Number of components."""
        return int(self.component.max()) + 1

    @cached_property
    def _averaging(self) -> sparse.csr_array:
        """From a map to the weighted means of its components."""
        weight = self.multiplicity / np.bincount(self.component, self.multiplicity)[self.component]
        entries = (weight, (self.component, np.arange(len(self.component))))
        return sparse.csr_array(entries, shape=(self.n_components, len(self.component)))
