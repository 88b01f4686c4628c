"""Charges at the nodes of a mesh, and values interpolated between them, by numpy."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from manifoldry.device.primitives import Nodes
from manifoldry.util.typing import Array, IntArray

_NODES = 4  # around a point along an axis


class _Located(NamedTuple):
    """Nodes around each point, and their weights along each axis."""

    numbers: IntArray  # (n, 4**d), in the flat array of nodes
    weights: list[Array]  # d of (n, 4)
    slopes: list[Array]


def emulated_spread(Y: Array, charges: Array | None, nodes: Nodes) -> Array:
    """See :meth:`Device.spread`."""
    charges = np.ones((len(Y), 1)) if charges is None else charges
    at, size = _locate(Y, nodes), int(np.prod(nodes.shape))
    weights = _outer(at.weights)
    parts = [
        np.asarray(
            np.bincount(at.numbers.ravel(), (q[:, None] * weights).ravel(), minlength=size), float
        )
        for q in charges.T
    ]
    return np.stack(parts).reshape(-1, *nodes.shape)


def emulated_gather(
    Y: Array,
    potential: Array,
    near: Array,
    nodes: Nodes,
    left: Array | None,
    right: Array | None,
    slopes: bool,
) -> tuple[Array, Array]:
    """See :meth:`Device.gather`."""
    at, one = _locate(Y, nodes), np.ones((len(Y), len(potential)))
    left, right = (one if part is None else part for part in (left, right))
    own = np.einsum("if,if->i", left, right)
    around = np.zeros(at.numbers.shape)
    for factor, phi in zip(left.T, potential, strict=True):
        around += factor[:, None] * phi.ravel()[at.numbers]
    same = [_products(w, w) for w in at.weights]
    moved = [_products(w, v) for w, v in zip(at.weights, at.slopes, strict=True)]

    def interpolated(weights: list[Array], itself: list[Array]) -> Array:
        found = np.einsum("ik,ik->i", around, _outer(weights))
        return np.asarray(found - own * (_outer(itself) @ near.ravel()))

    values, d = interpolated(at.weights, same), Y.shape[1]
    if not slopes:
        return values, np.empty((0, d))
    columns = [
        interpolated(
            [*at.weights[:c], at.slopes[c], *at.weights[c + 1 :]],
            [*same[:c], moved[c], *same[c + 1 :]],
        )
        for c in range(d)
    ]
    return values, np.stack(columns, axis=1) / nodes.spacing


def _locate(Y: Array, nodes: Nodes) -> _Located:
    U = Y.astype(float) / nodes.spacing - np.array(nodes.first)
    cells = np.clip(U.astype(int), 0, np.array(nodes.shape) - _NODES)
    numbers = np.zeros((len(Y), 1), dtype=int)
    for c, length in enumerate(nodes.shape):
        along = cells[:, c, None] + np.arange(_NODES)
        numbers = (numbers[:, :, None] * length + along[:, None]).reshape(len(Y), -1)
    inside = (U - cells).T
    return _Located(numbers, [_spline(u) for u in inside], [_spline_slope(u) for u in inside])


def _spline(u: Array) -> Array:
    v = 1 - u
    inner = 2 / 3 - u * u * (1 - u / 2), 2 / 3 - v * v * (1 - v / 2)
    return np.stack([v**3 / 6, *inner, u**3 / 6], axis=1)


def _spline_slope(u: Array) -> Array:
    v = 1 - u
    return np.stack([-v * v / 2, u * (1.5 * u - 2), v * (2 - 1.5 * v), u * u / 2], axis=1)


def _outer(weights: list[Array]) -> Array:
    """Products of weights along all axes, (n, 4**d)."""
    return reduce(lambda a, b: (a[:, :, None] * b[:, None]).reshape(len(a), -1), weights)


def _products(a: Array, b: Array) -> Array:
    """Sums of products of weights at distances of zero to three nodes, both ways."""
    out = np.zeros(a.shape)
    for s in range(_NODES):
        for t in range(_NODES):
            out[:, abs(s - t)] += a[:, s] * b[:, t]
    return out
