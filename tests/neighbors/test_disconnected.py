"""The policy for graphs with several connected components."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

from manifoldry import NeighborGraph
from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning
from manifoldry.neighbors import DisconnectedPolicy
from manifoldry.neighbors.disconnected import GRAPH, VANISHING_WEIGHTS


def clusters(sizes, n_features=3, seed=0, apart=40.0):
    """Clusters whose centers lie far apart in different directions."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(len(sizes), n_features)) * apart
    return np.repeat(centers, sizes, axis=0) + rng.normal(size=(sum(sizes), n_features))


def bridges_of(graph, joined):
    """Edges that joining added, as a dict from ordered pairs to lengths."""
    before = set(zip(graph.rows, graph.indices, strict=True))
    edges = zip(joined.rows, joined.indices, joined.distances, strict=True)
    return {(i, j): d for i, j, d in edges if (i, j) not in before}


def assert_minimum_spanning(graph, joined, D):
    """The added edges connect all components with the total length of Kruskal's tree."""
    count, labels = graph.components()
    between = np.array(
        [[D[np.ix_(labels == a, labels == b)].min() for b in range(count)] for a in range(count)]
    )
    bridges = bridges_of(graph, joined)
    assert joined.components()[0] == 1
    assert len(bridges) == 2 * (count - 1)
    assert len(joined.indices) == len(graph.indices) + len(bridges)  # none is there twice
    assert all(bridges[j, i] == d for (i, j), d in bridges.items())  # both ways
    np.testing.assert_allclose(list(bridges.values()), [D[pair] for pair in bridges], rtol=1e-11)
    total = minimum_spanning_tree(between).sum()
    np.testing.assert_allclose(sum(bridges.values()) / 2, total, rtol=1e-11)


def join(graph, distances=None):
    with pytest.warns(DisconnectedGraphWarning, match="joined by the shortest edges"):
        return DisconnectedPolicy("join").connect(graph, distances)


MANY = [12, 9, 30, 11, 8, 17, 25, 7, 10, 40]


@pytest.mark.parametrize("n_features", [2, 3, 20])
@pytest.mark.parametrize("seed", range(4))
def test_bridges_are_a_minimum_spanning_tree(n_features, seed):
    X = clusters(MANY, n_features, seed)
    graph = NeighborGraph.build(X, 5)
    assert graph.components()[0] >= 6
    assert_minimum_spanning(graph, join(graph), cdist(X, X))


@pytest.mark.parametrize("sizes", [[300, 290], [280, 600, 300, 14, 20], [1000, 257, 256, 255]])
def test_bridges_between_components_larger_than_the_number_of_searched_neighbors(sizes):
    X = clusters(sizes)
    graph = NeighborGraph.build(X, 12)
    assert graph.components()[0] == len(sizes)
    assert_minimum_spanning(graph, join(graph), cdist(X, X))


def test_a_chain_of_components_needs_several_rounds():
    """Pairs, pairs of pairs, ...: at each level the nearest component is a different one."""
    position = np.zeros(1)
    for level in range(5):
        position = np.concatenate([position, position + 10.0**level])
    X = (position[:, None] + np.linspace(0, 0.01, 4)).reshape(-1, 1)
    graph = NeighborGraph.build(X, 2)
    assert graph.components()[0] == 32
    assert_minimum_spanning(graph, join(graph), cdist(X, X))


def test_many_small_components_are_joined_in_a_few_searches(monkeypatch):
    from manifoldry.neighbors.kdtree import KDTreeIndex

    X = clusters([3] * 150, 2, apart=1e4)
    graph = NeighborGraph.build(X, 2)
    assert graph.components()[0] == 150
    calls, nearest = [], KDTreeIndex.nearest
    monkeypatch.setattr(KDTreeIndex, "nearest", lambda *args: (calls.append(1), nearest(*args))[1])
    joined = join(graph)
    assert len(calls) < 40
    assert_minimum_spanning(graph, joined, cdist(X, X))


def test_isolated_points_of_a_radius_graph_are_joined():
    X = np.array([0.0, 1.0, 2.0, 10.0, 30.0, 31.0, 90.0])[:, None]
    graph = NeighborGraph.build(X, radius=1.5)
    joined = join(graph)
    assert_minimum_spanning(graph, joined, cdist(X, X))
    assert set(bridges_of(graph, joined)) == {
        pair for a, b in ((2, 3), (3, 4), (5, 6)) for pair in ((a, b), (b, a))
    }


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_bridges_in_cosine_distance(kind):
    rng = np.random.default_rng(2)
    X = np.vstack([np.eye(6)[[c]] + 0.05 * rng.normal(size=(15, 6)) for c in range(6)])
    X *= rng.uniform(1, 100, size=(len(X), 1))
    graph = NeighborGraph.build(kind(X), 6, metric="cosine")
    assert graph.components()[0] == 6
    assert_minimum_spanning(graph, join(graph), cdist(X, X, "cosine"))


