"""Which solver for which problem, said before it is done."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manifoldry._typing import Array, Matrix
from manifoldry.eigen.dense import Dense
from manifoldry.eigen.gram import Gram
from manifoldry.eigen.inverse import estimated_fill
from manifoldry.eigen.lanczos import Lanczos, ShiftInvertLanczos
from manifoldry.eigen.lobpcg import Lobpcg
from manifoldry.eigen.problem import SpectralProblem
from manifoldry.eigen.randomized import Randomized
from manifoldry.eigen.solver import EigenSolver, SolverFailed, check_count, not_accepted
from manifoldry.eigen.spectrum import Spectrum
from manifoldry.eigen.standard import StandardProblem
from manifoldry.exceptions import ConvergenceWarning


@dataclass(frozen=True)
class Choice:
    """A solver and the reason it was chosen."""

    solver: EigenSolver
    reason: str


@dataclass(frozen=True)
class Auto(EigenSolver):
    """Choose a solver by size, structure and end of the spectrum, and check that it worked.

    If the residuals of the first choice are too large for the gaps, the next one is tried. Ask
    :meth:`choose` for the chain and its reasons before anything is solved.

    Parameters
    ----------
    dense_up_to : int
        Largest order that is solved as a dense matrix straight away.
    fill_up_to : float
        Largest number of entries (estimated) of a sparse factor: 1e8 are 2.4 GB with its mirror.
    dense_at_most : int
        Largest order that is solved as a dense matrix if everything else has failed.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import Auto, SpectralProblem
    >>> problem = SpectralProblem(np.diag([4.0, 1.0, 3.0]), end="largest")
    >>> Auto().choose(problem, 1)[0].reason
    'order 3 is at most 2000, where a dense solve is fast and exact'
    >>> Auto().solve(problem, 1, np.random.default_rng(0)).solver
    'Dense'
    """

    dense_up_to: int = 2000
    fill_up_to: float = 1e8
    dense_at_most: int = 10_000

    def choose(self, problem: SpectralProblem, k: int) -> list[Choice]:
        """Return the solvers in the order they will be tried, each with its reason."""
        n, A = problem.n, problem.operator
        side = A.small_side if isinstance(A, Gram) else n
        if side <= self.dense_up_to:
            return [*self._small(n, side), *self._iterative(problem, k)]
        chain = self._iterative(problem, k)
        if side <= self.dense_at_most:
            reason = f"order {side} is at most {self.dense_at_most}: a dense solve as a last resort"
            chain.append(Choice(Dense(), reason))
        return chain

    def _small(self, n: int, side: int) -> list[Choice]:
        fits = f"is at most {self.dense_up_to}, where a dense solve is fast and exact"
        if side < n:
            return [Choice(Dense(), f"the factor's short side {side} (of {n} rows) {fits}")]
        return [Choice(Dense(), f"order {n} {fits}")]

    def _iterative(self, problem: SpectralProblem, k: int) -> list[Choice]:
        n, A = problem.n, problem.operator
        krylov = Choice(Lanczos(), f"{k} pairs of order {n} need products with the operator only")
        block = Choice(Randomized(), f"a block iteration for {k} pairs sees repeated eigenvalues")
        if isinstance(A, Gram) or problem.end == "largest":
            return [krylov, block]
        if isinstance(A, np.ndarray):
            inverse = f"smallest end, dense of order {n}: one Cholesky factor separates tiny gaps"
            return [Choice(ShiftInvertLanczos(), inverse), krylov, block]
        if not hasattr(A, "nnz"):
            return [krylov, Choice(Lobpcg(), f"a block of {k} pairs without a matrix"), block]
        return [*self._sparse_smallest(A), krylov]

    def _sparse_smallest(self, A: Matrix) -> list[Choice]:
        n = A.shape[0]
        # A full triangle may fit anyway; otherwise it is worth a look at the graph.
        fill = n * n / 2 if n * n / 2 <= self.fill_up_to else estimated_fill(A)
        sizes = f"sparse of order {n}, {A.nnz} entries, {fill:.1e} expected in a factor"
        multigrid = Choice(Lobpcg(), f"smallest end, {sizes}: multigrid needs no factor")
        if fill > self.fill_up_to:
            return [multigrid]
        inverse = Choice(ShiftInvertLanczos(), f"smallest end, {sizes}: it separates tiny gaps")
        return [inverse, multigrid]

    def solve(self, problem: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        """Run down the chain until a spectrum is accepted; otherwise return the best, and warn."""
        standard = problem.standard()
        check_count(standard, k)
        found: list[Spectrum] = []
        failures: list[str] = []
        for choice in self.choose(problem, k):
            try:
                spectrum = choice.solver.attempt(problem, standard, k, rng)
            except SolverFailed as failure:
                failures.append(str(failure))
                continue
            found.append(replace(spectrum, reason=_told(choice.reason, failures)))
            if spectrum.accepted:
                return found[-1]
            failures.append(f"{choice.solver.name} was not accepted ({_figures(spectrum)})")
        if not found:
            raise RuntimeError("no eigensolver succeeded: " + "; ".join(failures))
        best = min(found, key=lambda s: s.worst_ratio)
        warnings.warn(not_accepted(best), ConvergenceWarning, stacklevel=2)
        return best

    def _pairs(
        self, standard: StandardProblem, k: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        raise NotImplementedError("Auto delegates whole problems; it has no pairs of its own")


def _told(reason: str, failures: Sequence[str]) -> str:
    return reason if not failures else f"{reason}; before it: {'; '.join(failures)}"


def _figures(spectrum: Spectrum) -> str:
    i = spectrum.worst
    return f"residual {spectrum.residuals[i]:.1e} against a gap of {spectrum.gaps[i]:.1e}"


def resolve_solver(spec: str | EigenSolver, end: str | None = None) -> EigenSolver:
    """Return the solver a user's ``eigen_solver`` argument names.

    Parameters
    ----------
    spec : str or EigenSolver
        A name, or a solver, which is returned as it is. scikit-learn's names are understood:
        "arpack" is Lanczos, with shift-invert at the smallest end, and "amg" is LOBPCG.
    end : {"smallest", "largest"}, optional
        The end of the problem to solve; only "arpack" depends on it.

    Examples
    --------
    >>> from manifoldry.eigen import resolve_solver
    >>> resolve_solver("arpack", end="smallest").name
    'ShiftInvertLanczos'
    """
    if isinstance(spec, EigenSolver):
        return spec
    arpack = ShiftInvertLanczos if end == "smallest" else Lanczos
    named: dict[str, type[EigenSolver]] = {
        "auto": Auto,
        "dense": Dense,
        "lanczos": Lanczos,
        "shift_invert": ShiftInvertLanczos,
        "lobpcg": Lobpcg,
        "randomized": Randomized,
        "arpack": arpack,
        "amg": Lobpcg,
    }
    if not isinstance(spec, str) or spec not in named:
        names = ", ".join(map(repr, named))
        raise ValueError(f"eigen_solver={spec!r} must be one of {names}, or an EigenSolver object")
    return named[spec]()
