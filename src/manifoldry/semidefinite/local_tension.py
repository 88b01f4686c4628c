"""Tension where a few neighbouring points lack it: cheap, and all over the map at once."""

import numpy as np
from scipy import sparse

from manifoldry.semidefinite.edge_lengths import EdgeLengths
from manifoldry.util.typing import Array, IntArray

_NEIGHBORS = 12  # of the points whose surroundings are looked at
_SWEEPS = 8
_TOO_LOW = -0.1  # eigenvalue: constants, which no weight lifts, have zero
_AWAY = 1e9  # diagonal entry of places in a neighbourhood that nobody takes


def held_locally(edges: EdgeLengths, mass: Array, weights: Array) -> Array:
    """Edge weights whose Laplacian is not negative on functions around single points.

    Weights are raised along the lowest eigenvector of the Laplacian in the neighbourhood of every
    point, if its eigenvalue, relative to the masses, is negative and below those nearby.
    """
    members = edges.nearest(_NEIGHBORS)
    root = 1 / np.sqrt(mass)
    for _ in range(_SWEEPS):
        L = sparse.diags_array(root) @ edges.laplacian(weights) @ sparse.diags_array(root)
        rows, values, vectors = _lowest(sparse.csr_array(L), members, _pushed(edges, weights))
        if len(rows) == 0:
            break
        V = _columns(vectors * root[members[rows]], members[rows], edges.n)
        effects = sparse.csr_array(edges.incidence @ V)
        effects.data **= 2
        weights = weights + effects @ ((1 - values) / np.asarray((effects**2).sum(axis=0)).ravel())
    return weights


def _pushed(edges: EdgeLengths, weights: Array) -> IntArray:
    """Points with an edge of negative weight: around others there is nothing to mend."""
    return np.unique(edges.ends[weights < 0])


def _lowest(
    L: sparse.csr_array, members: IntArray, rows: IntArray
) -> tuple[IntArray, Array, Array]:
    """Those of some points whose surroundings are too low, and lower than those of neighbours.

    Also the eigenvalue and its vector on the neighbourhood.
    """
    near = members[rows]
    if len(rows) == 0:
        return rows, np.empty(0), np.empty(near.shape)
    k = near.shape[1]
    a, b = np.repeat(near, k, axis=1), np.tile(near, k)
    blocks = np.asarray(L[a.ravel(), b.ravel()]).reshape(-1, k, k)
    empty = near == near[:, :1]
    empty[:, 0] = False
    blocks[empty[:, :, None] | empty[:, None, :]] = 0.0
    blocks[*np.nonzero(empty), np.nonzero(empty)[1]] = _AWAY
    values, vectors = np.linalg.eigh(blocks)
    everywhere = np.full(len(members), np.inf)
    everywhere[rows] = values[:, 0]
    chosen = (values[:, 0] < _TOO_LOW) & (values[:, 0] <= everywhere[near].min(axis=1))
    return rows[chosen], values[chosen, 0], vectors[chosen, :, 0]


def _columns(values: Array, rows: IntArray, n: int) -> sparse.csc_array:
    """A sparse matrix with one column for every row of `values`."""
    count, k = values.shape
    entries = (values.ravel(), (rows.ravel(), np.repeat(np.arange(count), k)))
    return sparse.csc_array(sparse.coo_array(entries, shape=(n, count)))
