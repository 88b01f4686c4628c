"""Spectral clustering with a rule for new points."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans

from manifoldry.affinity import Affinity
from manifoldry.base.docs import shared_docs
from manifoldry.eigen import EigenSolver, Spectra, SpectralProblem
from manifoldry.exceptions import DisconnectedGraphWarning
from manifoldry.extension.base import KernelExtension
from manifoldry.extension.laplacian import Normalization
from manifoldry.extension.layout import Layout
from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps, PosedLaplacian, Weighted
from manifoldry.spectral.posed import Posed, coupled_components
from manifoldry.util.checks import as_generator
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.warn import warn


@shared_docs
class SpectralClustering(ClusterMixin, LaplacianEigenmaps):
    """Cut the neighbor graph where it is thin.

    Computes the smoothest functions on the graph, the constant included, which are nearly
    constant on every cluster; scales each point's values to unit length; and clusters them by
    k-means. Clusters may have any shape as long as few edges lead from one to another.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    {n_neighbors}
    {radius}
    {metric}
    {metric_params}
    affinity : str or Affinity, default=None
        Weights of the edges, as in :class:`LaplacianEigenmaps`.
    gamma : float, default=None
        Coefficient of ``affinity="gaussian"``.
    normalize_rows : bool, default=True
        Scale each point's values to unit length before k-means (Ng, Jordan and Weiss); without
        it clusters of different size are harder to tell apart (Shi and Malik).
    {eigen_solver}
    {extension}
    {inverse}
    random_state : int, RandomState, Generator or None, default=None
        Seed of k-means and iterative solvers; ``None`` is a fixed seed.
    {n_jobs}

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of every point.
    n_components_ : int
        Number of functions in use, one per cluster.
    embedding_ : array of shape (n_samples, n_clusters)
        What k-means sees.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The weights.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_clusters,)
        Smallest eigenvalues, the trivial zero included: as many zeros as the graph has components.
    component_labels_ : array of shape (n_samples,)
        All zero: components of the graph are clusters here, not maps of their own.
    loss_ : float
        Twice the sum of ``eigenvalues_``.
    {computed_eigenvalues_}
    residuals_, gaps_ : arrays of shape (n_clusters,)
        Residual norm of every eigenpair, and distance from its eigenvalue to the nearest other.
    {solver_}
    dimension_hint_ : int
        Number of eigenvalues before the largest step between two of them: a hint at the number
        of clusters, if they are compact; long ones such as the moons mislead it.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from manifoldry import SpectralClustering
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> model = SpectralClustering(2).fit(X[:150])
    >>> adjusted_rand_score(y[150:], model.predict(X[150:]))
    1.0
    """

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        n_neighbors: int | None = None,
        radius: float | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        affinity: str | Affinity | None = None,
        gamma: float | None = None,
        normalize_rows: bool = True,
        eigen_solver: str | EigenSolver = "auto",
        extension: Any = None,
        inverse: Any = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.metric_params = metric_params
        self.affinity = affinity
        self.gamma = gamma
        self.normalize_rows = normalize_rows
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs

    # What the parent takes as parameters is settled here.
    normalization: Normalization = "rw"
    disconnected = "separate"
    _counted_by = "n_clusters"
    _kmeans: KMeans

    def predict(self, X: Any) -> IntArray:
        """Cluster of new points, each by itself; training rows keep theirs.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            New data, as for ``transform``.
        """
        Y = self._place(self._read_new(X))
        return np.asarray(self._kmeans.predict(Y))

    def _fit(self, X: Any) -> None:
        super()._fit(X)
        seed = int(as_generator(self.random_state, unset=0).integers(2**31 - 1))
        self._kmeans = KMeans(self.n_clusters, n_init=10, random_state=seed)
        self.labels_ = self._kmeans.fit_predict(self.embedding_.astype(np.float64))
        steps = np.diff(self.computed_eigenvalues_)
        self.dimension_hint_ = int(np.argmax(steps)) + 1 if len(steps) else 1

    def _posed(self, **stated: Any) -> "PosedCut":
        # Nothing is deflated: where the graph has components, all constants on them are wanted.
        stated["problem"] = replace(stated["problem"], deflate=None)
        return PosedCut(**stated, normalize_rows=bool(self.normalize_rows))

    def _components(self, problem: SpectralProblem, weighted: Weighted) -> list[IntArray]:
        return [np.arange(problem.n)]

    def _warn_of(self, posed: Posed, spectra: Spectra) -> None:
        components = int(coupled_components(posed.problems[0].operator).max()) + 1
        if components <= self.n_clusters:
            super()._warn_of(posed, spectra)
            return
        warn(
            f"the neighbor graph has {components} components, more than n_clusters={self.n_clusters}, and "
            "does not tell which of them belong together; pass more clusters or raise n_neighbors",
            DisconnectedGraphWarning,
        )


@dataclass(frozen=True, eq=False)
class PosedCut(PosedLaplacian):
    """The whole graph with the constants on its components, its coordinates on a sphere if asked."""

    normalize_rows: bool

    def coordinates(self, spectra: Spectra) -> Array:
        Y = super().coordinates(spectra)
        return unit_rows(Y) if self.normalize_rows else Y

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> KernelExtension:
        extension = super().extend(spectra, layout, embedding)
        return UnitRows(extension) if self.normalize_rows else extension


@dataclass(frozen=True, eq=False)
class UnitRows(KernelExtension):
    """Another extension with its coordinates scaled to unit length."""

    inner: KernelExtension

    def rows(self, X: Matrix) -> Matrix:
        return self.inner.rows(X)

    @property
    def numbers_per_row(self) -> int:
        return self.inner.numbers_per_row

    def transform(self, X: Matrix) -> Array:
        return unit_rows(self.inner.transform(X))

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        return self.inner.equivalent_kernel(X, known)


def unit_rows(Y: Array) -> Array:
    """Rows scaled to unit length; a row of zeros stays."""
    length = np.linalg.norm(Y, axis=1, keepdims=True)
    return np.asarray(Y / np.where(length > 0, length, 1.0))
