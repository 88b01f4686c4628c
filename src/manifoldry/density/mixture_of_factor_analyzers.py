"""Mixture of factor analyzers."""

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.resources import on_its_device
from manifoldry.density.base import DensityEstimator
from manifoldry.density.expectation_maximization import (
    ExpectationMaximization,
    Fit,
    initial_mixture,
)
from manifoldry.density.factors import FactorMixture
from manifoldry.density.windows import log_sum
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.util.checks import as_generator, check_count, check_nonnegative, check_positive
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, RandomState
from manifoldry.util.validation import read_array, streaming_blocks

_TINY = float(np.finfo(float).eps)  # smallest variance of a feature, relative to the largest


class MixtureOfFactorAnalyzers(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityEstimator):
    """Mixture of Gaussians with low-rank plus diagonal covariances.

    Maximizes the likelihood of y = μⱼ + Λⱼz + noise, with component j of probability πⱼ, a few
    standard normal factors z, and independent noise in each feature, by expectation-maximization
    (Ghahramani & Hinton 1996). The components approximate a curved manifold by tangent planes, with
    local coordinates (`transform`) and their inverse. Use it if features have different noise
    variances, or for a density with few parameters; :class:`ManifoldParzen` is more flexible.

    Parameters
    ----------
    n_components : int, default=1
        Number of Gaussians, as in :class:`sklearn.mixture.GaussianMixture`.
    n_factors : int, default=None
        Number of factors of each Gaussian, its dimension without noise; by default two, or fewer if
        the data have fewer features or rows.
    tied_noise : bool, default=True
        Whether all components share the noise variances; otherwise each has its own.
    reg : float, default=1e-6
        Lower bound on the noise variance of each feature, as a fraction of its variance.
    n_init : int, default=1
        Number of k-means initializations; the fit with the highest likelihood is kept.
    max_iter : int, default=500
        Largest number of EM steps for each initialization.
    tol : float, default=1e-4
        EM stops if a step increases the log-likelihood per row by less than this.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the initializations; ``None`` is a fixed seed.

    Attributes
    ----------
    n_components_ : int
        Number of components; components with too few points are removed, with a warning.
    n_factors_ : int
        Number of factors.
    weights_ : array of shape (n_components,)
        Probability of each component.
    means_ : array of shape (n_components, n_features)
        Mean of each component.
    loadings_ : array of shape (n_components, n_features, n_factors)
        Factor loadings Λ. The factors of a component are rotated so that they are independent given
        the data, most informative first.
    noise_ : array of shape (n_components, n_features)
        Standard deviation of the noise of each feature.
    trace_ : array
        Log-likelihood per row before each step, since a component was last removed; it never
        decreases.
    n_iter_ : int
        Number of EM steps.
    converged_ : bool
        Whether the last step increased the log-likelihood by less than `tol`.

    See Also
    --------
    ManifoldParzen : a Gaussian around every point.
    FromDensity : embeds a sample from the density.
    sklearn.mixture.GaussianMixture : Gaussians with other covariances.

    References
    ----------
    Z. Ghahramani and G. E. Hinton, "The EM algorithm for mixtures of factor analyzers", Technical
    Report CRG-TR-96-1, University of Toronto, 1996.

    Examples
    --------
    >>> from manifoldry.datasets import make_s_curve
    >>> from manifoldry.density import MixtureOfFactorAnalyzers
    >>> X, _ = make_s_curve(500, noise=0.05, random_state=0)
    >>> model = MixtureOfFactorAnalyzers(10, n_factors=2, random_state=0).fit(X)
    >>> bool(abs(X - model.reconstruct(X)).mean() < 0.05)
    True
    >>> labels, Z = model.local_coordinates(X)
    >>> Z.shape
    (500, 2)
    """

    def __init__(
        self,
        n_components: int = 1,
        n_factors: int | None = None,
        *,
        tied_noise: bool = True,
        reg: float = 1e-6,
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 1e-4,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.n_factors = n_factors
        self.tied_noise = tied_noise
        self.reg = reg
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    _runs_on_host = "it is not implemented there"

    def _learn(self, data: Array) -> FactorMixture:
        n_components, n_factors = self._counts(data)
        points = self._points(data)
        em = self._iteration(points)
        rng = as_generator(self.random_state, unset=0)
        starts = [
            initial_mixture(points, n_components, n_factors, em.floor, em.tied, rng)
            for _ in range(check_count("n_init", self.n_init))
        ]
        fits = [em.run(points, start) for start in starts]
        best = max(fits, key=lambda fit: fit.trace[-1])
        mixture = best.mixture.rotated()
        self._store(best, mixture)
        return mixture

    def _counts(self, data: Array, default_factors: int = 2) -> tuple[int, int]:
        """Numbers of components and factors, checked against the data."""
        n_components = check_count("n_components", self.n_components)
        distinct = len(np.unique(RowLookup.of(data).identical(data)))
        if distinct == 1:
            raise ValueError(
                "all rows of X coincide, so that they have no density; pass distinct rows"
            )
        if n_components > distinct:
            raise ValueError(
                f"n_components={n_components} must be at most the number of distinct rows, "
                f"{distinct}; pass n_components={distinct} or fewer"
            )
        bound, limit = min((data.shape[1], "n_features"), (len(data) - 1, "n_samples - 1"))
        if self.n_factors is None:
            return n_components, min(default_factors, bound)
        n_factors = check_count("n_factors", self.n_factors)
        if n_factors > bound:
            raise ValueError(
                f"n_factors={n_factors} must be at most {limit}={bound}; "
                f"pass n_factors={bound} or fewer"
            )
        return n_components, n_factors

    def _iteration(self, points: Array) -> ExpectationMaximization:
        variance = points.var(axis=0)
        floor = check_positive("reg", self.reg) * np.maximum(variance, _TINY * variance.max())
        max_iter, tol = check_count("max_iter", self.max_iter), check_nonnegative("tol", self.tol)
        return ExpectationMaximization(bool(self.tied_noise), floor, max_iter, tol)

    def _store(self, fit: Fit, mixture: FactorMixture) -> None:
        """Set the fitted attributes, in the units of the data."""
        unit = self._frame.unit
        self.n_components_, self.n_factors_ = mixture.n, mixture.loadings.shape[2]
        self.weights_ = mixture.weights
        self.means_ = mixture.means * unit + self._frame.origin
        self.loadings_ = mixture.loadings * unit
        self.noise_ = np.sqrt(mixture.noise) * unit
        self.trace_ = fit.trace + self._log_unit
        self.n_iter_, self.converged_ = fit.n_iter, fit.converged
        if not fit.converged:
            warn(
                f"EM did not converge in max_iter={self.max_iter} steps; increase max_iter or tol",
                ConvergenceWarning,
            )

    @on_its_device
    def bic(self, X: Any) -> float:
        """Compute the Bayesian information criterion, to choose `n_components` and `n_factors`.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The data.

        Returns
        -------
        float
            The criterion; lower is better.
        """
        density = self.score_samples(X)
        n_parameters = self._mixture.n_parameters(bool(self.tied_noise))
        return float(-2 * density.sum() + n_parameters * np.log(len(density)))

    @on_its_device
    def predict_proba(self, X: Any) -> Array:
        """Compute the posterior probability of each component for each row.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The data.

        Returns
        -------
        array of shape (n_samples, n_components)
            The probabilities; rows add up to 1.
        """
        points = self._points(self._read(X))
        log_joint = self._mixture.log_joint(points)
        return np.exp(log_joint - log_sum(log_joint)[:, None])

    @on_its_device
    def predict(self, X: Any) -> IntArray:
        """Find the most probable component of each row.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The data.

        Returns
        -------
        array of shape (n_samples,)
            Indices of components.
        """
        return self._assigned(self._read(X))[0]

    @on_its_device
    def local_coordinates(self, X: Any) -> tuple[IntArray, Array]:
        """Find the most probable component of each row, and its coordinates there.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The data.

        Returns
        -------
        labels : array of shape (n_samples,)
            Indices of components.
        coordinates : array of shape (n_samples, n_factors)
            Means E[z | y] of the factors in that component.
        """
        return self._assigned(self._read(X))

    @on_its_device
    def transform(self, X: Any) -> Array:
        """Compute coordinates E[z | y] of each row in its most probable component.

        Coordinates of rows in different components are not comparable; `local_coordinates` also
        returns the components.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The data.

        Returns
        -------
        array of shape (n_samples, n_factors)
            The coordinates.
        """
        return self._assigned(self._read(X))[1]

    @on_its_device
    def inverse_transform(self, X: Any, labels: Any = None) -> Array:
        """Map local coordinates to data: μⱼ + Λⱼz.

        Parameters
        ----------
        X : array of shape (n_samples, n_factors)
            Local coordinates.
        labels : array of int of shape (n_samples,), default=None
            Component of each row, as returned by `predict`; required with several components.

        Returns
        -------
        array of shape (n_samples, n_features)
            The data.
        """
        check_is_fitted(self)
        Z = read_array(X)
        if Z.shape[1] != self.n_factors_:
            raise ValueError(
                f"X has {Z.shape[1]} columns; pass n_factors_={self.n_factors_} local coordinates"
            )
        points = self._mixture.positions(Z.astype(np.float64), self._check_labels(labels, len(Z)))
        return self._data(points, Z.dtype)

    @on_its_device
    def reconstruct(self, X: Any) -> Array:
        """Map each row to local coordinates in its most probable component and back.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The data.

        Returns
        -------
        array of shape (n_samples, n_features)
            The rows without noise, on the tangent planes.
        """
        labels, Z = self.local_coordinates(X)
        return self.inverse_transform(Z, labels)

    @on_its_device
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> tuple[Array, IntArray]:
        """Draw random points from the density, and their components, as GaussianMixture does.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.
        random_state : int, RandomState, Generator or None, default=None
            Seed; with ``None``, each call draws different points.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            The points.
        labels : array of shape (n_samples,)
            Indices of their components.
        """
        check_is_fitted(self)
        count = check_count("n_samples", n_samples)
        drawn, labels = self._mixture.draw(count, as_generator(random_state))
        return self._data(drawn, self._dtype), labels

    def _assigned(self, data: Array) -> tuple[IntArray, Array]:
        labels = np.empty(len(data), dtype=np.intp)
        Z = np.empty((len(data), self.n_factors_), dtype=data.dtype)
        for block in streaming_blocks(data):
            points = self._points(data[block])
            labels[block] = self._mixture.log_joint(points).argmax(axis=1)
            Z[block] = self._mixture.local_coordinates(points, labels[block])
        return labels, Z

    def _check_labels(self, labels: Any, count: int) -> IntArray:
        if labels is None:
            if self.n_components_ > 1:
                raise ValueError(
                    f"labels are required with {self.n_components_} components; pass the result "
                    "of predict"
                )
            return np.zeros(count, dtype=np.intp)
        found = np.asarray(labels)
        if found.shape != (count,) or not np.issubdtype(found.dtype, np.integer):
            raise ValueError(f"labels must be {count} integers, one for each row of X")
        if count and not 0 <= found.min() <= found.max() < self.n_components_:
            raise ValueError(
                f"labels must be between 0 and n_components_ - 1 = {self.n_components_ - 1}"
            )
        return found

    @property
    def _n_features_out(self) -> int:
        return self.n_factors_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
