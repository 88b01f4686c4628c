"""Local problems, one per neighborhood, solved in blocks and assembled into a sparse matrix."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.neighbors.distances import Frame
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.threads import map_threads, thread_count
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

# Variances below this fraction of the largest in a neighborhood are rounding errors.
MIN_VARIANCE_RATIO = 1e-12


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The neighborhoods of all points with their coordinates.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    members : array of shape (n_samples, k)
        Indices of the points in each neighborhood.
    """

    X: Matrix
    members: IntArray

    def align(self, local: Callable[[Array], Array]) -> sparse.csr_array:
        """Sum of local symmetric matrices over all neighborhoods, (n, n).

        `local` maps coordinates (n_block, k, n_features) to matrices (n_block, k, k).
        """
        n, k = self.members.shape
        coordinates = self._coordinates()

        def part(block: slice) -> sparse.csr_array:
            members = self.members[block].astype(np.int32)
            rows, columns = np.repeat(members, k, axis=1), np.tile(members, (1, k))
            entries = (local(coordinates(block)).ravel(), (rows.ravel(), columns.ravel()))
            return sparse.csr_array(sparse.coo_array(entries, shape=(n, n)))

        return _summed(part, self._blocks)

    def rows(self, local: Callable[[Array], Array]) -> sparse.csr_array:
        """Sparse matrix (n, n) with one row per point and nonzeros in its neighborhood.

        `local` maps coordinates (n_block, k, n_features) to the entries (n_block, k).
        """
        n, k = self.members.shape
        index = np.int32 if n * k < 2**31 else np.int64
        columns, starts = (
            self.members.ravel().astype(index),
            np.arange(0, n * k + 1, k, dtype=index),
        )
        return sparse.csr_array((self.each(local).ravel(), columns, starts), shape=(n, n))

    def each(self, local: Callable[[Array], Array]) -> Array:
        """Values of `local`, which maps coordinates (n_block, k, n_features) to (n_block, ...)."""
        coordinates = self._coordinates()
        return np.concatenate(map_threads(lambda block: local(coordinates(block)), self._blocks))

    def sample(self, max_count: int) -> "Neighborhoods":
        """At most `max_count` of the neighborhoods, evenly spaced."""
        return Neighborhoods(self.X, self.members[:: -(-len(self.members) // max_count)])

    def _coordinates(self) -> Callable[[slice], Array]:
        """Function from a block to centered, scaled coordinates (n_block, k, n_features)."""
        frame = Frame.of(self.X)
        return lambda block: (gathered(self.X, self.members[block]) - frame.origin) / frame.unit

    @property
    def _blocks(self) -> list[slice]:
        n, k = self.members.shape
        return row_blocks(n, k * max(self.X.shape[1], k), budget=2**20)


def _summed(part: Callable[[slice], sparse.csr_array], blocks: list[slice]) -> sparse.csr_array:
    """Sum of `part(block)` over all blocks, computed by several threads.

    The parts are summed in pairs, as in a binary tree, so that each entry takes part in only
    O(log n_blocks) additions.
    """
    sums: list[tuple[int, sparse.csr_array]] = []
    for batch in _batches(blocks, thread_count()):
        for found in map_threads(part, batch):
            sums.append((1, found))
            while len(sums) > 1 and sums[-1][0] == sums[-2][0]:
                (size, last), (_, before) = sums.pop(), sums.pop()
                sums.append((2 * size, before + last))
    return reduce(add, (found for _, found in reversed(sums)))


def _batches(blocks: Iterable[slice], size: int) -> Iterator[list[slice]]:
    rest = iter(blocks)
    while batch := list(islice(rest, size)):
        yield batch


def gathered(X: Matrix, members: IntArray) -> Array:
    """Rows of `X` given by `members`, (n, k, n_features), dense and in double precision."""
    rows = X[members.ravel()]
    dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return dense.astype(np.float64).reshape(*members.shape, -1)


def tangent_bases(local: Array, dimension: int, min_ratio: float = MIN_VARIANCE_RATIO) -> Array:
    """Leading left singular vectors (n_block, k, dimension) of centered neighborhoods.

    They are computed from the smaller of the Gram and the covariance matrix. Vectors whose
    variance is below `min_ratio` times the largest are set to zero, since they are arbitrary.
    """
    centered = local - local.mean(axis=1, keepdims=True)
    use_covariance = dimension <= local.shape[2] < local.shape[1]
    values, vectors = np.linalg.eigh(_products(centered, use_covariance))
    values, vectors = values[:, ::-1][:, :dimension], vectors[:, :, ::-1][:, :, :dimension]
    significant = values > min_ratio * np.maximum(values[:, :1], np.finfo(float).tiny)
    if use_covariance:
        roots = np.sqrt(np.where(significant, values, np.inf))
        return np.asarray(centered @ (vectors / roots[:, None, :]))
    return vectors * significant[:, None, :]


def tangent_misfit(local: Array, dimension: int) -> Array:
    """How badly a tangent space of the given dimension fits each neighborhood, (n_block,).

    The fraction of the variance outside of it, relative to that of equal variances in all
    directions, times the ratio of the variances along the next axis and along its last one: 0 on a
    surface, also if its dimension is lower, and 1 if all directions are alike.
    """
    directions = min(local.shape[1] - 1, local.shape[2])
    if directions <= dimension:
        return np.zeros(len(local))
    centered = local - local.mean(axis=1, keepdims=True)
    variances = np.linalg.eigvalsh(_products(centered, local.shape[2] < local.shape[1]))[:, ::-1]
    variances = np.maximum(variances, np.finfo(float).tiny)
    outside = variances[:, dimension:].sum(axis=1) / variances.sum(axis=1)
    ratio = variances[:, dimension] / variances[:, dimension - 1]
    return np.asarray(outside / (1 - dimension / directions) * ratio)


def _products(centered: Array, use_covariance: bool) -> Array:
    """Covariance (n_features, n_features) or Gram matrices (k, k) of centered neighborhoods."""
    transposed = centered.transpose(0, 2, 1)
    return np.asarray(transposed @ centered if use_covariance else centered @ transposed)


def alignment_blocks(U: Array) -> Array:
    """I − GGᵀ with G = [1/√k, U]: the projection onto the residual of the best affine fit."""
    k = U.shape[1]
    G = np.concatenate([np.full((len(U), k, 1), k**-0.5), U], axis=2)
    return np.eye(k) - G @ G.transpose(0, 2, 1)


def barycentric_weights(
    differences: Array, reg: float, excluded: NDArray[np.bool_] | None = None
) -> Array:
    """Weights (n_block, k) with sum one that best reconstruct a point from its neighbors.

    `differences` (n_block, k, n_features) are neighbors minus point; neighbors in the mask
    `excluded` get zero weight. The ridge penalty is `reg` times the trace of the local Gram
    matrix, so the result does not depend on units. If all neighbors coincide with the point, the
    weights are equal.
    """
    n, k = differences.shape[:2]
    kept = np.ones((n, k)) if excluded is None else 1.0 - excluded
    differences = differences * kept[:, :, None]
    # Division by a power of two is exact, and squares of the result do not underflow.
    exponents = np.frexp(np.abs(differences).max(axis=(1, 2), initial=0.0))[1]
    differences = np.ldexp(differences, -exponents[:, None, None])
    C = differences @ differences.transpose(0, 2, 1)
    trace = np.einsum("nii->n", C)
    ridge = reg * np.where(trace > 0, trace, 1.0)
    C[:, np.arange(k), np.arange(k)] += ridge[:, None]
    weights = np.linalg.solve(C, kept[:, :, None])[:, :, 0] * kept
    return weights / weights.sum(axis=1, keepdims=True)


def with_itself(graph: NeighborGraph) -> IntArray:
    """Members of each neighborhood, (n, k + 1), the point itself first."""
    members = graph.indices.reshape(-1, graph.k)
    return np.hstack([np.arange(graph.n_query)[:, None], members])
