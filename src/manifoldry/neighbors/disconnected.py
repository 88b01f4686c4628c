"""What to do with a neighbour graph that falls into pieces: one policy for all methods."""

import warnings
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry._checks import check_option
from manifoldry._typing import Array, IntArray, Matrix
from manifoldry._validation import row_blocks, split_by_label
from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning
from manifoldry.neighbors.base import NeighborIndex, compress
from manifoldry.neighbors.graph import NeighborGraph, replace_edges

Choice = Literal["separate", "join", "largest", "error"]
OPTIONS = ("separate", "join", "largest", "error")
_FEW = 256  # points up to which a component finds its exit by a deeper search in the whole index


class Bridge(NamedTuple):
    """An edge between two components."""

    i: int
    j: int
    length: float


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
        rows = split_by_label(labels)
        pieces = [rows[piece] for piece in order]
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
    """Add the shortest bridges that connect everything: a minimum spanning tree of components.

    In every round each component but the largest puts forward its shortest way out (Borůvka).
    """
    if distances is None and graph.index.points is None:
        raise DisconnectedGraphError(
            f"{_describe(labels)} and the distances between them are unknown; pass dense "
            "distances or the data themselves, or disconnected='separate'"
        )
    bridges: list[Bridge] = []
    while labels.max() > 0:
        pieces = split_by_label(labels)
        # Leaving out the largest is safe, for the others reach it, and saves the costliest search.
        others = sorted(pieces, key=len)[:-1]
        if distances is not None:
            exits = _exits_by_distance(distances, others)
        else:
            exits = _exits_by_search(graph.index, labels, others)
        added = _without_cycles(exits, labels)
        bridges += added
        labels = _merge(labels, added)
    return _add_edges(graph, bridges)


def _exits_by_distance(D: Matrix, pieces: list[IntArray]) -> list[Bridge]:
    """The shortest edge out of every piece, from all distances."""
    exits = []
    for inside in pieces:
        outside = np.delete(np.arange(len(D)), inside)
        lengths = D[np.ix_(inside, outside)]
        row, column = np.unravel_index(np.argmin(lengths), lengths.shape)
        exits.append(Bridge(inside[row], outside[column], lengths[row, column]))
    return exits


def _exits_by_search(
    index: NeighborIndex, labels: IntArray, pieces: list[IntArray]
) -> list[Bridge]:
    """The shortest edge out of every piece, by searching for neighbours."""
    few = [inside for inside in pieces if len(inside) <= _FEW]
    exits = [_exit(index, inside) for inside in pieces if len(inside) > _FEW]
    # Small pieces of similar size share a search, so that many of them cost little.
    for _, group in groupby(few, key=lambda inside: len(inside).bit_length()):
        exits += _exits_of_small(index, labels, list(group))
    return exits


def _exits_of_small(index: NeighborIndex, labels: IntArray, pieces: list[IntArray]) -> list[Bridge]:
    """Among one neighbour more than a piece has points at least one lies outside."""
    rows, k = np.concatenate(pieces), len(pieces[-1]) + 1
    best = np.full(len(rows), np.inf)
    target = np.zeros(len(rows), dtype=np.intp)
    for block in row_blocks(len(rows), k, budget=2**20):
        found, lengths = index.nearest(index.points[rows[block]], k)  # type: ignore[index]
        lengths = np.where(labels[found] == labels[rows[block], None], np.inf, lengths)
        column = lengths.argmin(axis=1)
        line = np.arange(len(column))
        best[block], target[block] = lengths[line, column], found[line, column]
    starts = np.cumsum([0, *map(len, pieces)])
    exits = [a + int(best[a:b].argmin()) for a, b in pairwise(starts)]
    return [Bridge(rows[i], target[i], best[i]) for i in exits]


def _exit(index: NeighborIndex, inside: IntArray) -> Bridge:
    """The shortest edge out of a large piece, by an index of everything else."""
    outside = np.delete(np.arange(index.n_reference), inside)
    points = index.points[inside]  # type: ignore[index]  # _join made sure there are points
    found, lengths = index.restrict(outside).nearest(points, 1)
    row = int(lengths[:, 0].argmin())
    return Bridge(inside[row], outside[found[row, 0]], lengths[row, 0])


def _without_cycles(exits: list[Bridge], labels: IntArray) -> list[Bridge]:
    """From the shortest up, the bridges between pieces that are not connected yet (Kruskal)."""
    parent = np.arange(labels.max() + 1)

    def root(piece: int) -> int:
        while parent[piece] != piece:
            parent[piece] = piece = parent[parent[piece]]
        return piece

    kept = []
    for bridge in sorted(exits, key=lambda bridge: bridge.length):
        a, b = root(labels[bridge.i]), root(labels[bridge.j])
        if a != b:
            parent[b] = a
            kept.append(bridge)
    return kept


def _merge(labels: IntArray, bridges: list[Bridge]) -> IntArray:
    """Labels of the components after building bridges."""
    count = labels.max() + 1
    ends = labels[[bridge.i for bridge in bridges]], labels[[bridge.j for bridge in bridges]]
    joined = sparse.coo_array((np.ones(len(bridges)), ends), shape=(count, count))
    merged: IntArray = connected_components(joined, directed=False)[1]
    return merged[labels]


def _add_edges(graph: NeighborGraph, bridges: list[Bridge]) -> NeighborGraph:
    i, j, length = (np.array(column) for column in zip(*bridges, strict=True))
    rows = np.concatenate([graph.rows, i, j])
    columns = np.concatenate([graph.indices, j, i])
    lengths: Array = np.concatenate([graph.distances, length, length])
    return replace_edges(graph, compress(rows, columns, lengths, graph.n_query))
