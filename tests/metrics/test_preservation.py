import numpy as np
import pandas
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.manifold import trustworthiness as reference
from zadu.measures import trustworthiness_continuity

from manifoldry import PCA, NeighborGraph
from manifoldry.metrics import continuity, neighbor_preservation, trustworthiness
from manifoldry.metrics.preservation import ranks_of
from manifoldry.neighbors.base import smallest_entries

METRICS = [trustworthiness, continuity, neighbor_preservation]


@pytest.mark.parametrize("k", [1, 5, 40, 74])
def test_trustworthiness_is_scikit_learns(data, k):
    X, Y = data
    value = trustworthiness(X, Y, n_neighbors=k)
    assert value == pytest.approx(reference(X, Y, n_neighbors=k), abs=1e-12)
    assert value.exact


@pytest.mark.parametrize("k", [3, 20])
def test_both_are_those_of_zadu(data, k):
    X, Y = data
    theirs = trustworthiness_continuity.measure(X, Y, k)
    assert trustworthiness(X, Y, n_neighbors=k) == pytest.approx(theirs["trustworthiness"])
    assert continuity(X, Y, n_neighbors=k) == pytest.approx(theirs["continuity"])


def test_preservation_counts_common_neighbors(data, ranks):
    X, Y = data
    common = ((ranks(X) <= 7) & (ranks(Y) <= 7)).sum(axis=1) - 1  # a point itself has rank 0
    values = neighbor_preservation(X, Y, n_neighbors=7, per_point=True)
    np.testing.assert_allclose(values, common / 7)


@pytest.mark.parametrize("metric", METRICS)
def test_per_point_averages_to_the_mean(data, metric):
    X, Y = data
    values = metric(X, Y, per_point=True)
    assert values.shape == (150,)
    assert values.mean() == pytest.approx(metric(X, Y))


@pytest.mark.parametrize("metric", METRICS)
def test_perfect_embedding(data, metric):
    X, _ = data
    assert metric(X, 3 * X + 1) == 1


@pytest.mark.parametrize("metric", METRICS)
def test_intervals_of_samples_cover_the_exact_value(data, metric):
    X, Y = data
    exact = metric(X, Y)
    samples = [metric(X, Y, sample=60, random_state=seed) for seed in range(60)]
    covered = np.mean([sample.low <= exact <= sample.high for sample in samples])
    assert 0.85 <= covered <= 1
    assert np.std(samples) > 0


def test_large_data_are_sampled_with_an_interval():
    X = np.random.default_rng(0).normal(size=(10_001, 3))
    value = trustworthiness(X, X[:, :2])
    assert value.low < value < value.high < value.low + 0.02
    assert value == trustworthiness(X, X[:, :2])  # the seed is fixed


def test_metrics_and_precomputed_distances_agree(data):
    X, Y = data
    D = cdist(X, X, "cityblock")
    assert trustworthiness(X, Y, metric="manhattan") == pytest.approx(
        trustworthiness(D, Y, metric="precomputed")
    )
    assert trustworthiness(D, Y, metric="precomputed") == pytest.approx(
        reference(D, Y, metric="precomputed")
    )


def test_sparse_data_and_frames_are_read(data):
    X, Y = data
    expected = trustworthiness(X, Y)
    assert trustworthiness(sparse.csr_array(X), Y) == pytest.approx(expected)
    assert trustworthiness(pandas.DataFrame(X), pandas.DataFrame(Y)) == expected


def test_many_features_and_few_give_the_same_ranks():
    # Beyond twelve features squares come from products, here of points far from the origin.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    padded = np.hstack([X, np.zeros((100, 20))]) + 1e6
    Y = X[:, :2]
    assert trustworthiness(padded, Y) == pytest.approx(trustworthiness(X, Y))


def test_scale_and_offset_do_not_matter(data):
    X, Y = data
    for moved in (X * 1e150, X * 1e-150, X + 1e8):
        assert trustworthiness(moved, Y) == pytest.approx(trustworthiness(X, Y), abs=1e-6)


def test_ties_are_broken_by_position_on_both_sides():
    grid = np.stack(np.meshgrid(range(6), range(6)), axis=-1).reshape(-1, 2).astype(float)
    for metric in METRICS:
        assert metric(grid, 2 * grid) == 1
        assert metric(np.vstack([grid, grid]), np.vstack([grid, grid])) == 1


