"""Approximate graphs: recall, independence of threads, unusual data, use by estimators."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits

from manifoldry import LaplacianEigenmaps, NeighborGraph
from manifoldry.exceptions import ConvergenceWarning
from manifoldry.neighbors.approximate import ApproximateIndex
from manifoldry.neighbors.cells import Cells
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.products import single_precision


def bent_cloud(n, n_features=40, seed=0):
    """A curved five-dimensional manifold in many dimensions, with a little noise."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 5))
    X = np.sin(Z @ rng.normal(size=(5, n_features))) + 0.05 * rng.normal(size=(n, n_features))
    return X.astype(np.float32)


def recall(graph, exact):
    k = exact.k
    pairs = zip(graph.indices.reshape(-1, k), exact.indices.reshape(-1, k), strict=True)
    return np.mean([len(np.intersect1d(a, b)) / k for a, b in pairs])


@pytest.fixture(name="X", scope="module")
def data():
    return bent_cloud(4000)


@pytest.fixture(name="graph", scope="module")
def approximate(X):
    return NeighborGraph.build(X, 15, search="approximate")


@pytest.mark.parametrize(
    ("data", "k"),
    [
        (bent_cloud(4000), 15),
        (bent_cloud(3000), 40),
        (load_digits().data, 10),
        (np.random.default_rng(0).normal(size=(3000, 15)), 15),  # no projection helps here
    ],
    ids=["bent", "many neighbors", "digits", "cloud"],
)
def test_nearly_all_neighbors_are_found_and_the_recall_is_accurate(data, k):
    graph = NeighborGraph.build(data, k, search="approximate")
    exact = NeighborGraph.build(data, k, search="exact")
    true = recall(graph, exact)
    assert true > 0.97
    assert abs(graph.recall - true) < 0.02
    assert exact.recall == 1.0


def test_rows_are_sorted_and_distances_true(X, graph):
    distances = graph.distances.reshape(-1, 15)
    assert (np.diff(distances, axis=1) >= 0).all()
    i = np.repeat(np.arange(len(X)), 15)
    expected = np.linalg.norm(X[i].astype(float) - X[graph.indices].astype(float), axis=1)
    np.testing.assert_allclose(graph.distances, expected, rtol=1e-12)
    assert (graph.indices != i).all()


def test_threads_do_not_change_a_bit(X, graph, monkeypatch):
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        again = NeighborGraph.build(X, 15, search="approximate")
        assert np.array_equal(again.indices, graph.indices)
        assert np.array_equal(again.distances, graph.distances)


def build(X):
    return NeighborGraph.build(X, 15, search="approximate").indices


def test_concurrent_builds_from_threads_and_workers(X, graph):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(build, [X] * 4))
    found += Parallel(n_jobs=2)(delayed(build)(X) for _ in range(2))
    assert all(np.array_equal(indices, graph.indices) for indices in found)


def test_new_points_are_compared_with_all(X, graph):
    new = X[:20] + np.float32(0.01)
    own, _ = graph.query(new)
    exact, _ = NeighborGraph.build(X, 15, search="exact").query(new)
    assert np.array_equal(own.indices, exact.indices)
    np.testing.assert_allclose(own.distances, exact.distances, rtol=1e-14)


@pytest.mark.parametrize("n", [3, 6, 20, 40])
def test_few_points(n):
    X = bent_cloud(n)
    graph = NeighborGraph.build(X, n - 1, search="approximate")
    exact = NeighborGraph.build(X, n - 1, search="exact")
    assert np.array_equal(graph.indices, exact.indices)


def test_points_at_one_place():
    X = np.vstack([np.ones((300, 20)), bent_cloud(100, 20)])
    graph = NeighborGraph.build(X, 10, search="approximate")
    assert not graph.distances[: 300 * 10].any()
    assert graph.recall >= 0.98


def test_many_copies_of_a_point_are_not_compared_with_each_other():
    X = np.vstack([bent_cloud(1600, 20), np.ones((2000, 20), dtype=np.float32)])
    cells = Cells.of(X)
    assert np.diff(cells.starts).min() > 0
    assert np.diff(cells.starts).max() <= 8 * 60  # eight times the mean
    graph = NeighborGraph.build(X, 10, search="approximate")
    assert not graph.distances[-2000 * 10 :].any()
    assert graph.recall > 0.97


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(X, graph, scale):
    scaled = NeighborGraph.build(X.astype(float) * scale, 15, search="approximate")
    assert np.array_equal(scaled.indices, graph.indices)


