"""Operators of eigenproblems in the memory of a device.

A solver that uses only products, projections and small matrices runs on them unchanged: they take
arrays of the device, and return such.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from manifoldry.device import Device, current_device, device_of
from manifoldry.device.primitives import DeviceMatrix
from manifoldry.eigen.gram import Gram
from manifoldry.util.arrays import like
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, Matrix

if TYPE_CHECKING:
    from manifoldry.eigen.problem import SpectralProblem

LEAST_ENTRIES = 2**15
"""Entries of an operator below which launching kernels takes longer than the computation."""

_FEWER_FEATURES = "use fewer features, or pass device='cpu'"
FEWER_POINTS = "fit a sample of the points and transform the others, or pass device='cpu'"


class DeviceOperator(ABC):
    """A symmetric matrix, or a factor of one, in the memory of a device.

    Parameters
    ----------
    device : Device
        The device.
    shape : (int, int)
        Its shape.
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, device: Device, shape: tuple[int, int]) -> None:
        self.device, self.shape = device, shape

    def __matmul__(self, X: Array) -> Array:
        """The product with an array (n,) or (n, k), in the memory that has the array."""
        return like(self.product(self.device.array(X, keep=False)), X)

    @abstractmethod
    def product(self, X: Array) -> Array:
        """The product with an array of the device."""

    @abstractmethod
    def diagonal(self) -> Array:
        """The diagonal, on the device."""

    @abstractmethod
    def toarray(self) -> Array:
        """A new dense array of the device."""

    @abstractmethod
    def scaled(self, s: Array) -> DeviceOperator:
        """diag(s) A diag(s), for `s` on the device."""


class SparseOnDevice(DeviceOperator):
    """A sparse matrix in compressed rows; `transposed` are the rows of Aᵀ, by default A."""

    def __init__(
        self, device: Device, rows: DeviceMatrix, transposed: DeviceMatrix | None = None
    ) -> None:
        super().__init__(device, (rows.n_rows, rows.n_columns))
        self._rows, self._transposed = rows, transposed

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return int(self._rows.data.shape[0])

    @property
    def T(self) -> SparseOnDevice:  # noqa: N802 (as of arrays)
        """The transpose."""
        if self._transposed is None:
            return self
        return SparseOnDevice(self.device, self._transposed, self._rows)

    def product(self, X: Array) -> Array:
        columns = X if X.ndim == 2 else X[:, None]
        found = self.device.product(self._rows, columns.astype(float, copy=False))
        return found if X.ndim == 2 else found[:, 0]

    @cached_property
    def _row_numbers(self) -> Array:
        return self._rows.row_numbers(self.device.xp)

    def diagonal(self) -> Array:
        xp = self.device.xp
        own = xp.where(self._row_numbers == self._rows.indices, self._rows.data, 0.0)
        numbers = xp.arange(self.nnz, dtype=np.int32)
        sums = DeviceMatrix(self._rows.indptr, numbers, xp.ones(self.nnz), self.nnz)
        return self.device.product(sums, own[:, None])[:, 0]

    def toarray(self) -> Array:
        dense = self.device.xp.zeros(self.shape)
        dense[self._row_numbers, self._rows.indices] = self._rows.data
        return dense

    def scaled(self, s: Array) -> SparseOnDevice:
        # The product of both factors is the same number on both sides of the diagonal.
        data = self._rows.data * (s[self._row_numbers] * s[self._rows.indices])
        return SparseOnDevice(self.device, self._rows._replace(data=data))


class DenseOnDevice(DeviceOperator):
    """A dense matrix."""

    def __init__(self, device: Device, entries: Array) -> None:
        super().__init__(device, entries.shape)
        self.entries = entries

    def product(self, X: Array) -> Array:
        return self.entries @ X

    def diagonal(self) -> Array:
        return self.device.xp.diagonal(self.entries).copy()

    def toarray(self) -> Array:
        return self.entries.copy()

    def squared_norm(self) -> float:
        """The sum of the squared entries."""
        entries = self.entries.ravel()
        return float(entries @ entries)

    def scaled(self, s: Array) -> DenseOnDevice:
        return DenseOnDevice(self.device, self.entries * s[:, None] * s)


