"""Base class of all embeddings: fit, transform and inverse_transform."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.docs import shared_docs
from manifoldry.base.dominant_points import warn_if_dominated
from manifoldry.base.input import Distances, GivenGraph, GraphOptions, Input, Points, RowMatcher
from manifoldry.base.resources import on_its_device
from manifoldry.base.score import score
from manifoldry.base.walk import walk
from manifoldry.exceptions import ManifoldryWarning, counting_rows, warn
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.regression import coordinate_unpredictability
from manifoldry.extension.regressor import (
    check_can_fit,
    check_regressor,
    fit_extension,
    fit_inverse,
)
from manifoldry.extension.relative_distance import (
    DataDistance,
    DistanceOnMap,
    UnknownDistance,
)
from manifoldry.neighbors.disconnected import OPTIONS, DisconnectedPolicy
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_count
from manifoldry.util.saved import deep_copied, restore_state, shallow_copied, state_with_version
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import in_precision, read_array, streaming_blocks

# Parameters of the neighbor graph, with the values for estimators that do not have them.
_GRAPH_PARAMETERS: dict[str, Any] = {
    "n_neighbors": None,
    "radius": None,
    "metric": "euclidean",
    "metric_params": None,
    "n_jobs": None,
}


@shared_docs
class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of all embeddings.

    The method ``_fit`` of a subclass computes the embedding, its extension to new points and its
    inverse.

    Attributes
    ----------
    {embedding_}
    {extension_}
    {inverse_}
    """

    __getstate__ = state_with_version
    __setstate__ = restore_state
    __copy__ = shallow_copied
    __deepcopy__ = deep_copied

    n_components: int | None
    embedding_: Array
    extension_: Extension
    inverse_: Inverse | None

    # Name of the parameter that sets the number of coordinates.
    _dimension_parameter = "n_components"
    # Allowed values of the parameter `disconnected`.
    _disconnected_options: tuple[str, ...] = OPTIONS
    # Allowed strings for the parameters `extension` and `inverse`.
    _named_extensions: tuple[str, ...] = ()
    _named_inverses: tuple[str, ...] = ()
    # Whether `fit` accepts a NeighborGraph in place of data.
    _accepts_graphs = False
    # Names of the attributes that the last fit set. scikit-learn sets others, which must stay.
    _fitted_names: frozenset[str] = frozenset()
    # Finds training rows among new rows; None if `transform` computes all rows by the formula.
    _row_matcher: RowMatcher | None = None
    # Distance of new rows from the training rows.
    _distance_from_data: DataDistance = UnknownDistance("the fit did not measure it")
    # What the fit was given in place of data; None if it has the data.
    _no_data: str | None = None

    @property
    def _input_type(self) -> type[Input]:
        """Type of the input: data, distances, affinities or kernel values."""
        metric = getattr(self, "metric", None)
        return Distances if isinstance(metric, str) and metric == "precomputed" else Points

    @on_its_device
    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of `X`.

        If this fails, the attributes of an earlier fit are kept.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features), or an AnnData
            The data, or precomputed values if the parameters of the estimator say so. An AnnData
            stands for its ``X``, a pair ``(adata, key)`` for ``adata.obsm[key]``.
        y : ignored
            Present for API consistency.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        with self._replacing_fit():
            self._fit(X)
        return self

    @contextmanager
    def _replacing_fit(self) -> Iterator[None]:
        """Replace fitted attributes inside this context; restore the old ones if it raises."""
        former = {
            name: vars(self)[name]
            for name in {*self._fitted_names, "_fitted_names"} & set(vars(self))
        }
        self._delete_attributes_except(set(vars(self)).difference(former))
        before = set(vars(self))
        try:
            yield
        except BaseException:
            self._delete_attributes_except(before)
            self.__dict__.update(former)
            raise
        self._fitted_names = frozenset(vars(self)).difference(before)

    @abstractmethod
    def _fit(self, X: Any) -> None:
        """Compute the embedding of `X`, its extension and its inverse."""

    def _adopt(self, posed: Any, spectra: Any) -> None:
        """Set the fitted attributes from the solution of a posed spectral problem."""
        Y = posed.coordinates(spectra)
        layout = posed.lay_out(Y)
        self.embedding_ = in_precision(layout.place(Y, posed.labels), posed.data.dtype)
        formula = posed.extend(spectra, layout, self.embedding_)
        for name, value in posed.fitted_attributes(spectra, Y, formula).items():
            setattr(self, name, value)
        invert = partial(posed.invert, self.embedding_, formula)
        self._set_extension_and_inverse(posed.data, posed.row_matcher, formula, invert)
        self._fitted_names |= {
            "_row_matcher",
            "_distance_from_data",
            "_distance_on_map",
            "_no_data",
            *(name for name in vars(self) if name.endswith("_")),
        }

    def _set_extension_and_inverse(
        self,
        data: Input,
        row_matcher: RowMatcher | None,
        formula: Extension,
        invert: Callable[[], Any],
    ) -> None:
        """Set ``extension_``, ``inverse_`` and what compares new rows with training rows.

        `formula` and `invert` are the extension and the inverse of the method, which regressors
        passed as parameters replace.
        """
        extension, inverse = self._regressor("extension"), self._regressor("inverse")
        Y = self.embedding_.astype(np.float64)
        self.extension_ = formula
        if extension is not None:
            self.extension_ = fit_extension(extension, data.features, Y, formula)
        self.inverse_ = invert() if inverse is None else fit_inverse(inverse, data.points, Y)
        self._no_data = None if data.points is not None else data.description
        self._row_matcher = row_matcher
        self._distance_from_data = data.distance_from(self._graph_options(data))
        self._distance_on_map = DistanceOnMap(self.embedding_)
        warn_if_dominated(self.embedding_, hasattr(self, "n_neighbors"))

    def _regressor(self, name: str) -> Any:
        """Return the regressor passed as `extension` or `inverse`, or None if none was passed."""
        names = self._named_inverses if name == "inverse" else self._named_extensions
        return check_regressor(name, getattr(self, name, None), names)

    score = score
    walk = walk

    @on_its_device
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Compute the embedding of `X` and return it.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features), or an AnnData
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
        """Compute the coordinates of new points, each independently of the others.

        Rows that are identical to a training row get the coordinates of that row. Warns if many
        rows are unlike the training data.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            New data; if the estimator was fitted on precomputed values, those between new points
            (rows) and training points (columns).
        {return_distance}

        Returns
        -------
        {coordinates}
        """
        rows = self._read_new(X)
        distances = self._distance_from_data.of(rows) if return_distance else None
        self._distance_from_data.warn_if_far(rows, distances)
        placed = in_precision(self._transform_rows(rows), Points(rows).dtype)
        return placed if distances is None else (placed, distances)

    @on_its_device
    def novelty(self, X: Any) -> Array:
        """Return the distance of each row of `X` from the training data, relative to theirs.

        It is about 1 for rows like the training data: 1 is the median of the training rows, each
        measured without itself, and 1 % of them exceed 2. Rows above 2 are unlike the data that the
        model was fitted on, so that their coordinates are not reliable, wherever they lie. It
        depends on the data and the metric only, not on the method; see
        :class:`~manifoldry.extension.RelativeDistance`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows as for :meth:`transform`.

        Returns
        -------
        array of shape (n_samples,)
            The distances, in double precision.
        """
        return self._distance_from_data.of(self._read_new(X))

    def _transform_rows(self, rows: Matrix) -> Array:
        """Coordinates of new rows, in blocks, so that memory does not grow with their number."""
        placed = np.empty((rows.shape[0], self._n_features_out))
        with counting_rows():
            for block in streaming_blocks(rows):
                placed[block] = self._transform_block(rows[block])
        return placed

    def _transform_block(self, rows: Matrix) -> Array:
        placed = np.empty((rows.shape[0], self._n_features_out))
        known = self._identical_training_rows(rows)
        placed[known >= 0] = self.embedding_[known[known >= 0]]
        new = np.flatnonzero(known < 0)
        if len(new):
            some = rows if len(new) == len(known) else rows[new]
            placed[new] = self.extension_.transform(some)
        return placed

    @on_its_device
    @shared_docs
    def inverse_transform(
        self, X: Any, *, return_distance: bool = False
    ) -> Array | tuple[Array, Array]:
        """Compute data from coordinates. Warns if many of them are far from the embedding.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Coordinates.
        {return_map_distance}

        Returns
        -------
        {restored_data}
        """
        Z = self._check_coordinates(X)
        if self.inverse_ is None:
            raise ValueError(self._no_inverse_message())
        distances = self._distance_on_map.of(Z, requested=return_distance)
        data = in_precision(self.inverse_.predict(Z.astype(np.float64)), Z.dtype)
        return data if distances is None else (data, distances)

    def _no_inverse_message(self) -> str:
        name = type(self).__name__
        if self._no_data is not None:
            return (
                f"this {name} was fitted on {self._no_data}, so it does not have the data that "
                "inverse_transform would return; fit it on the data"
            )
        remedy = "pass a regressor as inverse=, such as sklearn.neighbors.KNeighborsRegressor()"
        if "inverse" not in self.get_params(deep=False):
            remedy = "give the class a parameter inverse=None, which takes a regressor"
        return f"this {name} has no inverse, because the method defines none; {remedy}"

    def _check_coordinates(self, X: Any) -> Array:
        check_is_fitted(self)
        Z = read_array(X)
        if Z.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {Z.shape[1]} columns, but the embedding has "
                f"n_components={self._n_features_out}; pass one column per coordinate"
            )
        return Z

    @on_its_device
    def extension_error(self, X: Any) -> float:
        """Return the largest error of the out-of-sample formula on the training data.

        ``transform`` looks up the coordinates of training rows. This method computes them by the
        formula for new points instead, and returns the largest deviation from ``embedding_``
        divided by the largest absolute coordinate.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The training data, as passed to ``fit``.

        Returns
        -------
        float
            The largest deviation: 0 if the formula is exact at the training rows.
        """
        data = self._read_new(X)
        if data.shape[0] != len(self.embedding_):
            raise ValueError(
                f"X has {data.shape[0]} rows, but the training data have "
                f"{len(self.embedding_)}; pass the training data"
            )
        rows = self._embedded_rows
        error = np.abs(self.extension_.transform(data)[rows] - self.embedding_[rows]).max()
        return float(error / (np.abs(self.embedding_[rows]).max() or 1.0))

    @on_its_device
    def unpredictability(self) -> Array:
        """Return for each coordinate the fraction that the preceding coordinates cannot predict.

        0 means that a coordinate is a function of those before it, 1 that it is unrelated to them;
        see :func:`manifoldry.metrics.unpredictability`. If some values of a spectral estimator are
        near 0, wrap it in :class:`~manifoldry.NonRedundant`. Coordinates of iterative estimators,
        such as t-SNE, are computed together and have no order, and they cannot be wrapped.

        Returns
        -------
        array of shape (n_components,)
            The fractions.
        """
        check_is_fitted(self)
        return coordinate_unpredictability(self.embedding_[self._embedded_rows])

    def _read(self, X: Any) -> Input:
        """Validate training data or their neighbor graph."""
        data = self._read_graph(X) if isinstance(X, NeighborGraph) else self._read_rows(X)
        for name, rows in (("extension", data.features), ("inverse", data.points)):
            check_can_fit(name, self._regressor(name), rows, data.description)
        return data

    def _read_rows(self, X: Any) -> Input:
        return self._input_type.read(self, X)

    def _read_graph(self, X: NeighborGraph) -> Input:
        if not self._accepts_graphs:
            raise TypeError(
                f"{type(self).__name__}.fit takes data, not a NeighborGraph; a class whose _pose "
                "needs only the graph can set _accepts_graphs = True"
            )
        return GivenGraph.read(self, X)

    def _read_new(self, X: Any) -> Matrix:
        check_is_fitted(self)
        return self._input_type.read_new(self, X)

    def _neighbor_graph(self, data: Input) -> NeighborGraph:
        """Build the neighbor graph that the parameters describe."""
        options = self._graph_options(data)
        graph = data.graph(options)
        if isinstance(data, Distances) and hasattr(self, "n_neighbors"):
            _warn_of_few_neighbors(
                graph.n_neighbors, options.default_n_neighbors, options.n_neighbors
            )
        return graph

    def _graph_options(self, data: Input) -> GraphOptions:
        asked = {name: getattr(self, name, default) for name, default in _GRAPH_PARAMETERS.items()}
        return GraphOptions(**asked, default_n_neighbors=self._default_neighbors(data.n_samples))

    def _policy(self) -> DisconnectedPolicy:
        """Return the policy for a disconnected graph."""
        disconnected: Any = getattr(self, "disconnected", OPTIONS[0])
        if isinstance(disconnected, DisconnectedPolicy):
            return disconnected
        return DisconnectedPolicy(disconnected, self._disconnected_options)

    def _default_neighbors(self, n: int) -> int | None:
        """Return the number of neighbors if none is requested; None means the graph's default."""
        return None

    def _delete_attributes_except(self, kept: set[str]) -> None:
        for name in set(vars(self)).difference(kept):
            delattr(self, name)

    def _max_components(self, data: Input) -> tuple[int, str]:
        """Return the largest allowed n_components, and the expression that gives it."""
        return data.n_samples - 1, "n_samples - 1"

    def _resolve_n_components(self, data: Input, default: int = 2) -> int:
        """Return the requested number of coordinates, or by default `default` or the maximum."""
        bound, limit = self._max_components(data)
        name = self._dimension_parameter
        if getattr(self, name) is None:
            return min(default, bound)
        value = check_count(name, getattr(self, name))
        if value > bound:
            raise ValueError(
                f"{name}={value} must be at most {limit}={bound}; pass {name}={bound} or fewer"
            )
        return value

    def _identical_training_rows(self, rows: Matrix) -> IntArray:
        """Return the index of the training row identical to each row, or -1 if there is none."""
        if self._row_matcher is None:
            return np.full(rows.shape[0], -1, dtype=np.intp)
        return self._row_matcher.identical(rows)

    @property
    def _embedded_rows(self) -> Any:
        """Training rows that are embedded: ``disconnected="largest"`` leaves some out."""
        return np.flatnonzero(np.isfinite(self.embedding_).all(axis=1))

    @property
    def _n_features_out(self) -> int:
        # A loaded model of distributed data has no embedding of all rows.
        return int(vars(self).get("landmark_model_", self).embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that fails may leave other attributes.
        return hasattr(self, "extension_") or hasattr(self, "landmark_model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._input_type.pairwise
        tags.input_tags.positive_only = self._input_type.positive_only
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _warn_of_few_neighbors(found: int | None, default: int | None, asked: int | None) -> None:
    """Warn if stored distances are too few for the default number of neighbors."""
    if asked is None and found is not None and default is not None and found < default:
        warn(
            f"n_neighbors={found} is used in place of the default of {default}, because a point "
            f"has only {found} stored distances; store {default} or more for each point, or pass "
            f"n_neighbors={found} if this is intended",
            ManifoldryWarning,
        )
