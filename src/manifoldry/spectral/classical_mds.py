"""Classical (Torgerson) multidimensional scaling."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigvals, eigvalsh

from manifoldry._typing import Array, IntArray, Matrix, RandomState
from manifoldry._validation import (
    check_non_negative,
    check_square,
    check_symmetric,
    check_zero_diagonal,
    power_of_two_scale,
)
from manifoldry.eigen import EigenSolver, SpectralProblem
from manifoldry.extension.gower import DistancesTo, Gower
from manifoldry.extension.kernels import RawKernel
from manifoldry.spectral.gram import GramEmbedder

_FULL_SPECTRUM = 2000  # order up to which all eigenvalues are computed for the evidence


class ClassicalMDS(GramEmbedder):
    """Find points whose inner products match those that the distances imply.

    Minimises the strain Σᵢⱼ (Bᵢⱼ − yᵢ·yⱼ)², B being the doubly centred matrix −½·d². Where the
    distances are Euclidean, distances on the map approximate them from below and the result is
    that of PCA; use it when all you have is distances, or a metric that suits the data better.

    Parameters
    ----------
    n_components : int, default=2
        Number of coordinates.
    metric : str or callable, default="euclidean"
        Any metric of :func:`sklearn.metrics.pairwise_distances`, or ``"precomputed"``: then `X`
        is a square matrix of distances, and ``transform`` takes distances from new points to
        the training points. Euclidean data never form an n × n matrix; other metrics do.
    metric_params : dict, default=None
        Further arguments of the metric.
    additive_constant : bool, default=False
        Add to all distances the smallest constant that makes them Euclidean (Cailliez). It
        removes negative eigenvalues at the price of O(n³) work and inflated small distances.
    eigen_solver : str or EigenSolver, default="auto"
        See :func:`manifoldry.eigen.resolve_solver`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of iterative solvers; ``None`` is a fixed seed.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Coordinates in the units of the distances.
    eigenvalues_ : array of shape (n_components,)
        Largest eigenvalues of B; a coordinate of negative eigenvalue is zero.
    negative_share_ : float or None
        Sum of the moduli of B's negative eigenvalues over the sum of all moduli: how far the
        distances are from Euclidean. Not computed (None) beyond 2000 points.
    loss_ : float
        The strain as a share of Σ Bᵢⱼ², which no unit of length changes.
    additive_constant_ : float
        The constant that was added, or 0.
    dimension_hint_ : int
        Number of eigenvalues before the largest gap.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import ClassicalMDS
    >>> D = np.array([[0.0, 3.0, 5.0], [3.0, 0.0, 4.0], [5.0, 4.0, 0.0]])
    >>> Y = ClassicalMDS(metric="precomputed").fit_transform(D)
    >>> np.linalg.norm(Y[:, None] - Y[None], axis=2).round(6)
    array([[0., 3., 5.],
           [3., 0., 4.],
           [5., 4., 0.]])
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        additive_constant: bool = False,
        eigen_solver: str | EigenSolver = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.metric_params = metric_params
        self.additive_constant = additive_constant
        self.eigen_solver = eigen_solver
        self.random_state = random_state

    @property
    def _is_linear(self) -> bool:
        return self.metric == "euclidean" and not self.additive_constant

    @property
    def _is_precomputed(self) -> bool:
        return self.metric == "precomputed"

    def _read(self, X: Any, reset: bool) -> Matrix:
        data = super()._read(X, reset)
        if not self._is_precomputed:
            return data
        if sparse.issparse(data):
            raise ValueError("precomputed distances must be dense: a missing one is not a zero")
        check_non_negative(data, "distances")
        if reset:
            check_square(data, "distances")
            check_symmetric(data, "distances")
            check_zero_diagonal(data)
        return data

    def _pose(self, data: Matrix) -> SpectralProblem:
        self.additive_constant_ = 0.0
        problem = super()._pose(data)
        self.negative_share_ = 0.0 if self._is_linear else negative_share(problem.operator)
        return problem

    def _kernel_matrix(self, data: Matrix) -> tuple[RawKernel, Array]:
        X = None if self._is_precomputed else data
        self._distances = DistancesTo(data.shape[0], X, self.metric, self.metric_params or {})
        D = self._distances.matrix(data)
        np.fill_diagonal(D, 0.0)
        self._unit = power_of_two_scale(D)
        D /= self._unit
        if self.additive_constant:
            constant = cailliez_constant(D)
            D += constant * (1 - np.eye(len(D)))
            self.additive_constant_ = constant * self._unit
        return Gower(self._distances, self._unit, self.additive_constant_), -0.5 * D**2

    def _identical(self, data: Matrix) -> IntArray:
        if self._is_precomputed:
            return self._distances.identical(data)
        return super()._identical(data)


def cailliez_constant(D: Array) -> float:
    """The smallest constant that, added to all distances, makes them Euclidean.

    It is the largest eigenvalue of a 2n × 2n matrix made of the doubly centred −½·d² and −½·d.
    """
    n = len(D)
    H = np.eye(n) - 1 / n
    squares, plain = (-0.5 * H @ M @ H for M in (D**2, D))
    companion = np.block([[np.zeros((n, n)), 2 * squares], [-np.eye(n), -4 * plain]])
    return max(0.0, float(eigvals(companion).real.max()))


def negative_share(B: Array) -> float | None:
    """Sum of moduli of negative eigenvalues over the sum of all; None where too costly."""
    if len(B) > _FULL_SPECTRUM:
        return None
    values = eigvalsh(B)
    whole = float(np.abs(values).sum())
    return float(-values[values < 0].sum() / whole) if whole > 0 else 0.0