def test_whole_numbers_have_exact_ties():
    rng = np.random.default_rng(0)
    for features in (8, 40):
        X = rng.integers(0, 2, size=(60, features)).astype(float)
        for moved in (2 * X + 0.1, X - 7, np.asfortranarray(X)):
            assert neighbor_preservation(X, moved) == 1
        assert trustworthiness(X + 0.1, X[:, :3]) == trustworthiness(X, X[:, :3])


def test_components_of_a_graph_have_no_ranks():
    Z = np.vstack([np.random.default_rng(0).normal(size=(20, 2)) + far for far in (0, 100)])
    with pytest.raises(ValueError, match="several components"):
        trustworthiness(NeighborGraph.build(Z, 4), Z)


def test_along_a_graph():
    X = np.linspace(0, 1.9 * np.pi, 60)
    ring = np.column_stack([np.cos(X), np.sin(X)])
    graph = NeighborGraph.build(ring, 2)
    assert trustworthiness(graph, X) > 0.998  # both neighbors of a point are equally far
    assert trustworthiness(ring, X, n_neighbors=20) < 1  # its ends are close in the plane


def test_fitted_estimators_and_points_that_were_not_embedded(data):
    X, _ = data
    model = PCA(2).fit(X)
    assert trustworthiness(X, model) == trustworthiness(X, model.embedding_)
    Y = model.embedding_.copy()
    Y[[3, 70]] = np.nan
    rest = np.delete(np.arange(150), [3, 70])
    values = trustworthiness(X, Y, per_point=True)
    assert np.isnan(values[[3, 70]]).all()
    np.testing.assert_allclose(values[rest], trustworthiness(X[rest], Y[rest], per_point=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_neighbors": 75}, "n_neighbors=75 must be less than 75"),
        ({"n_neighbors": 0}, "at least 1"),
        ({"sample": 1}, "at least 2"),
        ({"sample": "some"}, "'auto', 'all'"),
        ({"embedding": np.zeros((149, 2))}, "150 rows and the embedding has 149"),
        ({"embedding": np.full((150, 2), np.nan)}, "0 of 150 points are embedded"),
        ({"embedding": "X_umap"}, "obsm"),
        ({"embedding": np.where(np.eye(150, 2), np.nan, 1.0)}, "some coordinates of 2 rows"),
        ({"X": sparse.eye_array(150, format="csr"), "metric": "precomputed"}, "sparse matrix of"),
        ({"X": np.triu(np.ones((150, 150)), 1), "metric": "precomputed"}, "symmetric"),
        ({"X": np.ones((150, 150)), "metric": "precomputed"}, "zero diagonal"),
        ({"X": np.full((150, 6), np.inf)}, "infinity"),
        ({"X": np.zeros((0, 6))}, "0 sample"),
        ({"X": np.zeros((1, 6)), "embedding": np.zeros((1, 2))}, "minimum of 3"),
        ({"metric": "precomputed"}, "square"),
        ({"embedding": PCA(2)}, "call fit first"),
    ],
)
def test_bad_input_is_named(data, change, message):
    X, Y = data
    arguments = {"X": X, "embedding": Y} | change
    with pytest.raises((ValueError, TypeError), match=message):
        trustworthiness(**arguments)


def test_constant_data_give_an_answer_by_position():
    assert 0 <= trustworthiness(np.zeros((20, 3)), np.arange(20.0)) <= 1


def test_ranks_by_counting_and_by_sorting_are_those_of_a_stable_sort():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 40, size=(30, 200)).astype(float)  # many ties
    chosen = np.argsort(rng.random(keys.shape), axis=1)[:, :6]
    ranks = np.argsort(np.argsort(keys, axis=1, kind="stable"), axis=1) + 1
    expected = np.take_along_axis(ranks, chosen, axis=1)
    np.testing.assert_array_equal(ranks_of(keys, chosen), expected)
    np.testing.assert_array_equal(ranks_of(keys, chosen, count_up_to=5), expected)


@pytest.mark.parametrize("levels", [5, 10_000])  # many ties, and few
def test_smallest_entries_are_the_first_of_a_stable_sort(levels):
    D = np.random.default_rng(0).integers(0, levels, size=(20, 403)).astype(float)
    D[0] = np.inf
    indices, distances = smallest_entries(D, 4)
    expected = np.argsort(D, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(distances, np.take_along_axis(D, expected, axis=1))
