"""Base classes of the eigensolvers, and the verification of eigenpairs that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse.linalg import ArpackError

from manifoldry.eigen.on_device import solving_device
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
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.util.arrays import like, namespace, on_cpu, to_numpy
from manifoldry.util.typing import Array


class SolverFailed(RuntimeError):  # noqa: N818 (handled by Auto, not always an error)
    """Error of a solver that has nothing to return; :class:`Auto` then tries the next one.

    Parameters
    ----------
    what : str
        The reason.
    remedy : str
        Advice for a user who chose this solver explicitly.

    See Also
    --------
    PairSolver : raises it.
    Auto : tries the next solver.

    Examples
    --------
    >>> from manifoldry.eigen import SolverFailed
    >>> try:
    ...     raise SolverFailed("the matrix is singular", 'pass eigen_solver="auto"')
    ... except SolverFailed as error:
    ...     print(error)
    the matrix is singular; pass eigen_solver="auto"
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what, self.remedy = what, remedy

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}"


class EigenSolver(ABC):
    """Base class of everything that solves a spectral problem for k eigenpairs.

    Pass one to a spectral estimator as ``eigen_solver=``. To write a solver, subclass
    :class:`PairSolver`, which verifies the eigenpairs; subclass this class only to choose among
    solvers.

    See Also
    --------
    Auto : chooses a solver by the size and structure of the problem.
    PairSolver : base class of solvers that compute eigenpairs themselves.
    resolve_solver : makes solvers from their names.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.eigen import ShiftInvertLanczos
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = LaplacianEigenmaps(eigen_solver=ShiftInvertLanczos(basis=50)).fit(X)
    >>> model.solver_.split(":")[0]
    'ShiftInvertLanczos'
    """

    extra_pairs_are_cheap: ClassVar[bool] = False
    """Whether a few additional pairs cost little on small problems."""

    @property
    def name(self) -> str:
        """Name of the solver, as stored in :class:`~manifoldry.eigen.Spectrum`."""
        return type(self).__name__

    @abstractmethod
    def solve(self, problem: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        """Return the first k eigenpairs from the wanted end of the spectrum.

        A ConvergenceWarning is issued if a residual is too large for its gap.

        Parameters
        ----------
        problem : SpectralProblem
            The problem to solve.
        k : int
            Number of eigenpairs, at most n minus the number of constraints.
        rng : numpy.random.Generator
            Source of start vectors; results are reproducible for a given state.

        Returns
        -------
        Spectrum
            The eigenpairs, with residuals and gaps.
        """

    def solve_with_extra(
        self, problem: SpectralProblem, k: int, extra: int, rng: np.random.Generator
    ) -> Spectrum:
        """Solve, and return `extra` more eigenvalues in ``further_values``.

        Those are not verified, and an iterative solver may list a repeated one once.

        Parameters
        ----------
        problem : SpectralProblem
            The problem to solve.
        k : int
            Number of eigenpairs.
        extra : int
            Number of further eigenvalues.
        rng : numpy.random.Generator
            Source of start vectors.

        Returns
        -------
        Spectrum
            The eigenpairs and the further eigenvalues.
        """
        most = max(k, problem.standard().dimension)
        return self.solve(problem, min(k + extra, most), rng).first(k)


class PairSolver(EigenSolver):
    """Base class of the solvers that compute eigenpairs themselves.

    A subclass implements ``_basis(standard, k, rng)``, which returns at least k vectors whose span
    contains the wanted eigenvectors of a :class:`StandardProblem`. The vectors are orthonormalized,
    refined by Rayleigh–Ritz and verified here, in the same way for all solvers. In a context of
    :func:`manifoldry.using_device` a solver whose `any_namespace` is True gets operators and arrays
    in the memory of the device, and returns such; others run on the CPU.

    See Also
    --------
    StandardProblem : what ``_basis`` receives.
    SolverFailed : to be raised by a solver that has nothing to return.

    Examples
    --------
    Subspace iteration: products with the matrix turn a random block toward the leading
    eigenvectors.

    >>> import numpy as np
    >>> from manifoldry.eigen import PairSolver, SpectralProblem
    >>> class SubspaceIteration(PairSolver):
    ...     def _basis(self, standard, k, rng):
    ...         V = rng.normal(size=(standard.n, k))
    ...         for _ in range(100):
    ...             V = np.linalg.qr(standard.project(standard.apply(V)))[0]
    ...         return V
    >>> problem = SpectralProblem(np.diag([8.0, 4.0, 2.0, 1.0]), end="largest")
    >>> spectrum = SubspaceIteration().solve(problem, 2, np.random.default_rng(0))
    >>> spectrum.values.round(6), spectrum.accepted
    (array([8., 4.]), True)
    """

    any_namespace: ClassVar[bool] = False
    """Whether ``_basis`` takes arrays of any namespace, such as those of a device."""

    def solve(self, problem: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        return self.solve_with_extra(problem, k, 0, rng)

    def solve_with_extra(
        self, problem: SpectralProblem, k: int, extra: int, rng: np.random.Generator
    ) -> Spectrum:
        standard = problem.standard(solving_device(problem))
        spectrum = self.attempt(problem, standard, k, rng, extra)
        if not spectrum.accepted:
            warn(rejection_message(spectrum), ConvergenceWarning)
        return spectrum

    def attempt(
        self,
        problem: SpectralProblem,
        standard: StandardProblem,
        k: int,
        rng: np.random.Generator,
        extra: int = 0,
    ) -> Spectrum:
        """Solve without a warning about large residuals.

        Parameters
        ----------
        problem : SpectralProblem
            The problem to solve.
        standard : StandardProblem
            Its standard form.
        k : int
            Number of eigenpairs.
        rng : numpy.random.Generator
            Source of start vectors.
        extra : int, default=0
            Number of further eigenvalues.

        Returns
        -------
        Spectrum
            The eigenpairs, whether or not they are accurate enough.

        Raises
        ------
        SolverFailed
            If the solver has nothing to return.
        """
        check_n_pairs(standard, k)
        standard = self._where_it_runs(problem, standard)
        wanted = min(k + 1, standard.dimension)
        extra = min(extra, standard.dimension - wanted)
        try:
            with self._threads(standard):
                vectors = self._basis_with_extra(standard, wanted, extra, rng)
            self._check_basis(vectors, standard.n, wanted + extra)
            values, V, residuals = rayleigh_ritz(standard, vectors)
        except (np.linalg.LinAlgError, ArpackError, MemoryError) as error:
            raise SolverFailed(
                f"{self.name} failed on an operator of order {standard.n} ({error})",
                'pass eigen_solver="auto" to try other solvers',
            ) from error
        spectrum = verified(problem, standard, k, values, V, residuals, extra)
        return replace(spectrum, solver=self.name, reason=f"{self.name} was requested")

    def _where_it_runs(
        self, problem: SpectralProblem, standard: StandardProblem
    ) -> StandardProblem:
        """The problem, or if it is on a device where this solver does not run, one on the CPU."""
        if standard.device is None or (why := self._why_on_host(standard)) is None:
            return standard
        standard.device.runs_on_host(f"the eigensolver {self.name}", why)
        return problem.standard()

    def _why_on_host(self, standard: StandardProblem) -> str | None:
        """Why this solver does not run on the device of a problem; None if it does."""
        return None if self.any_namespace else "it takes arrays of numpy"

    def _check_basis(self, vectors: Any, n: int, k: int) -> None:
        shape = getattr(vectors, "shape", None)
        if shape is None or len(shape) != 2 or shape[0] != n or shape[1] < k:
            raise TypeError(
                f"{self.name}._basis must return an array of shape ({n}, {k}) or with more "
                f"columns, not {type(vectors).__name__} of shape {shape}"
            )
        if not namespace(vectors).isfinite(vectors).all():
            raise np.linalg.LinAlgError("its vectors have NaN or infinite entries")

    def _threads(self, standard: StandardProblem) -> AbstractContextManager[None]:
        """Return the context in which :meth:`_basis` runs, which may limit BLAS threads."""
        return nullcontext()

    def _basis_with_extra(
        self, standard: StandardProblem, k: int, extra: int, rng: np.random.Generator
    ) -> Array:
        """Return vectors whose span also contains `extra` more eigenvectors, less accurately."""
        return self._basis(standard, k + extra, rng)

    @abstractmethod
    def _basis(self, standard: StandardProblem, k: int, rng: np.random.Generator) -> Array:
        """Return vectors whose span contains the k wanted eigenvectors of P A P, (n, ≥ k)."""


def check_n_pairs(standard: StandardProblem, k: int) -> None:
    """Raise ValueError unless the problem has k eigenpairs."""
    n, dimension = standard.n, standard.dimension
    if not 1 <= k <= dimension:
        raise ValueError(
            f"k={k} eigenpairs were requested, but an operator of order n={n} with "
            f"{n - dimension} constraints has {dimension}; pass k between 1 and {dimension}"
        )


def rayleigh_ritz(standard: StandardProblem, V: Array) -> tuple[Array, Array, Array]:
    """Return the Ritz values and vectors of range(V), from the wanted end, and their residuals."""
    V = orthonormal(standard.project(V))
    AV = standard.project(standard.apply(V))
    values, C = small_pairs(standard, V.T @ AV)
    V, AV = V @ C, AV @ C
    R = AV - V * like(values, V)
    return values, V, to_numpy(namespace(R).linalg.norm(R, axis=0))


def orthonormal(V: Array) -> Array:
    """Return the orthonormal factor of a QR decomposition."""
    if on_cpu(V):
        return np.asarray(qr(V, mode="economic", check_finite=True)[0])
    return namespace(V).linalg.qr(V)[0]


def small_pairs(standard: StandardProblem, T: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a small symmetric matrix, on the host, and its eigenvectors.

    The wanted end of the spectrum comes first.
    """
    small = to_numpy(T)
    values, C = (standard.end.from_end(part) for part in eigh((small + small.T) / 2))
    return values, like(np.ascontiguousarray(C), T)


def verified(
    problem: SpectralProblem,
    standard: StandardProblem,
    k: int,
    values: Array,
    V: Array,
    residuals: Array,
    extra: int = 0,
    norm: float | None = None,
) -> Spectrum:
    """Return the Spectrum of the first k pairs, given at least min(k + 1, dimension) pairs.

    The `extra` eigenvalues after the (k+1)-th are its ``further_values``. `norm` is that of the
    operator, by default an estimate.
    """
    norm = max(standard.norm, float(np.abs(values).max())) if norm is None else float(norm)
    vectors = to_numpy(V[:, :k])
    vectors = vectors if problem.mass is None else vectors / np.sqrt(problem.mass)[:, None]
    return Spectrum(
        values=values[:k].copy(),
        vectors=fixed_signs(vectors),
        residuals=residuals[:k].copy(),
        gaps=safe_gaps(values, residuals, k, cluster_width(norm)),
        next_value=float(values[k]) if len(values) > k else float("nan"),
        norm=norm,
        further_values=values[k + 1 : k + 1 + extra].copy(),
    )


def safe_gaps(values: Array, residuals: Array, k: int, width: float) -> Array:
    """Return the gaps of the first k of k + 1 pairs, less the residual of the last pair.

    A Ritz value is within its residual of an eigenvalue. The residual of the (k+1)-th pair is not
    checked otherwise, and without convergence the gap would be overestimated.
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
    norm: float,
    values: Array,
    residuals: Array,
    acceptance: Acceptance = DEFAULT_ACCEPTANCE,
    extra: int = 0,
) -> bool:
    """Whether an iteration may stop, by a far stricter test than the final acceptance test.

    The last pair only measures the gap of the others, and of the `extra` pairs after it only the
    values are needed, so a weaker test is enough for them.
    """
    gaps = cluster_gaps(values, cluster_width(norm, acceptance.angle))
    gaps = acceptance.finite_gaps(gaps, norm)
    allowed = acceptance.stop_angles(len(gaps), extra) * gaps
    return bool((residuals <= np.maximum(allowed, ROUNDING * norm / 2)).all())


def rejection_message(
    spectrum: Spectrum,
    remedy: str = 'pass eigen_solver="auto", or a solver with more iterations',
) -> str:
    """Return the text of the warning about a spectrum that was not accepted."""
    i = spectrum.worst
    return (
        f"{spectrum.solver} left eigenvector {i} (eigenvalue {spectrum.values[i]:.3g}) with a "
        f"residual of {spectrum.residuals[i]:.1e} where {spectrum.tolerances[i]:.1e} is needed: "
        f"the gap to the next eigenvalue is {spectrum.gaps[i]:.1e}. Coordinates of the embedding "
        f"may be mixed; {remedy}"
    )
