"""Locally linear embedding."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from scipy import sparse

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.device import Device
from manifoldry.eigen import EigenSolver, Spectra
from manifoldry.extension.layout import Layout
from manifoldry.extension.local import BarycentricKernel
from manifoldry.neighbors.neighborhoods import Neighborhoods, barycentric_weights
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.local import (
    LocalAlignment,
    PosedAlignment,
    alignment_components,
    alignment_problem,
    check_has_points,
    check_uniform_neighborhoods,
)
from manifoldry.spectral.posed import connected_graph
from manifoldry.util.arrays import namespace
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array, RandomState


@shared_docs
class LLE(SpectralEmbedder):
    """Locally linear embedding: keep the weights that reconstruct each point from its neighbors.

    First finds the weights, which sum to one, that best reconstruct each point from its neighbors.
    Then minimizes Σᵢ‖yᵢ − Σⱼ wᵢⱼyⱼ‖² over the coordinates, subject to YᵀY = n·I and 1ᵀY = 0. The
    weights are invariant to translation, rotation and scaling of a neighborhood, so a manifold
    that was bent without stretching is recovered up to an affine map. Use it for densely sampled
    smooth manifolds; Hessian LLE and LTSA recover distances better.

    Parameters
    ----------
    {n_components}
    {n_neighbors}
    {search_metric}
    {metric_params}
    {reg}
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
    embedding_ : array of shape (n_samples, n_components)
        Coordinates of the training points. Each has unit variance; if the graph has several
        connected components, these are scaled to their sizes in the data.
    {extension_}
    {inverse_}
    {eigenvalues_}
    {neighbor_search_}
    {component_labels_}
    loss_ : float
        The objective divided by n_samples.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    LTSA : preserves the metric of a sheet.
    ConformalEigenmaps : combines its eigenvectors to preserve angles.

    References
    ----------
    S. T. Roweis and L. K. Saul, "Nonlinear dimensionality reduction by locally linear embedding",
    Science 290 (2000).

    Examples
    --------
    >>> from manifoldry import LLE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(400, random_state=0)
    >>> LLE(n_neighbors=12).fit(X).embedding_.shape
    (400, 2)
    """

    radius = None
    _accepts_graphs = True
    # No "join": a single added edge does not determine a local fit.
    _disconnected_options: tuple[str, ...] = ("separate", "largest", "error")

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        reg: float = 1e-3,
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
        self.disconnected = disconnected
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def _pose(self, data: Input) -> "PosedLLE":
        reg, name = check_positive("reg", self.reg), type(self).__name__
        check_has_points(name, data)
        graph = check_uniform_neighborhoods(name, self._neighbor_graph(data))
        graph = connected_graph(graph, self._policy(), data)
        self.neighbor_search_ = graph.search
        alignment = Reconstruction(graph, reg)
        problem = alignment_problem(alignment)
        components = alignment_components(problem, graph, self._policy())
        return PosedLLE(data, problem, components, alignment)


@dataclass(frozen=True, eq=False)
class Reconstruction(LocalAlignment):
    """Squared distances of embedded points from the weighted means of their neighbors."""

    reg: float

    def align(self, neighborhoods: Neighborhoods) -> sparse.csr_array:
        # The local matrices have rank one, so their sum is (I − W)ᵀ(I − W).
        return neighborhoods.gram(partial(residual_weights, reg=self.reg))


@dataclass(frozen=True, eq=False)
class PosedLLE(PosedAlignment):
    """Embedding that preserves the reconstruction weights."""

    alignment: Reconstruction

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> BarycentricKernel:
        return BarycentricKernel(
            self.graph, embedding, self.alignment.reg, self.labels, alignment=self.alignment
        )


def residual_weights(coordinates: Array, reg: float) -> Array:
    """Return rows of I − W (n_block, k) from coordinates (n_block, k, n_features), itself first.

    W holds the weights that reconstruct a point from its neighbors.
    """
    xp, differences = namespace(coordinates), coordinates[:, 1:] - coordinates[:, :1]
    # Exclude duplicates of the point: they alone reconstruct it, whatever the other neighbors are.
    duplicates = xp.logical_not(xp.any(differences, axis=2))
    duplicates &= ~duplicates.all(axis=1, keepdims=True)
    weights = barycentric_weights(differences, reg, duplicates)
    return xp.concatenate([xp.ones((len(weights), 1)), -weights], axis=1)
