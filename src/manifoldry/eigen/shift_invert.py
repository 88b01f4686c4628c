"""Lanczos solver that uses products with a shifted inverse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from manifoldry.eigen.dense import dense_basis
from manifoldry.eigen.inverse import CHOLESKY_FROM, NotDefiniteError, ShiftedInverse
from manifoldry.eigen.krylov import (
    blas_threads,
    constrained_subspace,
    deflated,
    largest_pairs,
    too_small,
    with_full_multiplicity,
)
from manifoldry.eigen.lanczos import positive, rayleigh_quotients
from manifoldry.eigen.on_device import DeviceOperator
from manifoldry.eigen.solver import PairSolver, SolverFailed
from manifoldry.eigen.spectrum import Acceptance, cluster_gaps
from manifoldry.eigen.standard import Product, StandardProblem
from manifoldry.util.arrays import like, namespace
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class ShiftInvertLanczos(PairSolver):
    """Lanczos iteration with (A − σI)⁻¹, for a shift σ just beyond the wanted end of the spectrum.

    Suitable for the smallest eigenvalues of explicit matrices, in particular sparse ones: the
    inverse separates close eigenvalues, so that a few dozen solves suffice. One factorization is
    kept in memory.

    Parameters
    ----------
    basis : int, default=30
        Number of basis vectors, but at least three times the number of pairs.
    max_products : int, default=1000
        Largest number of solves.
    full_multiplicity : bool, default=True
        Search for all eigenvectors of repeated eigenvalues, which doubles the time.
    angle : float, default=1e-9
        Error of an eigenvector at which the iteration stops.
    shifts : tuple of float, default=(1e-12, 1e-10, 1e-8, 1e-6)
        Distances of the shift from a known edge of the spectrum, relative to ‖A‖, tried in order
        until the factorization succeeds. The first one must be tiny: eigenvalues of local methods
        can be 1e-13 ‖A‖, and a shift of 1e-6 does not separate them (squared path Laplacian,
        n = 2000: 2048 solves instead of 21).
    estimated_shifts : tuple of float, default=(0.001, 0.01, 0.1, 1.0)
        Distances from an estimated edge, relative to ‖A‖. The estimate lies inside the spectrum,
        so these are larger.
    dominant : float, default=1e4
        Eigenvectors whose eigenvalue of the inverse exceeds the k-th one by this factor are
        deflated before the others are computed.
    rounding : float, default=1e-14
        Rounding error of a solve relative to the largest eigenvalue of the inverse.
    skip_pivot_check_from : int, default=20000
        Above this order, a shift from a known edge is used without checking the signs of the
        pivots of a factor by SuperLU, which requires a copy of it.
    cholesky_from : int, default=20000
        Above this order, sparse matrices are factorized by our own functions instead of SuperLU.
    test_each_solve_from : int, default=5000
        Above this order, convergence is tested after each solve, else after every third one.
    negative_tolerance : float, default=1e-6
        The shift is rejected if a Ritz value is below minus this fraction of the largest one.
    dense_on_device_up_to : int, default=30000
        Up to this order matrices on a device are factorized there, as dense ones, if there is
        enough memory; sparse ones above it are factorized on the CPU.

    See Also
    --------
    Lanczos : needs only products, for wide gaps.
    Lobpcg : for matrices that are too large to factorize.
    Auto : chooses a solver by the size and structure of the problem.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.eigen import ShiftInvertLanczos, SpectralProblem
    >>> problem = SpectralProblem(sp.diags_array(np.arange(1, 300.0)), end="smallest")
    >>> ShiftInvertLanczos().solve(problem, 3, np.random.default_rng(0)).values.round(6)
    array([1., 2., 3.])
    """

    extra_pairs_are_cheap = True
    any_namespace = True

    basis: int = 30
    max_products: int = 1000
    full_multiplicity: bool = True
    angle: float = 1e-9
    shifts: tuple[float, ...] = (1e-12, 1e-10, 1e-8, 1e-6)
    estimated_shifts: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0)
    dominant: float = 1e4
    rounding: float = 1e-14
    skip_pivot_check_from: int = 20_000
    cholesky_from: int = CHOLESKY_FROM
    test_each_solve_from: int = 5000
    negative_tolerance: float = 1e-6
    dense_on_device_up_to: int = 30_000

    def _why_on_host(self, standard: StandardProblem) -> str | None:
        n = standard.n
        fits = standard.device is None or 8.0 * 5 * n**2 <= standard.device.free_memory
        if not standard.sparse or (n <= self.dense_on_device_up_to and fits):
            return None
        return f"factors of order {n} are sparse, and those of a GPU are dense"

    def _threads(self, standard: StandardProblem) -> AbstractContextManager[None]:
        return blas_threads(standard)

    def _basis(self, standard: StandardProblem, k: int, rng: np.random.Generator) -> Array:
        return self._basis_with_extra(standard, k, 0, rng)

    def _basis_with_extra(
        self, standard: StandardProblem, k: int, extra: int, rng: np.random.Generator
    ) -> Array:
        if too_small(standard, k + extra):
            return dense_basis(standard, k + extra)
        if not (standard.sparse or isinstance(standard.A, np.ndarray | DeviceOperator)):
            raise SolverFailed(
                f"{self.name} factorizes the operator and needs it as an array or sparse matrix",
                'pass eigen_solver="lanczos" for an operator given only by its product',
            )
        standard, tried = standard.in_double(), []
        for shift, known in self._shift_candidates(standard, rng):
            try:
                skip_pivot_check = known and standard.n > self.skip_pivot_check_from
                inverse = ShiftedInverse(
                    standard.A,
                    shift,
                    standard.end,
                    skip_pivot_check=skip_pivot_check,
                    cholesky_from=self.cholesky_from,
                )
                return self._basis_from_inverse(
                    inverse.constrained(standard.Q, standard.n_deflated), standard, k, extra, rng
                )
            except NotDefiniteError:
                tried.append(f"{shift:.1e}")
        raise SolverFailed(
            f"{self.name} found no shift beyond the {standard.end} end (tried {', '.join(tried)})",
            'pass eigen_solver="auto"',
        )

    def _shift_candidates(
        self, standard: StandardProblem, rng: np.random.Generator
    ) -> Iterator[tuple[float, bool]]:
        """Yield (shift, whether the edge is known), starting with the shift nearest to the edge."""
        sign, edge = standard.end.sign, standard.end.edge(standard.bounds)
        if edge is not None:
            yield from ((edge + sign * s * standard.norm, True) for s in self.shifts)
        estimate = _estimated_edge(standard, rng)
        if abs(estimate) < 0.1 * standard.norm:
            # Most operators are semidefinite without declaring it; the factorization checks it.
            yield sign * self.shifts[0] * standard.norm, False
        yield from ((estimate + sign * s * standard.norm, False) for s in self.estimated_shifts)

    def _basis_from_inverse(
        self,
        operator: Product,
        standard: StandardProblem,
        k: int,
        extra: int,
        rng: np.random.Generator,
    ) -> Array:
        """Return k + extra eigenvectors of the inverse; NotDefiniteError if it is indefinite."""
        V = self._largest_of_inverse(operator, k, extra, standard, rng)
        # One more product reduces the errors outside range(V) by a ratio of eigenvalues, and
        # Rayleigh-Ritz removes the errors inside: residuals fall by a factor of 2 to 4 (path
        # Laplacians), which matters where gaps are close to rounding.
        linalg = namespace(V).linalg
        V = operator @ linalg.qr(V)[0]
        V /= linalg.norm(V, axis=0)
        return V

    def _largest_of_inverse(
        self,
        operator: Product,
        k: int,
        extra: int,
        standard: StandardProblem,
        rng: np.random.Generator,
    ) -> Array:
        """Return vectors for the k largest eigenvalues of the inverse, dominant ones first.

        Those of `extra` more eigenvalues follow, less accurately.

        Errors of solves are relative to the *largest* 1/(λ − σ). Null vectors that were not
        deflated (one per connected component of a graph) make it 1e12, and the other eigenvectors
        become inaccurate. Dominant eigenvectors are therefore deflated, and the others computed
        without them.
        """
        count = k + extra
        basis = max(self.basis, 3 * count)

        space = constrained_subspace(standard, rng)
        most = self.max_products
        acceptance = Acceptance(stop_angle=self.angle)
        stop = partial(_resolved, acceptance=acceptance, rounding=self.rounding, extra=extra)
        # A test takes as long as a solve with a small factor.
        every = 3 if standard.n <= self.test_each_solve_from else 1
        run = largest_pairs(
            operator, count, space, stop, basis=basis, max_products=most, every=every
        )
        if run.lowest < -self.negative_tolerance * run.values[0]:
            raise NotDefiniteError("the inverse has a negative eigenvalue")
        V, values = run.vectors, run.values
        if self.full_multiplicity:
            V, values = with_full_multiplicity(
                operator, run, k, space, basis=basis, max_products=most
            )
        dominant = V[:, like(np.flatnonzero(values > self.dominant * values[k - 1]), V)]
        missing = k - dominant.shape[1]
        if missing in (0, k):
            return V[:, :count]
        # Deflated vectors must be accurate: one more product reduces their error by `dominant`.
        xp = namespace(V)
        dominant = xp.linalg.qr(operator @ dominant)[0]
        rest = self._largest_of_inverse(deflated(operator, dominant), missing, extra, standard, rng)
        return xp.hstack([dominant, rest])


def _estimated_edge(standard: StandardProblem, rng: np.random.Generator) -> float:
    """Return a rough estimate of the extreme eigenvalue of A, which lies inside its spectrum."""
    unconstrained = replace(standard, Q=standard.Q[:, :0], n_deflated=0, single=False)
    operator = positive(unconstrained)

    def rough(values: Array, residuals: Array) -> bool:
        return bool(residuals[0] <= 1e-2 * values[0])

    space = constrained_subspace(unconstrained, rng)
    run = largest_pairs(operator, 1, space, rough, basis=20, max_products=100)
    return float(rayleigh_quotients(unconstrained, run.vectors)[0])


def _resolved(
    values: Array, residuals: Array, acceptance: Acceptance, rounding: float, extra: int = 0
) -> bool:
    """Whether the residuals are small against the gaps."""
    gaps = np.minimum(cluster_gaps(values, 1e-12 * values[0]), values)
    allowed = acceptance.stop_angles(len(gaps), extra) * gaps
    return bool((residuals <= np.maximum(allowed, rounding * values[0])).all())
