"""Gradients of functions on a graph, defined by the carré du champ.

Γ(f, h)_i = Σ_k w_ik (f_k − f_i)(h_k − h_i) / d_i stands for ⟨∇f, ∇h⟩ at point i and is linear in f.
So the part of ∇f along the gradients of given coordinates is a sparse matrix times f.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from manifoldry.nonredundant.penalty import PenaltyProducts, kernels
from manifoldry.util.arrays import namespace
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import run_on_rows
from manifoldry.util.typing import Array, IntArray

_TINY = float(np.finfo(float).tiny)
_ROUNDING = 1e-8  # differences below this fraction of a coordinate are errors of the eigensolver


@dataclass(frozen=True, eq=False)
class EdgeDifferences:
    """Edges of a graph between training points, and coordinate differences on them."""

    rows: IntArray  # (n_edges,)
    columns: IntArray  # (n_edges,)
    weights: Array  # (n_edges,)
    degree: Array  # (n_rows,)
    differences: Array  # (n_edges, q)

    @classmethod
    def of(cls, W: sparse.csr_array, F: Array, unit: Array | float = 1.0) -> EdgeDifferences:
        """From weights `W`: (F[column] − F[row]) / unit on every edge."""
        edges = W.tocoo()
        degree = np.asarray(W.sum(axis=1)).ravel()
        differences = (F[edges.col] - F[edges.row]) / unit
        return cls(edges.row, edges.col, edges.data, degree, differences)

    @property
    def fraction(self) -> Array:
        """Weight of every edge divided by the degree of its row."""
        return self.weights / np.maximum(self.degree, _TINY)[self.rows]

    @cached_property
    def principal_gradients(self) -> tuple[Array, Array]:
        """Eigenvalues (n_rows, q) and eigenvectors of the products of gradients at every row."""
        n, q = len(self.degree), self.differences.shape[1]
        H, fraction = np.empty((n, q, q)), self.fraction
        for j in range(q):
            weighted = fraction * self.differences[:, j]
            for k in range(j, q):
                products = weighted * self.differences[:, k]
                H[:, j, k] = H[:, k, j] = np.bincount(self.rows, products, n)
        values, U = np.linalg.eigh(H)
        return np.maximum(values, 0.0), U

    def frames(self, floor: float) -> Array:
        """Matrices (n_rows, q, q) that orthonormalize the gradients at every row.

        `floor` is added to squared gradients to regularize small ones.
        """
        values, U = self.principal_gradients
        return np.asarray(U / np.sqrt(values + floor)[:, None, :])

    def along(self, frames: Array) -> Array:
        """Components (n_edges, q) of the differences of each edge in the frame of its row."""
        return np.einsum("ej,ejk->ek", self.differences, frames[self.rows])


@dataclass(frozen=True, eq=False)
class EarlierGradients:
    """The part of a function's gradient that lies along those of earlier coordinates.

    Parameters
    ----------
    W : sparse array of shape (n, n)
        Symmetric weights with zero diagonal.
    F : array of shape (n, q)
        The earlier coordinates.
    floor : float, default=0.1
        Regularization: this fraction of the mean squared gradient is added to squared gradients,
        because small ones give no reliable direction.
    compiled_above : int, default=5000
        Number of points above which compiled loops are used.
    single_up_to : float, default=100
        Products with the penalty are computed in single precision if no coordinate is larger than
        this, in root mean square and units of its gradients: they subtract products of
        coordinates, and lose the square of that ratio.
    """

    W: sparse.csr_array
    F: Array
    floor: float = 0.1
    compiled_above: int = 5000
    single_up_to: float = 100.0

    @cached_property
    def unit(self) -> Array:
        """Root mean squared gradient of every coordinate, the unit of its differences."""
        edges = EdgeDifferences.of(self.W, self.F)
        size = (edges.weights[:, None] * edges.differences**2).sum(axis=0) / edges.degree.sum()
        return gradient_unit(size, self.F)

    @cached_property
    def edges(self) -> EdgeDifferences:
        """Differences of the earlier coordinates on the edges of the graph."""
        return EdgeDifferences.of(self.W, self.F, self.unit)

    @property
    def laplacian(self) -> sparse.csr_array:
        """Graph Laplacian D − W."""
        return sparse.csr_array(sparse.diags_array(self.degree) - self.W)

    @cached_property
    def degree(self) -> Array:
        """Sums of the rows of the weights."""
        return np.asarray(self.W.sum(axis=1)).ravel()

    @property
    def penalty(self) -> LinearOperator:
        """Operator R with fᵀRf = Σᵢ dᵢ·‖part of ∇f along the earlier gradients‖².

        In double precision, which accurate eigenvectors need.
        """
        if self.large:
            return self._products(self.floor, single=False).operator
        G = self._factor(self.floor)

        def product(X: Array) -> Array:
            return np.asarray(G.T @ (G @ X))

        return LinearOperator(self.W.shape, matvec=product, matmat=product, dtype=np.float64)

    @property
    def penalty_matrix(self) -> sparse.csr_array:
        """R as a sparse matrix, whose entries belong to points with a common neighbor."""
        G = self._factor(self.floor)
        R = G.T @ G
        return sparse.csr_array((R + R.T) / 2)

    def fraction(self, f: Array) -> float:
        """Fraction of the energy of f along the earlier gradients, from 0 (new) to 1."""
        if self.large:
            Lf, Rf = self._fraction_products(f[:, None])
            return float(f @ Rf[:, 0]) / max(2 * float(f @ Lf[:, 0]), _TINY)
        components = self._factor(self.fraction_floor) @ f
        return float((components**2).sum()) / max(2 * float(f @ (self.laplacian @ f)), _TINY)

    @cached_property
    def penalty_products(self) -> PenaltyProducts:
        """R by compiled loops, in single precision if that is accurate to a few digits."""
        return self._products(self.floor, self._rough)

    @cached_property
    def _fraction_products(self) -> PenaltyProducts:
        return self._products(self.fraction_floor, self._rough)

    @property
    def fraction_floor(self) -> float:
        """The smaller regularization of :meth:`fraction`."""
        return self.floor / 10

    @property
    def large(self) -> bool:
        """Whether compiled loops are used."""
        return self.F.shape[0] > self.compiled_above

    def _factor(self, floor: float) -> sparse.csr_array:
        """Matrix G (q·n, n) such that G f stacks the components of √dᵢ·∇f."""
        n = self.F.shape[0]
        blocks = []
        for column in (self._edge_gradients(floor) if self.large else self._values(floor)).T:
            G = sparse.csr_array((column, self.W.indices, self.W.indptr), shape=(n, n))
            blocks.append(G - sparse.diags_array(np.asarray(G.sum(axis=1)).ravel()))
        return sparse.csr_array(sparse.vstack(blocks))

    def _values(self, floor: float) -> Array:
        """Coefficients (n_edges, q) of the other end of every edge in √dᵢ·∇f."""
        edges = self.edges
        weights = np.sqrt(edges.degree)[edges.rows] * edges.fraction
        return np.asarray(weights[:, None] * edges.along(edges.frames(floor)))

    def _edge_gradients(self, floor: float) -> Array:
        """The same by compiled loops, in other orthonormal frames."""
        F, _ = self._scaled_products
        n, q = F.shape
        values = np.empty((len(self.W.indices), q))
        run_on_rows(kernels().edge_gradients, n, *self._graph, F, self._frames(floor), values)
        return values

    def _frames(self, floor: float) -> Array:
        """Inverse Cholesky factors of the products of gradients, (n, q, q)."""
        _, products = self._scaled_products
        frames = np.empty_like(products)
        run_on_rows(kernels().frames, len(products), products, floor, frames)
        return frames

    def _products(self, floor: float, single: bool) -> PenaltyProducts:
        F, _ = self._scaled_products
        degree = np.maximum(self.degree, _TINY)
        F = F.astype(np.float32) if single else F
        return PenaltyProducts.of(self.W, degree, F, self._frames(floor))

    @cached_property
    def _rough(self) -> bool:
        """Whether the coordinates vary enough between neighbors for single precision."""
        F, _ = self._scaled_products
        return bool(np.sqrt((F**2).mean(axis=0)).max() <= self.single_up_to)

    @property
    def _graph(self) -> tuple[IntArray, IntArray, Array, Array]:
        """What the compiled loops need to know of the graph."""
        degree = np.maximum(self.degree, _TINY)
        return self.W.indptr, self.W.indices, self.W.data, degree

    @cached_property
    def _scaled_products(self) -> tuple[Array, Array]:
        """The earlier coordinates in units of their gradients, and products of these gradients."""
        F = np.array(self.F, order="C")
        n, q = F.shape
        products = np.empty((n, q, q))
        run_on_rows(kernels().gradient_products, n, *self._graph, F, products)
        squares = np.einsum("i,ijj->j", self.degree, products) / self.degree.sum()
        unit = gradient_unit(squares, F)
        return F / unit, products / np.outer(unit, unit)


def gradient_unit(mean_squares: Array, F: Array) -> Array:
    """Root mean squared gradients, which are at least those of rounding errors."""
    xp = namespace(F)
    rounding = (_ROUNDING**2 * F**2).mean(axis=0)  # as of constants on components
    return xp.sqrt(xp.maximum(mean_squares, rounding + _TINY))


def quadratic(F: Array) -> Array:
    """The columns of `F`, their squares and their products."""
    q = F.shape[1]
    products = [F[:, j] * F[:, k] for j in range(q) for k in range(j, q)]
    return namespace(F).column_stack([F, *products])
