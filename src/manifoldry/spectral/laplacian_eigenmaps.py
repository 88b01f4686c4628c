"""Laplacian eigenmaps."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.affinity import Affinity, Entropic, SelfTuning
from manifoldry.affinity.distributed import DistributedWeights, sampled_graph
from manifoldry.affinity.entropic import EntropicWeights
from manifoldry.affinity.gaussian import SelfTuningWeights
from manifoldry.affinity.resolve import AFFINITIES, resolve_affinity
from manifoldry.base.distributed import DistributedFit, fit_to_landmarks
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Affinities, Input, RowMatcher
from manifoldry.device import Device
from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.eigen import EigenSolver, Spectra, SpectralProblem
from manifoldry.extension.base import KernelExtension
from manifoldry.extension.laplacian import (
    GivenWeights,
    GraphWeights,
    LaplacianExtension,
    Normalization,
    WeightRows,
)
from manifoldry.extension.layout import Layout
from manifoldry.neighbors.disconnected import (
    GIVEN_WEIGHTS,
    GRAPH,
    LOCAL_WIDTH,
    VANISHING_WEIGHTS,
    Disconnection,
)
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.objectives.weights import without_diagonal
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.distributed_eigenmaps import (
    CoordinateScale,
    check_solver,
    connected_parts,
    fit_from_spectrum,
    graph_of_rows,
    has_graph_in_parts,
)
from manifoldry.spectral.distributed_laplacian import (
    DistributedLaplacian,
    WeightsInParts,
)
from manifoldry.spectral.on_device import device_with_edges, sparse_laplacian
from manifoldry.spectral.posed import PosedOnGraph, connected_graph, operator_components
from manifoldry.util.checks import as_generator, check_option
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import plan_matrix


@shared_docs
class LaplacianEigenmaps(SpectralEmbedder):
    """Laplacian eigenmaps: the eigenvectors of a graph Laplacian with the smallest eigenvalues.

    Minimizes Σᵢⱼ Wᵢⱼ‖yᵢ − yⱼ‖² subject to YᵀDY = I and YᵀD1 = 0, where W are the weights of a
    neighbor graph and D is the diagonal matrix of its degrees, so that neighbors stay close. Use
    it to show clusters and the coarse shape of a manifold, or as features for a simple classifier.
    For long and narrow data several coordinates are functions of the first one before the width
    appears; :class:`~manifoldry.NonRedundant` avoids that.

    Parameters
    ----------
    {n_components}
    n_neighbors : int, default=None
        Number of neighbors of each point. None means the number that an `affinity` object needs,
        or else 10, or ``n_samples // 2`` if that is smaller.
    {radius}
    {metric}
    {metric_params}
    {graph_affinity}
        Otherwise None means ``"self_tuning"``.
    gamma : float, default=None
        Coefficient of ``affinity="gaussian"``. None means one over the median squared distance to
        the farthest neighbor.
    normalization : {"rw", "sym", "none"}, default="rw"
        ``"rw"``: eigenvectors f of L f = λ D f (random walk); ``"sym"``: D^½·f, the eigenvectors of
        D^−½·L·D^−½; ``"none"``: eigenvectors of L = D − W.
    disconnected : {"separate", "join", "largest", "error"}, default="separate"
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
        Coordinates of the training points. If the graph has several connected components, each is
        given the relative size and position that it has in the data.
    {affinity_}
    {extension_}
    {inverse_}
    {eigenvalues_}
    {neighbor_search_}
    {component_labels_}
    loss_ : float
        The objective Σᵢⱼ Wᵢⱼ‖fᵢ − fⱼ‖², summed over connected components before they are scaled and
        placed; f are the coordinates, divided by √Dᵢᵢ if ``normalization="sym"``.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    DiffusionMaps : corrects for the density of the data.
    NonRedundant : coordinates that do not repeat each other.
    SpectralClustering : clusters of such coordinates.

    References
    ----------
    M. Belkin and P. Niyogi, "Laplacian eigenmaps for dimensionality reduction and data
    representation", Neural Computation 15 (2003).

    Examples
    --------
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(400, random_state=0)
    >>> model = LaplacianEigenmaps(n_neighbors=12).fit(X)
    >>> model.embedding_.shape
    (400, 2)
    >>> model.transform(X[:3] + 0.01).shape
    (3, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        radius: float | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        affinity: str | Affinity | None = None,
        gamma: float | None = None,
        normalization: Normalization = "rw",
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
        self.radius = radius
        self.metric = metric
        self.metric_params = metric_params
        self.affinity = affinity
        self.gamma = gamma
        self.normalization = normalization
        self.disconnected = disconnected
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    _accepts_graphs = True
    _accepts_distributed_graphs = True

    @property
    def _input_type(self) -> type[Input]:
        if isinstance(self.affinity, str) and self.affinity == "precomputed":
            return Affinities
        return super()._input_type

    def _pose(self, data: Input) -> "PosedLaplacian":
        check_option("normalization", self.normalization, ("rw", "sym", "none"))
        weighted = self._training_weights(data)
        self.affinity_ = weighted.matrix
        degree = np.asarray(weighted.matrix.sum(axis=1)).ravel()
        degree = np.where(degree > 0, degree, 1.0)  # isolated points
        problem = laplacian_problem(weighted.matrix, degree, self.normalization)
        components = self._components(problem, weighted)
        return self._make_posed(
            data=data,
            problem=problem,
            rows_by_component=components,
            weighted=weighted,
            degree=degree,
            normalization=self.normalization,
        )

    def _make_posed(self, **fields: Any) -> "PosedLaplacian":
        return PosedLaplacian(**fields)

    def _components(self, problem: SpectralProblem, weighted: "TrainingWeights") -> list[IntArray]:
        """Return the rows of each connected component to embed."""
        has_radius = "radius" in self.get_params(deep=False)
        remedy = GRAPH.remedy if has_radius else "raise n_neighbors"
        graph, policy = weighted.graph, self._policy()
        return operator_components(
            problem.operator, policy, graph, weighted.zero_weight_cause, remedy
        )

    def _training_weights(self, data: Input) -> "TrainingWeights":
        """Compute the weights of training points, and an object for the weights of new points."""
        if isinstance(data, Affinities):
            self.neighbor_search_ = "none: the weights were given"
            W, given = off_diagonal(data.rows), GivenWeights()
            return TrainingWeights(W, given, data.row_matcher, GIVEN_WEIGHTS)
        graph = connected_graph(self._neighbor_graph(data), self._policy(), data)
        self.neighbor_search_ = graph.search
        affinity = self._affinity_of(graph)
        weights = affinity.fit(graph)
        local = isinstance(weights, SelfTuningWeights | EntropicWeights)
        with np.errstate(over="ignore"):  # if d² overflows, the weight exp(−∞) = 0 is right
            W = weights.matrix(graph)
        zero_weight_cause = LOCAL_WIDTH if local else VANISHING_WEIGHTS
        source = GraphWeights(graph, weights)
        return TrainingWeights(W, source, graph, zero_weight_cause, graph, affinity)

    def _fit_all_rows(self, rows: Any) -> DistributedFit:
        """Fit all rows of distributed data, or of their graph, by the eigenvectors of the graph."""
        if not (isinstance(rows, DistributedGraph) or has_graph_in_parts(self)):
            return fit_to_landmarks(self, rows)
        check_option("normalization", self.normalization, ("rw", "sym", "none"))
        check_solver(self.eigen_solver)
        n_components, policy = self._resolve_n_components(rows), self._policy()
        graph = connected_parts(
            graph_of_rows(self, rows, self._default_neighbors(rows.n_samples)), policy
        )
        affinity = self._affinity_of(sampled_graph(graph))
        W, attributes = self._weights_in_parts(affinity, graph)
        local = isinstance(affinity, SelfTuning | Entropic)
        cause = LOCAL_WIDTH if local else VANISHING_WEIGHTS
        laplacian = DistributedLaplacian.of(W, graph, self.normalization, policy, cause)
        del W  # workers need not keep it
        rng = as_generator(self.random_state, unset=0)
        spectrum = laplacian.solve(n_components, rng, self.eigen_solver)
        scale = self._coordinate_scale(spectrum.values)
        return fit_from_spectrum(self, graph, laplacian, spectrum, scale, attributes)

    def _weights_in_parts(self, affinity: Affinity, graph: DistributedGraph) -> WeightsInParts:
        """Return the weights of a distributed graph, and fitted attributes."""
        weights = DistributedWeights.of(affinity, graph)
        return WeightsInParts(DistributedMatrix.of(weights.blocks, graph.order.bounds), {})

    def _coordinate_scale(self, values: Array) -> CoordinateScale:
        """Return how eigenvectors on workers become coordinates, given their eigenvalues."""
        return CoordinateScale(0.0, np.ones(len(values)))

    def _read(self, X: Any) -> Input:
        if isinstance(X, NeighborGraph) and self._input_type is Affinities:
            raise TypeError(
                "affinity='precomputed' takes a matrix of weights, not a NeighborGraph; pass the "
                "matrix, or another affinity"
            )
        return super()._read(X)

    def _default_neighbors(self, n: int) -> int | None:
        return self.affinity.neighbors(n) if isinstance(self.affinity, Affinity) else None

    def _affinity_of(self, graph: NeighborGraph) -> Affinity:
        options = (*AFFINITIES, "precomputed")
        return resolve_affinity(self.affinity, self.gamma, self._default_affinity(graph), options)

    def _default_affinity(self, graph: NeighborGraph) -> Affinity:
        return SelfTuning()


class TrainingWeights(NamedTuple):
    """Weights of pairs of training points, and `source`, which computes those of new points."""

    matrix: Matrix
    source: WeightRows
    row_matcher: RowMatcher | None
    zero_weight_cause: Disconnection
    """Cause to report if vanishing weights disconnect the points and the graph itself does not."""
    graph: NeighborGraph | None = None
    affinity: Affinity | None = None


@dataclass(frozen=True, eq=False)
class PosedLaplacian(PosedOnGraph):
    """Smallest eigenvectors of the Laplacian of a weighted graph."""

    weighted: TrainingWeights
    degree: Array
    normalization: Normalization

    @property
    def row_matcher(self) -> RowMatcher | None:
        return self.weighted.row_matcher

    def functions(self, spectra: Spectra) -> Array:
        """Return the eigenvectors, (n, k)."""
        return spectra.vectors(self.components, self.data.n_samples)

    def coordinates(self, spectra: Spectra) -> Array:
        return self.functions(spectra)

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> KernelExtension:
        root = np.sqrt(self.degree)[:, None] if self.normalization == "sym" else 1.0
        return LaplacianExtension(
            self.weighted.source,
            self.weighted.matrix,
            self.degree,
            self.functions(spectra) / root,
            spectra.values,
            self.normalization,
            layout,
        )

    def extension_at_training(self, spectra: Spectra, extension: Any) -> Array:
        return np.asarray(extension.at_training())

    def loss(self, spectra: Spectra) -> float:
        return 2 * float(spectra.values.sum())


def laplacian_problem(W: Matrix, degree: Array, normalization: Normalization) -> SpectralProblem:
    """Return the problem of the smallest nontrivial eigenvectors of the normalized D − W."""
    L, ones = laplacian(W), np.ones(len(degree))
    if normalization == "none":
        return SpectralProblem(L, "smallest", deflate=ones, bounds=(0.0, 2 * degree.max()))
    if normalization == "rw":
        return SpectralProblem(L, "smallest", mass=degree, deflate=ones, bounds=(0.0, 2.0))
    root = np.sqrt(degree)
    if sparse.issparse(L):
        S = sparse.diags_array(1 / root)
        return SpectralProblem(S @ L @ S, "smallest", deflate=root, bounds=(0.0, 2.0))
    L /= np.outer(root, root)
    return SpectralProblem(L, "smallest", deflate=root, bounds=(0.0, 2.0))


def laplacian(W: Matrix, dense: float = 0.3) -> Matrix:
    """Return D − W, as a dense matrix if more than the fraction `dense` of W is nonzero.

    Products with such a matrix are faster if it is dense: at 12 to 15 % sparse ones took half as
    long.
    """
    degree = np.asarray(W.sum(axis=1)).ravel()
    nonzero = W.nnz if sparse.issparse(W) else np.count_nonzero(W)
    if nonzero <= dense * len(degree) ** 2:
        device = device_with_edges(W)
        if device is not None and W.has_sorted_indices:
            return sparse_laplacian(device, W)
        return sparse.csr_array(sparse.diags_array(degree) - sparse.csr_array(W))
    what = f"the Laplacian of a nearly full graph of {len(degree)} points"
    plan_matrix(W.shape, 32, what, "use fewer neighbors or fewer points")  # with a factor
    L = -(W.toarray() if sparse.issparse(W) else W)
    L[np.diag_indices_from(L)] += degree
    return L


def off_diagonal(W: Matrix) -> Matrix:
    """Return W in double precision without its diagonal, which does not affect the Laplacian."""
    if sparse.issparse(W):
        W = without_diagonal(W).astype(np.float64)
        W.eliminate_zeros()
        return W
    W = np.array(W, dtype=np.float64)
    np.fill_diagonal(W, 0.0)
    return W
