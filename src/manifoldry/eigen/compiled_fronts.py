"""Compiled multifrontal Cholesky factorization; imported only for large sparse matrices.

The nodes of a tree of separators are eliminated one after the other, each as a small dense matrix,
its front (Duff and Reid 1983). The front of a node has a row for each of its own vertices and for
each later vertex that is adjacent to the node or a descendant. After the elimination of the node
the remaining entries, its update, are added to the front of its parent.

`starts` are the positions of the first vertex of each node, and one more for the end; `rows` from
row_starts[i] to row_starts[i + 1] are the positions of the other rows of the front of node i. The
factor of a front with `width` own and `height` other rows is stored from factor_starts[i] on, as
(width + height) rows of `width` entries.
"""

import numpy as np

from manifoldry.util.jit import cached_njit

compiled = cached_njit(nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})


@compiled
def shell_sort(values):
    """Sort an array in place by Shell's method; np.sort would take seconds to compile."""
    gap = len(values) // 2
    while gap > 0:
        for i in range(gap, len(values)):
            value, at = values[i], i
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap = 1 if gap == 2 else int(gap / 2.2)


@compiled
def symbolic(indptr, indices, starts, lows):
    """Rows of each front, the number of children of each node, and the size of the stack.

    The matrix is permuted.
    """
    n, n_nodes = len(indptr) - 1, len(lows)
    rows, row_starts = np.empty(4 * n + 16, np.int32), np.zeros(n_nodes + 1, np.int64)
    n_children = np.zeros(n_nodes, np.int64)
    mark, pending = np.full(n, -1, np.int32), np.empty(n_nodes, np.int64)
    n_pending = size = in_stack = most_in_stack = 0
    for node in range(n_nodes):
        stop, first = starts[node + 1], size
        needed = indptr[stop] - indptr[starts[node]]
        freed, children = 0, n_pending
        while children > 0 and starts[pending[children - 1]] >= lows[node]:
            children -= 1
            height = row_starts[pending[children] + 1] - row_starts[pending[children]]
            needed += height
            freed += height * height
        if size + needed > len(rows):
            larger = np.empty(2 * (size + needed), np.int32)
            for r in range(size):
                larger[r] = rows[r]
            rows = larger
        for entry in range(indptr[starts[node]], indptr[stop]):
            j = indices[entry]
            if j >= stop and mark[j] != node:
                mark[j] = node
                rows[size] = j
                size += 1
        for at in range(children, n_pending):
            for r in range(row_starts[pending[at]], row_starts[pending[at] + 1]):
                j = rows[r]
                if j >= stop and mark[j] != node:
                    mark[j] = node
                    rows[size] = j
                    size += 1
        shell_sort(rows[first:size])
        row_starts[node + 1] = size
        n_children[node] = n_pending - children
        pending[children] = node
        n_pending = children + 1
        most_in_stack = max(most_in_stack, in_stack + (size - first) ** 2)
        in_stack += (size - first) ** 2 - freed
    return rows[:size].copy(), row_starts, n_children, most_in_stack


@compiled
def add_update(update, height, rows, first, place, width, front, rest, rest_height):
    """Add the update of a child, with the given rows, to the front and the update of its parent."""
    own = 0
    while own < height and place[rows[first + own]] < width:
        own += 1
    for a in range(height):
        row = place[rows[first + a]]
        at = a * height
        for b in range(min(a + 1, own)):
            front[row * width + place[rows[first + b]]] += update[at + b]
        if row >= width:
            base = (row - width) * rest_height - width
            for b in range(own, a + 1):
                rest[base + place[rows[first + b]]] += update[at + b]


