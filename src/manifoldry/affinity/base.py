"""Base classes of affinities and their fitted weights."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.affinity.on_device import LEAST_EDGES, symmetric_weights
from manifoldry.device import Device, current_device
from manifoldry.neighbors.base import Edges
from manifoldry.neighbors.graph import NeighborGraph, replace_edges
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array, IntArray

Symmetrization = Literal["or", "and", "mean"]


def _halved(W: sparse.csr_array) -> sparse.csr_array:
    """Divide a new matrix by two, without a copy."""
    W.data /= 2
    return W


class _Rule(NamedTuple):
    """How to combine the two weights of an edge, one from each end."""

    combine: Callable[[sparse.csr_array, sparse.csr_array], sparse.csr_array]
    drops_one_sided: bool = False


_RULES: dict[Symmetrization, _Rule] = {
    "or": _Rule(lambda own, reverse: own.maximum(reverse)),
    "and": _Rule(lambda own, reverse: own.minimum(reverse), drops_one_sided=True),
    "mean": _Rule(lambda own, reverse: _halved(sparse.csr_array(own + reverse))),
}


def symmetrized(
    own: sparse.csr_array, reverse: sparse.csr_array, rule: Symmetrization
) -> sparse.csr_array:
    """Return the weights of edges from those of both directions, in sorted rows."""
    return _RULES[rule].combine(own, reverse)


@dataclass(frozen=True)
class Affinity(ABC):
    """Base class of the rules that assign weights to the edges of a neighbor graph.

    :meth:`fit` determines the bandwidths from the training graph and returns :class:`Weights`,
    which give the weights of training edges and of edges of new points. Pass an affinity to an
    estimator as ``affinity=``. To write another one, subclass it and define :meth:`fit`.

    Parameters
    ----------
    symmetrize : {"or", "and", "mean"}, default="or"
        How to combine the weights of an edge in both directions: keep the edge if one end is a
        neighbor of the other ("or"), only if both are ("and"), or average the two weights
        ("mean"), where a missing direction counts as zero.

    See Also
    --------
    Gaussian : one bandwidth for all edges.
    SelfTuning : a bandwidth that adapts to the local density.
    Entropic : bandwidths set by a perplexity.
    Weights : what `fit` returns.

    Examples
    --------
    Weights 1/(1 + d²) decrease more slowly than Gaussian ones. `exponents` returns −log of them:

    >>> import numpy as np
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.affinity import Affinity, Weights
    >>> class Cauchy(Affinity):
    ...     def fit(self, graph):
    ...         return CauchyWeights(self.symmetrize)
    >>> class CauchyWeights(Weights):
    ...     def exponents(self, own, graph):
    ...         return np.log1p(graph.distances**2)
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> model = LaplacianEigenmaps(1, n_neighbors=1, affinity=Cauchy()).fit(X)
    >>> model.affinity_.toarray()
    array([[0. , 0.5, 0. ],
           [0.5, 0. , 0.2],
           [0. , 0.2, 0. ]])
    """

    symmetrize: Symmetrization = field(default="or", kw_only=True)

    def __post_init__(self) -> None:
        check_option("symmetrize", self.symmetrize, tuple(_RULES))

    @abstractmethod
    def fit(self, graph: NeighborGraph) -> "Weights":
        """Return the weights fitted to the training graph.

        Parameters
        ----------
        graph : NeighborGraph
            The neighbor graph of the training points.

        Returns
        -------
        Weights
            The rule with its bandwidths.
        """

    def neighbors(self, n: int) -> int | None:
        """Return the number of neighbors that the graph of `n` points should have.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        int or None
            The number of neighbors; None for the default of the graph.
        """
        return None

    @property
    def has_given_width(self) -> bool:
        """Whether the weights are a given function of distance, not fitted to a graph."""
        return False


@dataclass(frozen=True, eq=False)
class Weights(ABC):
    """Fitted affinity, which gives the weights of training edges and of edges of new points.

    A subclass defines :meth:`exponents`. Weights that depend on the direction of an edge also
    define :meth:`reverse_exponents`; weights with a bandwidth per point also define :meth:`frozen`
    and :meth:`at`. Exponents are −log of the weights, which is more accurate where weights are
    tiny.

    Parameters
    ----------
    symmetrize : {"or", "and", "mean"}
        How to combine the weights of an edge in both directions; see :class:`Affinity`.

    See Also
    --------
    Affinity : its `fit` returns weights.
    manifoldry.extension.GraphWeights : computes the weights of new points from their data.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import NeighborGraph
    >>> from manifoldry.affinity import Gaussian
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [3.0]]), n_neighbors=1)
    >>> weights = Gaussian(gamma=0.5).fit(graph)
    >>> weights.matrix(graph).toarray().round(3)
    array([[0.   , 0.607, 0.   ],
           [0.607, 0.   , 0.135],
           [0.   , 0.135, 0.   ]])
    """

    symmetrize: Symmetrization

    @abstractmethod
    def exponents(self, own: NeighborGraph, graph: NeighborGraph) -> Array:
        """Return −log of the weight of each edge of `graph`.

        Parameters
        ----------
        own : NeighborGraph
            The neighbors of the same query points, from which their bandwidths are computed.
        graph : NeighborGraph
            The edges, from query points to training points.

        Returns
        -------
        array of shape (n_edges,)
            One value per edge of `graph`.
        """

    def training_exponents(self, graph: NeighborGraph) -> Array:
        """Return −log of the weight of each edge of the training graph.

        To be defined by weights whose `exponents` compute bandwidths, since those of the training
        points are known.

        Parameters
        ----------
        graph : NeighborGraph
            The training graph.

        Returns
        -------
        array of shape (n_edges,)
            One value per edge.
        """
        return self.exponents(graph, graph)

    def training_exponents_on(self, device: Device, graph: NeighborGraph) -> Array:
        """Return the `training_exponents` in the memory of a device.

        Parameters
        ----------
        device : Device
            The device.
        graph : NeighborGraph
            The training graph.

        Returns
        -------
        array of shape (n_edges,)
            One value per edge.
        """
        return device.array(self.training_exponents(graph))

    def reverse_exponents(self, own: NeighborGraph, reverse: NeighborGraph) -> Array:
        """Return −log of the weights of edges as seen from the training points.

        By default the weight does not depend on the direction.

        Parameters
        ----------
        own : NeighborGraph
            The neighbors of the query points.
        reverse : NeighborGraph
            Edges between query points and the training points that have them as neighbors.

        Returns
        -------
        array of shape (n_edges,)
            One value per edge of `reverse`.
        """
        return self.exponents(own, reverse)

    def frozen(self, own: NeighborGraph, known: IntArray) -> "Weights":
        """Return the weights for query points with the constants of the training points.

        Nothing is normalized or fitted to a new point, so that weights which decrease with the
        distance vanish far from the data. By default the weights themselves: to be defined by
        weights with a bandwidth per point.

        Parameters
        ----------
        own : NeighborGraph
            The neighbors of the query points.
        known : array of shape (n_query,)
            The training point identical to each query point, or -1.

        Returns
        -------
        Weights
            The weights for these query points.
        """
        return self

    def probability_exponents(self, own: NeighborGraph) -> Array:
        """Return −log of the probability of each edge: its weight, divided by the sum of its row.

        Parameters
        ----------
        own : NeighborGraph
            The neighbors of the query points.

        Returns
        -------
        array of shape (n_edges,)
            One value per edge.
        """
        with np.errstate(over="ignore"):
            exponents = self.exponents(own, own)
        smallest, total = np.full(own.n_query, np.inf), np.zeros(own.n_query)
        np.minimum.at(smallest, own.rows, exponents)
        if not np.isfinite(smallest[own.rows]).all():
            raise ValueError(
                f"{int(np.isinf(smallest[own.rows]).sum())} edges are so long that gamma·d² "
                "overflows; rescale X or pass a smaller gamma"
            )
        relative = exponents - smallest[own.rows]
        np.add.at(total, own.rows, np.exp(-relative))
        return np.asarray(relative + np.log(total)[own.rows])

    def training_probability_exponents(self, graph: NeighborGraph) -> Array:
        """Return the `probability_exponents` of the training graph.

        Parameters
        ----------
        graph : NeighborGraph
            The training graph.

        Returns
        -------
        array of shape (n_edges,)
            One value per edge.
        """
        return self.probability_exponents(graph)

    def matrix(self, graph: NeighborGraph) -> sparse.csr_array:
        """Return the symmetric weights of the training graph.

        Parameters
        ----------
        graph : NeighborGraph
            The training graph.

        Returns
        -------
        sparse array of shape (n, n)
            The weights, with a zero diagonal.
        """
        device = current_device()
        if device is not None and len(graph.indices) >= LEAST_EDGES:
            on_device = self.training_exponents_on(device, graph)
            return symmetric_weights(device, graph, on_device, self.symmetrize)
        exponents = self.training_exponents(graph)
        with np.errstate(over="ignore"):  # the weight of an infinite exponent is zero
            weights = np.exp(-exponents)
        # Transposed twice, rows are sorted by index, as sums of sparse matrices need them.
        reverse = graph.matrix(weights).T.tocsr()
        return symmetrized(reverse.T.tocsr(), reverse, self.symmetrize)

    def self_weights(self, graph: NeighborGraph) -> Array:
        """Return the weight of each training point with itself, at distance zero.

        Parameters
        ----------
        graph : NeighborGraph
            The training graph.

        Returns
        -------
        array of shape (n,)
            One weight per point.
        """
        points = np.arange(graph.n_query)
        loops = Edges(np.arange(graph.n_query + 1), points, np.zeros(graph.n_query))
        return np.asarray(np.exp(-self.reverse_exponents(graph, replace_edges(graph, loops))))

    def at(self, own: NeighborGraph) -> "Weights":
        """Return these weights with the query points of `own` in place of the training points.

        To be defined by weights with a bandwidth per training point that `exponents` uses.

        Parameters
        ----------
        own : NeighborGraph
            The neighbors of the query points among the training points.

        Returns
        -------
        Weights
            The weights between the query points.
        """
        return self

    def among(self, own: NeighborGraph, pairs: NeighborGraph, log_scale: Array) -> sparse.csr_array:
        """Return the symmetric weights between new points.

        Parameters
        ----------
        own : NeighborGraph
            Their neighbors among the training points, which determine the bandwidths.
        pairs : NeighborGraph
            Their neighbors among each other.
        log_scale : array of shape (n_query,)
            The weight of i and j is divided by exp((log_scale[i] + log_scale[j])/2), since far from
            all data it would underflow.

        Returns
        -------
        sparse array of shape (n_query, n_query)
            The weights.
        """
        shift = (log_scale[pairs.rows] + log_scale[pairs.indices]) / 2
        with np.errstate(over="ignore"):
            W = pairs.matrix(np.exp(-self.at(own).exponents(own, pairs) - shift))
        return symmetrized(W, W.T.tocsr(), self.symmetrize)

    def rows(self, own: NeighborGraph, reverse: NeighborGraph) -> tuple[sparse.csr_array, Array]:
        """Return the weights between new points and training points.

        Rows are scaled to a largest weight of one. Far from all data the unscaled weights would
        underflow, but an out-of-sample extension only needs their ratios.

        Parameters
        ----------
        own : NeighborGraph
            The neighbors of the new points.
        reverse : NeighborGraph
            Edges to the training points that have a new point among their neighbors.

        Returns
        -------
        weights : sparse array of shape (n_query, n_reference)
            The scaled weights.
        log_scale : array of shape (n_query,)
            Logarithm of the scale by which each row was divided.
        """
        with np.errstate(over="ignore"):
            exponents = [self.exponents(own, own), self.reverse_exponents(own, reverse)]
        smallest, dropped = np.full(own.n_query, np.inf), _RULES[self.symmetrize].drops_one_sided
        for graph, other, values in zip((own, reverse), (reverse, own), exponents, strict=True):
            counts = _shared(graph, other) if dropped else slice(None)
            np.minimum.at(smallest, graph.rows[counts], values[counts])
        smallest[np.isinf(smallest)] = 0.0
        # Edges that "and" drops may have larger weights than those it keeps, hence the minimum.
        A, B = (
            graph.matrix(np.exp(np.minimum(smallest[graph.rows] - values, 0.0)))
            for graph, values in zip((own, reverse), exponents, strict=True)
        )
        return symmetrized(A, B, self.symmetrize), -smallest


def _shared(graph: NeighborGraph, other: NeighborGraph) -> NDArray[np.bool_]:
    """Mask of the edges of `graph` that are also edges of `other`."""
    n = graph.n_reference
    return np.isin(graph.rows * n + graph.indices, other.rows * n + other.indices)
