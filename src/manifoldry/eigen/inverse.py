"""Inverse of a shifted definite matrix, optionally on a constrained subspace; fill-in estimates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from manifoldry.eigen.cholesky import NotDefiniteError, SparseCholesky
from manifoldry.eigen.on_device import DeviceOperator
from manifoldry.eigen.standard import Product, SpectrumEnd
from manifoldry.util.arrays import like, namespace, to_numpy
from manifoldry.util.typing import Array, IntArray, Matrix

Solve = Callable[[Array], Array]

# Factors of matrices with a larger fraction of nonzeros have few zeros and are computed as dense.
NEARLY_DENSE = 0.1
# Above this order sparse matrices are factorized by our own, compiled, functions.
CHOLESKY_FROM = 20_000
# Most entries of such a matrix, since the indices of these functions have 32 bits.
MOST_ENTRIES = 2**31 - 1


class ShiftedInverse:
    """Inverse of M = ±(A − σI), which is positive definite if σ is beyond the wanted end.

    Parameters
    ----------
    A : ndarray, sparse array or DeviceOperator of shape (n, n)
        A symmetric matrix. On a device its factor is always dense.
    shift : float
        The shift σ. NotDefiniteError is raised if A has eigenvalues beyond it.
    end : {"smallest", "largest"}
        Whether σ should lie below or above the spectrum.
    skip_pivot_check : bool
        Do not check the signs of the pivots of a factor by SuperLU, which requires a copy of it.
    cholesky_from : int
        Above this order, sparse matrices are factorized by :class:`SparseCholesky`, which is
        faster but takes seconds to compile in a new installation, else by SuperLU.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen.inverse import ShiftedInverse
    >>> ShiftedInverse(np.diag([1.0, 3.0]), -1.0, "smallest").solve(np.ones(2))
    array([0.5 , 0.25])
    """

    def __init__(
        self,
        A: Matrix,
        shift: float,
        end: str,
        *,
        skip_pivot_check: bool = False,
        cholesky_from: int = CHOLESKY_FROM,
    ) -> None:
        sign = -SpectrumEnd(end).sign
        n = A.shape[0]
        self._solve: Solve
        self._factor: Matrix = None  # if it is sparse
        if isinstance(A, DeviceOperator):
            self._factorize_on_device(A, sign, shift)
            return
        if sp.issparse(A) and A.nnz > NEARLY_DENSE * n**2:
            A = A.toarray()
        if sp.issparse(A):
            M = _with_diagonal(sign * A, -sign * shift)
            self.M = M.T  # the same, by rows
            factor: Matrix = (
                SparseCholesky(self.M)
                if n > cholesky_from and M.nnz <= MOST_ENTRIES
                else _definite_lu(M, skip_pivot_check=skip_pivot_check)
            )
            self._solve = lambda X: factor.solve(X)
            self._factor = factor
        else:
            self.M = sign * A  # a copy
            self.M[np.diag_indices(n)] -= sign * shift
            self._solve = partial(cho_solve, _cholesky(self.M), check_finite=False)

    def _factorize_on_device(self, A: DeviceOperator, sign: float, shift: float) -> None:
        device, diagonal = A.device, A.device.xp.arange(A.shape[0])
        self.M = A.toarray()
        self.M *= sign
        self.M[diagonal, diagonal] -= sign * shift
        try:
            R = device.cholesky(self.M)
        except np.linalg.LinAlgError as error:
            raise NotDefiniteError(str(error)) from error

        def solve(X: Array) -> Array:
            columns = X if X.ndim == 2 else X[:, None]
            half = device.solve_triangular(R, columns, transposed=True)
            return device.solve_triangular(R, half).reshape(X.shape)

        self._solve = solve

    @property
    def size(self) -> int:
        """Number of stored entries of the factor."""
        if self._factor is None:
            return int(self.M.shape[0]) ** 2
        sparse = self._factor
        return int(sparse.size if isinstance(sparse, SparseCholesky) else sparse.nnz)

    def solve(self, X: Array) -> Array:
        """Return M⁻¹ X."""
        return self._solve(X)

    def constrained(
        self, Q: Array, n_deflated: int = 0, *, tolerance: float = 1e-13, max_condition: float = 1e4
    ) -> Product:
        """Return the inverse of P M P on range(P), P = I − QQᵀ.

        For an arbitrary Q this is M⁻¹ − M⁻¹Q (QᵀM⁻¹Q)⁻¹ QᵀM⁻¹. If range(Q) is invariant, it equals
        P M⁻¹ P, which is cheaper and more accurate. The first `n_deflated` columns of Q are
        declared to be eigenvectors; P M⁻¹ P is used for them if they span an invariant subspace.

        A subspace counts as invariant if ‖P M Q‖ is at most `tolerance` times the largest entry
        of M. If the condition number of QᵀM⁻¹Q exceeds `max_condition`, each solve is refined.
        """
        if self._is_invariant(Q, tolerance):
            return self._operator(self._deflated(Q))
        D = Q[:, :n_deflated]
        if not self._is_invariant(D, tolerance):
            D = D[:, :0]
        return self._operator(self._bordered(D, Q[:, D.shape[1] :], max_condition))

    def _is_invariant(self, Q: Array, tolerance: float) -> bool:
        MQ = self.M @ Q
        outside = namespace(Q).linalg.norm(MQ - Q @ (Q.T @ MQ))
        return bool(outside <= tolerance * abs(self.M).max())

    def _deflated(self, D: Array) -> Solve:
        """Return the solver on the orthogonal complement of the invariant subspace range(D)."""
        if D.shape[1] == 0:
            return self.solve
        return lambda X: _project_out(D, self.solve(_project_out(D, X)))

    def _bordered(self, D: Array, C: Array, max_condition: float) -> Solve:
        """Return the solver for constraints C that are not invariant and D that are."""
        solve = self._deflated(D)
        W = solve(C)
        S = to_numpy(C.T @ W)
        S = (S + S.T) / 2
        factor = cho_factor(S, check_finite=False)

        def solve_once(X: Array) -> Array:
            Y = solve(_project_out(C, X))
            inner = cho_solve(factor, to_numpy(C.T @ Y), check_finite=False)
            return _project_out(C, Y - W @ like(inner, C))

        def solve_refined(X: Array) -> Array:
            Y = solve_once(X)
            return Y + solve_once(X - self.M @ Y)

        # A null vector of A outside range([D, C]) makes both terms of `solve_once` huge, and they
        # cancel. One step of iterative refinement restores the accuracy (path, n = 400: the
        # residual falls from 3e-6 to 3e-11).
        spread = np.linalg.eigvalsh(S)[[0, -1]]
        return solve_refined if spread[1] > max_condition * spread[0] else solve_once

    def _operator(self, product: Solve) -> Product:
        return Product(self.M.shape[0], product)


def estimated_fill(
    A: Matrix, *, ball: int = 8000, small_ball: int = 500, smallest_ball: int = 100
) -> float:
    """Estimate the number of nonzeros of the sparse factor of A without factorizing A.

    Two nested balls of the graph of A are factorized and the growth is extrapolated. On nearest
    neighbor graphs in 2 to 6 dimensions the estimate was within 50 % of the true value; on rolls
    of 10⁵ points it was a third too large.

    The larger ball has min(`ball`, max(`small_ball`, n/10), max(`smallest_ball`, n/4)) vertices,
    so that the estimate is cheap compared with the factorization.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.eigen.inverse import estimated_fill
    >>> A = sp.diags_array([np.ones(9), np.full(10, 3.0), np.ones(9)], offsets=[-1, 0, 1])
    >>> estimated_fill(A.tocsr())
    19.0
    """
    n = A.shape[0]
    size = min(ball, max(small_ball, n // 10), max(smallest_ball, n // 4))
    order = _ball(A, n // 2, size)
    if len(order) < min(size, n):  # a small component: use the largest instead
        labels = connected_components(A, directed=False)[1]
        order = _ball(A, int(np.argmax(labels == np.bincount(labels).argmax())), size)
    whole = _fill(A, order)
    if len(order) < size:  # all of the largest component: scale up as an upper bound
        return whole * n / len(order)
    growth = np.log(whole / _fill(A, order[: size // 4])) / np.log(4)
    return float(whole * (n / size) ** growth)


def growth_dimension(A: Matrix, *, ball: int = 2000, n_starts: int = 3) -> float:
    """Estimate the dimension of the graph of A from how balls grow with their radius.

    A ball of radius r has about (r + ½)^d vertices. Balls around `n_starts` evenly spaced rows, of
    `ball` vertices and of half their radius, are counted, and the largest d is returned. With 10
    to 15 neighbors it was 2.1 to 2.3 for rolls, 3.2 to 3.4 for solids and 4.9 for digits.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.eigen.inverse import growth_dimension
    >>> path = sp.diags_array([np.ones(9999), np.ones(9999)], offsets=[-1, 1])
    >>> round(growth_dimension(path.tocsr()), 3)
    1.0
    """
    starts = (2 * np.arange(n_starts) + 1) * A.shape[0] // (2 * n_starts)
    return max(_growth(A, int(start), ball) for start in starts)


def _growth(A: Matrix, start: int, ball: int) -> float:
    sizes = np.cumsum([len(level) for level in _levels(A, start, ball)])
    radius = len(sizes) - 1
    half = radius // 2
    if radius == 0:
        return 0.0
    return float(np.log(sizes[-1] / sizes[half]) / np.log((radius + 0.5) / (half + 0.5)))


def _levels(A: Matrix, start: int, size: int) -> list[IntArray]:
    """Return the vertices at distances 0, 1, … from `start`, until they are at least `size`."""
    levels, count = [np.array([start])], 1
    known = levels[0]
    while len(levels[-1]) and count < size:
        first, counts = A.indptr[levels[-1]], np.diff(A.indptr)[levels[-1]]
        skipped = np.repeat(first - np.cumsum(counts) + counts, counts)
        reached = np.unique(A.indices[skipped + np.arange(len(skipped))])
        # A neighbor of a level is in it, in the one before or in the next.
        levels.append(np.setdiff1d(reached, known, assume_unique=True))
        known = np.concatenate([levels[-2], levels[-1]])
        count += len(levels[-1])
    return levels if len(levels[-1]) else levels[:-1]


def _ball(A: Matrix, start: int, size: int) -> IntArray:
    """Return the `size` vertices nearest to `start` in the graph of A (CSR), or its component."""
    return np.concatenate(_levels(A, start, size))[:size]


def _fill(A: Matrix, rows: Matrix) -> float:
    """Return the number of nonzeros of the factor of a principal submatrix."""
    pattern = A[rows][:, rows]
    # Only the pattern matters for the fill-in; the values make the matrix diagonally dominant.
    pattern.data[:] = -1.0
    dominant = _with_diagonal(pattern, np.diff(pattern.indptr) + 2.0)
    return float(_definite_lu(dominant, skip_pivot_check=True).L.nnz)


def _with_diagonal(A: Matrix, added: Array | float) -> sp.csc_array:
    """Return the sum of a symmetric CSR matrix and a diagonal one, as CSC."""
    n = A.shape[0]
    row = np.repeat(np.arange(n), np.diff(A.indptr))
    place = np.flatnonzero(A.indices == row)
    if not np.array_equal(row[place], np.arange(n)):  # missing or repeated
        return sp.csc_array(A + sp.diags_array(np.broadcast_to(np.asarray(added, float), n)))
    data = A.data.copy()
    data[place] += added
    return sp.csc_array((data, A.indices, A.indptr), shape=A.shape)  # rows are columns


def _project_out(Q: Array, X: Array) -> Array:
    """Return (I − QQᵀ) X."""
    return X - Q @ (Q.T @ X)


def _definite_lu(M: Matrix, *, skip_pivot_check: bool = False) -> Matrix:
    """Return the sparse LU factor of M; raise NotDefiniteError if a pivot is not positive."""
    try:
        # Pivots stay on the diagonal: the fill-in follows the symmetric ordering, and by
        # Sylvester's law of inertia the negative pivots count the eigenvalues below the shift.
        options = {"SymmetricMode": True}
        lu = splu(M, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError as error:  # an exactly singular factor
        raise NotDefiniteError(str(error)) from error
    on_diagonal = np.array_equal(lu.perm_r, lu.perm_c)
    if not (on_diagonal and (skip_pivot_check or (lu.U.diagonal() > 0).all())):
        raise NotDefiniteError("the factor has pivots that are not positive")
    return lu


def _cholesky(M: Array) -> tuple[Array, bool]:
    try:
        return cho_factor(M, lower=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        raise NotDefiniteError(str(error)) from error
