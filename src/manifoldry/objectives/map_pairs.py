"""All pairs of points on a map, a block of rows at a time."""

from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import cdist

from manifoldry._typing import Array
from manifoldry._validation import row_blocks

_ARRAYS = 5  # arrays of the size of a block that are alive at a time


def distance_blocks(Y: Array, leave_one_out: bool = True) -> Iterator[tuple[slice, Array]]:
    """Squared distances from the rows of a block to all; infinite to a row that is left out."""
    n = len(Y)
    for block in row_blocks(n, _ARRAYS * n):
        D = cdist(Y[block], Y, "sqeuclidean")
        if leave_one_out:
            D[np.arange(len(D)), np.arange(n)[block]] = np.inf
        yield block, D


def add_gradient(G: Array, C: Array, Y: Array, block: slice) -> None:
    """Add to `G` the gradient of a function whose derivative by a block's distances d² is `C`.

    With T the derivative by all of them, that is 2·lap(T + Tᵀ)·Y.
    """
    G += 2 * (C.sum(axis=0)[:, None] * Y - C.T @ Y[block])
    G[block] += 2 * (C.sum(axis=1)[:, None] * Y[block] - C @ Y)


def add_squared_derivatives(H: Array, S: Array, Y: Array, block: slice) -> None:
    """Add to `H` the sums over a block's rows j of squares of derivatives of a number uⱼ.

    ∂uⱼ/∂d² is `S`, (n_rows, n).
    """
    for axis in range(Y.shape[1]):
        steps = 2 * S * (Y[block, axis, None] - Y[:, axis])
        H[:, axis] += np.einsum("ji,ji->i", steps, steps)
        H[block, axis] += steps.sum(axis=1) ** 2


def centred_map(Y: Array, n: int) -> Array:
    """The map in double precision around its mean, where differences keep their digits."""
    if len(Y) != n:
        raise ValueError(f"the map has {len(Y)} points and the objective {n}; pass one row each")
    Y = np.asarray(Y, dtype=np.float64)
    return np.asarray(Y - Y.mean(axis=0))