class GramOnDevice(Gram):
    """The operator F Fᵀ of a factor on a device: an array of it, or a :class:`SparseOnDevice`."""

    def __post_init__(self) -> None:
        """Keep the factor as it is."""

    @property
    def device(self) -> Device:
        """The device."""
        sparse = isinstance(self.factor, SparseOnDevice)
        found = self.factor.device if sparse else device_of(self.factor)
        assert found is not None
        return found

    @property
    def explicit(self) -> bool:
        return not isinstance(self.factor, SparseOnDevice)

    def times_factor(self, W: Array) -> Array:
        return like(self.factor @ self.device.array(W, keep=False), W)

    def times_transpose(self, U: Array) -> Array:
        return like(self.factor.T @ self.device.array(U, keep=False), U)

    def scaled(self, s: Array) -> GramOnDevice:
        return GramOnDevice(s[:, None] * self._dense_factor)

    def projected(self, Q: Array) -> GramOnDevice:
        if Q.shape[1] == 0:
            return self
        F = self._dense_factor
        inside = Q.T @ F
        size = float((F**2).mean()) ** 0.5  # of an entry
        if self.explicit and float(abs(inside).max()) <= np.finfo(float).eps * len(F) * size:
            return self
        return GramOnDevice(F - Q @ inside)

    def small_matrix(self, block: int = 256) -> Array:
        return self._products

    @cached_property
    def _products(self) -> Array:
        n, m = self.factor.shape
        self.device.plan(8.0 * m * m, f"a matrix of the products of {m} features", _FEWER_FEATURES)
        dense = self._dense_factor
        return (dense if m > n else self.factor).T @ dense

    def toarray(self) -> Array:
        n, F = self.shape[0], self._dense_factor
        self.device.plan(8.0 * n * n, f"a matrix of the products of {n} rows", FEWER_POINTS)
        return F @ F.T

    @property
    def _dense_factor(self) -> Array:
        if self.explicit:
            return self.factor
        n, m = self.factor.shape
        what = f"a dense array of the sparse data, {n} rows and {m} features,"
        self.device.plan(8.0 * n * m, what, FEWER_POINTS)
        return self.factor.toarray()


def solving_device(problem: SpectralProblem) -> Device | None:
    """The device on which a problem is solved; None for the CPU."""
    A, device = problem.operator, current_device()
    if isinstance(A, DeviceOperator | GramOnDevice):
        return A.device
    if device is None or _n_entries(A) < LEAST_ENTRIES:
        return None
    given = A.factor if isinstance(A, Gram) else A
    if isinstance(given, LinearOperator) and not hasattr(given, "on_device"):
        why = "its operator is a function of arrays of numpy"
        device.runs_on_host("an eigenproblem", why)
        return None
    return device


def _n_entries(A: Matrix) -> float:
    if isinstance(A, Gram):
        A = A.factor
    return A.nnz if hasattr(A, "nnz") else float(A.shape[0]) * A.shape[1]


def operator_on(device: Device, A: Any) -> Any:
    """The operator of a problem, in the memory of a device."""
    if isinstance(A, DeviceOperator | GramOnDevice):
        return A
    if isinstance(A, Gram):
        return GramOnDevice(_factor_on(device, A.factor))
    if sp.issparse(A):
        return SparseOnDevice(device, device.rows(A, np.float64))
    if hasattr(A, "on_device"):
        return A.on_device(device)
    return dense_on(device, A)


def dense_on(device: Device, A: Array) -> DenseOnDevice:
    """A dense matrix on a device."""
    if device_of(A) is None:
        device.plan(8.0 * A.size, f"a matrix of {len(A)} rows", FEWER_POINTS)
    return DenseOnDevice(device, device.array(A, np.float64))


def _factor_on(device: Device, F: Matrix) -> Any:
    if not sp.issparse(F):
        return device.array(F, np.float64)
    what = f"a copy of the sparse data of {F.shape[0]} rows"
    device.plan(24.0 * (F.nnz + sum(F.shape)), what, FEWER_POINTS)
    by_rows, by_columns = sp.csr_array(F), sp.csr_array(F.T)
    rows, columns = (device.rows(part, np.float64) for part in (by_rows, by_columns))
    return SparseOnDevice(device, rows, columns)
