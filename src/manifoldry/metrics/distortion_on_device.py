"""Stretch factors of many neighborhoods on a device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from manifoldry.device import Device
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

_COPIES = 8  # of the coordinates of a block, which are in memory at a time


class LocalFactors(NamedTuple):
    """Linear maps from neighborhoods in the data to those in the embedding, on the host."""

    factors: Array
    """Singular values of the maps between neighborhoods of unit size, (n, d) or fewer columns."""
    n_directions: IntArray
    """Number of directions in which each neighborhood has an extent, (n,)."""
    size: Array
    """Size of each neighborhood in the data, (n, 1, 1)."""
    embedded_size: Array
    """Size of each neighborhood in the embedding, (n, 1, 1)."""


def local_factors(
    device: Device, X: Array, Y: Array, members: IntArray, flat: float
) -> LocalFactors:
    """Factors of each point and its neighbors, (n, k); see `_factors` of `distortion`."""
    xp, (n, k) = device.xp, members.shape
    known = device.array(members)
    points, positions = device.array(X), device.array(Y)
    budget = min(2**27, device.free_memory // (8 * _COPIES))

    def block(rows: slice) -> list[Array]:
        itself = xp.arange(rows.start, rows.stop, dtype=known.dtype)[:, None]
        group = xp.concatenate([itself, known[rows]], axis=1)
        found = _factors(device, points[group], positions[group], flat)
        return [device.host(part) for part in found]

    blocks = row_blocks(n, (k + 1) * max(X.shape[1], k + 1), budget=budget)
    return LocalFactors(*map(np.concatenate, zip(*map(block, blocks), strict=True)))


def _factors(device: Device, A: Array, B: Array, flat: float) -> tuple[Array, Array, Array, Array]:
    xp, d = device.xp, B.shape[2]
    (A, size), (B, embedded_size) = _unit_neighborhoods(xp, A), _unit_neighborhoods(xp, B)
    values, vectors = device.eigh(A @ A.transpose(0, 2, 1))
    U, lengths = vectors[:, :, ::-1][:, :, :d], xp.sqrt(xp.abs(values[:, ::-1][:, :d]))
    extends = lengths > np.sqrt(flat) * xp.maximum(lengths[:, :1], np.finfo(float).tiny)
    inverse = xp.where(extends, 1 / xp.where(extends, lengths, 1.0), 0.0)
    J = (B.transpose(0, 2, 1) @ xp.ascontiguousarray(U)) * inverse[:, None, :]
    return device.left_vectors(J)[1], extends.sum(axis=1), size, embedded_size


def _unit_neighborhoods(xp: Any, local: Array) -> tuple[Array, Array]:
    """Centered neighborhoods with a largest value of one, and their sizes."""
    centered = local.astype(np.float64)
    centered -= centered.mean(axis=1, keepdims=True)
    size = abs(centered).max(axis=(1, 2), keepdims=True)
    centered /= xp.where(size > 0, size, 1.0)
    return centered, size
