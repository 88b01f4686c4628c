"""Checks of the weights of pairs that objectives take, and their Laplacian."""

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from manifoldry.device import current_device
from manifoldry.objectives import on_device
from manifoldry.util.threads import run_on_rows
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    canonical,
    check_nonnegative_entries,
    check_square,
    check_symmetric,
    largest_modulus,
    row_blocks,
)


def graph_laplacian(W: sparse.csr_array) -> sparse.csr_array:
    """diag(W1) − W."""
    return sparse.csr_array(sparse.diags_array(W.sum(axis=1)) - W)


def strongest_edges(W: sparse.csr_array, k: int) -> sparse.csr_array:
    """Symmetric weights, keeping those among the `k` largest of at least one endpoint."""
    from manifoldry.util.compiled import kth_largest

    least, counts = np.empty(W.shape[0]), np.diff(W.indptr)
    run_on_rows(kth_largest, W.shape[0], W.indptr, W.data, k, least)
    return _selected(W, W.data >= np.minimum(np.repeat(least, counts), least[W.indices]))


def _selected(W: sparse.csr_array, kept: Array) -> sparse.csr_array:
    """The entries where the mask `kept` is true."""
    starts = np.concatenate([[0], np.cumsum(kept)])[W.indptr]
    return sparse.csr_array((W.data[kept], W.indices[kept], starts), shape=W.shape)


def pair_weights(W: Matrix, what: str) -> sparse.csr_array:
    """Check that weights are symmetric with zero diagonal, and return them as CSR."""
    W = _weights(W, what)
    _check_diagonal(W, what)
    device = current_device()
    if device is None or W.nnz < on_device.LEAST_EDGES or not on_device.is_symmetric(device, W):
        check_symmetric(W, what)
    return W


def joint_weights(W: Matrix, what: str) -> sparse.csr_array:
    """Check that weights of pairs sum to one up to rounding, and return them as CSR."""
    return summing_to_one(pair_weights(W, what), what)


def summing_to_one(W: Matrix, what: str, rounding: float = 1e-6) -> sparse.csr_array:
    """Check the sum of weights, not that they are symmetric, and return them as CSR."""
    W = _weights(W, what)
    total = float(W.sum())
    if abs(total - 1) > rounding:
        raise ValueError(f"the {what} sum to {total:.6g} and must sum to 1; divide by their sum")
    return W


def conditional_weights(
    P: Matrix, what: str, *, include_self: bool, rounding: float = 1e-6
) -> sparse.csr_array:
    """Check that rows sum to one and, without `include_self`, that the diagonal is zero."""
    P = _weights(P, what)
    if not include_self:
        _check_diagonal(P, what)
    totals = P.sum(axis=1)
    row = int(np.argmax(np.abs(totals - 1)))
    if abs(totals[row] - 1) > rounding:
        raise ValueError(
            f"row {row} of the {what} sums to {totals[row]:.6g} and must sum to 1; divide each row "
            "by its sum"
        )
    return P


def _weights(W: Matrix, what: str) -> sparse.csr_array:
    W = canonical(sparse.csr_array(W, dtype=np.float64))
    check_square(W, what)
    if W.shape[0] < 2:
        raise ValueError(f"the {what} have n_samples={W.shape[0]}; pass 2 or more points")
    if not np.isfinite(largest_modulus(W)):
        raise ValueError(f"the {what} have NaN or infinite entries; pass finite weights")
    check_nonnegative_entries(W, what)
    return W


def _check_diagonal(W: sparse.csr_array, what: str) -> None:
    largest = largest_modulus(W.diagonal())
    if largest > 0:
        raise ValueError(
            f"the {what} have {largest:.3g} on the diagonal, which must be zero; set the diagonal "
            "to 0"
        )


def without_diagonal(W: Matrix) -> sparse.csr_array:
    """Return a copy of `W` as CSR without its diagonal."""
    W = sparse.csr_array(W)
    rows = np.repeat(np.arange(W.shape[0], dtype=W.indices.dtype), np.diff(W.indptr))
    return _selected(W, rows != W.indices)


def negative_entropy(P: Matrix) -> float:
    """Σ p log p."""
    device = current_device()
    if device is not None and P.nnz >= on_device.LEAST_EDGES:
        return on_device.negative_entropy_on_device(device, P)
    blocks = row_blocks(P.nnz, 1, budget=2**20)
    return sum(float(xlogy(P.data[block], P.data[block]).sum()) for block in blocks)


def with_values(W: sparse.csr_array, values: Array) -> sparse.csr_array:
    """The same pattern with other values; index arrays are shared."""
    out = sparse.csr_array((values, W.indices, W.indptr), shape=W.shape)
    out.has_canonical_format = W.has_canonical_format  # else it would be checked again
    return out


def entries(W: sparse.csr_array, i: IntArray, j: IntArray) -> Array:
    """W[i, j] of pairs; `i` and `j` are broadcast."""
    i, j = np.broadcast_arrays(i, j)
    return np.asarray(W[i.ravel(), j.ravel()]).reshape(i.shape)
