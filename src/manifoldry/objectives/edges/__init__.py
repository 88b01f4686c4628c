"""Sums over the edges of a sparse graph on a map."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.objectives.pair_sums import PairSums
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks

# Edges from which compiling is worth while, and coordinates up to which there are compiled loops.
_MANY, _COMPILED = 100_000, 3
_EDGES = 2**16  # edges of a block, which stay in the processor's cache


class Pull(NamedTuple):
    """What attraction does to a map."""

    value: float
    force: Array
    """A quarter of the gradient, (n, d)."""
    degree: Array
    """Weight with which every point is pulled: a quarter of the curvature's upper bound, (n,)."""


def student_attraction(Y: Array, W: sparse.csr_array, dof: float) -> Pull:
    """Attraction Σ Wᵢⱼ·(−log κ(dᵢⱼ²)) by Student's kernel, in double precision."""
    Y = np.ascontiguousarray(Y, dtype=np.float64)
    compiled = W.nnz >= _MANY and Y.shape[1] <= _COMPILED
    sums = _compiled_rows if compiled else _numpy_rows
    cost, force, degree = sums(Y, W, dof)
    slope = (dof + 1) / (2 * dof)
    return Pull(slope * dof * cost, slope * force, slope * degree)


def _numpy_rows(Y: Array, W: sparse.csr_array, dof: float) -> tuple[float, Array, Array]:
    """Σ w log(1 + d²/α); of every row Σ w (yᵢ − yⱼ)/(1 + d²/α) and Σ w/(1 + d²/α)."""
    heavy = 1 + edge_squares(Y, W) / dof
    pull = _like(W, W.data / heavy)
    degree = pull.sum(axis=1)
    return _weighted(W.data, np.log(heavy)), degree[:, None] * Y - pull @ Y, degree


def _compiled_rows(Y: Array, W: sparse.csr_array, dof: float) -> tuple[float, Array, Array]:
    from manifoldry.objectives.edges.kernels import student_rows

    loop, force, degree = student_rows(Y.shape[1]), np.empty(Y.shape), np.empty(len(Y))
    # Blocks of about as many edges, the same for any number of threads.
    shares = np.arange(0, W.nnz + _EDGES, _EDGES)
    cuts = np.unique(np.searchsorted(W.indptr, shares).clip(0, len(Y)))

    def run(rows: tuple[int, int]) -> float:
        edges = slice(W.indptr[rows[0]], W.indptr[rows[1]])
        heavy = np.empty(edges.stop - edges.start)
        loop(Y, W.indptr, W.indices, W.data, 1 / dof, heavy, force, degree, *rows)
        # numpy's logarithm is vectorised, a compiled loop's is not.
        return _weighted(W.data[edges], np.log(heavy, out=heavy))

    return sum(map_threads(run, pairwise(cuts.tolist()))), force, degree


def edge_squares(Y: Array, W: sparse.csr_array) -> Array:
    """Squared distances on the map of all stored entries of `W`, by direct subtraction."""
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    squares, columns = np.zeros(W.nnz), np.array(Y.T, order="C")  # picking rows is ten times slower
    for block in row_blocks(W.nnz, 1, budget=_EDGES):
        for y in columns:
            step = np.subtract(y[rows[block]], y[W.indices[block]], dtype=np.float64)
            squares[block] += step * step
    return squares


def _weighted(weights: Array, values: Array) -> float:
    """Σ w·v, not by BLAS, whose threads would wait for each other inside ours."""
    return float(np.einsum("e,e->", weights, values))


def gaussian_edge_sums(Y: Array, W: sparse.csr_array) -> PairSums:
    """Sums with Wₙₘ·exp(−d²) over the edges of `W`."""
    K = _like(W, W.data * np.exp(-edge_squares(Y, W)))
    mass = K.sum(axis=1)
    return PairSums(mass, mass[:, None] * Y - K @ Y)


def gaussian_edge_moments(Y: Array, W: sparse.csr_array) -> Array:
    """Σₘ Wₙₘ exp(−d²)·(yₙᵢ − yₘᵢ)² over the edges of `W`, (n, d)."""
    K = W.data * np.exp(-edge_squares(Y, W))
    columns = [_like(W, K * edge_squares(y[:, None], W)).sum(axis=1) for y in Y.T]
    return np.stack(columns, axis=1)


def _like(W: sparse.csr_array, values: Array) -> sparse.csr_array:
    return sparse.csr_array((values, W.indices, W.indptr), shape=W.shape)
