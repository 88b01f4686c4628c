"""Bandwidths and symmetric weights of many edges, computed on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from manifoldry.device import Device
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks

if TYPE_CHECKING:
    from manifoldry.neighbors.graph import NeighborGraph

_BLOCK = 2**26  # entries of temporary arrays

LEAST_EDGES = 2**15
"""Number of edges below which launching kernels takes longer than the computation."""


def row_length(graph: NeighborGraph) -> int | None:
    """Number of edges of each point; None if it varies."""
    n, counts = graph.n_query, np.diff(graph.indptr)
    same = n > 0 and counts[0] > 0 and (counts == counts[0]).all()
    return int(counts[0]) if same else None


def perplexity_bandwidths(
    device: Device, lengths: Array, perplexity: float, tie: float, range: tuple[float, float]
) -> tuple[Array, Array, Array]:
    """Nearest distance, width and log of the total of each row of ascending `lengths`, (n, k).

    The same as on the CPU (see `Bandwidths.of`): distances that differ by a fraction `tie` are
    equal, and squares are kept in a `range`.
    """
    D, xp = device.array(lengths), device.xp
    blocks = row_blocks(len(D), D.shape[1], budget=_BLOCK)
    parts = [_bandwidths(device, D[rows], perplexity, tie, range) for rows in blocks]
    nearest, widths, totals = device.host(xp.concatenate(parts, axis=1))
    return nearest, widths, totals


def _bandwidths(
    device: Device, D: Array, perplexity: float, tie: float, range: tuple[float, float]
) -> Array:
    """The same of some rows, (3, n), on the device."""
    xp, k, nearest = device.xp, D.shape[1], D[:, :1]
    excess = D - nearest
    excess *= excess > tie * nearest
    rank = min(k, int(np.ceil(perplexity))) - 1
    across = excess[:, rank, None] > 0
    near, far = (xp.where(across, part[:, rank, None], 1.0) for part in (excess, D + nearest))
    t = xp.minimum(excess / near * ((D + nearest) / far), range[1])
    t[t < range[0]] = 0.0
    ties = (t == 0).sum(axis=1)
    tied, total = ties >= perplexity, xp.log(ties.astype(float))
    if k <= perplexity:
        widths = xp.where(tied, 0.0, xp.inf)
        return xp.stack([nearest[:, 0], widths, xp.where(tied, total, np.log(k))])
    # Rows whose ties exceed the perplexity have no solution; any other row takes their place.
    solvable = xp.where(tied[:, None], xp.arange(k, dtype=float), t)
    precisions = device.log_precisions(solvable, perplexity)
    unit = (xp.sqrt(near) * xp.sqrt(far))[:, 0]
    totals = xp.log(xp.exp(-xp.exp(precisions)[:, None] * t).sum(axis=1))
    widths = xp.where(tied, 0.0, unit * xp.exp(-precisions / 2))
    return xp.stack([nearest[:, 0], widths, xp.where(tied, total, totals)])


def edge_exponents(
    device: Device, lengths: Array, nearest: Array, widths: Array, totals: Array, tie: float
) -> Array:
    """−log of the probability of each edge, on the device, for rows of `lengths`, (n, k)."""
    xp, D = device.xp, device.array(lengths)
    nearest, widths, totals = (device.array(part)[:, None] for part in (nearest, widths, totals))
    excess = D - nearest
    excess *= excess > tie * nearest
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        squared = excess / widths * ((D + nearest) / widths)
    return (xp.where(excess == 0, 0.0, squared) + totals).ravel()


def symmetric_weights(
    device: Device, graph: NeighborGraph, exponents: Array, rule: str
) -> sparse.csr_array:
    """Symmetric weights from −log of those of the edges, on the device, combined by a rule."""
    xp, n = device.xp, graph.n_query
    weights = xp.exp(-exponents)
    columns = device.array(graph.indices).astype(np.int64)
    rows = xp.repeat(xp.arange(n, dtype=np.int64), _counts(device, graph))
    keys = xp.concatenate([rows * n + columns, columns * n + rows])
    order = xp.argsort(keys)
    keys, values = keys[order], xp.concatenate([weights, weights])[order]
    # An edge and its reverse have the same key, so that at most two are next to each other.
    new = xp.ones(len(keys), dtype=bool)
    new[1:] = keys[1:] != keys[:-1]
    first = xp.flatnonzero(new)
    both = xp.zeros(len(keys), dtype=bool)
    both[:-1] = ~new[1:]
    second = xp.where(both[first], values[xp.minimum(first + 1, len(keys) - 1)], 0.0)
    combined = _COMBINE[rule](xp, values[first], second)
    kept = combined > 0
    keys, combined = keys[first][kept], combined[kept]
    counts = xp.bincount(keys // n, minlength=n)
    indptr = xp.zeros(n + 1, dtype=np.int64)
    indptr[1:] = xp.cumsum(counts)
    index = np.int32 if max(n, len(keys)) < 2**31 else np.int64
    parts = combined, (keys % n).astype(index), indptr.astype(index)
    on_host = tuple(device.host(part) for part in parts)
    for part, copy in zip(on_host, parts, strict=True):
        device.hold(part, copy)
    W = sparse.csr_array(on_host, shape=(n, n))
    W.has_canonical_format = True  # sorted, without duplicates
    return W


def _counts(device: Device, graph: NeighborGraph) -> Any:
    """Number of edges of each row: a number if they are equal, which is cheaper to repeat."""
    same = row_length(graph)
    return same if same is not None else np.diff(graph.indptr).tolist()


_COMBINE = {
    "or": lambda xp, a, b: xp.maximum(a, b),
    "and": lambda xp, a, b: xp.minimum(a, b),
    "mean": lambda xp, a, b: (a + b) / 2,
}
