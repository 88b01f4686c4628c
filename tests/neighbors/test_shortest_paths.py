"""Compiled shortest paths against scipy's, bit for bit in double precision."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry import NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.neighbors import geodesics, paths, shortest_paths
from manifoldry.neighbors.geodesics import Geodesics, edge_lengths, farthest_points
from manifoldry.neighbors.paths import PathTrees
from manifoldry.neighbors.shortest_paths import CompiledPaths, path_lengths_from


@pytest.fixture(autouse=True)
def always_compiled(monkeypatch):
    monkeypatch.setattr(shortest_paths, "COMPILE_ABOVE_WORK", 0)
    monkeypatch.setattr(paths, "COMPILE_ABOVE_POINTS", 0)


def random_graph(n, degree, seed, lengths):
    """A symmetric graph of several connected components, with isolated points."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(n, size=(2, n * degree // 2))
    A = sparse.coo_array((lengths(rng, ends.shape[1]), ends), shape=(n, n)).tocsr()
    return sparse.csr_array(A.maximum(A.T))


LENGTHS = {
    "continuous": lambda rng, m: rng.random(m) + 1e-3,
    "ties": lambda rng, m: rng.integers(1, 4, m).astype(float),
    "duplicates": lambda rng, m: np.where(rng.random(m) < 0.3, 1e-300, rng.random(m)),
    "many magnitudes": lambda rng, m: 10.0 ** rng.uniform(-12, 0, m),
    "some infinite": lambda rng, m: np.where(rng.random(m) < 0.1, np.inf, rng.random(m) + 1e-3),
}


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("degree", [1, 5])
def test_equal_to_scipy(kind, degree):
    A = random_graph(200, degree, 0, LENGTHS[kind])
    sources = np.random.default_rng(1).permutation(200)[:70]  # two groups of 32 and six more
    expected = dijkstra(A, indices=sources)
    assert np.isinf(expected).any()
    np.testing.assert_array_equal(path_lengths_from(A, sources), expected)
    by_columns = np.empty((200, 70))
    path_lengths_from(A, sources, out=by_columns.T)
    np.testing.assert_array_equal(by_columns.T, expected)
    np.testing.assert_array_equal(path_lengths_from(A, sources[:3], threads=False), expected[:3])


def test_a_length_of_zero_is_an_edge():
    """scipy takes it for a missing one."""
    A = sparse.csr_array(([0.0, 0.0, 2.0, 2.0], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    np.testing.assert_array_equal(path_lengths_from(A, np.array([0])), [[0, 0, 2]])


def test_edges_of_one_direction():
    A = sparse.csr_array(np.diag([1.0, 2.0, 4.0], 1))
    expected = [[0, 1, 3, 7], [np.inf, np.inf, 0, 4]]
    np.testing.assert_array_equal(path_lengths_from(A, np.array([0, 2])), expected)
    together = path_lengths_from(A, np.tile([0, 2], 16))
    np.testing.assert_array_equal(together, np.tile(expected, (16, 1)))


def test_a_chain_is_searched_from_one_by_one(monkeypatch):
    """Long edges that are no shortcuts: each point is visited again for each of them."""
    n = 300
    i = np.arange(n - 1)
    near = sparse.coo_array((np.ones(n - 1), (i, i + 1)), shape=(n, n))
    far = sparse.coo_array((i[:-1] + 1.5, (np.zeros(n - 2, int), i[:-1] + 2)), shape=(n, n))
    A = sparse.csr_array(near + near.T + far + far.T)
    trees, tree = [], CompiledPaths.tree

    def counted(self, source, **options):
        trees.append(source)
        return tree(self, source, **options)

    monkeypatch.setattr(CompiledPaths, "tree", counted)
    sources = np.arange(0, n, 4)
    np.testing.assert_array_equal(path_lengths_from(A, sources), dijkstra(A, indices=sources))
    assert len(trees) > 32


def test_single_precision_is_accurate_to_its_rounding(monkeypatch):
    graph = NeighborGraph.build(make_swiss_roll(400, random_state=0).X, 8)
    double = Geodesics.of(graph).distances
    monkeypatch.setattr(geodesics, "SINGLE_ABOVE", 0)
    for targets in (None, np.arange(0, 400, 5)):
        single = Geodesics.of(graph, targets).distances
        assert single.dtype == np.float32
        exact = double if targets is None else double[:, targets]
        np.testing.assert_allclose(single, exact, rtol=30 * 6e-8)  # paths of up to 30 edges
    D = Geodesics.of(graph).distances
    np.testing.assert_array_equal(D, D.T)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_beyond_single_precision_get_double(monkeypatch, scale):
    monkeypatch.setattr(geodesics, "SINGLE_ABOVE", 0)
    X = make_swiss_roll(100, random_state=0).X
    plain, scaled = (Geodesics.of(NeighborGraph.build(A, 6)).distances for A in (X, X * scale))
    assert scaled.dtype == np.float64
    np.testing.assert_allclose(scaled / scale, plain, rtol=1e-5)


def test_farthest_points_are_those_of_all_distances():
    lengths, _ = edge_lengths(NeighborGraph.build(make_swiss_roll(500, random_state=0).X, 8))
    rows = np.arange(0, 500, 2)
    found = farthest_points(lengths, rows, 20, 7)
    D = dijkstra(lengths, indices=found)
    assert found[0] == 7
    for count in range(1, 20):
        nearest = D[:count].min(axis=0)
        assert found[count] in rows
        assert nearest[found[count]] == nearest[rows].max()


@pytest.mark.parametrize("kind", ["continuous", "ties", "duplicates"])
def test_trees_have_the_lengths_of_their_paths(kind):
    A = random_graph(200, 4, 2, LENGTHS[kind])
    sources = np.array([3, 50, 51])
    trees = PathTrees.of(A, sources)
    np.testing.assert_array_equal(trees.distances, dijkstra(A, indices=sources))
    for source, D, before in zip(sources, trees.distances, trees.predecessors, strict=True):
        reached = np.flatnonzero(np.isfinite(D) & (np.arange(200) != source))
        assert (before[np.isinf(D)] < 0).all()
        assert before[source] < 0
        np.testing.assert_array_equal(D[before[reached]] + A[before[reached], reached], D[reached])
        at = reached
        for _ in range(200):
            at = np.where(at == source, source, before[at])
        assert (at == source).all()


def test_compiled_after_enough_searches_of_one_process(monkeypatch):
    lengths = random_graph(200, 5, 0, LENGTHS["continuous"])
    sources = np.arange(200)
    work = 200 * lengths.nnz
    monkeypatch.setattr(shortest_paths, "COMPILE_ABOVE_WORK", 2.5 * work)
    monkeypatch.setattr(shortest_paths, "COMPILE_NEXT_ABOVE_WORK", 0.5 * work)
    monkeypatch.setattr(shortest_paths, "_work_of_scipy", 0.0)
    compiled = []
    for _ in range(3):
        compiled.append(shortest_paths.uses_compiled_paths(lengths, 200))
        found = path_lengths_from(lengths, sources)
        np.testing.assert_array_equal(found, dijkstra(lengths, indices=sources))
    assert compiled == [False, False, True]
    assert not shortest_paths.uses_compiled_paths(lengths, 80)  # few at a time never
