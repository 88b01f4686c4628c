"""What estimators take in place of an array: collections of Dask in every shape, and files."""

import pathlib
import pickle
import warnings

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse

from manifoldry import LLE, PCA, Isomap, LaplacianEigenmaps, NonRedundant
from manifoldry.distributed import Rows, using_options
from manifoldry.distributed.collections import is_collection
from manifoldry.exceptions import DisconnectedGraphWarning, NoveltyWarning

NAMES = ["a", "b", "c", "d"]


def cloud(n=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)) * [4, 3, 2, 1]


@pytest.fixture(scope="module", name="X")
def data():
    return cloud()


@pytest.fixture(scope="module")
def expected(X):
    return PCA(2).fit(X)


def frame(X, n_partitions=4):
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=n_partitions)


def with_empty_ends(X):
    """A frame whose first and last partitions are empty, and whose lengths are unknown."""
    wide = np.concatenate([np.full((50, 4), -99.0), X, np.full((50, 4), 99.0)])
    rows = frame(wide, 6)
    return rows[(rows.a > -99) & (rows.a < 99)]


def unknown_sizes(X):
    array = da.from_array(X, chunks=(50, 4))
    return array[da.ones(len(X), chunks=50, dtype=bool)]


COLLECTIONS = {
    "one chunk": lambda X: da.from_array(X, chunks=-1),
    "columns in chunks": lambda X: da.from_array(X, chunks=(60, 3)),
    "one row per chunk at the end": lambda X: da.from_array(X, chunks=((199, 1), 4)),
    "empty chunks": lambda X: da.from_array(X, chunks=((0, 90, 0, 110, 0), 4)),
    "unknown sizes": unknown_sizes,
    "a frame": frame,
    "a frame with empty partitions": with_empty_ends,
    "fortran order": lambda X: da.from_array(np.asfortranarray(X), chunks=(60, 4)),
    "sparse chunks": lambda X: da.from_array(X, chunks=(60, 4)).map_blocks(sparse.csr_matrix),
}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_collections(name, X, expected):
    data = COLLECTIONS[name](X)
    model = PCA(2).fit(data)
    assert model.embedding_.shape == (200, 2)
    np.testing.assert_allclose(model.embedding_.compute(), expected.embedding_, atol=1e-12)
    np.testing.assert_allclose(model.transform(data).compute(), expected.embedding_, atol=1e-12)
    assert model.n_features_in_ == 4
    assert hasattr(model, "feature_names_in_") == name.startswith("a frame")


@pytest.mark.parametrize("kind", [int, np.int8, np.uint16])
def test_whole_numbers(kind, X):
    whole = (10 * X).astype(kind)
    model = PCA(2).fit(da.from_array(whole, chunks=(60, 4)))
    assert model.embedding_.dtype == np.float64
    found = model.embedding_.compute()
    np.testing.assert_allclose(found, PCA(2).fit_transform(whole), atol=1e-9)


def test_truth_values(X):
    found = PCA(2).fit(da.from_array(X > 0, chunks=(60, 4))).embedding_.compute()
    np.testing.assert_allclose(found, PCA(2).fit_transform((X > 0).astype(float)), atol=1e-12)


def test_single_precision(X):
    model = PCA(2).fit(da.from_array(X.astype(np.float32), chunks=(60, 4)))
    Y = model.embedding_
    assert Y.dtype == Y.compute().dtype == np.float32
    assert model.inverse_transform(Y).dtype == model.inverse_transform(Y).compute().dtype
    assert model.transform(X).dtype == np.float64


