"""Inverse of an embedding with a conformal prediction radius."""

from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
)
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.docs import shared_docs
from manifoldry.base.dominant_points import (
    takes_n_neighbors,
    unchecked_dominance,
    warn_if_dominated,
)
from manifoldry.base.resources import on_its_device
from manifoldry.base.score import score
from manifoldry.base.walk import walk
from manifoldry.exceptions import CalibrationWarning, NoveltyWarning, ignoring, warn
from manifoldry.extension.far_rows import OFF_THE_MAP
from manifoldry.extension.relative_distance import RelativeDistance, distance_by_estimator
from manifoldry.util.checks import as_generator
from manifoldry.util.named_rows import rows_for
from manifoldry.util.refit import replacing_fit
from manifoldry.util.saved import deep_copied, restore_state, shallow_copied, state_with_version
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import check_data, copy_if_shared, in_precision
from manifoldry.wrappers.calibration import (
    LocalError,
    conformal_quantile,
    conformal_rank,
    rounded_up,
    row_distances,
)


class InverseWithRadius(NamedTuple):
    """Reconstructed data, prediction radii, and whether each is reliable."""

    data: Array
    """Result of `inverse_transform`, (n_samples, n_features)."""
    radius: Array
    """Radius of the ball around `data` that contains the true point with probability `coverage`."""
    reliable: NDArray[np.bool_]
    """False if a position is farther from the embedded points, or its round trip through the data
    ends farther from it, than for 99 % of the held-out points."""


# Fitted attributes of ConformalInverse without an underscore at the end.
_PRIVATE = (
    "_distance_from_map",
    "_size_of_map",
    "_distance_from_data",
    "_local_error",
    "_max_distance",
    "_max_round_trip",
)


