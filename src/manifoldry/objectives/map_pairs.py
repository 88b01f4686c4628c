"""All pairs of points on a map, a block of rows at a time."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

import numpy as np
from scipy.spatial.distance import cdist

from manifoldry.objectives.base import check_map
from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks

Result = TypeVar("Result")


def over_pairs(
    work: Callable[[slice, Array], Result],
    Y: Array,
    leave_one_out: bool = True,
    *,
    arrays: int = 5,  # of the size of a block, alive at a time
    budget: int = 2**21,  # numbers in them: 16 MiB a thread, of which the cache holds most
) -> list[Result]:
    """Results of `work` for all blocks of rows, and their squared distances to all points.

    The distance to a row that is left out is infinite. Blocks do not depend on the number of
    threads, so neither do sums of the results.
    """
    n = len(Y)

    def at(block: slice) -> Result:
        D = cdist(Y[block], Y, "sqeuclidean")
        if leave_one_out:
            D[np.arange(len(D)), np.arange(n)[block]] = np.inf
        return work(block, D)

    blocks = row_blocks(n, arrays * n, budget)
    with one_blas_thread() if len(blocks) > 1 else nullcontext():
        return map_threads(at, blocks)


def gradient_part(C: Array, Y: Array, block: slice) -> Array:
    """Gradient (n, d) of a function whose derivative by a block's squared distances is `C`.

    With T the derivative by all of them, the sum over blocks is 2·lap(T + Tᵀ)·Y.
    """
    G = 2 * (C.sum(axis=0)[:, None] * Y - C.T @ Y[block])
    G[block] += 2 * (C.sum(axis=1)[:, None] * Y[block] - C @ Y)
    return np.asarray(G)


def centred_map(Y: Array, n: int) -> Array:
    """The map in double precision around its mean, where differences keep their digits."""
    Y = check_map(Y, n).astype(np.float64, copy=False)
    return np.asarray(Y - Y.mean(axis=0))
