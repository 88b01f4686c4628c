"""Estimators that read a neighbour graph: from data, from distances, or a ready one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.embedder import Embedder
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.precomputed import SparseDistances
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array
from manifoldry.util.validation import check_square


@dataclass(frozen=True, eq=False)
class GraphInput:
    """A ready graph passed to ``fit`` in place of data; looks like data to the base class."""

    graph: NeighborGraph

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the data behind the graph."""
        points = self.graph.index.points
        n = self.graph.n_reference
        return (n, n) if points is None else (n, points.shape[1])

    @property
    def dtype(self) -> Any:
        """Type of the data behind the graph."""
        points = self.graph.index.points
        return np.dtype(np.float64) if points is None else points.dtype


class GraphReader(Embedder):
    """Base of the estimators that see the data through their neighbour graph."""

    n_neighbors: int | None
    radius: float | None
    metric: Any
    metric_params: dict[str, Any] | None
    n_jobs: int | None

    def _read(self, X: Any, reset: bool) -> Any:
        if isinstance(X, NeighborGraph):
            return self._read_graph(X, reset)
        return super()._read(X, reset)

    def _read_graph(self, graph: NeighborGraph, reset: bool) -> GraphInput:
        if not reset:
            raise TypeError("transform takes data, not a NeighborGraph")
        if graph.n_query != graph.n_reference:
            raise ValueError(
                f"fit needs the graph of the training points among themselves; this one has "
                f"{graph.n_query} query points and {graph.n_reference} reference points"
            )
        given = GraphInput(graph)
        self.n_features_in_ = given.shape[1]
        if graph.feature_names is not None:
            self.feature_names_in_ = graph.feature_names
        return given

    def _unconnected(self, data: Any) -> NeighborGraph:
        if isinstance(data, GraphInput):
            return self._cut(data.graph)
        free = self.n_neighbors is None and self.radius is None
        return NeighborGraph.build(
            data,
            self._neighbors_to_take(data) if free else self.n_neighbors,
            radius=self.radius,
            metric=self.metric,
            metric_params=self.metric_params,
            n_jobs=self.n_jobs,
            copy=False,  # `_read` has made one
        )

    def _neighbors_to_take(self, data: Any) -> int | None:
        """Neighbours where none were asked for, no more than a sparse graph has."""
        wanted = self._default_neighbors(data.shape[0])
        if wanted is None or not (self._is_precomputed and sparse.issparse(data)):
            return wanted
        check_square(data, "distances")
        return min(wanted, SparseDistances(data.shape[0]).fewest_stored(data))

    def _default_neighbors(self, n: int) -> int | None:
        """Neighbours of `n` points where none were asked for; None leaves it to the graph."""
        return None

    def _dense_distances(self, data: Any) -> Array | None:
        """All distances, where the user passed them."""
        given = isinstance(data, np.ndarray) and self._is_precomputed
        return data if given else None

    def _points(self, data: Any) -> Any:
        """The data behind the graph, or None where only pairs of them were ever seen."""
        if isinstance(data, GraphInput):
            return data.graph.index.points
        return None if self._is_precomputed else data

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _cut(self, graph: NeighborGraph) -> NeighborGraph:
        """A ready graph, cut down to ``n_neighbors`` where the user asked for fewer."""
        if self.radius is not None and self.radius != graph.radius:
            raise ValueError(
                f"radius={self.radius} was asked for, but the graph passed to fit was built with "
                f"radius={graph.radius}; build it with radius={self.radius}"
            )
        if self.metric not in ("euclidean", graph.metric):
            raise ValueError(
                f"metric={self.metric!r} was asked for, but the graph passed to fit was built with "
                f"metric={graph.metric!r}; build it with metric={self.metric!r}"
            )
        return graph if self.n_neighbors is None else cut(graph, self.n_neighbors)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.positive_only = self._is_precomputed
        return tags


def cut(graph: NeighborGraph, n_neighbors: int) -> NeighborGraph:
    """A ready graph with only `n_neighbors` of every point."""
    k = check_count("n_neighbors", n_neighbors)
    return graph if k == graph.n_neighbors else graph.truncate(k)
