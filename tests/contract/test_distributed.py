"""Every estimator fitted to Dask arrays: results are those of its landmark model, lazily."""

import pickle
from functools import cache, partial

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

import manifoldry as mf
from manifoldry.distributed import using_options
from manifoldry.distributed.scheduler import OneThread
from manifoldry.exceptions import ManifoldryWarning

pytestmark = pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")

CHUNKS = ((50, 0, 37, 43), 5)
WRAPPERS = {
    "FromDensity": partial(mf.FromDensity, mf.KernelPCA(2), n_draws=200, width=0.3),
    "ConformalInverse": partial(mf.ConformalInverse, mf.PCA(2)),
    "ConformalInverse-NonRedundant": partial(mf.ConformalInverse, mf.NonRedundant()),
    "FromDensity-ConformalInverse": partial(
        mf.FromDensity, mf.ConformalInverse(mf.PCA(2)), n_draws=200, width=0.3
    ),
}


@pytest.fixture(scope="session")
def rows(make_cloud):
    return make_cloud(130)


@pytest.fixture(scope="session")
def fitted_lazily(rows):
    """Models of 80 landmarks, fitted once for all tests: read them, change nothing."""

    @cache
    def fit(make):
        with using_options(landmarks=80):
            return make().fit(da.from_array(rows, chunks=CHUNKS))

    return fit


def assert_lazy(lazy, in_memory, argument, block_of):
    """A lazy result equals that in memory, to the last bit for the same chunks."""
    assert isinstance(lazy, da.Array)
    found, expected = lazy.compute(), in_memory(argument)
    assert lazy.shape == found.shape == expected.shape
    assert lazy.dtype == found.dtype == expected.dtype
    assert lazy.chunks[0] == CHUNKS[0]
    size = np.abs(expected).max() or 1.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * size)
    for i in (0, 2):
        same = OneThread(in_memory)(block_of(i))
        np.testing.assert_array_equal(lazy.blocks[i].compute(), same)


def check_results(model, rows):
    X, landmarks = da.from_array(rows, chunks=CHUNKS), model.landmark_model_
    blocks = np.split(rows, np.cumsum(CHUNKS[0])[:-1])
    assert_lazy(model.transform(X), landmarks.transform, rows, blocks.__getitem__)
    Y = model.transform(X)
    in_memory = [np.asarray(Y.blocks[i].compute()) for i in range(4)]
    Z = np.concatenate(in_memory)
    assert_lazy(model.inverse_transform(Y), landmarks.inverse_transform, Z, in_memory.__getitem__)
    np.testing.assert_array_equal(model.embedding_.compute(), Z)
    assert model.embedding_.chunks == (CHUNKS[0], (Z.shape[1],))
    np.testing.assert_array_equal(model.transform(rows), landmarks.transform(rows))


@pytest.mark.once_per_class
def test_results_are_those_of_the_landmark_model(data_method, fitted_lazily, rows):
    model = fitted_lazily(data_method.make)
    assert model.fitted_on_ == "80 of 130 rows; the others are placed by transform"
    check_results(model, rows)


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers(name, fitted_lazily, rows):
    model = fitted_lazily(WRAPPERS[name])
    check_results(model, rows)
    assert len(model.landmark_model_.embedding_) == 80
    assert not hasattr(model.landmark_model_.estimator_, "landmark_model_")


@pytest.mark.once_per_class
def test_novelty(data_method, fitted_lazily, rows):
    model = fitted_lazily(data_method.make)
    X = da.from_array(rows, chunks=CHUNKS)
    if data_method.id == "KernelPCA-poly":
        with pytest.raises(ValueError, match="novelty is unknown"):
            model.novelty(X).compute()
        return
    blocks = np.split(rows, np.cumsum(CHUNKS[0])[:-1])
    assert_lazy(model.novelty(X), model.landmark_model_.novelty, rows, blocks.__getitem__)
    Y, distances = model.transform(X, return_distance=True)
    np.testing.assert_array_equal(Y.compute(), model.embedding_.compute())
    np.testing.assert_array_equal(distances.compute(), model.novelty(X).compute())


@pytest.mark.once_per_class
def test_pickles_and_files(data_method, fitted_lazily, rows, tmp_path):
    model = fitted_lazily(data_method.make)
    path = mf.save(model, tmp_path / "map.model")
    for again in (pickle.loads(pickle.dumps(model)), mf.load(path)):
        np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
        assert list(again.get_feature_names_out()) == list(model.get_feature_names_out())
        assert again.fitted_on_ == model.fitted_on_
        assert "embedding_" not in vars(again)
        X = da.from_array(rows, chunks=CHUNKS)
        np.testing.assert_array_equal(again.transform(X).compute(), model.embedding_.compute())
    assert mf.read_info(path).training["n_samples"] == 130


@pytest.mark.representatives
def test_a_fit_in_memory_replaces_everything(data_method, fitted_lazily, X):
    fresh = data_method.make().fit(X)
    for name in ("fit", "fit_transform", "pose"):
        model = pickle.loads(pickle.dumps(fitted_lazily(data_method.make)))
        if not hasattr(model, name):
            continue
        getattr(model, name)(X)
        assert not {"landmark_model_", "fitted_on_"} & set(vars(model))
        if name != "pose":
            assert set(vars(model)) == set(vars(fresh))
            np.testing.assert_array_equal(model.transform(X), fresh.transform(X))


