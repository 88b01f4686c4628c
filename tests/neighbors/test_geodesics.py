"""Geodesic distances against scipy on the full graph, and distances of new points."""

import pickle

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

from manifoldry import NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import DisconnectedGraphError
from manifoldry.neighbors import geodesics as geodesics_module
from manifoldry.neighbors import shortest_paths
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.neighbors.geodesics import shortest_path as shortest_route
from manifoldry.neighbors.shortest_paths import CompiledPaths


@pytest.fixture(name="X")
def roll():
    return make_swiss_roll(150, random_state=0).X


def test_equal_to_floyd_warshall(X):
    graph = NeighborGraph.build(X, 6)
    full = np.full((150, 150), np.inf)
    full[graph.rows, graph.indices] = graph.distances
    expected = shortest_path(np.minimum(full, full.T), method="FW")
    np.testing.assert_allclose(Geodesics.of(graph).distances, expected, rtol=1e-12)


def test_few_sources_at_a_time_so_that_an_interrupt_does_not_wait(X, monkeypatch):
    """scipy does not look for Ctrl-C during a call, which took 9 s for 8000 points."""
    whole = Geodesics.of(NeighborGraph.build(X, 6)).distances
    counts, budgets = [], []

    def dijkstra(lengths, indices):
        counts.append(len(indices))
        return shortest_path(lengths, indices=indices)

    def small_blocks(n, width, budget):
        budgets.append(budget)
        return blocks(n, width, budget=2**14)

    blocks = shortest_paths.row_blocks
    monkeypatch.setattr(shortest_paths, "COMPILE_ABOVE_WORK", np.inf)
    monkeypatch.setattr(shortest_paths, "dijkstra", dijkstra)
    monkeypatch.setattr(shortest_paths, "row_blocks", small_blocks)
    parts = Geodesics.of(NeighborGraph.build(X, 6)).distances
    assert sum(counts) == 150
    assert max(counts) < 20
    assert max(budgets) < 8000 * 17 * 100  # fewer than 100 of 8000 points with 16 edges each
    assert np.array_equal(parts, whole)


def test_are_a_metric_no_shorter_than_the_straight_line(X):
    D = Geodesics.of(NeighborGraph.build(X, 7)).distances
    np.testing.assert_allclose(D, D.T)
    assert not D.diagonal().any()
    straight = np.linalg.norm(X[:, None] - X[None], axis=2)
    assert (straight * (1 - 1e-12) <= D).all()
    assert (D[:, :, None] + D[None, :, :] >= D[:, None, :] * (1 - 1e-12)).all()


def test_some_targets_are_columns_of_all(X):
    graph = NeighborGraph.build(X, 7)
    targets = np.array([3, 77, 120])
    some, everything = Geodesics.of(graph, targets), Geodesics.of(graph)
    np.testing.assert_array_equal(some.distances, everything.distances[:, targets])


@pytest.mark.parametrize("single_above", [2**24, 0])
def test_targets_may_be_all_points_in_any_order(X, monkeypatch, single_above):
    monkeypatch.setattr(geodesics_module, "SINGLE_ABOVE", single_above)
    graph = NeighborGraph.build(X, 7)
    order = np.random.default_rng(0).permutation(150)
    everything, permuted = Geodesics.of(graph), Geodesics.of(graph, order)
    expected = everything.distances[:, order]
    np.testing.assert_allclose(permuted.distances, expected, rtol=30 * 6e-8)
    new = X[:20] + 0.05
    np.testing.assert_allclose(permuted.among(new), everything.among(new), rtol=30 * 6e-8)


def test_new_points_farther_away_than_single_precision_can_represent(X, monkeypatch):
    monkeypatch.setattr(geodesics_module, "SINGLE_ABOVE", 0)
    geodesics = Geodesics.of(NeighborGraph.build(X, 6))
    assert geodesics.distances.dtype == np.float32
    far = np.array([[1e50, 0.0, 0.0], [1e36, 0.0, 0.0]])
    np.testing.assert_allclose(geodesics.from_new(far), [[1e50] * 150, [1e36] * 150])


def test_the_compiled_search_is_prepared_once(X, monkeypatch):
    """Farthest-point sampling in two components, and new points in blocks."""
    monkeypatch.setattr(shortest_paths, "COMPILE_ABOVE_WORK", 0)
    prepared, of = [], CompiledPaths.of.__func__
    monkeypatch.setattr(
        CompiledPaths, "of", classmethod(lambda cls, A: prepared.append(A.shape) or of(cls, A))
    )
    graph = NeighborGraph.build(np.vstack([X, X + 1000.0]), 6)
    parts = [np.arange(150), np.arange(150, 300)]
    found = Geodesics.to_farthest(graph, parts, [10, 10], [0, 150])
    np.testing.assert_array_equal(found.distances, Geodesics.of(graph).distances[:, found.targets])
    assert prepared == [(300, 300)] * 2
    blocks, counts = geodesics_module.row_blocks, []

    def small_blocks(n, width, budget=2**14):
        counts.append(len(blocks(n, width, budget=budget)))
        return blocks(n, width, budget=budget)

    monkeypatch.setattr(geodesics_module, "row_blocks", small_blocks)
    new = X[:40] + 0.05
    np.testing.assert_allclose(found.among(new), Geodesics.of(graph).among(new), rtol=1e-12)
    assert counts[0] > 1
    assert prepared[2:] == [(340, 340), (300, 300)]


