"""The operator F Fᵀ, stored as its factor F."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import largest_modulus, row_blocks


@dataclass(frozen=True, eq=False)
class Gram:
    """The n × n positive semidefinite operator F Fᵀ of a factor F with n rows.

    No n × n matrix is formed: solvers use FᵀF if F has fewer columns than rows. To center F,
    deflate the constant vector; F is then used as (I − 11ᵀ/n) F without a centered copy.

    Parameters
    ----------
    factor : ndarray, sparse array or LinearOperator of shape (n, m)
        The factor F. An implicit operator must have both products, F x and Fᵀ y.
    single : bool, default=False
        Whether FᵀF is computed in single precision, which takes half the time. The error of its
        eigenvectors is of the size of its rounding errors divided by the gaps.

    See Also
    --------
    SpectralProblem : takes it as operator.
    manifoldry.PCA, manifoldry.ClassicalMDS : methods that decompose a Gram operator.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import Gram
    >>> K = Gram(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> K.shape
    (3, 3)
    >>> K @ np.array([1.0, 1.0, 1.0])
    array([1., 4., 0.])
    """

    factor: Matrix
    single: bool = False

    def __post_init__(self) -> None:
        F = self.factor
        if not isinstance(F, LinearOperator):
            F = F.astype(np.float64) if sp.issparse(F) else np.asarray(F, dtype=np.float64)
        if len(F.shape) != 2:
            raise ValueError(f"a Gram factor must have two dimensions, not shape {F.shape}")
        object.__setattr__(self, "factor", F)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of F Fᵀ."""
        return self.factor.shape[0], self.factor.shape[0]

    @property
    def small_side(self) -> int:
        """Order of the smaller of F Fᵀ and FᵀF: the size of the eigenproblem to solve."""
        return int(min(self.factor.shape))

    @property
    def explicit(self) -> bool:
        """Whether F is a dense array, so that it has a QR factorization."""
        return isinstance(self.factor, np.ndarray)

    def __matmul__(self, X: Array) -> Array:
        return self.times_factor(self.times_transpose(X))

    def times_factor(self, W: Array) -> Array:
        """Return F W.

        Parameters
        ----------
        W : array of shape (m,) or (m, k)
            A vector or several columns.

        Returns
        -------
        array of shape (n,) or (n, k)
            The product.
        """
        F = self.factor
        # For few columns BLAS computes the transpose of the product in less time.
        return np.asarray((W.T @ F.T).T if isinstance(F, np.ndarray) else F @ W)

    def times_transpose(self, U: Array) -> Array:
        """Return Fᵀ U.

        Parameters
        ----------
        U : array of shape (n,) or (n, k)
            A vector or several columns.

        Returns
        -------
        array of shape (m,) or (m, k)
            The product.
        """
        F = self.factor
        if isinstance(F, np.ndarray):
            return np.asarray((U.T @ F).T)
        return np.asarray((F.H if isinstance(F, LinearOperator) else F.T) @ U)

    def scaled(self, s: Array) -> Gram:
        """Return the Gram operator of diag(s) F, which is diag(s) F Fᵀ diag(s).

        Parameters
        ----------
        s : array of shape (n,)
            Factors of the rows.

        Returns
        -------
        Gram
            The operator.
        """
        F = self.factor
        if sp.issparse(F):
            return Gram(sp.diags_array(s) @ F)
        if isinstance(F, np.ndarray):
            return Gram(s[:, None] * F, self.single)
        return Gram(_wrapped(F, lambda Y: s[:, None] * Y))

    def projected(self, Q: Array) -> Gram:
        """Return the Gram operator of (I − QQᵀ) F, for Q with orthonormal columns.

        It is this one if F is orthogonal to Q up to rounding, as centered data are to constants.

        Parameters
        ----------
        Q : array of shape (n, q)
            Orthonormal columns.

        Returns
        -------
        Gram
            The operator.
        """
        F = self.factor
        if Q.shape[1] == 0:
            return self
        if isinstance(F, np.ndarray):
            inside = Q.T @ F
            size = float(np.sqrt(np.vdot(F, F) / max(1, F.size)))  # of an entry
            rounding = np.finfo(np.float64).eps * len(F) * size
            if largest_modulus(inside) <= rounding:
                return self
            return Gram(F - Q @ inside, self.single)
        return Gram(_wrapped(self.factor, lambda Y: Y - Q @ (Q.T @ Y)))

    @cached_property
    def _small_matrix(self) -> Array:
        F = self.factor
        if not self.single:
            return np.asarray(F.T @ F)
        total = np.zeros((F.shape[1], F.shape[1]))
        # Blocks are converted and multiplied while they are in the cache.
        for rows in row_blocks(len(F), F.shape[1], budget=2**20):
            part = F[rows].astype(np.float32)
            total += part.T @ part
        return total

    def small_matrix(self, block: int = 256) -> Array:
        """Return FᵀF.

        Parameters
        ----------
        block : int, default=256
            Number of columns computed at a time if the factor is implicit.

        Returns
        -------
        array of shape (m, m)
            The matrix.
        """
        F, m = self.factor, self.factor.shape[1]
        if isinstance(F, np.ndarray):
            return self._small_matrix
        if sp.issparse(F):
            return np.asarray((F.T @ F).todense())
        out = np.empty((m, m))
        for start in range(0, m, block):
            columns = np.eye(m, min(block, m - start), -start)
            out[:, start : start + block] = F.H @ (F @ columns)
        return (out + out.T) / 2

    def toarray(self) -> Array:
        """Return F Fᵀ as a dense array; only for small n.

        Returns
        -------
        array of shape (n, n)
            The matrix.
        """
        F = self.factor
        if sp.issparse(F):
            return np.asarray((F @ F.T).toarray())
        dense = F
        if not isinstance(dense, np.ndarray):
            dense = dense @ np.eye(F.shape[1])
        return np.asarray(dense @ dense.T)


def _wrapped(F: Matrix, symmetric_map: Matrix) -> LinearOperator:
    """Return S F, for a symmetric n × n map S given as a function of (n, b) blocks."""
    F = F if isinstance(F, LinearOperator) else _as_operator(F)

    def forward(X: Array) -> Array:
        return symmetric_map(F @ X.reshape(F.shape[1], -1)).reshape(F.shape[0], *X.shape[1:])

    def backward(Y: Array) -> Array:
        mapped = symmetric_map(Y.reshape(F.shape[0], -1))
        return (F.H @ mapped).reshape(F.shape[1], *Y.shape[1:])

    return LinearOperator(
        F.shape, matvec=forward, rmatvec=backward, matmat=forward, rmatmat=backward, dtype=float
    )


def _as_operator(F: Matrix) -> LinearOperator:
    """Return a sparse factor as a LinearOperator."""
    Ft = F.T.tocsr()
    return LinearOperator(
        F.shape,
        matvec=F.__matmul__,
        rmatvec=Ft.__matmul__,
        matmat=F.__matmul__,
        rmatmat=Ft.__matmul__,
        dtype=float,
    )
