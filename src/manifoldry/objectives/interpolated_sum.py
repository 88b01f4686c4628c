"""Kernel sums over fixed points at any other positions, interpolated on a mesh."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifoldry.objectives.mesh import Mesh, MeshKernel
from manifoldry.objectives.pair_sums import LogSums
from manifoldry.util.threads import map_threads, thread_count
from manifoldry.util.typing import Array

_LEAST_PART = 4096  # positions per thread, so that starting threads does not take longer


class SumsAndReliability(NamedTuple):
    """Sums at several positions, and which of them are accurate."""

    sums: LogSums
    reliable: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class InterpolatedSum:
    """S(z) = Σⱼ κ(‖z − yⱼ‖²) over fixed points y, as a function of the position z.

    The value at z is a cubic spline through the sums at the nodes of a mesh, whose derivatives are
    those of the spline. The mesh depends on the points y only, so the value at a position does not
    depend on other positions. It takes about 0.05 microseconds in two dimensions.

    Parameters
    ----------
    spacing : float
        Distance of the nodes.
    first : array of shape (d,)
        The first node, in units of the spacing.
    nodes : array with three axes
        Coefficients of the splines; in fewer than three dimensions, the first axes have length one.
    resolution : float
        Sums below this value are inaccurate.
    low, high : array of shape (d,)
        Corners of the box in which values are accurate; near the ends of the mesh they are not.
    """

    spacing: float
    first: Array
    nodes: Array
    resolution: float
    low: Array
    high: Array

    @classmethod
    def of(cls, mesh: Mesh, kernel: MeshKernel, box: Array, resolution: float) -> "InterpolatedSum":
        """Create it from a mesh, whose last two points do not count, and a `box`, (2, d)."""
        charges = np.ones(len(mesh.order))
        charges[-2:] = 0.0
        potential = kernel.potential(mesh.charges(charges)).nodes
        nodes = potential.reshape((1,) * (3 - mesh.d) + potential.shape)
        return cls(mesh.spacing, mesh.first, nodes, resolution, *box)

    def at(self, Z: Array) -> SumsAndReliability:
        """Sums at the positions `Z`, (n, d); not reliable outside the box or where S is small."""
        from manifoldry.objectives.compiled_mesh import expanding

        n, d = Z.shape
        S, gradient, hessian = np.empty(n), np.zeros((n, d)), np.zeros((n, d, d))
        U, loop = np.ascontiguousarray(Z / self.spacing - self.first), expanding(d)
        parts = max(1, min(thread_count(), n // _LEAST_PART))
        bounds = pairwise(n * part // parts for part in range(parts + 1))
        map_threads(lambda part: loop(U, self.nodes, S, gradient, hessian, *part), bounds)
        reliable = ((self.low <= Z) & (self.high >= Z)).all(axis=1) & (self.resolution <= S)
        scale = np.where(reliable, S, 1.0)
        gradient /= (scale * self.spacing)[:, None]
        hessian /= (scale * self.spacing**2)[:, None, None]
        return SumsAndReliability(LogSums(np.log(scale), gradient, hessian), reliable)
