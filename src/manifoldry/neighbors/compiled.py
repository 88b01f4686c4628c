"""Compiled inner loops of the neighbor search; imported only for large data.

The functions release the global interpreter lock and process the rows from `lo` to `hi`, so that
threads can share the rows. Each row is written by one thread and does not depend on anything
written in the same pass, so results do not depend on the number of threads.
"""

import numpy as np

from manifoldry.util.jit import cached_njit

# Sums may be reordered for vectorization, but infinities are preserved.
compiled = cached_njit(nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})


@compiled
def insert(indices, distances, row, j, distance):
    """Insert j into a row sorted by distance, dropping the last entry; return its position."""
    place = indices.shape[1] - 1
    while place > 0 and distances[row, place - 1] > distance:
        distances[row, place] = distances[row, place - 1]
        indices[row, place] = indices[row, place - 1]
        place -= 1
    distances[row, place] = distance
    indices[row, place] = j
    return place


@compiled
def keep_smallest(products, squares, first, own, rows, indices, values, lo, hi):
    """Update rows[lo:hi] with the columns of smallest squares[column] − 2·product.

    `first` is the index of the first column. ``own + row`` is the index of a row, which is excluded
    as its own neighbor; a negative `own` means that rows and columns are different points.
    """
    k, width = indices.shape[1], 64
    for r in range(lo, hi):
        row = rows[r]
        worst = values[row, k - 1]
        for start in range(0, products.shape[1], width):
            part, terms = products[r, start : start + width], squares[start : start + width]
            if not any_below(part, terms, worst):
                continue
            for c in range(len(part)):
                value, column = terms[c] - part[c] - part[c], first + start + c
                if value < worst and (own < 0 or own + row != column):
                    insert(indices, values, row, column, value)
                    worst = values[row, k - 1]


@compiled
def search_groups(
    X, starts, origin, queries, groups, indptr, rows, own, most, indices, values
):  # fmt: skip
    """Compare queries with the points of several groups, by matrix products.

    The points of group g are ``X[starts[g] : starts[g + 1]]``; they are compared with the queries
    rows[indptr[g] : indptr[g + 1]], at most `most` at a time. The queries are given relative to the
    origin. See :func:`keep_smallest` for the rest.
    """
    for group in groups:
        compared = rows[indptr[group] : indptr[group + 1]]
        near = queries[compared]
        for first in range(starts[group], starts[group + 1], most):
            last = min(first + most, starts[group + 1])
            points, squares = centered_rows(X[first:last], origin)
            products = np.dot(near, points.T)
            keep_smallest(
                products, squares, first, own, compared, indices, values, 0, len(compared)
            )


@compiled
def centered_rows(X, origin):
    """X − origin, and the squared norms of its rows."""
    centered, squares = np.empty_like(X), np.empty(len(X), X.dtype)
    for i in range(len(X)):
        total = X.dtype.type(0.0)
        for f in range(X.shape[1]):
            step = X[i, f] - origin[f]
            centered[i, f] = step
            total += step * step
        squares[i] = total
    return centered, squares


@compiled
def any_below(products, squares, limit):
    """Whether any squares[c] − 2·products[c] is below the limit; a loop of vector instructions."""
    count = np.int32(0)
    for c in range(len(products)):
        count += np.int32(squares[c] - products[c] - products[c] < limit)
    return count > 0


@compiled
def keep_smallest_across(products, squares, first, indices, values, lo, hi):
    """Like :func:`keep_smallest`, for columns lo to hi; the rows, from `first`, are candidates."""
    k = indices.shape[1]
    worst = values[lo:hi, k - 1].copy()
    for r in range(products.shape[0]):
        square = squares[first + r]
        for c in range(lo, hi):
            value = square - 2 * products[r, c]
            if value < worst[c - lo]:
                insert(indices, values, c, first + r, value)
                worst[c - lo] = values[c, k - 1]


