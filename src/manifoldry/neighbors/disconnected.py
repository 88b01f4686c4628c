"""What to do with a neighbour graph that falls into pieces: one policy for all methods."""

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from manifoldry._checks import check_option
from manifoldry._typing import Array, IntArray, Matrix
from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning
from manifoldry.neighbors.base import NeighborIndex, compress
from manifoldry.neighbors.graph import NeighborGraph, replace_edges

Choice = Literal["separate", "join", "largest", "error"]
OPTIONS = ("separate", "join", "largest", "error")
_FEW = 256  # components below this size find their exit by a deeper search in the whole index


@dataclass(frozen=True)
class DisconnectedPolicy:
    """How to embed a graph of several connected components.

    Parameters
    ----------
    choice : {"separate", "join", "largest", "error"}
        ``"separate"`` embeds each component by itself and lays them out at their true relative
        positions. ``"join"`` adds the shortest bridges that connect everything, which suits
        geodesic methods; for kernel methods a long bridge has next to no weight. ``"largest"``
        embeds only the largest component, the other points become NaN. ``"error"`` refuses.
    """

    choice: Choice

    def __post_init__(self) -> None:
        check_option("disconnected", self.choice, OPTIONS)

    def connect(self, graph: NeighborGraph, distances: Matrix | None = None) -> NeighborGraph:
        """Apply what has to be done to the graph itself: bridges for ``"join"``.

        `distances` are the dense distances of a graph that was read off them.
        """
        count, labels = graph.components()
        if count == 1 or self.choice != "join":
            return graph
        self._warn(labels, "they were joined by the shortest bridges between them")
        return _join(graph, labels, distances)

    def pieces(self, labels: IntArray) -> list[IntArray]:
        """Rows of each piece to embed, largest first, with a warning if there are several."""
        sizes = np.bincount(labels)
        order = np.argsort(-sizes, kind="stable")
        pieces: list[IntArray] = [np.flatnonzero(labels == piece) for piece in order]
        if len(pieces) == 1:
            return pieces
        if self.choice in ("error", "join"):
            raise DisconnectedGraphError(self._refusal(labels))
        if self.choice == "largest":
            self._warn(labels, "only the largest was embedded, the other rows are NaN")
            return pieces[:1]
        self._warn(labels, "each was embedded by itself and placed where it lies in the data")
        return pieces

    def _refusal(self, labels: IntArray) -> str:
        cause = (
            "even with bridges, because the affinity of the bridges vanishes; use "
            "disconnected='separate', or a wider kernel (smaller gamma)"
            if self.choice == "join"
            else "raise n_neighbors or radius, or pass disconnected='separate'"
        )
        return f"{_describe(labels)}; {cause}"

    def _warn(self, labels: IntArray, done: str) -> None:
        message = (
            f"{_describe(labels)}; {done}. Raise n_neighbors to connect them, or choose another "
            f"policy with disconnected={'|'.join(OPTIONS)}"
        )
        warnings.warn(message, DisconnectedGraphWarning, stacklevel=4)


def _describe(labels: IntArray) -> str:
    sizes = np.sort(np.bincount(labels))[::-1]
    shown = ", ".join(map(str, sizes[:5])) + (", ..." if len(sizes) > 5 else "")
    return f"the neighbour graph has {len(sizes)} connected components (of {shown} points)"


def _join(graph: NeighborGraph, labels: IntArray, distances: Matrix | None) -> NeighborGraph:
    """Add Kruskal's bridges: repeatedly the shortest edge between two components."""
    if distances is None and graph.index.points is None:
        raise DisconnectedGraphError(
            f"{_describe(labels)} and the distances between them are unknown; pass dense "
            "distances or the data themselves, or disconnected='separate'"
        )
    bridges: list[tuple[int, int, float]] = []
    labels = labels.copy()
    while labels.min() != labels.max():
        for i, j, length in sorted(_exits(graph, labels, distances), key=lambda edge: edge[2]):
            if labels[i] != labels[j]:
                bridges.append((i, j, length))
                labels[labels == labels[j]] = labels[i]
    return _add_edges(graph, bridges)


def _exits(
    graph: NeighborGraph, labels: IntArray, distances: Matrix | None
) -> list[tuple[int, int, float]]:
    """The shortest edge out of every component but the largest (a round of Borůvka's algorithm).

    Leaving out the largest is safe, for the others reach it, and saves the costliest search.
    """
    pieces, sizes = np.unique(labels, return_counts=True)
    others = np.delete(pieces, np.argmax(sizes))
    return [_exit(graph.index, np.flatnonzero(labels == piece), distances) for piece in others]


def _exit(
    index: NeighborIndex, inside: IntArray, distances: Matrix | None
) -> tuple[int, int, float]:
    outside = np.delete(np.arange(index.n_reference), inside)
    if distances is not None:
        D = distances[np.ix_(inside, outside)]
        row, column = np.unravel_index(np.argmin(D), D.shape)
        return int(inside[row]), int(outside[column]), float(D[row, column])
    points = index.points[inside]  # type: ignore[index]  # _join made sure there are points
    if len(inside) < _FEW:
        # Among len(inside) + 1 nearest at least one lies outside: no second index is needed.
        found, length = index.nearest(points, len(inside) + 1)
        length = np.where(np.isin(found, inside), np.inf, length)
        row, column = np.unravel_index(np.argmin(length), length.shape)
        return int(inside[row]), int(found[row, column]), float(length[row, column])
    found, length = index.restrict(outside).nearest(points, 1)
    row = np.argmin(length[:, 0])
    return int(inside[row]), int(outside[found[row, 0]]), float(length[row, 0])


def _add_edges(graph: NeighborGraph, bridges: list[tuple[int, int, float]]) -> NeighborGraph:
    i, j, length = (np.array(column) for column in zip(*bridges, strict=True))
    rows = np.concatenate([graph.rows, i, j]).astype(np.intp)
    columns = np.concatenate([graph.indices, j, i]).astype(np.intp)
    lengths: Array = np.concatenate([graph.distances, length, length])
    return replace_edges(graph, compress(rows, columns, lengths, graph.n_query))
