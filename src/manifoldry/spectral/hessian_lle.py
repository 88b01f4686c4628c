"""Hessian locally linear embedding."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.base.docs import shared_docs
from manifoldry.eigen import EigenSolver
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import alignment_blocks, tangent_bases
from manifoldry.spectral.tangent_embedder import TangentAlignment, TangentEmbedder
from manifoldry.util.typing import Array, RandomState


@shared_docs
class HessianLLE(TangentEmbedder):
    """Find the coordinates with the least second derivative along the sheet.

    Estimates the Hessian of a function in every tangent plane; the functions on which it vanishes
    are the constants and the coordinates of a sheet bent without stretching. Like LTSA it recovers
    the metric and does not mind holes; it needs more neighbors and bears less noise.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates, the dimension of the sheet; by default two, or what the data allow.
    n_neighbors : int, default=None
        Neighbors per point; by default 12, or more where ``n_components`` asks for it.
    metric : str or callable, default="euclidean"
        Metric in which neighbors are sought; the local fits are Euclidean in any case.
    {metric_params}
    metric_fit : bool, default=True
        Give the map the lengths of the data's short edges. Without it all coordinates have unit
        variance, whatever the shape of the sheet.
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
        The map, in the units of the data, on its principal axes.
    {extension_}
    {inverse_}
    {eigenvalues_}
    {component_labels_}
    loss_ : float
        Sum of the eigenvalues: the squared second derivatives that are left.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    Examples
    --------
    >>> from manifoldry import HessianLLE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(800, random_state=0)
    >>> HessianLLE().fit(X).embedding_.shape
    (800, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        metric_fit: bool = True,
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
        self.metric_fit = metric_fit
        self.disconnected = disconnected
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _alignment(self, graph: NeighborGraph) -> "HessianAlignment":
        return HessianAlignment(graph, self.n_components_)

    def _min_neighbors(self, n_components: int) -> int:
        return n_components + n_components * (n_components + 1) // 2

    def _default_neighbors(self, n: int) -> int:
        return min(max(12, self._min_neighbors(self.n_components_) + 2), n - 1)


@dataclass(frozen=True, eq=False)
class HessianAlignment(TangentAlignment):
    """Squared second derivatives along tangent planes.

    Quadratic directions smaller than `dependent` are combinations of others, up to rounding.
    """

    dependent: float = 1e-10

    def local_matrices(self, coordinates: Array) -> Array:
        U = tangent_bases(coordinates, self.n_components)
        a, b = np.triu_indices(self.n_components)
        affine_out = alignment_blocks(U)
        quadratic = affine_out @ (affine_out @ (U[:, :, a] * U[:, :, b]))  # twice, for rounding
        H, size, _ = np.linalg.svd(quadratic, full_matrices=False)
        H = H * (size > self.dependent)[:, None, :]  # U is orthonormal, so sizes have no unit
        # Neighbors that do not span the tangent space have no Hessian; they can be aligned.
        flat = (np.abs(U).max(axis=1) == 0).any(axis=1)[:, None, None]
        return np.where(flat, affine_out, H @ H.transpose(0, 2, 1))