WRONG = {
    "one dimension": (lambda: da.ones(30), ValueError, "X has 1 dimensions"),
    "three dimensions": (lambda: da.ones((3, 3, 3)), ValueError, "X has 3 dimensions"),
    "complex": (lambda: da.ones((30, 3), dtype=complex), TypeError, "dtype complex128"),
    "objects": (
        lambda: da.from_array(np.ones((30, 3), object), chunks=(10, 3)),
        TypeError,
        "dtype object",
    ),
    "dates": (lambda: da.zeros((30, 3), dtype="M8[s]"), TypeError, "dtype datetime64"),
    "no rows": (lambda: da.ones((0, 3)), ValueError, r"Found array with 0 sample\(s\)"),
    "one row": (lambda: da.ones((1, 3)), ValueError, r"Found array with 1 sample\(s\)"),
    "no columns": (lambda: da.ones((30, 0)), ValueError, r"0 feature\(s\)"),
    "a bag": (lambda: dask.bag.from_sequence([1]), TypeError, "X is a Dask Bag; pass a Dask array"),
    "a delayed": (lambda: dask.delayed(np.ones)((3, 3)), TypeError, "X is a Dask Delayed"),
    "a series": (lambda: frame(cloud()).a, TypeError, "X is a Dask Series"),
    "texts": (
        lambda: frame(cloud()).assign(e="x"),
        TypeError,
        r"column 'e' of X has dtype .*; convert it, or leave it out",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_collections(name):
    make, kind, message = WRONG[name]
    model = PCA(2)
    with pytest.raises(kind, match=message):
        model.fit(make())
    assert set(vars(model)) == set(model.get_params())


def test_too_few_rows_for_the_parameters(X):
    data = da.from_array(X[:6], chunks=(2, 4))
    with pytest.raises(ValueError, match="n_neighbors=8 must be less than n_samples=6"):
        Isomap(n_neighbors=8).fit(data)
    with pytest.raises(ValueError, match="n_components=9 must be at most"):
        PCA(9).fit(data)


def test_a_chunk_that_lies_about_its_shape():
    block = da.from_delayed(dask.delayed(np.ones)((5, 3)), (6, 3), float)
    with pytest.raises(ValueError, match=r"chunk [01] of X has shape \(5, 3\), but .* \(6, 3\)"):
        PCA(2).fit(da.concatenate([block, block]))


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_bad_values_are_named(value, what):
    X = cloud(400)
    X[345, 2] = value
    data = da.from_array(X, chunks=(20, 4))
    message = rf"X contains {what} in chunk 17 \(row 345, column 2\)"
    with pytest.raises(ValueError, match=message):
        PCA(2).fit(data)
    with using_options(landmarks=10), pytest.raises(ValueError, match=message):
        Isomap().fit(data)
    lazy = PCA(2).fit(cloud()).transform(data)
    with pytest.raises(ValueError, match=message):
        lazy.compute()


def test_features_are_counted_when_transform_is_called(X):
    model = PCA(2).fit(da.from_array(X, chunks=(60, 4)))
    wide = da.ones((30, 5), chunks=(10, 5))
    for method in (model.transform, model.novelty, PCA(2).fit(X).transform):
        with pytest.raises(ValueError, match=r"X has 5 features, but PCA is expecting 4"):
            method(wide)
    with pytest.raises(ValueError, match="X has 5 columns, but the embedding has 2"):
        model.inverse_transform(wide)


def test_names_of_columns(X):
    data = frame(X)
    model = PCA(2).fit(data)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.get_feature_names_out().tolist() == ["pca0", "pca1"]
    np.testing.assert_array_equal(model.transform(data.to_dask_array()), model.transform(data))
    found = "the columns of X are not those of fit"
    with pytest.raises(ValueError, match=f"{found}.*: column 0 is 'b' and was 'a'"):
        model.transform(data[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match=f"{found}.*: 'c' is missing"):
        model.transform(data[["a", "b", "d"]])
    with pytest.raises(ValueError, match=f"{found}.*: 'e' was not a column of fit"):
        model.transform(data.assign(e=1.0))
    in_memory = PCA(2).fit(data.compute())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(in_memory.transform(data), model.transform(data), atol=1e-12)
        in_memory.transform(data.to_dask_array()).compute()
        PCA(2).fit(X).transform(data).compute()


def test_arguments_by_name(X, expected):
    data = da.from_array(X, chunks=(60, 4))
    for model in (PCA(2).fit(X=data), PCA(2).fit(data, np.ones(200)), PCA(2).fit(data, y=None)):
        np.testing.assert_allclose(model.transform(X=data), expected.embedding_, atol=1e-12)
    Y, distances = expected.transform(X=data, return_distance=True)
    np.testing.assert_allclose(Y, expected.embedding_, atol=1e-12)
    np.testing.assert_allclose(distances, expected.novelty(X), atol=1e-12)


@pytest.fixture
def stores(X, tmp_path):
    """The same rows in several stores."""
    rows = zarr.create_array(
        str(tmp_path / "rows.zarr"), shape=X.shape, chunks=(60, 4), dtype=float
    )
    rows[:] = X
    pd.DataFrame(X, columns=NAMES).to_parquet(tmp_path / "rows.parquet")
    frame(X).to_parquet(tmp_path / "folder.parquet")
    group = zarr.open_group(str(tmp_path / "group.zarr"), mode="w")
    group.create_array("points", data=X)
    return tmp_path


@pytest.mark.parametrize("name", ["rows.zarr", "rows.parquet", "folder.parquet"])
@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_stores(name, kind, stores, expected):
    path = kind(stores / name)
    model = PCA(2).fit(path)
    np.testing.assert_allclose(model.embedding_, expected.embedding_, atol=1e-12)
    np.testing.assert_allclose(expected.transform(path), expected.embedding_, atol=1e-12)


def test_stores_that_cannot_be_read(stores):
    with pytest.raises(ValueError, match=r"Zarr group with the arrays points; .*component='point"):
        PCA(2).fit(stores / "group.zarr")
    with pytest.raises(FileNotFoundError, match=r"missing\.zarr does not exist"):
        PCA(2).fit(str(stores / "missing.zarr"))
    with pytest.raises(FileNotFoundError, match=r"missing\.parquet does not exist"):
        PCA(2).fit(stores / "missing.parquet")


@pytest.mark.parametrize("path", ["rows.csv", "rows", "zarr", ""])
def test_other_texts_are_no_paths(path):
    assert not is_collection(path)
    with pytest.raises(ValueError, match="could not convert string to float"):
        PCA(2).fit(path)


def test_counts_and_starts():
    rows = Rows.read(with_empty_ends(cloud()))
    assert rows.counts.sum() == 200 == rows.n_samples
    assert rows.counts[0] == rows.counts[-1] == 0
    np.testing.assert_array_equal(rows.starts, np.cumsum(rows.counts) - rows.counts)


def test_the_sample_does_not_depend_on_chunks(X):
    def sample(chunks):
        rows = Rows.read(da.from_array(X, chunks=chunks))
        drawn, pieces = rows.sample(30, np.random.default_rng(0))
        return drawn, np.concatenate(dask.compute(*pieces))

    (drawn, values), (again, same) = sample((60, 4)), sample((7, 2))
    np.testing.assert_array_equal(drawn, again)
    np.testing.assert_array_equal(values, same)
    np.testing.assert_array_equal(values, X[drawn])


def test_frames_in_memory_are_refused(X):
    data = da.from_array(X, chunks=(60, 4))
    model = PCA(2).set_output(transform="pandas")
    model.fit(data)
    for method in (model.transform, model.fit_transform):
        with pytest.raises(TypeError, match=r"call set_output\(transform='default'\)"):
            method(data)
    assert model.transform(X).columns.tolist() == ["pca0", "pca1"]
    assert isinstance(model.inverse_transform(model.embedding_), da.Array)


def test_results_do_not_change_when_a_model_is_fitted_again(X):
    data = da.from_array(X, chunks=(60, 4))
    model = PCA(2).fit(X)
    lazy, expected = model.transform(data), model.transform(X)
    model.set_output(transform="pandas")
    model.fit(-3 * X + 3)
    np.testing.assert_allclose(lazy.compute(), expected, atol=1e-12)
    assert isinstance(model.transform(X), pd.DataFrame)  # its settings are its own


def test_joblib(X, tmp_path):
    model = LaplacianEigenmaps().fit(da.from_array(X, chunks=(60, 4)))
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert "embedding_" not in vars(again)


def test_pickles_are_not_larger_for_more_rows():
    X = da.random.default_rng(0).normal(size=(50_000, 4), chunks=(10_000, 4))
    with using_options(landmarks=100):
        sizes = [len(pickle.dumps(Isomap().fit(X[:n]))) for n in (1000, 50_000)]
    assert abs(sizes[1] - sizes[0]) < 1000


def test_unlike_rows_are_not_warned_about_in_tasks(X):
    model = PCA(2).fit(X)
    far = da.from_array(X + 1e4, chunks=(60, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoveltyWarning)
        model.transform(far).compute()
    assert (model.novelty(far) > 2).all().compute()


def test_errors_and_warnings_on_workers(client):
    X = cloud(400)
    with_nan = X.copy()
    with_nan[345, 2] = np.nan
    message = r"^X contains NaN in chunk 17 \(row 345, column 2\)"
    model = LLE().fit(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(da.from_array(with_nan, chunks=(20, 4)))
    with pytest.raises(ValueError, match=r"^n_neighbors=500 must be less than n_samples=400"):
        LLE(n_neighbors=500).fit(da.from_array(X, chunks=(20, 4)))
    assert vars(model) == before
    X[:200] += 1000
    with pytest.warns(DisconnectedGraphWarning) as caught:
        LLE(n_neighbors=5).fit(da.from_array(X, chunks=(20, 4)))
    assert len({str(each.message) for each in caught}) == len(caught)


@pytest.mark.parametrize("make", [LLE, lambda: NonRedundant(LLE())])
def test_landmark_fits_on_workers(client, make):
    X = cloud(400)
    data = da.from_array(X, chunks=((150, 0, 250), 4))
    with using_options(landmarks=200):
        model = make().fit(data)
    Y = model.embedding_.compute()
    np.testing.assert_allclose(Y, model.transform(X), atol=1e-7 * np.abs(Y).max())
    back = model.inverse_transform(model.embedding_).compute()
    np.testing.assert_allclose(back, model.inverse_transform(Y), atol=1e-7)


@pytest.fixture
def received(monkeypatch):
    """Sizes of the messages that reach this process: the client, and the scheduler beside it."""
    from distributed.comm import tcp

    sizes, read = [], tcp.from_frames

    async def counted(frames, *args, **kwargs):
        sizes.append(sum(memoryview(each).nbytes for each in frames))
        return await read(frames, *args, **kwargs)

    monkeypatch.setattr(tcp, "from_frames", counted)
    return sizes


@pytest.mark.parametrize("make", [lambda: PCA(2), lambda: LLE(n_neighbors=5)])
def test_data_do_not_reach_the_client(client, received, make):
    X = da.random.default_rng(0).normal(size=(52_000, 50), chunks=(4000, 50))
    assert X.nbytes > 20e6
    landmarks = None if isinstance(make(), PCA) else 1000
    with using_options(landmarks=landmarks):
        model = make().fit(X)
    size = len(pickle.dumps(model.landmark_model_))
    # What the client receives passes through the scheduler, which is in this process, too.
    assert 1000 * 50 * 8 < size < sum(received) < 2 * size + 1e6
    received.clear()
    assert model.embedding_[:8000].mean(axis=0).compute().shape == (2,)
    assert sum(received) < size + 1e6  # the model, on its way to workers


def test_the_model_is_sent_to_each_worker_once(client):
    X = cloud(3000)
    with using_options(landmarks=1500):
        model = LLE().fit(X)
    lazy = model.transform(da.from_array(cloud(320, seed=1), chunks=(20, 4)))
    [sent] = [key for key in lazy.dask if str(key).startswith("LLE-")]
    lazy.compute()

    def arrivals(dask_worker):
        return sum(sent in each["keys"] for each in dask_worker.transfer_incoming_log)

    assert max(client.run(arrivals).values()) <= 1
