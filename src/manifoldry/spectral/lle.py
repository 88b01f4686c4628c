"""Locally linear embedding."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.eigen import EigenSolver, Spectra
from manifoldry.extension.layout import Layout
from manifoldry.extension.local import Barycentric
from manifoldry.neighbors.neighborhoods import Neighborhoods, barycentric_weights
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.local import (
    Alignment,
    PosedAlignment,
    alignment_components,
    alignment_problem,
    check_has_points,
    check_uniform_neighborhoods,
)
from manifoldry.spectral.posed import connected_graph
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array, RandomState


@shared_docs
class LLE(SpectralEmbedder):
    """Keep the weights with which every point is the mean of its neighbors.

    Finds weights that reproduce each point from its neighbors, then coordinates that minimize
    Σᵢ‖yᵢ − Σⱼ wᵢⱼyⱼ‖² subject to YᵀY = n·I and 1ᵀY = 0. Weights do not change when a
    neighborhood is moved, turned or scaled, so a sheet bent without tearing comes out flat up to
    an affine map. Use it on densely sampled smooth sheets; Hessian LLE and LTSA recover their
    metric better.

    Parameters
    ----------
    {n_components}
    {n_neighbors}
    metric : str or callable, default="euclidean"
        Metric in which neighbors are sought; the local fits are Euclidean in any case.
    {metric_params}
    reg : float, default=1e-3
        Ridge of the local weights, as a fraction of the trace of the local Gram matrix.
    disconnected : {"separate", "largest", "error"}, default="separate"
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
        The map, of unit variance along every coordinate; components are scaled to their size in the
        data.
    {extension_}
    {inverse_}
    {eigenvalues_}
    {neighbor_search_}
    {component_labels_}
    loss_ : float
        The objective, Σᵢ‖yᵢ − Σⱼ wᵢⱼyⱼ‖² over n.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

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
    # Local fits cannot use a single bridge, so there is no "join".
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
class Reconstruction(Alignment):
    """Squared distances of points on the map from the means of their neighbors."""

    reg: float

    def align(self, neighborhoods: Neighborhoods) -> sparse.csr_array:
        # The small matrices have rank one: their sum is the product of sparse I − W with itself.
        residual = neighborhoods.rows(partial(residual_weights, reg=self.reg))
        return sparse.csr_array(residual.T @ residual)


@dataclass(frozen=True, eq=False)
class PosedLLE(PosedAlignment):
    """Maps that keep the weights of neighbors."""

    alignment: Reconstruction

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> Barycentric:
        return Barycentric(
            self.graph, embedding, self.alignment.reg, self.labels, alignment=self.alignment
        )


def residual_weights(coordinates: Array, reg: float) -> Array:
    """Rows of I − W (n_block, k) from coordinates (n_block, k, n_features), the point's own first.

    W are the weights with which neighbors reproduce a point.
    """
    differences = coordinates[:, 1:] - coordinates[:, :1]
    # A copy of the point reproduces it, and says nothing of where it lies among the others.
    copies = np.logical_not(np.any(differences, axis=2))
    copies &= ~copies.all(axis=1, keepdims=True)
    weights = barycentric_weights(differences, reg, copies)
    return np.concatenate([np.ones((len(weights), 1)), -weights], axis=1)
