"""Laplacian eigenmaps."""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity import Affinity, Binary, Gaussian, SelfTuning
from manifoldry.affinity.entropic import EntropicWeights
from manifoldry.affinity.self_tuning import SelfTuningWeights
from manifoldry.eigen import EigenSolver, SpectralProblem, Spectrum
from manifoldry.extension.base import KernelExtension
from manifoldry.extension.laplacian import (
    GivenWeights,
    GraphWeights,
    LaplacianExtension,
    Normalization,
)
from manifoldry.neighbors.disconnected import (
    GIVEN_WEIGHTS,
    LOCAL_WIDTH,
    VANISHING_WEIGHTS,
    Cause,
)
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.graph_embedder import (
    GraphEmbedder,
    all_coincide,
    no_neighbors,
    with_training_rows,
)
from manifoldry.util.checks import check_option
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import check_non_negative, check_square, check_symmetric

# Share of entries beyond which the weights are treated as a dense matrix.
_DENSE = 0.1
_AFFINITIES = ("gaussian", "binary", "self_tuning", "precomputed")


class LaplacianEigenmaps(GraphEmbedder):
    """Place points so that neighbours in the data stay neighbours on the map.

    Minimises Σᵢⱼ Wᵢⱼ‖yᵢ − yⱼ‖² subject to YᵀDY = I and Y ⟂ D1, where W are the weights of a
    neighbour graph and D its degrees. The coordinates are the smoothest functions on the graph:
    use them to see clusters and the coarse shape of a manifold, or as features on which simple
    classifiers do well. Long and narrow data show their length several times before their
    width (coordinate 2 a function of coordinate 1); the eigenvalues warn of it.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates, at most ``n_samples - 1``; by default two, or what the data allow.
    n_neighbors : int, default=None
        Neighbours per point; by default what `affinity` wants, if it is an object that does,
        else 10, or half the points if those are fewer.
    radius : float, default=None
        Take all neighbours within this distance instead.
    metric : str or callable, default="euclidean"
        Metric of the neighbour graph; ``"precomputed"`` for dense distances or a sparse graph
        of distances.
    metric_params : dict, default=None
        Further arguments of the metric.
    affinity : str or Affinity, default=None
        Weights of the edges. ``"self_tuning"``: Gaussian, with a width that follows the local
        density, so that outliers stay connected; the default. ``"gaussian"``: exp(−gamma·d²), one
        width for all; the default if `gamma` is given. ``"binary"``: one for every edge.
        ``"precomputed"``: `X` is a symmetric matrix of weights itself. Or an object of
        :mod:`manifoldry.affinity`.
    gamma : float, default=None
        Coefficient of ``affinity="gaussian"``; by default one over the median squared distance
        to the farthest neighbour.
    normalization : {"rw", "sym", "none"}, default="rw"
        Eigenvectors f of L f = λ D f (random walk), D^½·f, or eigenvectors of L itself.
    disconnected : {"separate", "join", "largest", "error"}, default="separate"
        What to do when the graph falls into pieces; see
        :class:`~manifoldry.neighbors.DisconnectedPolicy`.
    eigen_solver : str or EigenSolver, default="auto"
        See :func:`manifoldry.eigen.resolve_solver`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of iterative solvers; ``None`` is a fixed seed.
    n_jobs : int, default=None
        Threads, by default one per core; BLAS keeps its own number.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates in use.
    embedding_ : array of shape (n_samples, n_components)
        The map. Where the graph has several components, each is scaled to the size, and put at
        the relative position, it has in the data.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The weights W.
    eigenvalues_ : array of shape (n_components,)
        Smallest non-trivial eigenvalues (of the largest component).
    piece_labels_ : array of shape (n_samples,)
        Component of every point, 0 being the largest; -1 if it was left out.
    loss_ : float
        The objective Σᵢⱼ Wᵢⱼ‖fᵢ − fⱼ‖² within components, before they are laid out; f are the
        coordinates, for ``normalization="sym"`` divided by √Dᵢᵢ.
    computed_eigenvalues_ : array of shape (n_computed,)
        ``eigenvalues_`` and those beyond them that came at no cost: they show the gap.
    residuals_, gaps_ : arrays of shape (n_components,)
        Residual norm of every eigenpair, and distance from its eigenvalue to the nearest other
        one: a coordinate can be trusted where the first is far below the second.
    solver_ : str
        Which eigensolver found them, why that one, and how well it did.
    dimension_hint_ : int
        Number of eigenvalues before the largest gap.

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
        self.random_state = random_state
        self.n_jobs = n_jobs

    # Weights of new points; what it is depends on what the fit was given.
    _source: Any

    def _pose(self, data: Any) -> SpectralProblem:
        check_option("normalization", self.normalization, ("rw", "sym", "none"))
        W = self._weigh(data)
        self.affinity_ = W
        degree = np.asarray(W.sum(axis=1)).ravel()
        self._degree = np.where(degree > 0, degree, 1.0)  # isolated points embed alone
        L = _laplacian(W, degree)
        ones = np.ones(len(degree))
        if self.normalization == "none":
            return SpectralProblem(L, "smallest", deflate=ones, bounds=(0.0, 2 * degree.max()))
        if self.normalization == "rw":
            return SpectralProblem(
                L, "smallest", mass=self._degree, deflate=ones, bounds=(0.0, 2.0)
            )
        root = np.sqrt(self._degree)
        if sparse.issparse(L):
            S = sparse.diags_array(1 / root)
            return SpectralProblem(S @ L @ S, "smallest", deflate=root, bounds=(0.0, 2.0))
        L /= np.outer(root, root)
        return SpectralProblem(L, "smallest", deflate=root, bounds=(0.0, 2.0))

    def _weigh(self, data: Any) -> Matrix:
        """The weights of the training points, and on `self` those of new ones."""
        if self._is_precomputed_affinity:
            self.search_ = "none: the weights were given"
            self._source = GivenWeights(data.shape[0])
            self._lookup = RowLookup.of(sparse.csr_array(data))
            return _without_diagonal(data)
        graph = self._connected_graph(data)
        if len(graph.distances) == 0:
            raise ValueError(no_neighbors(graph.n_query))
        if not graph.distances.any():
            raise ValueError(all_coincide(graph.n_query))
        weights = self._affinity_of(graph).fit(graph)
        self._source = GraphWeights(graph, weights)
        with np.errstate(over="ignore"):  # exp(−∞) is the weight of points that far apart
            return weights.matrix(graph)

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

    def _cause(self, labels: IntArray) -> Cause:
        if self._is_precomputed_affinity:
            return GIVEN_WEIGHTS
        cause = super()._cause(labels)
        weights = getattr(self._source, "weights", None)
        local = isinstance(weights, SelfTuningWeights | EntropicWeights)
        return LOCAL_WIDTH if cause == VANISHING_WEIGHTS and local else cause

    @property
    def _is_precomputed_affinity(self) -> bool:
        return isinstance(self.affinity, str) and self.affinity == "precomputed"

    @property
    def _is_precomputed(self) -> bool:
        return self._is_precomputed_affinity or super()._is_precomputed

    def _read(self, X: Any, reset: bool) -> Any:
        data = super()._read(X, reset)
        if self._is_precomputed_affinity:
            if isinstance(X, NeighborGraph):
                raise TypeError("affinity='precomputed' takes a matrix of weights, not a graph")
            check_non_negative(data, "affinities")
            if reset:
                check_square(data, "affinities")
                check_symmetric(data, "affinities")
        return data

    def _dense_distances(self, data: Any) -> Array | None:
        return None if self._is_precomputed_affinity else super()._dense_distances(data)

    def _extend(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> KernelExtension:
        self._inverse = self._regression(data)
        root = np.sqrt(self._degree)[:, None] if self.normalization == "sym" else 1.0
        return LaplacianExtension(
            self._source,
            self._degree,
            self._functions(spectrum) / root,
            self._piece_values,
            self.normalization,
            self._pieces,
        )

    def _identical(self, data: Matrix) -> IntArray:
        if self._lookup is not None:
            return super()._identical(data)
        return self._source.identical(data)

    def _kernel_rows(self, data: Any) -> Matrix:
        """The weights over the roots of both degrees; without normalisation, μI − L."""
        d, K = self._degree, sparse.csr_array(self.affinity_)
        if self.normalization == "none":
            K = K + sparse.diags_array(2 * d.max() - d)  # μ = 2·max d: no eigenvalue is larger
        else:
            K = sparse.diags_array(d**-0.5) @ K @ sparse.diags_array(d**-0.5)
        return with_training_rows(super()._kernel_rows(data), self._identical(data), K)

    def _functions(self, spectrum: Spectrum) -> Array:
        """The functions whose values are coordinates: the eigenvectors as they are."""
        return spectrum.vectors

    def _coordinates(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> Array:
        return self._lay_out(data, self._functions(spectrum).copy())

    def _loss(self, spectrum: Spectrum) -> float:
        return 2 * float(self._piece_values.sum())


def _laplacian(W: Matrix, degree: Array) -> Matrix:
    """D − W, dense where most entries are there: sparse routines are slow on such matrices."""
    if sparse.issparse(W) and W.nnz <= _DENSE * len(degree) ** 2:
        return sparse.csr_array(sparse.diags_array(degree) - W)
    L = -(W.toarray() if sparse.issparse(W) else W)
    L[np.diag_indices_from(L)] += degree
    return L


def _without_diagonal(W: Matrix) -> sparse.csr_array:
    """Weights as a sparse matrix whose diagonal, which says nothing about neighbours, is gone."""
    W = sparse.coo_array(W)
    off = (W.row != W.col) & (W.data != 0)
    data = W.data[off].astype(np.float64)
    return sparse.csr_array((data, (W.row[off], W.col[off])), shape=W.shape)
