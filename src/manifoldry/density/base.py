"""Base class of the density estimators: validation, scaling and scoring."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.resources import on_its_device
from manifoldry.neighbors.distances import Frame
from manifoldry.util.refit import replacing_fit
from manifoldry.util.saved import restore_state, state_with_version
from manifoldry.util.typing import Array
from manifoldry.util.validation import check_data, in_precision

_PRIVATE = ("_mixture", "_frame", "_dtype")


class DensityEstimator(DensityMixin, BaseEstimator):
    """Base class of density estimators; a subclass fits ``_mixture`` in scaled coordinates."""

    __getstate__ = state_with_version
    __setstate__ = restore_state

    _runs_on_host = "only the search for neighbors is computed there"
    _mixture: Any
    _frame: Frame
    _dtype: Any

    @on_its_device
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the density to the rows of `X`; if this fails, an earlier fit is kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The data.
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        with replacing_fit(self, _PRIVATE):
            data = check_data(self, X, reset=True, ensure_min_samples=2, accept_sparse=False)
            self._frame, self._dtype = Frame.of(data), data.dtype
            self._mixture = self._learn(data)
        return self

    @abstractmethod
    def _learn(self, data: Array) -> Any:
        """Set the fitted attributes, in the units of the data, and return the mixture."""

    @on_its_device
    def score_samples(self, X: Any) -> Array:
        """Compute the log density at each row of `X`.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples,)
            The logarithms of the density.
        """
        points = self._points(self._read(X))
        return np.asarray(self._mixture.log_density(points) + self._log_unit)

    @on_its_device
    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows of `X`.

        The mean, as in :class:`sklearn.mixture.GaussianMixture`, so that scores of folds of
        different size are comparable; :class:`sklearn.neighbors.KernelDensity` returns the sum.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Points, for example held-out data.
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        float
            The mean; higher is better.
        """
        return float(self.score_samples(X).mean())

    def _read(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(check_data(self, X, reset=False, accept_sparse=False))

    def _points(self, data: Array) -> Array:
        return np.asarray(self._frame.apply(data))

    def _data(self, points: Array, dtype: Any) -> Array:
        with np.errstate(over="ignore"):
            data = points * self._frame.unit + self._frame.origin
        return in_precision(data, dtype)

    @property
    def _log_unit(self) -> float:
        """Log density in the units of the data minus that in scaled coordinates."""
        return float(-self.n_features_in_ * np.log(self._frame.unit))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_mixture") or hasattr(self, "landmark_model_")
