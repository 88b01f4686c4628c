"""Approximate sums over all pairs in time proportional to the number of points."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from manifoldry.device import device_of
from manifoldry.objectives.exact import ApproximateSums
from manifoldry.objectives.interpolated_sum import InterpolatedSum
from manifoldry.objectives.mesh import TOO_LARGE, Mesh, MeshKernel
from manifoldry.objectives.mesh_on_device import DeviceMesh, DeviceMeshKernel
from manifoldry.objectives.pair_kernel import GaussianKernel, Kernel
from manifoldry.objectives.pair_sums import Sums, is_matrix
from manifoldry.objectives.position_sums import (
    ExactPositionSums,
    InterpolatedPositionSums,
    PositionSums,
)
from manifoldry.util.cached import state_of_fields
from manifoldry.util.checks import check_count, check_nonnegative, check_positive
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import plan_memory

_NEGLIGIBLE = 1e-9  # kernel value that is treated as zero
_UNUSED_NODES = 8  # at each end of the mesh of an interpolated sum
_MOST_OUTLYING = 64  # points that the mesh of an interpolated sum need not cover
BYTES_PER_NODE = 32.0  # charges, their transform, that of the kernel, and the potential


class _Transformed(NamedTuple):
    """A kernel, or its moment along an axis, and its transform for one shape of the mesh."""

    kernel: Kernel
    axis: int | None
    place: str
    spacing: float
    padded: tuple[int, ...]
    mesh_kernel: MeshKernel | DeviceMeshKernel


@dataclass(frozen=True)
class FFTInterpolation(ApproximateSums):
    """Sums over pairs interpolated on a mesh with fast Fourier transforms.

    For embeddings of up to three dimensions. The cost is proportional to the number of points,
    plus that of transforming a mesh which covers the embedding. Values and forces belong to the
    same smooth function, so line searches work as with exact sums. Results do not depend on the
    number of threads.

    Sums with weights for every pair of points are exact.

    Parameters
    ----------
    spacing : float, default=None
        Distance of the nodes of the mesh, in units of the kernel's width; by default 0.35 for the
        Gaussian, 0.5 for heavy-tailed kernels. In embeddings of digits the forces then have a
        relative error of 0.2 and 3 percent, and sums over all pairs of 1e-5 and 4e-4. The error of
        forces decreases like the third power of the spacing.
    resolution : float, default=0.01
        Kernel sums of single points below this value are inaccurate.
    min_cells, max_refinement : int, float, default=64, 16.0
        The mesh of a small embedding is finer, to have this many cells along its longest axis, half
        as many in three dimensions, but at most by this factor.
    max_nodes : float, default=1e7
        Number of nodes, for each factor of the weights, that are transformed together.
    new_point_nodes : float, default=3.2e7
        Largest mesh for the sums at positions of new points, which takes about 1 GB of memory while
        it is computed, once; factored weights have one for every factor, each of which may have as
        many times fewer nodes. Its spacing is a half of that of a fit, for the Gaussian 1/2.8, in
        three dimensions 1/1.4 and a half, or less, down to an eighth, if a quarter of the nodes
        suffice. If the mesh of the whole embedding would be larger, outlying points, at most 64 and
        1 %, are left out of it, whose sums are exact; if it still would be, all sums are exact.
        `at_positions(...).reason` says so.
    new_point_resolution : float, default=1e-3
        Sums at positions of new points below this value are exact.
    exact : Exact, optional
        Computes all other sums.

    See Also
    --------
    Fastest : chooses between this, cells and exact sums.
    CellSums : for the Gaussian kernel.
    Exact : all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import Exact, FFTInterpolation, StudentKernel
    >>> Y = np.random.default_rng(0).normal(scale=10, size=(500, 2))
    >>> exact = Exact().sums(StudentKernel(), Y).kernel_sums
    >>> fast = FFTInterpolation().sums(StudentKernel(), Y).kernel_sums
    >>> bool(np.abs(fast / exact - 1).max() < 1e-2)
    True
    """

    spacing: float | None = None
    resolution: float = 0.01
    min_cells: int = 64
    max_refinement: float = 16.0
    max_nodes: float = 1e7
    new_point_nodes: float = 3.2e7
    new_point_resolution: float = 1e-3
    # The last transforms; embeddings of similar size share them.
    _transforms: deque[_Transformed] = field(
        default_factory=lambda: deque(maxlen=4), init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spacing is not None:
            check_positive("spacing", self.spacing)
        check_nonnegative("resolution", self.resolution)
        check_count("min_cells", self.min_cells)
        check_positive("max_refinement", self.max_refinement)

    def sums(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Sums:
        if is_matrix(weights):
            return self.exact.sums(kernel, Y, weights)
        mesh = self._mesh(kernel, Y)
        transformed = self._transformed(kernel, mesh)
        values, slopes = _summed(
            mesh.values_and_slopes(transformed.potential(mesh.charges(group)), group)
            for group in mesh.groups(weights, self._most_factors(mesh))
        )
        force = (-0.5 * slopes).astype(Y.dtype, copy=False)
        return Sums(values, force, self.resolution)

    def moments(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Array:
        if is_matrix(weights):
            return self.exact.moments(kernel, Y, weights)
        mesh = self._mesh(kernel, Y)
        transformed = [self._transformed(kernel, mesh, axis) for axis in range(mesh.d)]

        def columns(group: Any) -> list[Array]:
            charges = mesh.charges(group)
            return [mesh.values(moment.potential(charges), group) for moment in transformed]

        moments = _summed(map(columns, mesh.groups(weights, self._most_factors(mesh))))
        return np.maximum(np.stack(moments, axis=1), 0.0).astype(Y.dtype, copy=False)

    def _most_factors(self, mesh: Mesh | DeviceMesh) -> int:
        """Number of factors of weights that fit into memory together."""
        return max(1, int(self.max_nodes // np.prod(mesh.shape)))

    def at_positions(self, kernel: Kernel, Y: Array, factors: Array | None = None) -> PositionSums:
        Y = np.asarray(Y, dtype=np.float64)
        exact = self.exact.at_positions(kernel, Y)
        for box in (_box(Y), _box(_without_outlying(Y))):
            spacing = self._fine_spacing(kernel, box, 1 if factors is None else factors.shape[1])
            if spacing is not None:
                return self._interpolated(kernel, exact, box, spacing, factors)
        return replace(
            exact,
            reason=f"exact: a mesh over an extent of {extents(Y).max():.3g} would have more than "
            f"new_point_nodes={self.new_point_nodes:.3g} nodes",
        )

    def _interpolated(
        self,
        kernel: Kernel,
        exact: ExactPositionSums,
        box: Array,
        spacing: float,
        factors: Array | None,
    ) -> InterpolatedPositionSums:
        charges = 1 if factors is None else factors.shape[1]
        plan_memory(
            BYTES_PER_NODE * self._new_point_nodes(kernel, box, spacing) * charges,
            f"a mesh over an embedding of extent {extents(box).max():.3g} for new points",
            "pass a smaller new_point_nodes, or pair_sums=Exact()",
        )
        inside = ((box[0] <= exact.Y) & (box[1] >= exact.Y)).all(axis=1)
        # The ends of the mesh, where values are inaccurate, are kept away from the box.
        ends = box + spacing * _UNUSED_NODES * np.array([[-1.0], [1.0]])
        mesh = Mesh.of(np.vstack([exact.Y[inside], ends]), spacing, reach(kernel))
        mesh_kernel = mesh.kernel(mesh_function(kernel))
        covered = None if factors is None else factors[inside]
        interpolated = InterpolatedSum.of(
            mesh, mesh_kernel, box, self.new_point_resolution, covered
        )
        if inside.all():
            return InterpolatedPositionSums(interpolated, exact)
        outlying = replace(exact, Y=exact.Y[~inside])
        return InterpolatedPositionSums(interpolated, exact, outlying, inside)

    def _fine_spacing(self, kernel: Kernel, Y: Array, charges: int = 1) -> float | None:
        """The finest spacing for which a quarter of the nodes suffice, or the coarsest allowed one.

        None if that needs too many nodes. A mesh for new points is computed once, so that it can be
        finer than one that is computed in every step of a fit. It has to be: new points may lie
        between clusters, where sums are small. It may be coarser in three dimensions, where nodes
        are many. Each node holds several `charges` if weights are factored.
        """
        most = self.new_point_nodes / charges
        coarsest = self._usual_spacing(kernel) / 2.0 ** (1.5 if _is_gaussian(kernel) else 1.0)
        if Y.shape[1] > 2:
            coarsest *= 2.0**0.5
        spacings = self.node_spacing(kernel, Y) * 2.0 ** np.arange(-3, 0.25, 0.5)
        for spacing in spacings[spacings < 0.99 * coarsest]:
            if 4 * self._new_point_nodes(kernel, Y, spacing) <= most:
                return float(spacing)
        fits = self._new_point_nodes(kernel, Y, coarsest) <= most
        return coarsest if fits else None

    def _new_point_nodes(self, kernel: Kernel, Y: Array, spacing: float) -> float:
        return self._n_nodes(kernel, Y, spacing, 2 * _UNUSED_NODES)

    def n_nodes(self, kernel: Kernel, Y: Array) -> float:
        """Return the number of nodes of the mesh that the points need, zeros included.

        Parameters
        ----------
        kernel : Kernel
            The kernel of the sums.
        Y : array of shape (n, d)
            The points.

        Returns
        -------
        float
            The number of nodes.
        """
        return self._n_nodes(kernel, Y, self.node_spacing(kernel, Y))

    def _n_nodes(self, kernel: Kernel, Y: Array, spacing: float, unused: int = 0) -> float:
        cells = extents(Y) / spacing + unused
        return float(np.prod(cells + np.minimum(cells, reach(kernel) / spacing) + 8))

    def _mesh(self, kernel: Kernel, Y: Array) -> Mesh | DeviceMesh:
        device, ends = device_of(Y), corners(Y)
        spacing = self.node_spacing(kernel, ends)
        if device is not None:
            return DeviceMesh.of(device, Y, ends, spacing, reach(kernel))
        plan_memory(
            BYTES_PER_NODE * self._n_nodes(kernel, ends, spacing),
            f"a mesh over an embedding of extent {extents(ends).max():.3g}",
            TOO_LARGE,
        )
        return Mesh.of(Y, spacing, reach(kernel))

    def node_spacing(self, kernel: Kernel, Y: Array) -> float:
        """Return the distance of the nodes, which changes in steps of √2 for small embeddings.

        Parameters
        ----------
        kernel : Kernel
            The kernel of the sums.
        Y : array of shape (n, d)
            The points, or the corners of a box around them.

        Returns
        -------
        float
            The distance.
        """
        usual = self._usual_spacing(kernel)
        wanted = self.min_cells / (2 if Y.shape[1] > 2 else 1) * usual
        extent = float(extents(Y).max())
        if not extent < wanted:
            return usual
        ratio = min(wanted / max(extent, 1e-300), self.max_refinement)
        return float(usual * 2.0 ** (-np.ceil(2 * np.log2(ratio)) / 2))

    def _usual_spacing(self, kernel: Kernel) -> float:
        return self.spacing or (0.35 if _is_gaussian(kernel) else 0.5)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and save no transforms, which are computed again when they are needed."""
        return {**state_of_fields(self), "_transforms": deque(maxlen=self._transforms.maxlen)}

    def without_cache(self) -> Self:
        return replace(self)

    def _transformed(
        self, kernel: Kernel, mesh: Mesh | DeviceMesh, axis: int | None = None
    ) -> MeshKernel | DeviceMeshKernel:
        """The kernel, or its moment along an axis, for this mesh."""
        key = kernel, axis, mesh.place, mesh.spacing, mesh.padded
        for known in tuple(self._transforms):
            if known[:-1] == key:
                return known.mesh_kernel
        mesh_kernel = mesh.kernel(mesh_function(kernel, axis))
        self._transforms.append(_Transformed(*key, mesh_kernel))
        return mesh_kernel


