"""Hessian locally linear embedding."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.base.docs import shared_docs
from manifoldry.device import Device
from manifoldry.device.small import left_vectors
from manifoldry.eigen import EigenSolver
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import alignment_blocks, tangent_bases
from manifoldry.spectral.tangent_embedder import TangentAlignment, TangentEmbedder
from manifoldry.util.arrays import namespace
from manifoldry.util.typing import Array, RandomState


@shared_docs
class HessianLLE(TangentEmbedder):
    """Hessian LLE: minimize the squared Hessian of the coordinates, as functions on the manifold.

    The Hessian is estimated in the tangent space of each neighborhood. It vanishes for constants
    and for the coordinates of a manifold that was bent without stretching. Use it, like LTSA, for
    densely sampled manifolds with little noise, with or without holes, whose distances it
    recovers; it needs more neighbors than LTSA. Data that do not lie near a surface are embedded
    with the help of the Laplacian of the neighbor graph, see `laplacian_weight`.

    Parameters
    ----------
    {intrinsic_components}
    n_neighbors : int, default=None
        Number of neighbors of each point, at least
        ``n_components + n_components * (n_components + 1) / 2``. None means 12, or two more than
        this minimum if that is larger, but at most ``n_samples - 1``.
    {search_metric}
    {metric_params}
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
    {component_labels_}
    {laplacian_weight_}
    loss_ : float
        Sum of the eigenvalues: the squared Hessians of the coordinates before the metric fit.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    LTSA : faster, and similar on sheets.
    ModifiedLLE : needs fewer neighbors.
    Isomap : for the distances of a convex sheet.

    References
    ----------
    D. L. Donoho and C. Grimes, "Hessian eigenmaps: locally linear embedding techniques for
    high-dimensional data", PNAS 100 (2003).

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
        self.laplacian_weight = laplacian_weight
        self.metric_fit = metric_fit
        self.disconnected = disconnected
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def _alignment(self, graph: NeighborGraph) -> "HessianAlignment":
        return HessianAlignment(graph, self.n_components_, self.laplacian_weight)

    def _min_neighbors(self, n_components: int) -> int:
        return n_components + n_components * (n_components + 1) // 2

    def _default_neighbors(self, n: int) -> int:
        return min(max(12, self._min_neighbors(self.n_components_) + 2), n - 1)


@dataclass(frozen=True, eq=False)
class HessianAlignment(TangentAlignment):
    """Squared Hessians in the tangent spaces, and a little of what is not even quadratic.

    Parameters
    ----------
    dependence_tol : float
        Quadratic functions with a singular value up to this are linear combinations of others.
    remainder_weight : float
        Weight of the squared error of the best quadratic fit. Without it, functions without a
        Hessian in any neighborhood may oscillate: on a curve there is only one equation per point.
    """

    dependence_tol: float = 1e-10
    remainder_weight: float = 1e-3

    def local_matrices(self, coordinates: Array) -> Array:
        xp, U = namespace(coordinates), tangent_bases(coordinates, self.n_components)
        a, b = (found.tolist() for found in np.triu_indices(self.n_components))
        affine_out = alignment_blocks(U)
        # Orthogonalize twice against rounding errors.
        quadratic = affine_out @ (affine_out @ (U[:, :, a] * U[:, :, b]))
        H, size = left_vectors(quadratic)
        H = H * (size > self.dependence_tol)[:, None, :]  # U is orthonormal: no unit of length
        # Without neighbors that span the tangent space there is no Hessian; use LTSA's error.
        flat = (xp.abs(U).max(axis=1) == 0).any(axis=1)[:, None, None]
        hessian = xp.where(flat, affine_out, H @ H.transpose(0, 2, 1))
        return hessian + self.remainder_weight * (affine_out - hessian)
