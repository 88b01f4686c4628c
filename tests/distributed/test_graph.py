"""Neighbor graphs of distributed data, against those of data in memory."""

import json
import os
import re
import shutil
from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from manifoldry import NeighborGraph
from manifoldry.distributed import Rows
from manifoldry.exceptions import ConvergenceWarning
from manifoldry.neighbors import DistributedGraph
from manifoldry.neighbors.distributed_cells import PartitionedRows, PartitionOptions, grouped
from manifoldry.neighbors.distributed_moves import Moving, moved, parts_present
from manifoldry.neighbors.distributed_search import NearbySearch, least_distances


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def clusters(n, d=30, seed=0):
    rng = np.random.default_rng(seed)
    centers = 3 * rng.normal(size=(20, d))
    scales = np.exp(-np.arange(d) / 10)
    return (centers[rng.integers(20, size=n)] + scales * rng.normal(size=(n, d))).astype("f4")


def roll(n, d=30, seed=0):
    rng = np.random.default_rng(seed)
    t = np.pi * rng.uniform(1.5, 4.5, n)
    axes = np.linalg.qr(rng.normal(size=(d, 3)))[0]
    surface = np.column_stack([t * np.cos(t), 20 * rng.uniform(size=n), t * np.sin(t)])
    return surface @ axes.T + 0.05 * rng.normal(size=(n, d))


def chunked(X, *sizes):
    return da.from_array(X, chunks=(sizes or (len(X),), -1))


def arrays(graph):
    return dask.compute(*graph.neighbors())


def exact_distances(X, k, metric="euclidean"):
    graph = NeighborGraph.build(X, k, metric=metric, search="exact")
    return graph.distances.reshape(len(X), k)


def assert_consistent(graph, X, k, atol=0):
    """Neighbors are as far as they are said to be, sorted, distinct, and never the row itself."""
    indices, distances = arrays(graph)
    assert indices.shape == distances.shape == (len(X), k)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (indices != np.arange(len(X))[:, None]).all()
    assert (np.diff(np.sort(indices, axis=1), axis=1) > 0).all()
    if graph.metric == "euclidean":
        steps = X[indices].astype("f8") - X[:, None]
        unit = np.abs(steps).max(axis=2, keepdims=True) + (steps == 0).all(axis=2, keepdims=True)
        lengths = np.linalg.norm(steps / unit, axis=2) * unit[..., 0]  # squares are in range
        np.testing.assert_allclose(distances, lengths, rtol=1e-12, atol=atol)
    return indices, distances


SETS = {
    "plane": cloud(600, 2),
    "features": cloud(600, 20),
    "single": cloud(600, 20).astype("f4"),
    "copies": np.repeat(cloud(40, 5), 15, axis=0),
    "far": 1e8 + 1e-3 * cloud(600, 3),
    "farther": 1e8 + 1e-3 * cloud(600, 20),
    "large": 1e200 * cloud(600, 4),
    "small": 1e-200 * cloud(600, 20),
    "outlier": np.vstack([cloud(599, 20), np.full((1, 20), 1e12)]),
}


@pytest.mark.parametrize("name", SETS)
def test_exact_as_in_memory(name):
    X = SETS[name]
    graph = DistributedGraph.build(chunked(X, 250, 0, 200, 150), 7, search="exact")
    assert len(graph.edges) == 3
    assert graph.recall == 1
    _, distances = assert_consistent(graph, X, 7)
    np.testing.assert_array_equal(distances, exact_distances(X, 7))


def test_rows_of_very_different_sizes():
    """In units of a part of tiny rows, squares of the others overflow."""
    X = np.vstack([5 + cloud(400, 14), 1e-180 * cloud(200, 14)])
    chunks = chunked(X, 200, 200, 200)
    assert_consistent(DistributedGraph.build(chunks, 7, search="exact"), X, 7)
    graph = DistributedGraph.build(chunks, 7, search="approximate")
    assert_consistent(graph, X, 7, atol=1e-170)  # squares underflow in units of all rows


