"""Compiled loops between points and the nodes of a mesh, with cubic B-splines as weights.

Arrays of nodes have three axes, of which the first are of length one in fewer dimensions. Points
are sorted by their cell along the first axis in use, so that neighboring points share the cache.
"""

from functools import cache
from math import nan

from manifoldry.util.jit import cached_njit

options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}
formula = cached_njit(**options, forceinline=True)
looping = cached_njit(**options)


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
def spline_curvature(u):
    """Second derivatives of the weights by u."""
    return 1.0 - u, 3 * u - 2, 1 - 3 * u, u


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


@formula
def interpolate(d, slopes, x, y, z, nodes, a, b, c, near, q):
    """Potential at the position (x, y, z) in the cell of the node (a, b, c), and its derivatives.

    The contribution of a charge q at the position itself is subtracted: `near` is the potential of
    a unit charge at distances of zero to three nodes.
    """
    one, none = (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)
    wx = spline(x) if d > 2 else one
    wy = spline(y) if d > 1 else one
    wz = spline(z)
    vx = spline_slope(x) if d > 2 and slopes else none
    vy = spline_slope(y) if d > 1 and slopes else none
    vz = spline_slope(z) if slopes else none
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
    return value, dx, dy, dz


@formula
def store(d, slopes, j, found, values, derivatives):
    """Store the potential of a point and its derivatives in the arrays of all points."""
    value, dx, dy, dz = found
    values[j] = value
    if slopes:
        derivatives[j, d - 1] = dz
        if d > 1:
            derivatives[j, d - 2] = dy
        if d > 2:
            derivatives[j, 0] = dx


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
        for i in range(lo, hi):
            x, y, z = U[0, i], U[max(d - 2, 0), i], U[d - 1, i]
            a, b, c = int(x) if d > 2 else 0, int(y) if d > 1 else 0, int(z)
            q = 1.0 if charges is None else charges[i]
            found = interpolate(d, slopes, x - a, y - b, z - c, nodes, a, b, c, near, q)
            store(d, slopes, order[i], found, values, derivatives)

    return gather


@formula
def expand(d, x, y, z, nodes, a, b, c):
    """Potential at the position (x, y, z) in the cell of the node (a, b, c), and its derivatives.

    The gradient is (fx, fy, fz), the Hessian (fxx, fyy, fzz, fxy, fxz, fyz).
    """
    one, none = (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)
    wx, vx = (spline(x), spline_slope(x)) if d > 2 else (one, none)
    wy, vy = (spline(y), spline_slope(y)) if d > 1 else (one, none)
    wz, vz, cz = spline(z), spline_slope(z), spline_curvature(z)
    cx = spline_curvature(x) if d > 2 else none
    cy = spline_curvature(y) if d > 1 else none
    f, fx, fy, fz = 0.0, 0.0, 0.0, 0.0
    fxx, fyy, fzz, fxy, fxz, fyz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for s in range(4 if d > 2 else 1):
        for t in range(4 if d > 1 else 1):
            row = nodes[a + s, b + t]
            along, slope = weighted(wz, row, c), weighted(vz, row, c)
            f += wx[s] * wy[t] * along
            fz += wx[s] * wy[t] * slope
            fzz += wx[s] * wy[t] * weighted(cz, row, c)
            if d > 1:
                fy += wx[s] * vy[t] * along
                fyy += wx[s] * cy[t] * along
                fyz += wx[s] * vy[t] * slope
            if d > 2:
                fx += vx[s] * wy[t] * along
                fxx += cx[s] * wy[t] * along
                fxy += vx[s] * vy[t] * along
                fxz += vx[s] * wy[t] * slope
    return f, (fx, fy, fz), (fxx, fyy, fzz, fxy, fxz, fyz)


@formula
def store_expansion(d, i, found, values, gradients, hessians):
    """Store what `expand` returns in the arrays of all positions."""
    value, (fx, fy, fz), (fxx, fyy, fzz, fxy, fxz, fyz) = found
    values[i] = value
    gradients[i, d - 1], hessians[i, d - 1, d - 1] = fz, fzz
    if d > 1:
        gradients[i, d - 2], hessians[i, d - 2, d - 2] = fy, fyy
        hessians[i, d - 2, d - 1] = hessians[i, d - 1, d - 2] = fyz
    if d > 2:
        gradients[i, 0], hessians[i, 0, 0] = fx, fxx
        hessians[i, 0, 1] = hessians[i, 1, 0] = fxy
        hessians[i, 0, 2] = hessians[i, 2, 0] = fxz


@formula
def is_inside(d, u, x, y, z):
    """Whether the mesh, which has x, y and z nodes along its axes, covers the position u."""
    inside = 0 <= u[d - 1] < z - 3
    if d > 1:
        inside = inside and 0 <= u[d - 2] < y - 3
    if d > 2:
        inside = inside and 0 <= u[0] < x - 3
    return inside


@cache
def expanding(d):
    """Return the compiled loop for the potential and two derivatives at any positions lo to hi.

    Its arguments are the positions `U` (n, d) in units of the spacing, the potential at the nodes,
    and the arrays to fill: values, gradients (n, d) and Hessians (n, d, d), by the positions.
    Values outside the mesh are NaN.
    """

    @looping
    def fill(U, nodes, values, gradients, hessians, lo, hi):
        for i in range(lo, hi):
            if not is_inside(d, U[i], nodes.shape[0], nodes.shape[1], nodes.shape[2]):
                values[i] = nan
                continue
            x, y, z = U[i, 0], U[i, max(d - 2, 0)], U[i, d - 1]
            a, b, c = int(x) if d > 2 else 0, int(y) if d > 1 else 0, int(z)
            found = expand(d, x - a, y - b, z - c, nodes, a, b, c)
            store_expansion(d, i, found, values, gradients, hessians)

    return fill
