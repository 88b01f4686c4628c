"""Inverse by kernel regression of the data on the embedding, with derivatives."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manifoldry.device import Device, current_device
from manifoldry.extension.on_device import BUDGET
from manifoldry.extension.regression_derivatives import (
    RegressionDerivatives,
    Sources,
    distances_within_reach,
)
from manifoldry.objectives.nearby_sources import NearbySources
from manifoldry.objectives.regression_kernels import RegressionKernel, as_kernel
from manifoldry.objectives.regression_pairs import DEFAULT_PAIRS, RegressionPairs, Rows
from manifoldry.util.arrays import to_numpy
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class KernelRegressionMap:
    """f(z) = Σᵢ bᵢ(z)·xᵢ with weights bᵢ ∝ κ(‖z − zᵢ‖²).

    This is the inverse of unsupervised kernel regression, whose kernel has width one. Values lie
    in the convex hull of the data: it does not extrapolate. Far from all training coordinates the
    value is that of the nearest one (for Student's kernel, the mean).

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        Training coordinates.
    X : array of shape (n_samples, n_features)
        The training data.
    kernel : {"gaussian", "student", "quartic", "triweight"} or RegressionKernel
        The kernel κ of the embedding.
    farthest : float, default=1e3
        Largest distance from the center, in diameters of the embedding; coordinates beyond it are
        clipped.
    pairs : RegressionPairs
        Which training points are used: for more than 2000, those of negligible weight are not.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.linspace(-8, 8, 40)[:, None]
    >>> curve = KernelRegressionMap(Z, np.hstack([Z, np.sin(Z / 2)]))
    >>> curve.predict(np.array([[1.0]])).round(2)
    array([[1.  , 0.45]])
    >>> curve.jacobian(np.array([[1.0]])).round(2)
    array([[[1.  ],
            [0.41]]])
    """

    Z: Array
    X: Array
    kernel: str | RegressionKernel = "gaussian"
    farthest: float = 1e3
    pairs: RegressionPairs = DEFAULT_PAIRS

    __getstate__ = state_of_fields

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        if len(self.Z) != len(self.X):
            raise ValueError(
                f"Z has {len(self.Z)} rows and X has {len(self.X)}; pass as many rows of each"
            )

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        Z = self._clip_distance(Z)
        if (device := current_device()) is not None:
            return self.mean + self._predict_on(device, Z)
        out = np.empty((len(Z), self.X.shape[1]))
        for rows, sources in self._blocks(Z):
            D = distances_within_reach(Z[rows], sources.positions, self.reach)
            out[rows] = as_kernel(self.kernel).weights(D).weights @ sources.centered
        return out + self.mean

    def _predict_on(self, device: Device, Z: Array) -> Array:
        """Values relative to the mean, from all training points."""
        xp, kernel = device.xp, as_kernel(self.kernel)
        positions, centered = device.array(self.positions), device.array(self.centered)
        targets, out = device.array(Z, keep=False), xp.empty((len(Z), self.X.shape[1]))
        for rows in row_blocks(len(Z), 4 * len(positions), 2**28):
            D = device.squared_distances(targets[rows], positions)
            out[rows] = kernel.weights(D).weights @ centered
        return device.host(out)

    def jacobian(self, Z: Array) -> Array:
        """Derivatives ∂f/∂z at the coordinates `Z`, (n_new, n_features, n_components)."""
        Z, sources = self._placed(self._clip_distance(Z))
        out = np.empty((len(Z), self.X.shape[1], self.Z.shape[1]))
        for rows, derivatives in self.derivatives(Z, sources):
            out[rows] = to_numpy(derivatives.jacobian).transpose(0, 2, 1)
        return out

    def derivatives(
        self, Z: Array, sources: Sources | None = None
    ) -> Iterator[tuple[Rows, RegressionDerivatives]]:
        """Yield rows of `Z` and the derivatives there; blocks of rows bound the memory.

        For positions on a device, `sources` are the training points there.
        """
        kernel = as_kernel(self.kernel)
        for rows, some in self._blocks(Z, sources):
            yield rows, RegressionDerivatives.of(kernel, some, Z[rows], self.reach)

    def sources_on(self, device: Device) -> Sources:
        """All training points, on a device."""
        return Sources(device.array(self.positions), device.array(self.centered))

    @cached_property
    def positions(self) -> Array:
        """Training coordinates in double precision."""
        return np.ascontiguousarray(self.Z, dtype=np.float64)

    @cached_property
    def mean(self) -> Array:
        """Mean of the data, (n_features,)."""
        return np.asarray(self.X.mean(axis=0, dtype=np.float64))

    @cached_property
    def centered(self) -> Array:
        """Centered data in double precision."""
        return np.asarray(self.X - self.mean)

    @property
    def numbers_per_row(self) -> int:
        """Number of values that one position needs in memory."""
        return self._numbers(len(self.Z) if self._nearby is None else 0)

    def _numbers(self, n_sources: int) -> int:
        d, n_features = self.Z.shape[1], self.X.shape[1]
        return int((6 + d) * n_sources + (d + 4) * n_features)

    def _placed(self, Z: Array) -> tuple[Array, Sources | None]:
        """Positions and training points on the current device, if there is one."""
        device = current_device()
        if device is None:
            return Z, None
        return device.array(Z, keep=False), self.sources_on(device)

    def _blocks(self, Z: Array, sources: Sources | None = None) -> Iterator[tuple[Rows, Sources]]:
        """Rows of `Z`, each in one block, with the training points that matter for them."""
        if sources is not None:
            yield from ((block, sources) for block in self._device_blocks(len(Z)))
            return
        if self._nearby is None:
            for block in row_blocks(len(Z), self._numbers(len(self.Z))):
                yield block, Sources(self.positions, self.centered)
            return
        for tile in self._nearby.tiles(Z):
            found = self._nearby.find(tile)
            sources = Sources(self.positions[found], self.centered[found])
            for part in row_blocks(len(tile.rows), self._numbers(len(found))):
                yield tile.rows[part], sources

    def _device_blocks(self, n: int) -> list[slice]:
        numbers, device = self._numbers(len(self.Z)), current_device()
        if device is not None:
            what = f"kernel regression on {len(self.Z)} points"
            remedy = "pass fewer rows at a time, or device='cpu'"
            device.plan(8.0 * min(4 * BUDGET, n * numbers), what, remedy)
        return row_blocks(n, numbers, 4 * BUDGET)

    @cached_property
    def reach(self) -> float:
        """Squared distance, beyond that of the nearest point, from which points are left out."""
        return self.pairs.reach(self.kernel, *self.Z.shape)

    @cached_property
    def _nearby(self) -> NearbySources | None:
        """Search for the training points that matter; None if all do."""
        return NearbySources(self.positions, self.reach) if np.isfinite(self.reach) else None

    def _clip_distance(self, Z: Array) -> Array:
        """Move positions beyond `farthest` toward the center, where squares keep their digits."""
        Z, center = np.asarray(Z, dtype=np.float64), self.positions.mean(axis=0)
        farthest = self.farthest * max(float(np.ptp(self.positions, axis=0).max()), 1.0)
        offset = Z - center
        distance = np.abs(offset).max(axis=1, keepdims=True)
        shorter = offset * (farthest / np.maximum(distance, farthest))
        return np.where(distance > farthest, center + shorter, Z)