class ConformalInverse(
    MetaEstimatorMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """An embedding whose inverse has a prediction radius with guaranteed coverage.

    Split conformal prediction: part of the data is held out from the fit. The reconstruction
    errors of the held-out points, divided by the local error of a regression, determine a radius
    for every position. A new point from the same distribution lies within its radius with
    probability `coverage`, for any method and any data. This holds on average over new points, not
    at each position.

    Parameters
    ----------
    estimator : embedding, default=None
        Any estimator with `transform` and `inverse_transform`; by default
        ``LaplacianEigenmaps()``. A clone is fitted to part of the data. To use a fitted model, pass
        ``sklearn.frozen.FrozenEstimator(model)`` and call `fit` with other data. Its `n_jobs` and
        `device` are used for all computations.
    coverage : float, default=0.9
        Probability that the true point lies within the radius. At least ``coverage / (1 -
        coverage)`` points must be held out, 9 for 0.9; else radii are infinite, with a warning.
    calibration : float, default=None
        Fraction of the data that is held out; by default 0.25, or 0.5 for a frozen estimator. The
        remaining data determine the local errors.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the split; ``None`` is a fixed seed.

    Attributes
    ----------
    estimator_ : embedding
        The fitted clone.
    embedding_ : array of shape (n_samples, n_components)
        Embedding of the data; held-out rows are embedded by `transform`.
    held_out_ : array
        Indices of the held-out rows.
    errors_ : array of shape (n_held_out,)
        Reconstruction errors of the held-out rows.
    factor_ : float
        Ratio of the radius to the local error.

    See Also
    --------
    manifoldry.metrics.reconstruction : the mean error on held-out data.
    UKR : a method whose inverse is part of its objective.

    References
    ----------
    J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman, "Distribution-free predictive
    inference for regression", Journal of the American Statistical Association 113 (2018).

    Examples
    --------
    >>> from manifoldry import ConformalInverse, Isomap
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, _ = make_swiss_roll(800, random_state=0)
    >>> model = ConformalInverse(Isomap(2, n_neighbors=7), coverage=0.9).fit(X)
    >>> X_new, _ = make_swiss_roll(300, random_state=1)
    >>> back, radius, reliable = model.inverse_with_radius(model.transform(X_new))
    >>> error = ((back - X_new) ** 2).sum(axis=1) ** 0.5
    >>> bool(0.85 < (error <= radius).mean() < 0.95), bool(reliable.mean() > 0.9)
    (True, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        coverage: float = 0.9,
        calibration: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.calibration = calibration
        self.random_state = random_state

    @on_its_device
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the estimator to part of `X` and compute its reconstruction errors on the rest.

        If this fails, the attributes of an earlier fit are kept.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The data.
        y : ignored
            For compatibility with scikit-learn.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        _check_fraction("coverage", self.coverage)
        if self.calibration is not None:
            _check_fraction("calibration", self.calibration)
        with replacing_fit(self, _PRIVATE):
            self._fit(X)
        return self

    def _fit(self, X: Any) -> None:
        estimator = self._unfitted_estimator()
        data = check_data(self, X, reset=True, ensure_min_samples=4)
        seen, held_out = self._split(data.shape[0], as_generator(self.random_state, unset=0))
        if not isinstance(estimator, FrozenEstimator):
            with unchecked_dominance():  # it would number the rows of this part of the data
                estimator.fit(data[seen])
        Z = _transform_rows(estimator, data)
        usable = np.asarray(np.isfinite(Z).all(axis=1))
        seen, held_out = seen[usable[seen]], held_out[usable[held_out]]
        self._check_enough(len(held_out))
        self.estimator_, self.embedding_ = estimator, in_precision(Z, data.dtype)
        warn_if_dominated(self.embedding_, takes_n_neighbors(estimator))
        self.held_out_ = held_out
        self._distance_from_map = RelativeDistance.of_points(Z[seen])
        self._size_of_map = float(np.abs(Z[seen]).max())
        data = copy_if_shared(data, X)
        self._distance_from_data = distance_by_estimator(data, estimator)
        self._local_error = LocalError.fit(Z[seen], data[seen])
        self._calibrate(Z[held_out], data[held_out])

    def _calibrate(
        self,
        Z: Array,
        X: Matrix,
        quantile: float = 0.99,  # fraction of held-out points that are reliable
        rounding_error: float = 1e-5,  # of float32, relative to the embedding
    ) -> None:
        back = self._inverse(Z)
        self.errors_ = row_distances(X, back)
        distances = np.minimum(self._distance_from_map.of(Z), np.finfo(np.float64).max)
        self._max_distance = float(np.quantile(distances, quantile)) or 1.0
        self.factor_ = conformal_quantile(self.errors_ / self._error_at(Z), self.coverage)
        # Round trips of linear maps differ by rounding errors only, which must not count.
        rounding = rounding_error * self._size_of_map
        self._max_round_trip = max(
            rounding, float(np.quantile(self._round_trip(Z, back), quantile))
        )

    def _unfitted_estimator(self) -> Any:
        from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps

        given = LaplacianEigenmaps() if self.estimator is None else self.estimator
        for needed in ("fit", "transform", "inverse_transform", "get_params"):
            if not hasattr(given, needed):
                raise TypeError(
                    f"estimator={given!r} has no {needed}, which ConformalInverse needs"
                )
        if get_tags(given).input_tags.pairwise:
            raise ValueError(
                f"estimator={given!r} takes precomputed values, so it cannot reconstruct data; "
                "pass an estimator that takes data"
            )
        estimator = clone(given)
        if hasattr(estimator, "set_output") and not isinstance(estimator, FrozenEstimator):
            estimator.set_output(transform="default")
        return estimator

    def _split(self, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Indices of the rows for the fit and the local errors, and of the held-out rows."""
        fraction = 0.5 if isinstance(self.estimator, FrozenEstimator) else 0.25
        fraction = fraction if self.calibration is None else self.calibration
        count = min(max(1, round(fraction * n)), n - 3)
        order = rng.permutation(n)
        return np.sort(order[count:]), np.sort(order[:count])

    def _check_enough(self, n: int) -> None:
        if conformal_rank(n, self.coverage) > n:
            least = rounded_up(self.coverage / (1 - self.coverage))
            warn(
                f"{n} points were held out, but coverage={self.coverage} needs at least {least}, "
                "so radii are infinite; pass more data, a larger calibration or a smaller coverage",
                CalibrationWarning,
            )

    score = score
    __getstate__ = state_with_version
    __setstate__ = restore_state
    __copy__ = shallow_copied
    __deepcopy__ = deep_copied
    walk = walk

    @on_its_device
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Compute the embedding of `X` and return it.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The data, as for :meth:`fit`.
        y : ignored
            Present for API consistency.

        Returns
        -------
        array of shape (n_samples, n_components)
            A copy of ``embedding_``.
        """
        return self.fit(X).embedding_.copy()

    @on_its_device
    @shared_docs
    def transform(self, X: Any, *, return_distance: bool = False) -> Array | tuple[Array, Array]:
        """Embed new points with the estimator's `transform`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            New data.
        {return_distance}

        Returns
        -------
        {coordinates}
        """
        check_is_fitted(self)
        data = check_data(self, X, reset=False)
        distances = self._distance_from_data.of(data) if return_distance else None
        self._distance_from_data.warn_if_far(data, distances)
        placed = in_precision(_transform_rows(self.estimator_, data), data.dtype)
        return placed if distances is None else (placed, distances)

    @on_its_device
    @shared_docs
    def novelty(self, X: Any) -> Array:
        """Return the distance of each row of `X` from the data passed to `fit`.

        See :class:`~manifoldry.extension.RelativeDistance`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows as for :meth:`transform`.

        Returns
        -------
        {distances}
        """
        check_is_fitted(self)
        return self._distance_from_data.of(check_data(self, X, reset=False))

    @on_its_device
    @shared_docs
    def inverse_transform(
        self, X: Any, *, return_distance: bool = False
    ) -> Array | tuple[Array, Array]:
        """Reconstruct data from positions with the estimator's `inverse_transform`.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Coordinates.
        {return_map_distance}

        Returns
        -------
        {restored_data}
        """
        check_is_fitted(self)
        with ignoring(NoveltyWarning):  # some estimators have none
            data = np.asarray(self.estimator_.inverse_transform(X))
        Z = np.asarray(X, dtype=np.float64)
        distances = self._distance_from_map.of(Z) if return_distance else None
        self._distance_from_map.warn_if_far(Z, distances, text=OFF_THE_MAP)
        return data if distances is None else (data, distances)

    @on_its_device
    def inverse_with_radius(self, X: Any) -> InverseWithRadius:
        """Reconstruct data from positions, each with its radius and whether it is reliable.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Positions in the embedding.

        Returns
        -------
        InverseWithRadius
            ``data``, ``radius`` and ``reliable``.
        """
        check_is_fitted(self)
        with ignoring(NoveltyWarning):  # `reliable` says which positions are off the map
            data = np.asarray(self.estimator_.inverse_transform(X))
        Z, back = np.asarray(X, dtype=np.float64), np.asarray(data, dtype=np.float64)
        near = self._distance_from_map.of(Z) <= self._max_distance
        returns = self._round_trip(Z, back) <= self._max_round_trip
        return InverseWithRadius(data, self.factor_ * self._error_at(Z), near & returns)

    def _error_at(self, Z: Array) -> Array:
        """Local error, increased in proportion to the distance for positions far from all data."""
        return self._local_error.at(Z) * np.maximum(
            1.0, self._distance_from_map.of(Z) / self._max_distance
        )

    def _inverse(self, Z: Array) -> Array:
        with ignoring(NoveltyWarning):
            return np.asarray(self.estimator_.inverse_transform(Z), dtype=np.float64)

    def _round_trip(self, Z: Array, back: Array) -> Array:
        """Distance between each position and the embedding of its reconstruction."""
        returned = _transform_rows(self.estimator_, back)
        distance = row_distances(returned, Z)
        return np.where(np.isfinite(distance), distance, np.inf)

    @property
    def _n_features_out(self) -> int:
        # A loaded model of distributed data has no embedding of all rows.
        return int(vars(self).get("landmark_model_", self).embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "factor_")

    def __sklearn_tags__(self) -> Any:
        from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps

        tags = super().__sklearn_tags__()
        inner = get_tags(LaplacianEigenmaps() if self.estimator is None else self.estimator)
        tags.input_tags, tags.transformer_tags = inner.input_tags, inner.transformer_tags
        return tags


def _transform_rows(estimator: Any, X: Any) -> Array:
    """Result of `transform`, without warnings about unlike rows."""
    with ignoring(NoveltyWarning):
        return np.asarray(estimator.transform(rows_for(estimator, X)), dtype=np.float64)


def _check_fraction(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name}={value!r} must be a number between 0 and 1, both excluded")
