"""Which solver for which problem, said before it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from manifoldry._typing import Matrix
from manifoldry._warn import warn
from manifoldry.eigen.dense import Dense
from manifoldry.eigen.gram import Gram
from manifoldry.eigen.inverse import estimated_fill
from manifoldry.eigen.lanczos import Lanczos, ShiftInvertLanczos
from manifoldry.eigen.lobpcg import Lobpcg
from manifoldry.eigen.problem import SpectralProblem
from manifoldry.eigen.randomized import Randomized
from manifoldry.eigen.solver import (
    EigenSolver,
    PairSolver,
    SolverFailed,
    check_count,
    not_accepted,
)
from manifoldry.eigen.spectrum import Spectrum
from manifoldry.exceptions import ConvergenceWarning


@dataclass(frozen=True)
class Choice:
    """A solver and the reason it was chosen."""

    solver: PairSolver
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
    few_from : int
        Order beyond which a few pairs (at most one in twenty) of an explicit matrix are left to
        iterations, which are faster and checked all the same.
    fill_up_to : float
        Largest number of entries (estimated) of a sparse factor: 1e8 are 2.4 GB with its mirror.
    work_up_to : float
        Largest number of multiplications (estimated) for which factorising is the first choice.
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
    few_from: int = 400
    fill_up_to: float = 1e8
    work_up_to: float = 1e10
    dense_at_most: int = 10_000

    def choose(self, problem: SpectralProblem, k: int) -> list[Choice]:
        """Return the solvers in the order they will be tried, each with its reason."""
        n, A = problem.n, problem.operator
        side = A.small_side if isinstance(A, Gram) else n
        explicit = isinstance(A, np.ndarray) or hasattr(A, "nnz")
        few = explicit and side > self.few_from and k <= side // 20
        if side <= self.dense_up_to and not few:
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
        return self._sparse_smallest(A)

    def _sparse_smallest(self, A: Matrix) -> list[Choice]:
        n = A.shape[0]
        fill = n * n / 2 if n <= self.dense_up_to else estimated_fill(A)
        work = fill**2 / n  # multiplications: squared column lengths, summed
        sizes = f"sparse of order {n}, {A.nnz} entries, {fill:.1e} expected in a factor"
        inverse = Choice(ShiftInvertLanczos(), f"smallest end, {sizes}: it separates tiny gaps")
        multigrid = Choice(Lobpcg(), f"smallest end, {sizes}: multigrid needs no factor")
        krylov = Choice(Lanczos(), f"smallest end, {sizes}: products with the operator suffice")
        if work <= self.work_up_to:
            return [inverse, multigrid, krylov]
        # Graphs that fill in are those of high-dimensional data, whose gaps are wide.
        return [krylov, multigrid, *([inverse] if fill <= self.fill_up_to else [])]

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
        warn(not_accepted(best), ConvergenceWarning)
        return best


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
        A solver, which is returned as it is, or a name: "auto", "dense", "lanczos",
        "shift_invert", "lobpcg" or "randomized". scikit-learn's names are understood: "arpack"
        is Lanczos, with shift-invert at the smallest end, and "amg" is LOBPCG with multigrid.
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
    if spec == "amg" and find_spec("pyamg") is None:
        raise ImportError('eigen_solver="amg" needs pyamg: pip install "manifoldry[amg]"')
    return named[spec]()
