"""Kernel sums over fixed points at other positions, exact and interpolated."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manifoldry.device import Device, current_device, device_of, say_on_cpu
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.interpolated_sum import InterpolatedSum
from manifoldry.objectives.pair_kernel import (
    MAX_COMPILED_DIMENSION,
    Kernel,
    KernelConstants,
    kernel_constants,
)
from manifoldry.objectives.pair_sums import LogSums, log_sums, position_sums
from manifoldry.objectives.positions_on_device import device_position_sums, placed_weights
from manifoldry.util.arrays import like
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

NewWeights: TypeAlias = Array | FactoredWeights | None


class PositionSums(ABC):
    """S(z) = Σⱼ aⱼ·κ(‖z − yⱼ‖²) over fixed points y at any positions z."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """How sums are computed, and why if they are exact."""

    @abstractmethod
    def at(self, Z: Array, weights: NewWeights = None, rows: IntArray | None = None) -> LogSums:
        """Sums at the positions `Z`, each independent of the others.

        `weights`, (n_rows, n) or factored, are the weights a, by default one; those of a position
        are in the row given by `rows`, (n_positions,).
        """


class Strips(NamedTuple):
    """Points sorted into cells of the first two axes, and along the last axis in each cell.

    There are no cells along the last axis.
    """

    points: Array  # (d, n)
    order: IntArray
    starts: IntArray
    low: Array  # (2,), of the first two axes, as are the next two
    width: Array
    counts: IntArray

    @classmethod
    def of(cls, Y: Array, width: float = 1.0, most: int = 4096) -> "Strips":
        """Sort the points `Y` into cells of a given width, wider if there were more than `most`."""
        axes = min(Y.shape[1] - 1, 2)
        low, widths, counts = np.zeros(2), np.ones(2), np.ones(2, dtype=np.intp)
        number, per_axis = np.zeros(len(Y), dtype=np.intp), int(most ** (1 / max(1, axes)))
        for axis in range(axes):
            y = Y[:, axis]
            low[axis] = y.min()
            widths[axis] = max(width, float(np.ptp(y)) / (per_axis - 1))
            cells = ((y - low[axis]) / widths[axis]).astype(np.intp)
            counts[axis] = cells.max() + 1
            number = number * counts[axis] + cells
        order = np.lexsort((Y[:, -1], number))
        starts = np.searchsorted(number[order], np.arange(counts.prod() + 1))
        return cls(np.array(Y.T[:, order], order="C"), order, starts, low, widths, counts)


@dataclass(frozen=True, eq=False)
class ExactPositionSums(PositionSums):
    """Exact sums up to rounding, of which the Gaussian leaves out negligible ones.

    Parameters
    ----------
    kernel : Kernel
        κ.
    Y : array of shape (n, d)
        The fixed points.
    compile_pairs : float, default=5e5
        Number of pairs from which compiled loops are used.
    columns : int, default=1024
        Number of points per block; fixed, so that rounding does not vary.
    cached : int, default=12288
        Size of temporary arrays. Small arrays stay in the cache; allocating large ones took two
        thirds of the time.
    thread_pairs : int, default=2**20
        Number of pairs per thread.
    reason : str, default="exact"
        Why sums are exact.
    """

    kernel: Kernel
    Y: Array
    compile_pairs: float = 5e5
    columns: int = 1024
    cached: int = 12 * 1024
    thread_pairs: int = 2**20
    reason: str = "exact"

    def at(self, Z: Array, weights: NewWeights = None, rows: IntArray | None = None) -> LogSums:
        if (device := device_of(Z) or current_device()) is not None:
            return self._on_device(device, Z, weights, rows)
        if isinstance(weights, FactoredWeights):
            return self._with_factors(Z, weights, np.arange(len(Z)) if rows is None else rows)
        nearest = self._index.nearest(Z, 1)[1][:, 0] ** 2
        constants = self._constants if len(Z) * len(self.Y) > self.compile_pairs else None
        if constants is not None:
            return self._compiled(constants, Z, nearest, weights, rows)

        def part(block: slice) -> LogSums:
            a = None if weights is None else weights[block if rows is None else rows[block]]
            return position_sums(self.kernel, Z[block], self.Y, nearest[block], a, self.columns)

        blocks = row_blocks(len(Z), min(len(self.Y), self.columns), self.cached)
        parts = map_threads(part, blocks)
        return LogSums(*map(np.concatenate, zip(*parts, strict=True)))

    def _on_device(
        self, device: Device, Z: Array, weights: NewWeights, rows: IntArray | None
    ) -> LogSums:
        """Sums where `Z` is; nothing is copied if the points and the weights are there, too."""
        places = device.array(Z, keep=False), device.array(self.Y)
        weights = placed_weights(device, weights)
        chosen = None if rows is None else device.array(rows, keep=False)
        found = device_position_sums(device, self.kernel, *places, weights, chosen)
        return LogSums(*(like(part, Z) for part in found))

    def _with_factors(self, Z: Array, weights: FactoredWeights, rows: IntArray) -> LogSums:
        """Sums with weights that are computed for some positions at a time."""
        blocks = row_blocks(len(Z), len(self.Y))
        parts = [self.at(Z[block], weights.rows(rows[block])) for block in blocks]
        return LogSums(*map(np.concatenate, zip(*parts, strict=True)))

    @cached_property
    def _index(self) -> NeighborIndex:
        return choose_index(self.Y)

    @cached_property
    def _strips(self) -> Strips:
        return Strips.of(self.Y)

    @property
    def _constants(self) -> KernelConstants | None:
        return kernel_constants(self.kernel) if self.Y.shape[1] <= MAX_COMPILED_DIMENSION else None

    def _compiled(
        self,
        constants: KernelConstants,
        Z: Array,
        nearest: Array,
        weights: Array | None,
        rows: IntArray | None,
    ) -> LogSums:
        from manifoldry.objectives.compiled_positions import position_loop

        n, d = Z.shape
        S, dS, ddS = np.empty(n), np.empty((n, d)), np.empty((n, d, d))
        a = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        if a is not None and a.shape[1] != len(self.Y):  # compiled loops check no bounds
            raise ValueError(f"there are weights of {a.shape[1]} points, not of {len(self.Y)}")
        rows = np.arange(n) if rows is None else rows
        fixed = np.ascontiguousarray(Z), *self._strips, nearest, a, rows, *constants, S, dS, ddS
        loop, parts = position_loop(d), row_blocks(n, len(self.Y), self.thread_pairs)
        map_threads(lambda part: loop(*fixed, part.start, part.stop), parts)
        return log_sums(S, dS, ddS, self.kernel.phi(nearest))


@dataclass(frozen=True, eq=False)
class InterpolatedPositionSums(PositionSums):
    """Sums of unit or factored weights by interpolation where it is accurate, and otherwise exact.

    The mesh need not cover points that are `outlying`, whose sums are exact everywhere. The factors
    of the fixed points, if any, are part of the interpolation.
    """

    interpolated: InterpolatedSum
    exact: ExactPositionSums
    outlying: ExactPositionSums | None = None
    inside: NDArray[np.bool_] | None = None
    """Which points the mesh covers; None for all."""

    @property
    def reason(self) -> str:
        mesh = f"interpolation on a mesh of spacing {self.interpolated.spacing:.2g}"
        if self.outlying is None:
            return mesh
        outlying = len(self.outlying.Y)
        return f"{mesh}, exact for {outlying} outlying point{'s' if outlying > 1 else ''}"

    def at(self, Z: Array, weights: NewWeights = None, rows: IntArray | None = None) -> LogSums:
        if weights is not None and not isinstance(weights, FactoredWeights):
            return self.exact.at(Z, weights, rows)
        say_on_cpu("interpolation at new positions", "exact sums are computed on the device")
        sums, reliable = self.interpolated.at(Z, weights, rows)
        if self.outlying is not None:
            outlying = None if weights is None else weights.to(~np.asarray(self.inside))
            sums = _added(sums, self.outlying.at(Z, outlying, rows))
        rest = np.flatnonzero(~reliable)
        if len(rest):
            new = rest if rows is None else rows[rest]
            for part, exact in zip(sums, self.exact.at(Z[rest], weights, new), strict=True):
                part[rest] = exact
        return sums


def _added(a: LogSums, b: LogSums) -> LogSums:
    """Sums over the points of both; derivatives are divided by the sum, so that they average."""
    log_sum = np.logaddexp(a.log_sum, b.log_sum)
    wa, wb = np.exp(a.log_sum - log_sum), np.exp(b.log_sum - log_sum)
    return LogSums(
        log_sum,
        wa[:, None] * a.gradient + wb[:, None] * b.gradient,
        wa[:, None, None] * a.hessian + wb[:, None, None] * b.hessian,
    )
