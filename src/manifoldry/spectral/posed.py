"""A spectral method stated for its data: what to solve, and what the solution means."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.base.input import Input, Lookup
from manifoldry.eigen import Spectra, SpectralProblem
from manifoldry.exceptions import DisconnectedGraphWarning
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.layout import Layout, component_labels
from manifoldry.extension.regression import regression_inverse
from manifoldry.neighbors.disconnected import (
    GRAPH,
    VANISHING_WEIGHTS,
    DisconnectedPolicy,
    Disconnection,
)
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.warn import warn


@dataclass(frozen=True, eq=False)
class Posed(ABC):
    """What :meth:`SpectralEmbedder._pose` returns: all that is particular to a method.

    A subclass gives ``problems`` and ``extend``; the other methods have defaults that suit a
    connected map whose coordinates are eigenvectors.
    """

    data: Input

    @property
    @abstractmethod
    def problems(self) -> list[SpectralProblem]:
        """What to solve: one problem for every component of the map, the largest first."""

    @abstractmethod
    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> Extension:
        """What gives new points their coordinates."""

    @property
    def unit(self) -> float:
        """Length in which the problems are posed; eigenvalues of Gram matrices carry its square."""
        return 1.0

    @property
    def components(self) -> list[IntArray]:
        """Rows of every component, the largest first; rows in none of them are left off the map."""
        return [np.arange(self.data.n_samples)]

    @property
    def sites(self) -> list[IntArray]:
        """Rows of the points on which each problem is posed: all of its component, or landmarks."""
        return self.components

    @cached_property
    def labels(self) -> IntArray:
        """Component of every point, -1 where it is left out."""
        return component_labels(self.components, self.data.n_samples)

    @property
    def has_lengths(self) -> bool:
        """Whether coordinates are lengths in the data, so that components keep their size."""
        return False

    def coordinates(self, spectra: Spectra) -> Array:
        """Coordinates of the training points, (n, k), of every component by itself."""
        Y = np.zeros((self.data.n_samples, spectra.k))
        for rows, problem, spectrum in zip(
            self.components, self.problems, spectra.padded, strict=True
        ):
            Y[rows] = problem.coordinates(spectrum) * self.unit
        return Y

    def lay_out(self, Y: Array) -> Layout:
        """Where every component lies on the map."""
        return Layout.of(self.labels, Y, self.data.geometry, self.has_lengths)

    def invert(self, embedding: Array, extension: Any) -> Inverse | None:
        """What leads from the map back to the data; None where they were never seen."""
        return regression_inverse(embedding, self.data.points)

    @property
    def lookup(self) -> Lookup | None:
        """What finds training points among new rows."""
        return self.data.lookup

    def loss(self, spectra: Spectra) -> float:
        """The objective of the method at the solution."""
        return float(spectra.values.sum())

    def evidence(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        """Further attributes of the fitted estimator, by name; `Y` is what `coordinates` gave."""
        return {}

    def check_connected(self) -> None:
        """Warn where a sparse operator falls apart, and the method does not embed components apart."""
        operator = self.problems[0].operator
        count = coupled_components(operator).max() + 1 if sparse.issparse(operator) else 1
        if count > 1:
            warn(
                f"the operator of this method has {count} connected components, which it does not "
                "tie to each other: eigenvectors may show them and nothing else. Make the method "
                "a PosedOnGraph, or connect the graph",
                DisconnectedGraphWarning,
            )

    def formula(self, spectra: Spectra, extension: Extension) -> Array | None:
        """What `extension` alone would make of the training points.

        None where nobody can tell, or where new points follow the coordinates of their
        neighbors, whatever those are.
        """
        points = self.data.points
        return None if points is None else extension.transform(points)


@dataclass(frozen=True, eq=False)
class PosedOnGraph(Posed):
    """A method whose operator is made from a neighbor graph, and falls apart where that does."""

    problem: SpectralProblem
    parts: list[IntArray]

    @property
    def components(self) -> list[IntArray]:
        return self.parts

    @cached_property
    def problems(self) -> list[SpectralProblem]:
        if len(self.parts[0]) == self.problem.n:
            return [self.problem]
        return [self.problem.restrict(rows) for rows in self.parts]

    def check_connected(self) -> None:
        """Components are embedded apart, and the policy for them has said so."""

    def evidence(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        return {"component_labels_": self.labels}


def connected_graph(graph: NeighborGraph, policy: DisconnectedPolicy, data: Input) -> NeighborGraph:
    """The graph, connected if the policy says so; refuses one that says nothing."""
    graph = policy.connect(graph, distances=data.distances)
    if len(graph.distances) == 0:
        raise ValueError(no_neighbors(graph.n_query))
    if not graph.distances.any():
        raise ValueError(all_coincide(graph.n_query))
    return graph


def operator_components(
    A: Any,
    policy: DisconnectedPolicy,
    graph: NeighborGraph | None = None,
    weak_link: Disconnection = VANISHING_WEIGHTS,
    remedy: str = "raise n_neighbors",
) -> list[IntArray]:
    """Return the rows of each connected component of an operator that the policy embeds.

    The policy warns if there are several. The warning names the graph as the cause, with
    `remedy`, or `weak_link` if most of the components are connected in the graph.
    """
    labels = coupled_components(A)
    count = labels.max() + 1
    if count == len(labels):
        raise ValueError(no_neighbors(len(labels)))
    if count == 1:
        return [np.arange(len(labels))]
    # A weight or two may vanish in any graph: what made most of the components is the cause.
    weak = graph is None or count > 2 * graph.components()[0] - 1
    return policy.components(labels, weak_link if weak else GRAPH._replace(remedy=remedy))


def no_neighbors(n: int) -> str:
    """What to say of a graph without an edge."""
    return (
        f"no two of the {n} points are joined by a positive weight; raise radius or n_neighbors, "
        "or lower gamma"
    )


def all_coincide(n: int, to_raise: str = "n_neighbors") -> str:
    """What to say of a graph all of whose edges have no length."""
    return (
        f"each of the {n} rows coincides with all its neighbors, so the graph says nothing about "
        f"their places; drop duplicated rows or raise {to_raise}"
    )


def coupled_components(A: Any, negligible: float = 1e-14) -> IntArray:
    """Component of every row of a symmetric operator; couplings lost in rounding do not count.

    Those are below the fraction `negligible` of both ends' diagonal entries.
    """
    if isinstance(A, np.ndarray):
        return _dense_components(A, negligible)
    A = sparse.coo_array(A)
    diagonal = np.abs(A.diagonal())
    strong = np.abs(A.data) > negligible * np.sqrt(diagonal[A.row] * diagonal[A.col])
    pattern = sparse.coo_array((A.data[strong], (A.row[strong], A.col[strong])), shape=A.shape)
    labels: IntArray = connected_components(pattern, directed=False)[1]
    return labels


def _dense_components(A: Array, negligible: float) -> IntArray:
    """The same for a dense operator, in which mostly everything is coupled with everything."""
    reached = np.zeros(len(A), dtype=bool)
    root = np.sqrt(np.abs(A.diagonal()))
    front = np.array([0])
    while len(front):
        reached[front] = True
        strong = np.abs(A[front]) > negligible * root[front, None] * root
        front = np.flatnonzero(strong.any(axis=0) & ~reached)
    if reached.all():
        return np.zeros(len(A), dtype=np.intp)
    return coupled_components(sparse.coo_array(A), negligible)
