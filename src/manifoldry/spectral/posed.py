"""Eigenproblem of a spectral method for given data, and how its solution gives the embedding."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.base.input import Input, RowMatcher
from manifoldry.eigen import Spectra, SpectralProblem
from manifoldry.exceptions import DisconnectedGraphWarning, warn
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.data_regression import DataRegression
from manifoldry.extension.layout import Layout, component_labels
from manifoldry.extension.regression import regression_inverse
from manifoldry.neighbors.disconnected import (
    GRAPH,
    VANISHING_WEIGHTS,
    DisconnectedPolicy,
    Disconnection,
)
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.on_device import device_with_edges, strong_components
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray

# Entries of an operator up to these fractions, of the diagonal and of the largest entry, do not
# connect their rows: see `coupled_components`.
NEGLIGIBLE, VANISHING = 1e-14, 1e-120


@dataclass(frozen=True, eq=False)
class Posed(ABC):
    """Eigenproblem of a spectral method for given data, returned by ``SpectralEmbedder.pose``.

    It also defines how a solution gives the embedding, the extension to new points and the other
    fitted attributes, which ``SpectralEmbedder.adopt`` sets. To pose a problem means to build it
    from the data; to adopt a solution means to store it in the estimator.

    A subclass defines ``problems``. The other methods have defaults for data that form one
    connected component and for coordinates that are eigenvectors.

    Parameters
    ----------
    data : Input
        What was passed to ``_pose``: the validated data.

    See Also
    --------
    PosedOnGraph : problems on neighbor graphs.
    PosedKernel : problems of kernel matrices.
    SpectralEmbedder : the estimator that poses the problem.

    Examples
    --------
    Principal components, as an eigenproblem of the matrix of inner products. The problem is all
    that a method has to define:

    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> from manifoldry.eigen import Gram, SpectralProblem
    >>> from manifoldry.spectral import Posed, SpectralEmbedder
    >>> class PosedLinear(Posed):
    ...     @property
    ...     def problems(self):
    ...         X = self.data.points - self.data.points.mean(axis=0)
    ...         ones = np.ones(len(X))
    ...         return [SpectralProblem(Gram(X), "largest", deflate=ones, scale="sqrt_eigenvalue")]
    >>> class Linear(SpectralEmbedder):
    ...     def __init__(self, n_components=None):
    ...         self.n_components = n_components
    ...     def _pose(self, data):
    ...         return PosedLinear(data)
    >>> X = np.random.default_rng(0).normal(size=(30, 3)) * [3, 2, 1]
    >>> Y = Linear(2).fit_transform(X)
    >>> bool(np.allclose(np.abs(Y), np.abs(PCA(2).fit_transform(X))))
    True
    """

    data: Input

    @property
    @abstractmethod
    def problems(self) -> list[SpectralProblem]:
        """Eigenproblems, one for each connected component, the largest first."""

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> Extension:
        """Return the extension that computes the coordinates of new points.

        By default local regression of the coordinates on the data.

        Parameters
        ----------
        spectra : Spectra
            The eigenpairs of the problems.
        layout : Layout
            Position and scale of each connected component.
        embedding : array of shape (n, n_components)
            The embedding.

        Returns
        -------
        Extension
            The extension.
        """
        if self.data.points is None:
            raise NotImplementedError(
                f"{type(self).__name__} defines no extend, and new points cannot be embedded by "
                f"regression on the data, since fit was given {self.data.description}; define "
                "extend, or pass the data"
            )
        return DataRegression(self.data.points, self.coordinates(spectra), layout)

    @property
    def unit(self) -> float:
        """Unit of length of the problems; eigenvalues of Gram matrices scale with its square."""
        return 1.0

    @property
    def components(self) -> list[IntArray]:
        """Rows of each connected component, the largest first; other rows are not embedded."""
        return [np.arange(self.data.n_samples)]

    @property
    def problem_rows(self) -> list[IntArray]:
        """Rows that each problem involves: all rows of its component, or its landmarks."""
        return self.components

    @cached_property
    def labels(self) -> IntArray:
        """Component of each point, or -1 if it is not embedded."""
        return component_labels(self.components, self.data.n_samples)

    @property
    def preserves_scale(self) -> bool:
        """Whether coordinates have the scale of the data, so that components are not rescaled."""
        return False

    def coordinates(self, spectra: Spectra) -> Array:
        """Return the coordinates of the training points, each component centered separately.

        Parameters
        ----------
        spectra : Spectra
            The eigenpairs of the problems.

        Returns
        -------
        array of shape (n, k)
            The coordinates, before components are moved and scaled.
        """
        Y = np.zeros((self.data.n_samples, spectra.k))
        for rows, problem, spectrum in zip(
            self.components, self.problems, spectra.padded, strict=True
        ):
            Y[rows] = problem.coordinates(spectrum) * self.unit
        return Y

    def lay_out(self, Y: Array) -> Layout:
        """Return the scale and position of each component in the embedding.

        Parameters
        ----------
        Y : array of shape (n, k)
            The result of `coordinates`.

        Returns
        -------
        Layout
            The layout.
        """
        return Layout.of(self.labels, Y, self.data.geometry, self.preserves_scale)

    def invert(self, embedding: Array, extension: Any) -> Inverse | None:
        """Return the inverse map, from coordinates to data, or None if the data are unknown.

        Parameters
        ----------
        embedding : array of shape (n, n_components)
            The embedding.
        extension : Extension
            The extension to new points.

        Returns
        -------
        Inverse or None
            An object whose ``predict`` computes data from coordinates.
        """
        return regression_inverse(embedding, self.data.points)

    @property
    def row_matcher(self) -> RowMatcher | None:
        """Finds training rows among new rows."""
        return self.data.row_matcher

    def loss(self, spectra: Spectra) -> float:
        """Return the value of the method's objective at the solution.

        Parameters
        ----------
        spectra : Spectra
            The eigenpairs of the problems.

        Returns
        -------
        float
            The value, stored as ``loss_``.
        """
        return float(spectra.values.sum())

    def fitted_attributes(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        """Return further fitted attributes by name.

        Parameters
        ----------
        spectra : Spectra
            The eigenpairs of the problems.
        Y : array of shape (n, k)
            The result of `coordinates`.
        extension : Extension
            The extension to new points.

        Returns
        -------
        dict
            Names and values of the attributes.
        """
        return {}

    def check_connected(self) -> None:
        """Warn if a sparse operator has several connected components, solved as one problem."""
        operator = self.problems[0].operator
        count = coupled_components(operator).max() + 1 if sparse.issparse(operator) else 1
        if count > 1:
            warn(
                f"the operator of this method has {count} connected components, so eigenvectors "
                "may be constant on each of them. Derive the method's Posed from PosedOnGraph, "
                "which embeds each component separately, or connect the graph",
                DisconnectedGraphWarning,
            )

    def extension_at_training(self, spectra: Spectra, extension: Extension) -> Array:
        """Return the coordinates that `extension` computes for the training points.

        Each point is treated as one of its own connected component.

        Parameters
        ----------
        spectra : Spectra
            The eigenpairs of the problems.
        extension : Extension
            The extension to new points.

        Returns
        -------
        array of shape (n, k)
            The coordinates within components.
        """
        rows = self.data.rows if self.data.pairwise else self.data.points
        return extension.component_coordinates(rows)[0]


@dataclass(frozen=True, eq=False)
class PosedOnGraph(Posed):
    """Eigenproblem whose operator comes from a neighbor graph; embeds each component separately.

    Return it, or a subclass, from ``_pose`` of a method on neighbor graphs.

    Parameters
    ----------
    data : Input
        What was passed to ``_pose``.
    problem : SpectralProblem
        The eigenproblem of all points.
    rows_by_component : list of arrays
        Rows of each connected component, such as those of `operator_components`.

    See Also
    --------
    connected_graph, operator_components : the usual steps before it.
    PosedKernel : the counterpart for kernel matrices.

    Examples
    --------
    The largest eigenvectors of the normalized adjacency matrix of the neighbor graph, without the
    first, the square roots of the degrees:

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from manifoldry.affinity import SelfTuning
    >>> from manifoldry.eigen import SpectralProblem
    >>> from manifoldry.spectral import (
    ...     PosedOnGraph, SpectralEmbedder, connected_graph, operator_components
    ... )
    >>> class Adjacency(SpectralEmbedder):
    ...     def __init__(self, n_components=None, *, n_neighbors=None):
    ...         self.n_components, self.n_neighbors = n_components, n_neighbors
    ...     def _pose(self, data):
    ...         graph = connected_graph(self._neighbor_graph(data), self._policy(), data)
    ...         W = SelfTuning().fit(graph).matrix(graph)
    ...         root = np.sqrt(W.sum(axis=1))
    ...         A = sparse.diags_array(1 / root) @ W @ sparse.diags_array(1 / root)
    ...         problem = SpectralProblem(A, "largest", deflate=root)
    ...         return PosedOnGraph(data, problem, operator_components(A, self._policy(), graph))
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = Adjacency().fit(X)
    >>> model.embedding_.shape, model.transform(X[:2] + 0.1).shape
    ((60, 2), (2, 2))
    """

    problem: SpectralProblem
    rows_by_component: list[IntArray]

    @property
    def components(self) -> list[IntArray]:
        return self.rows_by_component

    @cached_property
    def problems(self) -> list[SpectralProblem]:
        """Eigenproblems, one for each connected component, the largest first."""
        if len(self.rows_by_component[0]) == self.problem.n:
            return [self.problem]
        return [self.problem.restrict(rows) for rows in self.rows_by_component]

    def check_connected(self) -> None:
        """Do nothing: components are embedded separately, and the policy has already warned."""

    def fitted_attributes(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        return {"component_labels_": self.labels}


def connected_graph(graph: NeighborGraph, policy: DisconnectedPolicy, data: Input) -> NeighborGraph:
    """Return the graph, after adding edges if the policy is "join".

    Use it in ``_pose`` of a method on neighbor graphs.

    Parameters
    ----------
    graph : NeighborGraph
        The neighbor graph of the training points.
    policy : DisconnectedPolicy
        What to do if the graph is disconnected.
    data : Input
        What was passed to ``_pose``.

    Returns
    -------
    NeighborGraph
        The graph.

    Raises
    ------
    ValueError
        If there are no edges, or all edges have length zero.

    See Also
    --------
    operator_components : the components of the operator that is built from the graph.
    PosedOnGraph : its example uses both.

    Examples
    --------
    Two groups of points, joined by the shortest edge between them, which is reported by a warning:

    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import PCA, NeighborGraph
    >>> from manifoldry.neighbors import DisconnectedPolicy
    >>> from manifoldry.spectral import connected_graph
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> graph, data = NeighborGraph.build(X, n_neighbors=1), PCA(1).pose(X).data
    >>> with warnings.catch_warnings(action="ignore"):
    ...     joined = connected_graph(graph, DisconnectedPolicy("join"), data)
    >>> graph.components()[0], joined.components()[0]
    (2, 1)
    """
    graph = policy.connect(graph, distances=data.distances)
    if len(graph.distances) == 0:
        raise ValueError(no_neighbors_message(graph.n_query))
    if not graph.distances.any():
        raise ValueError(all_coincide_message(graph.n_query))
    return graph


def operator_components(
    A: Any,
    policy: DisconnectedPolicy,
    graph: NeighborGraph | None = None,
    zero_weight_cause: Disconnection = VANISHING_WEIGHTS,
    remedy: str = "raise n_neighbors",
) -> list[IntArray]:
    """Return the rows of each connected component of an operator that the policy embeds.

    The policy warns if there are several. The warning names the graph as the cause, or
    `zero_weight_cause` if most of the components are connected in the graph.

    Parameters
    ----------
    A : array or sparse array of shape (n, n)
        The symmetric operator.
    policy : DisconnectedPolicy
        What to do if there are several components.
    graph : NeighborGraph, default=None
        The neighbor graph from which the operator was built.
    zero_weight_cause : Disconnection, optional
        What the warning says if weights of edges vanish.
    remedy : str, default="raise n_neighbors"
        What the warning recommends if the graph is disconnected.

    Returns
    -------
    list of arrays
        Rows of each component, the largest first.

    Raises
    ------
    ValueError
        If no two points are connected.

    See Also
    --------
    connected_graph : joins the components of a graph.
    PosedOnGraph : takes the components.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.neighbors import DisconnectedPolicy
    >>> from manifoldry.spectral import operator_components
    >>> path = np.eye(4, k=1) + np.eye(4, k=-1)
    >>> operator_components(path, DisconnectedPolicy("separate"))
    [array([0, 1, 2, 3])]
    """
    labels = coupled_components(A)
    count = labels.max() + 1
    if count == len(labels):
        raise ValueError(no_neighbors_message(len(labels)))
    if count == 1:
        return [np.arange(len(labels))]
    # A few weights may vanish in any graph: the cause is what made most of the components.
    weak = graph is None or count > 2 * graph.components()[0] - 1
    return policy.components(labels, zero_weight_cause if weak else GRAPH._replace(remedy=remedy))


def no_neighbors_message(n: int) -> str:
    """Error message for a graph without edges."""
    return (
        f"no two of the {n} points are connected by a positive weight; raise radius or "
        "n_neighbors, or lower gamma"
    )


def all_coincide_message(n: int, parameter_to_increase: str = "n_neighbors") -> str:
    """Error message for a graph all of whose edges have length zero."""
    return (
        f"each of the {n} rows coincides with all its neighbors, so all edges of the graph have "
        f"length zero; drop duplicated rows or raise {parameter_to_increase}"
    )


def coupled_components(
    A: Any,
    negligible: float = NEGLIGIBLE,
    vanishing: float = VANISHING,
    compile_above: float = 1e6,
) -> IntArray:
    """Return the connected component of each row of a symmetric operator.

    Entries Aᵢⱼ up to `negligible` · √(|Aᵢᵢ Aⱼⱼ|) count as zero. So do entries up to `vanishing`
    times the largest, such as weights between two outliers: squares of still smaller ones
    underflow in an eigenproblem of their own. Sparse operators of more than `compile_above` entries
    are searched by a compiled function.
    """
    if isinstance(A, np.ndarray):
        return _dense_components(A, negligible, vanishing)
    A = sparse.csr_array(A)
    device = device_with_edges(A)
    if device is not None:
        return strong_components(device, A, negligible, vanishing)
    root = np.sqrt(np.abs(A.diagonal()))
    if A.nnz > compile_above:
        from manifoldry.neighbors.compiled import join_strong_rows

        parts, least = np.arange(A.shape[0]), vanishing * max(A.data.max(), -A.data.min())
        join_strong_rows(A.indptr, A.indices, A.data, root, negligible, least, parts)
        return np.unique(parts, return_inverse=True)[1]
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    size = np.abs(A.data)
    strong = size > negligible * root[rows] * root[A.indices]
    strong &= size > vanishing * size.max(initial=0.0)
    if not strong.all():
        A = sparse.csr_array((A.data[strong], (rows[strong], A.indices[strong])), shape=A.shape)
    # In a symmetric matrix strong components are connected components, and found faster.
    labels: IntArray = connected_components(A, connection="strong")[1]
    return labels


def _dense_components(A: Array, negligible: float, vanishing: float) -> IntArray:
    """Like `coupled_components` for a dense operator, by breadth-first search from the first row.

    Mostly all rows are connected; only if not, all components are computed.
    """
    reached = np.zeros(len(A), dtype=bool)
    root, least = np.sqrt(np.abs(A.diagonal())), vanishing * max(A.max(), -A.min())
    front = np.array([0])
    while len(front):
        reached[front] = True
        strong = np.abs(A[front]) > np.maximum(negligible * root[front, None] * root, least)
        front = np.flatnonzero(strong.any(axis=0) & ~reached)
    if reached.all():
        return np.zeros(len(A), dtype=np.intp)
    return coupled_components(sparse.coo_array(A), negligible, vanishing)
