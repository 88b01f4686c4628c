"""Criteria for the next coordinate: two ways to keep it from repeating the earlier ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from manifoldry.affinity.gaussian import local_weights
from manifoldry.device import Device, current_device
from manifoldry.eigen import Gram, SpectralProblem, Spectrum
from manifoldry.extension.regression import PredictionErrors
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.nonredundant.excluded import excluding
from manifoldry.nonredundant.gradients import EarlierGradients, quadratic
from manifoldry.nonredundant.minimizer import EnergyMinimizer
from manifoldry.nonredundant.on_device import earlier_gradients
from manifoldry.nonredundant.smoother import (
    KernelSmoother,
    resolve_smoother,
    smoother_functions,
)
from manifoldry.util.cached import cached_property
from manifoldry.util.memory import memory_remedy
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import power_of_two_scale

# Leave-one-out error, relative to the standard deviation, from which on a coordinate counts as
# unpredictable, and the amount by which the error of another candidate has to be larger.
MIN_ERROR, ERROR_MARGIN = 0.9, 0.02
# Error from which on orthogonal gradients are trusted for operators that are no Laplacian. LLE on
# rolls 10 times longer than high had 0.91 in one of five samples, with a rank correlation of 0.42
# with the height; the prediction criterion had 1.01 and 0.93.
CLEAR_ERROR = 0.95

Solve = Callable[[SpectralProblem], Spectrum]


@dataclass(frozen=True, eq=False)
class Coordinate:
    """One coordinate, its constraints, and how well the earlier ones predict it."""

    spectrum: Spectrum
    constrained: bool
    """Whether it differs from the next eigenvector of the problem."""
    error: float
    """Error of predicting it from the earlier ones, relative to its standard deviation."""
    description: str
    """How it was found, for `NonRedundant.coordinate_descriptions_`."""
    earlier_fraction: float | None = None
    """Fraction of its energy along the earlier gradients, if that was computed."""

    @property
    def f(self) -> Array:
        """Its values at the training points."""
        return self.spectrum.vectors[:, 0]


@dataclass(frozen=True, eq=False)
class GraphProblem:
    """A spectral problem with the graph on which gradients of functions are computed."""

    problem: SpectralProblem
    products_suffice: bool = False
    """Whether eigenvectors of the problem were found by products with the operator alone."""
    minimizer: EnergyMinimizer | None = None
    """Finds functions of least energy faster than eigensolvers, if the problem allows it."""

    @property
    def device(self) -> Device | None:
        """The device that computes gradients, on which the minimizer needs them."""
        return current_device() if self.minimizer is None else self.minimizer.device

    @cached_property
    def weights(self) -> sparse.csr_array:
        """Symmetric weights between neighbors."""
        return neighbor_weights(self.problem)


class Criterion(ABC):
    """Rule for the next coordinate, given the earlier ones."""

    @abstractmethod
    def next(self, graph_problem: GraphProblem, F: Array, solve: Solve) -> Coordinate:
        """The next coordinate of the problem, given the earlier ones as columns of `F`."""


@dataclass(frozen=True)
class PredictionCriterion(Criterion):
    """Unpredictability constraint: a smoother predicts zero from the earlier coordinates.

    The next coordinate f is the best function of the problem with P f ≈ 0, where P is the matrix of
    a kernel smoother on the earlier coordinates (Blau & Michaeli 2017).

    Parameters
    ----------
    bandwidth : float or "auto", default=0.3
        Standard deviation of the kernel relative to the root mean square of the coordinates;
        "auto" takes the widest whose coordinate is unpredictable by leave-one-out regression.
    smoother : {"nadaraya_watson", "local_linear"} or KernelSmoother, default="nadaraya_watson"
        Local means (Nadaraya–Watson), local linear fits, or an object with more options.
    """

    bandwidth: float | str = 0.3
    smoother: str | KernelSmoother = "nadaraya_watson"
    # Bandwidths tried by "auto", widest first: wide kernels give smoother coordinates, but miss
    # functions that oscillate within their width.
    widths: ClassVar[tuple[float, ...]] = (0.6, 0.45, 0.3, 0.2, 0.15)

    def next(self, graph_problem: GraphProblem, F: Array, solve: Solve) -> Coordinate:
        widths = self.widths if self.bandwidth == "auto" else (float(self.bandwidth),)
        errors = PredictionErrors(F)
        return first_unpredictable(
            self._with_bandwidth(graph_problem.problem, solve, width, errors) for width in widths
        )

    def _with_bandwidth(
        self, problem: SpectralProblem, solve: Solve, width: float, errors: PredictionErrors
    ) -> Coordinate:
        F = errors.before
        most = max(0, dimensions_left(problem, F) - 1)
        mass, smoother = mass_of(problem), resolve_smoother(self.smoother)
        mass = mass / power_of_two_scale(mass)  # single precision has a small range
        functions = smoother_functions(F, mass, width, smoother, most=most)
        spectrum = solve(excluding(problem, F, functions.values))
        description = f"prediction with bandwidth {width:g}, {functions.count} functions excluded"
        return Coordinate(spectrum, True, errors(spectrum.vectors[:, 0]), description)


@dataclass(frozen=True)
class GradientCriterion(Criterion):
    """The gradient of the next coordinate must be orthogonal to those of the earlier ones.

    The next coordinate minimizes its own energy plus a weight times the energy of the part of its
    gradient along the earlier gradients, among functions orthogonal to all quadratic functions of
    the earlier coordinates. The weight grows until the coordinate is unpredictable.

    The next eigenvector is taken without constraints in two cases: it is unpredictable and its
    gradient is nearly orthogonal already, or it is a second branch of an earlier direction, such as
    the sine in addition to the cosine on a circle. A second branch is unpredictable, has its
    gradient along the earlier ones, and is much smoother than functions with orthogonal gradients.

    Parameters
    ----------
    weights : tuple of float, default=(16.0, 64.0, 256.0)
        Weights of the penalty, in units in which the energy of the first coordinate is one.
    weights_of_largest : tuple of float, default=(1.0, 4.0)
        The same for problems that maximize the eigenvalue.
    new_fraction : float, default=0.12
        Fraction of the energy along earlier gradients below which a direction is new.
    branch_fraction : float, default=0.6
        Fraction above which it may be a second branch.
    branch_roughness : float, default=3.0
        Ratio of the Rayleigh quotients of the penalized function and the eigenvector from which on
        the eigenvector is taken as a second branch.
    """

    weights: tuple[float, ...] = (16.0, 64.0, 256.0)
    weights_of_largest: tuple[float, ...] = (1.0, 4.0)
    new_fraction: float = 0.12
    branch_fraction: float = 0.6
    branch_roughness: float = 3.0

    def next(self, graph_problem: GraphProblem, F: Array, solve: Solve) -> Coordinate:
        problem = graph_problem.problem
        spectrum = self._eigenvector(graph_problem, F, solve)
        f, errors = spectrum.vectors[:, 0], PredictionErrors(F)
        plain = Coordinate(spectrum, False, errors(f), "the next eigenvector")
        earlier = earlier_gradients(graph_problem.weights, F, graph_problem.device)
        fraction = earlier.fraction(f)
        # The energy of the problem is that of gradients if its operator is the graph Laplacian.
        if plain.error >= MIN_ERROR and (not is_laplacian(problem) or fraction < self.new_fraction):
            known = fraction if is_laplacian(problem) else None
            return replace(self._accurate(plain, graph_problem, F, solve), earlier_fraction=known)
        if dimensions_left(problem, quadratic(F[:1])) < 1:
            return self._accurate(plain, graph_problem, F, solve)
        found = list(self._with_growing_weights(graph_problem, F, solve, earlier, errors))
        if plain.error >= MIN_ERROR and fraction > self.branch_fraction:
            ratio = rayleigh_quotient(problem, found[0].f) / rayleigh_quotient(problem, f)
            rougher = 1 / ratio if problem.largest else ratio
            if rougher >= self.branch_roughness:
                plain = self._accurate(plain, graph_problem, F, solve)
                return replace(plain, description="the next eigenvector, another branch")
        best = first_unpredictable(iter(found))
        if best.error < CLEAR_ERROR and not is_laplacian(problem):
            # For other operators orthogonal gradients may not give an unpredictable coordinate.
            other = PredictionCriterion("auto").next(graph_problem, F, solve)
            best = other if other.error > best.error + ERROR_MARGIN else best
        return best

    def _with_growing_weights(
        self,
        graph_problem: GraphProblem,
        F: Array,
        solve: Solve,
        earlier: EarlierGradients,
        errors: PredictionErrors,
    ) -> Iterator[Coordinate]:
        """Candidates of growing weight, until one is unpredictable or the error no longer grows."""
        problem = graph_problem.problem
        before = -np.inf
        candidate = self._candidate(graph_problem, F, solve, earlier)
        for weight in self.weights_of_largest if problem.largest else self.weights:
            spectrum = candidate(weight)
            f = spectrum.vectors[:, 0]
            own = replace(spectrum, values=np.array([rayleigh_quotient(problem, f)]))
            description = f"gradients orthogonal with weight {weight:g}"
            error = errors(f)
            yield Coordinate(own, True, error, description, earlier.fraction(f))
            if error >= MIN_ERROR or error <= before + ERROR_MARGIN:
                return
            before = error

    def _candidate(
        self, graph_problem: GraphProblem, F: Array, solve: Solve, earlier: EarlierGradients
    ) -> Callable[[float], Spectrum]:
        """The function of the weight that finds the candidate."""
        scaled = F / np.sqrt((F**2).mean(axis=0))
        unit = self._unit(graph_problem, F, earlier, solve)
        minimizer, products = graph_problem.minimizer, graph_problem.products_suffice

        def accurate(weight: float) -> Spectrum:
            kept = constrained(graph_problem.problem, quadratic(scaled))
            R = earlier.penalty if products else earlier.penalty_matrix
            growth = 1 + 2 * weight if products else np.inf  # as R ≤ 2 A
            return solve(penalized(kept, (weight * unit) * R, growth))

        if minimizer is None:
            return accurate
        search = minimizer.orthogonal_to(quadratic(minimizer.placed(scaled)))

        def fast(weight: float) -> Spectrum:
            return search.penalized(earlier.penalty_products, weight) or accurate(weight)

        return fast

    def _eigenvector(self, graph_problem: GraphProblem, F: Array, solve: Solve) -> Spectrum:
        """The next eigenvector, which may be approximate."""
        minimizer = graph_problem.minimizer
        found = None if minimizer is None else minimizer.orthogonal_to(F).eigenvector()
        return found or solve(constrained(graph_problem.problem, F))

    def _accurate(
        self, plain: Coordinate, graph_problem: GraphProblem, F: Array, solve: Solve
    ) -> Coordinate:
        """The coordinate as an accurate eigenvector."""
        minimizer = graph_problem.minimizer
        if minimizer is None or minimizer.factorize:
            return plain
        return replace(plain, spectrum=solve(constrained(graph_problem.problem, F)))

    def _unit(
        self, graph_problem: GraphProblem, F: Array, earlier: EarlierGradients, solve: Solve
    ) -> float:
        """Ratio of the energy in the problem to the energy on the graph."""
        problem = graph_problem.problem
        if is_laplacian(problem):
            return 1.0
        f = F[:, 0]
        if problem.largest:
            # The first coordinate has by far the largest eigenvalue; use an estimate of the next.
            f = PredictionCriterion(PredictionCriterion.widths[0]).next(graph_problem, F, solve).f
        energy = float(f @ (earlier.laplacian @ f))
        return abs(float(f @ (problem.operator @ f))) / max(energy, np.finfo(float).tiny)


def first_unpredictable(candidates: Iterator[Coordinate]) -> Coordinate:
    """The first unpredictable candidate, or else the one with the largest error."""
    best = next(candidates)
    while best.error < MIN_ERROR and (coordinate := next(candidates, None)) is not None:
        if coordinate.error >= MIN_ERROR or coordinate.error > best.error + ERROR_MARGIN:
            best = coordinate
    return best


def mass_of(problem: SpectralProblem) -> Array:
    """The diagonal of B."""
    return np.ones(problem.n) if problem.mass is None else problem.mass


def constrained(problem: SpectralProblem, columns: Array) -> SpectralProblem:
    """The problem restricted to functions that are also orthogonal to `columns`."""
    given: Sequence[Array] = () if problem.constraint is None else (problem.constraint,)
    return replace(problem, constraint=np.hstack([*given, columns]))


def dimensions_left(problem: SpectralProblem, columns: Array) -> int:
    """Dimension of the functions orthogonal to `columns` and to the problem's constraints."""
    blocks = (columns, problem.deflate, problem.constraint)
    return problem.n - sum(C.shape[1] for C in blocks if C is not None)