@pytest.mark.representatives
def test_a_fit_of_a_collection_replaces_everything(data_method, fitted_lazily, rows, X):
    model = data_method.make().fit(X)
    with using_options(landmarks=80):
        Y = model.fit_transform(da.from_array(rows, chunks=CHUNKS), y=None)
    fresh = fitted_lazily(data_method.make)
    assert set(vars(model)) == set(vars(fresh))
    np.testing.assert_array_equal(Y.compute(), fresh.embedding_.compute())


@pytest.mark.representatives
def test_a_failing_fit_keeps_the_earlier_one(data_method, fitted_lazily, rows, X):
    model = pickle.loads(pickle.dumps(fitted_lazily(data_method.make)))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan))
    assert vars(model) == before
    bad = da.from_array(np.where(np.arange(130)[:, None] == 60, np.nan, rows), chunks=CHUNKS)
    with pytest.raises(ValueError, match="NaN in chunk 2 "):
        model.fit(bad)
    assert vars(model) == before
    in_memory = data_method.make().fit(X)
    before = dict(vars(in_memory))
    with pytest.raises(ValueError, match="NaN in chunk 2 "):
        in_memory.fit(bad)
    assert vars(in_memory) == before


@pytest.mark.representatives
def test_clones_are_not_fitted(data_method, fitted_lazily):
    model = fitted_lazily(data_method.make)
    assert set(vars(clone(model))) <= {*model.get_params(deep=False), "_sklearn_output_config"}


@pytest.mark.once_per_class
def test_attributes_say_nothing_of_single_landmarks(data_method, fitted_lazily):
    model = fitted_lazily(data_method.make)
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            pytest.fail(f"{name} has numbers of landmarks")
        assert name == "embedding_" or getattr(value, "shape", (0,))[0] != 80, name


@pytest.mark.representatives
def test_precomputed_values_are_refused(matrix_method, rows):
    D = da.from_array(matrix_method.input(rows), chunks=(50, -1))
    with pytest.raises(TypeError, match="takes precomputed values of all pairs of rows"):
        matrix_method.make().fit(D)


def test_clusters(fitted_lazily, rows):
    make = partial(mf.SpectralClustering, 3, random_state=0)
    with using_options(landmarks=80):
        model = make()
        labels = model.fit_predict(da.from_array(rows, chunks=CHUNKS))
    expected = model.landmark_model_.predict(rows)
    np.testing.assert_array_equal(labels.compute(), expected)
    np.testing.assert_array_equal(model.labels_.compute(), expected)
    assert labels.dtype == expected.dtype
    np.testing.assert_array_equal(model.predict(rows), expected)


@pytest.mark.parametrize("make", [partial(mf.MixtureOfFactorAnalyzers, 2), mf.ManifoldParzen])
def test_densities(make, rows, tmp_path):
    X = da.from_array(rows, chunks=CHUNKS)
    with using_options(landmarks=80):
        model = make().fit(X)
    assert not hasattr(model, "embedding_")
    scores = model.score_samples(X)
    np.testing.assert_array_equal(scores.compute(), model.landmark_model_.score_samples(rows))
    assert model.score(rows) == pytest.approx(scores.mean().compute())
    again = mf.load(mf.save(model, tmp_path / "density.model"))
    np.testing.assert_array_equal(again.score_samples(rows), scores.compute())
    assert np.asarray(again.sample(5, random_state=0)[0]).shape[-1] == 5


def test_labels_of_local_coordinates_are_refused(rows):
    X = da.from_array(rows, chunks=CHUNKS)
    model = mf.MixtureOfFactorAnalyzers(2).fit(X)
    Z = model.transform(X)
    with pytest.raises(TypeError, match="takes no labels"):
        model.inverse_transform(Z, labels=model.predict(X))


def test_fits_that_need_memory_say_so(rows):
    X = da.from_array(rows, chunks=CHUNKS)
    with pytest.raises(TypeError, match=r"LieTransform\.fit takes data in memory"):
        mf.lie.LieTransform().fit(X, X)
    model = mf.PCA(2).fit(X)
    for name in ("score", "extension_error", "equivalent_kernel"):
        with pytest.raises(TypeError, match=f"PCA.{name} takes data in memory"):
            getattr(model, name)(X)


def test_numbers_of_landmarks(monkeypatch, rows):
    X = da.from_array(rows, chunks=CHUNKS)
    monkeypatch.setattr(mf.KernelPCA, "_landmarks", 40)
    assert mf.KernelPCA().fit(X).fitted_on_.startswith("40 of 130 rows")
    assert mf.NonRedundant(mf.KernelPCA()).fit(X).fitted_on_.startswith("40 of 130 rows")
    assert mf.KernelPCA(2).fit(X).fitted_on_.startswith("40 of")
    with using_options(landmarks=500):
        model = mf.KernelPCA().fit(X)
    assert model.fitted_on_ == "all rows, on one worker"
    np.testing.assert_allclose(
        model.embedding_.compute(), mf.KernelPCA().fit(rows).embedding_, atol=1e-12
    )


def test_warnings_of_a_fit_are_issued_once(rows):
    X = np.concatenate([rows[:65], rows[65:] + 1000])
    with pytest.warns(ManifoldryWarning) as caught:
        mf.LLE(n_neighbors=5).fit(da.from_array(X, chunks=CHUNKS))
    messages = [str(each.message) for each in caught]
    assert any("connected components" in each for each in messages)
    assert len(messages) == len(set(messages))
    assert {each.filename for each in caught} == {__file__}
