"""Neighbor graphs and affinities on a device: equal to those of the CPU up to ties."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry import NeighborGraph, using_device
from manifoldry.affinity import Entropic, Gaussian, SelfTuning
from manifoldry.device.emulated import COPIES, EmulatedDevice
from manifoldry.device.primitives import NOBODY
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.neighbors.approximate import ApproximateIndex
from manifoldry.neighbors.brute import BruteIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.on_device import DeviceSearch, device_search, frame_of


def cloud(n=900, m=20, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def clusters(n=900, m=20, distance=100.0):
    rng = np.random.default_rng(1)
    return distance * rng.normal(size=(12, m))[rng.integers(12, size=n)] + rng.normal(size=(n, m))


DATA = {
    "cloud": cloud(),
    "single": cloud().astype(np.float32),
    "17 features": cloud(m=17).astype(np.float32),
    "large": cloud() * 1e40,
    "small": cloud() * 1e-40,
    "far from the origin": cloud() + 1e7,
    "single far from the origin": (cloud() + 1e3).astype(np.float32),
    "clusters": clusters().astype(np.float32),
    "distant clusters": clusters(distance=1e6),
    "an outlier": np.vstack([cloud(), np.full((1, 20), 1e6)]),
    "copies": np.repeat(cloud(30), 30, axis=0),
    "ties": np.random.default_rng(2).integers(0, 4, size=(900, 3)).astype(float),
}


def assert_same(found, expected):
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-11, atol=0)
    differ = found.indices != expected.indices  # where distances are tied up to rounding
    assert differ.mean() < 1e-3
    order = np.lexsort((found.indices, found.rows))
    same = np.lexsort((expected.indices, expected.rows))
    assert (found.indices[order] == expected.indices[same]).mean() > 1 - 1e-3


@pytest.mark.parametrize("k", [1, 15, 90])
@pytest.mark.parametrize("name", DATA)
def test_graphs_equal_those_of_the_cpu(device, name, k):
    expected = NeighborGraph.build(DATA[name], k, search="exact")
    with using_device(device):
        found = NeighborGraph.build(DATA[name], k)
    assert found.search == f"all pairs on {device.description}"
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["cloud", "single", "clusters", "copies"])
def test_cosine_graphs_equal_those_of_the_cpu(device, name):
    expected = NeighborGraph.build(DATA[name], 15, metric="cosine")
    with using_device(device):
        found = NeighborGraph.build(DATA[name], 15, metric="cosine")
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-9, atol=1e-30)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_radius_graphs_equal_those_of_the_cpu(device, metric):
    radius = 5.0 if metric == "euclidean" else 0.6
    expected = NeighborGraph.build(DATA["cloud"], radius=radius, metric=metric)
    with using_device(device):
        found = NeighborGraph.build(DATA["cloud"], radius=radius, metric=metric)
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["cloud", "single", "copies"])
def test_new_points_have_the_neighbors_that_the_cpu_finds(device, name):
    graph = NeighborGraph.build(DATA[name], 15, search="exact")
    queries = np.vstack([cloud(40, seed=3), DATA[name][:40]]).astype(DATA[name].dtype)
    expected = graph.query(queries)
    with using_device(device):
        found = NeighborGraph.build(DATA[name], 15).query(queries)
    for a, b in zip(found, expected, strict=True):
        assert_same(a, b)


def uncertain_rows(device, X):
    """Rows that the fast products leave uncertain, and those that the accurate ones leave."""
    search, own = DeviceSearch(device, X, frame_of(X)), np.arange(len(X), dtype=np.int32)
    once = search._nearest(X, 15, 23, device.array(own), None)
    return len(once.uncertain), len(search.nearest(X, 15, own).uncertain)


@pytest.mark.parametrize("X", [cloud(), cloud() + 1e7, clusters(distance=10.0)])
def test_fast_products_leave_few_rows_uncertain(in_use, X):
    fast, accurate = uncertain_rows(in_use, X)
    assert fast < 0.1 * len(X)
    assert accurate == 0


def test_distant_clusters_need_accurate_products(in_use):
    """Their distances are smaller than what rounding may move points 100 times as far away."""
    fast, accurate = uncertain_rows(in_use, clusters(distance=100.0))
    assert fast > 0
    assert accurate == 0


@pytest.mark.parametrize("distance", [0.0, 10.0, 1e3, 1e5])
def test_what_is_certain_is_right(in_use, distance):
    """Also for clusters so distant that rounding moves points past others."""
    X = clusters(600, 6, distance)
    search, own = device_search(X, X, lambda: frame_of(X)), np.arange(600, dtype=np.int32)
    found = search._nearest(X, 10, 14, in_use.array(own), None)
    expected = NeighborGraph.build(X, 10, search="exact").distances.reshape(-1, 10)
    certain = np.setdiff1d(own, found.uncertain)
    distances = in_use.host(found.distances)[certain]
    np.testing.assert_allclose(distances, expected[certain], rtol=1e-11)


def test_points_are_moved_by_what_is_said(in_use):
    X = clusters().astype(np.float32)
    frame = frame_of(X)
    points = DeviceSearch(in_use, X, frame).points(X, accurate=False)
    rows, moved, squares = map(in_use.host, points)
    exact = (X - frame.origin) / frame.unit
    np.testing.assert_allclose(moved, np.linalg.norm(exact - rows, axis=1), rtol=1e-9)
    np.testing.assert_allclose(squares, (rows.astype(float) ** 2).sum(axis=1), rtol=1e-9)
    mantissa, _ = np.frexp(rows)
    assert (mantissa * 2**11 % 1 == 0).all()
    assert (moved <= 2.0**-11 * np.linalg.norm(exact, axis=1)).all()


def test_merged_parts_are_the_nearest(in_use):
    X = (np.random.default_rng(4).integers(-40, 40, size=(1100, 7))).astype(np.float32)
    indices = in_use.array(np.full((1100, 9), NOBODY, dtype=np.int32), keep=False)
    squares = in_use.array(np.full((1100, 9), np.inf, dtype=np.float32), keep=False)
    rows = np.array([3, 1099, 500, 0], dtype=np.int32)
    for first, stop in ((0, 600), (600, 603), (603, 1100)):
        shift = X[first]  # any origin
        parts = in_use.array(X[rows] - shift), in_use.array(X[first:stop] - shift)
        in_use.merge_nearest(*parts, first, in_use.array(rows), (indices, squares))
    D = cdist(X[rows], X, "sqeuclidean")
    D[np.arange(4), rows] = np.inf
    np.testing.assert_array_equal(in_use.host(squares)[rows], np.sort(D, axis=1)[:, :9])
    near = in_use.host(indices)
    np.testing.assert_array_equal(np.take_along_axis(D, near[rows], 1), np.sort(D, axis=1)[:, :9])
    assert (np.delete(near, rows, axis=0) == NOBODY).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_approximate_graphs_find_nearly_all_neighbors(device, metric):
    rng = np.random.default_rng(0)
    X = np.sin(rng.normal(size=(3000, 5)) @ rng.normal(size=(5, 30))).astype(np.float32)
    expected = NeighborGraph.build(X, 15, metric=metric, search="exact")
    with using_device(device):
        found = NeighborGraph.build(X, 15, metric=metric, search="approximate")
    assert found.index.reason == f"nearby cells on {device.description}: as requested"
    near = zip(found.indices.reshape(-1, 15), expected.indices.reshape(-1, 15), strict=True)
    recall = np.mean([len(np.intersect1d(a, b)) / 15 for a, b in near])
    assert recall > 0.97
    assert abs(found.recall - recall) < 0.02
    assert (found.indices != found.rows).all()
    assert (np.diff(found.distances.reshape(-1, 15), axis=1) >= 0).all()


def test_approximate_neighbors_in_tight_distant_clusters(device):
    """Far from each other, they are distinguished since products are taken around each cell."""
    X = clusters(3000, 10, 1e3)
    with using_device(device):
        found = NeighborGraph.build(X, 10, search="approximate")
    assert found.recall > 0.97


def test_approximate_search_has_the_same_bits(device):
    with using_device(device):
        a, b = (NeighborGraph.build(cloud(2000, 6), 10, search="approximate") for _ in range(2))
    assert a.indices.tobytes() == b.indices.tobytes()
    assert a.distances.tobytes() == b.distances.tobytes()


def test_more_work_is_approximate(in_use):
    exact, approximate = (choose_index(cloud(), device_work=work) for work in (1e8, 1e7))
    assert type(exact) is BruteIndex
    assert isinstance(approximate, ApproximateIndex)
    assert approximate.reason.endswith("exact takes 2e+07 products")


def test_other_metrics_run_on_the_cpu_which_is_said_once(in_use):
    with pytest.warns(ManifoldryWarning, match="neighbor search runs on the CPU"):
        NeighborGraph.build(cloud(50), 5, metric="manhattan")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NeighborGraph.build(cloud(50), 5, metric="manhattan")


def test_a_graph_is_copied_once_and_used_without_copies():
    X = cloud(2000)
    with using_device(EmulatedDevice()):
        graph = NeighborGraph.build(X, 30)
        COPIES.clear()
        Entropic(10).fit(graph)
        assert COPIES["to device"] == 0
        assert COPIES["to host"] == 1


@pytest.mark.parametrize(
    "affinity",
    [
        Entropic(20),
        Entropic(60),
        Entropic(20, symmetrize="or"),
        Entropic(20, symmetrize="and"),
        Gaussian(),
        SelfTuning(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["cloud", "copies", "ties"])
def test_weights_equal_those_of_the_cpu(device, name, affinity):
    graph = NeighborGraph.build(DATA[name], 60, search="exact")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = affinity.fit(graph).matrix(graph)
        with using_device(device):
            found = affinity.fit(graph).matrix(graph)
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data, rtol=1e-9)
    np.testing.assert_array_equal((found - found.T).data, 0)