def whole_numbers(seed=0):
    """Points of an integer grid, in random order: most distances occur several times."""
    rng = np.random.default_rng(seed)
    return rng.permutation(np.unique(rng.integers(0, 30, size=(1500, 2)), axis=0)).astype(float)


@pytest.mark.parametrize("sizes", [(729,), (29, 300, 400), (100,) * 7 + (29,)], ids=str)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_rows_at_the_same_distance(sizes, metric):
    """The first in the data are neighbors, whatever the chunks."""
    X = whole_numbers()[:729] + (metric == "cosine")
    graph = DistributedGraph.build(chunked(X, *sizes), 6, metric=metric, search="exact")
    expected = NeighborGraph.build(X, 6, metric=metric, search="exact")
    np.testing.assert_array_equal(arrays(graph)[0], expected.indices.reshape(-1, 6))


def test_candidates_at_the_same_distance():
    """If all cells are searched, the approximate search finds the first rows, too."""
    X = whole_numbers()[:729]
    few = PartitionOptions(rows_per_cell=250)
    rows = PartitionedRows.of(Rows.read(chunked(X, 229, 300, 200)), "euclidean", _rng(), few)
    searched = NearbySearch(target_recall=1.0)(rows, 6, "euclidean", _rng())
    assert searched.how == f"nearby cells, {rows.n_cells} of {rows.n_cells} per row"
    found, numbers = dask.compute(searched.found, rows.order.rows)
    indices = np.empty((729, 6), dtype=int)
    indices[np.concatenate(numbers)] = np.concatenate([part.numbers for part in found])
    expected = NeighborGraph.build(X, 6, search="exact")
    np.testing.assert_array_equal(indices, expected.indices.reshape(-1, 6))


def test_only_rows_that_may_be_near_are_compared():
    X, Y = cloud(300, 3), cloud(400, 3) + np.array([1.5, 0, 0])
    bounds = least_distances(X, Y)
    nearest = NearestNeighbors(n_neighbors=1).fit(Y).kneighbors(X)[0][:, 0]
    assert (bounds <= nearest).all()
    np.testing.assert_allclose(
        bounds, np.maximum(Y.min(axis=0) - X, X - Y.max(axis=0)).max(axis=1).clip(0)
    )
    assert least_distances(np.array([[1e308]]), np.array([[-1e308]])) == np.inf


def test_exact_indices():
    X = cloud(500, 6)
    indices, _ = arrays(DistributedGraph.build(chunked(X, 300, 200), 5))
    search = NearestNeighbors(n_neighbors=5).fit(X)
    np.testing.assert_array_equal(indices, search.kneighbors(return_distance=False))


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_cosine(search):
    X = cloud(700, 15) + 1
    graph = DistributedGraph.build(chunked(X, 300, 400), 6, metric="cosine", search=search)
    indices, distances = assert_consistent(graph, X, 6)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = 1 - (unit[indices] * unit[:, None]).sum(axis=2)
    np.testing.assert_allclose(distances, cosines, atol=1e-14)
    near = distances <= exact_distances(X, 6, "cosine")[:, -1:] * (1 + 1e-12)
    assert near.mean() >= (1 if search == "exact" else 0.97)


def test_cosine_of_zeros():
    X = cloud(400, 3)
    X[317] = 0
    with pytest.raises(ValueError, match=r"row 317 of X is all zeros.*metric='euclidean'"):
        DistributedGraph.build(chunked(X, 300, 100), metric="cosine")


