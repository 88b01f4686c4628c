"""Isomap of all rows of distributed data: paths across parts, and maps by landmarks."""

import dask
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry import NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.neighbors import distributed_paths
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.neighbors.distributed_paths import DistributedPaths

ROLL = make_swiss_roll(400, random_state=0).X
PARTINGS = {
    "one part": [0, 400],
    "two parts": [0, 150, 400],
    "uneven parts, and empty ones": [0, 0, 7, 7, 200, 310, 400, 400],
    "many parts": [*range(0, 400, 50), 400],
}


def in_parts(graph, X, bounds, rows=None):
    return DistributedGraph.of(graph, X, np.array(bounds), rows)


def lengths_from(graph, sources, **options):
    paths = DistributedPaths.of(graph)
    return np.concatenate(dask.compute(*paths.lengths_from(np.array(sources), **options)))


def shortest(graph, sources, tiny=1e-300):
    """Scipy's shortest paths from some rows, which takes zeros for missing edges."""
    A = graph.matrix(np.maximum(graph.distances, tiny))
    return dijkstra(sparse.csr_array(A.maximum(A.T)), indices=sources).T


@pytest.mark.parametrize("bounds", PARTINGS.values(), ids=PARTINGS)
def test_paths_are_those_of_the_whole_graph(bounds):
    graph = NeighborGraph.build(ROLL, n_neighbors=6)
    rows = np.random.default_rng(1).permutation(400)
    sources = np.array([0, 3, 17, 201, 399])
    found = lengths_from(in_parts(graph, ROLL, bounds, rows), sources)
    expected = shortest(graph, rows[sources])[rows]
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_blocks_of_sources_and_single_precision(monkeypatch):
    graph = in_parts(NeighborGraph.build(ROLL, n_neighbors=6), ROLL, [0, 100, 250, 400])
    sources = np.arange(0, 400, 20)
    whole = lengths_from(graph, sources)
    monkeypatch.setattr(distributed_paths, "MOST_AT_ONCE", 150 * 3)
    np.testing.assert_array_equal(lengths_from(graph, sources), whole)
    single = lengths_from(graph, sources, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, whole.astype(np.float32))


def test_there_is_no_path_between_components():
    X = np.concatenate([ROLL[:60], ROLL[:50] + 1000.0])
    graph = NeighborGraph.build(X, n_neighbors=5)
    found = lengths_from(in_parts(graph, X, [0, 30, 80, 110]), [0, 70])
    np.testing.assert_allclose(found, shortest(graph, [0, 70]), rtol=1e-12)
    assert np.isinf(found[:60, 1]).all()
    assert np.isinf(found[60:, 0]).all()


def test_edges_between_duplicates_have_length_zero():
    X = np.repeat(ROLL[:40], 3, axis=0)
    graph = NeighborGraph.build(X, n_neighbors=9)
    found = lengths_from(in_parts(graph, X, [0, 40, 80, 120]), [0, 61])
    np.testing.assert_allclose(found, shortest(graph, [0, 61]), rtol=1e-12, atol=1e-290)
    np.testing.assert_array_equal(found[:3, 0], 0.0)
    np.testing.assert_array_equal(found[60:63, 1], 0.0)
