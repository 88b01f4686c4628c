"""Sums over pairs of points by interpolation between the nodes of a mesh.

Each point is replaced by charges at the nodes around it, the potential of these charges is computed
at all nodes by a fast Fourier transform, and interpolated at the points. The weights of the nodes
are cubic B-splines, so the potential is twice differentiable; its derivatives are those of the
interpolated sum, not approximations of their own. They were introduced for molecular dynamics as
smooth particle mesh Ewald sums.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import fft

from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.util.threads import map_threads, thread_count
from manifoldry.util.typing import Array, IntArray

PointWeights: TypeAlias = Array | FactoredWeights | None
_NODES = 4  # nodes around a point along an axis
# Nodes beyond those that the points need. The kernel has a kink where the ends of the mesh meet,
# which disturbs the values around it, by a factor of 0.27 less from one node to the next.
_MARGIN = 12
TOO_LARGE = "pass pair_sums=Fastest(), which uses exact sums then, or a larger spacing"
_BANDS = 8  # groups of points that may be processed at the same time; fixed, as is the rounding


class Potential(NamedTuple):
    """Values at the nodes, and those `near` a unit charge at distances of up to three nodes."""

    nodes: Array
    near: Array


@dataclass(frozen=True, eq=False)
class Mesh:
    """Points on a regular mesh in one, two or three dimensions, sorted by their cell.

    Parameters
    ----------
    spacing : float
        Distance of the nodes. Nodes are at multiples of it, so that two embeddings of similar size
        have the same nodes.
    shape : tuple of int
        Number of nodes along each axis.
    padded : tuple of int
        The same with zeros added, so that the ends of the mesh do not meet.
    positions : array of shape (d, n)
        Sorted positions in units of the spacing, relative to the first node.
    order : array of shape (n,)
        Indices of the points in this order.
    starts : array of int
        Where each cell along the first axis starts.
    first : array of shape (d,)
        The first node, in units of the spacing.
    """

    spacing: float
    shape: tuple[int, ...]
    padded: tuple[int, ...]
    positions: Array
    order: IntArray
    starts: IntArray
    first: Array

    @classmethod
    def of(cls, Y: Array, spacing: float, reach: float = np.inf) -> "Mesh":
        """Create the mesh for the points `Y`, (n, d), and a kernel of this reach."""
        from manifoldry.objectives.compiled_mesh import sort_by_cell

        U = np.array(Y.T, dtype=np.float64, order="C") / spacing
        first = np.floor(U.min(axis=1))
        U -= first[:, None]
        last = U.max(axis=1)
        check_extent(last)
        shape = cells_of_nodes(last)
        order, starts = np.empty(U.shape[1], np.int32), np.empty(shape[0] + 1, np.int64)
        sort_by_cell(U[0].astype(np.int32), starts, order)
        padded = padded_shape(shape, reach / spacing)
        return cls(spacing, shape, padded, U[:, order], order, starts, first)

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def place(self) -> str:
        """Where transforms of kernels for this mesh are."""
        return "cpu"

    def kernel(self, function: Callable[[Array, Sequence[Array]], Array]) -> "MeshKernel":
        """Return the transform of a function of squared distances and steps along each axis."""
        return MeshKernel.of(function, self.spacing, self.padded)

    def groups(self, weights: PointWeights, most: int) -> list[PointWeights]:
        """The weights, or groups of at most so many of their factors."""
        return list(weights.groups(most)) if isinstance(weights, FactoredWeights) else [weights]

    def charges(self, weights: PointWeights = None) -> Array:
        """Charges at the nodes: the points' charges, by default one, divided among the nodes.

        With factored weights there is a charge for every factor, along the last axis.
        """
        loop, inner = self._spreading(weights), self._inner(weights)
        if self.d == 1:
            nodes = np.zeros((1, 1, *inner))
            loop(nodes, 0, 0, len(self.order))
            return nodes.reshape(inner)

        def spread(band: tuple[int, int]) -> Array:
            """Charges of the points in cells lo to hi along the first axis."""
            lo, hi = band
            part = np.zeros((1,) * (3 - self.d) + (hi - lo + _NODES - 1, *inner))
            loop(part, lo, self.starts[lo], self.starts[hi])
            return part

        nodes, bands = np.zeros((self.shape[0], *inner)), self._bands()
        for (lo, hi), part in zip(bands, map_threads(spread, bands), strict=True):
            nodes[lo : hi + _NODES - 1] += part.reshape(-1, *inner)
        return nodes

    def values(self, potential: Potential, weights: PointWeights = None) -> Array:
        """The potential at the points, without that of the point itself, (n,)."""
        return self._gather(potential, weights, slopes=False)[0]

    def values_and_slopes(
        self, potential: Potential, weights: PointWeights = None
    ) -> tuple[Array, Array]:
        """The same, and its gradient, (n, d)."""
        values, slopes = self._gather(potential, weights, slopes=True)
        return values, slopes / self.spacing

    def _inner(self, weights: PointWeights) -> tuple[int, ...]:
        """Shape of the charges at the nodes without the first axis, but with the only one."""
        factors = (weights.n_factors,) if isinstance(weights, FactoredWeights) else ()
        return (*self.shape[min(1, self.d - 1) :], *factors)

    def _spreading(self, weights: PointWeights) -> Callable[..., None]:
        """The loop over nodes, the number of their first plane, and the points from lo to hi."""
        if isinstance(weights, FactoredWeights):
            from manifoldry.objectives.compiled_factors import spreading_factors

            weights.check(len(self.order))
            return partial(spreading_factors(self.d), self.positions, self.order, weights.right)
        from manifoldry.objectives.compiled_mesh import spreading

        return partial(spreading(self.d), self.positions, self._sorted(weights))

    def _gather(
        self, potential: Potential, weights: PointWeights, slopes: bool
    ) -> tuple[Array, Array]:
        n = len(self.order)
        values, derivatives = np.empty(n), np.empty((n if slopes else 0, self.d))
        first = (1,) * (3 - self.d)
        nodes, near = (part.reshape(first + part.shape) for part in potential)
        if isinstance(weights, FactoredWeights):
            from manifoldry.objectives.compiled_factors import gathering_factors

            weights.check(n)
            points = self.positions, self.order, weights.left, weights.right
            loop = partial(gathering_factors(self.d, slopes), *points, nodes, near)
        else:
            from manifoldry.objectives.compiled_mesh import gathering

            charges = self.positions, self._sorted(weights)
            loop = partial(gathering(self.d, slopes), *charges, nodes, near, self.order)
        parts = pairwise(n * part // _BANDS for part in range(_BANDS + 1))
        map_threads(lambda part: loop(values, derivatives, *part), parts)
        return values, derivatives

    def _sorted(self, point_charges: Array | None) -> Array | None:
        return None if point_charges is None else np.asarray(point_charges, float)[self.order]

    def _bands(self) -> list[tuple[int, int]]:
        """Ranges of cells along the first axis with similar numbers of points."""
        n = len(self.order)
        targets = [n * part // _BANDS for part in range(1, _BANDS)]
        cells = self.shape[0] - _NODES + 1
        inner = np.searchsorted(self.starts[: cells + 1], targets)
        return list(pairwise(np.unique([0, *inner, cells]).tolist()))


@dataclass(frozen=True, eq=False)
class MeshKernel:
    """A kernel as a convolution of the charges at the nodes of a mesh.

    Parameters
    ----------
    transform : array
        Fourier transform of the values between the nodes that reproduce the kernel for points at
        nodes.
    padded : tuple of int
        Shape of the mesh with zeros added, so that its ends do not meet.
    near : array
        Values at distances of up to three nodes along each axis.
    """

    transform: Array
    padded: tuple[int, ...]
    near: Array

    @classmethod
    def of(
        cls,
        function: Callable[[Array, Sequence[Array]], Array],
        spacing: float,
        padded: tuple[int, ...],
    ) -> "MeshKernel":
        """Create it from the function of squared distances and steps along each axis."""
        # Distances along each axis; those beyond half of the mesh are reached from its other end.
        steps = [spacing * np.minimum(np.arange(m), m - np.arange(m)) for m in padded]
        grid = np.meshgrid(*steps, indexing="ij", sparse=True)
        values = function(reduce(np.add, [step * step for step in grid]), grid)
        transform = fft.rfftn(values, workers=thread_count())
        last = len(padded) - 1
        for axis, m in enumerate(padded):
            smoothing = spline_smoothing(np, m, transform.shape[axis])
            transform /= smoothing.reshape(-1, *(1,) * (last - axis))
        values = fft.irfftn(transform, padded, workers=thread_count())
        near = np.ascontiguousarray(values[tuple(slice(_NODES) for _ in padded)])
        return cls(transform, padded, near)

    def potential(self, charges: Array) -> Potential:
        """The potential of charges at the nodes, or of several, along the last axis."""
        *others, last = self.padded
        end, axes, workers = len(others), range(len(others) - 1, -1, -1), thread_count()
        # Axis by axis, since the zeros that are added along one axis need not be transformed there.
        transform = fft.rfft(charges, last, end, workers=workers)
        for axis in axes:
            transform = fft.fft(transform, others[axis], axis, workers=workers, overwrite_x=True)
        several = charges.ndim > len(self.padded)
        transform *= self.transform[..., None] if several else self.transform
        for axis in reversed(axes):
            transform = fft.ifft(transform, axis=axis, workers=workers, overwrite_x=True)
            transform = transform.take(range(charges.shape[axis]), axis)
        nodes = fft.irfft(transform, last, end, workers=workers, overwrite_x=True)
        return Potential(nodes, self.near)


def check_extent(last: Array) -> None:
    """Raise ValueError for a `last` position along an axis, in nodes, that is no number of them."""
    if not last.max() < 2**31:  # compiled loops check no bounds
        raise ValueError("the points are not finite, or too far apart for a mesh")


def cells_of_nodes(last: Array) -> tuple[int, ...]:
    """Number of nodes along each axis for points from zero to a `last` position."""
    return tuple(int(u) + _NODES for u in last)


def spline_smoothing(xp: Any, m: int, count: int) -> Array:
    """By what splines multiply the first entries of the transform of a kernel, of length `m`.

    The points at both ends of a pair are smoothed.
    """
    angles = 2 * np.pi / m * xp.arange(count)
    smoothing: Array = ((2 + xp.cos(angles)) / 3) ** 2
    return smoothing


def padded_shape(shape: tuple[int, ...], reach: float, steps: int = 16) -> tuple[int, ...]:
    """Shape with zeros added for a kernel that reaches over this many nodes.

    It is fast to transform, and rounded up, so that embeddings of similar size have the same: by at
    most one part in `steps`, a power of two.
    """
    lengths = []
    for m in shape:
        needed = m + int(min(np.ceil(reach), m)) + _MARGIN
        step = 2 ** max(needed.bit_length() - steps.bit_length(), 0)
        lengths.append(fft.next_fast_len(-(-needed // step) * step, real=True))
    return tuple(lengths)
