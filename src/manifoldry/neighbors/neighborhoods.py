"""Local problems, one per neighborhood, solved in blocks and assembled into a sparse matrix."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.device import current_device
from manifoldry.device.small import eigh, eigvalsh
from manifoldry.neighbors.distances import Frame
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods_on_device import (
    DeviceNeighborhoods,
    device_for,
    laplacian_on_device,
    weighted_sum_on_device,
)
from manifoldry.util.arrays import namespace
from manifoldry.util.threads import map_threads, thread_count
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

# Variances below this fraction of the largest in a neighborhood are rounding errors.
MIN_VARIANCE_RATIO = 1e-12


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The neighborhoods of all points with their coordinates.

    Functions `local` are called with blocks of coordinates, of numpy or of the current device.

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
        if (found := self._on_device) is not None:
            return found.align(local)
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
        if (found := self._on_device) is not None:
            return found.rows(local)
        n, k = self.members.shape
        index = np.int32 if n * k < 2**31 else np.int64
        columns, starts = (
            self.members.ravel().astype(index),
            np.arange(0, n * k + 1, k, dtype=index),
        )
        return sparse.csr_array((self.each(local).ravel(), columns, starts), shape=(n, n))

    def gram(self, local: Callable[[Array], Array]) -> sparse.csr_array:
        """RᵀR for the matrix R of `rows`: the sum of local matrices of rank one."""
        if (found := self._on_device) is not None:
            return found.gram(local)
        R = self.rows(local)
        return sparse.csr_array(R.T @ R)

    def each(self, local: Callable[[Array], Array]) -> Array:
        """Values of `local`, which maps coordinates (n_block, k, n_features) to (n_block, ...)."""
        if (found := self._on_device) is not None:
            return found.device.host(found.each(local))
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
    def _on_device(self) -> DeviceNeighborhoods | None:
        device = device_for(self.X)
        return None if device is None else DeviceNeighborhoods(device, self.X, self.members)

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


def weighted_sum(*terms: tuple[float, sparse.csr_array]) -> sparse.csr_array:
    """Sum of factors times square matrices, on the current device if there is one."""
    if (device := current_device()) is not None:
        return weighted_sum_on_device(device, terms)
    return sparse.csr_array(reduce(add, (factor * matrix for factor, matrix in terms)))


def neighbor_laplacian(graph: NeighborGraph) -> sparse.csr_array:
    """Return the matrix of Σ ‖yᵢ − yⱼ‖² / 2 over the k neighbors j of all points i."""
    if (device := current_device()) is not None:
        return laplacian_on_device(device, graph)
    directed = graph.matrix(np.full(len(graph.indices), 0.5))
    W = directed + directed.T
    return sparse.csr_array(sparse.diags_array(W.sum(axis=1)) - W)


def tangent_bases(local: Array, dimension: int, min_ratio: float = MIN_VARIANCE_RATIO) -> Array:
    """Leading left singular vectors (n_block, k, dimension) of centered neighborhoods.

    They are computed from the smaller of the Gram and the covariance matrix. Vectors whose
    variance is below `min_ratio` times the largest are set to zero, since they are arbitrary.
    """
    xp = namespace(local)
    centered = local - local.mean(axis=1, keepdims=True)
    use_covariance = dimension <= local.shape[2] < local.shape[1]
    values, vectors = eigh(_products(centered, use_covariance))
    values, vectors = values[:, ::-1][:, :dimension], vectors[:, :, ::-1][:, :, :dimension]
    significant = values > min_ratio * xp.maximum(values[:, :1], np.finfo(float).tiny)
    if use_covariance:
        roots = xp.sqrt(xp.where(significant, values, np.inf))
        in_features: Array = centered @ (vectors / roots[:, None, :])
        return in_features
    return vectors * significant[:, None, :]


def tangent_misfit(local: Array, dimension: int) -> Array:
    """How badly a tangent space of the given dimension fits each neighborhood, (n_block,).

    The fraction of the variance outside of it, relative to that of equal variances in all
    directions, times the ratio of the variances along the next axis and along its last one: 0 on a
    surface, also if its dimension is lower, and 1 if all directions are alike.
    """
    xp, directions = namespace(local), min(local.shape[1] - 1, local.shape[2])
    if directions <= dimension:
        return xp.zeros(len(local))
    centered = local - local.mean(axis=1, keepdims=True)
    variances = eigvalsh(_products(centered, local.shape[2] < local.shape[1]))[:, ::-1]
    variances = xp.maximum(variances, np.finfo(float).tiny)
    outside = variances[:, dimension:].sum(axis=1) / variances.sum(axis=1)
    ratio = variances[:, dimension] / variances[:, dimension - 1]
    misfit: Array = outside / (1 - dimension / directions) * ratio
    return misfit


def _products(centered: Array, use_covariance: bool) -> Array:
    """Covariance (n_features, n_features) or Gram matrices (k, k) of centered neighborhoods."""
    transposed = centered.transpose(0, 2, 1)
    products: Array = transposed @ centered if use_covariance else centered @ transposed
    return products


def alignment_blocks(U: Array) -> Array:
    """I − GGᵀ with G = [1/√k, U]: the projection onto the residual of the best affine fit."""
    xp, k = namespace(U), U.shape[1]
    G = xp.concatenate([xp.full((len(U), k, 1), k**-0.5), U], axis=2)
    return xp.eye(k) - G @ G.transpose(0, 2, 1)


def barycentric_weights(
    differences: Array, reg: float, excluded: NDArray[np.bool_] | None = None
) -> Array:
    """Weights (n_block, k) with sum one that best reconstruct a point from its neighbors.

    `differences` (n_block, k, n_features) are neighbors minus point; neighbors in the mask
    `excluded` get zero weight. The ridge penalty is `reg` times the trace of the local Gram
    matrix, so the result does not depend on units. If all neighbors coincide with the point, the
    weights are equal.
    """
    xp, (n, k) = namespace(differences), differences.shape[:2]
    kept = xp.ones((n, k)) if excluded is None else xp.where(excluded, 0.0, 1.0)
    differences = differences * kept[:, :, None]
    # Division by a power of two is exact, and squares of the result do not underflow.
    exponents = xp.frexp(xp.abs(differences).max(axis=(1, 2)))[1]
    differences = xp.ldexp(differences, -exponents[:, None, None])
    C = differences @ differences.transpose(0, 2, 1)
    trace = xp.trace(C, axis1=1, axis2=2)
    ridge = reg * xp.where(trace > 0, trace, 1.0)
    C = C + ridge[:, None, None] * xp.eye(k)
    weights = xp.linalg.solve(C, kept[:, :, None])[:, :, 0] * kept
    return weights / weights.sum(axis=1, keepdims=True)


def with_itself(graph: NeighborGraph) -> IntArray:
    """Members of each neighborhood, (n, k + 1), the point itself first."""
    members = graph.indices.reshape(-1, graph.k)
    return np.hstack([np.arange(graph.n_query)[:, None], members])