@compiled
def lengths(X, Y, i, j, unit, out):
    """‖xᵢ − yⱼ‖ in double precision, for pairs of rows."""
    for pair in range(len(out)):
        total = 0.0
        for f in range(X.shape[1]):
            step = (np.float64(X[i[pair], f]) - np.float64(Y[j[pair], f])) / unit
            total += step * step
        out[pair] = np.sqrt(total) * unit


@compiled
def move_up(heap, place, keys, side, at):
    """Restore the order of a heap of nodes after the key of the node at position `at` decreased.

    Each of the two rows of `heap` is a binary heap; ``place[side, node]`` is the node's position.
    """
    node = heap[side, at]
    while at > 0:
        parent = heap[side, (at - 1) >> 1]
        if keys[side, parent] <= keys[side, node]:
            break
        heap[side, at] = parent
        place[side, parent] = at
        at = (at - 1) >> 1
    heap[side, at] = node
    place[side, node] = at


@compiled
def remove_first(heap, place, keys, side, size):
    """Remove the node of smallest key from a heap of `size` nodes."""
    node = heap[side, size - 1]
    at, child = 0, 1
    while child < size - 1:
        if (
            child + 1 < size - 1
            and keys[side, heap[side, child + 1]] < keys[side, heap[side, child]]
        ):
            child += 1
        if keys[side, node] <= keys[side, heap[side, child]]:
            break
        heap[side, at] = heap[side, child]
        place[side, heap[side, at]] = at
        at, child = child, 2 * child + 1
    heap[side, at] = node
    place[side, node] = at


@compiled
def path_lengths(
    indptr, indices, lengths, starts, ends, limits, shortest, out, reached, heap, place, touched,
    counts, lo, hi,
):  # fmt: skip
    """Length of the shortest path between each pair of points, infinite beyond its limit.

    Dijkstra's algorithm from both ends at once, for pairs lo to hi. Unless `shortest`, it is the
    length of the first path found within the limit. Scratch arrays are `reached` (2, n_nodes),
    which is infinite before and after the call, `heap`, `place` and `touched` of the same shape,
    and `counts` (2, 2).
    """
    for pair in range(lo, hi):
        for side in range(2):
            start = ends[pair] if side else starts[pair]
            reached[side, start] = 0.0
            heap[side, 0] = touched[side, 0] = start
            place[side, start] = 0
            counts[side, 0] = counts[side, 1] = 1  # nodes in the heap, nodes reached
        best = np.inf
        while counts[0, 0] > 0 and counts[1, 0] > 0:
            radius = reached[0, heap[0, 0]] + reached[1, heap[1, 0]]
            if radius >= min(best, limits[pair]) or (best <= limits[pair] and not shortest):
                break
            side = 0 if counts[0, 0] <= counts[1, 0] else 1
            i = heap[side, 0]
            length, other = reached[side, i], reached[1 - side, heap[1 - side, 0]]
            remove_first(heap, place, reached, side, counts[side, 0])
            counts[side, 0] -= 1
            for edge in range(indptr[i], indptr[i + 1]):
                j, new = indices[edge], length + lengths[edge]
                if new < reached[side, j]:
                    best = min(best, new + reached[1 - side, j])
                    if new + other <= min(best, limits[pair]):
                        if reached[side, j] == np.inf:
                            touched[side, counts[side, 1]] = j
                            counts[side, 1] += 1
                            heap[side, counts[side, 0]] = j
                            place[side, j] = counts[side, 0]
                            counts[side, 0] += 1
                        reached[side, j] = new
                        move_up(heap, place, reached, side, place[side, j])
        out[pair] = best if best <= limits[pair] else np.inf
        for side in range(2):
            for t in range(counts[side, 1]):
                reached[side, touched[side, t]] = np.inf


@compiled
def lowest(parts, i):
    """The lowest point known to be connected with i; shortens the way to it."""
    while parts[i] != i:
        parts[i] = parts[parts[i]]
        i = parts[i]
    return i


