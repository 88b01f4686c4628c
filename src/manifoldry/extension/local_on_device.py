"""Barycentric weights, local affine maps and local regression at many points, on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.device import Device, current_device
from manifoldry.device.primitives import DeviceMatrix
from manifoldry.neighbors.neighborhoods import barycentric_weights
from manifoldry.neighbors.neighborhoods_on_device import device_for
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

_BLOCK = 2**25  # numbers of a block of rows, of which there are several copies in memory


def row_blocks_anywhere(n: int, numbers_per_row: int) -> list[slice]:
    """Blocks of rows, larger on a device."""
    if current_device() is None:
        return row_blocks(n, numbers_per_row)
    return row_blocks(n, numbers_per_row, _BLOCK)


def barycentric_on_device(
    device: Device, points: Array, X: Array, indices: IntArray, distances: Array, reg: float,
    excluded: NDArray[np.bool_],
) -> Array:  # fmt: skip
    """Barycentric weights (n_new, k) of the neighbors `indices` of the rows of `X`."""
    xp, near = device.xp, device.array(indices)
    neighbors = device.array(points)[near].astype(float)
    differences = neighbors - device.array(X).astype(float)[:, None]
    farthest = device.array(distances)[:, -1]
    unit = xp.where(farthest > 0, farthest, 1.0)[:, None, None]
    without: Any = device.array(excluded, keep=False)
    return barycentric_weights(differences / unit, reg, without)


def weighted_rows(device: Device, indices: IntArray, weights: Array, values: Array) -> Array:
    """Weighted sums of the rows `indices` of `values`, on the host; weights are on the device."""
    xp, (n, k) = device.xp, indices.shape
    columns: Any = device.array(indices).ravel().astype(np.int32)
    rows = DeviceMatrix(
        xp.arange(0, n * k + 1, k, dtype=np.int64), columns, weights.ravel(), len(values)
    )
    return device.host(device.product(rows, device.array(values).astype(float)))


def stacked_predictions(
    device: Device, weights: Sequence[Array], indices: Array, n: int
) -> Callable[[Array], Array]:
    """The predictions (n_smoothers, n_query) of a function of n points, with several weights.

    Weights and indices of neighbors, (n_query, k), are on the device; functions are on the host.
    """
    xp, (n_query, k) = device.xp, indices.shape
    ends = xp.arange(0, len(weights) * n_query * k + 1, k, dtype=np.int64)
    columns = xp.concatenate([indices.ravel().astype(np.int32)] * len(weights))
    rows = DeviceMatrix(ends, columns, xp.concatenate([part.ravel() for part in weights]), n)

    def predict(f: Array) -> Array:
        values = device.array(f[:, None], np.float64, keep=False)
        return device.host(device.product(rows, values)).reshape(len(weights), n_query)

    return predict


@dataclass(frozen=True, eq=False)
class DeviceTangents:
    """Tangent coordinates of neighborhoods, by singular value decompositions.

    Parameters
    ----------
    device : Device
        The device.
    points : array of shape (n_train, n_features)
        The training points.
    members : array of shape (n_new, k)
        Rows of the points in each neighborhood.
    unit : float
        Unit of length.
    dimension : int
        Dimension of the tangent spaces.
    tol : float
        Directions whose singular values are below this fraction of the largest are left out.
    """

    device: Device
    points: Array
    members: IntArray
    unit: float
    dimension: int
    tol: float

    @cached_property
    def coordinates(self) -> Array:
        """All points of the neighborhoods, (n_new, k, n_features)."""
        points, members = self.device.array(self.points), self.device.array(self.members)
        return points[members].astype(float)

    @cached_property
    def center(self) -> Array:
        """Means of the neighborhoods, (n_new, n_features)."""
        center: Array = self.coordinates.mean(axis=1)
        return center

    @cached_property
    def _decomposed(self) -> tuple[Array, Array, Array]:
        """Axes (n_new, n_features, L), coordinates along them (n_new, k, L), and their squares.

        The squares, (n_new, L), are infinite where there is no such direction.
        """
        xp, centered = self.device.xp, self.coordinates - self.center[:, None]
        centered /= self.unit
        if not bool(xp.isfinite(centered).all()):
            raise ValueError("the training data of the model are not finite; fit it again")
        L, wide = min(self.dimension, *centered.shape[1:]), centered.shape[2] > centered.shape[1]
        across = centered.transpose(0, 2, 1)
        vectors, values = self.device.left_vectors(across if wide else centered)
        values = values[:, :L]
        kept = (values > self.tol * values[:, :1])[:, None]
        vectors = vectors[:, :, :L] * kept
        axes = vectors if wide else across @ (vectors / xp.where(kept, values[:, None], 1.0))
        return axes, centered @ axes, xp.where(kept[:, 0], values**2, np.inf)

    @property
    def axes(self) -> Array:
        """Axes of the tangent spaces, (n_new, n_features, L), zero where there are fewer."""
        return self._decomposed[0]

    @property
    def pseudo_inverse(self) -> Array:
        """Pseudo-inverse of the tangent coordinates, (n_new, L, k)."""
        _, local, squares = self._decomposed
        return (local / squares[:, None]).transpose(0, 2, 1)

    def weights(self, X: Array) -> Array:
        """Weights (n_new, k) with which affine functions of the neighborhoods extend to `X`."""
        xp = self.device.xp
        position = (self.device.array(X).astype(float) - self.center) / self.unit
        theta = (position[:, None] @ self.axes)[:, 0]
        steps: Array = 1 / self.members.shape[1] + (theta[:, None] @ self.pseudo_inverse)[:, 0]
        return xp.ascontiguousarray(steps)

    def inverse(self, Z: Array, embedding: Array, tol: float) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features), by the affine maps to `embedding`.

        Singular values of a map below the fraction `tol` of the largest are ignored.
        """
        device = self.device
        Y = device.array(embedding).astype(float)[device.array(self.members)]
        middle = Y.mean(axis=1)
        maps = self.pseudo_inverse @ (Y - middle[:, None])
        offset = device.array(Z, keep=False) - middle
        theta = (offset[:, None] @ self._inverted(maps, tol))[:, 0]
        return device.host(self.center + self.unit * (self.axes @ theta[:, :, None])[:, :, 0])

    def _inverted(self, maps: Array, tol: float) -> Array:
        """Pseudo-inverses (n, m, L) of matrices (n, L, m) with L ≤ m."""
        xp, across = self.device.xp, maps.transpose(0, 2, 1)
        vectors, values = self.device.left_vectors(across)
        kept = values > tol * values[:, :1]
        squares = xp.where(kept, values, np.inf)[:, None] ** 2
        return (vectors / squares) @ (vectors.transpose(0, 2, 1) @ across)


def device_of_rows(*matrices: Matrix) -> Device | None:
    """The device for computations with rows of these; None if they run on the CPU."""
    found = [device_for(matrix) for matrix in matrices]
    return None if any(device is None for device in found) else found[0]
