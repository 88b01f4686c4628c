"""Which function comes next: two ways to keep it from repeating the coordinates before it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from manifoldry.affinity.gaussian import local_weights
from manifoldry.eigen import Gram, SpectralProblem, Spectrum
from manifoldry.extension.regression import unpredictable
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.nonredundant.gradients import EarlierGradients, quadratic
from manifoldry.nonredundant.smoother import Smoother, SmootherFunctions, smoother_functions
from manifoldry.util.typing import Array, Matrix

# Leave-one-out error, relative to the spread, of a coordinate that is new, and the margin by which
# another try has to be better.
MIN_ERROR, ERROR_MARGIN = 0.9, 0.02

Solve = Callable[[SpectralProblem], Spectrum]


@dataclass(frozen=True, eq=False)
class QuadraticFunctions:
    """The coordinates, their squares and products, as functions of the coordinates."""

    factors: Array  # (q,)

    def __call__(self, F: Array) -> Array:
        """Values at coordinates `F` (n, q)."""
        return quadratic(F / self.factors)


@dataclass(frozen=True, eq=False)
class GradientPenalty:
    """A weight on gradients along the old ones, and the eigenvalue of the problem with it."""

    earlier: EarlierGradients
    weight: float
    value: float


@dataclass(frozen=True, eq=False)
class Coordinate:
    """One coordinate, what it was kept apart from, and the evidence that it is new."""

    spectrum: Spectrum
    functions: SmootherFunctions | QuadraticFunctions | None
    """What it is orthogonal to besides the coordinates before it."""
    error: float
    """Of predicting it from those before it, relative to its spread."""
    description: str
    """Which rule found it, in words."""
    penalty: GradientPenalty | None = None
    """What was counted against it, if anything."""
    earlier_fraction: float | None = None
    """Of its energy along the gradients of those before it, where that says something."""

    @property
    def f(self) -> Array:
        """The values at the training points."""
        return self.spectrum.vectors[:, 0]


@dataclass(frozen=True, eq=False)
class GraphProblem:
    """A problem, and the graph on which its functions have gradients."""

    problem: SpectralProblem

    @cached_property
    def weights(self) -> sparse.csr_array:
        """Symmetric weights between neighbors: the problem's graph, or what its operator says."""
        return neighbor_weights(self.problem)


class Criterion(ABC):
    """What it means for a function to be new, given the coordinates so far."""

    @abstractmethod
    def next(self, graph_problem: GraphProblem, F: Array, solve: Solve) -> Coordinate:
        """The best function of the problem that is new beside the columns of `F`."""


@dataclass(frozen=True)
class PredictionCriterion(Criterion):
    """A smoother on the earlier coordinates must predict nothing (Blau & Michaeli 2017).

    Parameters
    ----------
    bandwidth : float or "auto"
        Width of the smoother's kernel relative to the spread of the coordinates; "auto" takes the
        widest that leaves a coordinate new by leave-one-out regression.
    smoother : {"nadaraya_watson", "local_linear"}
        Local means, or local linear fits.
    """

    bandwidth: float | str = 0.3
    smoother: Smoother = "nadaraya_watson"
    # Bandwidths tried by "auto", the widest first: wide kernels leave purer coordinates, as long
    # as they do not overlook a fold.
    widths: ClassVar[tuple[float, ...]] = (0.6, 0.45, 0.3, 0.2, 0.15)

    def next(self, graph_problem: GraphProblem, F: Array, solve: Solve) -> Coordinate:
        widths = self.widths if self.bandwidth == "auto" else (float(self.bandwidth),)
        return first_unpredictable(
            self._with_bandwidth(graph_problem.problem, F, solve, width) for width in widths
        )

    def _with_bandwidth(
        self, problem: SpectralProblem, F: Array, solve: Solve, width: float
    ) -> Coordinate:
        most = max(0, dimensions_left(problem, F) - 1)
        functions = smoother_functions(F, mass_of(problem), width, self.smoother, most=most)
        spectrum = solve(constrained(problem, np.hstack([F, functions(F)])))
        description = f"prediction with bandwidth {width:g}, {functions.count} functions excluded"
        return Coordinate(
            spectrum, functions, unpredictable(F, spectrum.vectors[:, 0]), description
        )


