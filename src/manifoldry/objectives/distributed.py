"""Objectives with attraction and repulsion of points whose positions are in parts.

One evaluation with n points in P parts has the tasks of :mod:`manifoldry.objectives.sums_in_parts`
and about 4·P others, besides one for each part from which another needs positions. It moves the
nodes of the mesh, and 8·d bytes for every neighbor of a part that is in another part. A part of m
points with e edges needs 12·e + 8·(3·d + c)·m bytes besides its share of the mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.scheduler import combined, compute, delayed, persist
from manifoldry.objectives.exact import Exact
from manifoldry.objectives.fft_interpolation import FFTInterpolation
from manifoldry.objectives.normalizers import Joint, Normalizer, Unnormalized
from manifoldry.objectives.pair_kernel import MAX_COMPILED_DIMENSION, Kernel
from manifoldry.objectives.pair_sums import Sums
from manifoldry.objectives.sums_in_parts import sums_in_parts
from manifoldry.objectives.weights import negative_entropy
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class PointInParts:
    """An embedding in parts, with the value and the gradient of an objective.

    Parameters
    ----------
    positions : list of Delayed
        Positions of each part, (n_points, d).
    value, gradient_norm : float
        The value, and the Frobenius norm of the gradient.
    forces : list of Delayed
        For each part, the forces of attraction and of repulsion.
    factors : tuple of float
        The gradient is the sum of the forces with these factors.
    """

    positions: list[Any]
    value: float
    gradient_norm: float
    forces: list[Any]
    factors: tuple[float, float]

    def gradient(self) -> list[Any]:
        """Return the gradient of each part.

        Returns
        -------
        list of Delayed
            Arrays of shape (n_points, d).
        """
        total = delayed(weighted_force)
        return [total(force, self.factors) for force in self.forces]


@dataclass(frozen=True, eq=False)
class PairwiseInParts:
    """The objective :class:`~manifoldry.objectives.Pairwise` of points that are in parts.

    Sums over all pairs are interpolated on a mesh, so that embeddings have one to three
    coordinates.

    Parameters
    ----------
    affinity : DistributedMatrix
        The weights W of the attraction: symmetric, zero on the diagonal.
    bounds : array of shape (n_parts + 1,)
        The first point of each part, and the number of all points.
    kernel : Kernel
        Kernel κ of the attraction.
    normalizer : Joint or Unnormalized
        Function R of the sum of all kernel sums.
    weight : float, default=1.0
        Factor λ of the repulsion.
    exaggeration : float, default=1.0
        Factor ρ of the attraction.
    potential : Kernel, default=None
        Repulsive potential ψ; by default the kernel.
    constant : float, default=0.0
        Constant term.
    pair_weight : float, default=1.0
        Factor of the weights of all pairs in the kernel sums.
    factors : list of Delayed, default=None
        FactoredWeights of the pairs, of the points of each part; by default one.
    rule : FFTInterpolation, optional
        Determines the spacing of the mesh.

    See Also
    --------
    Pairwise : the same in memory.
    manifoldry.optimize.distributed.DescentInParts : minimizes it.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from manifoldry.distributed.exchange import DistributedMatrix
    >>> from manifoldry.objectives import Joint, StudentKernel
    >>> from manifoldry.objectives.distributed import PairwiseInParts
    >>> W, bounds = sparse.csr_array(np.array([[0, 0.5], [0.5, 0]])), np.array([0, 1, 2])
    >>> affinity = DistributedMatrix.of([dask.delayed(W[:1]), dask.delayed(W[1:])], bounds)
    >>> kind = StudentKernel(), Joint()
    >>> objective = PairwiseInParts(affinity, bounds, *kind, constant=np.log(0.5))
    >>> point = objective.at([dask.delayed(np.array([[0.0]])), dask.delayed(np.array([[3.0]]))])
    >>> round(abs(point.value), 3)  # any two points: Q is P
    0.0
    """

    affinity: DistributedMatrix
    bounds: IntArray
    kernel: Kernel
    normalizer: Normalizer
    weight: float = 1.0
    exaggeration: float = 1.0
    potential: Kernel | None = None
    constant: float = 0.0
    pair_weight: float = 1.0
    factors: Sequence[Any] | None = None
    rule: FFTInterpolation = field(default_factory=FFTInterpolation)

    def __post_init__(self) -> None:
        if not isinstance(self.normalizer, Joint | Unnormalized):
            raise ValueError(
                f"normalizer={self.normalizer!r} normalizes every point on its own, which needs "
                "sums that a mesh does not resolve; pass Joint() or Unnormalized()"
            )

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.bounds[-1])

    def degrees(self) -> list[Any]:
        """Return a quarter of the diagonal of the Hessian of the attraction at Y = 0.

        Returns
        -------
        list of Delayed
            Arrays of shape (n_points,), of each part.
        """
        slope = self.exaggeration * self.kernel.derivative_at_zero
        return persist(delayed(_degrees)(block, slope) for block in self.affinity.blocks)

    def at(self, positions: Sequence[Any]) -> PointInParts:
        """Return the value and the gradient at an embedding.

        Parameters
        ----------
        positions : list of Delayed
            Positions of each part, (n_points, d).

        Returns
        -------
        PointInParts
            The embedding and both.
        """
        repulsion = sums_in_parts(self.repulsion_kernel, positions, self.rule, self.factors)
        near, attract = self.affinity.exchange.gathered(positions), delayed(_terms)
        terms = [
            attract(self.kernel, *of_part)
            for of_part in zip(self.affinity.blocks, near, repulsion, strict=True)
        ]
        take, add = delayed(_item), combined([delayed(_item)(each, 0) for each in terms], _summed)
        *forces, total = persist([*(take(each, 1) for each in terms), add])
        [numbers] = compute([total], "sums over all pairs")
        return self._point(list(positions), forces, numbers)

    @property
    def repulsion_kernel(self) -> Kernel:
        """The repulsive potential ψ."""
        return self.potential or self.kernel

    def _point(self, positions: list[Any], forces: list[Any], numbers: Array) -> PointInParts:
        attraction, kernel_sum, *squares = numbers
        total = np.array([self.pair_weight * kernel_sum])
        R = self.normalizer.evaluate(total, _no_logarithms)
        value = self.constant + self.exaggeration * attraction + self.weight * R.value
        rate = float(np.max(R.rates)) * self.pair_weight
        a, b = 4 * self.exaggeration, -4 * self.weight * rate
        square = a * a * squares[0] + 2 * a * b * squares[1] + b * b * squares[2]
        return PointInParts(
            positions, float(value), float(np.sqrt(max(square, 0.0))), forces, (a, b)
        )


def entropy_constant(blocks: Sequence[Any]) -> float:
    """Return Σ w log w of weights in parts, the constant that makes a value a divergence.

    Parameters
    ----------
    blocks : list of Delayed
        Sparse arrays.

    Returns
    -------
    float
        The sum.
    """
    parts = [delayed(negative_entropy)(block) for block in blocks]
    [value] = compute([combined(parts, sum)], "entropy of the affinities")
    return float(value)


def weighted_force(forces: tuple[Array, Array], factors: tuple[float, float]) -> Array:
    """The sum of both forces with factors."""
    return factors[0] * forces[0] + factors[1] * forces[1]


def check_n_coordinates(d: int) -> None:
    """Raise ValueError for embeddings with more coordinates than meshes have axes."""
    if d > MAX_COMPILED_DIMENSION:
        raise ValueError(
            f"n_components={d} is more than {MAX_COMPILED_DIMENSION}, the most for which all rows "
            "can be moved; pass fewer components, or no refine"
        )


def _degrees(block: Matrix, slope: float) -> Array:
    return np.asarray(slope * block.sum(axis=1))


def _terms(
    kernel: Kernel, block: Matrix, near: Array, repulsion: Sums
) -> tuple[Array, tuple[Array, Array]]:
    """Numbers to be added over all parts, and the forces on the points of a part."""
    attraction = Exact().attraction_of_rows(kernel, block, near)
    A, B = attraction.force, repulsion.force
    squares = [np.einsum("ij,ij->", *pair) for pair in ((A, A), (A, B), (B, B))]
    numbers = [attraction.value, repulsion.kernel_sums.sum(), *squares]
    return np.array(numbers, dtype=np.float64), (A, B)


def _item(values: Sequence[Any], which: int) -> Any:
    return values[which]


def _summed(parts: list[Array]) -> Array:
    return np.sum(parts, axis=0)


def _no_logarithms(rows: IntArray) -> Array:
    raise ValueError(
        "the rows of the map are so far apart that none repels another; pass a smaller map"
    )
