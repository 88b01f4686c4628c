"""Functions of least energy of a graph Laplacian with a penalty, to a stated accuracy.

What a coordinate needs is an energy close to the least one. On data whose eigenvectors are found by
products, the iteration is preconditioned by the diagonal. On surfaces it is by the inverse of the
operator A without penalty R, factorized once for all coordinates and weights ω: since
A ≤ A + ωR ≤ (1 + 2ω) A, the number of steps does not grow with the number of points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from manifoldry.device import Device
from manifoldry.eigen import SpectralProblem, Spectrum, StandardProblem
from manifoldry.eigen.cholesky import NotDefiniteError
from manifoldry.eigen.inverse import ShiftedInverse
from manifoldry.eigen.spectrum import fixed_signs
from manifoldry.eigen.standard import Product, orthonormal_basis
from manifoldry.nonredundant.block_iteration import (
    BlockProduct,
    Preconditioner,
    RitzBlock,
    smallest_pairs,
)
from manifoldry.nonredundant.penalty import PenaltyProducts
from manifoldry.util.arrays import like, namespace, on_cpu, to_numpy
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class EnergyMinimizer:
    """Functions of least energy, orthogonal to given ones and with a penalty.

    Parameters
    ----------
    problem : SpectralProblem
        Its operator is a sparse matrix: a diagonal minus the weights of the graph.
    rng : numpy.random.Generator
        Source of start vectors.
    factorize : bool
        Precondition by the inverse of the operator instead of that of the diagonal.
    tol : float
        Estimated relative error of the energy at which the iteration stops. The estimate was 20
        to 300 times too high (15 000 digits).
    exact_tol : float
        The same for functions without penalty, if the operator is factorized.
    block : int
        Number of vectors, at least two. The first one is wanted; the others give the gap and speed
        up convergence.
    max_iter : int
        Largest number of steps.
    shift : float
        Multiple of the identity, relative to the norm, that is added to what is factorized.
    device : Device, optional
        The device that computes; not if `factorize`.
    starts : dict
        The last vectors found without and with a penalty, with which the next search starts. Each
        search replaces them, although the object is frozen otherwise.
    """

    problem: SpectralProblem
    rng: np.random.Generator
    factorize: bool
    tol: float = 0.01
    exact_tol: float = 1e-9
    block: int = 3
    max_iter: int = 300
    shift: float = 1e-9
    device: Device | None = None
    starts: dict[str, Array] = field(default_factory=dict)

    def orthogonal_to(self, columns: Array) -> ConstrainedMinimizer:
        """The search among functions orthogonal to `columns` and the problem's constraints."""
        columns = self.root[:, None] * self.placed(columns)
        Q = orthonormal_basis(columns, beyond=self.standard.Q)
        return ConstrainedMinimizer(self, Q)

    @cached_property
    def standard(self) -> StandardProblem:
        """The problem in standard form."""
        return self.problem.standard(self.device)

    @cached_property
    def root(self) -> Array:
        """Square roots of the mass."""
        mass = self.problem.mass
        return self.placed(np.ones(self.problem.n) if mass is None else np.sqrt(mass))

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of the operator."""
        return self.placed(np.asarray(self.problem.operator.diagonal()))

    def placed(self, X: Array) -> Array:
        """An array in the memory in which is computed."""
        return X if self.device is None else self.device.array(X, keep=False)

    @cached_property
    def inverse(self) -> ShiftedInverse | None:
        """The inverse of the operator in standard form, or None if it cannot be factorized."""
        A, end = self.standard.A, self.standard.end
        try:
            return ShiftedInverse(A, -self.added, end, skip_pivot_check=True)
        except (MemoryError, NotDefiniteError):
            return None

    @property
    def added(self) -> float:
        """Multiple of the identity that is added to what is factorized."""
        return self.shift * self.standard.norm


@dataclass(frozen=True, eq=False)
class ConstrainedMinimizer:
    """Functions of least energy with g = B^{1/2} f orthogonal to the orthonormal columns of Q.

    `noise` is the size of random vectors that are added to start vectors, since a vector found
    before may be among the constraints by now.
    """

    minimizer: EnergyMinimizer
    Q: Array
    noise: float = 1e-3

    def eigenvector(self) -> Spectrum | None:
        """The function of least energy without penalty, or None if it was not found."""
        minimizer, starts = self.minimizer, self.minimizer.starts
        diagonal = minimizer.diagonal
        tol = minimizer.exact_tol if minimizer.factorize else minimizer.tol
        found = self._search(minimizer.standard.apply, diagonal, starts.get("plain"), tol)
        if found is None:
            return None
        # The first vector of the last penalized problem is a coordinate now.
        others = starts.get("penalized", found.vectors)[:, 1:]
        penalized = namespace(others).hstack([found.vectors[:, :1], others])
        starts.update(plain=found.vectors, penalized=penalized)
        return self._spectrum(found, tol)

    def penalized(self, penalty: PenaltyProducts, weight: float) -> Spectrum | None:
        """The function of least energy with `weight` times the penalty, or None."""
        minimizer, starts = self.minimizer, self.minimizer.starts
        diagonal = minimizer.diagonal + weight * penalty.diagonal
        product = partial(self._penalized_product, penalty, weight)
        found = self._search(product, diagonal, starts.get("penalized"), minimizer.tol)
        if found is None:
            return None
        starts["penalized"] = found.vectors
        return self._spectrum(found, minimizer.tol)

    def _search(
        self, product: BlockProduct, diagonal: Array, start: Array | None, tol: float
    ) -> RitzBlock | None:
        """The smallest pairs, or None if a factorization fails."""
        minimizer = self.minimizer
        shape = minimizer.problem.n, minimizer.block
        random = minimizer.placed(minimizer.rng.standard_normal(shape))
        start = random if start is None else start + self.noise * random / np.sqrt(len(random))
        try:
            precondition = self._preconditioner(diagonal)
            if precondition is None:
                return None
            return smallest_pairs(
                product,
                precondition,
                self._project(start),
                tol=tol,
                max_iter=minimizer.max_iter,
                # Without penalty, the operator is smaller.
                shift=minimizer.added if minimizer.factorize else None,
            )
        except np.linalg.LinAlgError:
            return None

    def _preconditioner(self, diagonal: Array) -> Preconditioner | None:
        minimizer = self.minimizer
        if not minimizer.factorize:
            return _precondition_by_diagonal(minimizer.root**2 / diagonal, self.Q)
        inverse = self._inverse
        return None if inverse is None else partial(_precondition_by_inverse, inverse, self.Q)

    def _spectrum(self, found: RitzBlock, tol: float) -> Spectrum | None:
        if not found.energy_error <= tol:  # also if it is not a number
            return None
        g = self._project(found.vectors[:, :1])
        f = g / namespace(g).linalg.norm(g) / self.minimizer.root[:, None]
        return Spectrum(
            values=found.values[:1].copy(),
            vectors=fixed_signs(to_numpy(f)),
            residuals=np.array([found.residual]),
            gaps=np.array([found.gap]),
            next_value=float(found.values[1]),
            norm=self.minimizer.standard.norm,
            solver=type(self.minimizer).__name__,
            reason="functions of nearly the least energy, whose residuals may exceed gaps",
            energy_errors=np.array([tol]),
        )

    @cached_property
    def _inverse(self) -> Product | None:
        inverse = self.minimizer.inverse
        n_deflated = self.minimizer.standard.n_deflated
        return None if inverse is None else inverse.constrained(self.Q, n_deflated)

    def _project(self, X: Array) -> Array:
        return X - self.Q @ (self.Q.T @ X)

    def _penalized_product(self, penalty: PenaltyProducts, weight: float, X: Array) -> Array:
        root = self.minimizer.root[:, None]
        f = X / root
        Lf, Rf = penalty(f)
        Rf *= weight
        Rf += Lf
        Rf += (self.minimizer.diagonal - penalty.degree)[:, None] * f
        Rf /= root
        return Rf


def _precondition_by_inverse(inverse: Product, Q: Array, R: Array) -> tuple[Array, Array]:
    R = R - Q @ (Q.T @ R)
    return inverse @ R, R


def _precondition_by_diagonal(inverse: Array, Q: Array) -> Preconditioner:
    """By D⁻¹ on the orthogonal complement of Q: D⁻¹ − D⁻¹Q (QᵀD⁻¹Q)⁻¹ QᵀD⁻¹.

    Products with Q are computed in single precision, which is enough for directions.
    """
    unit = np.float64(power_of_two_scale(to_numpy(inverse)))  # single precision has a small range
    inverse, Q = inverse[:, None], Q.astype(np.float32)
    solve = _small_inverse(Q.T @ ((inverse / unit).astype(np.float32) * Q))

    def precondition(R: Array) -> tuple[Array, Array]:
        parts = Q.T @ (inverse * R).astype(np.float32)
        R = R - (Q @ solve(parts)) / unit
        return inverse * R, R

    return precondition


def _small_inverse(S: Array) -> BlockProduct:
    """The function that solves a definite system; on a device by a product with its inverse."""
    factor = cho_factor(to_numpy(S), check_finite=False)
    if on_cpu(S):
        return partial(cho_solve, factor, check_finite=False)
    inverse = like(cho_solve(factor, np.eye(len(S), dtype=S.dtype), check_finite=False), S)
    return lambda parts: inverse @ parts
