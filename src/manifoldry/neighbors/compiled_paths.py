"""Compiled searches for shortest paths; imported only for large graphs.

The functions release the global interpreter lock, so that threads can share the sources. Lengths
are not negative. Each result is the smallest of the sums along all paths, added from the source
on, whatever the order of the search: it depends neither on the algorithm nor on the threads.
"""

from functools import cache

import numpy as np

from manifoldry.util.jit import cached_njit

# Not "reassoc": the sums along a path are those of any other implementation.
_options = {"nogil": True, "error_model": "numpy", "fastmath": {"nsz"}}


@cached_njit(**_options)
def settle(indptr, indices, lengths, sources, reached, before, heap, keys, place):
    """Dijkstra's algorithm from some points, in a heap of four children per node.

    `reached` are the distances of these `sources`, which are sorted by them, and upper bounds of
    all others. Only points nearer to the sources than that are visited: infinite bounds give all
    distances, the distances from other sources those to the nearest of all. `before` receives the
    points before the last on each path, unless it is empty. Scratch arrays are `heap`, `keys` and
    `place`, of one entry per point; `place` is negative before and after the call.
    """
    size = len(sources)
    for at in range(size):  # sorted keys are a heap
        i = sources[at]
        heap[at], keys[at], place[i] = i, reached[i], at
    while size > 0:
        i, length = heap[0], keys[0]
        place[i] = -1
        size -= 1
        if size > 0:  # the last node takes the place of the first and moves down
            node, key = heap[size], keys[size]
            at, child = 0, 1
            while child < size:
                smallest = keys[child]
                for other in range(child + 1, min(child + 4, size)):
                    if keys[other] < smallest:
                        child, smallest = other, keys[other]
                if smallest >= key:
                    break
                heap[at], keys[at] = heap[child], smallest
                place[heap[at]] = at
                at, child = child, 4 * child + 1
            heap[at], keys[at], place[node] = node, key, at
        for edge in range(indptr[i], indptr[i + 1]):
            j, new = indices[edge], length + lengths[edge]
            if new < reached[j]:
                reached[j] = new
                if len(before) > 0:
                    before[j] = i
                at = place[j]
                if at < 0:
                    at = size
                    size += 1
                while at > 0 and keys[(at - 1) >> 2] > new:  # move up
                    heap[at], keys[at] = heap[(at - 1) >> 2], keys[(at - 1) >> 2]
                    place[heap[at]] = at
                    at = (at - 1) >> 2
                heap[at], keys[at], place[j] = j, new, at


@cache
def settle_together(n_sources):
    """Return the compiled search from `n_sources` sources at once, by vector instructions.

    The distances of a point to all sources are in adjacent places. A point whose distance to some
    source has decreased waits in a queue, and all distances of its neighbors through it are
    computed together. No heap is needed, but points are visited several times: two to ten times if
    the sources are near each other or paths have few edges, as in data of many dimensions.
    """

    @cached_njit(**_options)
    def search(indptr, indices, lengths, reached, queue, waiting, count, max_visits):
        """Search from the `count` points in the queue; return whether it was completed.

        `reached` (n, n_sources) is infinite except for the zeros of the sources, and `waiting` (n)
        is true for the sources. `queue` has one more place than there are points.
        """
        own = np.empty(n_sources, reached.dtype)
        first, last, visits = 0, count, 0
        while first != last:
            i = np.uint64(queue[first])  # a signed index could be negative: a branch more
            first = first + 1 if first + 1 < len(queue) else 0
            waiting[i] = False
            visits += 1
            if visits > max_visits:
                return False
            for c in range(n_sources):
                own[c] = reached[i, c]
            for edge in range(indptr[i], indptr[i + 1]):
                j, length, shorter = np.uint64(indices[edge]), lengths[edge], False
                for c in range(n_sources):
                    new = own[c] + length
                    shorter |= new < reached[j, c]
                    reached[j, c] = min(new, reached[j, c])
                if shorter and not waiting[j]:
                    waiting[j] = True
                    queue[last] = j
                    last = last + 1 if last + 1 < len(queue) else 0
        return True

    return search


@cached_njit(**_options)
def shortest_via_neighbors(indptr, indices, lengths, distances, out):
    """Store in each row of `out` the shortest path via a neighbor, if shorter than what is there.

    `lengths` are those of the edges to the neighbors `indices`, and each row of `distances` has
    those from one of the points to all targets.
    """
    for i in range(len(indptr) - 1):
        own = out[i]
        for edge in range(indptr[i], indptr[i + 1]):
            length, further = lengths[edge], distances[indices[edge]]
            for target in range(len(own)):
                own[target] = min(own[target], length + further[target])
