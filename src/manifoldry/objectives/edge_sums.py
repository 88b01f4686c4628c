"""Exact sums over the edges of a sparse graph on a map."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from manifoldry.objectives.pair_kernel import Kernel, Student
from manifoldry.objectives.pair_sums import Pull, Sums
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks

LOOPS = 3  # coordinates up to which `kernels` has compiled loops


@dataclass(frozen=True, eq=False)
class Springs:
    """Attraction Σ Wᵢⱼdᵢⱼ² = 2·tr YᵀLY, L being the Laplacian of W: one product of matrices."""

    L: sparse.csr_array

    def __call__(self, Y: Array) -> Pull:
        Y = Y.astype(np.float64, copy=False)
        # Column by column, which takes scipy half the time as long as the matrix fits the cache.
        force = np.stack([self.L @ y for y in Y.T], axis=1)
        return Pull(2 * float(np.einsum("ij,ij->", Y, force)), force, self._degree)

    @cached_property
    def _degree(self) -> Array:
        return self.L.diagonal()


def edge_pull(kernel: Kernel, W: sparse.csr_array, block: int, Y: Array) -> Pull:
    """Attraction Σ Wᵢⱼ·φ(dᵢⱼ²) by any kernel."""
    Y = np.asarray(Y, dtype=np.float64)
    D = edge_squares(Y, W, block)
    pull = _like(W, kernel.times_slope(W.data, D))
    degree = pull.sum(axis=1)
    return Pull(_weighted(W.data, kernel.phi(D)), degree[:, None] * Y - pull @ Y, degree)


def student_pull(kernel: Student, W: sparse.csr_array, block: int, Y: Array) -> Pull:
    """The same by compiled loops, which there are for Student's kernel."""
    if Y.shape[1] > LOOPS:
        return edge_pull(kernel, W, block, Y)
    from manifoldry.objectives.kernels import student_rows

    Y = np.ascontiguousarray(Y, dtype=np.float64)
    loop, force, degree = student_rows(Y.shape[1]), np.empty(Y.shape), np.empty(len(Y))

    def run(rows: tuple[int, int]) -> float:
        edges = slice(W.indptr[rows[0]], W.indptr[rows[1]])
        heavy = np.empty(edges.stop - edges.start)
        loop(Y, W.indptr, W.indices, W.data, 1 / kernel.dof, heavy, force, degree, *rows)
        # numpy's logarithm is vectorised, a compiled loop's is not.
        return _weighted(W.data[edges], np.log(heavy, out=heavy))

    cost = sum(map_threads(run, _cuts(W, block)))
    slope = kernel.collapsed_slope
    return Pull(kernel.power * cost, slope * force, slope * degree)


def edge_sums(kernel: Kernel, Y: Array, W: sparse.csr_array, block: int) -> Sums:
    """Masses and forces with weights `W`, over its edges."""
    D = edge_squares(Y, W, block)
    K = W.data * kernel(D)
    mass, F = _like(W, K).sum(axis=1), _like(W, kernel.times_slope(K, D))
    return Sums(mass, F.sum(axis=1)[:, None] * Y - F @ Y)


def edge_moments(kernel: Kernel, Y: Array, W: sparse.csr_array, block: int) -> Array:
    """Second moments with weights `W`, over its edges."""
    D = edge_squares(Y, W, block)
    K = W.data * kernel(D) * kernel.curvature(D)
    columns = [_like(W, K * edge_squares(y[:, None], W, block)).sum(axis=1) for y in Y.T]
    return np.stack(columns, axis=1)


def edge_squares(Y: Array, W: sparse.csr_array, block: int) -> Array:
    """Squared distances on the map of all stored entries of `W`, by direct subtraction."""
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    squares, columns = np.zeros(W.nnz), np.array(Y.T, order="C")  # picking rows is ten times slower
    for some in row_blocks(W.nnz, 1, budget=block):
        for y in columns:
            step = np.subtract(y[rows[some]], y[W.indices[some]], dtype=np.float64)
            squares[some] += step * step
    return squares


def _cuts(W: sparse.csr_array, block: int) -> list[tuple[int, int]]:
    """Blocks of rows with about as many edges, the same for any number of threads."""
    shares = np.arange(0, W.nnz + block, block)
    return list(pairwise(np.unique(np.searchsorted(W.indptr, shares).clip(0, W.shape[0])).tolist()))


def _weighted(weights: Array, values: Array) -> float:
    """Σ w·v, not by BLAS, whose threads would wait for each other inside ours."""
    return float(np.einsum("e,e->", weights, values))


def _like(W: sparse.csr_array, values: Array) -> sparse.csr_array:
    return sparse.csr_array((values, W.indices, W.indptr), shape=W.shape)