@pytest.mark.parametrize(("metric", "name"), [("manhattan", "cityblock"), ("canberra", "canberra")])
def test_bridges_in_other_metrics(metric, name):
    X = clusters(MANY, 14)
    graph = NeighborGraph.build(X, 5, metric=metric)
    D = cdist(X, X, name)
    if graph.components()[0] > 1:
        assert_minimum_spanning(graph, join(graph), D)
    else:
        assert metric == "canberra"  # nearly independent of the distance between clusters


def test_bridges_between_sparse_points():
    X = np.round(clusters(MANY, 20), 1)
    graph = NeighborGraph.build(sparse.csr_array(X), 5)
    assert_minimum_spanning(graph, join(graph), cdist(X, X))


@pytest.mark.parametrize("sizes", [MANY, [280, 600, 10]])
def test_bridges_from_dense_distances(sizes):
    X = clusters(sizes)
    D = cdist(X, X)
    graph = NeighborGraph.build(D, 5, metric="precomputed")
    assert graph.components()[0] >= len(sizes)
    assert_minimum_spanning(graph, join(graph, D), D)


def test_equal_bridges_make_no_cycle():
    """Small clusters at the corners of a cube: all neighboring corners are equally far."""
    corners = np.array([[x, y, z] for x in (0, 9) for y in (0, 9) for z in (0, 9)], float)
    X = np.repeat(corners, 4, axis=0)  # each of four coinciding points
    graph = NeighborGraph.build(X, 3)
    assert graph.components()[0] == 8
    assert_minimum_spanning(graph, join(graph), cdist(X, X))


def test_sparse_distances_between_components_are_unknown():
    X = clusters([12, 9])
    S = NeighborGraph.build(X, 6).matrix()
    graph = NeighborGraph.build(S, 5, metric="precomputed")
    with (
        pytest.warns(DisconnectedGraphWarning),
        pytest.raises(DisconnectedGraphError, match="distances between them are unknown; pass den"),
    ):
        DisconnectedPolicy("join").connect(graph)


@pytest.mark.parametrize("choice", ["separate", "join", "largest", "error"])
def test_nothing_happens_to_a_connected_graph(choice):
    graph = NeighborGraph.build(clusters([30]), 8)
    policy = DisconnectedPolicy(choice)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert policy.connect(graph) is graph
        (rows,) = policy.components(graph.components()[1])
    np.testing.assert_array_equal(rows, np.arange(30))


@pytest.mark.parametrize("choice", ["separate", "largest", "error"])
def test_only_join_touches_the_graph(choice):
    graph = NeighborGraph.build(clusters([12, 9]), 5)
    assert DisconnectedPolicy(choice).connect(graph) is graph


LABELS = np.array([2, 0, 2, 1, 0, 2, 3, 2, 1])


def test_separate_returns_all_components_largest_first():
    message = r"4 connected components \(of 4, 2, 2, 1 points\); each was embedded separately"
    with pytest.warns(DisconnectedGraphWarning, match=message):
        components = DisconnectedPolicy("separate").components(LABELS)
    assert [component.tolist() for component in components] == [[0, 2, 5, 7], [1, 4], [3, 8], [6]]


def test_largest_returns_the_largest():
    with pytest.warns(DisconnectedGraphWarning, match="only the largest was embedded"):
        (component,) = DisconnectedPolicy("largest").components(LABELS)
    assert component.tolist() == [0, 2, 5, 7]


@pytest.mark.parametrize(
    ("disconnection", "remedy"),
    [(GRAPH, "raise n_neighbors or radius"), (VANISHING_WEIGHTS, "smaller gamma")],
)
@pytest.mark.parametrize("choice", ["error", "join"])
def test_errors_contain_the_remedy(choice, disconnection, remedy):
    with pytest.raises(DisconnectedGraphError, match=rf"4 connected components.*{remedy}"):
        DisconnectedPolicy(choice).components(LABELS, disconnection)


def test_many_components_are_not_all_listed():
    with pytest.warns(DisconnectedGraphWarning, match=r"\(of 1, 1, 1, 1, 1, \.\.\. points\)"):
        components = DisconnectedPolicy("separate").components(np.arange(5000))
    assert len(components) == 5000


def test_unknown_choice():
    with pytest.raises(ValueError, match="disconnected='ignore' must be one of 'separate', 'join'"):
        DisconnectedPolicy("ignore")


def test_joining_does_not_change_queries_of_new_points():
    X = clusters([12, 9])
    graph = NeighborGraph.build(X, 5)
    new = X[:4] + 0.01
    for a, b in zip(graph.query(new), join(graph).query(new), strict=True):
        np.testing.assert_array_equal(a.indices, b.indices)
