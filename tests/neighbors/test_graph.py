"""Neighbor graphs: neighbors, distances, and queries of new points."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry import NeighborGraph
from manifoldry.neighbors.graph import resolve_neighbors


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture(name="X")
def points(rng):
    return rng.normal(size=(60, 4))


def knn_oracle(D, k):
    """Indices and distances of the k nearest other points, ties by index."""
    D = D.copy()
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(D, order, axis=1)


def radius_oracle(D, radius):
    """Adjacency and distances as a dense matrix, NaN where there is no edge."""
    near = (radius >= D) & ~np.eye(len(D), dtype=bool)
    return np.where(near, D, np.nan)


def dense(graph):
    """Edges as a dense matrix of distances, NaN where there is no edge."""
    out = np.full((graph.n_query, graph.n_reference), np.nan)
    out[graph.rows, graph.indices] = graph.distances
    return out


def edges_of(graph):
    return list(zip(graph.rows, graph.indices, graph.distances, strict=True))


def assert_sorted(graph):
    """Rows by distance, ties by index."""
    for a, b in zip(graph.indptr[:-1], graph.indptr[1:], strict=True):
        pairs = list(zip(graph.distances[a:b], graph.indices[a:b], strict=True))
        assert pairs == sorted(pairs)


METRICS = [
    ("euclidean", None, "euclidean", {}),
    ("l2", None, "euclidean", {}),
    ("cosine", None, "cosine", {}),
    ("manhattan", None, "cityblock", {}),
    ("l1", None, "cityblock", {}),
    ("chebyshev", None, "chebyshev", {}),
    ("minkowski", None, "euclidean", {}),
    ("minkowski", {"p": 1}, "cityblock", {}),
    ("minkowski", {"p": 3}, "minkowski", {"p": 3}),
    ("minkowski", {"p": 3, "w": np.arange(1.0, 5.0)}, "minkowski", {"p": 3, "w": range(1, 5)}),
    ("seuclidean", {"V": np.arange(1.0, 5.0)}, "seuclidean", {"V": range(1, 5)}),
    ("braycurtis", None, "braycurtis", {}),
    ("correlation", None, "correlation", {}),
    (lambda x, y, power=2: (abs(x - y) ** power).sum(), {"power": 3}, "cubes", {}),
]


def all_distances(A, B, name, parameters):
    if name == "cubes":
        return (abs(A[:, None] - B[None]) ** 3).sum(axis=2)
    parameters = {key: np.array(v, float) if key != "p" else v for key, v in parameters.items()}
    return cdist(A, B, name, **parameters)


@pytest.mark.parametrize(("metric", "params", "name", "parameters"), METRICS)
@pytest.mark.parametrize("n_features", [4, 15])
def test_k_nearest_in_many_metrics(metric, params, name, parameters, n_features, rng):
    X = rng.normal(size=(50, n_features))
    if params and not np.isscalar(next(reversed(params.values()))):
        X = X[:, :4]
    D = all_distances(X, X, name, parameters)
    graph = NeighborGraph.build(X, 6, metric=metric, metric_params=params)
    order, distances = knn_oracle(D, 6)
    np.testing.assert_array_equal(graph.indices.reshape(-1, 6), order)
    np.testing.assert_allclose(graph.distances.reshape(-1, 6), distances, rtol=1e-11)


@pytest.mark.parametrize(("metric", "params", "name", "parameters"), METRICS)
def test_radius_in_many_metrics(metric, params, name, parameters, X):
    D = all_distances(X, X, name, parameters)
    radius = np.quantile(D, 0.1)
    graph = NeighborGraph.build(X, radius=radius, metric=metric, metric_params=params)
    np.testing.assert_allclose(dense(graph), radius_oracle(D, radius), rtol=1e-11)
    np.testing.assert_array_equal(graph.neighbor_radius, radius)
    assert graph.radius == radius
    assert graph.n_neighbors is None


def test_metric_parameters_are_never_ignored(X):
    with pytest.raises((TypeError, ValueError)):
        NeighborGraph.build(X, 5, metric="euclidean", metric_params={"nonsense": 1})


def test_no_point_is_its_own_neighbor(X):
    for graph in (NeighborGraph.build(X, 59), NeighborGraph.build(X, radius=1e9)):
        assert not (graph.rows == graph.indices).any()
        assert len(graph.indices) == 60 * 59
        assert graph.matrix().diagonal().sum() == 0


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_data(kind, metric, dtype, rng):
    X = (rng.normal(size=(50, 30)) * (rng.uniform(size=(50, 30)) < 0.3)).astype(dtype)
    expected = NeighborGraph.build(X.astype(float), 5, metric=metric)
    graph = NeighborGraph.build(kind(X), 5, metric=metric)
    np.testing.assert_array_equal(graph.indices, expected.indices)
    np.testing.assert_allclose(graph.distances, expected.distances, rtol=1e-12)
    own, back = graph.query(kind(X[:9]))
    np.testing.assert_array_equal(own.indices, expected.indices[:45])
    assert back.n_query == 9


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_sparse_data_with_long_indices_and_repeated_entries(metric, rng):
    at = rng.integers(0, 40, 300), rng.integers(0, 25, 300)
    X = sparse.csr_array((rng.uniform(size=300), at), shape=(40, 25))
    indptr, indices = X.indptr * 2, np.repeat(X.indices, 2)
    halves = sparse.csr_array(
        (np.repeat(X.data / 2, 2), indices.astype(np.int64), indptr.astype(np.int64)),
        shape=X.shape,
    )
    assert not halves.has_canonical_format
    entries = halves.nnz
    expected = NeighborGraph.build(X, 5, metric=metric)
    graph = NeighborGraph.build(halves, 5, metric=metric)
    np.testing.assert_array_equal(graph.indices, expected.indices)
    np.testing.assert_allclose(graph.distances, expected.distances, rtol=1e-12)
    np.testing.assert_array_equal(graph.identical(halves), np.arange(40))
    assert halves.nnz == entries  # the caller's matrix was not modified


def test_dense_and_sparse_queries_of_dense_and_sparse_graphs(rng):
    X = np.round(rng.normal(size=(40, 20)), 1)
    D = cdist(X, X)
    for reference, query in ((X, sparse.csr_array(X)), (sparse.csr_array(X), X)):
        graph = NeighborGraph.build(reference, 5)
        own, _ = graph.query(query)
        np.testing.assert_array_equal(own.indices.reshape(-1, 5), knn_oracle(D, 5)[0])


def test_single_precision_gives_double_precision_distances(rng):
    for n_features in (3, 20):
        X = rng.normal(size=(60, n_features)).astype(np.float32) + np.float32(100)
        graph = NeighborGraph.build(X, 6)
        order, distances = knn_oracle(cdist(X.astype(float), X.astype(float)), 6)
        np.testing.assert_array_equal(graph.indices.reshape(-1, 6), order)
        np.testing.assert_allclose(graph.distances.reshape(-1, 6), distances, rtol=1e-14)
        assert graph.distances.dtype == np.float64


def test_data_frames_lists_and_memory_layouts_give_the_same_graph(X):
    expected = NeighborGraph.build(X, 5)
    frame = pd.DataFrame(X, columns=list("abcd"))
    mixed = frame.astype({"a": np.float32}).astype({"a": np.float64})
    same = mixed.to_numpy()
    for given in (X.tolist(), frame, pl.DataFrame(X), np.asfortranarray(X), np.ma.array(X)):
        graph = NeighborGraph.build(given, 5)
        np.testing.assert_array_equal(graph.indices, expected.indices)
        np.testing.assert_array_equal(graph.distances, expected.distances)
    graph = NeighborGraph.build(mixed, 5)
    np.testing.assert_array_equal(graph.indices, NeighborGraph.build(same, 5).indices)


def test_integer_data(rng):
    X = rng.integers(0, 5, size=(40, 3))
    order, _ = knn_oracle(cdist(X, X), 6)
    np.testing.assert_array_equal(NeighborGraph.build(X, 6).indices.reshape(-1, 6), order)


# --- precomputed distances ---------------------------------------------------------------------


def stored(D, k, diagonal=False):
    """The k nearest other points as a sparse matrix with explicit zeros."""
    order, distances = knn_oracle(D, k)
    rows = np.repeat(np.arange(len(D)), k)
    entries = (distances.ravel(), (rows, order.ravel()))
    if diagonal:
        everyone = np.arange(len(D))
        entries = (
            np.concatenate([entries[0], np.zeros(len(D))]),
            (np.concatenate([rows, everyone]), np.concatenate([order.ravel(), everyone])),
        )
    return sparse.csr_array(entries, shape=D.shape)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_distances(X, dtype):
    D = cdist(X, X).astype(dtype)
    graph = NeighborGraph.build(D, 7, metric="precomputed")
    order, distances = knn_oracle(D, 7)
    np.testing.assert_array_equal(graph.indices.reshape(-1, 7), order)
    np.testing.assert_array_equal(graph.distances.reshape(-1, 7), distances)
    radius = NeighborGraph.build(D, radius=1.5, metric="precomputed")
    np.testing.assert_array_equal(dense(radius), radius_oracle(D, 1.5))
    assert "precomputed" in graph.index.reason


@pytest.mark.parametrize("diagonal", [False, True], ids=["bare", "with-diagonal"])
def test_sparse_distances(X, diagonal):
    D = cdist(X, X)
    S = stored(D, 12, diagonal)
    graph = NeighborGraph.build(S, 7, metric="precomputed")
    order, distances = knn_oracle(D, 7)
    np.testing.assert_array_equal(graph.indices.reshape(-1, 7), order)
    np.testing.assert_array_equal(graph.distances.reshape(-1, 7), distances)
    radius = NeighborGraph.build(S, radius=1.5, metric="precomputed")
    kept = np.zeros_like(D, dtype=bool)
    np.put_along_axis(kept, knn_oracle(D, 12)[0], True, axis=1)
    np.testing.assert_array_equal(dense(radius), np.where(kept & (D <= 1.5), D, np.nan))


def test_stored_zeros_are_edges_and_a_stored_diagonal_is_not(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 3, axis=0)
    graph = NeighborGraph.build(stored(cdist(X, X), 6, diagonal=True), 5, metric="precomputed")
    lengths = graph.distances.reshape(-1, 5)
    np.testing.assert_array_equal(lengths[:, :2], 0)
    assert (lengths[:, 2:] > 0).all()
    assert not (graph.rows == graph.indices).any()
    np.testing.assert_array_equal(graph.indices[:2], [1, 2])


def test_too_few_stored_neighbors(X):
    S = stored(cdist(X, X), 6, diagonal=True)
    with pytest.raises(ValueError, match=r"n_neighbors=7 needs 7 .* row 0 has 6; store more"):
        NeighborGraph.build(S, 7, metric="precomputed")


def test_repeated_stored_entries_stand_for_their_sum(X):
    S = stored(cdist(X, X), 8).tocoo()
    halves = sparse.coo_array(
        (np.tile(S.data / 2, 2), (np.tile(S.row, 2), np.tile(S.col, 2))), shape=S.shape
    )
    graph = NeighborGraph.build(halves, 8, metric="precomputed")
    np.testing.assert_array_equal(graph.indices, NeighborGraph.build(X, 8).indices)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda D: D[:, :-1], r"square matrix; got shape \(60, 59\)"),
        (lambda D: D - 1, "must not be negative; the smallest is -1"),
        (lambda D: D + np.triu(np.ones_like(D), 1), "must be symmetric; .* up to 1"),
        (lambda D: 1 + D, "zero diagonal; the largest entry there is 1.0"),
    ],
)
def test_invalid_distances_are_rejected(spoil, message, X):
    with pytest.raises(ValueError, match=message):
        NeighborGraph.build(spoil(cdist(X, X)), 5, metric="precomputed")


def test_rounding_on_the_diagonal_is_allowed(X):
    D = cdist(X, X, "cosine")
    np.fill_diagonal(D, 2.3e-16)
    graph = NeighborGraph.build(D, 5, metric="precomputed")
    np.testing.assert_array_equal(graph.indices, NeighborGraph.build(X, 5, metric="cosine").indices)


def test_negative_stored_distance_is_rejected(X):
    S = stored(cdist(X, X), 6)
    S.data[3] = -1
    with pytest.raises(ValueError, match="must not be negative"):
        NeighborGraph.build(S, 3, metric="precomputed")


# --- numerical accuracy ------------------------------------------------------------------------


def test_zero_length_edges_are_kept(rng):
    X = np.repeat(rng.normal(size=(12, 3)), 4, axis=0)
    graph = NeighborGraph.build(X, 5)
    lengths = graph.distances.reshape(-1, 5)
    assert (lengths[:, :3] == 0).all()
    assert (lengths[:, 3:] > 0).all()
    matrix = graph.matrix()
    assert matrix.nnz == 48 * 5
    assert (matrix.data == 0).sum() == 48 * 3
    count, labels = NeighborGraph.build(X, 3).components()
    assert count == 12
    np.testing.assert_array_equal(labels, np.repeat(labels[::4], 4))


@pytest.mark.parametrize("n_features", [3, 14])
def test_many_identical_points_are_searched_fast(rng, n_features, monkeypatch):
    """Of a thousand identical points only the first k can be neighbors."""
    from manifoldry.neighbors import brute, kdtree

    X = np.vstack([rng.normal(size=(300, n_features)), np.zeros((1000, n_features))])
    rng.shuffle(X)
    pairs = []
    for module in (brute, kdtree):
        original = module.pair_distances
        monkeypatch.setattr(
            module,
            "pair_distances",
            lambda X, Y, i, j, *rest, original=original: (
                pairs.append(len(i)),
                original(X, Y, i, j, *rest),
            )[1],
        )
    graph = NeighborGraph.build(X, 6)
    assert sum(pairs) < 50 * len(X)
    order, distances = knn_oracle(cdist(X, X), 6)
    np.testing.assert_array_equal(graph.indices.reshape(-1, 6), order)
    np.testing.assert_allclose(graph.distances.reshape(-1, 6), distances, rtol=1e-13)


def whole(rng, n, d):
    """Distinct points whose coordinates are multiples of 2⁻¹⁰, so that shifting them is exact."""
    return rng.integers(-(2**10), 2**10, size=(n, d)) / 2.0**20


@pytest.mark.parametrize("n_features", [2, 5, 12, 13, 30])
@pytest.mark.parametrize("offset", [2.0**27, -(2.0**27)])
def test_close_points_far_from_the_origin(rng, n_features, offset):
    """At 1e8 ± 1e-3 neighbors and distances are bitwise those at the origin."""
    X = whole(rng, 60, n_features)
    expected, graph = NeighborGraph.build(X, 7), NeighborGraph.build(X + offset, 7)
    np.testing.assert_array_equal(graph.indices, expected.indices)
    np.testing.assert_array_equal(graph.distances, expected.distances)


@pytest.mark.parametrize("n_features", [2, 12, 13, 30])
def test_two_such_clusters_far_apart(rng, n_features):
    """No origin is close to both: centering would lose half the digits."""
    A, B = whole(rng, 40, n_features), whole(rng, 40, n_features)
    graph = NeighborGraph.build(np.vstack([A + 2.0**27, B - 2.0**27]), 7)
    for part, cluster in enumerate((A, B)):
        expected = NeighborGraph.build(cluster, 7)
        rows = slice(part * 280, part * 280 + 280)
        np.testing.assert_array_equal(graph.indices[rows] - 40 * part, expected.indices)
        np.testing.assert_array_equal(graph.distances[rows], expected.distances)
    assert graph.components()[0] == 2


@pytest.mark.parametrize("n_features", [1, 2, 12, 13])
def test_distant_clusters_of_the_size_of_rounding_errors(rng, n_features):
    """Clusters a hundred rounding errors wide with many ties: any further rounding would show.

    Centering would move the first cluster beyond 2²⁶ and halve its resolution.
    """
    centers = np.repeat([6e7, -1.2e8], [41, 29])[:, None]
    X = centers + 1e-6 * rng.uniform(-1, 1, size=(70, n_features))
    graph = NeighborGraph.build(X, 7)
    order, distances = knn_oracle(cdist(X, X), 7)  # cdist subtracts, which is exact here
    np.testing.assert_array_equal(graph.indices.reshape(-1, 7), order)
    np.testing.assert_allclose(graph.distances.reshape(-1, 7), distances, rtol=1e-15)


@pytest.mark.parametrize("n_features", [1, 13])
@pytest.mark.parametrize("n_query", [3, 100])
def test_points_just_outside_the_radius_are_excluded(n_features, n_query):
    line = np.array([0.0, 1.0, -1.0 - 2e-13, 1.0 + 4e-16, 30.0])
    X = np.zeros((5, n_features))
    X[:, 0] = line
    graph = NeighborGraph.build(X, radius=1.0)
    assert graph.indices[: graph.indptr[1]].tolist() == [1]
    own, back = graph.query(np.zeros((n_query, n_features)) + 1e-300)
    for answer in (own, back):
        np.testing.assert_array_equal(answer.indices, np.tile([0, 1], n_query))


@pytest.mark.parametrize("n_features", [2, 13])
@pytest.mark.parametrize("exponent", [-500, -300, 300, 500])
def test_any_magnitude(rng, n_features, exponent):
    X = rng.normal(size=(50, n_features))
    expected, graph = NeighborGraph.build(X, 5), NeighborGraph.build(X * 2.0**exponent, 5)
    np.testing.assert_array_equal(graph.indices, expected.indices)
    np.testing.assert_allclose(graph.distances, expected.distances * 2.0**exponent, rtol=1e-15)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_radius_of_any_magnitude(rng, kind, metric):
    X = rng.normal(size=(40, 3))
    radius = np.median(NeighborGraph.build(X, 5, metric=metric).neighbor_radius)
    expected = NeighborGraph.build(kind(X), radius=radius, metric=metric)
    for scale in (2.0**-450, 2.0**450):
        graph = NeighborGraph.build(kind(X * scale), radius=radius * scale, metric=metric)
        np.testing.assert_array_equal(graph.indices, expected.indices)


@pytest.mark.parametrize("n_features", [3, 14])
def test_a_query_whose_distances_overflow_is_rejected(rng, n_features):
    graph = NeighborGraph.build(rng.normal(size=(30, n_features)), 4)
    far = np.zeros((2, n_features))
    far[1, 0] = 1e200
    with pytest.raises(ValueError, match=r"values up to 1e\+200.* check the units"):
        graph.query(far)


@pytest.mark.parametrize("n_features", [3, 14])
def test_an_outlier_does_not_degrade_the_other_distances(rng, n_features):
    """With one point at 1e7, matrix products cannot distinguish the other points."""
    X = rng.normal(size=(60, n_features))
    expected = NeighborGraph.build(X, 5)
    graph = NeighborGraph.build(np.vstack([X, np.full(n_features, 1e7)]), 5)
    np.testing.assert_array_equal(graph.indices[:300], expected.indices)
    np.testing.assert_allclose(graph.distances[:300], expected.distances, rtol=1e-14)


# --- queries of new points ---------------------------------------------------------------------


GRAPHS = {
    "k-nearest": lambda X: NeighborGraph.build(X, 6),
    "truncated": lambda X: NeighborGraph.build(X, 12).truncate(6),
    "radius": lambda X: NeighborGraph.build(X, radius=1.3),
    "cosine": lambda X: NeighborGraph.build(X, 6, metric="cosine"),
    "cosine-radius": lambda X: NeighborGraph.build(X, radius=0.2, metric="cosine"),
    "manhattan": lambda X: NeighborGraph.build(X, 6, metric="manhattan"),
    "canberra": lambda X: NeighborGraph.build(X, 6, metric="canberra"),
    "brute": lambda X: NeighborGraph.build(np.hstack([X] * 4), 6),
    "sparse": lambda X: NeighborGraph.build(sparse.csr_array(X), 6),
    "precomputed": lambda X: NeighborGraph.build(cdist(X, X), 6, metric="precomputed"),
    "sparse-precomputed": lambda X: NeighborGraph.build(
        stored(cdist(X, X), 30, True), 6, metric="precomputed"
    ),
}
QUERIES = {
    "brute": lambda X: np.hstack([X] * 4),
    "sparse": sparse.csr_array,
    "precomputed": lambda X: cdist(X, X),
    "sparse-precomputed": lambda X: stored(cdist(X, X), 30, True),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_training_points_get_back_the_training_graph_and_its_transpose(name, X):
    graph = GRAPHS[name](X)
    own, back = graph.query(QUERIES.get(name, np.asarray)(X))
    assert edges_of(own) == edges_of(graph)
    forwards = {(i, j): d for i, j, d in edges_of(graph)}
    backwards = {(j, i): d for i, j, d in edges_of(back)}
    if name == "sparse-precomputed":  # reverse distances that are not stored are unknown
        backwards |= {pair: d for pair, d in forwards.items() if pair not in backwards}
    assert backwards == forwards
    assert_sorted(own)
    assert_sorted(back)


@pytest.mark.parametrize("name", ["k-nearest", "truncated", "brute", "cosine", "manhattan"])
def test_neighbors_and_reverse_neighbors_of_new_points(name, X, rng):
    metric = {"cosine": "cosine", "manhattan": "cityblock"}.get(name, "euclidean")
    as_query = QUERIES.get(name, np.asarray)
    new = as_query(rng.normal(size=(25, 4)))
    graph = GRAPHS[name](X)
    own, back = graph.query(new)
    D = cdist(new, as_query(X), metric)
    reach = knn_oracle(cdist(as_query(X), as_query(X), metric), 6)[1][:, -1]
    np.testing.assert_allclose(graph.neighbor_radius, reach, rtol=1e-11)
    order = np.argsort(D, axis=1, kind="stable")[:, :6]
    np.testing.assert_array_equal(own.indices.reshape(-1, 6), order)
    np.testing.assert_allclose(dense(back), np.where(reach >= D, D, np.nan), rtol=1e-11)


def test_queries_of_a_radius_graph_are_symmetric(X, rng):
    graph = NeighborGraph.build(X, radius=1.3)
    own, back = graph.query(rng.normal(size=(25, 4)))
    assert edges_of(own) == edges_of(back)


def test_a_training_point_among_new_ones_changes_nothing_for_them(X, rng):
    graph = NeighborGraph.build(X, 6)
    new = rng.normal(size=(5, 4))
    alone, mixed = graph.query(new), graph.query(np.vstack([new, X[:3]]))
    for a, b in zip(alone, mixed, strict=True):
        cut = a.indptr[-1]
        np.testing.assert_array_equal(a.indptr, b.indptr[:6])
        np.testing.assert_array_equal(a.indices, b.indices[:cut])
        np.testing.assert_array_equal(a.distances, b.distances[:cut])


def test_every_other_point_can_be_a_neighbor_also_of_a_new_one(rng):
    X = rng.normal(size=(6, 2))
    graph = NeighborGraph.build(X, 5)
    own, _ = graph.query(np.vstack([X[2], [[0.1, 0.2]]]))
    assert sorted(own.indices[:5]) == [0, 1, 3, 4, 5]
    assert len(own.indices[5:]) == 5


def test_an_empty_query(X):
    own, back = NeighborGraph.build(X, 6).query(X[:0])
    assert own.n_query == back.n_query == 0
    assert own.matrix().shape == (0, 60)


@pytest.mark.parametrize("name", ["precomputed", "sparse-precomputed"])
def test_distances_of_new_points(name, X, rng):
    new = rng.normal(size=(7, 4))
    D = cdist(new, X)
    graph, expected = GRAPHS[name](X), GRAPHS["k-nearest"](X)
    for given, wanted in zip(graph.query(D), expected.query(new), strict=True):
        np.testing.assert_array_equal(given.indices, wanted.indices)
        np.testing.assert_allclose(given.distances, wanted.distances, rtol=1e-12)


def test_a_dense_row_of_distances_keeps_its_zeros_in_a_sparse_graph(X):
    D = cdist(X, X)
    graph = NeighborGraph.build(stored(D, 30), 6, metric="precomputed")
    own, _ = graph.query(D[:10])
    np.testing.assert_array_equal(own.indices.reshape(-1, 6), knn_oracle(D, 6)[0][:10])
    np.testing.assert_array_equal(graph.identical(D[:10]), np.arange(10))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (np.zeros((3, 5)), "X has 5 columns; the graph was built on 4 features"),
        (np.full((3, 4), np.nan), "NaN"),
        (np.full((3, 4), np.inf), "infinity"),
        (np.ma.masked_less(np.zeros((3, 4)), 1), "masked"),
    ],
)
def test_bad_queries(asked, message, X):
    graph = NeighborGraph.build(X, 6)
    with pytest.raises(ValueError, match=message):
        graph.query(asked)


def test_bad_queries_of_distances(X):
    D = cdist(X, X)
    graph = NeighborGraph.build(D, 6, metric="precomputed")
    with pytest.raises(ValueError, match="59 columns; the graph was built on 60 distances"):
        graph.query(D[:, :-1])
    with pytest.raises(ValueError, match="must not be negative"):
        graph.query(-D)
    with pytest.raises(ValueError, match="dense distances"):
        graph.query(sparse.csr_array(D))


# --- truncate ----------------------------------------------------------------------------------


def test_truncated_is_what_would_have_been_built(X):
    graph, expected = NeighborGraph.build(X, 20).truncate(7), NeighborGraph.build(X, 7)
    for name in ("indptr", "indices", "distances", "neighbor_radius", "n_neighbors"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(expected, name))


@pytest.mark.parametrize(
    ("n_neighbors", "error", "message"),
    [
        (9, ValueError, "n_neighbors=9 cannot be cut from a graph built with 8 neighbors; build"),
        (0, ValueError, "n_neighbors=0 must be at least 1"),
        (2.5, TypeError, "n_neighbors=2.5 must be a whole number"),
    ],
)
def test_truncate_out_of_bounds(n_neighbors, error, message, X):
    with pytest.raises(error, match=message):
        NeighborGraph.build(X, 8).truncate(n_neighbors)


def test_only_training_graphs_of_a_fixed_number_can_be_truncated(X):
    with pytest.raises(ValueError, match="built with a radius"):
        NeighborGraph.build(X, radius=1.0).truncate(3)
    own, _ = NeighborGraph.build(X, 8).query(X[:5])
    with pytest.raises(ValueError, match="5 query points among 60: truncate before querying"):
        own.truncate(3)


# --- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"n_neighbors": 60},
            ValueError,
            "n_neighbors=60 must be less than n_samples=60; pass n_neighbors=59 or fewer",
        ),
        ({"n_neighbors": 0}, ValueError, "n_neighbors=0 must be at least 1"),
        ({"n_neighbors": "5"}, TypeError, "n_neighbors='5' must be a whole number"),
        ({"n_neighbors": 5.0}, TypeError, "n_neighbors=5.0 must be a whole number"),
        ({"n_neighbors": True}, TypeError, "n_neighbors=True must be a whole number"),
        ({"radius": 0}, ValueError, "radius=0 must be greater than 0"),
        ({"radius": -1.0}, ValueError, "radius=-1.0 must be greater than 0"),
        ({"radius": np.inf}, ValueError, "radius=inf must be finite"),
        ({"radius": "1"}, TypeError, "radius='1' must be a number"),
        (
            {"n_neighbors": 3, "radius": 1.0},
            ValueError,
            "pass n_neighbors=3 or radius=1.0, not both",
        ),
        ({"metric": "nonsense"}, ValueError, "nonsense"),
        ({"metric": 3}, (TypeError, ValueError), "metric"),
    ],
)
def test_arguments_out_of_bounds(arguments, error, message, X):
    with pytest.raises(error, match=message):
        NeighborGraph.build(X, **arguments)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((5, 2), np.nan), "NaN"),
        (np.array([[0.0, np.inf], [1, 2], [3, 4]]), "infinity"),
        (np.ma.masked_greater(np.arange(10.0).reshape(5, 2), 7), "X has 2 masked cells"),
        (np.empty((0, 2)), "0 sample"),
        (np.empty((5, 0)), "0 feature"),
        (np.zeros((1, 2)), "minimum of 2"),
        (np.zeros(5), "1D array"),
        (np.zeros((3, 2, 2)), "a stack of 3 arrays"),
        ("a string", "string"),
        (np.array([["a", "b"], ["c", "d"]]), "convert"),
        (np.zeros((3, 2), dtype=complex), "[Cc]omplex"),
        (sparse.csr_array(np.array([[np.nan, 1.0], [0.0, 1.0]])), "NaN"),
    ],
)
def test_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        NeighborGraph.build(X)


def test_metrics_without_support_for_sparse_data():
    with pytest.raises(
        ValueError, match=r"metric='canberra' does not support sparse data; pass X\.to"
    ):
        NeighborGraph.build(sparse.eye_array(9).tocsr(), 2, metric="canberra")


def test_rows_of_zeros_are_rejected_for_cosine():
    X = np.eye(4)
    X[2] = 0
    with pytest.raises(ValueError, match=r"row 2 of X is all zeros.*metric='euclidean'"):
        NeighborGraph.build(X, 2, metric="cosine")


@pytest.mark.parametrize(("n", "expected"), [(2, 1), (3, 2), (5, 2), (10, 5), (20, 10), (999, 10)])
def test_neighbors_by_default(n, expected):
    assert resolve_neighbors(None, n) == expected
    assert NeighborGraph.build(np.arange(float(n))[:, None]).n_neighbors == expected


# --- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("n_features", [4, 15])
@pytest.mark.parametrize("kind", [np.array, np.asfortranarray, sparse.csr_array, pd.DataFrame])
def test_overwriting_the_array_does_not_change_the_graph(kind, metric, n_features, rng):
    X, new = rng.normal(size=(50, n_features)), rng.normal(size=(5, n_features))
    expected = NeighborGraph.build(X, 6, metric=metric).query(new)
    given = kind(X.copy())
    graph = NeighborGraph.build(given, 6, metric=metric)
    if sparse.issparse(given):
        given.data[:] = 1
    elif isinstance(given, np.ndarray):
        given[:] = 1
    else:
        given.iloc[:, :] = 1.0
    for answer, wanted in zip(graph.query(new), expected, strict=True):
        np.testing.assert_array_equal(answer.indices, wanted.indices)
        np.testing.assert_allclose(answer.distances, wanted.distances, rtol=1e-13)


def test_without_a_copy_the_array_is_shared(X):
    assert np.shares_memory(NeighborGraph.build(X, 5, copy=False).index.points, X)
    assert not np.shares_memory(NeighborGraph.build(X, 5).index.points, X)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_read_only_memory_map_is_not_copied(X, tmp_path, order):
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    graph = NeighborGraph.build(mapped, 5)
    assert np.shares_memory(graph.index.points, mapped)
    assert edges_of(graph) == edges_of(NeighborGraph.build(X, 5))
    # scikit-learn's validation returns a plain view of a memory map.
    assert np.shares_memory(NeighborGraph.build(np.asarray(mapped), 5).index.points, mapped)


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_a_writable_memory_map_is_copied(X, tmp_path, mode):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
    assert not np.shares_memory(NeighborGraph.build(mapped, 5).index.points, mapped)


def test_the_input_is_not_modified(X):
    D = cdist(X, X)
    S = stored(D, 9)
    for given, metric in ((X, "euclidean"), (X, "cosine"), (D, "precomputed")):
        before = given.copy()
        NeighborGraph.build(given, 5, metric=metric)
        np.testing.assert_array_equal(given, before)
    before = S.copy()
    NeighborGraph.build(S, 5, metric="precomputed")
    np.testing.assert_array_equal(S.toarray(), before.toarray())


def test_read_only_input_works(X):
    X.setflags(write=False)
    D = cdist(X, X)
    D.setflags(write=False)
    S = stored(D, 9)
    for array in (S.data, S.indices, S.indptr):
        array.setflags(write=False)
    expected = NeighborGraph.build(X, 5)
    for given in (D, S):
        graph = NeighborGraph.build(given, 5, metric="precomputed")
        np.testing.assert_array_equal(graph.indices, expected.indices)


def test_pickled_and_unpickled(X, rng):
    graph = NeighborGraph.build(X, 5)
    copy = pickle.loads(pickle.dumps(graph))
    assert edges_of(copy) == edges_of(graph)
    new = rng.normal(size=(4, 4))
    assert edges_of(copy.query(new)[1]) == edges_of(graph.query(new)[1])


# --- the matrix, components --------------------------------------------------------------------


def test_matrix_of_distances_or_weights(X):
    graph = NeighborGraph.build(X, 5)
    np.testing.assert_array_equal(graph.matrix().toarray(), np.nan_to_num(dense(graph)))
    ones = graph.matrix(np.ones(len(graph.indices)))
    np.testing.assert_array_equal(ones.sum(axis=1), 5)


def test_components_follow_edges_either_way():
    X = np.array([0.0, 1.0, 2.5, 100.0, 101.0, 102.5])[:, None]
    count, labels = NeighborGraph.build(X, 1).components()
    assert count == 2
    np.testing.assert_array_equal(labels == labels[0], [True] * 3 + [False] * 3)
    assert NeighborGraph.build(X, 3).components()[0] == 1


@pytest.mark.parametrize("n_features", [3, 20])
def test_threads_do_not_change_the_result(n_features, rng):
    X = rng.normal(size=(200, n_features))
    one, two, most = (NeighborGraph.build(X, 6, n_jobs=n_jobs) for n_jobs in (1, 2, -2))
    assert edges_of(one) == edges_of(two) == edges_of(most)


def test_matrices_do_not_share_memory_with_the_graph():
    """scipy sorts the indices of its matrices in place."""
    graph = NeighborGraph.build(np.random.default_rng(0).normal(size=(40, 3)), 5)
    before = graph.indices.copy(), graph.distances.copy(), graph.neighbor_radius.copy()
    graph.matrix().sort_indices()
    for kept, now in zip(
        before, (graph.indices, graph.distances, graph.neighbor_radius), strict=True
    ):
        assert np.array_equal(kept, now)


def test_ties_for_the_last_place_go_to_the_lower_index_in_both_directions():
    grid = np.stack(np.meshgrid(np.arange(7), np.arange(7)), -1).reshape(-1, 2).astype(float)
    graph = NeighborGraph.build(grid, 5)
    own, back = graph.query(grid)
    assert abs(own.matrix() - graph.matrix()).max() == 0
    assert (back.matrix(np.ones(len(back.indices))) != graph.matrix(np.ones(245)).T).nnz == 0


def test_the_default_takes_what_a_sparse_graph_stores():
    X = np.random.default_rng(0).normal(size=(30, 3))
    stored = NeighborGraph.build(X, 4).matrix()
    assert NeighborGraph.build(stored, metric="precomputed").k == 4


def test_repr_is_short_and_names_survive():
    import pandas as pd

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])
    graph = NeighborGraph.build(frame, 3)
    assert repr(graph) == "NeighborGraph(20 points among 20, k=3, metric='euclidean', 60 edges)"
    assert list(graph.feature_names) == ["a", "b"]


@pytest.mark.parametrize("rule", [{"n_neighbors": 50}, {"radius": 100.0}])
def test_graphs_that_do_not_fit_into_memory_are_rejected_early(X, rule, free_memory):
    free_memory(100_000)
    name, value = next(iter(rule.items()))
    with pytest.raises(MemoryError, match=f"60 points with {name}={value} needs about"):
        NeighborGraph.build(X, **rule)
    NeighborGraph.build(X, 5)
    NeighborGraph.build(X, radius=0.1)


def test_components_of_large_graphs_are_those_of_small_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 50 * rng.integers(0, 4, (300, 1))
    graph = NeighborGraph.build(X, 2)
    count, labels = graph.components()
    assert count > 4
    found, same = graph.components(compile_above=0)
    assert found == count
    np.testing.assert_array_equal(same, labels)
    assert same.dtype == labels.dtype
