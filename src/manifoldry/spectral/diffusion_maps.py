"""Diffusion maps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity import Affinity, Gaussian
from manifoldry.affinity.bandwidths import kernel_growth
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.eigen import EigenSolver, Spectra
from manifoldry.exceptions import RankWarning, warn
from manifoldry.extension.laplacian import Normalization, WeightRows
from manifoldry.neighbors.disconnected import FIXED_WIDTH
from manifoldry.neighbors.distances import check_range
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.laplacian_eigenmaps import (
    LaplacianEigenmaps,
    PosedLaplacian,
    TrainingWeights,
)
from manifoldry.util.checks import check_nonnegative
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import spread_rows


@shared_docs
class DiffusionMaps(LaplacianEigenmaps):
    """Diffusion maps: the leading eigenvectors of a random walk on the data.

    Euclidean distances in the embedding approximate diffusion distances, which compare the
    distributions of a random walk after `t` steps from two points. Transition probabilities are
    proportional to Gaussian weights, divided by the density at both points to the power `alpha`;
    coordinates are the right eigenvectors of the transition matrix times their eigenvalues to the
    power `t`. Use it as a version of Laplacian eigenmaps that, with ``alpha=1``, does not depend on
    the sampling density.

    Parameters
    ----------
    {n_components}
    n_neighbors : int, default=None
        Number of neighbors of each point. None means 20, or all points if there are fewer.
    {metric}
    {metric_params}
    gamma : float, default=None
        Coefficient of the weights exp(−gamma·d²). None means the value at which the logarithm of
        the sum of all weights changes fastest with log gamma.
    alpha : float, default=1.0
        Exponent of the density normalization: 0 means none, ½ gives Fokker–Planck diffusion, 1 the
        Laplace–Beltrami operator.
    t : float, default=1.0
        Number of steps of the random walk.
    disconnected : {"separate", "join", "largest", "error"}, default="separate"
        {disconnected}
    {eigen_solver}
    {extension}
    {inverse}
    {random_state}
    {n_jobs}

    Attributes
    ----------
    {n_components_}
    embedding_ : array of shape (n_samples, n_components)
        Coordinates ℓᵗ·ψ of the training points; the eigenvectors ψ have unit variance under the
        stationary distribution of the random walk.
    gamma_ : float
        Value of gamma that was used.
    transition_eigenvalues_ : array of shape (n_components,)
        Largest eigenvalues ℓ of the transition matrix after the trivial 1.
    affinity_ : sparse array of shape (n_samples, n_samples)
        Weights after the density normalization.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_components,)
        1 − ℓ, of the largest connected component.
    {neighbor_search_}
    {component_labels_}
    loss_ : float
        Twice the sum of the eigenvalues 1 − ℓ of all connected components.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    LaplacianEigenmaps : the method for evenly sampled data.

    References
    ----------
    R. R. Coifman and S. Lafon, "Diffusion maps", Applied and Computational Harmonic Analysis 21
    (2006).

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import DiffusionMaps
    >>> turn = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    >>> angle = turn + 0.7 * np.sin(turn)  # six times denser on one side than on the other
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> for alpha in (0, 1):  # how far the map is from a circle, with and without the density
    ...     radius = np.linalg.norm(DiffusionMaps(alpha=alpha).fit_transform(X), axis=1)
    ...     print(round(radius.std() / radius.mean(), 2))
    0.74
    0.0
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        gamma: float | None = None,
        alpha: float = 1.0,
        t: float = 1.0,
        disconnected: str = "separate",
        eigen_solver: str | EigenSolver = "auto",
        extension: Any = None,
        inverse: Any = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.gamma = gamma
        self.alpha = alpha
        self.t = t
        self.disconnected = disconnected
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs

    # Default number of neighbors: more would connect the layers of a rolled-up manifold, fewer
    # would not remove the effect of the density.
    _usual_neighbors = 20

    # Parameters of the parent class that are fixed here.
    radius = None
    affinity = None
    normalization: Normalization = "rw"

    def _default_neighbors(self, n: int) -> int:
        return min(self._usual_neighbors, n - 1)

    def _training_weights(self, data: Input) -> TrainingWeights:
        alpha = check_nonnegative("alpha", self.alpha)
        weighted = super()._training_weights(data)
        W = weighted.matrix + sparse.eye_array(data.n_samples)  # self-transitions
        density = np.asarray(W.sum(axis=1)).ravel()
        max_density = float(density.max())
        factor = sparse.diags_array((density / max_density) ** -alpha)
        return weighted._replace(
            matrix=sparse.csr_array(factor @ W @ factor),
            source=RandomWalkWeights(weighted.source, factor, alpha, max_density),
            zero_weight_cause=FIXED_WIDTH,
        )

    def _affinity_of(self, graph: NeighborGraph) -> Affinity:
        self.gamma_ = fastest_growth(graph) if self.gamma is None else self.gamma
        return Gaussian(gamma=self.gamma_)

    def _make_posed(self, **fields: Any) -> "PosedRandomWalk":
        return PosedRandomWalk(**fields, t=check_nonnegative("t", self.t))

    def _warn_about(self, posed: Any, spectra: Spectra) -> None:
        super()._warn_about(posed, spectra)
        vanished = int((decay(spectra.values[0], float(self.t)) == 0).sum())
        if vanished:
            warn(
                f"{vanished} of n_components={self.n_components_} coordinates are zero: their "
                f"eigenvalues to the power t={self.t} vanish. Lower n_components or t",
                RankWarning,
            )


