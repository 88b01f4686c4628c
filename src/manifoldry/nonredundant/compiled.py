"""Compiled inner loops over the edges of a graph, for products of gradients.

As in `neighbors.compiled`, each function processes the rows from `lo` to `hi`, every row is written
by one thread, and results do not depend on the number of threads. The graph is symmetric, given by
the parts of a CSR matrix.
"""

import numpy as np

from manifoldry.neighbors.compiled import compiled


@compiled
def gradient_products(indptr, indices, weights, degree, F, out, lo, hi):
    """Γ(f_l, f_m) of the columns of `F` at every row, (n, q, q)."""
    q = F.shape[1]
    step = np.empty(q)
    for i in range(lo, hi):
        out[i] = 0.0
        for edge in range(indptr[i], indptr[i + 1]):
            for m in range(q):
                step[m] = F[indices[edge], m] - F[i, m]
            for m in range(q):
                scaled = weights[edge] / degree[i] * step[m]
                for j in range(m + 1):
                    out[i, m, j] += scaled * step[j]
        for m in range(q):
            for j in range(m):
                out[i, j, m] = out[i, m, j]


@compiled
def frames(products, floor, out, lo, hi):
    """Inverses of the Cholesky factors of `products` plus `floor` times the identity."""
    q = products.shape[1]
    L = np.zeros((q, q))
    for i in range(lo, hi):
        out[i] = 0.0
        for m in range(q):
            for k in range(m + 1):
                total = products[i, m, k]
                for j in range(k):
                    total -= L[m, j] * L[k, j]
                L[m, k] = np.sqrt(total + floor) if k == m else total / L[k, k]
        for m in range(q):
            for k in range(m):
                total = 0.0
                for j in range(k, m):
                    total -= L[m, j] * out[i, j, k]
                out[i, m, k] = total / L[m, m]
            out[i, m, m] = 1 / L[m, m]


@compiled
def gradient_rows(indptr, indices, weights, degree, F, frames, columns, values, lo, hi):
    """Rows i·q to (i + 1)·q of a CSR matrix G: √dᵢ times the gradient at i in the frame there.

    Each of these rows has an entry for every neighbor of i and, as its last one, for i itself.
    """
    q = F.shape[1]
    for i in range(lo, hi):
        count = indptr[i + 1] - indptr[i] + 1
        start = (indptr[i] + i) * q
        for m in range(q):
            own = 0.0
            for e in range(count - 1):
                k = indices[indptr[i] + e]
                along = 0.0
                for j in range(m + 1):
                    along += frames[i, m, j] * (F[k, j] - F[i, j])
                value = weights[indptr[i] + e] * along / np.sqrt(degree[i])
                own -= value
                columns[start + m * count + e] = k
                values[start + m * count + e] = value
            columns[start + m * count + count - 1] = i
            values[start + m * count + count - 1] = own
