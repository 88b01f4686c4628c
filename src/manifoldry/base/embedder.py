"""What all embeddings share: fit, map points both ways, return training rows to their place."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.score import score
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.regression import MapSpacing, coordinate_redundancy
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_count
from manifoldry.util.rows import RowLookup
from manifoldry.util.threads import threads_allowed
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import check_data, owned

_DEFAULT_COMPONENTS = 2


class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of all embeddings.

    A subclass computes ``embedding_`` in ``_fit`` and leaves in ``_extension`` what places new
    points, in ``_inverse`` the way back.
    """

    n_components: int | None
    embedding_: Array

    # Coordinates of new points.
    _extension: Extension
    # The parameter that says how many coordinates there are.
    _counted_by = "n_components"
    # Attributes that the last fit set; scikit-learn keeps others on an estimator for itself.
    _learned: frozenset[str] = frozenset()
    # Finds training rows among new ones; None where the data themselves were never seen.
    _lookup: RowLookup | None = None
    # From the map to the data; None where the data themselves were never seen.
    _inverse: Inverse | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of `X`; where that fails, a model fitted before stays as it was.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The data, or what the estimator's ``metric`` says is precomputed.
        y : ignored
            Present for scikit-learn's sake.
        """
        former = {name: vars(self)[name] for name in {*self._learned, "_learned"} & set(vars(self))}
        self._forget()
        before = set(vars(self))
        try:
            with threads_allowed(getattr(self, "n_jobs", None)):
                self._fit(X)
        except BaseException:
            self._forget_all_but(before)  # half a model is none
            self.__dict__.update(former)
            raise
        self._learned = frozenset(vars(self)).difference(before)
        return self

    @abstractmethod
    def _fit(self, X: Any) -> None:
        """Compute the embedding of `X` and what maps points both ways."""

    score = score

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Compute the embedding of `X` and return it, (n_samples, n_components)."""
        return self.fit(X).embedding_.copy()

    def transform(self, X: Any) -> Array:
        """Place new points on the map, each by itself; training rows return to their place.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            New data; where the fit was on precomputed values, those between new and training
            points.
        """
        check_is_fitted(self)
        data = self._read(X, reset=False)
        with threads_allowed(getattr(self, "n_jobs", None)):
            return self._place(data).astype(float_dtype(data), copy=False)

    def _place(self, data: Matrix) -> Array:
        placed = np.empty((data.shape[0], self._n_features_out))
        known = self._identical(data)
        placed[known >= 0] = self.embedding_[known[known >= 0]]
        new = np.flatnonzero(known < 0)
        if len(new):
            placed[new] = self._extension.transform(data[new])
        return placed

    def inverse_transform(
        self, X: Any, *, return_distance: bool = False
    ) -> Array | tuple[Array, Array]:
        """Turn map positions into data.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Positions on the map.
        return_distance : bool, default=False
            Also return how far each position is from the embedded data, in units of the map's
            own spacing: about 1 among the data; beyond 2 or 3 the result extrapolates.

        Returns
        -------
        array of shape (n_samples, n_features), and the distances if asked for
        """
        Z = self._check_positions(X)
        data = self._invert(Z.astype(np.float64)).astype(Z.dtype, copy=False)
        if not return_distance:
            return data
        return data, MapSpacing(self.embedding_[self._on_map]).remoteness(Z)

    def _check_positions(self, X: Any) -> Array:
        check_is_fitted(self)
        Z = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if Z.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {Z.shape[1]} columns; the map has n_components={self._n_features_out}"
            )
        return Z

    def extension_error(self, X: Any) -> float:
        """Largest error of the bare extension formula at the training rows, relative to the map.

        ``transform`` returns training rows to their place by looking them up. This figure tells
        how well the formula that places all other points would have done it.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The training data, as they were passed to ``fit``.
        """
        check_is_fitted(self)
        data = self._read(X, reset=False)
        if data.shape[0] != len(self.embedding_):
            raise ValueError(
                f"X has {data.shape[0]} rows; pass all {len(self.embedding_)} training rows"
            )
        rows = self._on_map
        error = np.abs(self._extension.transform(data)[rows] - self.embedding_[rows]).max()
        return float(error / (np.abs(self.embedding_[rows]).max() or 1.0))

    def redundancy(self) -> Array:
        """How much of each coordinate is new beside those before it: 0 nothing, 1 all of it.

        See :func:`manifoldry.metrics.redundancy`; where some are near 0,
        :class:`~manifoldry.NonRedundant` around this estimator says more in as many coordinates.
        """
        check_is_fitted(self)
        return coordinate_redundancy(self.embedding_[self._on_map])

    def _read(self, X: Any, reset: bool) -> Matrix:
        """Validate data; on fitting, keep a copy that the caller cannot change."""
        if isinstance(X, NeighborGraph):
            raise TypeError(f"{type(self).__name__} takes data, not a NeighborGraph")
        data = check_data(self, X, reset=reset, ensure_min_samples=2 if reset else 1)
        return owned(data, X) if reset else data

    def _forget(self) -> None:
        """Drop what an earlier fit left: with other parameters not all of it is replaced."""
        self._forget_all_but(set(vars(self)).difference(self._learned, {"_learned"}))

    def _forget_all_but(self, kept: set[str]) -> None:
        for name in set(vars(self)).difference(kept):
            delattr(self, name)

    def _largest_components(self, data: Any) -> tuple[int, str]:
        """The largest n_components the data allow, and what sets it."""
        return data.shape[0] - 1, "n_samples - 1"

    def _check_components(self, data: Any) -> None:
        bound, limit = self._largest_components(data)
        name = self._counted_by
        if getattr(self, name) is None:
            self.n_components_ = min(_DEFAULT_COMPONENTS, bound)
            return
        value = self.n_components_ = check_count(name, getattr(self, name))
        if value > bound:
            raise ValueError(
                f"{name}={value} must be at most {limit}={bound}; pass {name}={bound} or fewer"
            )

    def _identical(self, data: Matrix) -> Any:
        """Training row identical to each row, or -1; without stored data nobody is known."""
        if self._lookup is None:
            return np.full(data.shape[0], -1)
        return self._lookup.find(data)

    def _invert(self, Z: Array) -> Array:
        if self._inverse is None:
            raise ValueError(
                f"this {type(self).__name__} was fitted on precomputed values, so it never saw "
                "the data that inverse_transform would have to return; fit it on the data"
            )
        return self._inverse.predict(Z)

    @property
    def _on_map(self) -> Any:
        """Rows that are on the map: a policy for disconnected graphs may have left some out."""
        return np.flatnonzero(np.isfinite(self.embedding_).all(axis=1))

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that fails half-way may leave other attributes behind.
        return hasattr(self, "_extension")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def float_dtype(data: Any) -> Any:
    """Type of the coordinates: single precision for data in single precision."""
    return np.float32 if getattr(data, "dtype", None) == np.float32 else np.float64
