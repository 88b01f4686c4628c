"""Symmetric weights of a neighbor graph whose rows are on workers, part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.base import Affinity, Symmetrization, Weights, symmetrized
from manifoldry.affinity.entropic import Entropic
from manifoldry.affinity.gaussian import (
    Binary,
    Gaussian,
    GaussianWeights,
    SelfTuning,
    no_typical_length,
    smallest_scale,
)
from manifoldry.distributed.blocks import columns
from manifoldry.distributed.exchange import Exchange
from manifoldry.distributed.median import median
from manifoldry.distributed.scheduler import compute, delayed, persist
from manifoldry.distributed.transpose import transposed
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.precomputed import SparseDistances
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import spread_rows


@dataclass(frozen=True, eq=False)
class DistributedWeights:
    """The weights of a neighbor graph in parts, equal to those of the graph in memory.

    Parameters
    ----------
    blocks : list of Delayed
        Symmetric weights with a zero diagonal, sparse arrays of shape (rows of a part, n_samples).
    own : list of Delayed
        Weight of each row with itself, at distance zero, (rows of a part,).

    See Also
    --------
    Weights : weights of a graph in memory.
    manifoldry.neighbors.DistributedGraph : the graph.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from manifoldry import NeighborGraph
    >>> from manifoldry.affinity import Gaussian
    >>> from manifoldry.affinity.distributed import DistributedWeights
    >>> from manifoldry.neighbors.distributed_graph import DistributedGraph
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> graph = DistributedGraph.of(NeighborGraph.build(X, n_neighbors=1), X, np.array([0, 2, 3]))
    >>> weights = DistributedWeights.of(Gaussian(gamma=1.0), graph)
    >>> [block.toarray().round(3).tolist() for block in dask.compute(*weights.blocks)]
    [[[0.0, 0.368, 0.0], [0.368, 0.0, 0.368]], [[0.0, 0.368, 0.0]]]
    """

    blocks: list[Any]
    own: list[Any]

    @classmethod
    def of(cls, affinity: Affinity, graph: DistributedGraph) -> DistributedWeights:
        """Return the weights that an affinity gives to the edges of a graph.

        Parameters
        ----------
        affinity : Affinity
            One of this package, or one whose weights are a given function of distance.
        graph : DistributedGraph
            The graph.

        Returns
        -------
        DistributedWeights
            The weights.
        """
        fit = _FITS.get(type(affinity), _as_given)
        numbered, fitted = fit(affinity, graph)
        pairs = list(zip(numbered, fitted, strict=True))
        own = [delayed(_self_weights)(part, weights) for part, weights in pairs]
        exponential = delayed(_directed)
        directed = persist(
            exponential(part, weights, edges)
            for (part, weights), edges in zip(pairs, graph.edges, strict=True)
        )
        both = zip(directed, transposed(directed, graph.order.bounds), strict=True)
        rule = affinity.symmetrize
        return cls(persist(delayed(_symmetric)(*ways, rule) for ways in both), own)


def sampled_graph(graph: DistributedGraph, edges: int = 200_000) -> NeighborGraph:
    """Return all edges of a sample of rows, for rules that choose an affinity.

    Only the lengths and numbers of edges of this graph are meaningful. Rows are evenly spaced in
    the data, those that :func:`manifoldry.affinity.growth.fastest_growth` takes.
    """
    chosen = spread_rows(graph.n_samples, max(1, edges // graph.n_neighbors))
    take = delayed(_lengths_of)
    tasks = [
        take(part, rows, chosen) for part, rows in zip(graph.edges, graph.order.rows, strict=True)
    ]
    found = compute(tasks, "sampling edges")
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([counts for counts, _ in found]))])
    lengths = np.concatenate([of_part for _, of_part in found])
    columns = np.zeros(len(lengths), dtype=np.intp)
    return _as_graph(sparse.csr_array((lengths, columns, indptr), shape=(len(indptr) - 1, 1)))


Fit = Callable[[Any, DistributedGraph], tuple[Sequence[Any], Sequence[Any]]]


def _as_given(affinity: Affinity, graph: DistributedGraph) -> tuple[Sequence[Any], Sequence[Any]]:
    """Parts of the graph and their weights, of an affinity that is not fitted to the graph."""
    if not (affinity.has_given_width or type(affinity) is Binary):
        raise TypeError(
            f"affinity={affinity!r} is fitted to the whole graph, which is on workers; pass "
            "Gaussian, Binary, SelfTuning or Entropic, or fit a sample: "
            "manifoldry.distributed.using_options(landmarks=20_000)"
        )
    parts = _parts(graph)
    return parts, [delayed(_fitted)(affinity, part) for part in parts]


def _gaussian(affinity: Gaussian, graph: DistributedGraph) -> tuple[Sequence[Any], Sequence[Any]]:
    if affinity.gamma is not None:
        return _as_given(affinity, graph)
    weights = GaussianWeights(affinity.symmetrize, _typical_length(graph))
    return _parts(graph), [weights] * len(graph.edges)


def _self_tuning(
    affinity: SelfTuning, graph: DistributedGraph
) -> tuple[Sequence[Any], Sequence[Any]]:
    """A point needs the scales of its neighbors, too, so that parts exchange them."""
    needed = [delayed(columns)(edges) for edges in graph.edges]
    exchange, local = Exchange.of(needed, graph.order.bounds)
    scales = persist(delayed(_scales)(affinity, part) for part in _parts(graph))
    smallest = compute([delayed(smallest_scale)(each) for each in scales], "comparing scales")
    affinity.with_scales(np.empty(0), min(smallest), graph.n_samples)  # or an error
    known = [
        delayed(_with_scales)(affinity, each, min(smallest)) for each in exchange.gathered(scales)
    ]
    return _parts(graph, local), known


def _entropic(affinity: Entropic, graph: DistributedGraph) -> tuple[Sequence[Any], Sequence[Any]]:
    perplexity, parts = affinity.among(graph.n_neighbors, graph.n_neighbors), _parts(graph)
    return parts, [delayed(_at_perplexity)(affinity, perplexity, part) for part in parts]


_FITS: dict[type[Affinity], Fit] = {
    Gaussian: _gaussian,
    SelfTuning: _self_tuning,
    Entropic: _entropic,
}


def _typical_length(graph: DistributedGraph) -> float:
    """The same as that of a graph in memory: medians are exact."""
    for what in (_radii, _lengths, _positive_lengths):
        length = median(persist(delayed(what)(edges) for edges in graph.edges))
        if length > 0:
            return length
    raise ValueError(no_typical_length(graph.n_samples))


def _parts(graph: DistributedGraph, local: Sequence[Any] | None = None) -> list[Any]:
    """The edges of each part as a graph from its rows to all, or to those it has and receives."""
    if local is None:
        return [delayed(_as_graph)(edges) for edges in graph.edges]
    pairs = zip(graph.edges, local, strict=True)
    return [delayed(_as_graph)(*pair) for pair in pairs]


def _as_graph(edges: Matrix, local: IntArray | None = None) -> NeighborGraph:
    ends = edges.indices if local is None else local
    width = max(edges.shape[1], int(ends.max(initial=0)) + 1)
    none = np.empty(0, dtype=np.intp)
    index = SparseDistances(width)
    return NeighborGraph(edges.indptr, ends, edges.data, index, np.empty(0), none)


def _fitted(affinity: Affinity, part: NeighborGraph) -> Weights:
    return affinity.fit(part)


def _scales(affinity: SelfTuning, part: NeighborGraph) -> Array:
    return affinity.local_scales(part)


def _with_scales(affinity: SelfTuning, scales: Array, floor: float) -> Weights:
    return affinity.with_scales(scales, floor, len(scales))


def _at_perplexity(affinity: Entropic, perplexity: float, part: NeighborGraph) -> Weights:
    return affinity.at_perplexity(perplexity, part)


def _self_weights(part: NeighborGraph, weights: Weights) -> Array:
    return weights.self_weights(part)


def _directed(part: NeighborGraph, weights: Weights, edges: Matrix) -> Matrix:
    """The weights of the edges as seen from the rows of the part, in sorted rows."""
    with np.errstate(over="ignore"):  # the weight of an infinite exponent is zero
        values = np.exp(-weights.training_exponents(part))
    directed = sparse.csr_array((values, edges.indices, edges.indptr), shape=edges.shape, copy=True)
    directed.sort_indices()
    return directed


def _symmetric(own: Matrix, reverse: Matrix, rule: Symmetrization) -> Matrix:
    return symmetrized(own, reverse, rule)


def _radii(edges: Matrix) -> Array:
    """Distance of each row to its farthest neighbor."""
    return np.asarray(edges.data[edges.indptr[1:][np.diff(edges.indptr) > 0] - 1])


def _lengths(edges: Matrix) -> Array:
    return np.asarray(edges.data)


def _positive_lengths(edges: Matrix) -> Array:
    return np.asarray(edges.data[edges.data > 0])


def _lengths_of(edges: Matrix, rows: IntArray, chosen: IntArray) -> tuple[IntArray, Array]:
    """Number of edges of each chosen row of a part, and their lengths."""
    some = edges[np.flatnonzero(np.isin(rows, chosen))]
    return np.diff(some.indptr), some.data
