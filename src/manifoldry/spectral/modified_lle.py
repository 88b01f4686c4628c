"""Modified locally linear embedding, with several weight vectors per neighborhood."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from manifoldry.base.docs import shared_docs
from manifoldry.device import Device
from manifoldry.device.small import eigh
from manifoldry.eigen import EigenSolver
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import MIN_VARIANCE_RATIO
from manifoldry.spectral.lle import residual_weights
from manifoldry.spectral.tangent_embedder import TangentAlignment, TangentEmbedder
from manifoldry.util.arrays import namespace
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array, IntArray, RandomState

# Norms of VVᵀ1 up to this are rounding errors.
SMALLEST_SUM = 1e-8


@shared_docs
class ModifiedLLE(TangentEmbedder):
    """Modified LLE: keep several independent weight vectors that reconstruct each point.

    If a point has more neighbors than tangent directions, many weight vectors reconstruct it
    almost equally well, and :class:`LLE` keeps a single one, chosen by its regularization.
    Modified LLE minimizes the sum of the reconstruction errors of as many independent ones as the
    neighborhood determines, at most ``n_neighbors - n_components``. Use it, like LTSA, for
    densely sampled manifolds, with or without holes, whose distances it recovers. It uses fewer
    weight vectors where noise or curvature is large, and so is less sensitive to noise than LTSA,
    and less accurate without noise. It needs fewer neighbors than Hessian LLE.

    Parameters
    ----------
    {intrinsic_components}
    n_neighbors : int, default=None
        Number of neighbors of each point, at least ``n_components + 1``. None means 10, or
        ``n_samples // 2`` if that is smaller, but at least the minimum.
    {search_metric}
    {metric_params}
    {reg}
    {laplacian_weight}
    {metric_fit}
    disconnected : {"separate", "largest", "error"}, default="separate"
        {disconnected}
    {eigen_solver}
    {extension}
    {inverse}
    {random_state}
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    {sheet_embedding_}
    {extension_}
    {inverse_}
    {eigenvalues_}
    {neighbor_search_}
    {laplacian_weight_}
    {component_labels_}
    loss_ : float
        Sum of the eigenvalues: the squared reconstruction errors before the metric fit.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    LLE : One weight vector per neighborhood.
    HessianLLE : More accurate without noise; needs more neighbors.
    LTSA : Aligns tangent spaces.

    References
    ----------
    Z. Zhang and J. Wang, "MLLE: modified locally linear embedding using multiple weights", NIPS 19,
    2007.

    Examples
    --------
    >>> from manifoldry import ModifiedLLE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(800, random_state=0)
    >>> ModifiedLLE(n_neighbors=12).fit(X).embedding_.shape
    (800, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        reg: float = 1e-3,
        laplacian_weight: float | None = None,
        metric_fit: bool = True,
        disconnected: str = "separate",
        eigen_solver: str | EigenSolver = "auto",
        extension: Any = None,
        inverse: Any = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.reg = reg
        self.laplacian_weight = laplacian_weight
        self.metric_fit = metric_fit
        self.disconnected = disconnected
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def _alignment(self, graph: NeighborGraph) -> "MultipleReconstructions":
        reg = check_positive("reg", self.reg)
        return MultipleReconstructions(graph, self.n_components_, self.laplacian_weight, reg=reg)

    def _min_neighbors(self, n_components: int) -> int:
        return n_components + 1  # one weight vector


@dataclass(frozen=True, eq=False)
class MultipleReconstructions(TangentAlignment):
    """Squared distances of embedded points from several weighted means of their neighbors."""

    reg: float = 1e-3

    @cached_property
    def max_ratio(self) -> float:
        """Ratio of noise up to which weights are independent: the median of the neighborhoods."""
        ratios = partial(noise_ratios, n_components=self.n_components)
        return float(np.median(self.neighborhoods.each(ratios)))

    def local_matrices(self, coordinates: Array) -> Array:
        """Return (n_block, k + 1, k + 1) from coordinates (n_block, k + 1, n_features).

        The s weight vectors of a point are orthonormal directions V of the almost-null space of
        its Gram matrix, rotated so that the entries of each have the same sum α, plus (1 − α)w,
        where w are the weights of LLE. They have the mean (1 − α)w + VVᵀ1/(αs) and differ from it
        by the directions of V whose entries sum to zero. So no rotation has to be computed.
        """
        xp, (values, vectors) = namespace(coordinates), gram_spectrum(coordinates)
        s = weight_counts(values, self.n_components, self.max_ratio)
        V = vectors * (xp.arange(values.shape[1]) < s[:, None])[:, None, :]
        projection = V @ V.transpose(0, 2, 1)
        u = projection.sum(axis=2)  # VVᵀ1, of norm α√s
        norm = xp.linalg.norm(u, axis=1, keepdims=True)
        # Directions that all sum to zero, such as differences of duplicates, are no weights: then
        # w is the only weight vector.
        has_weights = norm > SMALLEST_SUM
        unit = xp.where(has_weights, u / xp.where(has_weights, norm, 1.0), 0.0)
        count = xp.where(has_weights, s[:, None], 1)
        alpha = xp.where(has_weights, norm, 0.0) / xp.sqrt(count)
        w = -residual_weights(coordinates, self.reg)[:, 1:]
        mean = (1 - alpha) * w + unit / xp.sqrt(count)
        residual = xp.concatenate([xp.ones((len(s), 1)), -mean], axis=1)
        M = count[:, :, None] * residual[:, :, None] * residual[:, None, :]
        M[:, 1:, 1:] += projection - unit[:, :, None] * unit[:, None, :]
        return M


def gram_spectrum(coordinates: Array) -> tuple[Array, Array]:
    """Return eigenvalues (n_block, k), ascending, and eigenvectors of the Gram matrices.

    Those are the inner products of neighbors minus point, the first of the `coordinates`.
    """
    differences = coordinates[:, 1:] - coordinates[:, :1]
    values, vectors = eigh(differences @ differences.transpose(0, 2, 1))
    significant = values > MIN_VARIANCE_RATIO * values[:, -1:]
    return namespace(values).where(significant, values, 0.0), vectors


def noise_ratios(coordinates: Array, n_components: int) -> Array:
    """Return the variance outside the tangent space divided by that inside, (n_block,).

    It is zero for neighborhoods without extent.
    """
    xp, values = namespace(coordinates), gram_spectrum(coordinates)[0]
    inside = values[:, -n_components:].sum(axis=1)
    outside: Array = values[:, :-n_components].sum(axis=1)
    return outside / xp.where(inside > 0, inside, 1.0)


def weight_counts(
    values: Array, n_components: int, max_ratio: float, rounding: float = 1e-9
) -> IntArray:
    """Return the number of weight vectors of each neighborhood, between 1 and k − n_components.

    It is the largest number of smallest eigenvalues whose sum is at most `max_ratio` times the sum
    of the others. On grids many neighborhoods have exactly this ratio, up to `rounding` errors.
    """
    xp = namespace(values)
    smallest = xp.cumsum(values, axis=1)[:, :-n_components]
    others = values.sum(axis=1, keepdims=True) - smallest
    negligible = smallest <= (1 + rounding) * max_ratio * others
    counts: IntArray = xp.maximum(negligible.sum(axis=1), 1)
    return counts
