"""What estimators take in place of an array: collections of Dask in every shape, and files."""

import copy
import pathlib
import pickle
import subprocess
import sys
import warnings
from types import SimpleNamespace

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
import zarr
from numcodecs import Delta, Zlib
from numcodecs.abc import Codec
from numcodecs.registry import register_codec
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifoldry import LLE, PCA, ConformalInverse, Isomap, LaplacianEigenmaps, NonRedundant
from manifoldry.distributed import Rows, using_options
from manifoldry.distributed.collections import check_codecs, is_collection
from manifoldry.exceptions import DisconnectedGraphWarning, NoveltyWarning
from manifoldry.neighbors import DistributedGraph

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
    "one dimension": (lambda: da.ones(30), ValueError, r"X has 1 dimension; .* X\[:, None\]"),
    "three dimensions": (lambda: da.ones((3, 3, 3)), ValueError, "X has 3 dimensions"),
    "complex": (lambda: da.ones((30, 3), dtype=complex), TypeError, "dtype complex128"),
    "objects": (
        lambda: da.from_array(np.ones((30, 3), object), chunks=(10, 3)),
        TypeError,
        r"dtype object, .*; pass X\.astype\(float\)",
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


def test_missing_names_are_warned_about_as_in_memory(X):
    named, data = pd.DataFrame(X, columns=NAMES), da.from_array(X, chunks=(60, 4))
    for fitted_to, in_memory, lazy in ((frame(X), X, data), (data, named, frame(X))):
        model = PCA(2).fit(fitted_to)
        with pytest.warns(UserWarning, match="feature names") as expected:
            Y = model.transform(in_memory)
        with pytest.warns(UserWarning, match="feature names") as caught:
            found = model.transform(lazy)
        assert [str(each.message) for each in caught] == [str(each.message) for each in expected]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(found.compute(), Y, atol=1e-12)


def test_arguments_by_name(X, expected):
    data = da.from_array(X, chunks=(60, 4))
    for model in (PCA(2).fit(X=data), PCA(2).fit(data, np.ones(200)), PCA(2).fit(data, y=None)):
        np.testing.assert_allclose(model.transform(X=data), expected.embedding_, atol=1e-12)
    Y, distances = expected.transform(X=data, return_distance=True)
    np.testing.assert_allclose(Y, expected.embedding_, atol=1e-12)
    np.testing.assert_allclose(distances, expected.novelty(X), atol=1e-12)


def test_unknown_arguments(X):
    data = da.from_array(X, chunks=(60, 4))
    model = PCA(2)
    for call in (model.fit, model.fit_transform):
        with pytest.raises(TypeError, match="does not take these arguments: too many positional"):
            call(data, np.zeros(200), "junk")
        with pytest.raises(TypeError, match=r"PCA\.fit.*unexpected keyword argument 'callback'"):
            call(data, callback=print)
    assert not hasattr(model, "fitted_on_")


TABLES = {
    "floats and truth values": lambda X: pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0}),
    "nullable": lambda X: pd.DataFrame(
        {"a": pd.array(X[:, 0], "Float64"), "b": pd.array(np.arange(200), "Int64")}
    ),
    "whole numbers": lambda X: pd.DataFrame({"a": X[:, 0] > 0, "b": np.arange(200, dtype="i2")}),
    "of arrow": lambda X: pd.DataFrame(X[:, :2], columns=["a", "b"]).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "single precision": lambda X: pd.DataFrame({"a": X[:, 0].astype("f4"), "b": X[:, 1] > 0}),
}


@pytest.mark.parametrize("name", TABLES)
def test_frames_of_several_types(name, X):
    table = TABLES[name](X)
    rows = Rows.read(dd.from_pandas(table, npartitions=3))
    values = np.concatenate(dask.compute(*rows.blocks))
    np.testing.assert_array_equal(values, table.astype(float).to_numpy(rows.dtype))
    assert rows.names.tolist() == ["a", "b"]
    assert values.dtype == (np.float32 if name == "single precision" else np.float64)


def test_missing_values_of_nullable_columns_are_named(X):
    table = TABLES["nullable"](X)
    table.loc[70, "b"] = pd.NA
    with pytest.raises(ValueError, match=r"NaN in chunk 1 \(row 70, column 1\)"):
        PCA(1).fit(dd.from_pandas(table, npartitions=3))


