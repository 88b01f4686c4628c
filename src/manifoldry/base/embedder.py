"""What all embeddings share: fit, map points both ways, return training rows to their place."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.input import Distances, GraphOptions, Input, Lookup, Points, ReadyGraph
from manifoldry.base.score import score
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.regression import EmbeddingSpacing, coordinate_redundancy
from manifoldry.extension.regressor import check_regressor, fit_extension, fit_inverse
from manifoldry.neighbors.disconnected import OPTIONS, DisconnectedPolicy
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_count
from manifoldry.util.threads import threads_allowed
from manifoldry.util.typing import Array, IntArray, Matrix

# Parameters of the neighbor graph, with the values that an estimator without them uses.
_GRAPH_PARAMETERS: dict[str, Any] = {
    "n_neighbors": None,
    "radius": None,
    "metric": "euclidean",
    "metric_params": None,
    "n_jobs": None,
}


class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of all embeddings.

    A subclass computes in ``_fit`` the map, what places new points on it and what leads back.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The map.
    extension_ : Extension
        Gives new points their coordinates.
    inverse_ : Inverse or None
        Leads from the map to the data; None where the data themselves were never seen.
    """

    n_components: int | None
    embedding_: Array
    extension_: Extension
    inverse_: Inverse | None

    # The parameter that says how many coordinates there are.
    _counted_by = "n_components"
    # What a user may pass as `disconnected`.
    _policies: tuple[str, ...] = OPTIONS
    # Inverses of the method itself that may be passed by name.
    _named_inverses: tuple[str, ...] = ()
    # Whether a neighbor graph may be passed in place of data.
    _takes_graphs = False
    # Attributes that the last fit set; scikit-learn keeps others on an estimator for itself.
    _learned: frozenset[str] = frozenset()
    # Finds training rows among new ones; None where nobody can tell.
    _lookup: Lookup | None = None

    @property
    def _reads(self) -> type[Input]:
        """What the rows mean that the estimator is given."""
        metric = getattr(self, "metric", None)
        return Distances if isinstance(metric, str) and metric == "precomputed" else Points

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of `X`; where that fails, a model fitted before stays as it was.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The data, or what the estimator's ``metric`` says is precomputed.
        y : ignored
            Present for scikit-learn's sake.
        """
        for name in ("extension", "inverse"):
            self._regressor(name)  # raises before the work begins
        with self._learning(), threads_allowed(getattr(self, "n_jobs", None)):
            self._fit(X)
        return self

    @contextmanager
    def _learning(self) -> Iterator[None]:
        """What is set in here is learned, and replaces what was; all of that if anything fails."""
        former = {name: vars(self)[name] for name in {*self._learned, "_learned"} & set(vars(self))}
        self._forget_all_but(set(vars(self)).difference(former))
        before = set(vars(self))
        try:
            yield
        except BaseException:
            self._forget_all_but(before)  # half a model is none
            self.__dict__.update(former)
            raise
        self._learned = frozenset(vars(self)).difference(before)

    @abstractmethod
    def _fit(self, X: Any) -> None:
        """Compute the embedding of `X`, its extension and its inverse."""

    def _adopt(self, posed: Any, spectra: Any) -> None:
        """Make the solution of a posed spectral problem the fitted model."""
        Y = posed.coordinates(spectra)
        layout = posed.lay_out(Y)
        self.embedding_ = layout.place(Y, posed.labels).astype(posed.data.dtype, copy=False)
        formula = posed.extend(spectra, layout, self.embedding_)
        for name, value in posed.evidence(spectra, Y, formula).items():
            setattr(self, name, value)
        invert = partial(posed.invert, self.embedding_, formula)
        self._map_points(posed.data, posed.lookup, formula, invert)
        self._learned |= {"_lookup", *(name for name in vars(self) if name.endswith("_"))}

    def _map_points(
        self, data: Input, lookup: Lookup | None, formula: Extension, invert: Callable[[], Any]
    ) -> None:
        """Set what maps new points to coordinates and back: the method's own, or a regressor.

        `formula` and `invert` are those of the method; `lookup` finds training points.
        """
        extension, inverse = self._regressor("extension"), self._regressor("inverse")
        Y = self.embedding_.astype(np.float64)
        rows = data.rows if data.pairwise else data.points
        self.extension_ = formula if extension is None else fit_extension(extension, rows, Y)
        self.inverse_ = invert() if inverse is None else fit_inverse(inverse, data.points, Y)
        self._lookup = lookup

    def _regressor(self, name: str) -> Any:
        """The regressor passed as `extension` or `inverse`; None for the method's own."""
        names = self._named_inverses if name == "inverse" else ()
        return check_regressor(name, getattr(self, name, None), names)

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
        rows = self._read_new(X)
        with threads_allowed(getattr(self, "n_jobs", None)):
            return self._place(rows).astype(Points(rows).dtype, copy=False)

    def _place(self, rows: Matrix) -> Array:
        placed = np.empty((rows.shape[0], self._n_features_out))
        known = self._identical(rows)
        placed[known >= 0] = self.embedding_[known[known >= 0]]
        new = np.flatnonzero(known < 0)
        if len(new):
            placed[new] = self.extension_.transform(rows[new])
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
        if self.inverse_ is None:
            raise ValueError(self._why_no_inverse())
        data = self.inverse_.predict(Z.astype(np.float64)).astype(Z.dtype, copy=False)
        if not return_distance:
            return data
        return data, EmbeddingSpacing(self.embedding_[self._on_map]).relative_distance(Z)

    def _why_no_inverse(self) -> str:
        name = type(self).__name__
        if self._reads.pairwise:
            return (
                f"this {name} was fitted on precomputed values, so it never saw the data that "
                "inverse_transform would have to return; fit it on the data"
            )
        return (
            f"this {name} has no inverse: the method defines none, or it was fitted on a graph "
            "without data; fit it on the data with inverse= a regressor, such as "
            "sklearn.neighbors.KNeighborsRegressor()"
        )

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
        data = self._read_new(X)
        if data.shape[0] != len(self.embedding_):
            raise ValueError(
                f"X has {data.shape[0]} rows; pass all {len(self.embedding_)} training rows"
            )
        rows = self._on_map
        error = np.abs(self.extension_.transform(data)[rows] - self.embedding_[rows]).max()
        return float(error / (np.abs(self.embedding_[rows]).max() or 1.0))

    def redundancy(self) -> Array:
        """How much of each coordinate is new beside those before it: 0 nothing, 1 all of it.

        See :func:`manifoldry.metrics.redundancy`; where some are near 0,
        :class:`~manifoldry.NonRedundant` around this estimator says more in as many coordinates.
        """
        check_is_fitted(self)
        return coordinate_redundancy(self.embedding_[self._on_map])

    def _read(self, X: Any) -> Input:
        """Training data, or a graph of them."""
        if not isinstance(X, NeighborGraph):
            return self._reads.read(self, X)
        if not self._takes_graphs:
            raise TypeError(f"{type(self).__name__} takes data, not a NeighborGraph")
        return ReadyGraph.read(self, X)

    def _read_new(self, X: Any) -> Matrix:
        check_is_fitted(self)
        return self._reads.read_new(self, X)

    def _neighbor_graph(self, data: Input) -> NeighborGraph:
        """The graph that the estimator's parameters ask for."""
        asked = {name: getattr(self, name, default) for name, default in _GRAPH_PARAMETERS.items()}
        default = self._default_neighbors(data.n_samples)
        return data.graph(GraphOptions(**asked, default=default))

    def _policy(self) -> DisconnectedPolicy:
        """What is to be done where the graph falls into components."""
        disconnected: Any = getattr(self, "disconnected", OPTIONS[0])
        return DisconnectedPolicy(disconnected, self._policies)

    def _default_neighbors(self, n: int) -> int | None:
        """Neighbors of `n` points where none were asked for; None leaves it to the graph."""
        return None

    def _forget_all_but(self, kept: set[str]) -> None:
        for name in set(vars(self)).difference(kept):
            delattr(self, name)

    def _largest_components(self, data: Input) -> tuple[int, str]:
        """The largest n_components the data allow, and what sets it."""
        return data.n_samples - 1, "n_samples - 1"

    def _resolve_components(self, data: Input, default: int = 2) -> int:
        """How many coordinates there are to be: as asked for, or what the data allow."""
        bound, limit = self._largest_components(data)
        name = self._counted_by
        if getattr(self, name) is None:
            return min(default, bound)
        value = check_count(name, getattr(self, name))
        if value > bound:
            raise ValueError(
                f"{name}={value} must be at most {limit}={bound}; pass {name}={bound} or fewer"
            )
        return value

    def _identical(self, rows: Matrix) -> IntArray:
        """Training row identical to each row, or -1; without stored data nobody is known."""
        if self._lookup is None:
            return np.full(rows.shape[0], -1, dtype=np.intp)
        return self._lookup.identical(rows)

    @property
    def _on_map(self) -> Any:
        """Rows that are on the map: a policy for disconnected graphs may have left some out."""
        return np.flatnonzero(np.isfinite(self.embedding_).all(axis=1))

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that fails half-way may leave other attributes behind.
        return hasattr(self, "extension_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._reads.pairwise
        tags.input_tags.positive_only = self._reads.positive_only
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
