"""Laplacian eigenmaps with the name and signature of scikit-learn."""

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
    """Laplacian eigenmaps with scikit-learn's signature, as a drop-in replacement.

    Computes the same coordinates as :class:`sklearn.manifold.SpectralEmbedding`. In addition it has
    ``transform`` and ``inverse_transform``, checks the residuals of the eigenvectors, and embeds
    the connected components of the graph separately. New code should use
    :class:`LaplacianEigenmaps`, whose defaults are better.

    Parameters
    ----------
    {n_components_two}
    affinity : str, default="nearest_neighbors"
        ``"nearest_neighbors"``, ``"rbf"`` (weights of all pairs of points), ``"precomputed"`` or
        ``"precomputed_nearest_neighbors"`` (sparse distances).
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

    Attributes
    ----------
    n_components_, n_neighbors_ : int
        Number of coordinates, and of neighbors including the point itself.
    affinity_matrix_ : sparse array of shape (n_samples, n_samples)
        Same as ``affinity_``. For the other attributes see :class:`LaplacianEigenmaps`.

    See Also
    --------
    LaplacianEigenmaps : the same method with more choices.

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
        """``"precomputed"`` if `X` is a sparse graph of distances, else ``"euclidean"``."""
        precomputed = self.affinity == "precomputed_nearest_neighbors"
        return "precomputed" if precomputed else "euclidean"

    def _training_weights(self, data: Input) -> TrainingWeights:
        if self.affinity != "rbf":
            return super()._training_weights(data)
        if data.points is not data.rows:
            raise TypeError(
                "affinity='rbf' needs all pairs of points, not those of a NeighborGraph; pass the "
                "data"
            )
        n = data.n_samples
        plan_memory(64.0 * n * n, f"the weights of all pairs of {n} points", "use fewer points")
        gamma = 1 / self.n_features_in_ if self.gamma is None else self.gamma
        source = KernelWeights(median_rbf(data.rows, check_positive("gamma", gamma)))
        self.neighbor_search_ = "none: all pairs have a weight"
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
            # scikit-learn counts the stored entries of a sparse graph, also the point itself.
            k = self._n_other_neighbors(n) + (data.pairwise and not _stores_diagonal(data.rows))
        return data.graph(GraphOptions(k, None, self.metric, None, self.n_jobs, None))

    @property
    def n_neighbors_(self) -> int:
        """Number of neighbors, including the point itself."""
        n = len(self.embedding_)
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
    def affinity_matrix_(self) -> Any:
        """Same as ``affinity_``."""
        return self.affinity_


def _stores_diagonal(graph: Any) -> bool:
    graph = sparse.coo_array(graph)
    return bool((graph.row == graph.col).any())