def test_duplicates_are_at_distance_zero():
    X = np.repeat(np.arange(5.0), 3)[:, None]
    D = Geodesics.of(NeighborGraph.build(X, 4)).distances
    np.testing.assert_allclose(D, np.abs(X - X.T), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(X, scale):
    plain, scaled = (Geodesics.of(NeighborGraph.build(A, 6)).distances for A in (X, X * scale))
    np.testing.assert_allclose(scaled / scale, plain, rtol=1e-12)


def test_training_rows_have_their_own_distances(X):
    geodesics = Geodesics.of(NeighborGraph.build(X, 6))
    np.testing.assert_allclose(geodesics.from_new(X[:20]), geodesics.distances[:20], rtol=1e-14)


def test_paths_of_a_new_point_start_at_a_neighbor(X):
    graph = NeighborGraph.build(X, 6)
    geodesics = Geodesics.of(graph)
    new = X[:10] + 0.05
    own, back = graph.query(new)
    for i, row in enumerate(geodesics.from_new(new)):
        sides = [(g.indices[g.rows == i], g.distances[g.rows == i]) for g in (own, back)]
        ways = np.vstack([d[:, None] + geodesics.distances[j] for j, d in sides])
        np.testing.assert_allclose(row, ways.min(axis=0), rtol=1e-12)


def test_components_are_infinitely_far():
    X = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [52.0]])
    D = Geodesics.of(NeighborGraph.build(X, 1)).distances
    assert np.isinf(D[:3, 3:]).all()
    assert np.isfinite(D[:3, :3]).all()


def test_farthest_points_cover_a_line():
    X = np.linspace(0, 1, 101)[:, None]
    graph = NeighborGraph.build(X, 2)
    geodesics = Geodesics.to_farthest(graph, [np.arange(101)], [5], [0])
    np.testing.assert_array_equal(geodesics.targets, [0, 25, 50, 75, 100])
    expected = Geodesics.of(graph, geodesics.targets).distances
    np.testing.assert_array_equal(geodesics.distances, expected)


@pytest.mark.parametrize("farthest", [True, False])
def test_pickles_have_no_distances_but_give_the_same_ones(X, farthest):
    graph = NeighborGraph.build(X, 6)
    chosen = [np.arange(150)], [20], [0]
    found = Geodesics.to_farthest(graph, *chosen) if farthest else Geodesics.of(graph)
    before = found.distances.copy()
    stored = pickle.dumps(found)
    assert len(stored) < len(pickle.dumps(graph)) + 8 * 150 + 1000
    np.testing.assert_array_equal(pickle.loads(stored).distances, before)


def test_a_shortest_path_may_avoid_points(X):
    line = np.arange(5.0)[:, None]
    graph = NeighborGraph.build(line, 2)
    rows, lengths = shortest_route(graph, 0, 4)
    assert lengths[-1] == 4
    rows, lengths = shortest_route(graph, 0, 4, np.array([True, False, True, True, True]))
    assert rows[:2].tolist() == [0, 2]
    with pytest.raises(DisconnectedGraphError, match=r"from row 0 to row 4.* has 1 of 5 points"):
        shortest_route(graph, 0, 4, np.array([True, False, False, True, True]))


@pytest.mark.parametrize("single", [False, True])
def test_compiled_sums_of_new_points_have_the_same_bits(X, monkeypatch, single):
    import numba  # noqa: F401  # compiled sums are used if it is loaded

    if single:
        monkeypatch.setattr(geodesics_module, "SINGLE_ABOVE", 0)
    geodesics = Geodesics.of(NeighborGraph.build(X, 6))
    new, found = X[:40] + 0.1, []
    for above in (0, np.inf):
        monkeypatch.setattr(geodesics_module, "COMPILE_ABOVE_SUMS", above)
        found.append(geodesics.from_new(new))
    np.testing.assert_array_equal(*found)
    block = geodesics.blocks_from_new(new)(slice(7, 20))
    np.testing.assert_array_equal(block, found[0][7:20])


def test_edges_of_new_points_occur_once(X):
    geodesics = Geodesics.of(NeighborGraph.build(X, 6))
    new = X + 0.01
    own, reverse = geodesics.graph.query(new)
    pairs = {
        *zip(own.rows, own.indices, strict=True),
        *zip(reverse.rows, reverse.indices, strict=True),
    }
    edges = geodesics._edges_of(new, geodesics.graph.identical(new))
    assert len(own.indices) + len(reverse.indices) > len(pairs) == len(edges.indices)
    assert pairs == set(zip(edges.rows, edges.indices, strict=True))
