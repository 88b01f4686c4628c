"""Coordinates one after the other, in place of eigenvectors all at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from manifoldry._typing import Array
from manifoldry.eigen import EigenSolver, SpectralProblem, Spectrum
from manifoldry.nonredundant.criteria import Coordinate, Criterion, rayleigh_quotient

# A coordinate is the data's last if the next one can be predicted this well, or changes from
# neighbour to neighbour.
_OLD, _ROUGH = 0.5, 0.5


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
    solver : EigenSolver
        Who solves for each coordinate.
    """

    criterion: Criterion
    solver: EigenSolver
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
        for k in range(most):
            if len(run.coordinates) <= k:
                self._advance(run, rng)
            if k and is_last(problem, run.coordinates[k]):
                return k
        return most

    def _advance(self, run: Run, rng: np.random.Generator) -> None:
        def solve(problem: SpectralProblem) -> Spectrum:
            return self.solver.solve(problem, 1, rng)

        if not run.coordinates:
            run.coordinates.append(Coordinate(solve(run.problem), None, 1.0, "the first"))
        else:
            run.coordinates.append(self.criterion.next(run.problem, run.functions, solve))


def is_last(problem: SpectralProblem, coordinate: Coordinate) -> bool:
    """Whether a coordinate no longer says anything new and smooth."""
    if coordinate.error < _OLD:
        return True
    value = rayleigh_quotient(problem, coordinate.f)
    if problem.end == "largest":
        return value <= 0
    return problem.bounds == (0.0, 2.0) and value > _ROUGH


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
