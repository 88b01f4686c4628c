"""Spectral clustering, with out-of-sample prediction."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans

from manifoldry.affinity import Affinity
from manifoldry.base.docs import shared_docs
from manifoldry.base.resources import on_its_device
from manifoldry.device import Device, say_on_cpu
from manifoldry.eigen import EigenSolver, Spectra, SpectralProblem
from manifoldry.exceptions import DisconnectedGraphWarning, warn
from manifoldry.extension.base import KernelExtension
from manifoldry.extension.kernel_pairs import KernelPairs
from manifoldry.extension.laplacian import LaplacianExtension, Normalization
from manifoldry.extension.layout import Layout
from manifoldry.spectral.laplacian_eigenmaps import (
    LaplacianEigenmaps,
    PosedLaplacian,
    TrainingWeights,
)
from manifoldry.spectral.posed import Posed, coupled_components
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.threads import one_openmp_thread
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState


@shared_docs
class SpectralClustering(ClusterMixin, LaplacianEigenmaps):
    """Spectral clustering: a relaxation of the normalized cut of the neighbor graph.

    Computes the eigenvectors of the graph Laplacian with the smallest eigenvalues, including the
    constant one, scales the values of each point to unit norm, and clusters them by k-means. Use
    it for clusters of any shape with few edges between them.

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
        Coefficient of ``affinity="gaussian"``, as in :class:`LaplacianEigenmaps`.
    normalize_rows : bool, default=True
        Scale the values of each point to unit norm before k-means (Ng, Jordan and Weiss). If False
        (Shi and Malik), clusters of different sizes are harder to separate.
    {eigen_solver}
    {extension}
    {inverse}
    random_state : int, RandomState, Generator or None, default=None
        Seed of k-means and of the start vectors of iterative eigensolvers. None means a fixed seed.
    {n_jobs}
    {device}

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of each training point.
    n_components_ : int
        Number of eigenvectors, equal to `n_clusters`.
    embedding_ : array of shape (n_samples, n_clusters)
        Coordinates of the training points, the input of k-means.
    {affinity_}
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_clusters,)
        Smallest eigenvalues, of which as many are zero as the graph has connected components.
    {neighbor_search_}
    component_labels_ : array of shape (n_samples,)
        All zero: connected components are not embedded separately.
    loss_ : float
        Twice the sum of ``eigenvalues_``.
    {computed_eigenvalues_}
    residuals_, gaps_ : arrays of shape (n_clusters,)
        {residuals}
    {solver_}
    dimension_hint_ : int
        Estimate of the number of clusters: the number of eigenvalues before the largest difference
        of successive ones. It is reliable for compact clusters only.

    See Also
    --------
    LaplacianEigenmaps : the coordinates without clusters.
    sklearn.cluster.SpectralClustering : without ``predict`` for new points.

    References
    ----------
    A. Y. Ng, M. I. Jordan and Y. Weiss, "On spectral clustering: analysis and an algorithm", NIPS
    14, 2002.

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
        device: str | Device | None = None,
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
        self.device = device

    # Parameters of the parent class that are fixed here.
    normalization: Normalization = "rw"
    disconnected = "separate"
    _fit_all_rows: Any = None  # distributed data are fitted to landmarks
    _dimension_parameter = "n_clusters"
    _kmeans: KMeans

    @on_its_device
    def predict(self, X: Any) -> IntArray:
        """Return the cluster of each row of `X`; training rows get the label in ``labels_``.

        Warns if many rows are unlike the training data.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            New data, as for ``transform``.

        Returns
        -------
        array of shape (n_samples,)
            The clusters, counted from 0.
        """
        rows = self._read_new(X)
        self._distance_from_data.warn_if_far(rows)
        Y = self._transform_rows(rows)
        with one_openmp_thread():
            return np.asarray(self._kmeans.predict(Y))

    def adopt(self, posed: Posed, spectra: Spectra) -> None:
        """Use the solution of the problem of :meth:`pose` as the fitted model, and find clusters.

        Parameters
        ----------
        posed : Posed
            The problem.
        spectra : Spectra
            Its solution.
        """
        super().adopt(posed, spectra)
        seed = int(as_generator(self.random_state, unset=0).integers(2**31 - 1))
        self._kmeans = KMeans(self.n_clusters, n_init=10, random_state=seed)
        numbers = float(self.embedding_.size) * self.n_clusters * 100  # starts times iterations
        say_on_cpu("the search for clusters", "it is scikit-learn's k-means", numbers)
        with one_openmp_thread():
            self.labels_ = self._kmeans.fit_predict(self.embedding_.astype(np.float64))
        self._fitted_names |= {"_kmeans", "labels_"}

    def _fit(self, X: Any) -> None:
        check_count("n_clusters", self.n_clusters)
        super()._fit(X)
        steps = np.diff(self.computed_eigenvalues_)
        self.dimension_hint_ = int(np.argmax(steps)) + 1 if len(steps) else 1

    def _make_posed(self, **fields: Any) -> "PosedClustering":
        # No deflation: the constant vectors on the connected components are part of the solution.
        fields["problem"] = replace(fields["problem"], deflate=None)
        return PosedClustering(**fields, normalize_rows=bool(self.normalize_rows))

    def _components(self, problem: SpectralProblem, weighted: TrainingWeights) -> list[IntArray]:
        return [np.arange(problem.n)]

    def _warn_about(self, posed: Posed, spectra: Spectra) -> None:
        components = int(coupled_components(posed.problems[0].operator).max()) + 1
        if components <= self.n_clusters:
            super()._warn_about(posed, spectra)
            return
        warn(
            f"the neighbor graph has {components} connected components, more than "
            f"n_clusters={self.n_clusters}, so it does not determine which of them form a cluster; "
            "raise n_clusters or n_neighbors",
            DisconnectedGraphWarning,
        )


@dataclass(frozen=True, eq=False)
class PosedClustering(PosedLaplacian):
    """Smallest eigenvectors of the whole graph, with rows of unit norm if `normalize_rows`."""

    normalize_rows: bool

    def coordinates(self, spectra: Spectra) -> Array:
        Y = super().coordinates(spectra)
        return unit_rows(Y) if self.normalize_rows else Y

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> KernelExtension:
        inner: Any = super().extend(spectra, layout, embedding)
        extension: LaplacianExtension = replace(inner, omits_constant=False)
        return UnitRows(extension) if self.normalize_rows else extension


@dataclass(frozen=True, eq=False)
class UnitRows(KernelExtension):
    """An extension whose coordinates are scaled to unit norm."""

    inner: LaplacianExtension

    def rows(self, X: Matrix) -> Matrix:
        return self.inner.rows(X)

    @property
    def numbers_per_row(self) -> int:
        return self.inner.numbers_per_row

    def transform(self, X: Matrix) -> Array:
        return unit_rows(self.inner.transform(X))

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        return self.inner.equivalent_kernel(X, known)

    def kernel_pairs(self, X: Matrix) -> KernelPairs:
        """The kernel at pairs of new points, with the eigenfunctions before scaling."""
        return self.inner.kernel_pairs(X)


def unit_rows(Y: Array) -> Array:
    """Scale rows to unit norm; rows of zeros do not change."""
    length = np.linalg.norm(Y, axis=1, keepdims=True)
    return np.asarray(Y / np.where(length > 0, length, 1.0))