@dataclass(frozen=True, eq=False)
class PosedRandomWalk(PosedLaplacian):
    """A random walk on a weighted graph, after `t` steps."""

    t: float

    def functions(self, spectra: Spectra) -> Array:
        """Return ℓᵗ·ψ, (n, k), for each component."""
        F = super().functions(spectra)
        for rows, values in zip(self.components, spectra.values, strict=True):
            F[rows] *= np.sqrt(self.degree[rows].sum()) * decay(values, self.t)
        return F

    def fitted_attributes(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        found = super().fitted_attributes(spectra, Y, extension)
        return found | {"transition_eigenvalues_": 1 - spectra.values[0]}


def decay(values: Array, t: float) -> Array:
    """Return ℓᵗ for eigenvalues 1 − ℓ of the Laplacian."""
    return np.asarray(np.maximum(1 - values, 0.0) ** t)


@dataclass(frozen=True, eq=False)
class RandomWalkWeights:
    """Weights of new points, including self-transitions, divided by the density at both ends.

    A new point has a self-transition only if it coincides with a training point.
    """

    source: WeightRows
    factor: sparse.dia_array  # (n_train, n_train): (density / max_density) ** -alpha
    alpha: float
    max_density: float

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return self.source.n_train

    def rows(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        """See :class:`~manifoldry.extension.laplacian.WeightRows`."""
        W, log_scale, nearest = self._with_self_transitions(X)
        log_density = self._log_density(W, log_scale)
        return sparse.csr_array(W @ self.factor), log_scale - self.alpha * log_density, nearest

    def among(self, X: Matrix, log_scale: Array) -> sparse.csr_array:
        """See :class:`~manifoldry.extension.laplacian.WeightRows`."""
        log_density = self._log_density(*self._with_self_transitions(X)[:2])
        return self.source.among(X, log_scale + 2 * self.alpha * log_density)

    def _with_self_transitions(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        W, log_scale, nearest = self.source.rows(X)
        known = self.identical(X)
        old = np.flatnonzero(known >= 0)
        W = sparse.diags_array(np.exp(np.where(known >= 0, log_scale, 0.0))) @ W
        W += sparse.coo_array((np.ones(len(old)), (old, known[old])), shape=W.shape)
        return W, np.where(known >= 0, 0.0, log_scale), nearest

    def _log_density(self, W: sparse.csr_array, log_scale: Array) -> Array:
        """Logarithm of the density, relative to the largest at a training point."""
        total = np.asarray(W.sum(axis=1)).ravel()
        # As at training points, whose density includes their own weight 1, it is at least 1.
        log_density = np.maximum(np.log(np.where(total > 0, total, 1.0)) + log_scale, 0.0)
        return np.asarray(log_density - np.log(self.max_density))

    def identical(self, X: Matrix) -> IntArray:
        """See :class:`~manifoldry.extension.laplacian.WeightRows`."""
        return self.source.identical(X)


def fastest_growth(graph: NeighborGraph, edges: int = 200_000) -> float:
    """Return the gamma at which log Σ exp(−gamma·d²) changes fastest with log gamma.

    With it the weights connect neighbors but do not average over the shape of the manifold; twice
    the rate of change estimates the dimension.
    """
    degree = max(1, len(graph.distances) // graph.n_query)
    chosen = np.zeros(graph.n_query, dtype=bool)
    # All edges of a sample of rows, so that near and far neighbors are represented equally.
    chosen[spread_rows(graph.n_query, max(1, edges // degree))] = True
    lengths = graph.distances[chosen[graph.rows]]
    lengths = lengths[lengths > 0]
    unit = float(np.median(lengths))
    check_range(unit)  # gamma is one over a squared length
    squared = (lengths / unit) ** 2
    widths, slope = kernel_growth(squared, own=float(chosen.sum()))
    return float(1 / widths[int(np.argmax(slope))] / unit / unit)
