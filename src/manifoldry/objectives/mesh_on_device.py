"""Sums over pairs by interpolation on a mesh, for embeddings on a device.

Everything is in double precision, as on the CPU: the transforms are limited by memory, of which a
mesh in two dimensions takes so little that it stays in the cache of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from manifoldry.device import Device
from manifoldry.device.primitives import Nodes
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.mesh import (
    TOO_LARGE,
    Potential,
    cells_of_nodes,
    check_extent,
    padded_shape,
    spline_smoothing,
)
from manifoldry.util.typing import Array

# Charges, their transform and that of the kernel, a copy of the first transform, and the potential.
_BYTES_PER_NODE = 40.0
# Lengths of meshes are multiples of a half or a quarter of the power of two below. Each new
# length costs more time, for plans of transforms and the kernel's transform, than the zeros do.
_STEPS = {1: 2, 2: 2, 3: 4}
_LEAST = {1: 1024, 2: 256, 3: 64}  # along each axis, which takes no longer than fewer nodes


@dataclass(frozen=True, eq=False)
class DeviceMesh:
    """Points and the nodes of a mesh around them on a device; like a `Mesh` on the CPU.

    Parameters
    ----------
    device : Device
        Where the points are.
    Y : array of shape (n, d)
        The points.
    nodes : Nodes
        The mesh, with zeros added so that its ends do not meet.
    shape : tuple of int
        Number of nodes along each axis that the points need.
    """

    device: Device
    Y: Array
    nodes: Nodes
    shape: tuple[int, ...]

    @classmethod
    def of(
        cls, device: Device, Y: Array, corners: Array, spacing: float, reach: float
    ) -> DeviceMesh:
        """Create the mesh for points between `corners`, (2, d), on the host."""
        U = corners / spacing
        first = np.floor(U[0])
        check_extent(U[1] - first)
        shape = cells_of_nodes(U[1] - first)
        needed = padded_shape(shape, reach / spacing, _STEPS[len(shape)])
        padded = tuple(max(m, _LEAST[len(shape)]) for m in needed)
        return cls(device, Y, Nodes(spacing, tuple(first.tolist()), padded), shape)

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def spacing(self) -> float:
        """Distance of the nodes."""
        return self.nodes.spacing

    @property
    def padded(self) -> tuple[int, ...]:
        """Shape with the zeros."""
        return self.nodes.shape

    @property
    def place(self) -> str:
        """Where transforms of kernels for this mesh are."""
        return self.device.name

    def kernel(self, function: Callable[[Array, Sequence[Array]], Array]) -> DeviceMeshKernel:
        """Return the transform of a function of squared distances and steps along each axis."""
        self.device.plan(
            _BYTES_PER_NODE * float(np.prod(self.padded)),
            f"a mesh over an embedding of {' × '.join(map(str, self.shape))} nodes",
            TOO_LARGE,
        )
        return DeviceMeshKernel.of(self.device.xp, function, self.spacing, self.padded)

    def groups(self, weights: Any, most: int) -> list[Any]:
        """Weights on the device, as pairs of factors, of which at most so many are in a group."""
        if weights is None:
            return [None]
        if not isinstance(weights, FactoredWeights):
            charges = self.device.array(weights, float)
            if charges.size != len(self.Y):  # kernels do not check bounds
                raise ValueError(f"there are {charges.size} weights of {len(self.Y)} points")
            return [(None, charges.reshape(-1, 1))]
        weights.check(len(self.Y))
        left, right = self.device.array(weights.left), self.device.array(weights.right)
        starts = range(0, weights.n_factors, most)
        return [(left[:, s : s + most], right[:, s : s + most]) for s in starts]

    def charges(self, group: Any) -> Array:
        """Charges at the nodes, (n_charges, *padded)."""
        right = None if group is None else group[1]
        return self.device.spread(self.Y, right, self.nodes)

    def values(self, potential: Potential, group: Any) -> Array:
        """The potential at the points, without that of the point itself, (n,)."""
        return self._gather(potential, group, slopes=False)[0]

    def values_and_slopes(self, potential: Potential, group: Any) -> tuple[Array, Array]:
        """The same, and its gradient, (n, d)."""
        return self._gather(potential, group, slopes=True)

    def _gather(self, potential: Potential, group: Any, slopes: bool) -> tuple[Array, Array]:
        left, right = (None, None) if group is None else group
        return self.device.gather(self.Y, *potential, self.nodes, left, right, slopes)


@dataclass(frozen=True, eq=False)
class DeviceMeshKernel:
    """A kernel as a convolution of charges on a device; like a `MeshKernel` on the CPU.

    The transform is real, since the kernel is the same in both directions, and is divided by the
    number of nodes.
    """

    xp: Any
    transform: Array
    padded: tuple[int, ...]
    near: Array

    @classmethod
    def of(
        cls,
        xp: Any,
        function: Callable[[Array, Sequence[Array]], Array],
        spacing: float,
        padded: tuple[int, ...],
    ) -> DeviceMeshKernel:
        """Create it from the function of squared distances and steps along each axis."""
        numbers = [xp.arange(m) for m in padded]
        steps = [spacing * xp.minimum(k, len(k) - k) for k in numbers]
        grid = xp.meshgrid(*steps, indexing="ij", sparse=True)
        values = function(reduce(xp.add, [step * step for step in grid]), grid)
        transform = xp.fft.rfftn(values.astype(float)).real
        for axis, m in enumerate(padded):
            smoothing = spline_smoothing(xp, m, transform.shape[axis])
            transform = transform / smoothing.reshape(-1, *(1,) * (len(padded) - 1 - axis))
        values = xp.fft.irfftn(transform.astype(complex), padded, axes=tuple(range(len(padded))))
        near = xp.ascontiguousarray(values[tuple(slice(4) for _ in padded)])
        return cls(xp, xp.ascontiguousarray(transform) / np.prod(padded), padded, near)

    def potential(self, charges: Array) -> Potential:
        """The potential of charges at the nodes, (n_charges, *padded)."""
        axes = tuple(range(1, charges.ndim))
        transform = self.xp.fft.rfftn(charges, axes=axes)
        transform *= self.transform
        # The factor of this norm is part of the kernel's transform.
        nodes = self.xp.fft.irfftn(transform, self.padded, axes=axes, norm="forward")
        return Potential(nodes, self.near)
