"""Subspace iteration with a Chebyshev polynomial of the operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from manifoldry.eigen.dense import dense_basis
from manifoldry.eigen.krylov import start_block, too_small
from manifoldry.eigen.solver import PairSolver, SolverFailed, converged, small_pairs
from manifoldry.eigen.spectrum import (
    DEFAULT_ACCEPTANCE,
    ROUNDING,
    Acceptance,
    cluster_gaps,
    cluster_width,
)
from manifoldry.eigen.standard import StandardProblem, orthonormal_basis
from manifoldry.util.arrays import like, namespace, to_numpy
from manifoldry.util.typing import Array


class _Ritz(NamedTuple):
    """Ritz values from the wanted end, on the host, vectors and residuals."""

    values: Array
    vectors: Array
    residuals: Array


class _Interval(NamedTuple):
    """The unwanted part of the spectrum, which a filter maps to [−1, 1]."""

    middle: float
    half: float  # signed: from the middle towards the wanted end

    def growth(self, value: float) -> float:
        """Logarithm of the factor by which a product amplifies an eigenvector of this value."""
        return float(np.arccosh(max(1.0, (value - self.middle) / self.half)))


@dataclass(frozen=True)
class ChebyshevSubspace(PairSolver):
    """Subspace iteration with Chebyshev polynomials of the operator (Zhou and Saad 2007).

    A polynomial of high degree, which is small on the unwanted part of the spectrum, amplifies the
    wanted eigenvectors in a block of vectors. Between orthogonalizations there are only products
    with the block, a few hundred at a time, as suits a GPU, where it is the first choice at the
    ends of sparse spectra. It needs more arithmetic than :class:`Lanczos`, and finds repeated
    eigenvalues, up to the size of the block, without a search.

    Parameters
    ----------
    oversampling : int, default=8
        Block columns in addition to the wanted pairs. Convergence depends on the gap between the
        last wanted eigenvalue and the last of the block.
    max_degree : int, default=1000
        Largest degree of a polynomial.
    max_products : int, default=20000
        Largest number of products with the block. The iteration ends earlier if its rate shows
        that more would be needed.
    max_growth : float, default=1e7
        Largest factor by which a polynomial amplifies the end of the spectrum, so that columns of
        the block stay linearly independent.
    acceptance : Acceptance, optional
        Errors of eigenvectors at which the iteration stops.

    See Also
    --------
    Lanczos : fewer products, each with a single vector.
    ShiftInvertLanczos : for narrow gaps.
    Auto : chooses a solver by the size and structure of the problem.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.eigen import ChebyshevSubspace, SpectralProblem
    >>> A = sp.diags_array(np.arange(300.0))
    >>> problem = SpectralProblem(A, end="smallest", bounds=(0, 299))
    >>> ChebyshevSubspace().solve(problem, 2, np.random.default_rng(0)).values.round(6) + 0.0
    array([0., 1.])
    """

    extra_pairs_are_cheap = True
    any_namespace = True

    oversampling: int = 8
    max_degree: int = 1000
    max_products: int = 20_000
    max_growth: float = 1e7
    acceptance: Acceptance = DEFAULT_ACCEPTANCE

    def _basis(self, standard: StandardProblem, k: int, rng: np.random.Generator) -> Array:
        return self._basis_with_extra(standard, k, 0, rng)

    def _basis_with_extra(
        self, standard: StandardProblem, k: int, extra: int, rng: np.random.Generator
    ) -> Array:
        count = k + extra
        block = count + self.oversampling
        if too_small(standard, block):
            return dense_basis(standard, count)
        found = _ritz(standard, start_block(standard, block, rng))
        products, invariant = 0, _is_invariant(standard)
        while len(found.values) >= count:
            leading = found.values[:count], found.residuals[:count]
            if converged(standard.norm, *leading, self.acceptance, extra):
                return found.vectors[:, :count]
            unwanted = self._unwanted(standard, found.values)
            if products + self._least_products(standard, found, k, unwanted) > self.max_products:
                break
            degree = self._degree(standard, unwanted)
            products += degree
            filtered = _filtered(standard, found.vectors, unwanted, degree, invariant)
            found = _ritz(standard, filtered)
        raise SolverFailed(
            f"{self.name} would not separate {k} pairs of order {standard.n} in "
            f"{self.max_products} products (it used {products})",
            'raise max_products or pass eigen_solver="auto"',
        )

    def _unwanted(self, standard: StandardProblem, values: Array) -> _Interval:
        """From the last Ritz value of the block to the opposite end of the spectrum.

        It is extended beyond that end if a polynomial of degree two would exceed `max_growth`, as
        where all other eigenvalues vanish.
        """
        inner, sign = float(values[-1]), standard.end.sign
        width = sign * (inner - standard.opposite_bound)
        least = sign * (_edge(standard) - inner) / np.sqrt(self.max_growth / 2)
        half = sign * max(width / 2, least, ROUNDING * standard.norm)
        return _Interval(inner - half, half)

    def _degree(self, standard: StandardProblem, unwanted: _Interval) -> int:
        """The degree at which the wanted end of the spectrum is amplified by `max_growth`."""
        growth = max(unwanted.growth(_edge(standard)), 1e-300)
        return int(np.clip(np.arccosh(self.max_growth) / growth, 2, self.max_degree))

    def _least_products(
        self, standard: StandardProblem, found: _Ritz, k: int, unwanted: _Interval
    ) -> float:
        """Products that the slowest wanted pair still needs, at the rate of these Ritz values.

        Before convergence gaps between Ritz values are mostly too large, so that the number is too
        small.
        """
        last = max(k - 2, 0)  # the k-th pair only measures a gap
        rate = unwanted.growth(found.values[last])
        width = cluster_width(standard.norm, self.acceptance.angle)
        gap = cluster_gaps(found.values, width)[last]
        gap = self.acceptance.finite_gaps(np.array(gap), standard.norm)
        target = max(self.acceptance.stop_angle * float(gap), ROUNDING * standard.norm / 2)
        excess = np.log(max(found.residuals[last] / target, 1.0))
        return float(excess / max(rate, 1e-300)) if excess > 0 else 0.0


def _edge(standard: StandardProblem) -> float:
    """A bound on the wanted end of the spectrum."""
    edge = standard.end.edge(standard.bounds)
    # The norm is a lower estimate.
    return 1.2 * standard.end.sign * standard.norm if edge is None else edge


def _is_invariant(standard: StandardProblem, tolerance: float = 1e-13) -> bool:
    """Whether the constraints span an invariant subspace, as known eigenvectors do."""
    Q = standard.Q
    if Q.shape[1] != standard.n_deflated or Q.shape[1] == 0:
        return Q.shape[1] == 0
    AQ = standard.apply(Q)
    outside = namespace(AQ).linalg.norm(AQ - Q @ (Q.T @ AQ))
    return bool(float(outside) <= tolerance * standard.norm)


def _filtered(
    standard: StandardProblem, X: Array, unwanted: _Interval, degree: int, invariant: bool
) -> Array:
    """T(X) for the Chebyshev polynomial T of the operator, of this degree.

    Products need no projection if the constraints are `invariant`.
    """
    middle, half = unwanted

    def mapped(Y: Array, factor: float) -> Array:
        Z = standard.apply(Y)
        Z -= middle * Y
        # Rounding errors in range(Q) are then mapped to zero, not to the end of the spectrum,
        # where they would be amplified.
        Z = Z if invariant else standard.project_once(Z)
        Z *= factor / half
        return Z

    before, now = X, mapped(X, 1.0)
    for _ in range(degree - 1):
        after = mapped(now, 2.0)
        after -= before
        before, now = now, after
    return now


def _ritz(standard: StandardProblem, X: Array) -> _Ritz:
    """Ritz pairs of range(X); dependent columns are dropped."""
    for _ in range(2):  # amplified rounding errors in range(Q) are removed by the second pass
        X = orthonormal_basis(standard.project(X))
    AX = standard.project(standard.apply(X))
    values, C = small_pairs(standard, X.T @ AX)
    X, AX = X @ C, AX @ C
    AX -= X * like(values, X)
    return _Ritz(values, X, to_numpy(namespace(AX).linalg.norm(AX, axis=0)))
