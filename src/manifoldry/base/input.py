"""What an estimator is given, read once: points, values of pairs of them, or a ready graph."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from scipy import sparse

from manifoldry.extension.layout import ComponentGeometry
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.precomputed import DenseDistances, SparseDistances
from manifoldry.util.checks import check_count
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    check_data,
    check_non_negative,
    check_square,
    check_symmetric,
    check_zero_diagonal,
    owned,
)


class Lookup(Protocol):
    """Finds training points among new rows."""

    def identical(self, X: Matrix) -> IntArray:
        """Training point identical to each row, or -1."""
        ...


@dataclass(frozen=True)
class GraphOptions:
    """What an estimator asks of a neighbor graph."""

    n_neighbors: int | None
    radius: float | None
    metric: Any
    metric_params: dict[str, Any] | None
    n_jobs: int | None
    default: int | None  # neighbors where none of this was asked for; None: the graph's own

    @property
    def count(self) -> int | None:
        """Neighbors to take."""
        free = self.n_neighbors is None and self.radius is None
        return self.default if free else self.n_neighbors


@dataclass(frozen=True, eq=False)
class Input(ABC):
    """What ``fit`` was given. A subclass says what its rows mean, and what follows from that."""

    rows: Any

    # Whether rows are values of pairs, and whether those must not be negative.
    pairwise: ClassVar[bool] = False
    positive_only: ClassVar[bool] = False

    @classmethod
    def read(cls, estimator: Any, X: Any) -> Self:
        """Validate training data, as a copy that the caller cannot change."""
        given = cls(owned(check_data(estimator, X, reset=True, ensure_min_samples=2), X))
        given.check()
        return given

    @classmethod
    def read_new(cls, estimator: Any, X: Any) -> Matrix:
        """Validate new rows for a fitted estimator."""
        if isinstance(X, NeighborGraph):
            raise TypeError(f"{type(estimator).__name__}.transform takes data, not a NeighborGraph")
        rows = check_data(estimator, X, reset=False)
        cls.check_rows(rows)
        return rows

    @classmethod
    def check_rows(cls, rows: Matrix) -> None:
        """Refuse rows, of training points or new ones, that mean nothing."""
        return  # any rows of finite numbers will do

    def check(self) -> None:
        """Refuse training data that mean nothing."""
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
    def dtype(self) -> Any:
        """Type of the coordinates: single precision for data in single precision."""
        return np.float32 if self.rows.dtype == np.float32 else np.float64

    @property
    def points(self) -> Matrix | None:
        """The data themselves, where they were passed."""
        return None

    @property
    def distances(self) -> Array | None:
        """The distances of all pairs, where they were passed."""
        return None

    @abstractmethod
    def graph(self, options: GraphOptions) -> NeighborGraph:
        """The neighbor graph of the training points."""

    @property
    def lookup(self) -> Lookup | None:
        """What finds training points among new rows; None where nobody can tell."""
        return RowLookup.of(self.rows)

    def geometry(self, components: list[IntArray]) -> ComponentGeometry:
        """Sizes and positions of components of the data, as far as they are known."""
        return ComponentGeometry.unknown(components)


class Points(Input):
    """Rows of features."""

    @property
    def points(self) -> Matrix:
        return self.rows

    def graph(self, options: GraphOptions) -> NeighborGraph:
        return _build(self.rows, options.count, options)

    def geometry(self, components: list[IntArray]) -> ComponentGeometry:
        return ComponentGeometry.of_points(self.rows, components)


class Distances(Input):
    """Distances of pairs, dense or the stored ones of a sparse graph; graphs check them."""

    pairwise = True
    positive_only = True

    @property
    def distances(self) -> Array | None:
        return None if sparse.issparse(self.rows) else self.rows

    def graph(self, options: GraphOptions) -> NeighborGraph:
        count = options.count
        if options.radius is None and options.n_neighbors is None and sparse.issparse(self.rows):
            check_square(self.rows, "distances")  # no more neighbors than a sparse graph has
            fewest = SparseDistances(self.n_samples).min_stored(self.rows)
            count = count if count is None else min(count, fewest)
        return _build(self.rows, count, options)

    def geometry(self, components: list[IntArray]) -> ComponentGeometry:
        if self.distances is None:
            return super().geometry(components)
        return ComponentGeometry.of_distances(self.distances, components)


class AllDistances(Distances):
    """Distances of all pairs, which are used as they are."""

    @classmethod
    def check_rows(cls, rows: Matrix) -> None:
        if sparse.issparse(rows):
            raise ValueError(
                "precomputed distances must be dense, not sparse: what is not stored is unknown, "
                "not zero; pass X.toarray() if all are stored"
            )
        check_non_negative(rows, "distances")

    def check(self) -> None:
        super().check()
        check_square(self.rows, "distances")
        check_symmetric(self.rows, "distances")
        check_zero_diagonal(self.rows)

    @property
    def lookup(self) -> Lookup:
        return DenseDistances(self.n_samples)


class KernelValues(Input):
    """Values of a kernel for all pairs."""

    pairwise = True

    def check(self) -> None:
        check_square(self.rows, "kernel")
        check_symmetric(self.rows, "kernel")

    def graph(self, options: GraphOptions) -> NeighborGraph:
        raise TypeError("kernel values have no neighbor graph; pass the data or distances")

    @property
    def lookup(self) -> Lookup | None:
        return None


class Affinities(Input):
    """Weights of pairs: how alike points are."""

    pairwise = True
    positive_only = True

    @classmethod
    def check_rows(cls, rows: Matrix) -> None:
        check_non_negative(rows, "affinities")

    def check(self) -> None:
        super().check()
        check_square(self.rows, "affinities")
        check_symmetric(self.rows, "affinities")

    def graph(self, options: GraphOptions) -> NeighborGraph:
        raise TypeError("affinities have no neighbor graph; pass the data or distances")

    @property
    def lookup(self) -> Lookup:
        return RowLookup.of(sparse.csr_array(self.rows))


class ReadyGraph(Input):
    """A neighbor graph that was built before, and remembers what it was built on."""

    rows: NeighborGraph

    @classmethod
    def read(cls, estimator: Any, X: NeighborGraph) -> Self:
        if X.n_query != X.n_reference:
            raise ValueError(
                f"fit needs the graph of the training points among themselves; this one has "
                f"{X.n_query} query points and {X.n_reference} reference points"
            )
        given = cls(X)
        estimator.n_features_in_ = given.n_features
        if X.feature_names is not None:
            estimator.feature_names_in_ = X.feature_names
        return given

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
    def lookup(self) -> Lookup:
        return self.rows

    def graph(self, options: GraphOptions) -> NeighborGraph:
        """The graph, with fewer neighbors where they were asked for."""
        radius, metric = options.radius, options.metric
        if radius is not None and radius != self.rows.radius:
            raise ValueError(
                f"radius={radius} was asked for, but the graph passed to fit was built with "
                f"radius={self.rows.radius}; build it with radius={radius}"
            )
        if metric not in ("euclidean", self.rows.metric):
            raise ValueError(
                f"metric={metric!r} was asked for, but the graph passed to fit was built with "
                f"metric={self.rows.metric!r}; build it with metric={metric!r}"
            )
        if options.n_neighbors is None:
            return self.rows
        k = check_count("n_neighbors", options.n_neighbors)
        return self.rows if k == self.rows.n_neighbors else self.rows.truncate(k)

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
        copy=False,  # `read` has made one
    )