@compiled
def eliminate(front, width, total, block):
    """Overwrite the front of `total` rows by its Cholesky factor; False if it is not definite.

    The factor is computed `block` columns at a time.
    """
    F = front[: total * width].reshape(total, width)
    for lo in range(0, width, block):
        hi = min(lo + block, width)
        if lo:
            left = np.ascontiguousarray(F[lo:, :lo])
            products = np.dot(left, left[: hi - lo].T)
            for r in range(lo, total):
                for c in range(lo, hi):
                    F[r, c] -= products[r - lo, c - lo]
        for r in range(lo, total):
            for c in range(lo, min(r + 1, hi)):
                value = F[r, c]
                for k in range(lo, c):
                    value -= F[r, k] * F[c, k]
                if r > c:
                    F[r, c] = value / F[c, c]
                elif value > 0:
                    F[r, c] = np.sqrt(value)
                else:  # not positive, or NaN
                    return False
    return True


@compiled
def factorize(
    indptr, indices, data, starts, rows, row_starts, factor_starts, n_children, factor, stack,
    block,
):  # fmt: skip
    """Fill the factor, which is zero before; return whether the matrix is definite.

    The stack holds the updates of nodes whose parents follow.
    """
    place = np.empty(len(indptr) - 1, np.int32)  # of the vertices of a front
    pending, n_pending, top = np.empty(len(n_children), np.int64), 0, 0
    for node in range(len(n_children)):
        start, stop = starts[node], starts[node + 1]
        width, height = stop - start, row_starts[node + 1] - row_starts[node]
        front = factor[factor_starts[node] : factor_starts[node + 1]]
        for j in range(start, stop):
            place[j] = j - start
        for r in range(height):
            place[rows[row_starts[node] + r]] = width + r
        for i in range(start, stop):
            for entry in range(indptr[i], indptr[i + 1]):
                j = indices[entry]
                if j >= i:
                    front[place[j] * width + i - start] += data[entry]
        update = stack[top : top + height * height]
        for at in range(height * height):
            update[at] = 0.0
        base = top
        for _ in range(n_children[node]):
            n_pending -= 1
            first = row_starts[pending[n_pending]]
            child_height = row_starts[pending[n_pending] + 1] - first
            base -= child_height * child_height
            add_update(stack[base:], child_height, rows, first, place, width, front, update, height)
        if not eliminate(front, width, width + height, block):
            return False
        if height:
            below = front[width * width :].reshape(height, width)
            products = np.dot(below, below.T)
            for a in range(height):
                for b in range(a + 1):
                    stack[base + a * height + b] = update[a * height + b] - products[a, b]
        top = base + height * height
        pending[n_pending] = node
        n_pending += 1
    return True


@compiled
def solve_factored(factor, starts, rows, row_starts, factor_starts, X):
    """Overwrite X, (n_columns, n), by the solution of L Lᵀ Y = X."""
    n_columns = len(X)
    n_nodes = len(starts) - 1
    for node in range(n_nodes):
        start, width = starts[node], starts[node + 1] - starts[node]
        L = factor[factor_starts[node] : factor_starts[node + 1]].reshape(-1, width)
        for column in range(n_columns):
            x = X[column]
            own = x[start : start + width]
            for r in range(width):
                value = own[r]
                for k in range(r):
                    value -= L[r, k] * own[k]
                own[r] = value / L[r, r]
        first = row_starts[node]
        for r in range(row_starts[node + 1] - first):
            row = rows[first + r]
            for column in range(n_columns):
                own = X[column, start : start + width]
                value = 0.0
                for k in range(width):
                    value += L[width + r, k] * own[k]
                X[column, row] -= value
    for node in range(n_nodes - 1, -1, -1):
        start, width = starts[node], starts[node + 1] - starts[node]
        L = factor[factor_starts[node] : factor_starts[node + 1]].reshape(-1, width)
        first = row_starts[node]
        for r in range(row_starts[node + 1] - first):
            row = rows[first + r]
            for column in range(n_columns):
                own, value = X[column, start : start + width], X[column, row]
                for k in range(width):
                    own[k] -= L[width + r, k] * value
        for column in range(n_columns):
            own = X[column, start : start + width]
            for r in range(width - 1, -1, -1):
                own[r] /= L[r, r]
                for k in range(r):
                    own[k] -= L[r, k] * own[r]
