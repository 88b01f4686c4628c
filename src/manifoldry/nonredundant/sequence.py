"""Coordinates one after the other, in place of eigenvectors all at once."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from manifoldry.eigen import Auto, EigenSolver, SpectralProblem, Spectrum, resolve_solver
from manifoldry.eigen.components import plan_pairs
from manifoldry.nonredundant.criteria import (
    Coordinate,
    Criterion,
    GraphProblem,
    rayleigh_quotient,
)
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class CoordinateSequence:
    """The coordinates of one problem, so far."""

    graph_problem: GraphProblem
    coordinates: tuple[Coordinate, ...] = ()

    @property
    def problem(self) -> SpectralProblem:
        """What is solved."""
        return self.graph_problem.problem

    @property
    def functions(self) -> Array:
        """Values of the coordinates, (n, k)."""
        return np.column_stack([c.f for c in self.coordinates])

    @property
    def spectrum(self) -> Spectrum:
        """The coordinates as if they were one spectrum."""
        spectra = [c.spectrum for c in self.coordinates]
        return Spectrum(
            values=np.concatenate([s.values for s in spectra]),
            vectors=self.functions,
            residuals=np.concatenate([s.residuals for s in spectra]),
            gaps=np.concatenate([s.gaps for s in spectra]),
            next_value=float("nan"),
            norm=max(s.norm for s in spectra),
            solver=", ".join(dict.fromkeys(s.solver for s in spectra)),
            reason=f"one coordinate at a time ({self.coordinates[-1].description})",
        )


@dataclass(frozen=True)
class SequentialSolver:
    """Solves a spectral problem for one coordinate at a time, each new beside those before it.

    Parameters
    ----------
    criterion : Criterion
        What new means.
    solver : str or EigenSolver
        Solver for each coordinate.
    min_error, max_roughness, max_earlier_fraction, min_variance : float
        A coordinate says nothing new if it can be predicted to this error, is this rough (a
        Rayleigh quotient on the graph), has this fraction of its energy along old directions, or is
        this small a fraction of the first where coordinates are lengths.
    """

    criterion: Criterion
    solver: str | EigenSolver
    min_error: float = 0.5
    max_roughness: float = 0.5
    max_earlier_fraction: float = 0.1
    min_variance: float = 0.005
    min_basis: int = 40  # vectors that iterative solvers keep at least

    def solve(
        self, problem: SpectralProblem, k: int, rng: np.random.Generator
    ) -> CoordinateSequence | None:
        """At most k coordinates; None for a problem of a single point, which has none."""
        if problem.n == 1:
            return None
        return self.extended(CoordinateSequence(GraphProblem(problem)), min(k, problem.n - 1), rng)

    def extended(
        self, sequence: CoordinateSequence, k: int, rng: np.random.Generator
    ) -> CoordinateSequence:
        """The run with as many coordinates, or more if it had them."""
        while len(sequence.coordinates) < k:
            sequence = replace(
                sequence, coordinates=(*sequence.coordinates, self._next(sequence, rng))
            )
        return sequence

    def solve_until_redundant(
        self, problem: SpectralProblem, max_coordinates: int, rng: np.random.Generator
    ) -> CoordinateSequence:
        """As many coordinates as say something new, one at least."""
        sequence = CoordinateSequence(GraphProblem(problem))
        for k in range(1, min(max_coordinates, problem.n - 1) + 1):
            longer = self.extended(sequence, k, rng)
            if k > 1 and not self.is_informative(longer, k - 1):
                break
            sequence = longer
        return sequence

    def _next(self, sequence: CoordinateSequence, rng: np.random.Generator) -> Coordinate:
        plan_pairs(sequence.problem, len(sequence.coordinates) + 1, self.min_basis)
        solver = resolve_solver(self.solver, end=sequence.problem.end)
        if isinstance(solver, Auto):
            solver = replace(solver, copies=False)  # any vector of an eigenspace will do

        def solve(problem: SpectralProblem) -> Spectrum:
            return solver.solve(problem, 1, rng)

        if not sequence.coordinates:
            return Coordinate(solve(sequence.problem), None, 1.0, "the first")
        with blas_threads_for(sequence.problem):
            return self.criterion.next(sequence.graph_problem, sequence.functions, solve)

    def is_informative(self, sequence: CoordinateSequence, i: int) -> bool:
        """Whether coordinate i, after the first, says anything new, and says it smoothly."""
        problem, first, coordinate = (
            sequence.problem,
            sequence.coordinates[0],
            sequence.coordinates[i],
        )
        if (
            coordinate.error < self.min_error
            or (coordinate.earlier_fraction or 0.0) > self.max_earlier_fraction
        ):
            return False
        if problem.largest:
            least = self.min_variance * rayleigh_quotient(problem, first.f)
            if rayleigh_quotient(problem, coordinate.f) <= max(least, 0.0):
                return False
        return roughness(sequence.graph_problem.weights, coordinate.f) <= self.max_roughness


def blas_threads_for(problem: SpectralProblem) -> AbstractContextManager[None]:
    """Return the BLAS threads for products of tall, narrow matrices: one, beside sparse operators.

    More mostly wait for each other (15 000 digits: 17 s instead of 13).
    """
    return one_blas_thread() if sparse.issparse(problem.operator) else nullcontext()


def roughness(W: sparse.csr_array, f: Array) -> float:
    """fᵀLf/fᵀDf on a graph: 0 for a constant, about 1 for noise, 2 where neighbors differ most."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    f = f - (degree @ f) / degree.sum()
    return float(1 - f @ (W @ f) / max(degree @ f**2, np.finfo(float).tiny))
