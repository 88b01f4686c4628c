"""Compiled loops between points and the nodes of a mesh, with cubic B-splines as weights.

Arrays of nodes have three axes, of which the first are of length one in fewer dimensions. Points
are sorted by their cell along the first axis in use, so that neighboring points share the cache.
"""

from functools import cache

from manifoldry.util.jit import cached_njit

_options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}
formula = cached_njit(**_options, forceinline=True)
looping = cached_njit(**_options)


@formula
def spline(u):
    """Weights of the four nodes around a point at the fraction u of its cell; they sum to one."""
    v = 1.0 - u
    return (
        v * v * v / 6,
        2 / 3 - u * u * (1 - u / 2),
        2 / 3 - v * v * (1 - v / 2),
        u * u * u / 6,
    )


@formula
def spline_slope(u):
    """Derivatives of the weights by u."""
    v = 1.0 - u
    return -v * v / 2, u * (1.5 * u - 2), v * (2 - 1.5 * v), u * u / 2


@formula
def products(a, b):
    """Sums of products of weights at distances of zero to three nodes, both ways."""
    return (
        a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3],
        a[0] * b[1] + a[1] * b[2] + a[2] * b[3] + a[1] * b[0] + a[2] * b[1] + a[3] * b[2],
        a[0] * b[2] + a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[3] * b[0],
    )


@formula
def weighted(w, row, start):
    """Weighted sum of four consecutive entries of a row."""
    return w[0] * row[start] + w[1] * row[start + 1] + w[2] * row[start + 2] + w[3] * row[start + 3]


@looping
def sort_by_cell(cells, starts, order):
    """Fill the indices of the points sorted by cell, and where each cell starts; stable."""
    starts[:] = 0
    for cell in cells:
        starts[cell + 1] += 1
    for cell in range(len(starts) - 1):
        starts[cell + 1] += starts[cell]
    place = starts.copy()
    for i in range(len(cells)):
        order[place[cells[i]]] = i
        place[cells[i]] += 1


@cache
def spreading(d):
    """Return the compiled loop that adds charges of points lo to hi to the nodes around them.

    Its arguments are the positions `U` (d, n) in units of the spacing, sorted; the charges in the
    same order, or None for one; the nodes; and the number of the first plane of nodes given.
    """

    @looping
    def spread(U, charges, nodes, first, lo, hi):
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
            q = 1.0 if charges is None else charges[i]
            for s in range(4 if d > 2 else 1):
                for t in range(4 if d > 1 else 1):
                    w = q * wx[s] * wy[t]
                    row = nodes[a + s, b + t]
                    row[c] += w * wz[0]
                    row[c + 1] += w * wz[1]
                    row[c + 2] += w * wz[2]
                    row[c + 3] += w * wz[3]

    return spread


@cache
def gathering(d, slopes):
    """Return the compiled loop that interpolates the potential at points lo to hi.

    Its arguments are the positions and charges as for `spreading`; the potential at the nodes; the
    potential `near` a unit charge, at distances of zero to three nodes, which the point itself has
    contributed and which is subtracted; the indices of the points; and the arrays to fill: values
    and, if `slopes`, derivatives by the positions.
    """

    @looping
    def gather(U, charges, nodes, near, order, values, derivatives, lo, hi):
        one, none = (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)
        for i in range(lo, hi):
            x, y, z = U[0, i], U[max(d - 2, 0), i], U[d - 1, i]
            a, b, c = int(x) if d > 2 else 0, int(y) if d > 1 else 0, int(z)
            wx = spline(x - a) if d > 2 else one
            wy = spline(y - b) if d > 1 else one
            wz = spline(z - c)
            vx = spline_slope(x - a) if d > 2 and slopes else none
            vy = spline_slope(y - b) if d > 1 and slopes else none
            vz = spline_slope(z - c) if slopes else none
            value, dx, dy, dz = 0.0, 0.0, 0.0, 0.0
            for s in range(4 if d > 2 else 1):
                for t in range(4 if d > 1 else 1):
                    row = nodes[a + s, b + t]
                    along = weighted(wz, row, c)
                    value += wx[s] * wy[t] * along
                    if slopes:
                        dz += wx[s] * wy[t] * weighted(vz, row, c)
                        if d > 1:
                            dy += wx[s] * vy[t] * along
                        if d > 2:
                            dx += vx[s] * wy[t] * along
            # The contribution of the point itself; its slope is that by the first argument.
            px, py, pz = products(wx, wx), products(wy, wy), products(wz, wz)
            qx, qy, qz = products(wx, vx), products(wy, vy), products(wz, vz)
            q = 1.0 if charges is None else charges[i]
            for s in range(4 if d > 2 else 1):
                for t in range(4 if d > 1 else 1):
                    row = near[s, t]
                    along = q * weighted(pz, row, 0)
                    value -= px[s] * py[t] * along
                    if slopes:
                        dz -= px[s] * py[t] * q * weighted(qz, row, 0)
                        if d > 1:
                            dy -= px[s] * qy[t] * along
                        if d > 2:
                            dx -= qx[s] * py[t] * along
            j = order[i]
            values[j] = value
            if slopes:
                derivatives[j, d - 1] = dz
                if d > 1:
                    derivatives[j, d - 2] = dy
                if d > 2:
                    derivatives[j, 0] = dx

    return gather