def test_outliers_do_not_matter():
    """The mean is so far from all other points that their differences are lost in rounding."""
    X = np.vstack([bent_cloud(1000, 20), np.full((1, 20), 1e12)])
    graph = NeighborGraph.build(X, 10, search="approximate")
    assert recall(graph, NeighborGraph.build(X, 10, search="exact")) > 0.97
    assert graph.recall < 1  # not by comparing all pairs


def test_an_outlier_does_not_spoil_the_other_points_of_its_cell():
    X = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    X[8] = 1e12
    one_cell = Cells(np.zeros((1, 3), np.float32), X, np.arange(9), np.array([0, 9]))
    D = np.linalg.norm(X[:8, None] - X[:8], axis=2) + np.diag(np.full(8, np.inf))
    assert np.array_equal(one_cell.nearest(1, 1)[:8, 0], D.argmin(axis=1))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("shift", [1e9, 1e30])
def test_search_is_exact_if_single_precision_is_not_enough(shift, metric):
    """Two clusters at a distance of 10⁸ times their size, or one outlier of 10³⁰."""
    X = bent_cloud(600, 20).astype(float)
    X[300 if shift == 1e9 else 599 :] += shift
    if metric == "cosine":
        X = np.column_stack([X / shift, np.ones(len(X))])  # nearly parallel rows
    with pytest.warns(ConvergenceWarning, match=r"all pairs are compared, which takes \de\+06"):
        graph = NeighborGraph.build(X, 10, metric=metric, search="approximate")
    exact = NeighborGraph.build(X, 10, metric=metric, search="exact")
    assert np.array_equal(graph.indices, exact.indices)
    assert graph.recall == 1
    assert "then all pairs, since the recall was 0." in graph.search


def test_a_useless_graph_is_refused_if_all_pairs_take_too_long():
    X = bent_cloud(600, 20).astype(float)
    X[300:] += 1e9
    with pytest.raises(ValueError, match=r"found \d+% of .*remove outliers.*takes 7e\+06 products"):
        ApproximateIndex(X, "", max_work=7e6).reference_neighbors(X, 10)


def test_limited_work_lowers_the_recall_and_is_reported(X):
    with pytest.warns(ConvergenceWarning, match=r"approximate search found .*search='exact'"):
        found = ApproximateIndex(X, "", max_work=4e7).reference_neighbors(X, 15)
    assert 0.2 < found.recall < 0.9


def test_distant_clusters_in_single_precision():
    """Products in coordinates of all clusters would cancel: their rounding exceeds the squares."""
    X = np.concatenate([bent_cloud(500, 20) + 1e4 * shift for shift in range(4)])
    graph = NeighborGraph.build(X, 10, search="approximate")
    assert recall(graph, NeighborGraph.build(X, 10, search="exact")) > 0.97


@pytest.mark.parametrize("target", [0.8, 0.95])
def test_cells_reach_the_recall_for_which_they_were_counted(X, target):
    exact = NeighborGraph.build(X, 15, search="exact").indices.reshape(-1, 15)
    centered = X - X.mean(axis=0)
    cells, sample = Cells.of(centered), np.arange(0, len(X), 10)
    n_searched = cells.cells_needed(sample, exact[sample], target, np.inf)
    assert cells.cells_needed(sample, exact[sample], target, max_pairs=1.0) == 1
    assert 1 < n_searched < len(cells.centers) / 2
    found = cells.order[cells.nearest(15, n_searched)]
    same = [len(np.intersect1d(a, b)) for a, b in zip(found, exact[cells.order], strict=True)]
    assert abs(np.mean(same) / 15 - target) < 0.03


def test_cosine(X):
    graph = NeighborGraph.build(X, 15, metric="cosine", search="approximate")
    exact = NeighborGraph.build(X, 15, metric="cosine", search="exact")
    assert recall(graph, exact) > 0.97


def test_reason_of_the_choice():
    X = bent_cloud(200)
    assert "blocked matrix products" in NeighborGraph.build(X, 5).index.reason
    index = choose_index(X, exact_work=1e5)
    assert index.reason == "nearby cells: 40 features, exact takes 2e+06 products"
    assert "as requested" in NeighborGraph.build(X, 5, search="approximate").index.reason
    with pytest.raises(ValueError, match="search='fast' must be one of 'auto', 'exact'"):
        NeighborGraph.build(X, 5, search="fast")


