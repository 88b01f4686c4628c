"""Eigenpairs of a disconnected graph: each connected component is solved separately."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manifoldry.eigen.auto import resolve_solver
from manifoldry.eigen.gram import Gram
from manifoldry.eigen.problem import SpectralProblem
from manifoldry.eigen.solver import EigenSolver
from manifoldry.eigen.spectrum import Spectrum
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import plan_memory


@dataclass(frozen=True, eq=False)
class Spectra:
    """Eigenpairs of each component, largest component first; a single point has None."""

    per_component: list[Spectrum | None]
    k: int
    """Number of requested pairs; small components have fewer."""

    @property
    def largest(self) -> Spectrum:
        """Spectrum of the largest component."""
        assert (
            self.per_component[0] is not None
        )  # a largest component of one point is rejected earlier
        return self.per_component[0]

    @cached_property
    def padded(self) -> list[Spectrum]:
        """The spectra, padded with zeros to k pairs."""
        return [
            _single_point_spectrum(self.k) if s is None else s.padded(self.k)
            for s in self.per_component
        ]

    @property
    def values(self) -> Array:
        """Eigenvalues, (n_components, k)."""
        return np.stack([spectrum.values for spectrum in self.padded])

    def vectors(self, components: list[IntArray], n: int) -> Array:
        """Eigenvectors on all `n` points, (n, k); `components` holds the rows of each component."""
        V = np.zeros((n, self.k))
        for rows, spectrum in zip(components, self.padded, strict=True):
            V[rows] = spectrum.vectors
        return V


def _single_point_spectrum(k: int) -> Spectrum:
    """Spectrum of a single point: k zeros."""
    return Spectrum(np.zeros(k), np.zeros((1, k)), np.zeros(k), np.zeros(k), np.nan, 0.0)


def check_pairs_memory(
    problem: SpectralProblem, k: int, vectors: int, counted_by: str = "n_components"
) -> None:
    """Raise MemoryError if the vectors needed to compute k pairs do not fit into memory."""
    needed = 8.0 * problem.n * vectors
    what = f"computing {k} coordinates of {problem.n} points"
    plan_memory(needed, what, f"pass a smaller {counted_by}")


@dataclass(frozen=True)
class ComponentSolver:
    """Compute the first eigenpairs of each component.

    Parameters
    ----------
    solver : str or EigenSolver
        See :func:`manifoldry.eigen.resolve_solver`.
    cheap_order, extra_pairs : int
        Problems up to `cheap_order` are solved for `extra_pairs` more eigenvalues, which cost
        little and show the spectral gap.
    basis : int
        Smallest number of basis vectors that iterative solvers keep in memory.
    counted_by : str
        The parameter that says how many pairs there are, for messages.
    """

    solver: str | EigenSolver = "auto"
    cheap_order: int = 2000
    extra_pairs: int = 8
    basis: int = 40
    counted_by: str = "n_components"

    def solve(self, problems: list[SpectralProblem], k: int, rng: np.random.Generator) -> Spectra:
        """Compute min(k, n − 1) pairs of each problem of n points; the constant is excluded."""
        counts = [min(k, problem.n - 1) for problem in problems]
        per_component = [
            self._pairs(problem, count, rng) if count else None
            for problem, count in zip(problems, counts, strict=True)
        ]
        return Spectra(per_component, k)

    def _pairs(self, problem: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        """Solve for k pairs, and for a few more eigenvalues where those are cheap."""
        operator = problem.operator
        order = operator.small_side if isinstance(operator, Gram) else problem.n
        solver = resolve_solver(self.solver, end=problem.end)
        extra = (
            self.extra_pairs if solver.extra_pairs_are_cheap and order <= self.cheap_order else 0
        )
        vectors = max(self.basis, 3 * (k + extra))
        check_pairs_memory(problem, k, vectors, self.counted_by)
        return solver.solve_with_extra(problem, k, extra, rng)
