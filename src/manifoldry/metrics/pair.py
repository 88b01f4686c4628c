"""Data and a map of them, whoever made it, ready to be compared."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics.distance_rows import DistanceRows, distance_rows, map_rows
from manifoldry.neighbors.base import smallest_entries
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import FRACTION, Estimate
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import (
    check_square,
    check_symmetric,
    check_zero_diagonal,
    read_rows,
)
from manifoldry.util.warn import warn

# Nearest neighbors by default, where a figure is about the surroundings of a point.
DEFAULT_N_NEIGHBORS = 15


@dataclass(frozen=True, eq=False)
class DataEmbeddingPair:
    """Data and their map.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data, or their distances.
    Y : array of shape (n_samples, n_components)
        The map.
    metric : str or callable
        What distances between data are measured in; those on the map are Euclidean.
    embedded_rows : array of shape (n_samples,)
        Rows of what was passed that are on the map: rows of NaN are points that were left off.
    n_rows : int
        How many rows were passed.
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
        """Read data and map: arrays, a fitted estimator as map, or an AnnData and a key."""
        X, embedding = unpack_anndata(X, embedding)
        Y = read_embedding(embedding)
        if isinstance(X, NeighborGraph):
            return cls._from_graph(X, Y, min_samples)
        data = read_rows(X, min_samples)
        _check_rows(data.shape[0], Y)
        _check_order(X, embedding)
        n_rows, embedded_rows = len(Y), np.flatnonzero(~np.isnan(Y).all(axis=1))
        if len(embedded_rows) < min_samples:
            raise ValueError(
                f"{len(embedded_rows)} of {len(Y)} points are on the map; at least {min_samples} are needed"
            )
        Y = check_array(Y[embedded_rows], dtype=np.float64, input_name="embedding")
        pair = cls(data, Y, metric, embedded_rows, n_rows)
        if Y.shape[1] > data.shape[1]:
            warn(
                f"the map has {Y.shape[1]} columns and the data have {data.shape[1]}: the data "
                "come first, then the map",
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
        """Distances along a graph; all its points have to be on the map."""
        _check_rows(graph.n_query, Y)
        if graph.n_query < min_samples:
            raise ValueError(
                f"the graph has {graph.n_query} points; at least {min_samples} are needed"
            )
        Y = check_array(Y, dtype=np.float64, input_name="embedding")
        return cls(graph, Y, None, np.arange(len(Y)), len(Y))

    @property
    def n(self) -> int:
        """Number of points on the map."""
        return len(self.Y)

    @property
    def precomputed(self) -> bool:
        """Whether the data are known by their distances only."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @cached_property
    def data_distances(self) -> DistanceRows:
        """Distances between the data."""
        return distance_rows(self.X, self.metric)

    @cached_property
    def embedding_distances(self) -> DistanceRows:
        """Distances on the map."""
        return distance_rows(self.Y)

    def neighbors(self, k: int) -> IntArray:
        """The k nearest of every point in the data, (n, k)."""
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

    def __getstate__(self) -> dict[str, Any]:
        """What was given; what was derived from it is made again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def with_pca_embedding(self) -> "DataEmbeddingPair | None":
        """The same data with their principal components as map; None without coordinates."""
        from manifoldry.spectral.pca import PCA

        d = self.Y.shape[1]
        if isinstance(self.X, NeighborGraph) or self.precomputed or d > min(self.X.shape):
            return None
        return replace(self, Y=PCA(d).fit_transform(self.X).astype(np.float64))

    def mean_or_per_point(
        self,
        values_of: Callable[[IntArray], Array],
        sample: Any,
        per_point: bool,
        random_state: RandomState,
        within: tuple[float, float] = FRACTION,
    ) -> Estimate | Array:
        """The mean of a figure that every point has, on a sample of them; or all the values."""
        if not per_point:
            points = sample_points(self.n, sample, random_state)
            return Estimate.of_mean(values_of(points), self.n, within)
        return self.expand_to_all_rows(values_of(np.arange(self.n)))

    def expand_to_all_rows(self, values: Array) -> Array:
        """Values of the points on the map as values of all rows; NaN for those left off."""
        out = np.full(self.n_rows, np.nan)
        out[self.embedded_rows] = values
        return out

    def check_neighbors(self, n_neighbors: Any, default: int, max_fraction: float) -> int:
        """A neighborhood's size, at most a fraction `max_fraction` of the other points."""
        bound = max(1, math.ceil(max_fraction * self.n) - 1)
        if n_neighbors is None:
            return min(default, bound)
        k = check_count("n_neighbors", n_neighbors)
        if k > bound:
            raise ValueError(
                f"n_neighbors={k} must be less than {max_fraction * self.n:g}, for {self.n} points; "
                f"pass n_neighbors={bound} or fewer"
            )
        return k


def _check_order(X: Any, embedding: Any) -> None:
    """Frames know their rows by name; refuse those of two different orders."""
    names: list[Any] = [getattr(each, "index", None) for each in (X, embedding)]
    if all(hasattr(each, "equals") for each in names) and not names[0].equals(names[1]):
        raise ValueError(
            "the rows of X and of the map have different names (index); bring them into one order, "
            "for example map.loc[X.index]"
        )


def _check_distances(D: Matrix) -> None:
    if sparse.issparse(D):
        raise TypeError(
            "a sparse matrix of distances does not have all of them; pass NeighborGraph.build(X, "
            'metric="precomputed") for distances along its graph, or a dense matrix'
        )
    check_square(D, "distances")
    check_symmetric(D, "distances")
    check_zero_diagonal(D)


def _check_rows(n: int, Y: Array) -> None:
    if n != len(Y):
        raise ValueError(f"X has {n} rows and the map has {len(Y)}; pass the map of these rows")


def sample_points(
    n: int,
    size: Any,
    random_state: RandomState = None,
    *,
    exact_up_to: int = 10_000,
    n_drawn: int = 2_000,
) -> IntArray:
    """Rows to take figures on, ascending: "auto", "all", or a number of them out of n.

    "auto" are all up to `exact_up_to`, and beyond so many as are `n_drawn` at random.
    """
    if isinstance(size, str):
        if size not in ("auto", "all"):
            raise ValueError(f"sample={size!r} must be 'auto', 'all' or a number of points")
        size = n if size == "all" or n <= exact_up_to else n_drawn
    size = min(check_count("sample", size, minimum=2), n)
    if size == n:
        return np.arange(n)
    rng = as_generator(random_state, unset=0)
    return np.sort(rng.choice(n, size, replace=False))


def unpack_anndata(X: Any, embedding: Any) -> tuple[Any, Any]:
    """Take data and map out of an AnnData whose ``obsm`` has the map under a name."""
    if not hasattr(X, "obsm"):
        return X, embedding
    if not isinstance(embedding, str):
        return _annotated_data(X), embedding
    if embedding not in X.obsm:
        raise ValueError(
            f"obsm has no {embedding!r}; it has {', '.join(map(repr, X.obsm)) or 'nothing'}"
        )
    return _annotated_data(X), X.obsm[embedding]


def _annotated_data(annotated: Any) -> Any:
    """What maps of single cells are made from: their principal components, if they are there."""
    return annotated.obsm.get("X_pca", annotated.X)


def describe_data(X: Any, pair: DataEmbeddingPair) -> str:
    """Which data a pair has, in words."""
    if isinstance(pair.X, NeighborGraph):
        return "distances along a graph"
    if pair.precomputed:
        return "given distances"
    where = ""
    if hasattr(X, "obsm"):
        where = ' of obsm["X_pca"]' if "X_pca" in X.obsm else " of X"
    return f"{pair.X.shape[1]} features{where}"


def read_embedding(embedding: Any) -> Array:
    """Map positions of an array or a fitted estimator; NaN is kept for points left off."""
    if hasattr(embedding, "fit") and not hasattr(embedding, "embedding_"):
        name = type(embedding).__name__
        raise ValueError(f"{name} has no embedding_; call fit first, or pass the map itself")
    Y = getattr(embedding, "embedding_", embedding)
    if isinstance(Y, str):
        raise TypeError(f"embedding={Y!r} is a name; names are for maps in an AnnData's obsm")
    Y = np.asarray(Y)
    Y = Y[:, None] if Y.ndim == 1 else Y
    options = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "input_name": "embedding"}
    Y = np.asarray(check_array(Y, **options))
    missing = np.isnan(Y)
    broken = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if len(broken):
        raise ValueError(
            f"embedding has NaN in some coordinates of {len(broken)} rows (first: row "
            f"{broken[0]}); a point is on the map with all of them, or left off with none"
        )
    return Y
