"""Local tangent space alignment."""

from typing import Any

from manifoldry.base.docs import shared_docs
from manifoldry.eigen import EigenSolver
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import alignment_blocks, tangent_bases
from manifoldry.spectral.tangent_embedder import TangentAlignment, TangentEmbedder
from manifoldry.util.typing import Array, RandomState


@shared_docs
class LTSA(TangentEmbedder):
    """Align the tangent planes of all neighborhoods in one map.

    Minimizes the sum over neighborhoods of the squared distance between their map coordinates
    and the nearest affine image of their tangent coordinates. A sheet that was bent without
    stretching is recovered with its metric, holes and all. Use it on densely sampled sheets with
    little noise.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates, the dimension of the sheet; by default two, or what the data allow.
    n_neighbors : int, default=None
        Neighbors per point, at least ``n_components + 2``; by default 10, or half the points if
        those are fewer.
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
        Sum of the eigenvalues: what the best alignment leaves over.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

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

    _inverts_by_tangent_planes = True

    def _alignment(self, graph: NeighborGraph) -> "PlaneAlignment":
        return PlaneAlignment(graph, self.n_components_)

    def _min_neighbors(self, n_components: int) -> int:
        return n_components + 2  # one fewer lie in a plane of their own, wherever they are


class PlaneAlignment(TangentAlignment):
    """Squared distances of neighborhoods on the map from affine images of their planes."""

    includes_itself = False

    def local_matrices(self, coordinates: Array) -> Array:
        return alignment_blocks(tangent_bases(coordinates, self.n_components))
