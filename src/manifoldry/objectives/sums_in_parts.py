"""Sums over all pairs of points whose positions are in parts, by interpolation on one mesh.

Nodes are at multiples of one spacing, so that meshes of different parts fit together. Each part
divides its charges among the nodes around its points. The charges of all parts are added, a few
parts at a time. One task computes the potential of the sum, and each part interpolates it at its
points. So every point is repelled by all others, and only nodes move between workers.

Let M be the number of nodes of the mesh over all points, and c the number of charges of a point:
one, or the number of factors of the weights. One sum over all pairs of P parts on W workers takes
about 3.4·P tasks and moves at most 8·c·M·(1.1·P + W) bytes, less if a part covers only a piece of
the mesh. A task of a part needs up to 16·c·M bytes besides its points, that of the potential
32·c·M·2^d, with zeros around the mesh; both are checked against the memory that is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from manifoldry.distributed.scheduler import combined, delayed
from manifoldry.objectives.fft_interpolation import (
    BYTES_PER_NODE,
    FFTInterpolation,
    corners,
    mesh_function,
    reach,
)
from manifoldry.objectives.mesh import Mesh, MeshKernel, Potential, padded_shape
from manifoldry.objectives.pair_kernel import Kernel
from manifoldry.objectives.pair_sums import Sums
from manifoldry.util.typing import Array
from manifoldry.util.validation import plan_memory


class OnNodes(NamedTuple):
    """Charges at the nodes of a piece of a mesh, or their potential."""

    values: Array
    first: Array  # the first node, in units of the spacing
    spacing: float
    near: Array | None = None  # of the potential, see `Potential`


def sums_in_parts(
    kernel: Kernel,
    positions: Sequence[Any],
    rule: FFTInterpolation,
    weights: Sequence[Any] | None = None,
) -> list[Any]:
    """Return the kernel sums and forces of the points of each part, over the points of all parts.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    positions : list of Delayed
        Positions of each part, (n_points, d) with d up to three.
    rule : FFTInterpolation
        Determines the spacing of the nodes.
    weights : list of Delayed, optional
        FactoredWeights of the points of each part; by default all pairs have weight one.

    Returns
    -------
    list of Delayed
        For each part, the :class:`~manifoldry.objectives.pair_sums.Sums` of its points.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from manifoldry.objectives import FFTInterpolation, GaussianKernel
    >>> Y = np.random.default_rng(0).normal(size=(20, 2))
    >>> whole = FFTInterpolation().sums(GaussianKernel(), Y).kernel_sums
    >>> parts = [dask.delayed(Y[:5]), dask.delayed(Y[5:])]
    >>> found = dask.compute(*sums_in_parts(GaussianKernel(), parts, FFTInterpolation()))
    >>> bool(np.allclose(np.concatenate([part.kernel_sums for part in found]), whole))
    True
    """
    factors = [None] * len(positions) if weights is None else weights
    pairs = list(zip(positions, factors, strict=True))
    ends, spread, gather = delayed(corners), delayed(_charges), delayed(_sums)
    spacing = delayed(_spacing)(rule, kernel, combined([ends(Y) for Y in positions], _around))
    charges = combined([spread(Y, spacing, w) for Y, w in pairs], _added)
    potential = delayed(_potential)(kernel, charges)
    return [gather(Y, potential, w, rule.resolution) for Y, w in pairs]


def _around(boxes: list[Array]) -> Array:
    """Corners of a box around several."""
    low, high = zip(*boxes, strict=True)
    return np.array([np.min(low, axis=0), np.max(high, axis=0)])


def _spacing(rule: FFTInterpolation, kernel: Kernel, box: Array) -> float:
    what = f"a mesh over an embedding of extents {np.ptp(box, axis=0).round(1).tolist()}"
    remedy = "start workers with more memory, or pass fewer components or refine=0"
    plan_memory(BYTES_PER_NODE * rule.n_nodes(kernel, box), what, remedy)
    return rule.node_spacing(kernel, box)


def _charges(Y: Array, spacing: float, weights: Any) -> OnNodes:
    mesh = Mesh.of(Y, spacing)
    return OnNodes(mesh.charges(weights), mesh.first, spacing)


def _added(pieces: list[OnNodes]) -> OnNodes:
    """The sum of charges on different pieces of a mesh."""
    d = len(pieces[0].first)
    ends = [piece.first + piece.values.shape[:d] for piece in pieces]
    first = reduce(np.minimum, [piece.first for piece in pieces])
    shape = tuple((reduce(np.maximum, ends) - first).astype(int))
    total = np.zeros(shape + pieces[0].values.shape[d:])
    for piece in pieces:
        total[_place(piece.first - first, piece.values.shape[:d])] += piece.values
    return OnNodes(total, first, pieces[0].spacing)


def _potential(kernel: Kernel, charges: OnNodes) -> OnNodes:
    shape = charges.values.shape[: len(charges.first)]
    padded = padded_shape(shape, reach(kernel) / charges.spacing)
    rule = MeshKernel.of(mesh_function(kernel), charges.spacing, padded)
    nodes, near = rule.potential(charges.values)
    return OnNodes(nodes, charges.first, charges.spacing, near)


def _sums(Y: Array, potential: OnNodes, weights: Any, resolution: float) -> Sums:
    """The sums of the points of a part."""
    mesh = Mesh.of(Y, potential.spacing)
    nodes = potential.values[_place(mesh.first - potential.first, mesh.shape)]
    here = Potential(np.ascontiguousarray(nodes), np.asarray(potential.near))
    values, slopes = mesh.values_and_slopes(here, weights)
    return Sums(values, -0.5 * slopes, resolution)


def _place(first: Array, shape: tuple[int, ...]) -> tuple[slice, ...]:
    starts = first.astype(int)
    return tuple(slice(a, a + m) for a, m in zip(starts, shape, strict=True))