@compiled
def join(ends, kept, parts):
    """Give all points that the edges in the mask `kept` connect the index of the lowest of them.

    At the beginning ``parts[i] == i``.
    """
    for edge in range(len(ends)):
        if kept[edge]:
            i, j = lowest(parts, ends[edge, 0]), lowest(parts, ends[edge, 1])
            parts[max(i, j)] = min(i, j)
    for i in range(len(parts)):  # the parents are lower, so they are final
        parts[i] = parts[parts[i]]


@compiled
def join_rows(indptr, indices, parts):
    """Like :func:`join`, for all edges of a graph in compressed rows."""
    for row in range(len(parts)):
        i = lowest(parts, row)
        for edge in range(indptr[row], indptr[row + 1]):
            j = lowest(parts, indices[edge])
            if i != j:
                parts[max(i, j)] = min(i, j)
                i = min(i, j)
    for i in range(len(parts)):
        parts[i] = parts[parts[i]]


@compiled
def join_strong_rows(indptr, indices, data, root, negligible, least, parts):
    """Like :func:`join_rows`, for entries larger than `least` and negligible · rootᵢ · rootⱼ."""
    for row in range(len(parts)):
        i = lowest(parts, row)
        for entry in range(indptr[row], indptr[row + 1]):
            size = abs(data[entry])
            if size > least and size > negligible * root[row] * root[indices[entry]]:
                j = lowest(parts, indices[entry])
                if i != j:
                    parts[max(i, j)] = min(i, j)
                    i = min(i, j)
    for i in range(len(parts)):
        parts[i] = parts[parts[i]]


@compiled
def select_entries(indptr, indices, edges, lengths, kept, starts, out_indices, out_lengths):
    """Copy the entries of a sparse matrix of edge numbers whose edges are in the mask `kept`."""
    place = 0
    for i in range(len(indptr) - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            if kept[edges[entry]]:
                out_indices[place] = indices[entry]
                out_lengths[place] = lengths[edges[entry]]
                place += 1
        starts[i + 1] = place


@compiled
def sum_to_roots(parents, counts, lo, hi):
    """Add the count of each node of trees lo to hi to those of all nodes between it and the root.

    The parent of a root is negative.
    """
    n = parents.shape[1]
    waiting = np.empty(n, np.int64)  # children not yet added; -1 for nodes that have been added
    for tree in range(lo, hi):
        waiting[:] = 0
        for i in range(n):
            if parents[tree, i] >= 0:
                waiting[parents[tree, i]] += 1
        for start in range(n):
            i = start
            while waiting[i] == 0 and parents[tree, i] >= 0:
                counts[tree, parents[tree, i]] += counts[tree, i]
                waiting[i] = -1
                i = parents[tree, i]
                waiting[i] -= 1


@compiled
def within_steps(indptr, indices, starts, ends, steps, out, mark, queue, bounds, lo, hi):
    """Whether a path of at most `steps` edges connects each pair of points; pairs lo to hi.

    Scratch arrays are `mark` (2, n_nodes), negative before the call, `queue` (2, n_nodes) and
    `bounds` (2, 2).
    """
    for pair in range(lo, hi):
        for side in range(2):
            start = ends[pair] if side else starts[pair]
            queue[side, 0], mark[side, start] = start, pair
            bounds[side, 0], bounds[side, 1] = 0, 1
        met = False
        for _ in range(steps):
            side = 0 if bounds[0, 1] - bounds[0, 0] <= bounds[1, 1] - bounds[1, 0] else 1
            stop = last = bounds[side, 1]
            for at in range(bounds[side, 0], stop):
                i = queue[side, at]
                for edge in range(indptr[i], indptr[i + 1]):
                    j = indices[edge]
                    if mark[1 - side, j] == pair:
                        met = True
                        break
                    if mark[side, j] != pair:
                        mark[side, j] = pair
                        queue[side, last] = j
                        last += 1
                if met:
                    break
            bounds[side, 0], bounds[side, 1] = stop, last
            if met:
                break
        out[pair] = met
