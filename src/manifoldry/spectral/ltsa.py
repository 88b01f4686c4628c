"""Local tangent space alignment."""

from typing import Any

from manifoldry.base.docs import shared_docs
from manifoldry.device import Device
from manifoldry.eigen import EigenSolver
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import alignment_blocks, tangent_bases
from manifoldry.spectral.tangent_embedder import TangentAlignment, TangentEmbedder
from manifoldry.util.typing import Array, RandomState


@shared_docs
class LTSA(TangentEmbedder):
    """Local tangent space alignment (LTSA): align the tangent spaces of all neighborhoods.

    Minimizes the sum over neighborhoods of the squared distance between the coordinates of the
    points and the best affine function of their local tangent coordinates. Use it for densely
    sampled manifolds with little noise: it recovers a manifold that was bent without stretching,
    including its distances, also if the manifold has holes. Data that do not lie near a surface are
    embedded with the help of the Laplacian of the neighbor graph, see `laplacian_weight`.

    Parameters
    ----------
    {intrinsic_components}
    n_neighbors : int, default=None
        Number of neighbors of each point, at least ``n_components + 2``. None means 10, or
        ``n_samples // 2`` if that is smaller, but at least the minimum.
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
        Sum of the eigenvalues: the alignment error of the embedding before the metric fit.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    HessianLLE : the same idea with second derivatives.
    MVU : for more noise, or holes.

    References
    ----------
    Z. Zhang and H. Zha, "Principal manifolds and nonlinear dimensionality reduction via tangent
    space alignment", SIAM Journal on Scientific Computing 26 (2004).

    Examples
    --------
    >>> from manifoldry import LTSA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(800, random_state=0)
    >>> Y = LTSA(n_neighbors=12).fit_transform(X)
    >>> bool(abs(Y[:, 0].std() / coordinates[:, 0].std() - 1) < 0.05)
    True
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

    _inverts_by_tangent_planes = True

    def _alignment(self, graph: NeighborGraph) -> "PlaneAlignment":
        return PlaneAlignment(graph, self.n_components_, self.laplacian_weight)

    def _min_neighbors(self, n_components: int) -> int:
        return n_components + 2  # n_components + 1 always lie in a plane of that dimension


class PlaneAlignment(TangentAlignment):
    """Squared distances of embedded neighborhoods from affine functions of tangent coordinates."""

    includes_itself = False

    def local_matrices(self, coordinates: Array) -> Array:
        return alignment_blocks(tangent_bases(coordinates, self.n_components))
