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
    """Eigenpairs of each connected component, the largest component first.

    Parameters
    ----------
    per_component : list of Spectrum or None
        The eigenpairs of each component; None for a single point, which has none.
    k : int
        Number of requested pairs; small components have fewer.

    See Also
    --------
    ComponentSolver : computes them.
    Spectrum : the eigenpairs of one component.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.eigen import ComponentSolver
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> posed = LaplacianEigenmaps(n_neighbors=1, affinity="binary").pose(X)
    >>> spectra = ComponentSolver().solve(posed.problems, 2, np.random.default_rng(0))
    >>> spectra.values.round(2)
    array([[0.5, 1.5]])
    >>> spectra.vectors(posed.components, 4).shape
    (4, 2)
    """

    per_component: list[Spectrum | None]
    k: int

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
        """Return the eigenvectors on all points, with a row per point.

        Parameters
        ----------
        components : list of arrays
            Rows of each component.
        n : int
            Number of points.

        Returns
        -------
        array of shape (n, k)
            The eigenvectors; zero at points in no component.
        """
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
    """Compute the first eigenpairs of each connected component.

    A spectral method poses one problem for each connected component of its graph. Use this class to
    solve them outside ``fit``, with :meth:`manifoldry.spectral.SpectralEmbedder.pose`.

    Parameters
    ----------
    solver : str or EigenSolver, default="auto"
        See :func:`manifoldry.eigen.resolve_solver`.
    cheap_order, extra_pairs : int, default=2000, 8
        Problems up to `cheap_order` are solved for `extra_pairs` more eigenvalues, which cost
        little and show the spectral gap.
    basis : int, default=40
        Smallest number of basis vectors that iterative solvers keep in memory.
    counted_by : str, default="n_components"
        The parameter that says how many pairs there are, for messages.

    See Also
    --------
    Spectra : what it returns.
    manifoldry.spectral.Posed : its ``problems`` are solved.

    Examples
    --------
    Two separate paths, of three points and of two:

    >>> import numpy as np
    >>> from manifoldry.eigen import ComponentSolver, SpectralProblem
    >>> def path(n):
    ...     L = np.diag([1.0, *[2.0] * (n - 2), 1.0]) - np.eye(n, k=1) - np.eye(n, k=-1)
    ...     return SpectralProblem(L, end="smallest", deflate=np.ones(n))
    >>> spectra = ComponentSolver().solve([path(3), path(2)], 2, np.random.default_rng(0))
    >>> spectra.values.round(3)  # two points have one nonzero eigenvalue; the other is zero
    array([[1., 3.],
           [2., 0.]])
    """

    solver: str | EigenSolver = "auto"
    cheap_order: int = 2000
    extra_pairs: int = 8
    basis: int = 40
    counted_by: str = "n_components"

    def solve(self, problems: list[SpectralProblem], k: int, rng: np.random.Generator) -> Spectra:
        """Compute min(k, n − 1) pairs of each problem of n points; the constant is excluded.

        Parameters
        ----------
        problems : list of SpectralProblem
            One problem per component, the largest first.
        k : int
            Number of eigenpairs.
        rng : numpy.random.Generator
            Source of start vectors.

        Returns
        -------
        Spectra
            The eigenpairs of every component.
        """
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
