"""Data and an embedding of them, read and checked for comparison."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from manifoldry.exceptions import ManifoldryWarning, ignoring, warn
from manifoldry.metrics.distance_rows import DistanceRows, distance_rows, map_rows
from manifoldry.metrics.pipelines import StepsBefore, last_step, seen_by_last_step
from manifoldry.neighbors.base import smallest_entries
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.array_like import (
    annotated_of,
    array_like,
    embedding_like,
    is_layer,
    obsm_entry,
)
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import FRACTION, Estimate
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import (
    check_square,
    check_symmetric,
    check_zero_diagonal,
    numeric,
    read_array,
    read_rows,
)

# Default neighborhood size of metrics that describe a neighborhood of each point.
DEFAULT_N_NEIGHBORS = 15


@dataclass(frozen=True, eq=False)
class DataEmbeddingPair:
    """Data and an embedding of the same points.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data, or a matrix of distances between them.
    Y : array of shape (n_samples, n_components)
        The embedding.
    metric : str or callable
        Metric of the distances in the data; distances in the embedding are Euclidean.
    embedded_rows : array of shape (n_samples,)
        Indices of the rows that were embedded; the other rows of the embedding passed are NaN.
    n_rows : int
        Number of rows passed, embedded or not.
    """

    X: Matrix | NeighborGraph
    Y: Array
    metric: Any
    embedded_rows: IntArray
    n_rows: int

    @classmethod
    def of(
        cls, X: Any, embedding: Any, metric: Any = "euclidean", min_samples: int = 3
    ) -> "DataEmbeddingPair":
        """Read data and embedding: arrays, a fitted estimator, or an AnnData and a key.

        The embedding of a pipeline is compared with the data that its last step sees.
        """
        X, embedding = seen_by_last_step(*unpack_anndata(X, embedding), metric)
        Y = read_embedding(embedding)
        if isinstance(X, NeighborGraph):
            return cls._from_graph(X, Y, min_samples)
        data = read_rows(X, min_samples)
        _check_rows(data.shape[0], Y)
        _check_order(X, embedding)
        n_rows, embedded_rows = len(Y), np.flatnonzero(~np.isnan(Y).all(axis=1))
        if len(embedded_rows) < min_samples:
            raise ValueError(
                f"{len(embedded_rows)} of {len(Y)} points are embedded (not NaN); at least "
                f"{min_samples} are needed"
            )
        Y = read_array(Y[embedded_rows], "embedding", dtype=np.float64)
        pair = cls(data, Y, metric, embedded_rows, n_rows)
        # The embedding of a fitted estimator cannot have been taken for the data.
        if Y.shape[1] > data.shape[1] and not hasattr(embedding, "embedding_"):
            warn(
                f"the embedding has {Y.shape[1]} columns, more than the {data.shape[1]} of the "
                "data; pass the data first, then the embedding",
                ManifoldryWarning,
            )
        if pair.precomputed:
            _check_distances(data)
        if len(embedded_rows) == n_rows:
            return pair
        return replace(
            pair,
            X=data[embedded_rows][:, embedded_rows] if pair.precomputed else data[embedded_rows],
        )

    @classmethod
    def _from_graph(cls, graph: NeighborGraph, Y: Array, min_samples: int) -> "DataEmbeddingPair":
        """A pair whose data distances run along a graph; all its points must be embedded."""
        _check_rows(graph.n_query, Y)
        if graph.n_query < min_samples:
            raise ValueError(
                f"the graph has {graph.n_query} points; at least {min_samples} are needed"
            )
        Y = read_array(Y, "embedding", dtype=np.float64)
        return cls(graph, Y, None, np.arange(len(Y)), len(Y))

    @property
    def n(self) -> int:
        """Number of embedded points."""
        return len(self.Y)

    @property
    def precomputed(self) -> bool:
        """Whether X is a matrix of distances."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @cached_property
    def data_distances(self) -> DistanceRows:
        """Distances in the data."""
        return distance_rows(self.X, self.metric)

    @cached_property
    def embedding_distances(self) -> DistanceRows:
        """Distances in the embedding."""
        return distance_rows(self.Y)

    def neighbors(self, k: int) -> IntArray:
        """Indices of the k nearest neighbors of every point in the data, (n, k)."""
        if k not in self._nearest:
            self._nearest[k] = self._find_neighbors(k)
        return self._nearest[k]

    @cached_property
    def _nearest(self) -> dict[int, IntArray]:
        return {}

    def _find_neighbors(self, k: int) -> IntArray:
        if not isinstance(self.X, NeighborGraph):
            graph = NeighborGraph.build(self.X, k, metric=self.metric, copy=False)
            return graph.indices.reshape(self.n, k)

        def nearest(rows: IntArray) -> IntArray:
            return smallest_entries(self.data_distances.neighbor_keys(rows), k)[0]

        return np.concatenate(map_rows(nearest, np.arange(self.n), self.n))

    __getstate__ = state_of_fields  # without distances and neighbors

    def with_pca_embedding(self) -> "DataEmbeddingPair | None":
        """The same data embedded by PCA; None if X has no coordinates or too few."""
        from manifoldry.spectral.pca import PCA

        d = self.Y.shape[1]
        if isinstance(self.X, NeighborGraph) or self.precomputed or d > min(self.X.shape):
            return None
        with ignoring(ManifoldryWarning):  # about an embedding that nobody passed
            return replace(self, Y=PCA(d).fit_transform(self.X).astype(np.float64))

    def mean_or_per_point(
        self,
        values_of: Callable[[IntArray], Array],
        sample: Any,
        per_point: bool,
        random_state: RandomState,
        within: tuple[float, float] = FRACTION,
    ) -> Estimate | Array:
        """Mean of a pointwise metric over a sample of the points, or its value at every point."""
        if not per_point:
            points = sample_points(self.n, sample, random_state)
            return Estimate.of_mean(values_of(points), self.n, within)
        return self.expand_to_all_rows(values_of(np.arange(self.n)))

    def expand_to_all_rows(self, values: Array) -> Array:
        """Values of the embedded points as values of all rows, NaN for the others."""
        out = np.full(self.n_rows, np.nan)
        out[self.embedded_rows] = values
        return out

    def check_neighbors(self, n_neighbors: Any, default: int, max_fraction: float) -> int:
        """Validated neighborhood size, less than `max_fraction` of the points."""
        bound = max(1, math.ceil(max_fraction * self.n) - 1)
        if n_neighbors is None:
            return min(default, bound)
        k = check_count("n_neighbors", n_neighbors)
        if k > bound:
            raise ValueError(
                f"n_neighbors={k} must be less than {max_fraction * self.n:g} for {self.n} points; "
                f"pass n_neighbors={bound} or fewer"
            )
        return k