def test_the_map_is_that_of_the_exact_graph(X, graph):
    exact = NeighborGraph.build(X, 15, search="exact")
    ours, theirs = (LaplacianEigenmaps(3).fit(g).embedding_ for g in (graph, exact))
    assert subspace_angles(ours, theirs).max() < 0.1


@pytest.mark.parametrize(("size", "count"), [(8, 25), (15, 40), (5, 60)])
def test_clusters_no_larger_than_the_neighborhoods(size, count):
    """No point is its own neighbor or listed twice if a cluster has fewer than k points."""
    rng = np.random.default_rng(0)
    X = np.repeat(100 * rng.normal(size=(count, 40)), size, axis=0)
    X = X + rng.normal(size=X.shape)
    graph = NeighborGraph.build(X, 15, search="approximate")
    rows = graph.indices.reshape(-1, 15)
    assert all(len(set(row)) == 15 and i not in row for i, row in enumerate(rows))
    assert recall(graph, NeighborGraph.build(X, 15, search="exact")) > 0.95


@pytest.mark.filterwarnings("ignore:approximate search found")
def test_points_of_cells_with_too_few_points_are_compared_with_all():
    rng = np.random.default_rng(0)
    X = np.repeat(100 * rng.normal(size=(60, 20)), 5, axis=0) + rng.normal(size=(300, 20))
    indices, distances, *_ = ApproximateIndex(X, "", max_work=1).reference_neighbors(X, 30)
    exact = NeighborGraph.build(X, 30, search="exact").indices.reshape(-1, 30)
    assert (indices == exact).all(axis=1).mean() > 0.5
    assert all(len(set(row)) == 30 and i not in row for i, row in enumerate(indices))
    assert np.isfinite(distances).all()


def test_a_projection_that_loses_neighbors_is_not_used():
    """One column in another unit, or one outlier, has nearly all of the variance."""
    X = bent_cloud(4000)
    column = np.column_stack([X, 100 * np.random.default_rng(0).normal(size=len(X))])
    outlier = X.copy()
    outlier[7] *= 300
    for data in (column, outlier):
        assert NeighborGraph.build(data, 15, search="approximate").recall > 0.97


def test_a_search_in_a_projection_makes_no_copy_of_the_data(monkeypatch):
    converted = []

    def record(frame, X):
        converted.append(len(X))
        return single_precision(frame, X)

    for module in ("brute", "approximate"):
        monkeypatch.setattr(f"manifoldry.neighbors.{module}.single_precision", record)
    X = bent_cloud(1200, 20)
    in_a_subspace = X @ np.random.default_rng(0).normal(size=(20, 100)).astype(np.float32)
    assert NeighborGraph.build(in_a_subspace, 15, search="approximate").recall > 0.97
    assert converted == [400]  # the sample, whose neighbors are known
    NeighborGraph.build(X, 15, search="approximate")
    assert max(converted) == len(X)  # of data that are not projected


def test_no_second_copy_of_the_data_is_kept():
    X = bent_cloud(500)
    graph = NeighborGraph.build(X, 15, search="approximate")
    assert "_single" not in vars(graph.index)
    graph.query(X[:3] + np.float32(0.01))
    index = pickle.loads(pickle.dumps(graph.index))
    assert set(vars(index)) == {field.name for field in fields(index)}
    assert np.array_equal(index.nearest(X[:3], 4)[0], graph.index.nearest(X[:3], 4)[0])


def test_a_search_changes_nothing_that_another_thread_uses(monkeypatch):
    seen, candidates = [], ApproximateIndex._candidates

    def record(self, *arguments):
        seen.append("_single" in vars(self))
        return candidates(self, *arguments)

    monkeypatch.setattr(ApproximateIndex, "_candidates", record)
    X = bent_cloud(500)
    NeighborGraph.build(X, 15, search="approximate")
    assert seen == [False]


def test_approximate_search_of_few_features_and_of_unsupported_data():
    X = bent_cloud(1000, 3)
    graph = NeighborGraph.build(X, 10, search="approximate")
    assert recall(graph, NeighborGraph.build(X, 10)) > 0.97
    for data, options in ((X, {"metric": "manhattan"}), (sparse.csr_array(X), {})):
        with pytest.raises(ValueError, match="search='approximate' requires dense data and metric"):
            NeighborGraph.build(data, 10, search="approximate", **options)
