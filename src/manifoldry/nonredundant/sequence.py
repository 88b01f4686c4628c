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
    Landscape,
    rayleigh_quotient,
)
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Run:
    """The coordinates of one problem, so far."""

    landscape: Landscape
    coordinates: tuple[Coordinate, ...] = ()

    @property
    def problem(self) -> SpectralProblem:
        """What is solved."""
        return self.landscape.problem

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
            reason=f"one coordinate at a time ({self.coordinates[-1].how})",
        )


@dataclass(frozen=True)
class Sequence:
    """Solves a spectral problem for one coordinate at a time, each new beside those before it.

    Parameters
    ----------
    criterion : Criterion
        What new means.
    solver : str or EigenSolver
        Solver for each coordinate.
    old, rough, mixed, small : float
        A coordinate says nothing new if it can be predicted to this error, is this rough (a
        Rayleigh quotient on the graph), has this fraction of its energy along old directions, or is
        this small a fraction of the first where coordinates are lengths.
    """

    criterion: Criterion
    solver: str | EigenSolver
    old: float = 0.5
    rough: float = 0.5
    mixed: float = 0.1
    small: float = 0.005
    basis: int = 40  # vectors that iterative solvers keep at least

    def run(self, problem: SpectralProblem, k: int, rng: np.random.Generator) -> Run | None:
        """At most k coordinates; None for a problem of a single point, which has none."""
        if problem.n == 1:
            return None
        return self.extended(Run(Landscape(problem)), min(k, problem.n - 1), rng)

    def extended(self, run: Run, k: int, rng: np.random.Generator) -> Run:
        """The run with as many coordinates, or more if it had them."""
        while len(run.coordinates) < k:
            run = replace(run, coordinates=(*run.coordinates, self._next(run, rng)))
        return run

    def as_needed(self, problem: SpectralProblem, most: int, rng: np.random.Generator) -> Run:
        """As many coordinates as say something new, one at least."""
        run = Run(Landscape(problem))
        for k in range(1, min(most, problem.n - 1) + 1):
            longer = self.extended(run, k, rng)
            if k > 1 and not self.says_something(longer, k - 1):
                break
            run = longer
        return run

    def _next(self, run: Run, rng: np.random.Generator) -> Coordinate:
        plan_pairs(run.problem, len(run.coordinates) + 1, self.basis)
        solver = resolve_solver(self.solver, end=run.problem.end)
        if isinstance(solver, Auto):
            solver = replace(solver, copies=False)  # any vector of an eigenspace will do

        def solve(problem: SpectralProblem) -> Spectrum:
            return solver.solve(problem, 1, rng)

        if not run.coordinates:
            return Coordinate(solve(run.problem), None, 1.0, "the first")
        with tall_products(run.problem):
            return self.criterion.next(run.landscape, run.functions, solve)

    def says_something(self, run: Run, i: int) -> bool:
        """Whether coordinate i, after the first, says anything new, and says it smoothly."""
        problem, first, coordinate = run.problem, run.coordinates[0], run.coordinates[i]
        if coordinate.error < self.old or (coordinate.fraction or 0.0) > self.mixed:
            return False
        if problem.largest:
            least = self.small * rayleigh_quotient(problem, first.f)
            if rayleigh_quotient(problem, coordinate.f) <= max(least, 0.0):
                return False
        return roughness(run.landscape.weights, coordinate.f) <= self.rough


def tall_products(problem: SpectralProblem) -> AbstractContextManager[None]:
    """Return the BLAS threads for products of tall, narrow matrices: one, beside sparse operators.

    More mostly wait for each other (15 000 digits: 17 s instead of 13).
    """
    return one_blas_thread() if sparse.issparse(problem.operator) else nullcontext()


def roughness(W: sparse.csr_array, f: Array) -> float:
    """fᵀLf/fᵀDf on a graph: 0 for a constant, about 1 for noise, 2 where neighbors differ most."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    f = f - (degree @ f) / degree.sum()
    return float(1 - f @ (W @ f) / max(degree @ f**2, np.finfo(float).tiny))
