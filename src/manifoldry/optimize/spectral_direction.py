"""The spectral direction: a filter by the inverse Hessian of the attraction."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from manifoldry.device import Device, current_device
from manifoldry.device.vectors import centered
from manifoldry.objectives.base import Objective
from manifoldry.objectives.weights import strongest_edges
from manifoldry.optimize.definite_inverse import AutoInverse, DefiniteInverse
from manifoldry.optimize.filter import Filter, FilterOperator, Jacobi
from manifoldry.optimize.inverse_on_device import ShiftedLaplacian, invert_on_device
from manifoldry.util.arrays import cast, double, like, on_host
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class SpectralDirection(Filter):
    """Inverse of 4L + μI for the Laplacian L of the attraction: Newton's step without repulsion.

    Whole regions of the embedding move in one step, for which diagonal filters such as
    :class:`Jacobi` need many (Vladymyrov and Carreira-Perpiñán, 2012). The matrix does not change
    during a search: it is factorized once, or systems are solved by conjugate gradients. The
    attribute ``reason`` of the operator says which and why.

    The attraction has no curvature in the relative positions of connected components of its graph,
    so that only μ bounds their steps: while components move apart, line searches backtrack.

    Parameters
    ----------
    n_neighbors : int, default=None
        Keep only this number of largest weights per point. By default all are kept, since matrices
        whose factors would fill in are not factorized.
    shift : float, default=1e-6
        The shift μ, as a fraction of four times the mean degree. For elastic embeddings of lines,
        rolls, clusters, disconnected components and isolated points the default is the best
        compromise (docs/studies/spectral_direction.py): with 1e-10 the first tens of steps
        backtrack if the graph is disconnected, and with 1e-4 or more the final value is up to three
        times larger.
    inverse : AutoInverse, default=AutoInverse()
        How to solve linear systems with the matrix.

    See Also
    --------
    Jacobi, DiagonalHessian : diagonal filters.
    LBFGS, GradientDescent : optimizers that take it.

    Examples
    --------
    >>> from manifoldry import ElasticEmbedding
    >>> from manifoldry.optimize import LBFGS, SpectralDirection
    >>> model = ElasticEmbedding(optimizer=LBFGS(SpectralDirection(n_neighbors=7)))
    """

    n_neighbors: int | None = None
    shift: float = 1e-6
    inverse: AutoInverse = field(default=AutoInverse())
    newton_like = True

    def __post_init__(self) -> None:
        if self.n_neighbors is not None:
            check_count("n_neighbors", self.n_neighbors)
        check_positive("shift", self.shift)

    def operator_for(self, objective: Objective) -> FilterOperator:
        device = current_device() if objective.any_namespace else None
        if device is not None:
            return self._operator_on(device, objective)
        A, unit = self._matrix(objective)
        return _InverseOperator(self.inverse.invert(A), 4 * unit)

    def _operator_on(self, device: Device, objective: Objective) -> FilterOperator:
        laplacian = ShiftedLaplacian(device, self._weights(objective), self.shift)
        inverse = invert_on_device(laplacian, self.inverse)
        return _InverseOnDevice(device, inverse, 4 * laplacian.unit)

    def well_conditioned(self, objective: Objective) -> bool:
        """Return whether conjugate gradients would solve systems with the matrix quickly.

        Parameters
        ----------
        objective : Objective
            The objective.

        Returns
        -------
        bool
            Whether few iterations suffice.
        """
        A, _ = self._matrix(objective)
        return self.inverse.iterations(A) <= self.inverse.quick_iterations

    def _matrix(self, objective: Objective) -> tuple[sparse.csr_array, float]:
        """The matrix to invert, and its unit, the mean degree."""
        W = self._weights(objective)
        unit = float(W.sum(axis=1).mean()) or 1.0
        L = sparse.diags_array(W.sum(axis=1) / unit) - W / unit
        return sparse.csr_array(L + self.shift * sparse.eye_array(W.shape[0])), unit

    def _weights(self, objective: Objective) -> sparse.csr_array:
        """The weights of the Laplacian."""
        W = sparse.csr_array(objective.attraction, dtype=np.float64)
        if self.n_neighbors is not None:
            W = strongest_edges(W, self.n_neighbors)
        return W

    def cached(self) -> Filter:
        return _CachedFilter(self)


def cheapest_filter(objective: Objective) -> Filter:
    """Return :class:`Jacobi` if it serves as well as :class:`SpectralDirection`, else the latter.

    It does if the matrix of the spectral direction is well-conditioned, as for most data of high
    dimension. A solve with the matrix costs many times as much as an evaluation of a sparse
    objective, and hardly saves steps there.
    """
    spectral = SpectralDirection()
    return Jacobi() if spectral.well_conditioned(objective) else spectral


class _CachedFilter(Filter):
    """A filter that reuses its operator as long as the attraction is the same array."""

    newton_like = True

    def __init__(self, filter: SpectralDirection) -> None:
        self.filter = filter
        self.last: tuple[sparse.csr_array, FilterOperator] | None = None

    def operator_for(self, objective: Objective) -> FilterOperator:
        W = objective.attraction
        if self.last is None or self.last[0] is not W:
            self.last = W, self.filter.operator_for(objective)
        return self.last[1]


class _InverseOperator(FilterOperator):
    newton_like = columnwise = True

    def __init__(self, inverse: DefiniteInverse, unit: float) -> None:
        self._inverse, self._unit = inverse, unit
        self.reason = inverse.reason

    def apply(self, G: Array, Y: Array) -> Array:
        return on_host(self._solved, G)

    def _solved(self, G: Array) -> Array:
        # The constant vector is an eigenvector; its component of the gradient is rounding error.
        return centered(self._inverse.solve(centered(G)) / self._unit)


class _InverseOnDevice(_InverseOperator):
    """The same on a device, for gradients that are there or on the host."""

    def __init__(self, device: Device, inverse: DefiniteInverse, unit: float) -> None:
        super().__init__(inverse, unit)
        self._device = device

    def apply(self, G: Array, Y: Array) -> Array:
        solved = self._solved(double(self._device.array(G, keep=False)))
        return like(cast(solved, G.dtype), G)
