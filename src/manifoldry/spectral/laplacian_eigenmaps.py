"""Laplacian eigenmaps."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.affinity import Affinity, Binary, Gaussian, SelfTuning
from manifoldry.affinity.entropic import EntropicWeights
from manifoldry.affinity.gaussian import SelfTuningWeights
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Affinities, Input, Lookup
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
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.posed import PosedOnGraph, connected_graph, operator_components
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState

_AFFINITIES = ("gaussian", "binary", "self_tuning", "precomputed")


@shared_docs
class LaplacianEigenmaps(SpectralEmbedder):
    """Place points so that neighbors in the data stay neighbors on the map.

    Minimizes Σᵢⱼ Wᵢⱼ‖yᵢ − yⱼ‖² subject to YᵀDY = I and Y ⟂ D1, where W are the weights of a
    neighbor graph and D its degrees. The coordinates are the smoothest functions on the graph:
    use them to see clusters and the coarse shape of a manifold, or as features on which simple
    classifiers do well. Long and narrow data show their length several times before their
    width (coordinate 2 a function of coordinate 1); the eigenvalues warn of it.

    Parameters
    ----------
    {n_components}
    n_neighbors : int, default=None
        Neighbors per point; by default what `affinity` wants, if it is an object that does,
        else 10, or half the points if those are fewer.
    {radius}
    {metric}
    {metric_params}
    affinity : str or Affinity, default=None
        Weights of the edges. ``"self_tuning"``: Gaussian, with a width that follows the local
        density, so that outliers stay connected; the default. ``"gaussian"``: exp(−gamma·d²), one
        width for all; the default if `gamma` is given. ``"binary"``: one for every edge.
        ``"precomputed"``: `X` is a symmetric matrix of weights itself. Or an object of
        :mod:`manifoldry.affinity`.
    gamma : float, default=None
        Coefficient of ``affinity="gaussian"``; by default one over the median squared distance
        to the farthest neighbor.
    normalization : {"rw", "sym", "none"}, default="rw"
        Eigenvectors f of L f = λ D f (random walk), D^½·f, or eigenvectors of L itself.
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
        The map. Where the graph has several components, each is scaled to the size, and put at
        the relative position, it has in the data.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The weights W.
    {extension_}
    {inverse_}
    {eigenvalues_}
    {neighbor_search_}
    {component_labels_}
    loss_ : float
        The objective Σᵢⱼ Wᵢⱼ‖fᵢ − fⱼ‖² within components, before they are laid out; f are the
        coordinates, for ``normalization="sym"`` divided by √Dᵢᵢ.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

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

    _takes_graphs = True

    @property
    def _reads(self) -> type[Input]:
        if isinstance(self.affinity, str) and self.affinity == "precomputed":
            return Affinities
        return super()._reads

    def _pose(self, data: Input) -> "PosedLaplacian":
        check_option("normalization", self.normalization, ("rw", "sym", "none"))
        weighted = self._weigh(data)
        self.affinity_ = weighted.matrix
        degree = np.asarray(weighted.matrix.sum(axis=1)).ravel()
        degree = np.where(degree > 0, degree, 1.0)  # isolated points embed alone
        problem = laplacian_problem(weighted.matrix, degree, self.normalization)
        components = self._components(problem, weighted)
        return self._posed(
            data=data,
            problem=problem,
            parts=components,
            weighted=weighted,
            degree=degree,
            normalization=self.normalization,
        )

    def _posed(self, **stated: Any) -> "PosedLaplacian":
        return PosedLaplacian(**stated)

    def _components(self, problem: SpectralProblem, weighted: "Weighted") -> list[IntArray]:
        """Rows of the components to be embedded."""
        has_radius = "radius" in self.get_params(deep=False)
        remedy = GRAPH.remedy if has_radius else "raise n_neighbors"
        graph, policy = weighted.graph, self._policy()
        return operator_components(problem.operator, policy, graph, weighted.weak_link, remedy)

    def _weigh(self, data: Input) -> "Weighted":
        """Weights of the training points, and what gives them to new ones."""
        if isinstance(data, Affinities):
            self.neighbor_search_ = "none: the weights were given"
            source = GivenWeights(data.n_samples)
            return Weighted(_without_diagonal(data.rows), source, data.lookup, GIVEN_WEIGHTS)
        graph = connected_graph(self._neighbor_graph(data), self._policy(), data)
        self.neighbor_search_ = graph.search
        weights = self._affinity_of(graph).fit(graph)
        local = isinstance(weights, SelfTuningWeights | EntropicWeights)
        with np.errstate(over="ignore"):  # exp(−∞) is the weight of points that far apart
            W = weights.matrix(graph)
        weak_link = LOCAL_WIDTH if local else VANISHING_WEIGHTS
        return Weighted(W, GraphWeights(graph, weights), graph, weak_link, graph)

    def _read(self, X: Any) -> Input:
        if isinstance(X, NeighborGraph) and self._reads is Affinities:
            raise TypeError("affinity='precomputed' takes a matrix of weights, not a graph")
        return super()._read(X)

    def _default_neighbors(self, n: int) -> int | None:
        return self.affinity.neighbors(n) if isinstance(self.affinity, Affinity) else None

    def _affinity_of(self, graph: NeighborGraph) -> Affinity:
        if self.affinity is None:
            return SelfTuning() if self.gamma is None else Gaussian(gamma=self.gamma)
        if not isinstance(self.affinity, Affinity):
            check_option("affinity", self.affinity, _AFFINITIES)
        if self.affinity == "gaussian":
            return Gaussian(gamma=self.gamma)
        if self.gamma is not None:
            raise ValueError(
                f"gamma={self.gamma} has no meaning for affinity={self.affinity!r}; pass "
                "affinity='gaussian' with it"
            )
        if isinstance(self.affinity, Affinity):
            return self.affinity
        return Binary() if self.affinity == "binary" else SelfTuning()


