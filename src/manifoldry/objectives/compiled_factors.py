"""Compiled loops with factored weights, over neighboring cells and the nodes of a mesh.

They are those of :mod:`manifoldry.objectives.compiled` and
:mod:`manifoldry.objectives.compiled_mesh` for weights that are products of factors. Arrays of nodes
have four axes: three of the mesh and one of the factors, so that loops over these are vectorized.
"""

from functools import cache
from math import nan

import numpy as np

from manifoldry.objectives.compiled import exp_minus64, moment
from manifoldry.objectives.compiled_mesh import (
    expand,
    formula,
    interpolate,
    is_inside,
    looping,
    options,
    spline,
    store,
    store_expansion,
)
from manifoldry.util.jit import cached_njit

summing = cached_njit(**{**options, "fastmath": {"contract", "nsz", "reassoc"}}, forceinline=True)


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
                    for r in range(4):
                        w, node = wx[s] * wy[t] * wz[r], nodes[a + s, b + t, c + r]
                        for factor in range(len(q)):
                            node[factor] += w * q[factor]

    return spread


@summing
def inner_product(a, b):
    """Inner product, whose terms are added in any order."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@formula
def combine_nodes(d, weights, nodes, a, b, c, around):
    """Fill the nodes around a point with the weighted sums of the potentials of all factors."""
    for s in range(4 if d > 2 else 1):
        for t in range(4 if d > 1 else 1):
            for r in range(4):
                around[s, t, r] = inner_product(weights, nodes[a + s, b + t, c + r])


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
            j = order[i]
            q = inner_product(left[j], right[j])
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
            if not is_inside(d, U[i], nodes.shape[0], nodes.shape[1], nodes.shape[2]):
                values[i] = nan
                continue
            x, y, z = U[i, 0], U[i, max(d - 2, 0)], U[i, d - 1]
            a, b, c = int(x) if d > 2 else 0, int(y) if d > 1 else 0, int(z)
            combine_nodes(d, left[rows[i]], nodes, a, b, c, around)
            found = expand(d, x - a, y - b, z - c, around, 0, 0, 0)
            store_expansion(d, i, found, values, gradients, hessians)

    return fill


@cache
def cell_sums_factors(d, order):
    """Return the compiled loop over the points of neighboring cells, for the Gaussian kernel.

    Its arguments are those of `cell_sums`, with the factors `left`, (n, n_factors), of the points
    and the sorted factors `right`, and the squared distance `reach` beyond which pairs are left
    out: a weight takes longer to compute than a distance.
    """

    @looping
    def sums(T, left, right, reach, cell, ranges, points, kernel_sums, moments, lo, hi):
        for i in range(lo, hi):
            x, y, z, point = T[0, i], T[d // 2, i], T[d - 1, i], points[i]
            m, mx, my, mz = 0.0, 0.0, 0.0, 0.0
            for row in range(ranges.shape[1]):
                start, stop = ranges[cell[i], row]
                for j in range(start, stop):
                    dx, dy, dz = x - T[0, j], y - T[d // 2, j], z - T[d - 1, j]
                    D = dx * dx
                    if d > 1:
                        D += dy * dy
                    if d > 2:
                        D += dz * dz
                    if reach < D or i == j:
                        continue
                    K = exp_minus64(D) * inner_product(left[point], right[j])
                    m += K
                    mx += moment(K, dx, order)
                    if d > 1:
                        my += moment(K, dy, order)
                    if d > 2:
                        mz += moment(K, dz, order)
            kernel_sums[point] = m
            moments[point, 0] = mx
            if d > 1:
                moments[point, 1] = my
            if d > 2:
                moments[point, 2] = mz

    return sums
