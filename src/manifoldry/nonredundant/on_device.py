"""Gradients along earlier coordinates, and their penalty, on a device.

The same as `gradients` and `penalty` compute with compiled loops, in double precision, by products
of sparse matrices with blocks of columns and by small matrices in batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.device import Device
from manifoldry.device.primitives import DeviceMatrix
from manifoldry.nonredundant.gradients import EarlierGradients, gradient_unit
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale

_TINY = float(np.finfo(float).tiny)


def earlier_gradients(W: sparse.csr_array, F: Array, device: Device | None) -> EarlierGradients:
    """The gradients of the columns of `F`, on a device if the graph is large."""
    gradients = EarlierGradients(W, F)
    if device is None or not gradients.large:
        return gradients
    numbers = 3 * W.nnz * F.shape[1] + 5 * F.shape[0] * F.shape[1] ** 2
    device.plan(8 * numbers, "a table of gradients of the earlier coordinates", "pass device='cpu'")
    return DeviceGradients(W, F, device=device)


@dataclass(frozen=True, eq=False)
class DeviceGradients(EarlierGradients):
    """Earlier gradients whose products with the penalty run on a device.

    Parameters
    ----------
    device : Device
        The device.
    """

    device: Device | None = None

    @cached_property
    def graph(self) -> GraphOnDevice:
        """The edges of the graph on the device."""
        assert self.device is not None
        return GraphOnDevice.of(self.device, self.W)

    @cached_property
    def penalty_products(self) -> PenaltyOnDevice:  # type: ignore[override]
        return self._penalty(self.floor)

    @cached_property
    def _fraction_products(self) -> PenaltyOnDevice:  # type: ignore[override]
        return self._penalty(self.fraction_floor)

    def fraction(self, f: Array) -> float:
        device = self.graph.device
        f = device.array(f, keep=False)
        Lf, Rf = self._fraction_products(f[:, None])
        energies = device.host(device.xp.stack([f @ Rf[:, 0], f @ Lf[:, 0]]))
        return float(energies[0]) / max(2 * float(energies[1]), _TINY)

    def _penalty(self, floor: float) -> PenaltyOnDevice:
        (F, products), xp = self._scaled_there, self.graph.device.xp
        metrics = xp.linalg.inv(products + floor * xp.eye(F.shape[1]))
        degree = xp.maximum(self.graph.degree, _TINY)[:, None, None]
        return PenaltyOnDevice(self.graph, F, metrics / degree)

    @cached_property
    def _scaled_there(self) -> tuple[Array, Array]:
        """The coordinates in units of their gradients, and products of these gradients."""
        graph = self.graph
        F = graph.device.array(np.ascontiguousarray(self.F))
        products = graph.gradient_products(F)
        q = F.shape[1]
        own = products.reshape(-1, q * q)[:, :: q + 1]  # the diagonals
        unit = gradient_unit(graph.degree @ own / graph.degree.sum(), F)
        return F / unit, products / (unit[:, None] * unit)


@dataclass(frozen=True, eq=False)
class GraphOnDevice:
    """A graph with symmetric weights on a device."""

    device: Device
    W: DeviceMatrix  # in units of `unit`
    unit: float

    @classmethod
    def of(cls, device: Device, W: sparse.csr_array) -> GraphOnDevice:
        """From weights on the host; in their units they are in the range of numbers."""
        unit = power_of_two_scale(W.data)
        rows = device.rows(W, np.float64)
        return cls(device, rows._replace(data=rows.data / unit), unit)

    @cached_property
    def degree(self) -> Array:
        """Sums of the rows of the weights."""
        xp = self.device.xp
        return self.device.product(self.W, xp.ones((self.W.n_rows, 1)))[:, 0]

    @cached_property
    def rows(self) -> Array:
        """Row of each edge."""
        return self.W.row_numbers(self.device.xp)

    def steps(self, F: Array) -> Array:
        """Differences of the columns of `F` along every edge, (n_edges, q)."""
        return F[self.W.indices] - F[self.rows]

    def row_sums(self, weights: Array, values: Array) -> Array:
        """Weighted sums of values (n_edges, m) over the edges of each row."""
        edges = self.device.xp.arange(len(weights), dtype=np.int32)
        own = DeviceMatrix(self.W.indptr, edges, weights, len(weights))
        return self.device.product(own, values)

    def column_sums(self, values: Array) -> Array:
        """Sums of values (n_edges,) over the edges of each column.

        A symmetric matrix has as many entries in a column as in the row.
        """
        order = self.device.xp.argsort(self.W.indices, kind="stable").astype(np.int32)
        ones = self.device.xp.ones(len(order))
        by_column = DeviceMatrix(self.W.indptr, order, ones, len(order))
        return self.device.product(by_column, values[:, None])[:, 0]

    def gradient_products(self, F: Array) -> Array:
        """Γ(f_l, f_m) of the columns of `F` at every row, (n, q, q)."""
        n, q = F.shape
        steps, products = self.steps(F), self.device.xp.empty((n, q, q))
        fraction = self.W.data / self.device.xp.maximum(self.degree, _TINY)[self.rows]
        for j in range(q):
            sums = self.row_sums(fraction, steps[:, j : j + 1] * steps[:, j:])
            products[:, j, j:] = sums
            products[:, j:, j] = sums
        return products


@dataclass(frozen=True, eq=False)
class PenaltyOnDevice:
    """The penalty R of earlier coordinates, and the graph Laplacian L; see `PenaltyProducts`."""

    graph: GraphOnDevice
    F: Array  # (n, q), in units of their gradients
    metrics: Array  # (n, q, q)

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """L X and R X of the columns of X, (n, b)."""
        graph, xp, F, WF = self.graph, self.graph.device.xp, self.F[:, None], self._neighbor_sums
        (n, b), q = X.shape, self.F.shape[1]
        own, degree = X[:, :, None], graph.degree[:, None]
        columns = xp.concatenate([(own * F).reshape(n, b * q), X], axis=1)
        sums = graph.device.product(graph.W, columns)
        LX = degree * X - sums[:, b * q :]
        differences = sums[:, : b * q].reshape(n, b, q) - own * WF + F * LX[:, :, None]
        components = differences @ self.metrics
        along = (components * F).sum(axis=2)
        columns = xp.concatenate([components.reshape(n, b * q), along], axis=1)
        sums = graph.device.product(graph.W, columns)
        RX = (F * sums[:, : b * q].reshape(n, b, q) - WF * components).sum(axis=2)
        RX += degree * along - sums[:, b * q :]
        return LX * graph.unit, RX * graph.unit

    @property
    def degree(self) -> Array:
        """Sums of the rows of the weights."""
        return self.graph.unit * self.graph.degree

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of R."""
        graph, q = self.graph, self.F.shape[1]
        steps = graph.W.data[:, None] * graph.steps(self.F)
        totals = graph.row_sums(graph.W.data, graph.steps(self.F))
        own = ((self.metrics @ totals[:, :, None])[:, :, 0] * totals).sum(axis=1)
        edges = graph.device.xp.zeros(len(steps))
        for m in range(q):
            edges += steps[:, m] * (self.metrics[:, m][graph.rows] * steps).sum(axis=1)
        return graph.unit * (own + graph.column_sums(edges))

    @cached_property
    def _neighbor_sums(self) -> Array:
        return self.graph.device.product(self.graph.W, self.F)[:, None]
