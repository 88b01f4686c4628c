"""The matrix of classical scaling as an operator on the distances, which are not copied."""

import numpy as np
from scipy.sparse.linalg import LinearOperator

from manifoldry.device import Device
from manifoldry.eigen.on_device import FEWER_POINTS, DenseOnDevice
from manifoldry.spectral.on_device import center
from manifoldry.util.threads import map_threads, run_on_rows
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks


class CenteredSquares(LinearOperator):
    """The doubly centered matrix K = −½·(d/unit)² of a symmetric matrix of distances d.

    Each product squares the distances again, in double precision. That takes no longer than reading
    a matrix of squares from memory.

    Parameters
    ----------
    D : array of shape (n, n)
        Symmetric matrix of distances, in single or double precision.
    unit : float
        Unit of length, a power of two.

    Attributes
    ----------
    column_means : array of shape (n,)
        Means of the columns of −½·(d/unit)², before centering.
    grand_mean : float
        Their mean.

    Examples
    --------
    >>> import numpy as np
    >>> D = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> CenteredSquares(D, unit=1.0) @ np.eye(2)
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    def __init__(self, D: Array, unit: float) -> None:
        super().__init__(dtype=np.dtype(np.float64), shape=D.shape)
        self.D, self.unit = D, unit
        means = self._uncentered(np.full((len(D), 1), 1 / len(D)))[:, 0]
        self.column_means, self.grand_mean = means, float(means.mean())

    def _matmat(self, X: Array) -> Array:
        sums = X.sum(axis=0)
        constant = self.grand_mean * sums - self.column_means @ X
        return self._uncentered(X) - np.outer(self.column_means, sums) + constant

    def _adjoint(self) -> "CenteredSquares":
        return self

    def _uncentered(self, X: Array) -> Array:
        """Return −½·(d/unit)² X."""
        from manifoldry.spectral.compiled import products_with_squares

        columns, out = np.ascontiguousarray(-0.5 * X.T), np.empty(X.shape)
        run_on_rows(products_with_squares, len(out), self.D, 1 / self.unit, columns, out)
        return out

    def toarray(self) -> Array:
        """Return K as a new array."""
        means, K = self.column_means, np.empty(self.shape)

        def fill(block: slice) -> None:
            K[block] = -0.5 * self._squares(block) - means[block, None] - means + self.grand_mean

        map_threads(fill, self._blocks)
        return K

    def on_device(self, device: Device) -> DenseOnDevice:
        """Return K in the memory of a device."""
        n = len(self.D)
        needed = n * n * (8.0 + self.D.itemsize)
        device.plan(needed, f"a matrix of the distances of {n} points", FEWER_POINTS)
        K = device.array(self.D).astype(float) / self.unit
        K *= K
        K *= -0.5
        return DenseOnDevice(device, center(K, device.array(self.column_means), self.grand_mean))

    @property
    def _blocks(self) -> list[slice]:
        return row_blocks(len(self.D), len(self.D), budget=2**17)

    def _squares(self, block: slice) -> Array:
        return np.square(np.multiply(self.D[block], 1 / self.unit, dtype=np.float64))

    def squared_norm(self) -> float:
        """Return the sum of the squared entries of K."""

        def total(block: slice) -> float:
            squares = self._squares(block)
            return float(np.square(squares, out=squares).sum())

        n, means = len(self.D), self.column_means
        uncentered = sum(map_threads(total, self._blocks)) / 4
        return float(uncentered - 2 * n * (means @ means) + (n * self.grand_mean) ** 2)
