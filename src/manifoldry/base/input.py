"""Types of input of an estimator: data, precomputed pairwise values, or a neighbor graph."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from scipy import sparse

from manifoldry.extension.layout import ComponentGeometry
from manifoldry.extension.relative_distance import (
    DataDistance,
    RelativeDistance,
    UnknownDistance,
    distance_from,
)
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.precomputed import DenseDistances, SparseDistances
from manifoldry.util.checks import check_count
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    check_data,
    check_nonnegative_entries,
    check_square,
    check_symmetric,
    check_zero_diagonal,
    copy_if_shared,
)


class RowMatcher(Protocol):
    """Finds training rows among new rows."""

    def identical(self, X: Matrix) -> IntArray:
        """Return the index of the training row identical to each row, or -1 if there is none."""
        ...


@dataclass(frozen=True)
class GraphOptions:
    """Parameters of the neighbor graph of an estimator."""

    n_neighbors: int | None
    radius: float | None
    metric: Any
    metric_params: dict[str, Any] | None
    n_jobs: int | None
    # Used if neither n_neighbors nor radius is set; None means the default of NeighborGraph.
    default_n_neighbors: int | None

    @property
    def resolved_n_neighbors(self) -> int | None:
        """Number of neighbors; None if `radius` or the default of the graph decides."""
        unset = self.n_neighbors is None and self.radius is None
        return self.default_n_neighbors if unset else self.n_neighbors


@dataclass(frozen=True, eq=False)
class Input(ABC):
    """Validated input of ``fit``; each subclass is one type of input."""

    rows: Any

    # Whether the rows hold pairwise values, and whether those must be nonnegative.
    pairwise: ClassVar[bool] = False
    positive_only: ClassVar[bool] = False

    @classmethod
    def read(cls, estimator: Any, X: Any) -> Self:
        """Validate training data and copy them, so that the caller cannot change them."""
        given = cls(copy_if_shared(check_data(estimator, X, reset=True, ensure_min_samples=2), X))
        given.check()
        return given

    @classmethod
    def read_new(cls, estimator: Any, X: Any) -> Matrix:
        """Validate new rows for a fitted estimator."""
        if isinstance(X, NeighborGraph):
            raise TypeError(
                f"{type(estimator).__name__}.transform takes data, not a NeighborGraph; pass the "
                "new points"
            )
        rows = check_data(estimator, X, reset=False)
        cls.check_rows(rows)
        return rows

    @classmethod
    def check_rows(cls, rows: Matrix) -> None:
        """Raise an error if the rows, of training or new points, are invalid for this type."""
        return  # any finite numbers are valid

    def check(self) -> None:
        """Raise an error if the training data are invalid for this type."""
        self.check_rows(self.rows)

    @property
    def n_samples(self) -> int:
        """Number of training points."""
        return int(self.rows.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    @property
    def features(self) -> Matrix | None:
        """Rows that a regressor can be fitted to; None if they are unknown."""
        if self.pairwise and sparse.issparse(self.rows):
            return None  # what is not stored is unknown, not zero
        return self.rows if self.pairwise else self.points

    @property
    def description(self) -> str:
        """What the rows are, in words."""
        return "precomputed values" if self.pairwise else "data"

    @property
    def dtype(self) -> Any:
        """Data type of the embedding: float32 for float32 data, else float64."""
        return np.float32 if self.rows.dtype == np.float32 else np.float64

    @property
    def points(self) -> Matrix | None:
        """The data, or None if only pairwise values were passed."""
        return None

    @property
    def distances(self) -> Array | None:
        """The dense matrix of distances, or None if none was passed."""
        return None

    @abstractmethod
    def graph(self, options: GraphOptions) -> NeighborGraph:
        """Build the neighbor graph of the training points."""

    @property
    def row_matcher(self) -> RowMatcher | None:
        """Finds training rows among new rows; None if the input does not identify them."""
        return RowLookup.of(self.rows)

    def distance_from(self, options: GraphOptions) -> DataDistance:
        """Return what measures the distance of new rows from these."""
        return UnknownDistance(
            f"the model was fitted on {self.description}; fit it on the data or on a dense matrix "
            "of distances"
        )

    def geometry(self, components: list[IntArray]) -> ComponentGeometry:
        """Return sizes and positions of connected components in the data, if they are known."""
        return ComponentGeometry.unknown(components)


class Points(Input):
    """Data: one row of features per point."""

    @property
    def points(self) -> Matrix:
        return self.rows

    def graph(self, options: GraphOptions) -> NeighborGraph:
        return _build(self.rows, options.resolved_n_neighbors, options)

    def distance_from(self, options: GraphOptions) -> DataDistance:
        return distance_from(self.rows, options.metric, options.metric_params, options.n_jobs)

    def geometry(self, components: list[IntArray]) -> ComponentGeometry:
        return ComponentGeometry.of_points(self.rows, components)


class Distances(Input):
    """Precomputed distances, dense or a sparse neighbor graph; NeighborGraph checks them."""

    pairwise = True
    positive_only = True

    @property
    def distances(self) -> Array | None:
        return None if sparse.issparse(self.rows) else self.rows

    def graph(self, options: GraphOptions) -> NeighborGraph:
        count = options.resolved_n_neighbors
        if options.radius is None and options.n_neighbors is None and sparse.issparse(self.rows):
            check_square(self.rows, "distances")  # at most as many neighbors as are stored
            fewest = SparseDistances(self.n_samples).min_stored(self.rows)
            count = count if count is None else min(count, fewest)
        return _build(self.rows, count, options)

    def distance_from(self, options: GraphOptions) -> DataDistance:
        if self.distances is None:
            return super().distance_from(options)
        return RelativeDistance.of_distances(self.distances)

    def geometry(self, components: list[IntArray]) -> ComponentGeometry:
        if self.distances is None:
            return super().geometry(components)
        return ComponentGeometry.of_distances(self.distances, components)


class AllDistances(Distances):
    """Precomputed distances of all pairs of points, without a neighbor graph."""

    @classmethod
    def check_rows(cls, rows: Matrix) -> None:
        if sparse.issparse(rows):
            raise ValueError(
                "precomputed distances must be dense, not sparse: entries that are not stored are "
                "unknown, not zero; pass X.toarray() if all are stored"
            )
        check_nonnegative_entries(rows, "distances")

    def check(self) -> None:
        super().check()
        check_square(self.rows, "distances")
        check_symmetric(self.rows, "distances")
        check_zero_diagonal(self.rows)

    @property
    def row_matcher(self) -> RowMatcher:
        return DenseDistances(self.n_samples)


class KernelValues(Input):
    """Precomputed kernel matrix."""

    pairwise = True

    def check(self) -> None:
        check_square(self.rows, "kernel")
        check_symmetric(self.rows, "kernel")

    def graph(self, options: GraphOptions) -> NeighborGraph:
        raise TypeError("kernel values have no neighbor graph; pass the data or distances")

    @property
    def row_matcher(self) -> RowMatcher | None:
        return None


class Affinities(Input):
    """Precomputed affinity matrix: nonnegative weights of pairs of points."""

    pairwise = True
    positive_only = True

    @classmethod
    def check_rows(cls, rows: Matrix) -> None:
        check_nonnegative_entries(rows, "affinities")

    def check(self) -> None:
        super().check()
        check_square(self.rows, "affinities")
        check_symmetric(self.rows, "affinities")

    def graph(self, options: GraphOptions) -> NeighborGraph:
        raise TypeError("affinities have no neighbor graph; pass the data or distances")

    @property
    def row_matcher(self) -> RowMatcher:
        return RowLookup.of(sparse.csr_array(self.rows))


class GivenGraph(Input):
    """A neighbor graph passed to ``fit``, which holds the data it was built from."""

    rows: NeighborGraph

    @classmethod
    def read(cls, estimator: Any, X: NeighborGraph) -> Self:
        if X.n_query != X.n_reference:
            raise ValueError(
                f"fit needs a graph whose query and reference points are the same; this one has "
                f"{X.n_query} query points and {X.n_reference} reference points; build it with "
                "NeighborGraph.build(X)"
            )
        given = cls(X)
        estimator.n_features_in_ = given.n_features
        if X.feature_names is not None:
            estimator.feature_names_in_ = X.feature_names
        return given

    @property
    def description(self) -> str:
        return "a neighbor graph without data" if self.points is None else "a neighbor graph"

    @property
    def n_samples(self) -> int:
        return self.rows.n_reference

    @property
    def n_features(self) -> int:
        return self.n_samples if self.points is None else int(self.points.shape[1])

    @property
    def dtype(self) -> Any:
        return np.float64 if self.points is None else Points(self.points).dtype

    @property
    def points(self) -> Matrix | None:
        return self.rows.index.points

    @property
    def row_matcher(self) -> RowMatcher:
        return self.rows

    def graph(self, options: GraphOptions) -> NeighborGraph:
        """Return the graph, truncated to ``n_neighbors`` if fewer are requested."""
        radius, metric = options.radius, options.metric
        if radius is not None and radius != self.rows.radius:
            raise ValueError(
                f"radius={radius} differs from radius={self.rows.radius}, with which the graph "
                f"passed to fit was built; build it with radius={radius}"
            )
        if metric not in ("euclidean", self.rows.metric):
            raise ValueError(
                f"metric={metric!r} differs from metric={self.rows.metric!r}, with which the graph "
                f"passed to fit was built; build it with metric={metric!r}"
            )
        if options.n_neighbors is None:
            return self.rows
        k = check_count("n_neighbors", options.n_neighbors)
        return self.rows if k == self.rows.n_neighbors else self.rows.truncate(k)

    def distance_from(self, options: GraphOptions) -> DataDistance:
        if self.points is None:
            return super().distance_from(options)
        return RelativeDistance.of_index(self.rows.index)

    def geometry(self, components: list[IntArray]) -> ComponentGeometry:
        if self.points is None:
            return super().geometry(components)
        return ComponentGeometry.of_points(self.points, components)


def _build(rows: Matrix, count: int | None, options: GraphOptions) -> NeighborGraph:
    return NeighborGraph.build(
        rows,
        count,
        radius=options.radius,
        metric=options.metric,
        metric_params=options.metric_params,
        n_jobs=options.n_jobs,
        copy=False,  # `Input.read` already copied them
    )
