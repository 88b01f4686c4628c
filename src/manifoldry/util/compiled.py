"""Compiled loops over the rows of sparse matrices; imported only for large ones."""

from functools import cache

import numpy as np

from manifoldry.util.jit import cached_njit

_options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}


@cached_njit(**_options)
def kth_largest(indptr, data, k, out, lo, hi):
    """Fill the k-th largest entry of rows lo to hi, −∞ if a row has fewer.

    By insertion, since k is small; np.partition would take seven seconds to compile.
    """
    largest = np.empty(k, data.dtype)  # of a row so far, in ascending order
    for i in range(lo, hi):
        largest[:] = -np.inf
        for entry in range(indptr[i], indptr[i + 1]):
            place = 0
            while place < k and data[entry] > largest[place]:
                if place > 0:
                    largest[place - 1] = largest[place]
                place += 1
            if place > 0:
                largest[place - 1] = data[entry]
        out[i] = largest[0]


@cached_njit(**_options)
def asymmetry(indptr, indices, data, place):
    """Largest difference between a sparse matrix and its transpose; rows are sorted.

    `place` starts as the first entry of each row. The rows i of all entries (i, j) of a column j
    ascend, as do the entries of row j, which are compared with them one after the other.
    """
    largest = 0.0
    for i in range(len(place)):
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            at, end = place[j], indptr[j + 1]
            while at < end and indices[at] < i:  # without a partner
                largest = max(largest, abs(data[at]))
                at += 1
            if at < end and indices[at] == i:
                largest = max(largest, abs(data[entry] - data[at]))
                at += 1
            else:
                largest = max(largest, abs(data[entry]))
            place[j] = at
    for i in range(len(place)):
        for at in range(place[i], indptr[i + 1]):
            largest = max(largest, abs(data[at]))
    return largest


@cached_njit(**_options)
def grow_cells(indptr, indices, n_cells, label, queue):
    """Fill the cell of each point: cells grow from evenly spaced points, one edge at a time.

    All labels are -1 before. Points that no edge connects to a cell grow cells of their own.
    """
    n, last, next_cell, seed = len(label), 0, n_cells, 0
    for cell in range(n_cells):
        queue[last] = cell * n // n_cells
        label[queue[last]] = cell
        last += 1
    at = 0
    while at < n:
        if at == last:
            while label[seed] >= 0:
                seed += 1
            label[seed] = next_cell
            queue[last] = seed
            last, next_cell = last + 1, next_cell + 1
        i = queue[at]
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            if label[j] < 0:
                label[j] = label[i]
                queue[last] = j
                last += 1
        at += 1


@cached_njit(**_options)
def permute_rows(indptr, indices, data, order, place, starts, new_indices, new_data, lo, hi):
    """Fill rows lo to hi of a matrix with permuted rows and columns."""
    for row in range(lo, hi):
        at = starts[row]
        for entry in range(indptr[order[row]], indptr[order[row] + 1]):
            new_indices[at] = place[indices[entry]]
            new_data[at] = data[entry]
            at += 1


@cache
def product_rows(k):
    """Return the compiled loop that fills rows lo to hi of A·X for k columns.

    The number of columns is a constant, so that the sums of a row stay in registers.
    """

    @cached_njit(**_options)
    def rows(indptr, indices, data, X, out, lo, hi):
        sums = np.empty(k, data.dtype)
        for i in range(lo, hi):
            sums[:] = 0
            for entry in range(indptr[i], indptr[i + 1]):
                j = np.uint64(indices[entry])  # a signed index could be negative: a branch more
                for c in range(k):
                    sums[c] += data[entry] * X[j, c]
            for c in range(k):
                out[i, c] = sums[c]

    return rows


@cache
def chebyshev_rows(k):
    """Return the compiled loop over rows lo to hi of a step of Chebyshev's iteration, k columns.

    R ← R − A·step, new ← a·step + b·inverse∘R, X ← X + new. Separate passes over these arrays
    would take longer than the product.
    """

    @cached_njit(**_options)
    def rows(indptr, indices, data, inverse, step, a, b, R, X, new, lo, hi):
        sums = np.empty(k, data.dtype)
        for i in range(lo, hi):
            sums[:] = 0
            for entry in range(indptr[i], indptr[i + 1]):
                j = np.uint64(indices[entry])
                for c in range(k):
                    sums[c] += data[entry] * step[j, c]
            for c in range(k):
                R[i, c] -= sums[c]
                new[i, c] = a * step[i, c] + b * inverse[i] * R[i, c]
                X[i, c] += new[i, c]

    return rows
