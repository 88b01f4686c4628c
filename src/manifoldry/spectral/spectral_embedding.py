"""scikit-learn's name for Laplacian eigenmaps, with scikit-learn's signature."""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity import Affinity, Binary
from manifoldry.affinity.dense import median_rbf
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import GivenGraph, GraphOptions, Input
from manifoldry.extension.laplacian import KernelWeights, Normalization
from manifoldry.neighbors.disconnected import VANISHING_WEIGHTS
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps, TrainingWeights
from manifoldry.spectral.posed import all_coincide_message
from manifoldry.util.checks import check_count, check_option, check_positive
from manifoldry.util.typing import RandomState
from manifoldry.util.validation import plan_memory

_AFFINITIES = ("nearest_neighbors", "rbf", "precomputed", "precomputed_nearest_neighbors")


@shared_docs
class SpectralEmbedding(LaplacianEigenmaps):
    """Laplacian eigenmaps under scikit-learn's name, for code that is to change one import.

    The same coordinates as :class:`sklearn.manifold.SpectralEmbedding`, and what that lacks: new
    points, the way back, verified eigenvectors, and disconnected graphs that stay honest. New
    code should use :class:`LaplacianEigenmaps`, whose defaults are better.

    Parameters
    ----------
    n_components : int, default=2
        Number of coordinates.
    affinity : str, default="nearest_neighbors"
        ``"nearest_neighbors"``, ``"rbf"`` (a weight for every pair of points),
        ``"precomputed"`` or ``"precomputed_nearest_neighbors"`` (sparse distances).
    gamma : float, default=None
        Coefficient of the ``"rbf"`` affinity; by default one over the number of features.
    {random_state}
    eigen_solver : str or EigenSolver, default=None
        As in :class:`LaplacianEigenmaps`; ``None`` is ``"auto"``.
    eigen_tol : float or "auto", default="auto"
        Accepted for compatibility: residuals are always checked against the eigenvalue gaps.
    n_neighbors : int, default=None
        Neighbors per point, the point itself counted, by default a tenth of the points.
    {n_jobs}

    Attributes
    ----------
    n_components_, n_neighbors_ : int
        Number of coordinates, and of neighbors, in use.
    affinity_matrix_ : sparse array of shape (n_samples, n_samples)
        scikit-learn's name for ``affinity_``. All other attributes are those of
        :class:`LaplacianEigenmaps`.

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
        affinity: str = "nearest_neighbors",
        gamma: float | None = None,
        random_state: RandomState = None,
        eigen_solver: Any = None,
        eigen_tol: float | str = "auto",
        n_neighbors: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.affinity = affinity
        self.gamma = gamma
        self.random_state = random_state
        self.eigen_solver = eigen_solver
        self.eigen_tol = eigen_tol
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    # Parameters of the parent class that are fixed here.
    radius = None
    metric_params = None
    extension = None
    inverse = None
    normalization: Normalization = "rw"
    disconnected = "separate"

    @property
    def metric(self) -> str:
        """Sparse neighbor graphs are distances that were computed before."""
        precomputed = self.affinity == "precomputed_nearest_neighbors"
        return "precomputed" if precomputed else "euclidean"

    def _training_weights(self, data: Input) -> TrainingWeights:
        if self.affinity != "rbf":
            return super()._training_weights(data)
        if data.points is not data.rows:
            raise TypeError("affinity='rbf' weighs all pairs of points, not those of a graph")
        n = data.n_samples
        plan_memory(64.0 * n * n, f"a weight for every pair of {n} points", "use fewer points")
        gamma = 1 / self.n_features_in_ if self.gamma is None else self.gamma
        source = KernelWeights(median_rbf(data.rows, check_positive("gamma", gamma)))
        self.neighbor_search_ = "none: every pair has a weight"
        W = source.kernel.matrix(data.rows)
        if (W == 1).all():
            raise ValueError(all_coincide_message(n))
        np.fill_diagonal(W, 0.0)
        return TrainingWeights(W, source, source, VANISHING_WEIGHTS)

    def _affinity_of(self, graph: NeighborGraph) -> Affinity:
        check_option("affinity", self.affinity, _AFFINITIES)
        return Binary(symmetrize="mean")

    def _neighbor_graph(self, data: Input) -> NeighborGraph:
        n = data.n_samples
        k = None if self.n_neighbors is None else self._n_other_neighbors(n)
        if not isinstance(data, GivenGraph):
            # scikit-learn counts whoever a sparse graph stores, the point itself if it is there.
            k = self._n_other_neighbors(n) + (data.pairwise and not _stores_diagonal(data.rows))
        return data.graph(GraphOptions(k, None, self.metric, None, self.n_jobs, None))

    @property
    def n_neighbors_(self) -> int:
        """Neighbors in use, the point itself counted, under scikit-learn's name."""
        n = len(self.embedding_)
        return self._n_other_neighbors(n) + 1

    def _n_other_neighbors(self, n: int) -> int:
        """Neighbors of a point apart from itself, whom scikit-learn counts among them."""
        if self.n_neighbors is None:
            return max(n // 10 - 1, 1)
        if check_count("n_neighbors", self.n_neighbors, minimum=2) > n:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} must be at most n_samples={n}; "
                f"pass n_neighbors={n} or fewer"
            )
        return self.n_neighbors - 1

    @property
    def affinity_matrix_(self) -> Any:
        """The weights under scikit-learn's name."""
        return self.affinity_


def _stores_diagonal(graph: Any) -> bool:
    graph = sparse.coo_array(graph)
    return bool((graph.row == graph.col).any())
