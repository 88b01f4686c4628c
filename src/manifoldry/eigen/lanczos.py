"""Lanczos solver that uses products with the operator."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from manifoldry.eigen.dense import dense_basis
from manifoldry.eigen.krylov import (
    GiveUp,
    blas_threads,
    constrained_subspace,
    largest_pairs,
    too_small,
    with_full_multiplicity,
)
from manifoldry.eigen.solver import PairSolver, SolverFailed, converged
from manifoldry.eigen.spectrum import DEFAULT_ACCEPTANCE, Acceptance
from manifoldry.eigen.standard import Product, StandardProblem
from manifoldry.util.arrays import namespace, to_numpy
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class ProbeLimits:
    """When a probe gives up because the eigenvalues at the wanted end are too close together.

    The criterion is the residual of the first Ritz value divided by its distance from the known
    edge of the spectrum. It becomes small quickly where gaps are wide, but not on graphs of
    low-dimensional manifolds. After 40 products the ratio was 0.01 to 1.3 for wide gaps (digits,
    MNIST, tori, cubes of 3 and 4 dimensions) and 3.3 to 5.9 for narrow gaps (rolls of 10⁴ to 10⁵
    points: Laplacian eigenmaps, LLE, LTSA). After 20 products it was at most 2.02 for wide and at
    least 2.67 for narrow gaps, so most cases can be distinguished by then.

    Parameters
    ----------
    products, ratio : int, float, default=40, 2.0
        After this many products, give up if the ratio exceeds `ratio`.
    early_products, early_ratio : int, float, default=20, 2.4
        An earlier test with a larger ratio.

    See Also
    --------
    Lanczos : the solver that probes.
    Auto : decides what to try after a probe.

    Examples
    --------
    >>> from manifoldry.eigen import ProbeLimits
    >>> limits = ProbeLimits()
    >>> limits.should_give_up(ratio=3.3, products=40), limits.should_give_up(ratio=0.5, products=40)
    (True, False)
    """

    products: int = 40
    ratio: float = 2.0
    early_products: int = 20
    early_ratio: float = 2.4

    def should_give_up(self, ratio: float, products: int) -> bool:
        """Return whether to give up.

        Parameters
        ----------
        ratio : float
            Residual of the first Ritz value divided by its distance from the edge of the spectrum.
        products : int
            Number of products so far.

        Returns
        -------
        bool
            Whether the ratio exceeds the limit for this number of products.
        """
        early = products >= self.early_products and ratio > self.early_ratio
        return bool(early or (products >= self.products and ratio > self.ratio))


@dataclass(frozen=True)
class Lanczos(PairSolver):
    """Thick-restart Lanczos, which needs only products with the operator.

    Suitable for the largest eigenvalues, for the smallest ones on graphs of high-dimensional data,
    where the gaps are wide, and for operators given only as a product. On graphs of
    low-dimensional manifolds the gaps are tiny and it may need very many products: prefer
    :class:`ShiftInvertLanczos`.

    Parameters
    ----------
    basis : int, default=40
        Number of basis vectors, but at least three times the number of pairs.
    max_products : int, default=10000
        Largest number of products with the operator.
    full_multiplicity : bool, default=True
        Search for all eigenvectors of repeated eigenvalues, which doubles the time.
    probe : bool, default=False
        Give up early if the gaps at the wanted end are too small.
    probe_limits : ProbeLimits, optional
        When a probe gives up.
    acceptance : Acceptance, optional
        Errors of eigenvectors at which the iteration stops.

    See Also
    --------
    ShiftInvertLanczos : for narrow gaps.
    ProbeLimits : when a probe gives up.
    Auto : chooses a solver by the size and structure of the problem.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.eigen import Lanczos, SpectralProblem
    >>> problem = SpectralProblem(sp.diags_array(np.arange(300.0)), end="largest")
    >>> Lanczos().solve(problem, 2, np.random.default_rng(0)).values.round(6)
    array([299., 298.])
    """

    extra_pairs_are_cheap = True
    any_namespace = True

    basis: int = 40
    max_products: int = 10_000
    full_multiplicity: bool = True
    probe: bool = False
    probe_limits: ProbeLimits = ProbeLimits()
    acceptance: Acceptance = DEFAULT_ACCEPTANCE

    def _threads(self, standard: StandardProblem) -> AbstractContextManager[None]:
        return blas_threads(standard)

    def _basis(self, standard: StandardProblem, k: int, rng: np.random.Generator) -> Array:
        return self._basis_with_extra(standard, k, 0, rng)

    def _basis_with_extra(
        self, standard: StandardProblem, k: int, extra: int, rng: np.random.Generator
    ) -> Array:
        count = k + extra
        if too_small(standard, count):
            return dense_basis(standard, count)
        operator = positive(standard)
        basis = max(self.basis, 3 * count)

        def stop(values: Array, residuals: Array) -> bool:
            return converged(standard.norm, values, residuals, self.acceptance, extra)

        space = constrained_subspace(standard, rng)
        run = largest_pairs(
            operator,
            count,
            space,
            stop,
            basis=basis,
            max_products=self.max_products,
            every=5,
            give_up=self._give_up_rule(standard),
        )
        if not run.converged:
            self._raise_failure(run.products, count, standard.n)
        if not self.full_multiplicity:
            return run.vectors
        most = self.max_products
        V, _ = with_full_multiplicity(operator, run, k, space, basis=basis, max_products=most)
        return V

    def _give_up_rule(self, standard: StandardProblem) -> GiveUp | None:
        """Return the function that stops a probe early, or None if this is not a probe."""
        low = standard.end.edge(standard.bounds)
        if not self.probe or low is None:
            return None
        edge = abs(standard.opposite_bound - low)  # in the variables of the positive operator

        # The smallest ratio so far: single ratios vary by a third from check to check.
        limits, smallest = self.probe_limits, np.inf

        def should_give_up(values: Array, residuals: Array, products: int) -> bool:
            nonlocal smallest
            if products >= limits.early_products:
                ratio = residuals[0] / max(edge - values[0], np.finfo(float).tiny)
                smallest = min(smallest, float(ratio))
            return limits.should_give_up(smallest, products)

        return should_give_up

    def _raise_failure(self, products: int, k: int, n: int) -> None:
        raise SolverFailed(
            f"{self.name} did not separate {k} pairs of order {n} in {products} products",
            'raise max_products or pass eigen_solver="auto"',
        )


def positive(standard: StandardProblem) -> Product:
    """Return ±(A − bound·I), a positive operator whose largest eigenvalues are the wanted ones."""
    bound, sign = standard.opposite_bound, standard.end.sign

    def product(X: Array) -> Array:
        Y = standard.apply(X)
        Y -= bound * X
        Y *= sign
        return Y

    return Product(standard.n, product)


def rayleigh_quotients(standard: StandardProblem, V: Array) -> Array:
    """Return the Rayleigh quotients of the unit columns of V."""
    return to_numpy(namespace(V).einsum("ij,ij->j", V, standard.apply(V)))