@dataclass(frozen=True)
class GradientCriterion(Criterion):
    """The gradient of the next coordinate must be orthogonal to those of the earlier ones.

    The next coordinate minimizes its own energy and a weight times that of its gradient's part
    along the earlier ones, where quadratic functions of those are excluded; the weight grows until
    the function is new. The next eigenvector is taken as it is where it is unpredictable and has
    an orthogonal gradient anyway, or where it is another branch of an old direction, as the sine
    is of the cosine on a circle: unpredictable, along the old gradients, and far smoother than
    anything that leaves them.
    """

    # Weights of old gradients, in units in which the first coordinate's own energy is one.
    weights: tuple[float, ...] = (16.0, 64.0, 256.0)
    weights_of_largest: tuple[float, ...] = (1.0, 4.0)  # where large eigenvalues are wanted
    # Fractions of a function's energy along old gradients: so little is a new direction, so much an
    # old one.
    new_fraction: float = 0.12
    branch_fraction: float = 0.6
    # How many times as rough the best new direction is if the old one had to branch.
    branch_roughness: float = 3.0

    def next(self, graph_problem: GraphProblem, F: Array, solve: Solve) -> Coordinate:
        problem = graph_problem.problem
        spectrum = solve(constrained(problem, F))
        f = spectrum.vectors[:, 0]
        plain = Coordinate(spectrum, None, unpredictable(F, f), "the next eigenvector")
        earlier = EarlierGradients(graph_problem.weights, F)
        fraction = earlier.fraction(f)
        # Gradients tell purity where the method's energy is that of gradients, on a graph.
        if plain.error >= MIN_ERROR and (not is_laplacian(problem) or fraction < self.new_fraction):
            return replace(plain, earlier_fraction=fraction if is_laplacian(problem) else None)
        if dimensions_left(problem, quadratic(F)) < 1:
            return plain
        found = list(self._with_growing_weights(graph_problem, F, solve, earlier))
        if plain.error >= MIN_ERROR and fraction > self.branch_fraction:
            ratio = rayleigh_quotient(problem, found[0].f) / rayleigh_quotient(problem, f)
            rougher = 1 / ratio if problem.largest else ratio
            if rougher >= self.branch_roughness:
                return replace(plain, description="the next eigenvector, another branch")
        best = first_unpredictable(iter(found))
        if best.error < MIN_ERROR and not is_laplacian(problem):
            # Where the method's energy is not that of gradients they may fail to lead anywhere.
            other = PredictionCriterion("auto").next(graph_problem, F, solve)
            best = other if other.error > best.error + ERROR_MARGIN else best
        return best

    def _with_growing_weights(
        self, graph_problem: GraphProblem, F: Array, solve: Solve, earlier: EarlierGradients
    ) -> Iterator[Coordinate]:
        """With growing weights, up to the first that is new, or as long as more weight helps."""
        problem = graph_problem.problem
        functions = QuadraticFunctions(np.sqrt((F**2).mean(axis=0)))
        kept = constrained(problem, functions(F))
        unit, R, before = self._unit(graph_problem, F, earlier, solve), earlier.penalty, -np.inf
        for weight in self.weights_of_largest if problem.largest else self.weights:
            spectrum = solve(penalized(kept, weight * unit * R))
            f = spectrum.vectors[:, 0]
            own = replace(spectrum, values=np.array([rayleigh_quotient(problem, f)]))
            description = f"gradients orthogonal with weight {weight:g}"
            penalty = GradientPenalty(earlier, weight * unit, float(spectrum.values[0]))
            error = unpredictable(F, f)
            yield Coordinate(own, functions, error, description, penalty, earlier.fraction(f))
            if error >= MIN_ERROR or error <= before + ERROR_MARGIN:
                return
            before = error

    def _unit(
        self, graph_problem: GraphProblem, F: Array, earlier: EarlierGradients, solve: Solve
    ) -> float:
        """Energy of the method's own kind per energy on the graph."""
        problem = graph_problem.problem
        if is_laplacian(problem):
            return 1.0
        f = F[:, 0]
        if problem.largest:
            # The first coordinate has by far the largest value; the one to come counts here.
            f = PredictionCriterion(PredictionCriterion.widths[0]).next(graph_problem, F, solve).f
        energy = float(f @ (earlier.laplacian @ f))
        return abs(float(f @ (problem.operator @ f))) / max(energy, np.finfo(float).tiny)