class InMemory:
    """Values of a library that wraps Dask, such as xarray, without a graph."""

    def __init__(self, values):
        self.values = values
        self.shape = values.shape

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)

    def __len__(self):
        return len(self.values)

    def __dask_graph__(self):
        return None


class Anything:
    """An object that claims to have any attribute."""

    def __getattr__(self, name):
        return 1


def test_objects_without_a_graph_are_no_collections(X, expected):
    wrapped = InMemory(X)
    assert not is_collection(wrapped)
    np.testing.assert_array_equal(PCA(2).fit(wrapped).embedding_, expected.embedding_)
    assert not is_collection(Anything())
    assert not is_collection(da.Array)
    model = PCA(2).fit(X)
    model.note_ = Anything()
    assert "note_" in pickle.loads(pickle.dumps(model)).__dict__
    for collection in (da.ones(3), frame(X), frame(X).a, dask.delayed(1)):
        assert is_collection(collection)


def test_pipelines(X):
    """scikit-learn sets a private attribute of each step around its fit, and deletes it."""
    data = da.from_array(X, chunks=(60, 4))
    pipeline = make_pipeline(PCA(3), PCA(2)).fit(data)
    in_memory = make_pipeline(PCA(3), PCA(2)).fit(X)
    assert isinstance(pipeline[-1].embedding_, da.Array)
    found = pipeline.transform(data)
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), in_memory.transform(X), atol=1e-12)
    again = pipeline.fit(X)  # the same estimators
    np.testing.assert_allclose(again.transform(X), in_memory.transform(X), atol=1e-12)
    assert not any(hasattr(step, "landmark_model_") for _, step in again.steps)
    # Steps of scikit-learn gather what they get.
    gathered = make_pipeline(StandardScaler(), PCA(2)).fit(data)
    assert isinstance(gathered[-1].embedding_, np.ndarray)


@pytest.mark.parametrize("first", ["memory", "workers"])
def test_attributes_of_users_stay(X, first):
    data = da.from_array(X, chunks=(60, 4))
    model = PCA(2)
    model.note, model._own = "mine", 3
    one, other = (X, data) if first == "memory" else (data, X)
    for rows in (one, other, one):
        assert model.fit(rows).note == "mine"
        assert model._own == 3
        fresh = {"note", "_own", *vars(PCA(2).fit(rows))}
        assert set(vars(model)) == fresh


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("estimator", [PCA(2), NonRedundant(PCA(2)), ConformalInverse(PCA(2))])
def test_copies_keep_the_map(X, make, estimator):
    model = clone(estimator).fit(da.from_array(X, chunks=(60, 4)))
    again = make(model)
    assert again.embedding_ is model.embedding_
    assert set(vars(again)) == set(vars(model))
    assert (again.landmark_model_ is model.landmark_model_) == (make is copy.copy)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    again.fit(X)
    assert isinstance(model.embedding_, da.Array)
    assert not hasattr(pickle.loads(pickle.dumps(model)), "embedding_")


def test_graphs_are_fitted_as_they_are(X):
    data = da.from_array(X, chunks=(60, 4))
    graph = DistributedGraph.build(data, n_neighbors=5)
    model = LaplacianEigenmaps(2)
    with using_options(refine=1), pytest.raises(ValueError, match="refine=1 moves single rows"):
        model.fit(graph)
    with using_options(landmarks=50), pytest.raises(ValueError, match="landmarks=50 fits a samp"):
        model.fit(graph)
    assert set(vars(model)) == set(model.get_params())
    with pytest.raises(TypeError, match=r"transform takes data, not a DistributedGraph; pass the"):
        model.fit(graph).transform(graph)


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


