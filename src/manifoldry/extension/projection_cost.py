"""Cost of the projection onto a kernel regression, with derivatives, by numpy or compiled loops."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.regression_derivatives import Density, RegressionDerivatives, Sources
from manifoldry.objectives.position_sums import Strips
from manifoldry.objectives.regression_kernels import (
    CompiledConstants,
    as_kernel,
    compiled_constants,
)
from manifoldry.util.arrays import namespace
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import map_threads, thread_count
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


class CostExpansion(NamedTuple):
    """Value, gradient and Hessian of a function at positions z."""

    values: Array
    """(n_new,)."""
    gradient: Array
    """(n_new, n_components)."""
    hessian: Array
    """(n_new, n_components, n_components)."""

    @classmethod
    def empty(cls, n: int, d: int) -> "CostExpansion":
        """Arrays to fill."""
        return cls(np.empty(n), np.empty((n, d)), np.empty((n, d, d)))

    @classmethod
    def empty_at(cls, Z: Array) -> "CostExpansion":
        """Arrays to fill, for positions in any memory."""
        xp, (n, d) = namespace(Z), Z.shape
        return cls(xp.empty(n), xp.empty((n, d)), xp.empty((n, d, d)))

    def rows(self, which: IntArray) -> "CostExpansion":
        return CostExpansion(*(part[which] for part in self))


@dataclass(frozen=True, eq=False)
class ProjectionCost:
    """‖x − f(z)‖² and the penalty on low density.

    Parameters
    ----------
    surface : KernelRegressionMap
        The kernel regression f of centered data.
    floor : float
        Density below which positions are penalized.
    weight : float
        Weight of the penalty; 0 for none.
    compiled : CompiledDistance, default=None
        Compiled loops for the surface; numpy without them.
    sources : Sources, default=None
        The training points on a device, for positions that are there.
    """

    surface: KernelRegressionMap
    floor: float
    weight: float
    compiled: "CompiledDistance | None" = None
    sources: Sources | None = None

    @property
    def numbers_per_row(self) -> int:
        """Number of values that one position needs in memory."""
        if self.compiled is None and self.sources is None:
            return self.surface.numbers_per_row
        return 3 * self.surface.X.shape[1] + 4 * self.surface.Z.shape[1] ** 2

    def evaluate(self, X: Array, Z: Array) -> CostExpansion:
        """The costs of the positions `Z` for the points `X`."""
        if self.compiled is not None:
            return self._with_penalty(*self.compiled.at(X, Z))
        out = CostExpansion.empty_at(Z)
        for rows, derivatives in self.surface.derivatives(Z, self.sources):
            part = self._with_penalty(_squared_distance(X[rows], derivatives), derivatives.density)
            for whole, values in zip(out, part, strict=True):
                whole[rows] = values
        return out

    def _with_penalty(self, plain: CostExpansion, density: Density) -> CostExpansion:
        if self.weight == 0:
            return plain
        log, g, H = density
        deficit = np.maximum(np.log(self.floor) - log, 0.0)
        force, low = 2 * self.weight * deficit, 2 * self.weight * (deficit > 0)
        return CostExpansion(
            plain.values + self.weight * deficit**2,
            plain.gradient - force[:, None] * g,
            plain.hessian
            + low[:, None, None] * g[:, :, None] * g[:, None, :]
            - force[:, None, None] * H,
        )


def _squared_distance(X: Array, derivatives: RegressionDerivatives) -> CostExpansion:
    R, J, curvature = derivatives.expand(X)
    gradient = -2 * np.einsum("nlk,nk->nl", J, R)
    hessian = 2 * (J @ J.transpose(0, 2, 1) - curvature)
    return CostExpansion((R**2).sum(axis=1), gradient, hessian)


@dataclass(frozen=True, eq=False)
class CompiledDistance:
    """‖x − f(z)‖² and log ρ(z), by compiled loops over the training points near z.

    Training points are left out as in `surface`. Where it leaves out none, those are whose weight
    is at most `rounding` times that of the second nearest position: differences of f from the data
    of the nearest point keep their digits.

    Parameters
    ----------
    surface : KernelRegressionMap
        The kernel regression f of centered data.
    constants : CompiledConstants
        Those of its kernel.
    rounding : float, default=2e-16
        Weight that is negligible.
    pairs_per_part : int, default=2**20
        Number of pairs of positions and training points in a part of the work of a thread.
    """

    surface: KernelRegressionMap
    constants: CompiledConstants
    rounding: float = 2e-16
    pairs_per_part: int = 2**20

    @classmethod
    def of(cls, surface: KernelRegressionMap) -> "CompiledDistance | None":
        """Compiled loops for a surface; None if its kernel has none."""
        constants = compiled_constants(surface.kernel)
        return None if constants is None else cls(surface, constants)

    def at(self, X: Array, Z: Array) -> tuple[CostExpansion, Density]:
        """The squared distances of points `X` from f(Z), and the densities."""
        from manifoldry.extension.compiled_expansion import expand_cost

        n, d = Z.shape
        distance, density = CostExpansion.empty(n, d), Density(*CostExpansion.empty(n, d))
        points, _, *strips = self._strips
        if (d, X.shape[1]) != (len(points), self._data.shape[1]):  # the loops check no bounds
            raise ValueError(
                f"positions of {d} coordinates and {X.shape[1]} features do not fit those of the "
                f"training points: {len(points)} and {self._data.shape[1]}"
            )
        arrays = Z, X, self._limits(Z), points, self._data, *strips
        fixed = *arrays, *self.constants, *distance, *density
        parts = row_blocks(n, points.shape[1], self.pairs_per_part)
        map_threads(lambda part: expand_cost(*fixed, part.start, part.stop), parts)
        return distance, density

    def _limits(self, Z: Array) -> Array:
        """Squared distances beyond which training points are left out, (n,)."""
        reach, rank = self.surface.reach, 1
        if np.isinf(reach):
            reach, rank = as_kernel(self.surface.kernel).reach(self.rounding), 2
        if np.isinf(reach):
            return np.full(len(Z), np.inf)
        rank = min(rank, self._distinct.n)
        distances = self._distinct.query(Z, k=[rank], workers=thread_count())[0][:, 0]
        # A little more, so that rounding does not exclude the nearest point.
        return np.asarray((distances**2 + reach) * (1 + 1e-12))

    @cached_property
    def _strips(self) -> Strips:
        return Strips.of(self.surface.positions)

    @cached_property
    def _data(self) -> Array:
        """Centered data in the order of the strips."""
        return np.ascontiguousarray(self.surface.centered[self._strips.order])

    @cached_property
    def _distinct(self) -> Any:
        """Tree of the distinct training positions."""
        from scipy.spatial import cKDTree

        return cKDTree(np.unique(self.surface.positions, axis=0))