def first_unpredictable(candidates: Iterator[Coordinate]) -> Coordinate:
    """The first that is new, or else the one that is most so."""
    best = next(candidates)
    while best.error < MIN_ERROR and (coordinate := next(candidates, None)) is not None:
        if coordinate.error >= MIN_ERROR or coordinate.error > best.error + ERROR_MARGIN:
            best = coordinate
    return best


def mass_of(problem: SpectralProblem) -> Array:
    """The diagonal of B."""
    return np.ones(problem.n) if problem.mass is None else problem.mass


def constrained(problem: SpectralProblem, columns: Array) -> SpectralProblem:
    """The problem with more columns to be orthogonal to."""
    given: Sequence[Array] = () if problem.constraint is None else (problem.constraint,)
    return replace(problem, constraint=np.hstack([*given, columns]))


def dimensions_left(problem: SpectralProblem, columns: Array) -> int:
    """Dimension of what is orthogonal to the columns and to all that the problem excludes."""
    blocks = (columns, problem.deflate, problem.constraint)
    return problem.n - sum(C.shape[1] for C in blocks if C is not None)


def penalized(problem: SpectralProblem, R: sparse.csr_array) -> SpectralProblem:
    """The problem with fᵀRf counted against it."""
    A: Matrix = problem.operator
    if not problem.largest:
        both = A + (R if sparse.issparse(A) else R.toarray())
        bounds = None if problem.bounds is None else (problem.bounds[0], np.inf)
        return replace(problem, operator=both, bounds=bounds)

    def product(X: Array) -> Array:
        return np.asarray(A @ X) - R @ X

    both = LinearOperator(A.shape, matvec=product, matmat=product, dtype=np.float64)
    return replace(problem, operator=both, bounds=None)


def rayleigh_quotient(problem: SpectralProblem, f: Array) -> float:
    """fᵀAf over fᵀBf."""
    return float(f @ (problem.operator @ f)) / float(mass_of(problem) @ f**2)


def is_laplacian(problem: SpectralProblem) -> bool:
    """Whether the problem's operator is that of the graph itself."""
    return problem.graph is None and not problem.largest


def neighbor_weights(problem: SpectralProblem) -> sparse.csr_array:
    """The weights of a problem's graph, or those that its operator implies."""
    if problem.graph is not None:
        return problem.graph()
    A = problem.operator
    if isinstance(A, Gram):
        factor = A.factor.toarray() if sparse.issparse(A.factor) else A.factor
        return local_weights(NeighborGraph.build(factor, copy=False))
    if problem.largest:
        own = A.diagonal()
        squares = np.maximum(own[:, None] + own - 2 * A, 0.0)
        np.fill_diagonal(squares, 0.0)
        return local_weights(NeighborGraph.build(np.sqrt(squares), metric="precomputed"))
    W = -sparse.csr_array(A)  # a Laplacian has its weights, negative, off the diagonal
    W.setdiag(0.0)
    W.data = np.maximum(W.data, 0.0)
    W.eliminate_zeros()
    return W
