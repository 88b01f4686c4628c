"""Approximate sums over all pairs in time proportional to the number of points."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from manifoldry.objectives.exact import Exact
from manifoldry.objectives.mesh import Mesh, MeshKernel, padded_shape
from manifoldry.objectives.pair_kernel import GaussianKernel, Kernel
from manifoldry.objectives.pair_sums import Attraction, LogSums, PairSums, Sums
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array, Matrix

MAX_MESH_DIMENSION = 3
_NEGLIGIBLE = 1e-9  # kernel value that is treated as zero


@dataclass(frozen=True)
class FFTInterpolation(PairSums):
    """Sums over pairs interpolated on a mesh with fast Fourier transforms.

    For embeddings of up to three dimensions. The cost is proportional to the number of points,
    plus that of transforming a mesh which covers the embedding. Values and forces belong to the
    same smooth function, so line searches work as with exact sums. Results do not depend on the
    number of threads.

    Sums with weights for every pair of points are exact.

    Parameters
    ----------
    spacing : float, default=0.5
        Distance of the nodes of the mesh, in units of the kernel's width.
    min_cells, max_refinement : int, float, default=64, 16.0
        The mesh of a small embedding is finer, to have this many cells along its longest axis, but
        at most by this factor.
    exact : Exact
        Computes the sums that are not interpolated.

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

    spacing: float = 0.5
    min_cells: int = 64
    max_refinement: float = 16.0
    exact: Exact = field(default=Exact())

    def __post_init__(self) -> None:
        check_positive("spacing", self.spacing)
        check_count("min_cells", self.min_cells)
        check_positive("max_refinement", self.max_refinement)

    def sums(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Sums:
        if _is_matrix(weights):
            return self.exact.sums(kernel, Y, weights)
        mesh = Mesh.of(Y, self._spacing(Y))
        potential = self._kernel(kernel, mesh, lambda D, steps: kernel(D)).potential(
            mesh.charges(weights)
        )
        values, slopes = mesh.values_and_slopes(potential, weights)
        return Sums(values, (-0.5 * slopes).astype(Y.dtype, copy=False))

    def moments(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Array:
        if _is_matrix(weights):
            return self.exact.moments(kernel, Y, weights)
        mesh = Mesh.of(Y, self._spacing(Y))
        charges = mesh.charges(weights)
        columns = []
        for axis in range(mesh.d):
            moment = self._kernel(kernel, mesh, _moment(kernel, axis))
            columns.append(mesh.values(moment.potential(charges), weights))
        return np.maximum(np.stack(columns, axis=1), 0.0).astype(Y.dtype, copy=False)

    def attraction(self, kernel: Kernel, W: sparse.csr_array) -> Callable[[Array], Attraction]:
        return self.exact.attraction(kernel, W)

    def at_positions(
        self, kernel: Kernel, Z: Array, Y: Array, nearest: Array, weights: Array | None = None
    ) -> LogSums:
        return self.exact.at_positions(kernel, Z, Y, nearest, weights)

    def n_nodes(self, kernel: Kernel, Y: Array) -> float:
        """Number of nodes of the mesh that the points `Y` need, zeros included."""
        spacing = self._spacing(Y)
        cells = np.ptp(np.asarray(Y, float), axis=0) / spacing
        return float(np.prod(cells + np.minimum(cells, reach(kernel) / spacing) + 8))

    def _spacing(self, Y: Array) -> float:
        """The distance of the nodes, which changes in steps of √2 for small embeddings."""
        extent = float(np.ptp(Y, axis=0).max())
        wanted = self.min_cells * self.spacing
        if not extent < wanted:
            return self.spacing
        ratio = min(wanted / max(extent, 1e-300), self.max_refinement)
        return self.spacing * 2.0 ** (-np.ceil(2 * np.log2(ratio)) / 2)

    def _kernel(
        self, kernel: Kernel, mesh: Mesh, function: Callable[[Array, list[Array]], Array]
    ) -> MeshKernel:
        padded = padded_shape(mesh.shape, reach(kernel) / mesh.spacing)
        return MeshKernel.of(function, mesh.spacing, padded)


def reach(kernel: Kernel) -> float:
    """Distance beyond which the kernel is negligible, infinite unless known."""
    if type(kernel) is GaussianKernel:
        return float(np.sqrt(-np.log(_NEGLIGIBLE)))
    return np.inf


def _moment(kernel: Kernel, axis: int) -> Callable[[Array, list[Array]], Array]:
    def moment(D: Array, steps: list[Array]) -> Array:
        return np.asarray(kernel(D) * kernel.curvature(D) * steps[axis] ** 2)

    return moment


def _is_matrix(weights: Matrix | None) -> bool:
    return weights is not None and (sparse.issparse(weights) or np.ndim(weights) == 2)