@pytest.mark.parametrize(("make", "n_chunks"), [(clusters, 8), (roll, 5)])
def test_approximate(make, n_chunks):
    n, k = 20_000, 10
    X = make(n)
    sizes = [n // n_chunks] * n_chunks
    graph = DistributedGraph.build(chunked(X, *sizes), k, search="approximate")
    _, distances = assert_consistent(graph, X, k)
    # The recall of each row of a sample, whose mean is reported as that of 200 others.
    rows = np.random.default_rng(1).choice(n, 500, replace=False)
    truth = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors(X[rows].astype("f8"))[0]
    found = (distances[rows] <= truth[:, -1:] * (1 + 1e-6)).mean(axis=1)
    error = 4 * found.std() * np.sqrt(1 / 200 + 1 / 500) + 1e-3
    assert abs(found.mean() - graph.recall) <= error
    assert min(found.mean(), graph.recall) >= 0.97
    assert re.search(
        r"nearby cells, \d+ of \d+ per row: as requested; recall [01]\.\d+ on a", graph.search
    )
    sizes = graph.order.sizes
    assert len(sizes) == n_chunks
    assert sizes.max() <= 1.5 * sizes.mean()


def test_approximate_with_copies():
    """Half of the rows are copies of one, which make a cell of more rows than a part."""
    X = clusters(6000)
    X[::2] = X[0]
    graph = DistributedGraph.build(chunked(X, *[600] * 10), 8, search="approximate")
    _, distances = assert_consistent(graph, X, 8)
    assert (distances[::2] == 0).all()
    assert (distances <= exact_distances(X, 8)[:, -1:] * (1 + 1e-12)).mean() >= 0.97
    assert graph.order.sizes.max() <= 2 * graph.order.sizes.mean()


def test_approximate_far_from_the_origin():
    X = 1e8 + 1e-3 * roll(3000)
    graph = DistributedGraph.build(chunked(X, 1500, 1500), 8, search="approximate")
    _, distances = arrays(graph)
    assert (distances <= exact_distances(X, 8)[:, -1:] * (1 + 1e-12)).mean() >= 0.97


def test_rows_without_enough_neighbors_nearby_are_compared_with_all():
    """A few rows are so far away that their cells have fewer rows than neighbors are wanted."""
    X = cloud(2000, 4)
    X[[5, 700, 1999]] += np.array([[300.0], [-200.0], [200.0]])
    graph = DistributedGraph.build(chunked(X, *[500] * 4), 12, search="approximate")
    _, distances = assert_consistent(graph, X, 12)
    far = [5, 700, 1999]
    np.testing.assert_array_equal(distances[far], exact_distances(X, 12)[far])


def test_low_recall_is_said():
    """Clusters so far apart that their points are equal in single precision."""
    rng = np.random.default_rng(0)
    X = 1e9 * rng.normal(size=(30, 15))[rng.integers(30, size=3000)] + rng.normal(size=(3000, 15))
    with pytest.warns(ConvergenceWarning, match=r"neighbors of a sample.*search='exact'"):
        graph = DistributedGraph.build(chunked(X, 1000, 2000), 5, search="approximate")
    assert graph.recall < 0.97


def test_seed():
    X = chunked(clusters(4000), 1000, 3000)
    build = {"n_neighbors": 5, "search": "approximate"}
    one, same, other = (
        arrays(DistributedGraph.build(X, **build, random_state=seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one[0], same[0])
    np.testing.assert_array_equal(one[1], same[1])
    assert (one[0] != other[0]).any()


def test_two_rows():
    indices, distances = arrays(DistributedGraph.build(chunked(np.array([[0.0], [3.0]]), 1, 1)))
    assert indices.tolist() == [[1], [0]]
    assert distances.tolist() == [[3], [3]]


def test_defaults_follow_the_data_as_in_memory():
    for n in (2, 7, 30):
        X = cloud(n, 2)
        graph = DistributedGraph.build(chunked(X))
        assert graph.n_neighbors == NeighborGraph.build(X).n_neighbors
        assert "all pairs" in graph.search


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_neighbors": 20},
            r"n_neighbors=20 must be less than n_samples=15; pass n_neighbors=14",
        ),
        ({"metric": "manhattan"}, r"metric='manhattan' is not supported.*landmarks="),
        ({"search": "fast"}, r"search='fast'"),
    ],
)
def test_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        DistributedGraph.build(chunked(cloud(15, 2)), **options)


