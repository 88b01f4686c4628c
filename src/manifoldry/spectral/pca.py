"""Principal component analysis."""

from typing import Any

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.eigen import EigenSolver, Spectra
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.gram import LinearGram
from manifoldry.util.typing import Array, RandomState


@shared_docs
class PCA(SpectralEmbedder):
    """Project on the directions of largest variance.

    Maximizes the variance of the coordinates, which is the same as minimizing the squared
    distance between the data and their projection. The map is linear both ways. Use it first:
    what PCA already shows needs no curved map, and its spectrum tells how much is left.

    Whichever is smaller of the n × n Gram matrix and the d × d covariance is decomposed, so
    few rows with very many features are as cheap as the reverse. Sparse data stay sparse.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates, at most ``min(n_samples - 1, n_features)``; by default two, or what
        the data allow.
    {eigen_solver}
    {random_state}

    Attributes
    ----------
    {n_components_}
    embedding_ : array of shape (n_samples, n_components)
        Coordinates in the units of the data.
    components_ : array of shape (n_components, n_features)
        Directions, orthonormal rows; zero where the data have no further direction.
    mean_ : array of shape (n_features,)
        Center of the data.
    explained_variance_, explained_variance_ratio_ : arrays of shape (n_components,)
        Variance along each direction (with n - 1), and its fraction of the whole.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the centered Gram matrix: n - 1 times the variances.
    loss_ : float
        Fraction of the variance that the coordinates leave out.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

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
    ) -> None:
        self.n_components = n_components
        self.eigen_solver = eigen_solver
        self.random_state = random_state

    def _pose(self, data: Input) -> LinearGram:
        return PrincipalComponents.of(data)

    def _max_components(self, data: Input) -> tuple[int, str]:
        return min(data.n_samples - 1, data.n_features), "min(n_samples - 1, n_features)"


class PrincipalComponents(LinearGram):
    """PCA's reading of the Gram matrix: fractions of the variance."""

    def loss(self, spectra: Spectra) -> float:
        return max(0.0, 1 - float(self._fractions(spectra).sum())) if self.inertia else 0.0

    def fitted_attributes(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        variances = spectra.largest.values * self.unit**2 / (self.data.n_samples - 1)
        return {
            "explained_variance_": variances,
            "explained_variance_ratio_": self._fractions(spectra),
            "mean_": extension.mean,
            "components_": extension.components.T,
        }

    def _fractions(self, spectra: Spectra) -> Array:
        return spectra.largest.values / (self.inertia or 1.0)
