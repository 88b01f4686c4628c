"""Every estimator, and what stands beside it in a pipeline, is the same after loading."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn import decomposition, ensemble, impute, kernel_ridge, linear_model, neighbors
from sklearn import preprocessing as prep
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline, make_union

import manifoldry as mf
from manifoldry.io import UnsavableError, model_layout, model_types


@pytest.fixture(name="X", scope="module")
def training_data():
    return np.abs(np.random.default_rng(0).normal(size=(60, 5)))


@pytest.fixture(params=["read", "mapped"])
def again(request, tmp_path, monkeypatch):
    """A model after saving and loading, also if its file is large enough to be mapped."""
    if request.param == "mapped":
        monkeypatch.setattr(model_layout, "_SMALL", 0)
    return lambda model: mf.load(mf.save(model, tmp_path / "saved.model"))


def is_imputer(model):
    return isinstance(getattr(model, "steps", [[None, None]])[0][1], impute.SimpleImputer)


def check_same(model, same, X):
    new = X[:7] + 1e-3
    placed = model.transform(new)
    assert np.array_equal(same.transform(new), placed)
    if hasattr(model, "inverse_transform") and not is_imputer(model):
        assert np.array_equal(same.inverse_transform(placed), model.inverse_transform(placed))


STEPS = (
    prep.StandardScaler(), prep.MinMaxScaler(), prep.MaxAbsScaler(), prep.RobustScaler(),
    prep.PowerTransformer(), prep.QuantileTransformer(n_quantiles=20), prep.Normalizer(),
    prep.FunctionTransformer(np.sqrt, np.square), decomposition.PCA(3),
    decomposition.TruncatedSVD(3), decomposition.IncrementalPCA(3), impute.SimpleImputer(),
    impute.KNNImputer(), make_union(decomposition.PCA(2), prep.StandardScaler()),
    ColumnTransformer([("a", prep.StandardScaler(), [0, 1])], remainder=prep.MinMaxScaler()),
)  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_steps_before_an_estimator(step, X, again):
    model = make_pipeline(step, mf.PCA()).fit(X)
    check_same(model, again(model), X)


BASES = (mf.LaplacianEigenmaps, mf.Isomap, mf.LTSA, mf.HessianLLE, mf.LLE, mf.ModifiedLLE,
         mf.DiffusionMaps)  # fmt: skip


@pytest.mark.parametrize("base", BASES)
def test_non_redundant_coordinates_of_every_base(base, X, again):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model = mf.NonRedundant(base(n_neighbors=10)).fit(X)
    check_same(model, again(model), X)


def test_wrappers(X, again):
    for model in (
        mf.ConformalInverse(mf.Isomap(n_neighbors=8)),
        mf.FromDensity(mf.Isomap(n_neighbors=8)),
        make_pipeline(prep.StandardScaler(), mf.ConformalInverse(mf.KernelPCA())),
    ):
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            model.fit(X)
        check_same(model, again(model), X)


@pytest.mark.parametrize("density", [mf.ManifoldParzen, mf.MixtureOfFactorAnalyzers])
def test_densities(density, X, again):
    model = density().fit(X)
    assert np.array_equal(again(model).score_samples(X), model.score_samples(X))


@pytest.mark.parametrize(
    "regressor",
    [
        linear_model.LinearRegression(), linear_model.Ridge(), kernel_ridge.KernelRidge(),
        neighbors.KNeighborsRegressor(algorithm="brute"),
    ],
    ids=lambda regressor: type(regressor).__name__,
)  # fmt: skip
def test_regressors_as_extension(regressor, X, again):
    model = mf.TSNE(max_iter=10, perplexity=8, extension=regressor)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model.fit(X)
    check_same(model, again(model), X)


def test_what_cannot_be_saved_has_a_remedy(X, tmp_path):
    path = tmp_path / "no.model"
    for regressor, message in (
        (neighbors.KNeighborsRegressor(), r"_tree is a .*KDTree.*algorithm='brute'"),
        (ensemble.RandomForestRegressor(2), r"TSNE.extension is a .*choose among .*Ridge.*pickle"),
    ):
        model = mf.TSNE(max_iter=10, perplexity=8, extension=regressor)
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            model.fit(X)
        with pytest.raises(UnsavableError, match=message):
            mf.save(model, path)
    model = make_pipeline(prep.StandardScaler(), mf.PCA()).fit(X).set_params(memory="cache")
    with pytest.raises(UnsavableError, match=r"memory is a folder.*memory=None"):
        mf.save(model, path)
    model = mf.PCA().fit(X)
    for value, message in (
        (np.ma.masked_array([1.0], [True]), "convert it with np.asarray"),
        (np.array(["2020"], dtype="datetime64[D]"), "convert it to numbers"),
        (nested(200), "nested too deeply"),
        (np.array(["a" * 10**6] + [""] * 100), "would take"),
    ):
        model.extra_ = value
        with pytest.raises(UnsavableError, match=message):
            mf.save(model, path)
    assert not path.exists()


def nested(depth):
    tree = []
    for _ in range(depth):
        tree = [tree]
    return tree


def test_every_public_estimator_can_be_saved():
    public = [getattr(mf, name) for name in mf.__all__]
    kinds = [k for k in public if inspect.isclass(k) and issubclass(k, BaseEstimator)]
    assert len(kinds) > 20
    for kind in kinds:
        assert model_types.name_of(kind) is not None, f"add {kind} to io.model_types"


def test_arrays_keep_their_order(X, again):
    """Products with arrays in another order of memory have other bits."""
    model = mf.PCA().fit(X)
    wide = np.asfortranarray(np.arange(60.0).reshape(10, 6))
    model.c_, model.f_ = wide.copy("C")[:, ::2], wide[:5]
    same = again(model)
    assert same.c_.flags.c_contiguous
    assert same.f_.strides == model.f_.strides == (8, 80)
    assert np.array_equal(same.f_, model.f_)


def test_saving_over_a_mapped_file_leaves_the_loaded_model(X, tmp_path, monkeypatch):
    monkeypatch.setattr(model_layout, "_SMALL", 0)
    model = mf.LTSA(n_neighbors=8).fit(X)
    path = mf.save(model, tmp_path / "model")
    loaded = mf.load(path)
    mf.save(mf.PCA().fit(X), path)
    assert np.array_equal(loaded.transform(X[:5] + 0.01), model.transform(X[:5] + 0.01))
    assert isinstance(mf.load(path), mf.PCA)
