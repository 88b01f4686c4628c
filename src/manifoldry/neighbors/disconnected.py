"""The policy for neighbor graphs with several connected components, shared by all methods."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning, warn
from manifoldry.neighbors.base import NeighborIndex, compress
from manifoldry.neighbors.graph import NeighborGraph, replace_edges
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks, split_by_label

Choice = Literal["separate", "join", "largest", "error"]
OPTIONS = ("separate", "join", "largest", "error")

_JOINED = "they were joined by the shortest edges between them"


class Bridge(NamedTuple):
    """An edge added between two connected components."""

    i: int
    j: int
    length: float


class Disconnection(NamedTuple):
    """What is disconnected, and how to connect it."""

    what: str
    remedy: str


GRAPH = Disconnection("neighbor graph", "raise n_neighbors or radius")
GIVEN_WEIGHTS = Disconnection("affinity", "give some pairs between them a positive weight")
VANISHING_WEIGHTS = Disconnection(
    "affinity, but not the neighbor graph,",
    "use affinity='self_tuning' or 'binary', or a smaller gamma: some weights are almost zero",
)
LOCAL_WIDTH = VANISHING_WEIGHTS._replace(
    remedy="use affinity='binary': some weights are almost zero"
)
ALIGNMENT = Disconnection(
    "alignment of neighborhoods, but not the neighbor graph,", "raise n_neighbors"
)


@dataclass(frozen=True)
class DisconnectedPolicy:
    """How to embed a graph with several connected components.

    Estimators on neighbor graphs take the choice as ``disconnected=``.

    Parameters
    ----------
    choice : {"separate", "join", "largest", "error"}
        ``"separate"`` embeds each connected component separately and places the components
        according to their positions in the data. ``"join"`` adds the shortest edges that connect
        all components, which suits geodesic methods; for kernel methods long edges have almost no
        weight. ``"largest"`` embeds only the largest component; the other rows are NaN.
        ``"error"`` raises DisconnectedGraphError.
    options : tuple of str, optional
        The choices that the method supports.

    See Also
    --------
    manifoldry.exceptions.DisconnectedGraphWarning : the warning about several components.
    manifoldry.exceptions.DisconnectedGraphError : what ``"error"`` raises.
    manifoldry.extension.Layout : where the components are placed.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import NeighborGraph
    >>> from manifoldry.neighbors import DisconnectedPolicy
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [9.0], [10.0]]), n_neighbors=1)
    >>> count, labels = graph.components()
    >>> DisconnectedPolicy("error").components(labels)
    Traceback (most recent call last):
        ...
    manifoldry.exceptions.DisconnectedGraphError: the neighbor graph has 2 connected components ...
    """

    choice: Choice
    options: tuple[str, ...] = OPTIONS

    def __post_init__(self) -> None:
        check_option("disconnected", self.choice, self.options)

    def connect(self, graph: NeighborGraph, distances: Matrix | None = None) -> NeighborGraph:
        """Return the graph, for ``"join"`` with the edges that connect its components.

        Parameters
        ----------
        graph : NeighborGraph
            The graph.
        distances : array of shape (n, n), default=None
            The distance matrix, if the graph was built from one.

        Returns
        -------
        NeighborGraph
            The graph, connected if the choice is ``"join"``.
        """
        count, labels = graph.components()
        if count == 1 or self.choice != "join":
            return graph
        self._warn(_describe(labels), GRAPH, _JOINED)
        return _join(graph, labels, distances)

    def components(self, labels: IntArray, disconnection: Disconnection = GRAPH) -> list[IntArray]:
        """Return the rows of each component to embed, and warn if there are several components.

        Parameters
        ----------
        labels : array of shape (n,)
            The component of each point.
        disconnection : Disconnection, optional
            Names the disconnected object and the remedy, for the message.

        Returns
        -------
        list of arrays
            Rows of each component, the largest first.
        """
        sizes = np.bincount(labels)
        order = np.argsort(-sizes, kind="stable")
        rows = split_by_label(labels)
        components = [rows[component] for component in order]
        if len(components) == 1:
            return components
        found = _describe(labels, disconnection.what)
        if self.choice in ("error", "join"):
            raise DisconnectedGraphError(
                f"{found}; {disconnection.remedy}, or pass disconnected='separate'"
            )
        if self.choice == "largest":
            self._warn(
                found, disconnection, "only the largest was embedded, the other rows are NaN"
            )
            return components[:1]
        action = "each was embedded separately and placed according to its position in the data"
        self._warn(found, disconnection, action)
        return components

    def check_largest(
        self, sizes: list[int], count: int, disconnection: Disconnection = GRAPH
    ) -> None:
        """Say that only the largest component is embedded, of a graph across workers.

        Parameters
        ----------
        sizes : list of int
            Numbers of points of the largest components, at least five if there are as many.
        count : int
            Number of components, more than one.
        disconnection : Disconnection, optional
            Names the disconnected object and the remedy, for the message.

        Raises
        ------
        DisconnectedGraphError
            If the choice is ``"error"``, or ``"join"`` and they have not been joined.
        """
        found = _described(sizes, count, disconnection.what)
        landmarks = "fit a sample: with manifoldry.distributed.using_options(landmarks=20_000)"
        if self.choice in ("error", "join"):
            raise DisconnectedGraphError(
                f"{found}; {disconnection.remedy}, pass disconnected='largest', or {landmarks}"
            )
        apart = f"; to embed each separately, {landmarks}" if self.choice == "separate" else ""
        warn(
            f"{found}; only the largest was embedded, the other rows are NaN. To connect them, "
            f"{disconnection.remedy}{apart}",
            DisconnectedGraphWarning,
        )

    def say_joined(self, sizes: list[int], count: int) -> None:
        """Warn that the components of a graph across workers were joined, as `connect` does.

        Parameters
        ----------
        sizes : list of int
            Numbers of points of the largest components, at least five if there are as many.
        count : int
            Number of components.
        """
        self._warn(_described(sizes, count, GRAPH.what), GRAPH, _JOINED)

    def _warn(self, found: str, disconnection: "Disconnection", action: str) -> None:
        others = ", ".join(repr(option) for option in self.options if option != self.choice)
        instead = f"; for another policy pass disconnected={others}" if others else ""
        warn(
            f"{found}; {action}. To connect them, {disconnection.remedy}{instead}",
            DisconnectedGraphWarning,
        )


def _describe(labels: IntArray, what: str = "neighbor graph") -> str:
    sizes = np.sort(np.bincount(labels))[::-1]
    return _described(list(sizes), len(sizes), what)


def _described(sizes: list[int], count: int, what: str) -> str:
    shown = ", ".join(map(str, sizes[:5])) + (", ..." if count > 5 else "")
    return f"the {what} has {count} connected components (of {shown} points)"


def _join(graph: NeighborGraph, labels: IntArray, distances: Matrix | None) -> NeighborGraph:
    """Add the edges of a minimum spanning tree of the components (Borůvka's algorithm).

    In each round, the shortest edge out of each component except the largest is added.
    """
    if distances is None and graph.index.points is None:
        raise DisconnectedGraphError(
            f"{_describe(labels)} and the distances between them are unknown; pass dense "
            "distances, the data, or disconnected='separate'"
        )
    if distances is None:
        return _add_edges(graph, shortest_bridges(graph.index, labels))
    return _add_edges(graph, _bridges(labels, partial(_shortest_by_distance, distances)))


def shortest_bridges(index: NeighborIndex, labels: IntArray) -> list[Bridge]:
    """Return the shortest edges between the points of an index that connect their components."""
    return _bridges(labels, partial(_shortest_by_search, index))


def _bridges(
    labels: IntArray, shortest_of: Callable[[IntArray, list[IntArray]], list[Bridge]]
) -> list[Bridge]:
    bridges: list[Bridge] = []
    while labels.max() > 0:
        components = split_by_label(labels)
        # The largest component can be skipped, since the others are connected to it.
        shortest = shortest_of(labels, sorted(components, key=len)[:-1])
        added = _without_cycles(shortest, labels)
        bridges += added
        labels = _merge(labels, added)
    return bridges


def _shortest_by_distance(D: Matrix, labels: IntArray, components: list[IntArray]) -> list[Bridge]:
    """The shortest edge out of each component, from all distances."""
    shortest = []
    for inside in components:
        outside = np.flatnonzero(labels != labels[inside[0]])
        lengths = D[np.ix_(inside, outside)]
        row, column = np.unravel_index(np.argmin(lengths), lengths.shape)
        shortest.append(Bridge(inside[row], outside[column], lengths[row, column]))
    return shortest


def _shortest_by_search(
    index: NeighborIndex,
    labels: IntArray,
    components: list[IntArray],
    depths: tuple[int, ...] = (8, 32, 128),
) -> list[Bridge]:
    """The shortest edge out of each component, by searches for increasing numbers of neighbors.

    The search of a point ends when one of its neighbors is in another component, or when its last
    neighbor is farther away than the shortest edge found for its component. For the remaining
    points, deep inside large components, an index of all points outside is searched.
    """
    shortest: dict[int, Bridge] = {}
    rows = np.concatenate(components)
    for depth in depths:
        targets, lengths, searched = _nearest_outside(index, labels, rows, min(depth, len(labels)))
        _keep_shorter(shortest, labels, rows, targets, lengths)
        known = {label: bridge.length for label, bridge in shortest.items()}
        rows = rows[searched < [known.get(label, np.inf) for label in labels[rows]]]
    for label in np.unique(labels[rows]):
        inside, outside = rows[labels[rows] == label], np.flatnonzero(labels != label)
        found, nearest = index.restrict(outside).nearest(_points(index, inside), 1)
        _keep_shorter(shortest, labels, inside, outside[found[:, 0]], nearest[:, 0])
    return list(shortest.values())


def _nearest_outside(
    index: NeighborIndex, labels: IntArray, rows: IntArray, k: int
) -> tuple[IntArray, Array, Array]:
    """Nearest of the k neighbors in another component, its distance, and the searched radius.

    The distance is infinite if there is no such neighbor; otherwise the radius is infinite.
    """
    targets = np.zeros(len(rows), dtype=np.intp)
    lengths, searched = np.full(len(rows), np.inf), np.full(len(rows), np.inf)
    for block in row_blocks(len(rows), k, budget=2**20):
        found, distances = index.nearest(_points(index, rows[block]), k)
        outside = labels[found] != labels[rows[block], None]
        first = outside.argmax(axis=1)[:, None]
        has_outside = outside.any(axis=1)
        targets[block] = np.take_along_axis(found, first, axis=1)[:, 0]
        nearest = np.take_along_axis(distances, first, axis=1)[:, 0]
        lengths[block] = np.where(has_outside, nearest, np.inf)
        searched[block] = np.where(has_outside, np.inf, distances[:, -1])
    return targets, lengths, searched


def _keep_shorter(
    shortest: dict[int, Bridge], labels: IntArray, rows: IntArray, targets: IntArray, lengths: Array
) -> None:
    """Update the shortest edge out of each component with the given candidate edges."""
    order = np.lexsort((rows, lengths, labels[rows]))
    for at in order[np.unique(labels[rows[order]], return_index=True)[1]]:
        label, bridge = labels[rows[at]], Bridge(rows[at], targets[at], lengths[at])
        if bridge.length < (shortest[label].length if label in shortest else np.inf):
            shortest[label] = bridge


def _points(index: NeighborIndex, rows: IntArray) -> Matrix:
    assert index.points is not None  # checked in _join
    return index.points[rows]


def _without_cycles(shortest: list[Bridge], labels: IntArray) -> list[Bridge]:
    """The edges, shortest first, that do not close a cycle (Kruskal's algorithm)."""
    parent = np.arange(labels.max() + 1)

    def root(component: int) -> int:
        while parent[component] != component:
            parent[component] = component = parent[parent[component]]
        return component

    kept = []
    for bridge in sorted(shortest, key=lambda bridge: bridge.length):
        a, b = root(labels[bridge.i]), root(labels[bridge.j])
        if a != b:
            parent[b] = a
            kept.append(bridge)
    return kept


def _merge(labels: IntArray, bridges: list[Bridge]) -> IntArray:
    """Labels of the components after adding edges."""
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