def test_no_features():
    with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\) \(shape=\(2000, 0\)\)"):
        DistributedGraph.build(da.empty((2000, 0), chunks=(500, 0)))


def test_one_row():
    with pytest.raises(ValueError, match=r"Found array with 1 sample\(s\) .* minimum of 2"):
        DistributedGraph.build(chunked(cloud(1, 2)))


def test_arrays_in_memory_are_for_the_other_class():
    with pytest.raises(TypeError, match=r"of type ndarray; .* NeighborGraph.build takes arrays in"):
        DistributedGraph.build(cloud(30, 2))


def test_graph_of_a_collection_or_a_store(tmp_path):
    X = cloud(300, 3)
    chunked(X, 200, 100).to_zarr(str(tmp_path / "X.zarr"))
    for given in (chunked(X, 200, 100), tmp_path / "X.zarr"):
        graph = NeighborGraph.build(given, 4)
        assert isinstance(graph, DistributedGraph)
        np.testing.assert_array_equal(arrays(graph)[1], exact_distances(X, 4))
    with pytest.raises(ValueError, match="radius=2 is not supported for distributed data"):
        NeighborGraph.build(chunked(X, 300), radius=2)
    with pytest.raises(ValueError, match=r"minkowski\(.*is not supported"):
        NeighborGraph.build(chunked(X, 300), metric="minkowski", metric_params={"p": 3})


def test_repr():
    graph = DistributedGraph.build(chunked(cloud(300, 3), 150, 150), 4)
    assert repr(graph) == (
        "DistributedGraph(300 points in 2 parts, k=4, metric='euclidean', 1200 edges)"
    )
    in_memory = NeighborGraph.build(cloud(300, 3), 4)
    assert repr(DistributedGraph.of(in_memory, cloud(300, 3), np.array([0, 100, 300]))) == (
        repr(graph)
    )


def test_graph_in_memory_in_parts():
    X, rows = cloud(90, 3), np.random.default_rng(0).permutation(90)
    graph = NeighborGraph.build(X, 4)
    parts = DistributedGraph.of(graph, X, np.array([0, 40, 90]), rows)
    indices, distances = arrays(parts)
    np.testing.assert_array_equal(indices.ravel(), graph.indices)
    np.testing.assert_array_equal(distances.ravel(), graph.distances)


def test_on_workers(client):
    X = clusters(6000, 10)
    graph = DistributedGraph.build(chunked(X, *[1000] * 6), 6, search="approximate")
    _, distances = assert_consistent(graph, X, 6)
    assert (distances <= exact_distances(X, 6)[:, -1:] * (1 + 1e-12)).mean() >= 0.97
    assert graph.recall >= 0.97


def test_parts_are_balanced_and_near():
    X = roll(5000, 3)
    rows = PartitionedRows.of(Rows.read(chunked(X, *[500] * 10)), "euclidean", _rng())
    points, numbers = dask.compute(rows.points, rows.order.rows)
    np.testing.assert_array_equal(np.sort(np.concatenate(numbers)), np.arange(5000))
    np.testing.assert_array_equal(np.concatenate(points), X[np.concatenate(numbers)])
    within = sum(len(part) * part.var(axis=0).sum() for part in points)
    assert within < 2 * KMeans(10, n_init=1, random_state=0).fit(X).inertia_
    [partition] = dask.compute(rows.partition)
    assert partition.starts[-1] == 5000
    for p, part in enumerate(points):
        ends = partition.local_starts(p)
        assert ends[-1] == len(part)
        cells = numbers[p]
        assert all((np.diff(cells[a:b]) > 0).all() for a, b in pairwise(ends))


def test_groups():
    centers, weights = cloud(200, 4), np.random.default_rng(0).uniform(1, 3, 200)
    groups = grouped(centers, weights, 7)
    assert sorted(np.concatenate(groups)) == list(range(200))
    sums = np.array([weights[group].sum() for group in groups])
    assert len(groups) == 7
    assert sums.max() < 1.25 * sums.mean()
    assert len(grouped(centers[:3], weights[:3], 7)) == 3
    assert len(grouped(np.zeros((50, 2)), np.ones(50), 5)) == 5


