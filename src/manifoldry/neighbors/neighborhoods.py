"""Small local problems, one per point, solved in batches and assembled into one matrix."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry._typing import Array, IntArray, Matrix
from manifoldry._validation import row_blocks
from manifoldry.neighbors.distances import Frame

# Variance below this share of the largest in a neighbourhood is rounding.
_NO_EXTENT = 1e-12


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The coordinates of every point's neighbours, for methods that need more than distances.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    members : array of shape (n_samples, k)
        Who belongs to each point's neighbourhood.
    """

    X: Matrix
    members: IntArray

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Coordinates (n_block, k, n_features) of the members, a block of points at a time."""
        frame = Frame.of(self.X)
        n, k = self.members.shape
        for block in row_blocks(n, k * max(self.X.shape[1], k), budget=2**22):
            local = gathered(self.X, self.members[block])
            yield block, (local - frame.origin) / frame.unit

    def align(self, local: Callable[[Array], Array]) -> sparse.csr_array:
        """Sum over all points of a small symmetric matrix on the point's neighbourhood.

        `local` turns coordinates (n_block, k, n_features) into matrices (n_block, k, k).
        """
        n, k = self.members.shape
        total = sparse.csr_array((n, n))
        for block, coordinates in self.blocks():
            members = self.members[block]
            rows, columns = np.repeat(members, k, axis=1), np.tile(members, (1, k))
            entries = local(coordinates).ravel()
            total += sparse.coo_array((entries, (rows.ravel(), columns.ravel())), shape=(n, n))
        return total


def gathered(X: Matrix, members: IntArray) -> Array:
    """Rows of `X` by index, (n, k, n_features), dense and in double precision."""
    rows = X[members.ravel()]
    dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return dense.astype(np.float64).reshape(*members.shape, -1)


def tangent_bases(local: Array, dimension: int) -> Array:
    """Leading left singular vectors (n_block, k, dimension) of centred neighbourhoods.

    Through the small Gram matrices, so that the number of features does not matter. Directions
    in which a neighbourhood does not extend are zero: what LAPACK returns for them is arbitrary.
    """
    centered = local - local.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(centered @ centered.transpose(0, 2, 1))
    values, vectors = values[:, ::-1][:, :dimension], vectors[:, :, ::-1][:, :, :dimension]
    extends = values > _NO_EXTENT * np.maximum(values[:, :1], np.finfo(float).tiny)
    return vectors * extends[:, None, :]


def alignment_blocks(U: Array) -> Array:
    """I − GGᵀ with G = [1/√k, U]: what is left of a function after its best affine fit."""
    k = U.shape[1]
    G = np.concatenate([np.full((len(U), k, 1), k**-0.5), U], axis=2)
    return np.eye(k) - G @ G.transpose(0, 2, 1)


def barycentric_weights(
    differences: Array, reg: float, excluded: NDArray[np.bool_] | None = None
) -> Array:
    """Weights (n_block, k) summing to one that best reproduce a point from its neighbours.

    `differences` (n_block, k, n_features) lead from the point to the neighbours; those `excluded`
    get no weight. The ridge is `reg` times the trace of the local Gram matrix, so that units do
    not matter; where all neighbours coincide with the point, weights are equal.
    """
    n, k = differences.shape[:2]
    kept = np.ones((n, k)) if excluded is None else 1.0 - excluded
    differences = differences * kept[:, :, None]
    C = differences @ differences.transpose(0, 2, 1)
    trace = np.einsum("nii->n", C)
    ridge = reg * np.where(trace > 0, trace, 1.0)
    C[:, np.arange(k), np.arange(k)] += ridge[:, None]
    weights = np.linalg.solve(C, kept[:, :, None])[:, :, 0] * kept
    return weights / weights.sum(axis=1, keepdims=True)