def _check_order(X: Any, embedding: Any) -> None:
    """Raise an error for data frames whose indexes differ."""
    names: list[Any] = [getattr(each, "index", None) for each in (X, embedding)]
    if all(hasattr(each, "equals") for each in names) and not names[0].equals(names[1]):
        raise ValueError(
            "X and the embedding have different indexes; reorder the rows, for example with "
            "embedding.loc[X.index]"
        )


def _check_distances(D: Matrix) -> None:
    if sparse.issparse(D):
        raise TypeError(
            "precomputed distances must be dense, but X is a sparse matrix of distances; pass a "
            'dense matrix, or NeighborGraph.build(X, metric="precomputed") for geodesic distances'
        )
    check_square(D, "distances")
    check_symmetric(D, "distances")
    check_zero_diagonal(D)


def _check_rows(n: int, Y: Array) -> None:
    if n != len(Y):
        raise ValueError(f"X has {n} rows and the embedding has {len(Y)}; they must be equal")


def sample_points(
    n: int,
    size: Any,
    random_state: RandomState = None,
    *,
    exact_up_to: int = 10_000,
    n_drawn: int = 2_000,
) -> IntArray:
    """Indices of the points at which a metric is evaluated, ascending.

    `size` is "all", a number of points, or "auto": all points if n is at most `exact_up_to`, else
    `n_drawn` of them, drawn at random.
    """
    if isinstance(size, str):
        if size not in ("auto", "all"):
            raise ValueError(f"sample={size!r} must be 'auto', 'all' or an integer")
        size = n if size == "all" or n <= exact_up_to else n_drawn
    size = min(check_count("sample", size, minimum=2), n)
    if size == n:
        return np.arange(n)
    rng = as_generator(random_state, unset=0)
    return np.sort(rng.choice(n, size, replace=False))


def unpack_anndata(X: Any, embedding: Any) -> tuple[Any, Any]:
    """Data and embedding as arrays, where either may be an entry of an AnnData.

    A string as embedding is a key of ``obsm`` of the AnnData that has the data.
    """
    annotated = annotated_of(X)
    if isinstance(embedding, str) and annotated is not None:
        embedding = obsm_entry(annotated, embedding, "embedding")
    return X if annotated is None else array_like(X), embedding


def describe_data(X: Any, pair: DataEmbeddingPair, embedding: Any = None) -> str:
    """Short description of the data of a pair, made from X and the embedding that were passed."""
    if isinstance(pair.X, NeighborGraph):
        return "distances along a graph"
    if pair.precomputed:
        return "given distances"
    before = StepsBefore.of(embedding)
    after = f" after {before}" if before.steps else ""
    if annotated_of(X) is None:
        return f"{pair.X.shape[1]} features{after}"
    kind = "layers" if is_layer(X) else "obsm"
    where = f"{kind}[{X[1]!r}]" if isinstance(X, tuple) else "X"
    return f"{pair.X.shape[1]} features of {where}{after}"


def read_embedding(embedding: Any) -> Array:
    """Embedding from an array or fitted estimator; rows of NaN, points not embedded, are kept."""
    embedding = last_step(embedding)
    if hasattr(embedding, "fit") and not hasattr(embedding, "embedding_"):
        raise ValueError(_no_embedding(embedding))
    Y = getattr(embedding, "embedding_", embedding)
    if isinstance(Y, str):
        raise TypeError(
            f"embedding={Y!r} is a string, which requires X to be an AnnData with this key in obsm"
        )
    Y = np.asarray(numeric(embedding_like(Y), "embedding"))
    Y = Y[:, None] if Y.ndim == 1 else Y
    Y = np.asarray(read_array(Y, "embedding", dtype=np.float64, ensure_all_finite="allow-nan"))
    missing = np.isnan(Y)
    broken = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if len(broken):
        raise ValueError(
            f"embedding has NaN in some coordinates of {len(broken)} rows (first: row "
            f"{broken[0]}); a row must be finite, or NaN in all coordinates"
        )
    return Y


def _no_embedding(estimator: Any) -> str:
    """Why an estimator has no attribute embedding_."""
    name = type(estimator).__name__
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return f"{name} is not fitted; call fit first, or pass the embedding as an array"
    return f"{name} has no embedding_; pass the array that its transform returns instead"
