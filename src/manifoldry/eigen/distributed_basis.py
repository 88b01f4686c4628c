"""The basis of block iterations whose rows are on workers, and Rayleigh–Ritz steps in it.

All that is known of the basis on the client are its inner products, matrices of a few dozen rows.
They are sums over parts, added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manifoldry.util.typing import Array, IntArray

# Directions whose squared sine of the angle to those before them is smaller are dropped. Errors of
# their Rayleigh quotients are rounding errors divided by it, which must not reach eigenvalues.
_INDEPENDENT = 1e-5


@dataclass(frozen=True, eq=False)
class RitzStep:
    """The next iterates and directions, as combinations of the columns of a basis.

    Parameters
    ----------
    iterates : array of shape (columns, b)
        Coefficients of orthonormal iterates.
    directions : array of shape (columns, at most b)
        Coefficients of orthonormal directions, orthogonal to the iterates.
    values : array of shape (b,)
        The Ritz values of the iterates, ascending.
    active : array of int
        The iterates that have not converged.
    """

    iterates: Array
    directions: Array
    values: Array
    active: IntArray

    @classmethod
    def of(cls, gram: InnerProducts, b: int, active: IntArray | None = None) -> RitzStep:
        """Return the step to the b smallest Ritz values in the span of a basis.

        Parameters
        ----------
        gram : InnerProducts
            The inner products of the basis.
        b : int
            Largest number of iterates.
        active : array of int, optional
            The iterates that have not converged; by default all.

        Returns
        -------
        RitzStep
            The step.
        """
        scale = 1 / np.sqrt(np.maximum(np.diag(gram.M), np.finfo(float).tiny))
        M, H = (scale[:, None] * (each + each.T) / 2 * scale for each in (gram.M, gram.H))
        T, ends = orthonormal_coefficients(M, gram.sizes)
        T, old = T[:, ends[0] :], ends[1] - ends[0]
        values, C = np.linalg.eigh(T.T @ H @ T)
        C = C[:, :b]
        active = np.arange(C.shape[1]) if active is None else active
        directions = _directions(C, C[:, active], old) if old else C[:, :0]
        T = scale[:, None] * T
        return cls(T @ C, T @ directions, values[:b], active)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of known eigenvectors V, iterates X and directions P, with their products.

    Parameters
    ----------
    V, AV : array of shape (rows, t)
        Known eigenvectors.
    X, AX : array of shape (rows, b)
        Iterates.
    P, AP : array of shape (rows, p)
        Directions.
    active : array of shape (rows, a)
        Residuals AX − Xθ of those iterates that have not converged.
    squares : array of shape (b,)
        Sums of squares of all residuals.
    """

    V: Array
    AV: Array
    X: Array
    AX: Array
    P: Array
    AP: Array
    active: Array
    squares: Array

    @classmethod
    def of(cls, V: Array, AV: Array) -> Block:
        """Return the block of the known eigenvectors."""
        none = V[:, :0]
        return cls(V, AV, none, none, none, none, none, np.empty(0))

    def advanced(self, W: Array, AW: Array, step: RitzStep) -> Block:
        """Return the block after a step in the span of its basis and W."""
        S, AS = self.basis(W), self.products(AW)
        X, AX = S @ step.iterates, AS @ step.iterates
        P, AP = S @ step.directions, AS @ step.directions
        R = AX - X * step.values
        squares = np.einsum("ij,ij->j", R, R)
        return replace(
            self, X=X, AX=AX, P=P, AP=AP, active=R[:, step.active].copy(), squares=squares
        )

    @property
    def found(self) -> Array:
        """The known eigenvectors and the iterates."""
        return np.hstack([self.V, self.X])

    @property
    def products_of_found(self) -> Array:
        """The products with them."""
        return np.hstack([self.AV, self.AX])

    def basis(self, W: Array) -> Array:
        """Return the columns V, X, P and W."""
        return np.hstack([self.V, self.X, self.P, W])

    def products(self, AW: Array) -> Array:
        """Return the products with these columns."""
        return np.hstack([self.AV, self.AX, self.AP, AW])

    def __sizeof__(self) -> int:
        return sum(each.nbytes for each in vars(self).values())


@dataclass(frozen=True, eq=False)
class InnerProducts:
    """Inner products of a basis.

    Parameters
    ----------
    M, H : array of shape (columns, columns)
        Those of the basis with itself and with its products.
    squares : array of shape (b,)
        Sums of squares of the residuals of the iterates.
    sizes : tuple of int
        Numbers of known eigenvectors, iterates, directions and other columns.
    """

    M: Array
    H: Array
    squares: Array
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, block: Block, W: Array, AW: Array) -> InnerProducts:
        """Return the contribution of a part."""
        S = block.basis(W)
        sizes = tuple(each.shape[1] for each in (block.V, block.X, block.P, W))
        return cls(S.T @ S, S.T @ block.products(AW), block.squares, sizes)

    @classmethod
    def sum(cls, grams: list[InnerProducts]) -> InnerProducts:
        """Return the sum, in the order of the list."""
        total = grams[0]
        for each in grams[1:]:
            total = replace(
                total,
                M=total.M + each.M,
                H=total.H + each.H,
                squares=total.squares + each.squares,
            )
        return total

    @property
    def residuals(self) -> Array:
        """Lengths of the residuals of the iterates."""
        return np.sqrt(self.squares)


def orthonormal_coefficients(M: Array, sizes: Sequence[int]) -> tuple[Array, list[int]]:
    """Return coefficients of an orthonormal basis, given the inner products of columns.

    Columns come in groups of the given sizes. Each is orthogonalized against those before it, and
    directions that depend on these are dropped.

    Returns
    -------
    coefficients : array of shape (columns, rank)
        The basis.
    ends : list of int
        Where each group ends in it.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen.distributed_basis import orthonormal_coefficients
    >>> S = np.array([[1.0, 2.0, 1.0], [1.0, 2.0, 0.0]])  # the first two are dependent
    >>> T, ends = orthonormal_coefficients(S.T @ S, (1, 2))
    >>> np.allclose(T.T @ S.T @ S @ T, np.eye(2)), ends
    (True, [1, 2])
    """
    T: Array = np.empty((len(M), 0))
    ends, at = [], 0
    for size in sizes:
        F = np.eye(len(M))[:, at : at + size]
        for least in (_INDEPENDENT, 0.5):  # the second pass restores orthogonality
            F = F - T @ (T.T @ (M @ F))
            values, U = np.linalg.eigh(F.T @ M @ F)
            F = F @ (U[:, values > least] / np.sqrt(values[values > least]))
        T = np.hstack([T, F])
        ends.append(T.shape[1])
        at += size
    return T, ends


def _directions(C: Array, active: Array, old: int) -> Array:
    """The parts of active iterates outside the old ones, orthonormal and orthogonal to all."""
    D = active.copy()
    D[:old] = 0
    for _ in range(2):
        D = D - C @ (C.T @ D)
        U, lengths, _ = np.linalg.svd(D, full_matrices=False)
        D = U[:, lengths > 1e-12]
    return D
