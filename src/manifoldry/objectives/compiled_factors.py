"""Compiled loops between points with several charges and the nodes of a mesh.

They are those of :mod:`manifoldry.objectives.compiled_mesh` for factored weights. Arrays of nodes
have four axes: the last but one numbers the factors, the others are those of the mesh.
"""

from functools import cache

import numpy as np

from manifoldry.objectives.compiled_mesh import interpolate, looping, spline, store


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


@cache
def gathering_factors(d, slopes):
    """Return the compiled loop that interpolates weighted potentials at points lo to hi.

    Its arguments are the positions and indices as for `spreading_factors`; the factors `left` and
    `right`, (n, n_factors); the potentials at the nodes; the potential `near` a unit charge; and
    the arrays to fill: values and, if `slopes`, derivatives by the positions.
    """

    @looping
    def gather(U, order, left, right, nodes, near, values, derivatives, lo, hi):
        # The nodes around a point with the potentials of its own weights.
        around = np.empty((4 if d > 2 else 1, 4 if d > 1 else 1, 4))
        for i in range(lo, hi):
            x, y, z = U[0, i], U[max(d - 2, 0), i], U[d - 1, i]
            a, b, c = int(x) if d > 2 else 0, int(y) if d > 1 else 0, int(z)
            j = order[i]
            weights, q = left[j], 0.0
            for factor in range(len(weights)):
                q += weights[factor] * right[j, factor]
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
            found = interpolate(d, slopes, x - a, y - b, z - c, around, 0, 0, 0, near, q)
            store(d, slopes, j, found, values, derivatives)

    return gather
