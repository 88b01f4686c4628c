"""Compiled nested dissection of a graph; imported only for large sparse matrices.

A graph is split into two parts by a separator, a set of vertices whose removal leaves no edge
between them, and the parts are split again. If the separator is eliminated after the parts, the
factor has no entries between the two parts (George 1973). Levels of a breadth-first search are
separators. A smaller one between two levels is found from a maximum number of paths between them
that have no common vertices: the smallest separator has one vertex of each (Menger's theorem).
"""

import numpy as np

from manifoldry.util.jit import cached_njit

compiled = cached_njit(nogil=True)

# Values of `follow` and `before`: the vertex is on no path; it is the last or first of its path.
UNUSED = -1
END = -2


@compiled
def breadth_first(indptr, indices, part, own, new, start, depth, queue, lo):
    """Write the vertices of part `own` that `start` reaches to the queue from `lo`, by level.

    They become part `new`, and `depth` receives their levels. Returns the position after the last.
    """
    queue[lo] = start
    part[start] = new
    depth[start] = 0
    stop, at = lo + 1, lo
    while at < stop:
        i = queue[at]
        at += 1
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if part[j] == own:
                part[j] = new
                depth[j] = depth[i] + 1
                queue[stop] = j
                stop += 1
    return stop


@compiled
def split_components(indptr, indices, part, own, newest, depth, queue, order, lo, hi):
    """Write the connected components of part `own` in order[lo:hi] to the queue, by level.

    They become the parts newest + 1, newest + 2, …; returns the number of the last one.
    """
    stop = lo
    for at in range(lo, hi):
        start = np.int64(order[at])
        if part[start] == own:
            newest += 1
            stop = breadth_first(indptr, indices, part, own, newest, start, depth, queue, stop)
    return newest


@compiled
def breadth_first_order(indptr, indices):
    """All vertices in the order of breadth-first search, one connected component after another."""
    n = len(indptr) - 1
    part, depth = np.ones(n, np.int32), np.empty(n, np.int32)
    order, queue = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    split_components(indptr, indices, part, 1, 1, depth, queue, order, 0, n)
    return queue


@compiled
def count_steps(
    indptr, indices, part, own, depth, low, high, sources, follow, before, steps, states
):  # fmt: skip
    """Steps from the sources to each state of a path; return those to a level above `high`, or 0.

    Each vertex has two states, entered (2v) and left (2v + 1). A vertex on one of the disjoint
    paths can be entered only to go back along that path, which redirects it. `steps` are negative
    before the call, and after it for states that are not reached, or not before the level is.
    """
    count = 0
    for s in sources:
        if follow[s] == UNUSED or before[s] != END:
            steps[s, 0] = 0
            states[count] = 2 * s
            count += 1
    at = reached = 0
    while at < count:
        v, out = states[at] >> 1, states[at] & 1
        at += 1
        step = steps[v, out] + 1
        if reached and step >= reached:
            break
        if out == 0:
            u = v if follow[v] == UNUSED else before[v]
            if u != END and steps[u, 1] < 0:
                steps[u, 1] = step
                states[count] = 2 * u + 1
                count += 1
            continue
        if follow[v] != UNUSED and steps[v, 0] < 0:
            steps[v, 0] = step
            states[count] = 2 * v
            count += 1
        for e in range(indptr[v], indptr[v + 1]):
            w = indices[e]
            if part[w] == own and depth[w] > high:
                reached = step
            elif part[w] == own and depth[w] >= low and steps[w, 0] < 0 and w != follow[v]:
                steps[w, 0] = step
                states[count] = 2 * w
                count += 1
    return reached


