"""Sums over the edges of a sparse graph on a map."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from manifoldry._threads import map_threads, thread_count
from manifoldry._typing import Array
from manifoldry._validation import row_blocks
from manifoldry.objectives.pair_sums import PairSums

# Edges from which compiling, or loading what was compiled, is worth while.
_COMPILED_FROM = 200_000


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
    sums = _compiled_rows if W.nnz >= _COMPILED_FROM else _numpy_rows
    cost, force, degree = sums(Y, W, dof)
    slope = (dof + 1) / (2 * dof)
    return Pull(slope * dof * float(cost.sum()), slope * force, slope * degree)


def _numpy_rows(Y: Array, W: sparse.csr_array, dof: float) -> tuple[Array, Array, Array]:
    """Of every row: Σ w log(1 + d²/α), Σ w (yᵢ − yⱼ)/(1 + d²/α), Σ w/(1 + d²/α)."""
    heavy = 1 + edge_squares(Y, W) / dof
    cost = _like(W, W.data * np.log(heavy))
    pull = _like(W, W.data / heavy)
    degree = pull.sum(axis=1)
    return cost.sum(axis=1), degree[:, None] * Y - pull @ Y, degree


def _compiled_rows(Y: Array, W: sparse.csr_array, dof: float) -> tuple[Array, Array, Array]:
    from manifoldry.objectives.edges.kernels import student_rows

    cost, force, degree = np.zeros(len(Y)), np.zeros(Y.shape), np.zeros(len(Y))
    # Parts of equally many edges; each row is summed by one thread, whatever their number.
    shares = np.linspace(0, W.nnz, 4 * thread_count() + 1)
    cuts = np.searchsorted(W.indptr, shares).clip(0, len(Y))

    def run(part: int) -> None:
        rows = cuts[part], cuts[part + 1]
        student_rows(Y, W.indptr, W.indices, W.data, dof, cost, force, degree, *rows)

    map_threads(run, range(len(cuts) - 1))
    return cost, force, degree


def edge_squares(Y: Array, W: sparse.csr_array) -> Array:
    """Squared distances on the map of all stored entries of `W`, by direct subtraction."""
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    squares = np.empty(W.nnz)
    for block in row_blocks(W.nnz, Y.shape[1], budget=2**17):
        steps = np.subtract(Y[rows[block]], Y[W.indices[block]], dtype=np.float64)
        squares[block] = np.einsum("ei,ei->e", steps, steps)
    return squares


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
