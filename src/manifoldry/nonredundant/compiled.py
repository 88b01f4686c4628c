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


@compiled
def metrics(frames, degree, out, lo, hi):
    """FᵀF / degree for the frame F of every row: (groups, q, q, size), rows by groups of `size`."""
    n, q = frames.shape[:2]
    size = out.shape[3]
    for i in range(lo * size, min(n, hi * size)):
        for m in range(q):
            for j in range(m + 1):
                total = 0.0
                for k in range(m, q):
                    total += frames[i, k, m] * frames[i, k, j]
                value = total / degree[i]
                out[i // size, m, j, i % size] = out[i // size, j, m, i % size] = value


@compiled
def edge_penalties(indptr, indices, weights, F, metrics, own, edges, lo, hi):
    """What every row adds to the diagonal of the penalty: at the row, and at its neighbors."""
    q, size = F.shape[1], metrics.shape[3]
    step, total = np.empty(q), np.empty(q)
    for i in range(lo, hi):
        metric = metrics[i // size, :, :, i % size].copy()
        total[:] = 0.0
        for edge in range(indptr[i], indptr[i + 1]):
            for m in range(q):
                step[m] = weights[edge] * (F[indices[edge], m] - F[i, m])
                total[m] += step[m]
            edges[edge] = quadratic_form(metric, step)
        own[i] = quadratic_form(metric, total)


@compiled
def quadratic_form(A, x):
    """xᵀAx."""
    total = 0.0
    for m in range(len(x)):
        row = 0.0
        for j in range(len(x)):
            row += A[m, j] * x[j]
        total += row * x[m]
    return total


@compiled
def times_coordinates(F, f, out, lo, hi):
    """Products of the columns of `f` (n, b) with those of `F` (n, q), followed by `f` itself."""
    b, q = f.shape[1], F.shape[1]
    for i in range(lo, hi):
        for j in range(b):
            for m in range(q):
                out[i, j * q + m] = f[i, j] * F[i, m]
            out[i, b * q + j] = f[i, j]


@compiled
def neighbor_sums(indptr, indices, weights, T, i, sums):
    """Weighted sums of the rows of `T` over the neighbors of i, in one long loop per neighbor."""
    columns = len(sums)
    sums[:] = 0
    edge, end = indptr[i], indptr[i + 1]
    while edge + 1 < end:  # two neighbors at a time, which halves the accesses to `sums`
        row, weight = T[np.uint64(indices[edge])], weights[edge]
        next_row, next_weight = T[np.uint64(indices[edge + 1])], weights[edge + 1]
        for t in range(columns):
            sums[t] += weight * row[t] + next_weight * next_row[t]
        edge += 2
    if edge < end:
        row, weight = T[np.uint64(indices[edge])], weights[edge]
        for t in range(columns):
            sums[t] += weight * row[t]


@compiled
def gradient_components(
    indptr, indices, weights, degree, F, WF, metrics, T, out, laplacian, lo, hi
):
    """Components of the gradients of functions f, and the Laplacian of f.

    `T` are the products of :func:`times_coordinates`. With the sums over neighbors of
    (F_k − Fᵢ)(f_k − fᵢ), multiplied by the metric at i, as components c, `out` has the columns
    c (b·q) and F·c (b). Groups lo to hi of rows are processed, and metrics multiplied for all
    rows of a group in one loop.
    """
    n, q = F.shape
    b, size = laplacian.shape[1], metrics.shape[3]
    sums = np.empty(T.shape[1], dtype=T.dtype)
    differences = np.zeros((b * q, size), dtype=T.dtype)
    components = np.empty((b * q, size), dtype=T.dtype)
    for group in range(lo, hi):
        first = group * size
        count = min(size, n - first)
        for p in range(count):
            i = first + p
            neighbor_sums(indptr, indices, weights, T, i, sums)
            for j in range(b):
                own = T[i, b * q + j]
                laplacian[i, j] = degree[i] * own - sums[b * q + j]
                for k in range(q):
                    difference = sums[j * q + k] - own * WF[i, k] + F[i, k] * laplacian[i, j]
                    differences[j * q + k, p] = difference
        components[:] = 0
        for k in range(q):
            for m in range(q):
                metric = metrics[group, k, m]
                for j in range(b):
                    difference_row, component_row = differences[j * q + k], components[j * q + m]
                    for p in range(size):
                        component_row[p] += metric[p] * difference_row[p]
        for p in range(count):
            i = first + p
            for j in range(b):
                along = 0.0
                for m in range(q):
                    out[i, j * q + m] = components[j * q + m, p]
                    along += F[i, m] * components[j * q + m, p]
                out[i, b * q + j] = along


@compiled
def penalty_rows(indptr, indices, weights, degree, F, WF, components, out, lo, hi):
    """The transposed product with the columns of :func:`gradient_components`, (n, b)."""
    q, b = F.shape[1], out.shape[1]
    sums = np.empty(components.shape[1], dtype=components.dtype)
    for i in range(lo, hi):
        neighbor_sums(indptr, indices, weights, components, i, sums)
        for j in range(b):
            total = degree[i] * components[i, b * q + j] - sums[b * q + j]
            for m in range(q):
                total += F[i, m] * sums[j * q + m] - WF[i, m] * components[i, j * q + m]
            out[i, j] = total