def penalized(problem: SpectralProblem, R: Matrix, growth: float = np.inf) -> SpectralProblem:
    """The problem with a penalty fᵀRf: added if it minimizes, subtracted if it maximizes.

    Added, it makes no eigenvalue larger than `growth` times the largest.
    """
    A: Matrix = problem.operator
    bounds = None if problem.bounds is None else (problem.bounds[0], growth * problem.bounds[1])
    if not problem.largest and sparse.issparse(R):
        both = A + (R if sparse.issparse(A) else R.toarray())
        return replace(problem, operator=both, bounds=bounds)
    sign = -1.0 if problem.largest else 1.0

    def product(X: Array) -> Array:
        return np.asarray(A @ X) + sign * (R @ X)

    both = LinearOperator(A.shape, matvec=product, matmat=product, dtype=np.float64)
    return replace(problem, operator=both, bounds=None if problem.largest else bounds)


def rayleigh_quotient(problem: SpectralProblem, f: Array) -> float:
    """fᵀAf / fᵀBf."""
    return float(f @ (problem.operator @ f)) / float(mass_of(problem) @ f**2)


def is_laplacian(problem: SpectralProblem) -> bool:
    """Whether the operator of the problem is the Laplacian of its graph."""
    return problem.graph is None and not problem.largest


def neighbor_weights(problem: SpectralProblem) -> sparse.csr_array:
    """Weights of the problem's graph, or of one derived from its operator."""
    if problem.graph is not None:
        return problem.graph()
    A = problem.operator
    if isinstance(A, Gram):
        factor = A.factor.toarray() if sparse.issparse(A.factor) else A.factor
        return _local_weights(factor, copy=False)
    if problem.largest and not sparse.issparse(A):
        own = A.diagonal()
        squares = np.maximum(own[:, None] + own - 2 * A, 0.0)
        np.fill_diagonal(squares, 0.0)
        return _local_weights(np.sqrt(squares), metric="precomputed")
    # Off-diagonal entries are weights, and those of a Laplacian, whose small end counts, −weights.
    W = sparse.csr_array(A) if problem.largest else -sparse.csr_array(A)
    W.setdiag(0.0)
    W.data = np.maximum(W.data, 0.0)
    W.eliminate_zeros()
    return W


def _local_weights(rows: Array, **options: Any) -> sparse.csr_array:
    """Weights of the neighbors of each row, whose number is no parameter."""
    with memory_remedy("use fewer points"):
        return local_weights(NeighborGraph.build(rows, **options))
