"""Compiled inner loops over the edges of a graph, for products of gradients.

As in `neighbors.compiled`, each function processes the rows from `lo` to `hi`, every row is written
by one thread, and results do not depend on the number of threads. The graph is symmetric, given by
the parts of a CSR matrix.
"""

from functools import cache

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
def edge_gradients(indptr, indices, weights, degree, F, frames, out, lo, hi):
    """Coefficient of f_k in √dᵢ times the gradient of f at i, for each edge (i, k); (n_edges, q).

    Components are those in the frame at i. The coefficient of f_i is minus the sum of the others.
    """
    q = F.shape[1]
    for i in range(lo, hi):
        for edge in range(indptr[i], indptr[i + 1]):
            scale = weights[edge] / np.sqrt(degree[i])
            for m in range(q):
                along = 0.0
                for j in range(m + 1):
                    along += frames[i, m, j] * (F[indices[edge], j] - F[i, j])
                out[edge, m] = scale * along


@cache
def gradient_component_rows(q):
    """Return the compiled loop that fills rows lo to hi of the gradients (n, q) of a function f.

    The number of components is a constant, so that the sums of a row stay in registers.
    """

    @compiled
    def rows(indptr, indices, edges, own, f, out, lo, hi):
        sums = np.empty(q)
        for i in range(lo, hi):
            for m in range(q):
                sums[m] = own[i, m] * f[i]
            for edge in range(indptr[i], indptr[i + 1]):
                value = f[np.uint64(indices[edge])]
                for m in range(q):
                    sums[m] += edges[edge, m] * value
            for m in range(q):
                out[i, m] = sums[m]

    return rows


@cache
def transposed_rows(q):
    """Return the compiled loop over rows of the transposed product; `edges` are the reversed."""

    @compiled
    def rows(indptr, indices, edges, own, gradients, out, lo, hi):
        sums = np.empty(q)
        for i in range(lo, hi):
            for m in range(q):
                sums[m] = own[i, m] * gradients[i, m]
            for edge in range(indptr[i], indptr[i + 1]):
                k = np.uint64(indices[edge])
                for m in range(q):
                    sums[m] += edges[edge, m] * gradients[k, m]
            out[i] = sums.sum()

    return rows