def test_sizes_of_a_partition():
    options = PartitionOptions()
    assert options.n_parts(np.array([500, 0, 500])) == 2
    assert options.n_parts(np.array([1] * 300)) == 3
    assert options.n_parts(np.array([2])) == 1
    assert options.n_cells(10**6, 10) == 1000
    assert options.n_cells(10**6, 100) == 1600
    assert options.n_cells(2, 1) == 1
    assert options.n_sampled(10_000, 10**6) == 10_000


@pytest.mark.parametrize("most", [0, 2500])
def test_rows_move_in_one_step_or_two(most):
    rng = np.random.default_rng(0)
    cells, points = rng.integers(40, size=500), rng.normal(size=(500, 2))
    bounds = np.array([0, 3, 10, 11, 20, 33, 40])
    cuts = np.split(np.arange(500), [100, 100, 130, 300, 420])
    chunks = [Moving.sorted(cells[rows], rows, points[rows]) for rows in cuts]
    present = [parts_present(chunk, bounds) for chunk in chunks]
    parts = dask.compute(moved([dask.delayed(c) for c in chunks], present, bounds, most))[0]
    for part, (first, stop) in zip(parts, pairwise(bounds), strict=True):
        rows = np.flatnonzero((first <= cells) & (cells < stop))
        rows = rows[np.argsort(cells[rows], kind="stable")]
        np.testing.assert_array_equal(part.rows, rows)
        np.testing.assert_array_equal(part.points, points[rows])


def test_two_steps_take_fewer_tasks():
    n_parts = 64
    bounds, present = np.arange(n_parts + 1), [np.arange(n_parts)] * n_parts
    chunks = [dask.delayed(None) for _ in range(n_parts)]
    tasks = {most: len(_all_tasks(moved(chunks, present, bounds, most))) for most in (0, 10**6)}
    assert tasks[0] < 2.5 * n_parts**1.5 < n_parts**2 < tasks[10**6]


def _all_tasks(tasks):
    keys = set()
    for task in tasks:
        keys |= set(task.__dask_graph__())
    return keys


def _rng():
    return np.random.default_rng(0)


@pytest.fixture
def built():
    X = cloud(400, 3).astype("f4")
    frame = da.from_array(X, chunks=(150, -1)).to_dask_dataframe(columns=["a", "b", "c"])
    return X, DistributedGraph.build(frame, 5)


