"""Products with the penalty on gradients along earlier ones, without its matrix.

With S_i(f) = Σ_k w_ik (F_k − F_i)(f_k − f_i) and a metric M_i for each point, the penalty is
fᵀRf = Σ_i S_i(f)ᵀ M_i S_i(f). Multiplied out, S is a product of the weights with the columns F·f
and f, and so is its transpose: two products of a sparse matrix with a block of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from manifoldry.util.cached import cached_property
from manifoldry.util.threads import run_on_rows
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class PenaltyProducts:
    """The penalty R of earlier coordinates, and the graph Laplacian L, by compiled loops.

    Parameters
    ----------
    W : csr_array of shape (n, n)
        Symmetric weights with zero diagonal, in units of `unit`.
    F : array of shape (n, q)
        The earlier coordinates.
    metrics : array of shape (groups, q, q, size)
        A symmetric matrix for every point, in groups of `size` points; see :meth:`of`.
    unit : float
        Factor of the weights and thus of all results: weights of any scale are then in the range
        of single precision.
    """

    W: sparse.csr_array
    F: Array
    metrics: Array
    unit: float = 1.0

    @classmethod
    def of(
        cls, W: sparse.csr_array, degree: Array, F: Array, frames: Array, *, group: int = 32
    ) -> PenaltyProducts:
        """With the metric FᵀF / degree of the frame F at each point, in the precision of `F`."""
        n, q = F.shape
        unit = power_of_two_scale(W.data)
        W = sparse.csr_array((W.data / unit, W.indices, W.indptr), shape=W.shape)
        metrics = np.zeros((-(-n // group), q, q, group), dtype=F.dtype)
        run_on_rows(kernels().metrics, len(metrics), frames, degree / unit, metrics)
        return cls(W, F, metrics, unit)

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """L X and R X of the columns of X, (n, b)."""
        unit = power_of_two_scale(X)
        X = np.ascontiguousarray(X / unit)
        n, b = X.shape
        graph = (self.W.indptr, self.W.indices, *self._weights, self.F, self._neighbor_sums)
        products = np.empty((n, b * (self.F.shape[1] + 1)), dtype=self.F.dtype)
        components, LX, RX = np.empty_like(products), np.empty((n, b)), np.empty((n, b))
        loops, groups = kernels(), len(self.metrics)
        run_on_rows(loops.times_coordinates, n, self.F, X, products)
        run_on_rows(
            loops.gradient_components, groups, *graph, self.metrics, products, components, LX
        )
        run_on_rows(loops.penalty_rows, n, *graph, components, RX)
        LX *= self.unit * unit
        RX *= self.unit * unit
        return LX, RX

    @property
    def operator(self) -> LinearOperator:
        """R as an operator."""

        def product(X: Array) -> Array:
            return self(X.reshape(len(X), -1))[1].reshape(X.shape)

        return LinearOperator(self.W.shape, matvec=product, matmat=product, dtype=np.float64)

    @cached_property
    def degree(self) -> Array:
        """Sums of the rows of the weights."""
        return self.unit * self._scaled_degree

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of R."""
        n, edges = len(self.F), np.empty(self.W.nnz)
        own = np.empty(n)
        graph = (self.W.indptr, self.W.indices, self.W.data)
        run_on_rows(kernels().edge_penalties, n, *graph, self.F, self.metrics, own, edges)
        return self.unit * (own + np.bincount(self.W.indices, edges, n))

    @cached_property
    def _neighbor_sums(self) -> Array:
        return np.asarray(self.W @ self.F, dtype=self.F.dtype)

    @cached_property
    def _weights(self) -> tuple[Array, Array]:
        """Weights and degrees in units of `unit` and the precision of `F`."""
        return self.W.data.astype(self.F.dtype), self._scaled_degree.astype(self.F.dtype)

    @property
    def _scaled_degree(self) -> Array:
        return np.asarray(self.W.sum(axis=1)).ravel()


def kernels() -> ModuleType:
    """The compiled loops, imported only for large graphs."""
    from manifoldry.nonredundant import compiled

    return compiled