@compiled
def find_path(
    indptr, indices, part, own, depth, low, high, start, reached, follow, before, steps, stack, edge
):
    """Search a shortest further path from `start` to a level above `high`; return its length or 0.

    The states of the path are left in the stack. Each state is visited once and then forgotten.
    """
    size = 1
    stack[0], edge[0] = 2 * start, -1
    while size > 0:
        v, out = stack[size - 1] >> 1, stack[size - 1] & 1
        untried = edge[size - 1] < 0
        step, new = size, -1
        if out == 0:
            edge[size - 1] = 0
            u = v if follow[v] == UNUSED else before[v]
            if untried and u != END and steps[u, 1] == step:
                new = 2 * u + 1
        else:
            e = indptr[v] if untried else edge[size - 1]
            if untried and follow[v] != UNUSED and steps[v, 0] == step:
                new = 2 * v
            while new < 0 and e < indptr[v + 1]:
                w = indices[e]
                e += 1
                if part[w] != own or depth[w] < low:
                    continue
                if depth[w] > high:
                    if step == reached:
                        return size
                elif steps[w, 0] == step and w != follow[v]:
                    new = 2 * w
            edge[size - 1] = e
        if new < 0:
            size -= 1
        else:
            steps[new >> 1, new & 1] = -1
            stack[size], edge[size] = new, -1
            size += 1
    return 0


@compiled
def add_path(stack, size, follow, before):
    """Add the path of states in the stack to the disjoint paths."""
    for at in range(size - 1, -1, -1):
        v = stack[at] >> 1
        if stack[at] & 1:
            after = stack[at + 1] if at + 1 < size else END
            if after == 2 * v:  # redirected before it reached v
                follow[v] = UNUSED
            elif after == END:
                follow[v] = END
            else:
                follow[v] = after >> 1
                before[after >> 1] = v
    before[stack[0] >> 1] = END


@compiled
def separate(
    indptr, indices, part, own, new, depth, low, high, queue, lo, hi, follow, before, steps, stack,
    edge,
):  # fmt: skip
    """Split part `own`, given by levels in queue[lo:hi], by a separator in levels low to high.

    Afterwards `part` is 0 for the separator, `new` for the lower and new + 1 for the upper part.
    """
    first = lo
    while depth[queue[first]] < low:
        first += 1
    last = first
    while last < hi and depth[queue[last]] == low:
        last += 1
    end = last
    while end < hi and depth[queue[end]] <= high:
        end += 1
    for at in range(first, end):
        follow[queue[at]] = UNUSED
    while True:  # Dinic's algorithm
        for at in range(first, end):
            steps[queue[at], 0] = steps[queue[at], 1] = -1
        reached = count_steps(
            indptr, indices, part, own, depth, low, high, queue[first:last], follow, before, steps,
            stack,
        )  # fmt: skip
        if not reached:
            break
        for at in range(first, last):
            s = queue[at]
            if steps[s, 0] == 0:
                size = find_path(
                    indptr, indices, part, own, depth, low, high, s, reached, follow, before,
                    steps, stack, edge,
                )  # fmt: skip
                if size:
                    add_path(stack, size, follow, before)
    for at in range(lo, first):
        part[queue[at]] = new
    for at in range(end, hi):
        part[queue[at]] = new + 1
    for at in range(first, end):  # the cut consists of vertices that are entered but not left
        v = queue[at]
        entered = steps[v, 0] >= 0 or at < last
        part[v] = new if steps[v, 1] >= 0 else (0 if entered else new + 1)


@compiled
def sort_by_part(part, new, queue, order, lo, hi):
    """Sort queue[lo:hi] by part into `order`: new, new + 1, 0; return where the first two end."""
    first = second = 0
    for at in range(lo, hi):
        first += part[queue[at]] == new
        second += part[queue[at]] == new + 1
    first, second = lo + first, lo + first + second
    places = np.array([second, lo, first])
    for at in range(lo, hi):
        which = part[queue[at]] - new + 1 if part[queue[at]] else 0
        order[places[which]] = queue[at]
        places[which] += 1
    return first, second


