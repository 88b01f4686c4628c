"""Solve a spectral problem for one coordinate at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from manifoldry.device import current_device
from manifoldry.eigen import (
    Auto,
    ChebyshevSubspace,
    EigenSolver,
    Lanczos,
    ShiftInvertLanczos,
    SpectralProblem,
    Spectrum,
    resolve_solver,
)
from manifoldry.eigen.components import check_pairs_memory
from manifoldry.eigen.spectrum import Acceptance
from manifoldry.nonredundant.criteria import (
    Coordinate,
    Criterion,
    GraphProblem,
    is_laplacian,
    rayleigh_quotient,
)
from manifoldry.nonredundant.gradients import EarlierGradients
from manifoldry.nonredundant.minimizer import EnergyMinimizer
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array

COORDINATE_ACCEPTANCE = Acceptance(stop_angle=1e-4, next_angle=0.1)


@dataclass(frozen=True, eq=False)
class CoordinateSequence:
    """The coordinates of one problem found so far."""

    graph_problem: GraphProblem
    coordinates: tuple[Coordinate, ...] = ()

    @property
    def problem(self) -> SpectralProblem:
        """The spectral problem."""
        return self.graph_problem.problem

    @property
    def functions(self) -> Array:
        """Values of the coordinates at the training points, (n, k)."""
        return np.column_stack([c.f for c in self.coordinates])

    def with_next(self, coordinate: Coordinate) -> CoordinateSequence:
        """The sequence with one more coordinate."""
        return replace(self, coordinates=(*self.coordinates, coordinate))

    @property
    def spectrum(self) -> Spectrum:
        """The coordinates as a `Spectrum`."""
        spectra = [c.spectrum for c in self.coordinates]
        approximate = [s.reason for s in spectra if s.solver == EnergyMinimizer.__name__]
        how = f"one coordinate at a time ({self.coordinates[-1].description})"
        return Spectrum(
            values=np.concatenate([s.values for s in spectra]),
            vectors=self.functions,
            residuals=np.concatenate([s.residuals for s in spectra]),
            gaps=np.concatenate([s.gaps for s in spectra]),
            next_value=float("nan"),
            norm=max(s.norm for s in spectra),
            solver=", ".join(dict.fromkeys(s.solver for s in spectra)),
            reason="; ".join(dict.fromkeys([how, *approximate])),
            acceptance=Acceptance(angle=max(s.acceptance.angle for s in spectra)),
            energy_errors=np.concatenate([s.errors_of_energies for s in spectra]),
        )


@dataclass(frozen=True)
class SequentialSolver:
    """Solve a spectral problem for one coordinate after another, none a function of earlier ones.

    Parameters
    ----------
    criterion : Criterion
        Rule for the next coordinate.
    solver : str or EigenSolver
        Solver for each coordinate.
    min_error, max_roughness, max_earlier_fraction, min_variance : float
        A coordinate is not informative if its prediction error is below `min_error`, its Rayleigh
        quotient on the graph above `max_roughness`, the fraction of its energy along earlier
        gradients above `max_earlier_fraction` or, for problems that maximize the variance, its
        variance below `min_variance` times that of the first.
    min_basis : int
        Minimum number of vectors that iterative solvers keep.
    acceptance : Acceptance
        Errors of coordinates at which iterations with products of the operator stop, if `solver`
        is "auto"; an `Auto` object has its own. Smaller errors mean little: noise of 1e-4 in the
        data changes the later coordinates of digits altogether.
    """

    criterion: Criterion
    solver: str | EigenSolver
    min_error: float = 0.5
    max_roughness: float = 0.5
    max_earlier_fraction: float = 0.1
    min_variance: float = 0.005
    min_basis: int = 40
    acceptance: Acceptance = COORDINATE_ACCEPTANCE

    def solve(
        self, problem: SpectralProblem, k: int, rng: np.random.Generator
    ) -> CoordinateSequence | None:
        """At most k coordinates; None for a problem with a single point."""
        if problem.n == 1:
            return None
        return self.extended(CoordinateSequence(GraphProblem(problem)), min(k, problem.n - 1), rng)

    def extended(
        self, sequence: CoordinateSequence, k: int, rng: np.random.Generator
    ) -> CoordinateSequence:
        """The sequence extended to k coordinates."""
        while len(sequence.coordinates) < k:
            first = not sequence.coordinates
            sequence = sequence.with_next(self._next(sequence, rng))
            if first:
                sequence = replace(sequence, graph_problem=self.prepared(sequence, rng))
        return sequence

    def solve_until_redundant(
        self, problem: SpectralProblem, max_coordinates: int, rng: np.random.Generator
    ) -> CoordinateSequence:
        """Coordinates up to the first that is not informative; at least one."""
        sequence = CoordinateSequence(GraphProblem(problem))
        for k in range(1, min(max_coordinates, problem.n - 1) + 1):
            longer = self.extended(sequence, k, rng)
            if k > 1 and not self.is_informative(longer, k - 1):
                break
            sequence = longer
        return sequence

    def _next(self, sequence: CoordinateSequence, rng: np.random.Generator) -> Coordinate:
        check_pairs_memory(sequence.problem, len(sequence.coordinates) + 1, self.min_basis)
        solver = resolve_solver(self.solver, end=sequence.problem.end)
        if isinstance(solver, Auto):
            solver = replace(
                solver,
                full_multiplicity=False,  # any vector of an eigenspace is good enough
                acceptance=self.acceptance if isinstance(self.solver, str) else solver.acceptance,
                probe_first=sequence.graph_problem.products_suffice,
            )

        def solve(problem: SpectralProblem) -> Spectrum:
            return solver.solve(problem, 1, rng)

        if not sequence.coordinates:
            return Coordinate(solve(sequence.problem), False, 1.0, "the first")
        with blas_threads_for(sequence.problem):
            return self.criterion.next(sequence.graph_problem, sequence.functions, solve)

    def prepared(self, sequence: CoordinateSequence, rng: np.random.Generator) -> GraphProblem:
        """The problem with the fast way of solving it, which depends on the first coordinate."""
        problem, first = sequence.problem, sequence.coordinates[0].spectrum
        if not (is_laplacian(problem) and problem.n > EarlierGradients.compiled_above):
            return sequence.graph_problem
        products, device = products_suffice(first), current_device()
        prepared = GraphProblem(problem, products_suffice=products)
        inverse = first.solver in (ShiftInvertLanczos.__name__, ChebyshevSubspace.__name__)
        if self.solver != "auto" or not (products or inverse):
            return prepared
        A, bounds = problem.operator, problem.bounds
        is_weighted_graph = np.count_nonzero(A.data > 0) <= np.count_nonzero(A.diagonal() > 0)
        if bounds is None or bounds[0] < 0 or not is_weighted_graph:
            return prepared  # energies may be negative, or A is not a diagonal minus weights
        if device is not None and not products:
            device.runs_on_host("the search for coordinates", "it uses a sparse factorization")
            device = None
        minimizer = EnergyMinimizer(problem, rng, factorize=not products, device=device)
        return replace(prepared, minimizer=minimizer)

    def is_informative(self, sequence: CoordinateSequence, i: int) -> bool:
        """Whether coordinate i ≥ 1 is unpredictable, smooth and not negligible."""
        return self.fault(sequence, i) is None

    def fault(self, sequence: CoordinateSequence, i: int) -> str | None:
        """What makes coordinate i ≥ 1 redundant or noise, in words; None if it is neither."""
        problem, coordinate = sequence.problem, sequence.coordinates[i]
        if coordinate.error < self.min_error:
            return f"can be predicted from those before it to {coordinate.error:.2f} of its spread"
        along = coordinate.earlier_fraction or 0.0
        if along > self.max_earlier_fraction:
            return f"has {along:.0%} of its energy along earlier gradients"
        if problem.largest:
            variance = rayleigh_quotient(problem, coordinate.f)
            first = rayleigh_quotient(problem, sequence.coordinates[0].f)
            if variance <= max(self.min_variance * first, 0.0):
                return f"has {max(variance, 0.0) / first:.1%} of the variance of the first"
        if roughness(sequence.graph_problem.weights, coordinate.f) > self.max_roughness:
            return "varies between neighbors like noise"
        return None


def products_suffice(first: Spectrum, products: int = 40) -> bool:
    """Whether gaps are so wide that few products with the operator find an eigenvector.

    Lanczos' iteration is the first choice only if a probe of 40 products has shown that. On a
    device there is no probe; about √(norm/λ) products reach an eigenvalue λ next to zero.
    """
    if first.solver == ChebyshevSubspace.__name__:
        return bool(first.values[0] * products**2 >= first.norm)
    return first.solver == Lanczos.__name__


def without_constant(problem: SpectralProblem, rounding: float = 1e-10) -> SpectralProblem:
    """The problem without its constant eigenvector of eigenvalue zero, a function of anything."""
    if problem.deflate is not None or problem.largest:
        return problem
    A, one = problem.operator, np.ones(problem.n)
    if np.abs(A @ one).max() > rounding * np.abs(A.diagonal()).max():
        return problem
    return replace(problem, deflate=one)


def blas_threads_for(problem: SpectralProblem) -> AbstractContextManager[None]:
    """Context that limits BLAS to one thread if the operator is sparse.

    More threads slow down products of tall, narrow matrices (15 000 digits: 17 s instead of 13).
    """
    return one_blas_thread() if sparse.issparse(problem.operator) else nullcontext()


def roughness(W: sparse.csr_array, f: Array) -> float:
    """Rayleigh quotient fᵀLf/fᵀDf on a graph: 0 for a constant, about 1 for noise, at most 2."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    f = f - (degree @ f) / degree.sum()
    return float(1 - f @ (W @ f) / max(degree @ f**2, np.finfo(float).tiny))
