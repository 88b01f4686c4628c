"""Principal component analysis."""

from typing import Any

from manifoldry.base.distributed import DistributedFit
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.device import Device
from manifoldry.distributed.rows import Rows
from manifoldry.eigen import EigenSolver, Spectra
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.gram import LinearGram
from manifoldry.util.typing import Array, RandomState


@shared_docs
class PCA(SpectralEmbedder):
    """Principal component analysis: project the data onto the directions of largest variance.

    Maximizes the variance of the coordinates, or equivalently minimizes the squared distance
    between the data and their projection. Use it as a baseline for nonlinear methods: if it
    explains most of the variance, they are not needed.

    Decomposes the smaller of the n × n Gram matrix and the d × d covariance matrix, so few rows
    with many features are as fast as the reverse. Sparse data stay sparse.

    The model keeps up to 1000 training rows, with which ``novelty`` compares new rows.

    Of a Dask collection all rows are used: their sums of squares and products up to 2000 features,
    beyond that a randomized iteration of 15 passes over the data, or more if variances are nearly
    equal (``eigen_solver=Randomized(max_iter=1)`` stops after 15, with a warning).

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates, at most ``min(n_samples - 1, n_features)``. None means 2, or the
        maximum if that is smaller.
    {eigen_solver}
    {random_state}
    {device}

    Attributes
    ----------
    {n_components_}
    {scaled_embedding_}
    components_ : array of shape (n_components, n_features)
        Principal axes, as orthonormal rows; zero beyond the rank of the data.
    mean_ : array of shape (n_features,)
        Mean of the data.
    explained_variance_, explained_variance_ratio_ : arrays of shape (n_components,)
        Variance along each axis (with ``n_samples - 1`` degrees of freedom), and its fraction of
        the total variance.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the centered Gram matrix, ``n_samples - 1`` times the variances.
    loss_ : float
        Fraction of the variance that the coordinates do not explain.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    KernelPCA : the same with a kernel.
    ClassicalMDS : the same from distances.

    References
    ----------
    K. Pearson, "On lines and planes of closest fit to systems of points in space", Philosophical
    Magazine 2 (1901).

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> X = np.array([[0.0, 0.0, 1.0], [2.0, 0.1, 1.0], [4.0, -0.1, 1.0], [6.0, 0.0, 1.0]])
    >>> model = PCA(n_components=1).fit(X)
    >>> model.explained_variance_ratio_.round(3)
    array([0.999])
    >>> model.inverse_transform(model.transform(X)).shape
    (4, 3)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        eigen_solver: str | EigenSolver = "auto",
        random_state: RandomState = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_components = n_components
        self.eigen_solver = eigen_solver
        self.random_state = random_state
        self.device = device

    def _pose(self, data: Input) -> LinearGram:
        return PrincipalComponents.of(data)

    def _fit_all_rows(self, rows: Rows) -> DistributedFit:
        from manifoldry.spectral.distributed_pca import fit_principal_components

        return fit_principal_components(self, rows)

    def _max_components(self, data: Input) -> tuple[int, str]:
        return min(data.n_samples - 1, data.n_features), "min(n_samples - 1, n_features)"


class PrincipalComponents(LinearGram):
    """Gram matrix of centered data with the attributes and the loss of PCA."""

    @property
    def count(self) -> int:
        """Number of rows of the data."""
        return self.data.n_samples

    def loss(self, spectra: Spectra) -> float:
        return max(0.0, 1 - float(self._fractions(spectra).sum())) if self.inertia else 0.0

    def fitted_attributes(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        variances = spectra.largest.values * self.unit**2 / (self.count - 1)
        return {
            "explained_variance_": variances,
            "explained_variance_ratio_": self._fractions(spectra),
            "mean_": extension.mean,
            "components_": extension.components.T,
        }

    def _fractions(self, spectra: Spectra) -> Array:
        return spectra.largest.values / (self.inertia or 1.0)
