"""What spectral methods compute on a device: Laplacians, centered data and kernels."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from manifoldry.affinity.dense import RBF
from manifoldry.affinity.on_device import LEAST_EDGES
from manifoldry.device import Device, current_device
from manifoldry.eigen.on_device import FEWER_POINTS
from manifoldry.neighbors.components_on_device import joined_labels
from manifoldry.neighbors.distances import Frame, expansion_error
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

LEAST_ROWS = 2048
"""Number of points from which kernels of all pairs are computed on a device."""
_BLOCK = 2**26  # entries in temporary arrays


def device_with_edges(W: Matrix) -> Device | None:
    """The current device if a sparse matrix has many entries; None for the CPU."""
    many = sparse.issparse(W) and W.format == "csr" and W.nnz >= LEAST_EDGES
    return current_device() if many else None


def sparse_laplacian(device: Device, W: sparse.csr_array) -> sparse.csr_array:
    """D − W for symmetric weights with sorted rows; the device keeps its copy."""
    xp, n, rows = device.xp, W.shape[0], device.rows(W, np.float64)
    row, column, data = rows.row_numbers(xp), rows.indices, rows.data
    between = row != column
    row, column, data = row[between], column[between], data[between]
    # Entries move by one place for each diagonal entry before them.
    places = xp.arange(len(row), dtype=np.int64) + row + (column > row)
    starts = xp.zeros(n + 1, dtype=np.int64)
    starts[1:] = xp.cumsum(xp.bincount(row, minlength=n))
    lower = xp.bincount(row[column < row], minlength=n)
    diagonal = starts[:-1] + xp.arange(n, dtype=np.int64) + lower
    sums = device.product(rows._replace(indptr=starts, indices=column, data=data), xp.ones((n, 1)))
    entries, columns = xp.empty(len(row) + n), xp.empty(len(row) + n, dtype=np.int32)
    entries[places], columns[places] = -data, column
    entries[diagonal], columns[diagonal] = sums[:, 0], xp.arange(n, dtype=np.int32)
    indptr = (starts + xp.arange(n + 1, dtype=np.int64)).astype(np.int32)
    return _downloaded(device, entries, columns, indptr)


def _downloaded(device: Device, *parts: Array) -> sparse.csr_array:
    on_host = tuple(device.host(part) for part in parts)
    n = len(on_host[2]) - 1
    A = sparse.csr_array(on_host, shape=(n, n))
    A.has_canonical_format = True  # sorted, without duplicates
    for part, copy in zip((A.data, A.indices, A.indptr), parts, strict=True):
        device.hold(part, copy)
    return A


def strong_components(
    device: Device, A: sparse.csr_array, negligible: float, vanishing: float
) -> IntArray:
    """The same as `coupled_components`, on a device."""
    xp, rows = device.xp, device.rows(A, np.float64)
    row, column, size = rows.row_numbers(xp), rows.indices, abs(rows.data)
    root = xp.sqrt(abs(device.array(A.diagonal())))
    strong = size > negligible * root[row] * root[column]
    strong &= size > vanishing * size.max()
    return joined_labels(device, row[strong], column[strong], A.shape[0])


def centered_factor(device: Device, X: Array, frame: Frame) -> tuple[Array, Array, float]:
    """Data in a frame minus their mean, on the device; the mean in the frame, and the inertia."""
    device.plan(24.0 * X.size, f"centering {len(X)} rows", FEWER_POINTS)
    F = device.array(X) - device.array(frame.origin)
    F /= frame.unit
    offset = F.mean(axis=0)  # rounding errors of the first centering
    F -= offset
    inertia = float(device.xp.einsum("ij,ij->", F, F))
    return F, device.host(offset), inertia


def gaussian_of_pairs(device: Device, rbf: RBF, accuracy: float = 1e-9) -> Array | None:
    """exp(−gamma·d²) of all pairs of points; None if products are not accurate enough."""
    xp, X, n = device.xp, rbf.X, rbf.n_train
    device.plan(20.0 * n * n, f"the kernel of all pairs of {n} points", FEWER_POINTS)
    A = (device.array(X) - device.array(rbf.frame.origin)) / rbf.frame.unit
    squares = xp.einsum("ij,ij->i", A, A)
    largest = device.host(squares.max())
    if not expansion_error(largest, largest, X.shape[1]) * rbf.gamma <= accuracy:
        why = "their squared distances are differences of much larger numbers; subtract the mean"
        device.runs_on_host(f"the kernel of {n} points", why)
        return None
    K = A @ A.T
    K *= -2
    K += squares[:, None]
    K += squares
    xp.maximum(K, 0, out=K)
    K[xp.arange(n), xp.arange(n)] = 0
    K *= -rbf.gamma
    return xp.exp(K, out=K)


def center(K: Array, means: Array, grand_mean: float) -> Array:
    """Center a symmetric matrix with the means of its columns, in place."""
    # Sums of two terms, one for the row and one for the column, keep symmetry.
    terms = means - grand_mean / 2
    for rows in row_blocks(len(K), len(K), _BLOCK):
        K[rows] -= terms[rows, None] + terms
    return K
