"""Lanczos iteration, with products by the operator or by its inverse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator

from manifoldry._typing import Array
from manifoldry.eigen.dense import dense_pairs
from manifoldry.eigen.inverse import NotDefiniteError, ShiftedInverse
from manifoldry.eigen.krylov import (
    largest_vectors,
    locked,
    start_block,
    too_small,
    with_missed_copies,
)
from manifoldry.eigen.solver import PairSolver, SolverFailed
from manifoldry.eigen.standard import StandardProblem

# Distances of the shift from a known edge of the spectrum, relative to ‖A‖. The first one counts:
# eigenvalues of local methods go down to 1e-13 ‖A‖, and a shift of 1e-6 hides them (squared path
# Laplacian, n = 2000: 2048 solves instead of 21). The later ones are for factors that break down.
_SHIFTS = (1e-12, 1e-10, 1e-8, 1e-6)
# From an estimated edge: an estimate from inside the spectrum has to be stepped over.
_STEPS = (1e-3, 1e-2, 1e-1, 1.0)
# Eigenvalues of the inverse this many times the k-th one are locked before the others are sought.
_DOMINANT = 1e4


@dataclass(frozen=True)
class Lanczos(PairSolver):
    """Solve with products by the operator only (ARPACK's implicitly restarted Lanczos).

    Use it for the largest end, where gaps are a fair fraction of the norm, and for operators
    that exist as a product only. At the smallest end of a graph Laplacian it may need very many
    products: prefer :class:`ShiftInvertLanczos`.

    Parameters
    ----------
    tol : float
        Relative accuracy ARPACK aims at; 0 means machine precision.
    max_iter : int
        Largest number of restarts.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.eigen import Lanczos, SpectralProblem
    >>> problem = SpectralProblem(sp.diags_array(np.arange(300.0)), end="largest")
    >>> Lanczos().solve(problem, 2, np.random.default_rng(0)).values.round(6)
    array([299., 298.])
    """

    tol: float = 0.0
    max_iter: int = 300

    def _pairs(
        self, standard: StandardProblem, k: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        if too_small(standard, k):
            return dense_pairs(standard, k)
        operator = _positive(standard)
        start = start_block(standard, 1, rng)[:, 0]
        basis = max(40, 3 * k)
        V = largest_vectors(operator, k, start, self.tol, self.max_iter, rng, basis)
        V = with_missed_copies(operator, V, standard, self.max_iter, rng)
        return _quotients(standard, V), V


@dataclass(frozen=True)
class ShiftInvertLanczos(PairSolver):
    """Solve with products by (A − σI)⁻¹, σ just outside the wanted end of the spectrum.

    Use it for the smallest end of explicit matrices, sparse above all: the inverse pulls tiny
    gaps apart, so that a few dozen solves suffice. One factorisation is kept in memory.

    Parameters
    ----------
    tol : float
        Relative accuracy ARPACK aims at; 0 means machine precision.
    max_iter : int
        Largest number of restarts.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.eigen import ShiftInvertLanczos, SpectralProblem
    >>> problem = SpectralProblem(sp.diags_array(np.arange(1, 300.0)), end="smallest")
    >>> ShiftInvertLanczos().solve(problem, 3, np.random.default_rng(0)).values.round(6)
    array([1., 2., 3.])
    """

    tol: float = 0.0
    max_iter: int = 100

    def _pairs(
        self, standard: StandardProblem, k: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        if too_small(standard, k):
            return dense_pairs(standard, k)
        if not (standard.sparse or isinstance(standard.A, np.ndarray)):
            raise SolverFailed(
                f"{self.name} factorises the operator and needs it as an array or sparse matrix; "
                'pass eigen_solver="lanczos" for an operator given by its product'
            )
        operator = self._inverse(standard, rng).constrained(standard.Q)
        V = self._top(operator, k, standard, rng)
        # One more product shrinks the errors outside range(V) by the ratio of eigenvalues there
        # and in V, and Rayleigh-Ritz sorts out what it adds inside: residuals fall by a
        # factor of 2 to 4 (path Laplacians), which counts where gaps are close to rounding.
        V = operator @ np.linalg.qr(V)[0]
        V /= np.linalg.norm(V, axis=0)
        return _quotients(standard, V), V

    def _top(
        self,
        operator: LinearOperator,
        k: int,
        standard: StandardProblem,
        rng: np.random.Generator,
    ) -> Array:
        """Return vectors for the k largest eigenvalues of the inverse, the dominant ones first.

        ARPACK's errors are relative to the *largest* 1/(λ − σ). Null vectors that nobody deflated
        (one per component of a graph) make that 1e12 and drown the others, as was seen for three
        components; so those that dominate are locked, and the others sought without them.
        """
        start = start_block(standard, 1, rng)[:, 0]
        V = largest_vectors(operator, k, start, self.tol, self.max_iter, rng)
        V = np.linalg.qr(with_missed_copies(operator, V, standard, self.max_iter, rng))[0]
        values, C = np.linalg.eigh(V.T @ (operator @ V))
        V = V @ C
        dominant = V[:, values > _DOMINANT * values[-k]]
        missing = k - dominant.shape[1]
        if missing in (0, k):
            return V[:, -k:]
        # What is locked has to be exact, and a product makes it so: it dominates by that factor.
        dominant = np.linalg.qr(operator @ dominant)[0]
        rest = self._top(locked(operator, dominant), missing, standard, rng)
        return np.hstack([dominant, rest])

    def _inverse(self, standard: StandardProblem, rng: np.random.Generator) -> ShiftedInverse:
        """Return the first factorisation that proves its shift to lie outside the spectrum."""
        tried = []
        for shift in _shifts(standard, rng):
            try:
                return ShiftedInverse(standard.A, shift, standard.end)
            except NotDefiniteError:
                tried.append(f"{shift:.1e}")
        raise SolverFailed(
            f"{self.name} found no shift beyond the {standard.end} end (tried {', '.join(tried)})"
        )


def _shifts(standard: StandardProblem, rng: np.random.Generator) -> Iterator[float]:
    """Yield shifts beyond the wanted end, the closest first."""
    outwards = -1 if standard.end == "smallest" else 1
    edge = None if standard.bounds is None else standard.bounds[standard.end == "largest"]
    if edge is not None and np.isfinite(edge):
        yield from (edge + outwards * s * standard.norm for s in _SHIFTS)
    estimate = _estimated_edge(standard, rng)
    if abs(estimate) < 0.1 * standard.norm:
        # Most operators here are semidefinite and do not say so: the factor will tell.
        yield outwards * _SHIFTS[0] * standard.norm
    yield from (estimate + outwards * s * standard.norm for s in _STEPS)


def _estimated_edge(standard: StandardProblem, rng: np.random.Generator) -> float:
    """Return a rough extreme eigenvalue of A itself, from inside its spectrum."""
    free = StandardProblem(standard.A, standard.Q[:, :0], standard.end, standard.bounds)
    start = rng.standard_normal(free.n)
    V = largest_vectors(_positive(free), 1, start, 1e-2, 10, rng)
    return float(_quotients(free, V)[0])


def _positive(standard: StandardProblem) -> LinearOperator:
    """Return ±(P A P − far·I), in which the wanted end is the top of a positive operator.

    Krylov spaces do not see the shift, but ARPACK's stopping rule is relative to the
    eigenvalue, and those next to zero would never satisfy it.
    """
    compressed, far = standard.compressed(), standard.far
    sign = -1.0 if standard.end == "smallest" else 1.0

    def product(X: Array) -> Array:
        return sign * (compressed @ X - far * X)

    return _operator(standard.n, product)


def _quotients(standard: StandardProblem, V: Array) -> Array:
    """Return the Rayleigh quotients of unit columns."""
    return np.asarray(np.einsum("ij,ij->j", V, standard.apply(V)))


def _operator(n: int, product: Callable[[Array], Array]) -> LinearOperator:
    return LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
