"""Compiled loops between points with several charges and the nodes of a mesh.

They are those of :mod:`manifoldry.objectives.compiled_mesh` for factored weights. Arrays of nodes
have four axes: the last but one numbers the factors, the others are those of the mesh.
"""

from functools import cache
from math import nan

import numpy as np

from manifoldry.objectives.compiled_mesh import (
    expand,
    formula,
    interpolate,
    is_inside,
    looping,
    spline,
    store,
    store_expansion,
)


@cache
def spreading_factors(d):
    """Return the compiled loop that adds the charges of points lo to hi to the nodes around them.

    Its arguments are the positions `U` (d, n) in units of the spacing, sorted; the indices of the
    points in this order; the charges (n, n_factors) of the points; the nodes; and the number of
    the first plane of nodes given.
    """

    @looping
    def spread(U, order, charges, nodes, first, lo, hi):
        one = (1.0, 0.0, 0.0, 0.0)
        for i in range(lo, hi):
            x, y, z = U[0, i], U[max(d - 2, 0), i], U[d - 1, i]
            a, b, c = int(x) if d > 2 else 0, int(y) if d > 1 else 0, int(z)
            wx = spline(x - a) if d > 2 else one
            wy = spline(y - b) if d > 1 else one
            wz = spline(z - c)
            if d == 3:
                a -= first
            elif d == 2:
                b -= first
            q = charges[order[i]]
            for s in range(4 if d > 2 else 1):
                for t in range(4 if d > 1 else 1):
                    w = wx[s] * wy[t]
                    rows = nodes[a + s, b + t]
                    for factor in range(len(q)):
                        share = w * q[factor]
                        row = rows[factor]
                        row[c] += share * wz[0]
                        row[c + 1] += share * wz[1]
                        row[c + 2] += share * wz[2]
                        row[c + 3] += share * wz[3]

    return spread


@formula
def combine_nodes(d, weights, nodes, a, b, c, around):
    """Fill the nodes around a point with the weighted sums of the potentials of all factors."""
    for s in range(4 if d > 2 else 1):
        for t in range(4 if d > 1 else 1):
            rows = nodes[a + s, b + t]
            p0, p1, p2, p3 = 0.0, 0.0, 0.0, 0.0
            for factor in range(len(weights)):
                w, row = weights[factor], rows[factor]
                p0 += w * row[c]
                p1 += w * row[c + 1]
                p2 += w * row[c + 2]
                p3 += w * row[c + 3]
            around[s, t, 0], around[s, t, 1] = p0, p1
            around[s, t, 2], around[s, t, 3] = p2, p3


@cache
def gathering_factors(d, slopes):
    """Return the compiled loop that interpolates weighted potentials at points lo to hi.

    Its arguments are the positions and indices as for `spreading_factors`; the factors `left` and
    `right`, (n, n_factors); the potentials at the nodes; the potential `near` a unit charge; and
    the arrays to fill: values and, if `slopes`, derivatives by the positions.
    """

    @looping
    def gather(U, order, left, right, nodes, near, values, derivatives, lo, hi):
        around = np.empty((4 if d > 2 else 1, 4 if d > 1 else 1, 4))
        for i in range(lo, hi):
            x, y, z = U[0, i], U[max(d - 2, 0), i], U[d - 1, i]
            a, b, c = int(x) if d > 2 else 0, int(y) if d > 1 else 0, int(z)
            j, q = order[i], 0.0
            for factor in range(left.shape[1]):
                q += left[j, factor] * right[j, factor]
            combine_nodes(d, left[j], nodes, a, b, c, around)
            found = interpolate(d, slopes, x - a, y - b, z - c, around, 0, 0, 0, near, q)
            store(d, slopes, j, found, values, derivatives)

    return gather


@cache
def expanding_factors(d):
    """Return the compiled loop for weighted potentials and two derivatives at positions lo to hi.

    Its arguments are those of `expanding`, and before the nodes the factors `left` of new points
    and the number of the new point at each position.
    """

    @looping
    def fill(U, left, rows, nodes, values, gradients, hessians, lo, hi):
        around = np.empty((4 if d > 2 else 1, 4 if d > 1 else 1, 4))
        for i in range(lo, hi):
            if not is_inside(d, U[i], nodes.shape[0], nodes.shape[1], nodes.shape[3]):
                values[i] = nan
                continue
            x, y, z = U[i, 0], U[i, max(d - 2, 0)], U[i, d - 1]
            a, b, c = int(x) if d > 2 else 0, int(y) if d > 1 else 0, int(z)
            combine_nodes(d, left[rows[i]], nodes, a, b, c, around)
            found = expand(d, x - a, y - b, z - c, around, 0, 0, 0)
            store_expansion(d, i, found, values, gradients, hessians)

    return fill
