"""What every eigensolver does: check, solve, verify, undo the change of variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse.linalg import ArpackError

from manifoldry.eigen.problem import SpectralProblem
from manifoldry.eigen.spectrum import (
    DEFAULT_ACCEPTANCE,
    ROUNDING,
    Acceptance,
    Spectrum,
    cluster_gaps,
    cluster_labels,
    cluster_width,
    fixed_signs,
)
from manifoldry.eigen.standard import StandardProblem
from manifoldry.exceptions import ConvergenceWarning
from manifoldry.util.typing import Array
from manifoldry.util.warn import warn


class SolverFailed(RuntimeError):  # noqa: N818 (a verdict to act on, not a mistake)
    """A solver has nothing to return; :class:`~manifoldry.eigen.Auto` tries the next one.

    What happened is kept apart from the advice for a user who asked for this solver.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what, self.remedy = what, remedy

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}"


class EigenSolver(ABC):
    """Solve a spectral problem for k eigenpairs."""

    # Whether a few more pairs than are needed cost next to nothing on small problems.
    extra_is_cheap: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """How the solver is called in a :class:`~manifoldry.eigen.Spectrum`."""
        return type(self).__name__

    @abstractmethod
    def solve(self, problem: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        """Return the first k eigenpairs from the problem's end.

        Parameters
        ----------
        problem : SpectralProblem
            What to solve.
        k : int
            Number of eigenpairs, at most n minus the number of constraints.
        rng : numpy.random.Generator
            Source of start vectors: the same state gives the same bits.

        Returns
        -------
        Spectrum
            With a ConvergenceWarning if a residual is too large for its gap.
        """


class PairSolver(EigenSolver):
    """Base of the solvers that compute eigenpairs themselves.

    A concrete solver provides :meth:`_pairs` for the standard form. Whatever it returns is
    orthonormalized, refined by Rayleigh–Ritz and verified here, in the same way for all.
    """

    def solve(self, problem: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        spectrum = self.attempt(problem, problem.standard(), k, rng)
        if not spectrum.accepted:
            warn(rejection_message(spectrum), ConvergenceWarning)
        return spectrum

    def attempt(
        self, problem: SpectralProblem, standard: StandardProblem, k: int, rng: np.random.Generator
    ) -> Spectrum:
        """Solve without a warning; SolverFailed if there is nothing to return."""
        check_n_pairs(standard, k)
        wanted = min(k + 1, standard.dimension)
        try:
            with self._threads(standard):
                vectors = self._pairs(standard, wanted, rng)[1]
            values, V, residuals = rayleigh_ritz(standard, vectors)
        except (np.linalg.LinAlgError, ArpackError, MemoryError) as error:
            raise SolverFailed(
                f"{self.name} failed on an operator of order {standard.n} ({error})",
                'pass eigen_solver="auto" to let others be tried',
            ) from error
        spectrum = verified(problem, standard, k, values, V, residuals)
        return replace(spectrum, solver=self.name, reason=f"{self.name} was asked for")

    def _threads(self, standard: StandardProblem) -> AbstractContextManager[None]:
        """Return the setting of BLAS threads in which :meth:`_pairs` runs."""
        return nullcontext()

    @abstractmethod
    def _pairs(
        self, standard: StandardProblem, k: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return (values, vectors) of k pairs of P A P from the wanted end, in any order."""


def check_n_pairs(standard: StandardProblem, k: int) -> None:
    """Refuse a number of eigenpairs the problem does not have."""
    n, dimension = standard.n, standard.dimension
    if not 1 <= k <= dimension:
        raise ValueError(
            f"k={k} eigenpairs were asked for, but an operator of order n={n} with "
            f"{n - dimension} constraints has {dimension}; pass k between 1 and {dimension}"
        )


def rayleigh_ritz(standard: StandardProblem, V: Array) -> tuple[Array, Array, Array]:
    """Return the best eigenpairs range(V) holds, sorted from the end inwards, and residuals."""
    V = qr(standard.project(V), mode="economic", check_finite=True)[0]
    AV = standard.project(standard.apply(V))
    T = V.T @ AV
    values, C = (standard.end.from_end(part) for part in eigh((T + T.T) / 2))
    V, AV = V @ C, AV @ C
    return values, V, np.linalg.norm(AV - V * values, axis=0)


def verified(
    problem: SpectralProblem,
    standard: StandardProblem,
    k: int,
    values: Array,
    V: Array,
    residuals: Array,
) -> Spectrum:
    """Return the first k of at least min(k+1, dimension) pairs in the variables f, with gaps."""
    norm = max(standard.norm, float(np.abs(values).max()))
    vectors = V[:, :k] if problem.mass is None else V[:, :k] / np.sqrt(problem.mass)[:, None]
    return Spectrum(
        values=values[:k].copy(),
        vectors=fixed_signs(vectors),
        residuals=residuals[:k].copy(),
        gaps=_safe_gaps(values, residuals, k, cluster_width(norm)),
        next_value=float(values[k]) if len(values) > k else float("nan"),
        norm=norm,
    )


def _safe_gaps(values: Array, residuals: Array, k: int, width: float) -> Array:
    """Return the gaps of the first k of k+1 pairs, the last one as near as its residual allows.

    A Ritz value is within its residual of an eigenvalue. The (k+1)-th is not checked otherwise,
    and one that has not converged would feign a wide gap.
    """
    gaps = cluster_gaps(values[: k + 1], width)
    if len(values) > k:
        labels = cluster_labels(values[: k + 1], width)
        last = labels[:k] == labels[k - 1]
        if labels[k] != labels[k - 1]:
            safe = max(0.0, abs(values[k] - values[k - 1]) - residuals[k])
            gaps[:k][last] = np.minimum(gaps[:k][last], safe)
    return gaps[:k]


def converged(
    standard: StandardProblem,
    values: Array,
    residuals: Array,
    acceptance: Acceptance = DEFAULT_ACCEPTANCE,
) -> bool:
    """Whether an iteration may stop: far stricter than the test that follows it.

    The last pair only serves to measure the gap of the others: there the plain test will do.
    """
    gaps = cluster_gaps(values, cluster_width(standard.norm, acceptance.angle))
    gaps = acceptance.finite_gaps(gaps, standard.norm)
    allowed = np.append(acceptance.stop_angle * gaps[:-1], acceptance.angle * gaps[-1])
    return bool((residuals <= np.maximum(allowed, ROUNDING * standard.norm / 2)).all())


def rejection_message(spectrum: Spectrum) -> str:
    """Return the text that tells a user how far the eigenvectors are off and what to do."""
    i = spectrum.worst
    return (
        f"{spectrum.solver} left eigenvector {i} (eigenvalue {spectrum.values[i]:.3g}) with a "
        f"residual of {spectrum.residuals[i]:.1e} where {spectrum.tolerances[i]:.1e} is needed: "
        f"the gap to the next eigenvalue is {spectrum.gaps[i]:.1e}. Directions of the embedding "
        'may be mixed; pass eigen_solver="auto", or a solver with more iterations'
    )