class Weighted(NamedTuple):
    """Weights of pairs of training points, and what gives them to new points."""

    matrix: Matrix
    source: WeightRows
    lookup: Lookup | None
    weak_link: Disconnection
    """What is at fault where weights vanish and the graph, if there is one, does not fall apart."""
    graph: NeighborGraph | None = None


@dataclass(frozen=True, eq=False)
class PosedLaplacian(PosedOnGraph):
    """The smoothest functions on a weighted graph."""

    weighted: Weighted
    degree: Array
    normalization: Normalization

    @property
    def lookup(self) -> Lookup | None:
        return self.weighted.lookup

    def functions(self, spectra: Spectra) -> Array:
        """The functions whose values are coordinates: the eigenvectors as they are."""
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

    def formula(self, spectra: Spectra, extension: Any) -> Array:
        return np.asarray(extension.at_training())

    def loss(self, spectra: Spectra) -> float:
        return 2 * float(spectra.values.sum())


def laplacian_problem(W: Matrix, degree: Array, normalization: Normalization) -> SpectralProblem:
    """The smallest eigenvectors of D − W, as the normalization says, but for the constant."""
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


def laplacian(W: Matrix, dense: float = 0.1) -> Matrix:
    """D − W, dense where that fraction of entries is there: sparse routines are slow on such."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    if sparse.issparse(W) and W.nnz <= dense * len(degree) ** 2:
        return sparse.csr_array(sparse.diags_array(degree) - W)
    L = -(W.toarray() if sparse.issparse(W) else W)
    L[np.diag_indices_from(L)] += degree
    return L


def _without_diagonal(W: Matrix) -> sparse.csr_array:
    """Weights as a sparse matrix whose diagonal, which says nothing about neighbors, is gone."""
    W = sparse.coo_array(W)
    off = (W.row != W.col) & (W.data != 0)
    data = W.data[off].astype(np.float64)
    return sparse.csr_array((data, (W.row[off], W.col[off])), shape=W.shape)
