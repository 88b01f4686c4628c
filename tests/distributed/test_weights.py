"""Weights of graphs in parts, against those of the same graph in memory."""

import dask
import numpy as np
import pytest
from scipy import sparse

from manifoldry import NeighborGraph
from manifoldry.affinity import Affinity, Binary, Entropic, Gaussian, SelfTuning, Weights
from manifoldry.affinity.distributed import DistributedWeights, sampled_graph
from manifoldry.affinity.growth import fastest_growth
from manifoldry.distributed.median import median
from manifoldry.neighbors.distributed_graph import DistributedGraph

BOUNDS = np.array([0, 0, 100, 130, 250, 250, 300])  # two parts are empty


class Cauchy(Affinity):
    """An affinity that somebody wrote outside the package."""

    has_given_width = True

    def fit(self, graph):
        return CauchyWeights(self.symmetrize)


class CauchyWeights(Weights):
    def exponents(self, own, graph):
        return np.log1p(graph.distances**2)


class Fitted(Cauchy):
    has_given_width = False


def points(dtype=float):
    X = np.random.default_rng(0).normal(size=(300, 3)).astype(dtype)
    X[5] = X[9] = X[30]
    return X


def in_parts(X, graph, bounds=BOUNDS):
    order = np.random.default_rng(1).permutation(len(X))
    return DistributedGraph.of(graph, X, bounds, order), order


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "affinity",
    [
        Gaussian(),
        Gaussian(gamma=0.5, symmetrize="mean"),
        Binary(symmetrize="mean"),
        SelfTuning(),
        SelfTuning(3, symmetrize="and"),
        Entropic(),
        Entropic(4.0, symmetrize="or"),
        Cauchy(),
    ],
    ids=repr,
)
def test_are_those_in_memory(affinity, dtype):
    X = points(dtype)
    graph = NeighborGraph.build(X, 10)
    parts, order = in_parts(X, graph)
    found = DistributedWeights.of(affinity, parts)
    W = sparse.vstack(dask.compute(*found.blocks), "csr")
    weights = affinity.fit(graph)
    expected = weights.matrix(graph)[order][:, order]
    assert W.nnz == expected.nnz
    assert abs(W - expected).max() <= 1e-15
    assert abs(W - W.T).max() == 0
    own = np.concatenate(dask.compute(*found.own))
    np.testing.assert_allclose(own, weights.self_weights(graph)[order], rtol=1e-15)


def test_on_workers(client):
    X = points()
    graph = NeighborGraph.build(X, 10)
    parts, order = in_parts(X, graph)
    W = sparse.vstack(dask.compute(*DistributedWeights.of(SelfTuning(), parts).blocks), "csr")
    expected = SelfTuning().fit(graph).matrix(graph)[order][:, order]
    assert abs(W - expected).max() <= 1e-15


def test_affinities_fitted_to_the_whole_graph_are_refused():
    X = points()
    parts, _ = in_parts(X, NeighborGraph.build(X, 5))
    with pytest.raises(TypeError, match="using_options"):
        DistributedWeights.of(Fitted(), parts)


@pytest.mark.parametrize("affinity", [Gaussian(), SelfTuning()])
def test_no_scale(affinity):
    X = np.zeros((300, 2))
    parts, _ = in_parts(X, NeighborGraph.build(X, 5))
    with pytest.raises(ValueError, match="300 rows coincide"):
        DistributedWeights.of(affinity, parts)


def test_perplexity_beyond_the_neighbors():
    X = points()
    parts, _ = in_parts(X, NeighborGraph.build(X, 5))
    with pytest.raises(ValueError, match="perplexity=7"):
        DistributedWeights.of(Entropic(7), parts)


@pytest.mark.parametrize("edges", [200_000, 500])
def test_sampled_edges_are_those_of_the_rule_in_memory(edges):
    X = points()
    graph = NeighborGraph.build(X, 10)
    parts, _ = in_parts(X, graph)
    assert fastest_growth(sampled_graph(parts, edges)) == fastest_growth(graph, edges)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_median(n):
    rng = np.random.default_rng(n)
    values = np.exp(20 * rng.normal(size=n)) * rng.integers(0, 2, n)
    parts = [dask.delayed(part) for part in np.array_split(values, 4)]
    assert median(parts) == np.median(values)


def test_median_of_nothing():
    assert np.isnan(median([dask.delayed(np.empty(0))]))