@compiled
def middle_levels(depth, queue, lo, hi, width, most):
    """First and last level to search for a separator, in the middle of queue[lo:hi].

    At most `most` levels below and above the one of the median vertex, and only vertices of the
    fraction `width` below and above the median; neither the first nor the last level.
    """
    size, middle = hi - lo, depth[queue[(lo + hi) // 2]]
    low = max(1, middle - most, depth[queue[lo + int(size * (0.5 - width))]])
    high = min(
        depth[queue[hi - 1]] - 1, middle + most, depth[queue[lo + int(size * (0.5 + width))]]
    )
    return low, high


@compiled
def copy_positions(source, target, lo, hi):
    """Copy source[lo:hi]; an assignment of slices would take seconds to compile."""
    for at in range(lo, hi):
        target[at] = source[at]


@compiled
def push(waiting, count, lo, hi, own, descendants):
    """Add a segment to those waiting; return their number."""
    waiting[count, 0], waiting[count, 1] = lo, hi
    waiting[count, 2], waiting[count, 3] = own, descendants
    return count + 1


@compiled
def push_components(waiting, count, part, order, lo, hi):
    """Add the parts in order[lo:hi] to the segments waiting, the first one last."""
    stop = hi
    for at in range(hi - 1, lo - 1, -1):
        own = part[order[at]]
        if at == lo or part[order[at - 1]] != own:
            count = push(waiting, count, at, stop, np.int64(own), at)
            stop = at
    return count


@compiled
def dissect(indptr, indices, n_last, leaf, width, levels):
    """Nested dissection of a graph; loops are ignored.

    The last `n_last` vertices are set aside as the first separator.

    Returns the order of elimination, the first position of each node of the tree of separators
    and undivided parts, and the first position of all its descendants. Nodes come after their
    descendants. Parts of at most `leaf` vertices are not divided, nor those of so few levels that
    there is none between the first and the last. See :func:`middle_levels` for `width` and
    `levels`.
    """
    n = len(indptr) - 1
    order, queue = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    part, depth = np.ones(n, np.int32), np.empty(n, np.int32)
    follow, before = np.empty(n, np.int32), np.empty(n, np.int32)
    steps = np.empty((n, 2), np.int32)
    stack, edge = np.empty(2 * n + 1, np.int64), np.empty(2 * n + 1, np.int64)
    starts, lows = np.empty(n, np.int64), np.empty(n, np.int64)
    nodes, newest = 0, 1  # number of nodes; highest number of a part
    # Segments of `order` to divide: first and last position, part (0 for a separator), and the
    # first position of descendants.
    waiting = np.empty((n + 2, 4), np.int64)
    for v in range(n - n_last, n):
        part[v] = 0
    count = push(waiting, 0, n - n_last, n, 0, 0)
    count = push(waiting, count, 0, n - n_last, 1, 0)
    while count:
        count -= 1
        lo, hi, own = waiting[count, 0], waiting[count, 1], waiting[count, 2]
        if lo == hi:
            continue
        if own:
            known = newest
            newest = split_components(
                indptr, indices, part, own, newest, depth, queue, order, lo, hi
            )
            if newest > known + 1:  # not connected: no separator is needed
                copy_positions(queue, order, lo, hi)
                count = push_components(waiting, count, part, order, lo, hi)
                continue
            if hi - lo > leaf:
                own, newest = newest, newest + 1
                far = np.int64(queue[hi - 1])
                breadth_first(indptr, indices, part, own, newest, far, depth, queue, lo)
                own = newest
                low, high = middle_levels(depth, queue, lo, hi, width, levels)
                if low <= high:
                    separate(
                        indptr, indices, part, own, newest + 1, depth, low, high, queue, lo, hi,
                        follow, before, steps, stack, edge,
                    )  # fmt: skip
                    first, second = sort_by_part(part, newest + 1, queue, order, lo, hi)
                    count = push(waiting, count, second, hi, 0, lo)
                    count = push(waiting, count, first, second, newest + 2, first)
                    count = push(waiting, count, lo, first, newest + 1, lo)
                    newest += 2
                    continue
            copy_positions(queue, order, lo, hi)
            for at in range(lo, hi):
                part[order[at]] = 0
        starts[nodes], lows[nodes] = lo, waiting[count, 3]
        nodes += 1
    return order, starts[:nodes].copy(), lows[:nodes].copy()
