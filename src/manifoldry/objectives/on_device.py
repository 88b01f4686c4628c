"""Exact sums over pairs and edges on a device, for embeddings that are there."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.device import Device
from manifoldry.device.primitives import DeviceMatrix
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.kernel_shape import kernel_shape
from manifoldry.objectives.pair_kernel import (
    MAX_COMPILED_DIMENSION,
    GaussianKernel,
    Kernel,
    StudentKernel,
)
from manifoldry.objectives.pair_sums import Attraction, Sums
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks

LEAST_EDGES = 2**20
"""Number of edges below which a symmetric matrix is recognized faster on the CPU."""
_BLOCK = 2**26  # pairs that are in memory at a time, where no kernel is written for them


def all_pairs(
    device: Device, kernel: Kernel, Y: Array, weights: Any, order: int
) -> tuple[Array, Array]:
    """Kernel sums and moments of the given order over all pairs."""
    shape, given = kernel_shape(kernel), _on_device(device, weights, Y)
    compiled = shape is not None and Y.shape[1] <= MAX_COMPILED_DIMENSION
    if shape is None or not compiled:
        return _in_blocks(device, kernel, Y, given, order)
    sums, moments = device.pair_sums(Y, given, shape, order)
    factor = kernel.derivative_at_zero if order == 1 else kernel.curvature_at_zero
    if factor != 1:  # the loops leave it out
        moments *= factor
    return sums, moments


def _on_device(device: Device, weights: Any, Y: Array) -> Any:
    """Weights of points or pairs on the device; a pair of arrays for factored ones."""
    if isinstance(weights, FactoredWeights):
        return device.array(weights.left), device.array(weights.right)
    if weights is None:
        return None
    given = device.array(weights)
    n = Y.shape[0]
    if given.shape not in ((n,), (1, n), (n, n)):  # kernels do not check bounds
        raise ValueError(
            f"weights of shape {given.shape} must be ({n},), or ({n}, {n}) for all pairs"
        )
    return given[0] if given.shape == (1, n) and n > 1 else given


def _in_blocks(
    device: Device, kernel: Kernel, Y: Array, weights: Any, order: int
) -> tuple[Array, Array]:
    """The same by array functions, for any kernel, any weights and any number of dimensions."""
    xp, (n, d) = device.xp, Y.shape
    sums, moments = xp.empty(n, dtype=float), xp.empty((n, d), dtype=Y.dtype)
    itself = xp.arange(n)
    for rows in row_blocks(n, n * (d + 2), _BLOCK):
        steps = Y[rows, None] - Y
        D = xp.einsum("ijc,ijc->ij", steps, steps)
        own = itself[: rows.stop - rows.start], itself[rows]
        D[own] = 1  # a value at which every kernel is finite
        K = kernel(D)
        if isinstance(weights, tuple):
            K = K * xp.maximum(weights[0][rows] @ weights[1].T, 0.0).astype(K.dtype)
        elif weights is not None:
            K = K * (weights[rows] if weights.ndim == 2 else weights).astype(K.dtype)
        K[own] = 0
        sums[rows] = K.sum(axis=1, dtype=float)
        F = kernel.times_derivative(K, D) if order == 1 else K * kernel.curvature(D)
        moments[rows] = xp.einsum("ij,ijc->ic", F, steps if order == 1 else steps * steps)
    return sums, moments


def edge_sums_on_device(device: Device, kernel: Kernel, Y: Array, W: sparse.csr_array) -> Sums:
    """Kernel sums and forces over the edges of `W`."""
    edges = _Edges(device, device.rows(W), Y)
    K = edges.W.data * kernel(edges.squares)
    return Sums(edges.sums(K), edges.force(kernel.times_derivative(K, edges.squares)))


def edge_moments_on_device(device: Device, kernel: Kernel, Y: Array, W: sparse.csr_array) -> Array:
    """Second moments over the edges of `W`."""
    edges = _Edges(device, device.rows(W), Y)
    K = edges.W.data * kernel(edges.squares) * kernel.curvature(edges.squares)
    squares = (edges.steps**2).T
    moments = [edges.sums(K * column) for column in squares]
    return device.xp.stack(moments, axis=1).astype(Y.dtype, copy=False)


def is_symmetric(device: Device, W: sparse.csr_array) -> bool:
    """Whether a sparse matrix with sorted rows equals its transpose, without rounding."""
    xp, n, rows = device.xp, W.shape[0], device.rows(W)
    i = rows.row_numbers(xp)
    order = xp.argsort(rows.indices * np.int64(n) + i)  # of the transpose
    same = i[order] == rows.indices
    return bool((same & (rows.indices[order] == i) & (rows.data[order] == rows.data)).all())


def negative_entropy_on_device(device: Device, P: sparse.csr_array) -> float:
    """Σ p log p of the entries of a sparse matrix."""
    xp, p = device.xp, device.array(P.data)
    return float(xp.sum(p * xp.log(xp.where(p > 0, p, 1.0))))


class DeviceAttraction:
    """Attraction Σ Wᵢⱼ·φ(dᵢⱼ²) of an embedding on a device.

    Parameters
    ----------
    kernel : Kernel
        The kernel κ = exp(−φ).
    W : sparse array of shape (n, n)
        The weights.
    """

    def __init__(self, kernel: Kernel, W: sparse.csr_array) -> None:
        self.kernel, self.W = kernel, W
        self._rows: dict[tuple[str, Any], DeviceMatrix] = {}  # by device and precision

    def _rows_on(self, device: Device, dtype: Any) -> DeviceMatrix:
        place = device.name, np.dtype(dtype)
        if place not in self._rows:
            self._rows[place] = device.rows(self.W, dtype)
        return self._rows[place]

    def __call__(self, device: Device, Y: Array) -> Attraction:
        kernel, W = self.kernel, self._rows_on(device, Y.dtype)
        compiled = Y.shape[1] <= MAX_COMPILED_DIMENSION
        if compiled and type(kernel) is GaussianKernel:
            _, force, degree = device.edge_sums(Y, W, 0.0)
            return Attraction(2 * device.inner_products([(force, Y)])[0], force, degree)
        if compiled and type(kernel) is StudentKernel:
            total, force, degree = device.edge_sums(Y, W, 1 / kernel.dof)
            factor = kernel.derivative_at_zero
            if factor != 1:
                force, degree = factor * force, factor * degree
            return Attraction(kernel.power * total, force, degree)
        edges = _Edges(device, W, Y)
        rates = kernel.times_derivative(W.data, edges.squares)
        value = device.xp.sum(W.data.astype(float) * kernel.phi(edges.squares))
        return Attraction(value, edges.force(rates), edges.sums(rates).astype(Y.dtype))


class _Edges:
    """Steps along the edges of a sparse matrix, and sums over the edges of each point."""

    def __init__(self, device: Device, W: DeviceMatrix, Y: Array) -> None:
        xp, self.device, self.W, self.Y = device.xp, device, W, Y
        rows = W.row_numbers(xp)
        self.steps = Y[rows] - Y[W.indices]
        self.squares = xp.einsum("ec,ec->e", self.steps, self.steps)

    def sums(self, values: Array) -> Array:
        """Σⱼ vᵢⱼ of each point, in double precision."""
        return self._added(values.astype(float)[:, None])[:, 0]

    def force(self, values: Array) -> Array:
        """Σⱼ vᵢⱼ·(yᵢ − yⱼ) of each point."""
        return self._added(values[:, None] * self.steps).astype(self.Y.dtype, copy=False)

    def _added(self, terms: Array) -> Array:
        """Sums of the rows of `terms` over the edges of each point, in their order."""
        xp, count = self.device.xp, len(self.W.indices)
        numbers = xp.arange(count, dtype=np.int32)
        once = DeviceMatrix(self.W.indptr, numbers, xp.ones(count, dtype=terms.dtype), count)
        return self.device.product(once, terms)
