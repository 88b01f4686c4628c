"""Classical (Torgerson) multidimensional scaling."""

from typing import Any

import numpy as np
from scipy.linalg import eigvals, eigvalsh

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import AllDistances, Input, Points
from manifoldry.device import Device
from manifoldry.eigen import EigenSolver
from manifoldry.extension.from_distances import DistancesToTraining, GowerKernel
from manifoldry.neighbors.distances import check_range
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.gram import KernelGram, LinearGram, PosedKernel, check_gram_memory
from manifoldry.util.typing import Array, RandomState
from manifoldry.util.validation import power_of_two_scale


@shared_docs
class ClassicalMDS(SpectralEmbedder):
    """Classical multidimensional scaling: match the inner products that the distances imply.

    Minimizes the strain Σᵢⱼ (Bᵢⱼ − yᵢ·yⱼ)², where B is the doubly centered matrix −½·d². For
    Euclidean distances the result equals that of PCA, and no distance in the embedding is larger
    than in the data. Use it if only distances are available, or for another metric.

    Parameters
    ----------
    {n_components}
    metric : str or callable, default="euclidean"
        Any metric of :func:`sklearn.metrics.pairwise_distances`, or ``"precomputed"``: then `X`
        is a square matrix of distances, and ``transform`` takes distances from new points to the
        training points. ``"euclidean"`` forms no n × n matrix, other metrics do.
    {metric_params}
    additive_constant : bool, default=False
        Add to all distances the smallest constant that makes them Euclidean (Cailliez 1983). It
        removes negative eigenvalues, but takes O(n³) time and distorts small distances most.
    {eigen_solver}
    {extension}
    {inverse}
    {random_state}
    {device}

    Attributes
    ----------
    {n_components_}
    embedding_ : array of shape (n_samples, n_components)
        Coordinates of the training points, in the units of the distances.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_components,)
        Largest eigenvalues of B; coordinates with a negative eigenvalue are zero.
    negative_fraction_ : float or None
        Sum of the absolute values of the negative eigenvalues of B, divided by that of all
        eigenvalues; 0 for Euclidean distances. None (not computed) for more than 2000 points.
    loss_ : float
        The strain divided by Σ Bᵢⱼ².
    additive_constant_ : float
        Constant that was added to the distances, or 0.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    Isomap : the same with geodesic distances.
    PCA : the same for Euclidean distances, from the data.

    References
    ----------
    W. S. Torgerson, "Multidimensional scaling: I. Theory and method", Psychometrika 17 (1952).

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
        n_components: int | None = None,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        additive_constant: bool = False,
        eigen_solver: str | EigenSolver = "auto",
        extension: Any = None,
        inverse: Any = None,
        random_state: RandomState = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.metric_params = metric_params
        self.additive_constant = additive_constant
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.device = device

    # Rows of distributed data that are fitted: four matrices of all their pairs take 0.5 GB.
    _landmarks = 4000

    @property
    def _input_type(self) -> type[Input]:
        given = isinstance(self.metric, str) and self.metric == "precomputed"
        return AllDistances if given else Points

    def _pose(self, data: Input) -> LinearGram | PosedKernel:
        self.additive_constant_ = 0.0
        self.negative_fraction_: float | None = 0.0
        if self.metric == "euclidean" and not self.additive_constant:
            return LinearGram.of(data)
        with np.errstate(over="ignore", invalid="ignore"):  # _gram raises instead
            gram = self._gram(data)
        self.negative_fraction_ = negative_fraction(gram.problem.operator)
        return PosedKernel(data, gram)

    def _gram(self, data: Input) -> KernelGram:
        # Cailliez's constant is an eigenvalue of a 2n × 2n matrix.
        check_gram_memory(data.n_samples, n_matrices=13 if self.additive_constant else 4.5)
        params = dict(self.metric_params or {})
        distances = DistancesToTraining(data.n_samples, data.points, self.metric, params)
        D = distances.matrix(data.rows)
        np.fill_diagonal(D, 0.0)
        unit = power_of_two_scale(D)
        check_range(unit)
        D /= unit
        if self.additive_constant:
            constant = cailliez_constant(D)
            D += constant * (1 - np.eye(len(D)))
            self.additive_constant_ = constant * unit
        D *= D
        D *= -0.5
        return KernelGram.of(GowerKernel(distances, unit, self.additive_constant_), D, unit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._input_type is Points
        return tags


def cailliez_constant(D: Array, rounding: float = 1e-12, real: float = 1e-8) -> float:
    """Return the smallest constant that, added to all distances, makes them Euclidean.

    It is the largest real eigenvalue of a 2n × 2n matrix that consists of the doubly centered
    −½·d² and −½·d (Cailliez 1983).
    """
    n = len(D)
    H = np.eye(n) - 1 / n
    squares, plain = (-0.5 * H @ M @ H for M in (D**2, D))
    values = eigvalsh(squares)
    if values[0] >= -rounding * max(values[-1], 0.0):
        return 0.0  # Euclidean already: the companion matrix is defective and would give 1e-8
    companion = np.block([[np.zeros((n, n)), 2 * squares], [-np.eye(n), -4 * plain]])
    found = eigvals(companion)
    return float(found.real[np.abs(found.imag) <= real * np.abs(found).max()].max())


def negative_fraction(B: Array, full_up_to: int = 2000) -> float | None:
    """Return Σ|ℓ| over negative eigenvalues divided by that over all; None if n > `full_up_to`."""
    if len(B) > full_up_to:
        return None
    values = eigvalsh(B)
    whole = float(np.abs(values).sum())
    return float(-values[values < 0].sum() / whole) if whole > 0 else 0.0