def corners(Y: Array) -> Array:
    """The least and the largest coordinates, (2, d), on the host."""
    device = device_of(Y)
    if device is not None:
        return device.corners(Y)
    # Faster than by axis=0.
    return np.array([[y.min() for y in Y.T], [y.max() for y in Y.T]], dtype=float)


def extents(Y: Array) -> Array:
    """Extent of the points along each axis."""
    low, high = corners(Y)
    return np.asarray(high - low)


def _summed(parts: Iterable[Sequence[Array]]) -> Sequence[Array]:
    """Sums of corresponding arrays of all parts."""
    remaining = iter(parts)
    totals = next(remaining)
    for part in remaining:
        for total, more in zip(totals, part, strict=True):
            total += more
    return totals


def _box(Y: Array, least: float = 3.0, fraction: float = 0.05) -> Array:
    """Corners (2, d) of a box around `Y`, with a margin in which new points may lie."""
    margin = np.maximum(least, fraction * extents(Y))
    return np.stack([Y.min(axis=0) - margin, Y.max(axis=0) + margin])


def _without_outlying(Y: Array) -> Array:
    """All but a few points, those farthest from the median along an axis."""
    distances = np.abs(Y - np.median(Y, axis=0)).max(axis=1)
    kept = len(Y) - min(_MOST_OUTLYING, len(Y) // 100)
    return Y[np.argpartition(distances, kept - 1)[:kept]]


def _is_gaussian(kernel: Kernel) -> bool:
    return type(kernel) is GaussianKernel


def reach(kernel: Kernel) -> float:
    """Distance beyond which the kernel is negligible, infinite unless known."""
    if _is_gaussian(kernel):
        return float(np.sqrt(-np.log(_NEGLIGIBLE)))
    return np.inf


def mesh_function(
    kernel: Kernel, axis: int | None = None
) -> Callable[[Array, Sequence[Array]], Array]:
    """κ, or max(κ″, 0)·δ² along an axis, of squared distances and steps δ."""

    def function(D: Array, steps: Sequence[Array]) -> Array:
        K = kernel(D)
        if axis is not None:
            K = K * kernel.curvature(D) * steps[axis] ** 2
        return K

    return function
