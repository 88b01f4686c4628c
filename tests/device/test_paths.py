"""Shortest paths on a device against scipy's, bit for bit in double precision."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

import manifoldry as mf
from manifoldry.datasets import make_swiss_roll
from manifoldry.neighbors import paths_on_device, shortest_paths
from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.shortest_paths import path_lengths_from

LENGTHS = {
    "continuous": lambda rng, m: rng.random(m) + 1e-3,
    "ties": lambda rng, m: rng.integers(1, 4, m).astype(float),
    "duplicates": lambda rng, m: np.where(rng.random(m) < 0.3, 1e-300, rng.random(m)),
    "many magnitudes": lambda rng, m: 10.0 ** rng.uniform(-12, 0, m),
    "some infinite": lambda rng, m: np.where(rng.random(m) < 0.1, np.inf, rng.random(m) + 1e-3),
}


@pytest.fixture(autouse=True)
def always_on_the_device(monkeypatch):
    monkeypatch.setattr(shortest_paths, "LEAST_WORK", 0)


def directed_graph(lengths, n=200, n_edges=700):
    """A graph of several components; edges have a direction."""
    rng = np.random.default_rng(0)
    ends = rng.integers(n, size=(2, n_edges))
    A = sparse.coo_array((lengths(rng, n_edges), ends), shape=(n, n)).tocsr()
    A.setdiag(0)
    A.eliminate_zeros()
    return A


@pytest.mark.parametrize("kind", LENGTHS)
def test_equal_to_scipy(in_use, kind):
    A = directed_graph(LENGTHS[kind])
    sources = np.random.default_rng(1).permutation(200)[:70]
    expected = dijkstra(A, indices=sources)
    assert np.isinf(expected).any()
    np.testing.assert_array_equal(path_lengths_from(A, sources), expected)
    by_columns = np.empty((200, 70))
    path_lengths_from(A, sources, out=by_columns.T)
    np.testing.assert_array_equal(by_columns.T, expected)


def test_a_length_of_zero_is_an_edge(in_use):
    """scipy takes it for a missing one."""
    A = sparse.csr_array(([0.0, 0.0, 2.0, 2.0], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    np.testing.assert_array_equal(path_lengths_from(A, np.array([0])), [[0, 0, 2]])


def test_sources_in_blocks(in_use, monkeypatch):
    A = directed_graph(LENGTHS["continuous"])
    monkeypatch.setattr(paths_on_device, "_TOGETHER", 7 * 200)
    np.testing.assert_array_equal(path_lengths_from(A, np.arange(200)), dijkstra(A))


def test_single_precision_adds_in_single_precision(in_use):
    """As the compiled search on the CPU does: the same bits for the same type of result."""
    X = make_swiss_roll(400, random_state=0).X
    lengths, _ = edge_lengths(mf.NeighborGraph.build(X, 8))
    found = path_lengths_from(lengths, np.arange(400), out=np.empty((400, 400), np.float32))
    search = shortest_paths.CompiledPaths.of(lengths).astype(np.float32)
    expected = [search.tree(i)[0] for i in range(400)]
    np.testing.assert_array_equal(found, expected)


def test_long_paths_are_searched_on_the_cpu(in_use, monkeypatch):
    """A chain of more edges than the device takes."""
    monkeypatch.setattr(paths_on_device, "_MOST_EDGES", 64)
    monkeypatch.setattr("manifoldry.device.base.NOTICED_ABOVE", 0)
    chain = sparse.diags_array([np.ones(199), np.ones(199)], offsets=[1, -1], format="csr")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = path_lengths_from(chain, np.array([0, 150]))
    np.testing.assert_array_equal(found, np.abs(np.arange(200) - np.array([[0], [150]])))
    assert ["the search for shortest paths runs on the CPU" in str(w.message) for w in seen] == [
        True
    ]


@pytest.mark.parametrize("options", [{}, {"n_landmarks": 60}], ids=["all", "landmarks"])
def test_isomap(device, options):
    X = make_swiss_roll(500, random_state=0).X
    here = mf.Isomap(2, short_circuits="ignore", **options).fit(X)
    there = mf.Isomap(2, short_circuits="ignore", device=device, **options).fit(X)
    np.testing.assert_allclose(there.embedding_, here.embedding_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(there.transform(X + 0.1), here.transform(X + 0.1), atol=1e-6)
