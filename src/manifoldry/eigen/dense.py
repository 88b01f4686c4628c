"""Dense eigendecomposition, the reference for all other solvers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, qr, solve, svd

from manifoldry.eigen.gram import Gram
from manifoldry.eigen.on_device import FEWER_POINTS
from manifoldry.eigen.problem import SpectralProblem
from manifoldry.eigen.solver import PairSolver, small_pairs, verified
from manifoldry.eigen.spectrum import Acceptance, Spectrum
from manifoldry.eigen.standard import SpectrumEnd, StandardProblem, orthonormal_basis
from manifoldry.util.arrays import like, namespace, on_cpu, to_numpy
from manifoldry.util.typing import Array
from manifoldry.util.validation import plan_matrix


@dataclass(frozen=True)
class Dense(PairSolver):
    """Solve with a dense n × n matrix, or with the smaller dimension of a Gram factor.

    Suitable up to a few thousand points: n² memory, n³ time, no iteration that could fail.

    Parameters
    ----------
    well_conditioned : float, default=1e-10
        If all wanted eigenvalues of FᵀF exceed this fraction of the largest, the eigenvectors of
        F Fᵀ are computed as F w / σ.
    accurate_squares : float, default=1e-6
        If they exceed this fraction, the vectors F w / σ are orthogonal to about ten digits and
        used as they are.
    null_tolerance : float, default=1e-14
        Eigenvalues of a Gram operator below this fraction of the largest belong to its null space.
    implicit_null_tolerance : float, default=1e-11
        The same when F is implicit. Eigenvalues computed from FᵀF have a relative error of this
        size, which dividing by σ would amplify.
    single_angle : float, default=2e-4
        Eigenvectors from FᵀF in single precision are accepted if the residuals of F Fᵀ, computed
        in double precision, are at most this fraction of the gaps; else FᵀF is computed again in
        double precision. The errors are smaller: on digits 1e-5 for residuals of 1e-4 of the gap.
    single_up_to : int, default=20
        Number of pairs up to which single precision is tried; more of them have smaller gaps. Six
        sets (digits, MNIST, USPS, Frey faces, cells, word vectors) are accurate enough with up to
        35 pairs. With 40, MNIST (12 000 rows) and USPS are not, and the two attempts take 1.5 and
        1.6 times as long as double precision alone, where one in single saves at most a third.
    planned_above : int, default=10000
        Order above which the free memory is checked first; :class:`Auto` uses other solvers there.

    See Also
    --------
    Auto : chooses a solver by the size and structure of the problem.
    Randomized : the largest eigenvalues of larger dense matrices.
    ShiftInvertLanczos : the smallest eigenvalues of sparse matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import Dense, SpectralProblem
    >>> problem = SpectralProblem(np.diag([4.0, 1.0, 3.0]), end="largest")
    >>> Dense().solve(problem, 2, np.random.default_rng(0)).values
    array([4., 3.])
    """

    extra_pairs_are_cheap = True
    any_namespace = True

    well_conditioned: float = 1e-10
    accurate_squares: float = 1e-6
    null_tolerance: float = 1e-14
    implicit_null_tolerance: float = 1e-11
    single_angle: float = 2e-4
    single_up_to: int = 20
    planned_above: int = 10_000

    def attempt(
        self,
        problem: SpectralProblem,
        standard: StandardProblem,
        k: int,
        rng: np.random.Generator,
        extra: int = 0,
    ) -> Spectrum:
        A, n = standard.A, standard.n
        if n > self.planned_above and not (isinstance(A, Gram) and A.factor.shape[1] < n):
            what = f"a dense eigenproblem of order {n}"
            remedy = "pass eigen_solver='auto', which uses other solvers"
            if standard.device is None:
                plan_matrix((n, n), 32, what, remedy)
            else:
                standard.device.plan(32.0 * n * n, what, f"{remedy}, or {FEWER_POINTS}")
        if not (isinstance(A, Gram) and A.single and k < A.factor.shape[1] < A.factor.shape[0]):
            return self._pairs(problem, standard, k, rng, extra)
        why = f"more than single_up_to={self.single_up_to} pairs were requested"
        if k <= self.single_up_to:
            found = self._pairs(problem, standard, k, rng, extra)
            if replace(found, acceptance=Acceptance(self.single_angle)).accepted:
                accurate = f"residuals, in double, are at most {self.single_angle:g} of the gaps"
                return replace(found, precision=f"products in single precision: {accurate}")
            why = f"in single, residuals exceed {self.single_angle:g} of the gaps"
        double = replace(standard, A=replace(A, single=False))
        found = self._pairs(problem, double, k, rng, extra)
        return replace(found, precision=f"products in double precision: {why}")

    def _pairs(
        self,
        problem: SpectralProblem,
        standard: StandardProblem,
        k: int,
        rng: np.random.Generator,
        extra: int,
    ) -> Spectrum:
        found = self._from_small_matrix(problem, standard, k, extra)
        return super().attempt(problem, standard, k, rng, extra) if found is None else found

    def _from_small_matrix(
        self, problem: SpectralProblem, standard: StandardProblem, k: int, extra: int
    ) -> Spectrum | None:
        """Return the first pairs of F Fᵀ by few products with F, or None if that is inaccurate.

        For eigenvectors W of FᵀF, those of F Fᵀ are F W / σ, with residuals F R / σ, where R are
        the residuals of W. The bound σ₁‖R‖/σ is returned, which needs no further product.
        """
        F, end = standard.A, standard.end
        if not (isinstance(F, Gram) and F.explicit and end is SpectrumEnd.LARGEST):
            return None
        rank = min(F.factor.shape[1], standard.dimension)  # at most
        if k >= rank or F.factor.shape[1] >= standard.n or problem.mass is not None:
            return None
        if F.projected(standard.Q) is not F:
            return None
        count = min(k + 1 + extra, rank)
        values, W = (part[..., ::-1] for part in _extreme(F.small_matrix(), end, count))
        if values[k] <= self.accurate_squares * values[0]:
            return None
        xp = namespace(W)
        W = xp.ascontiguousarray(W[:, : k + 1])
        U = F.times_factor(W)
        squares, C = small_pairs(standard, U.T @ U)
        U, W, sigma = U @ C, W @ C, np.sqrt(squares)
        R = F.times_transpose(U) - W * like(squares, W)
        residuals = to_numpy(xp.linalg.norm(R, axis=0)) * sigma[0] / sigma
        zeros = np.zeros(min(k + 1 + extra, standard.dimension) - count)  # beyond the rank of F
        values = np.concatenate([squares, values[k + 1 :], zeros])
        spectrum = verified(
            problem, standard, k, values, to_numpy(U) / sigma, residuals, extra, norm=values[0]
        )
        return replace(spectrum, solver=self.name, reason=f"{self.name} was requested")

    def _basis(self, standard: StandardProblem, k: int, rng: np.random.Generator) -> Array:
        standard = standard.in_double()
        A = standard.A
        if isinstance(A, Gram) and A.factor.shape[1] < A.factor.shape[0]:
            return self._gram_basis(standard, k, rng)
        return dense_basis(standard, k)

    def _gram_basis(self, standard: StandardProblem, k: int, rng: np.random.Generator) -> Array:
        """Return k eigenvectors of F Fᵀ from FᵀF, for F with fewer columns than rows."""
        F, largest = standard.A.projected(standard.Q), standard.end is SpectrumEnd.LARGEST
        if largest and k <= F.small_side:
            values, W = _extreme(F.small_matrix(), standard.end, k)
            if values[0] > self.well_conditioned * values[-1]:
                return F.times_factor(W) / like(np.sqrt(values), W)
        values, U = self._range_pairs(F)  # ascending
        missing = standard.dimension - len(values)
        if largest:
            zeros = min(missing, max(0, k - len(values)))
            U = U[:, ::-1]
            kept = U[:, : min(k, len(values))]
        else:
            zeros = min(missing, k)
            kept = U[:, : k - zeros]
        hstack = namespace(U).hstack
        null = _orthogonal_to(hstack([standard.Q, U]), zeros, rng)
        return hstack([kept, null])

    def _range_pairs(self, F: Gram) -> tuple[Array, Array]:
        """Return all pairs of F Fᵀ with a nonzero eigenvalue, ascending."""
        if F.explicit:
            # F = QR, so F Fᵀ = Q (R Rᵀ) Qᵀ: orthonormal vectors without a division by small σ.
            basis, R = _factorized(F.factor)
            values, W = _every_pair(R @ R.T)
        else:
            values, W = _every_pair(F.small_matrix())
        kept = values > (self.null_tolerance if F.explicit else self.implicit_null_tolerance) * max(
            values[-1], 0.0
        )
        values, W = values[kept], W[:, like(np.flatnonzero(kept), W)]
        vectors = basis @ W if F.explicit else F.times_factor(W) / like(np.sqrt(values), W)
        return values, vectors


def dense_basis(standard: StandardProblem, k: int) -> Array:
    """Return k eigenvectors of the dense operator in the orthogonal complement of Q.

    An orthogonal matrix H maps the first q axes to range(Q), so the trailing block of HᵀAH is the
    compressed operator. Adding τQQᵀ with a large τ would have a rounding error of eps·τ.

    Parameters
    ----------
    standard : StandardProblem
        The problem in standard form.
    k : int
        Number of eigenvectors, at most ``standard.dimension``.

    Returns
    -------
    array of shape (n, k)
        Orthonormal eigenvectors from the wanted end of the spectrum.

    See Also
    --------
    Dense : the solver that uses it.
    PairSolver : solvers of your own may fall back on this function.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import SpectralProblem, dense_basis
    >>> problem = SpectralProblem(np.diag([4.0, 1.0, 3.0]), end="largest", deflate=np.eye(3)[:, 0])
    >>> np.abs(dense_basis(problem.standard(), 1)).round(6).ravel() + 0.0  # the first is excluded
    array([0., 0., 1.])
    """
    A, Q = standard.toarray(), standard.Q
    q = Q.shape[1]
    if q == 0:
        return _extreme(A, standard.end, k)[1]
    U, K = _block_reflection(Q)
    inner = _extreme(_compressed(A, U, K), standard.end, k)[1]
    # H applied to [0, inner].
    vectors = -U @ (K @ (U[q:].T @ inner))
    vectors[q:] += inner
    return vectors


def _block_reflection(Q: Array) -> tuple[Array, Array]:
    """Return U and K of an orthogonal H = I − U K Uᵀ that maps the first q axes to range(Q).

    U = Q − [S, 0] and K = (I − Q₁ᵀS)⁻¹, where Q₁ are the first q rows, for any orthogonal S
    (Schreiber and Parlett 1988). With S the negative polar factor of Q₁, the inverse has condition
    number two at most.
    """
    q = Q.shape[1]
    first = to_numpy(Q[:q])
    left, _, right = svd(first, check_finite=False)
    S = -left @ right
    U = Q.copy()
    U[:q] -= like(S, Q)
    return U, like(solve(np.eye(q) - first.T @ S, np.eye(q), check_finite=False), Q)


def _compressed(A: Array, U: Array, K: Array) -> Array:
    """Return the trailing block of HᵀAH = A − U Zᵀ − Z Uᵀ, in the memory of A."""
    q = U.shape[1]
    Y = A @ (U @ K)
    Z = Y - U @ (K.T @ (U.T @ Y)) / 2
    inner = A[q:, q:]
    inner -= U[q:] @ Z[q:].T
    inner -= Z[q:] @ U[q:].T
    return inner


def _extreme(A: Array, end: SpectrumEnd, k: int) -> tuple[Array, Array]:
    """Return k pairs of a dense matrix from one end of its spectrum, the values on the host."""
    n = A.shape[0]
    first = 0 if end is SpectrumEnd.SMALLEST else n - k
    if not on_cpu(A):
        values, vectors = _every_pair(A)
        return values[first : first + k], vectors[:, first : first + k]
    return eigh(A, subset_by_index=(first, first + k - 1), check_finite=False)


def _every_pair(A: Array) -> tuple[Array, Array]:
    """Return all pairs of a dense matrix, ascending, the values on the host."""
    if on_cpu(A):
        return eigh(A)
    values, vectors = namespace(A).linalg.eigh(A)
    return to_numpy(values), vectors


def _factorized(F: Array) -> tuple[Array, Array]:
    """The factors of a QR decomposition."""
    if on_cpu(F):
        return qr(F, mode="economic", check_finite=False)
    return namespace(F).linalg.qr(F)


def _orthogonal_to(U: Array, count: int, rng: np.random.Generator) -> Array:
    """Return orthonormal columns orthogonal to the orthonormal columns of U."""
    X: Array = like(rng.standard_normal((U.shape[0], count)), U)
    for _ in range(2):
        X = orthonormal_basis(X - U @ (U.T @ X))
    return X