@pytest.mark.parametrize("name", ["broken.zarr", "broken.parquet"])
def test_broken_stores(name, tmp_path):
    (tmp_path / name).write_text("not a store")
    empty = "empty" + pathlib.Path(name).suffix
    (tmp_path / empty).mkdir()
    for each in (name, empty):
        with pytest.raises(
            ValueError, match=rf"{each} cannot be opened as a .*; write it again"
        ) as e:
            PCA(2).fit(tmp_path / each)
        assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("path", "module", "text"),
    [
        ("rows.zarr", "dask", "needs Dask, which is not installed; pip install"),
        ("rows.zarr", "zarr", "needs Zarr, which is not installed; pip install"),
        ("rows.parquet", "dask", "needs Dask, which is not installed; pip install"),
    ],
)
def test_what_is_not_installed(path, module, text, stores):
    code = f"""
import sys
class Missing:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            raise ModuleNotFoundError("no", name=name)
sys.meta_path.insert(0, Missing())
from manifoldry import PCA
try:
    PCA(2).fit({path!r})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=stores, capture_output=True, text=True)
    assert text in done.stdout


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows_are_known_before_tasks(n):
    def unread(block):
        raise AssertionError("a task has run")

    data = da.ones((n, 3)).map_blocks(unread, meta=np.empty((0, 0)))
    for model in (PCA(2), Isomap()):
        name = type(model).__name__
        with pytest.raises(
            ValueError, match=rf"{n} sample\(s\) .* minimum of 2 is required by {name}"
        ):
            model.fit(data)


def test_relative_paths_are_those_of_the_call(stores, monkeypatch, expected):
    monkeypatch.chdir(stores)
    models = [PCA(2).fit(name) for name in ("rows.zarr", "rows.parquet")]
    DistributedGraph.build("rows.zarr", n_neighbors=3).to_zarr("graph.zarr")
    graph = DistributedGraph.from_zarr(pathlib.Path("graph.zarr"))
    monkeypatch.chdir(stores / "group.zarr")
    for model in models:
        np.testing.assert_allclose(model.embedding_.compute(), expected.embedding_, atol=1e-12)
    assert graph.neighbors()[0].compute().shape == (200, 3)


def test_addresses_are_refused(X):
    graph = DistributedGraph.build(da.from_array(X, chunks=(60, 4)), n_neighbors=3)
    calls = PCA(2).fit, DistributedGraph.from_zarr, graph.to_zarr
    for call in calls:
        with pytest.raises(ValueError, match="is an address, not a path; open it yourself"):
            call("memory://bucket/data.zarr")


class Counting(Codec):
    """A codec that says when it is used, which one that unpickles data would not."""

    codec_id = "counting"
    used = 0

    def encode(self, buf):
        return buf

    def decode(self, buf, out=None):
        Counting.used += 1
        return buf


def test_codecs_that_may_run_code_are_refused(X, tmp_path):
    register_codec(Counting)
    path = tmp_path / "rows.zarr"
    about = {"shape": X.shape, "chunks": (60, 4), "dtype": float, "zarr_format": 2}
    zarr.create_array(str(path), compressors=Counting(), **about)[:] = X
    Counting.used = 0
    with pytest.raises(ValueError, match=r"rows\.zarr is stored with counting, which is not among"):
        PCA(2).fit(path)
    assert Counting.used == 0


STORED = {
    "version 2": {"zarr_format": 2},
    "filters": {"zarr_format": 2, "filters": [Delta(float)], "compressors": Zlib()},
    "shards": {"shards": (120, 4)},
    "not compressed": {"compressors": None},
}


@pytest.mark.parametrize("name", STORED)
def test_known_codecs(name, X, tmp_path, expected):
    path = str(tmp_path / "rows.zarr")
    zarr.create_array(path, shape=X.shape, chunks=(60, 4), dtype=float, **STORED[name])[:] = X
    np.testing.assert_allclose(PCA(2).fit(path).embedding_, expected.embedding_, atol=1e-12)


@pytest.mark.parametrize(
    ("metadata", "unknown"),
    [
        ({"compressor": {"id": "pickle"}, "filters": None}, "pickle"),
        ({"compressor": None, "filters": [{"id": "delta"}, {"id": "pickle"}]}, "pickle"),
        ({"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]}, "pickle"),
        ({"codecs": ("bytes", "mine")}, "mine"),
        (
            {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": ["own"]}}]},
            "own",
        ),
    ],
)
def test_unknown_codecs(metadata, unknown):
    array = SimpleNamespace(metadata=SimpleNamespace(to_dict=lambda: metadata))
    with pytest.raises(ValueError, match=f"data is stored with {unknown}"):
        check_codecs(array, "data")


@pytest.mark.parametrize("path", ["rows.csv", "rows", "zarr", ""])
def test_other_texts_are_no_paths(path):
    assert not is_collection(path)
    for given in (path, pathlib.Path(path)):
        with pytest.raises(ValueError, match=r"end in \.zarr or \.parquet .*io\.read_table\('"):
            PCA(2).fit(given)


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
