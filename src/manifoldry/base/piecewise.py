"""Estimators whose map is made of pieces, one per connected component of a neighbour graph."""

from typing import Any

import numpy as np

from manifoldry.base.graph_reader import GraphReader
from manifoldry.extension.pieces import Geometry, Pieces, piece_rows
from manifoldry.extension.regression import LocalRegression
from manifoldry.neighbors.disconnected import OPTIONS, DisconnectedPolicy
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray


class PiecewiseEmbedder(GraphReader):
    """Base of the estimators that embed components apart and lay them out in one map.

    Attributes
    ----------
    search_ : str
        How neighbours were found, and why so; how many of them, where not all.
    piece_labels_ : array of shape (n_samples,)
        Component of every point, 0 being the largest; -1 if it was left out.
    """

    search_: str
    piece_labels_: IntArray

    disconnected: Any

    # What a user may pass as `disconnected`.
    _policies: tuple[str, ...] = OPTIONS
    _pieces: Pieces

    @property
    def _policy(self) -> DisconnectedPolicy:
        return DisconnectedPolicy(self.disconnected, self._policies)

    def _connected_graph(self, data: Any) -> NeighborGraph:
        """The neighbour graph of the data, connected if the policy says so."""
        graph = self._policy.connect(self._unconnected(data), distances=self._dense_distances(data))
        self._n_graph_components = graph.components()[0]
        self.search_ = graph.search
        return graph

    @property
    def _in_data_units(self) -> bool:
        """Whether coordinates are lengths in the data, so that pieces keep their size."""
        return False

    def _geometry(self, data: Any, rows: list[IntArray]) -> Geometry:
        """Sizes and positions of pieces in the data, as far as they are known."""
        distances = self._dense_distances(data)
        if distances is not None:
            return Geometry.of_distances(distances, rows)
        points = self._points(data)
        return Geometry.unknown(rows) if points is None else Geometry.of_points(points, rows)

    def _label(self, pieces: list[IntArray], n: int) -> None:
        self.piece_labels_ = np.full(n, -1, dtype=np.intp)
        for number, rows in enumerate(pieces):
            self.piece_labels_[rows] = number

    def _lay_out(self, data: Any, Y: Array) -> Array:
        """Put coordinates computed within pieces into one map."""
        if self.piece_labels_.max() == 0:
            self._pieces = Pieces.single(self.piece_labels_, self.n_components_)
        else:
            geometry = self._geometry(data, piece_rows(self.piece_labels_))
            self._pieces = Pieces.lay_out(self.piece_labels_, Y, geometry, self._in_data_units)
        return self._pieces.place(Y, self.piece_labels_)

    def _regression(self, data: Any) -> LocalRegression | None:
        """From the map to the data of the rows that are on it; None where they were not seen."""
        points, rows = self._points(data), self._on_map
        if points is None:
            return None
        if len(rows) < len(self.embedding_):
            return LocalRegression(self.embedding_[rows], points[rows])
        return LocalRegression(self.embedding_, points)

    def _check_even(self, graph: NeighborGraph) -> None:
        """Refuse graphs in which neighbourhoods differ in size."""
        if graph.n_neighbors is None:
            raise ValueError(
                f"{type(self).__name__} needs the same number of neighbours everywhere; build the "
                "graph with n_neighbors instead of radius"
            )

    def _check_has_points(self, data: Any) -> None:
        """Refuse distances in place of data."""
        if self._points(data) is None:
            raise ValueError(
                f"{type(self).__name__} needs the coordinates of the data, not only distances; "
                "pass the data, or use Isomap or LaplacianEigenmaps"
            )


def with_itself(graph: NeighborGraph) -> IntArray:
    """Members of every neighbourhood, (n, k + 1), the point itself first."""
    members = graph.indices.reshape(-1, graph.k)
    return np.hstack([np.arange(graph.n_query)[:, None], members])
