"""Coordinates one after the other, in place of eigenvectors all at once."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from manifoldry.eigen import Auto, EigenSolver, SpectralProblem, Spectrum, resolve_solver
from manifoldry.nonredundant.criteria import (
    Coordinate,
    Criterion,
    neighbor_weights,
    rayleigh_quotient,
)
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array

# A coordinate says nothing new if it can be predicted this well, changes from neighbour to
# neighbour (a Rayleigh quotient on the graph), mixes old directions, or is this small a share of
# the first where coordinates are lengths.
_OLD, _ROUGH, _MIXED, _SMALL = 0.5, 0.5, 0.1, 0.005


@dataclass(eq=False)
class Run:
    """The coordinates of one problem, so far."""

    problem: SpectralProblem
    coordinates: list[Coordinate]

    @property
    def functions(self) -> Array:
        """Their values, (n, k)."""
        return np.column_stack([c.f for c in self.coordinates])


@dataclass(frozen=True, eq=False)
class Sequence(EigenSolver):
    """Solve a spectral problem for one coordinate at a time, each new beside those before it.

    In place of an estimator's eigensolver it makes the estimator's coordinates non-redundant: all
    else, from the problem to the layout of the map, is the estimator's own.

    Parameters
    ----------
    criterion : Criterion
        What it means to be new.
    solver : str or EigenSolver
        Who solves for each coordinate.
    """

    criterion: Criterion
    solver: str | EigenSolver
    runs: list[Run] = field(default_factory=list)

    extra_is_cheap: ClassVar[bool] = False

    def solve(self, problem: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        run = self.run(problem)
        while len(run.coordinates) < k:
            self._advance(run, rng)
        return _joined(run.coordinates[:k])

    def run(self, problem: SpectralProblem) -> Run:
        """The run on this problem, which may have been begun before."""
        for run in self.runs:
            if run.problem is problem:
                return run
        self.runs.append(Run(problem, []))
        return self.runs[-1]

    def count(self, problem: SpectralProblem, most: int, rng: np.random.Generator) -> int:
        """How many coordinates the data need: those before the first that says nothing new."""
        run = self.run(problem)
        for k in range(min(most, problem.n - 1)):
            if len(run.coordinates) <= k:
                self._advance(run, rng)
            if k and not says_something(problem, run.coordinates[0], run.coordinates[k]):
                return k
        return min(most, problem.n - 1)

    def _advance(self, run: Run, rng: np.random.Generator) -> None:
        solver = resolve_solver(self.solver, end=run.problem.end)
        if isinstance(solver, Auto):
            solver = replace(solver, copies=False)  # any vector of an eigenspace will do

        def solve(problem: SpectralProblem) -> Spectrum:
            return solver.solve(problem, 1, rng)

        if not run.coordinates:
            run.coordinates.append(Coordinate(solve(run.problem), None, 1.0, "the first"))
            return
        with tall_products(run.problem):
            run.coordinates.append(self.criterion.next(run.problem, run.functions, solve))


def tall_products(problem: SpectralProblem) -> AbstractContextManager[None]:
    """Return the BLAS threads for products of tall, narrow matrices: one, beside sparse operators.

    More mostly wait for each other (15 000 digits: 17 s instead of 13).
    """
    return one_blas_thread() if sparse.issparse(problem.operator) else nullcontext()


def says_something(problem: SpectralProblem, first: Coordinate, coordinate: Coordinate) -> bool:
    """Whether a coordinate after the first says anything new, and says it smoothly."""
    if coordinate.error < _OLD or (coordinate.share or 0.0) > _MIXED:
        return False
    if problem.end == "largest":
        least = _SMALL * rayleigh_quotient(problem, first.f)
        if rayleigh_quotient(problem, coordinate.f) <= max(least, 0.0):
            return False
    return roughness(neighbor_weights(problem), coordinate.f) <= _ROUGH


def roughness(W: sparse.csr_array, f: Array) -> float:
    """fᵀLf/fᵀDf on a graph: 0 for a constant, about 1 for noise, 2 where neighbours differ most."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    f = f - (degree @ f) / degree.sum()
    return float(1 - f @ (W @ f) / max(degree @ f**2, np.finfo(float).tiny))


def _joined(coordinates: list[Coordinate]) -> Spectrum:
    """The coordinates as one spectrum."""
    spectra = [c.spectrum for c in coordinates]
    return Spectrum(
        values=np.concatenate([s.values for s in spectra]),
        vectors=np.column_stack([c.f for c in coordinates]),
        residuals=np.concatenate([s.residuals for s in spectra]),
        gaps=np.concatenate([s.gaps for s in spectra]),
        next_value=float("nan"),
        norm=max(s.norm for s in spectra),
        solver=", ".join(dict.fromkeys(s.solver for s in spectra)),
        reason=f"one coordinate at a time ({coordinates[-1].how})",
    )
