"""Laplacian eigenmaps with the name and signature of scikit-learn."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity import Affinity, Binary
from manifoldry.affinity.dense import median_rbf
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Affinities, GivenGraph, GraphOptions, Input
from manifoldry.device import Device
from manifoldry.eigen import SpectralProblem
from manifoldry.exceptions import DisconnectedGraphWarning, warn
from manifoldry.extension.laplacian import KernelWeights, Normalization
from manifoldry.extension.weight_function import FunctionWeights
from manifoldry.neighbors.disconnected import GIVEN_WEIGHTS, VANISHING_WEIGHTS
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.laplacian_eigenmaps import (
    LaplacianEigenmaps,
    TrainingWeights,
    off_diagonal,
)
from manifoldry.spectral.posed import (
    all_coincide_message,
    coupled_components,
    no_neighbors_message,
)
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import IntArray, Matrix, RandomState
from manifoldry.util.validation import plan_matrix

# Names of affinities, and what connects a disconnected graph of each.
_AFFINITIES = {
    "nearest_neighbors": "raise n_neighbors",
    "rbf": "lower gamma",
    "precomputed": GIVEN_WEIGHTS.remedy,
    "precomputed_nearest_neighbors": "pass the distances of more neighbors and raise n_neighbors",
}


@shared_docs
class SpectralEmbedding(LaplacianEigenmaps):
    """Laplacian eigenmaps with scikit-learn's signature, as a drop-in replacement.

    Computes the same coordinates as :class:`sklearn.manifold.SpectralEmbedding`. In addition it has
    ``transform`` and ``inverse_transform``, and checks the residuals of the eigenvectors. New code
    should use :class:`LaplacianEigenmaps`, whose defaults are better and which embeds the connected
    components of a graph separately.

    Parameters
    ----------
    {n_components_two}
    affinity : str or callable, default="nearest_neighbors"
        ``"nearest_neighbors"``, ``"rbf"`` (weights of all pairs of points), ``"precomputed"``,
        ``"precomputed_nearest_neighbors"`` (sparse distances), or a function that takes the data
        and returns a symmetric matrix of weights. For new points the function is called with the
        training points and the new ones together.
    gamma : float, default=None
        Coefficient of the ``"rbf"`` affinity. None means ``1 / n_features``.
    {random_state}
    eigen_solver : str or EigenSolver, default=None
        As in :class:`LaplacianEigenmaps`. None means ``"auto"``.
    eigen_tol : float or "auto", default="auto"
        Ignored, present for compatibility: residuals are always checked against the eigenvalue
        gaps.
    n_neighbors : int, default=None
        Number of neighbors of each point, including itself. None means
        ``max(n_samples // 10, 2)``.
    {n_jobs}
    {device}

    Attributes
    ----------
    n_components_, n_neighbors_ : int
        Number of coordinates, and of neighbors including the point itself.
    affinity_matrix_ : array or sparse array of shape (n_samples, n_samples)
        The weights as scikit-learn has them: ``affinity_`` with its diagonal, which does not affect
        the embedding. Built at each access. For the other attributes see
        :class:`LaplacianEigenmaps`.

    See Also
    --------
    LaplacianEigenmaps : the same method with more choices.
    sklearn.manifold.SpectralEmbedding : whose parameters it takes.

    References
    ----------
    M. Belkin and P. Niyogi, "Laplacian eigenmaps for dimensionality reduction and data
    representation", Neural Computation 15 (2003).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifoldry import SpectralEmbedding
    >>> SpectralEmbedding(n_components=2).fit_transform(load_digits().data[:100]).shape
    (100, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        affinity: Any = "nearest_neighbors",
        gamma: float | None = None,
        random_state: RandomState = None,
        eigen_solver: Any = None,
        eigen_tol: float | str = "auto",
        n_neighbors: int | None = None,
        n_jobs: int | None = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_components = n_components
        self.affinity = affinity
        self.gamma = gamma
        self.random_state = random_state
        self.eigen_solver = eigen_solver
        self.eigen_tol = eigen_tol
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.device = device

    # Parameters of the parent class that are fixed here.
    radius = None
    metric_params = None
    extension = None
    inverse = None
    normalization: Normalization = "rw"
    disconnected = "separate"
    _fit_all_rows: Any = None  # distributed data are fitted to landmarks
    _landmarks = 5000  # each row has a tenth of all rows as neighbors

    def _fit(self, X: Any) -> None:
        if self.eigen_solver == "amg" and find_spec("pyamg") is None:
            raise ValueError(  # where the other estimators raise an ImportError
                "The eigen_solver was set to 'amg', but pyamg is not available. "
                'To install it: pip install "manifoldry[amg]"'
            )
        super()._fit(X)

    @property
    def metric(self) -> str:
        """``"precomputed"`` if `X` is a sparse graph of distances, else ``"euclidean"``."""
        precomputed = self.affinity == "precomputed_nearest_neighbors"
        return "precomputed" if precomputed else "euclidean"

    def _training_weights(self, data: Input) -> TrainingWeights:
        if callable(self.affinity) or self.affinity == "rbf":
            return self._weights_of_all_pairs(data)
        if self.affinity == "precomputed":
            self._self_weights = data.rows.diagonal()
        else:  # scikit-learn counts the point itself as a neighbor, unless it is not stored
            includes_itself = not data.pairwise or _stores_diagonal(data.rows)
            self._self_weights = np.full(data.n_samples, float(includes_itself))
        return super()._training_weights(data)

    def _weights_of_all_pairs(self, data: Input) -> TrainingWeights:
        if data.points is not data.rows:
            raise TypeError(
                f"affinity={self.affinity!r} needs all pairs of points, not those of a "
                "NeighborGraph; pass the data"
            )
        n = data.n_samples
        remedy = "pass affinity='nearest_neighbors'"
        plan_matrix((n, n), 64, f"the weights of all pairs of {n} points", remedy)
        self.neighbor_search_ = "none: all pairs have a weight"
        W, new_weights = self._evaluated(data.rows)
        self._self_weights = W.diagonal().copy()
        W = off_diagonal(W)
        source = new_weights(W)
        return TrainingWeights(W, source, source, VANISHING_WEIGHTS)

    def _evaluated(self, X: Matrix) -> tuple[Matrix, Callable[[Matrix], Any]]:
        """Return the weights of training points, and what makes those of new points from them."""
        if callable(self.affinity):
            W = self.affinity(X)
            W = sparse.csr_array(W) if sparse.issparse(W) else np.asarray(W)
            Affinities(W).check()
            if W.shape[0] != X.shape[0]:
                raise ValueError(
                    f"the function passed as affinity returned {W.shape[0]} rows for "
                    f"n_samples={X.shape[0]}; it must return one row and one column per sample"
                )
            return W, partial(FunctionWeights, self.affinity, X)
        gamma = 1 / self.n_features_in_ if self.gamma is None else self.gamma
        kernel = median_rbf(X, check_positive("gamma", gamma))
        W = kernel.matrix(X)
        if (W == 1).all():
            raise ValueError(all_coincide_message(X.shape[0]))
        return W, lambda _: KernelWeights(kernel)

    def _components(self, problem: SpectralProblem, weighted: TrainingWeights) -> list[IntArray]:
        """Return all rows as one component: the coordinates are eigenvectors of the whole graph."""
        labels = coupled_components(problem.operator)
        count = int(labels.max()) + 1
        if count == len(labels):
            raise ValueError(no_neighbors_message(count))
        if count > 1:
            remedy = _AFFINITIES.get(str(self.affinity), GIVEN_WEIGHTS.remedy)  # or a function
            warn(
                f"the graph has {count} connected components, so the first {count - 1} coordinates "
                f"are constant on each of them, as in scikit-learn; {remedy}, or use "
                "LaplacianEigenmaps, which embeds each component separately",
                DisconnectedGraphWarning,
            )
        return [np.arange(problem.n)]

    def _affinity_of(self, graph: NeighborGraph) -> Affinity:
        if self.affinity not in tuple(_AFFINITIES):
            names = ", ".join(map(repr, _AFFINITIES))
            raise ValueError(f"affinity={self.affinity!r} must be one of {names}, or a function")
        return Binary(symmetrize="mean")

    def _neighbor_graph(self, data: Input) -> NeighborGraph:
        n = data.n_samples
        k = None if self.n_neighbors is None else self._n_other_neighbors(n)
        if not isinstance(data, GivenGraph):
            # scikit-learn counts the stored entries of a sparse graph, also the point itself.
            k = self._n_other_neighbors(n) + (data.pairwise and not _stores_diagonal(data.rows))
        return data.graph(GraphOptions(k, None, self.metric, None, self.n_jobs, None))

    @property
    def n_neighbors_(self) -> int:
        """Number of neighbors, including the point itself."""
        n = len(vars(self).get("landmark_model_", self).embedding_)
        return self._n_other_neighbors(n) + 1

    def _n_other_neighbors(self, n: int) -> int:
        """Return the number of neighbors without the point itself, which scikit-learn includes."""
        if self.n_neighbors is None:
            return max(n // 10 - 1, 1)
        if check_count("n_neighbors", self.n_neighbors, minimum=2) > n:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} must be at most n_samples={n}; "
                f"pass n_neighbors={n} or fewer"
            )
        return self.n_neighbors - 1

    @property
    def affinity_matrix_(self) -> Matrix:
        """Weights of all pairs, with those of points with themselves; built at each access."""
        W = self.affinity_.astype(self.embedding_.dtype)
        if sparse.issparse(W):
            return sparse.csr_array(W + sparse.diags_array(self._self_weights, dtype=W.dtype))
        np.fill_diagonal(W, self._self_weights)
        return W


def _stores_diagonal(graph: Any) -> bool:
    graph = sparse.coo_array(graph)
    return bool((graph.row == graph.col).any())