def test_zarr(built, tmp_path):
    X, graph = built
    graph.to_zarr(tmp_path / "graph.zarr")
    assert os.listdir(tmp_path) == ["graph.zarr"]
    read = DistributedGraph.from_zarr(tmp_path / "graph.zarr")
    assert repr(read) == repr(graph)
    assert (read.search, read.metric) == (graph.search, graph.metric)
    assert list(read.names) == ["a", "b", "c"]
    for mine, theirs in zip(arrays(read), arrays(graph), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    points, rows = dask.compute(read.points, read.order.rows)
    np.testing.assert_array_equal(np.concatenate(points), X[np.concatenate(rows)])
    assert points[0].dtype == np.float32


def test_zarr_without_points(built, tmp_path):
    graph = built[1]
    graph.to_zarr(tmp_path / "graph.zarr", points=False)
    read = DistributedGraph.from_zarr(str(tmp_path / "graph.zarr"))
    assert read.points == []
    np.testing.assert_array_equal(arrays(read)[0], arrays(graph)[0])
    with pytest.raises(ValueError, match="without its points; pass points=False"):
        read.to_zarr(tmp_path / "again.zarr")


def test_zarr_is_replaced_only_by_a_complete_graph(built, tmp_path, monkeypatch):
    from manifoldry.neighbors import distributed_store

    graph, path = built[1], tmp_path / "graph.zarr"
    graph.to_zarr(path)
    before = sorted(path.rglob("*"))

    def fails(*arguments):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(distributed_store, "_write_part", fails)
        with pytest.raises(OSError, match="no space left"):
            graph.to_zarr(path, overwrite=True)
        with pytest.raises(OSError, match="no space left"):
            graph.to_zarr(tmp_path / "other.zarr")
    assert os.listdir(tmp_path) == ["graph.zarr"]
    assert sorted(path.rglob("*")) == before
    with pytest.raises(FileExistsError, match="has a neighbor graph; pass overwrite=True"):
        graph.to_zarr(path, points=False)
    assert sorted(path.rglob("*")) == before
    graph.to_zarr(path, points=False, overwrite=True)
    assert not (path / "points").exists()


def test_zarr_does_not_replace_other_folders(built, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "text").write_text("mine")
    with pytest.raises(ValueError, match=r"mine is not a neighbor graph.*name another path"):
        built[1].to_zarr(tmp_path / "mine")
    assert (tmp_path / "mine" / "text").exists()
    with pytest.raises(FileNotFoundError, match="does not exist"):
        DistributedGraph.from_zarr(tmp_path / "none.zarr")


def _edited(path, name, value):
    about = json.loads((path / "zarr.json").read_text())
    about["attributes"][name] = value
    (path / "zarr.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "something else"),
        ("version", 99),
        ("n_neighbors", -1),
        ("n_neighbors", "5"),
        ("bounds", [0, 10]),
        ("bounds", [0, 300, 100, 400]),
        ("counts", None),
        ("recall", 7),
        ("names", [1, 2, 3]),
        ("metric", ["euclidean"]),
    ],
)
def test_zarr_with_other_attributes(built, tmp_path, name, value):
    path = tmp_path / "graph.zarr"
    built[1].to_zarr(path, points=False)
    _edited(path, name, value)
    with pytest.raises(ValueError, match=r"graph\.zarr"):
        DistributedGraph.from_zarr(path)


def test_zarr_with_other_arrays(built, tmp_path):
    import zarr

    path = tmp_path / "graph.zarr"
    graph = built[1]
    for kind, values, message in [
        ("neighbors", np.full((10, 5), 1), "have shape"),
        ("neighbors", None, "not between 0 and 399"),
        ("distances", None, "not finite and positive"),
        ("rows", None, "not between 0 and 399"),
    ]:
        graph.to_zarr(path, overwrite=True)
        group = zarr.open_group(str(path / kind), mode="r+")
        if values is None:
            values = group["0"][...]
            values.flat[3] = -7
        shutil.rmtree(path / kind / "0")
        group.create_array("0", data=values)
        read = DistributedGraph.from_zarr(path)  # lazily: errors come when parts are read
        with pytest.raises(ValueError, match=message):
            dask.compute(read.edges, read.order.rows)


def test_zarr_on_workers(client, tmp_path):
    X = cloud(800, 3)
    graph = DistributedGraph.build(chunked(X, *[200] * 4), 5)
    graph.to_zarr(tmp_path / "graph.zarr")
    read = DistributedGraph.from_zarr(tmp_path / "graph.zarr")
    np.testing.assert_array_equal(arrays(read)[1], exact_distances(X, 5))


def test_all_pairs_of_parts_are_near_if_all_cells_are():
    """A search of all cells finds what the exact search finds."""
    X = cloud(900, 8)
    rows = PartitionedRows.of(Rows.read(chunked(X, 300, 300, 300)), "euclidean", _rng())
    searched = NearbySearch(target_recall=1.0)(rows, 6, "euclidean", _rng())
    found, numbers = dask.compute(searched.found, rows.order.rows)
    distances = np.empty((900, 6))
    distances[np.concatenate(numbers)] = np.concatenate([part.distances for part in found])
    assert (distances <= exact_distances(X, 6)[:, -1:] * (1 + 1e-12)).mean() > 0.999
