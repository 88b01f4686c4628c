"""Regressors as `extension` and `inverse`: any method takes them, and says what it cannot take."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, kneighbors_graph
from sklearn.svm import SVR

import manifoldry as mf
from manifoldry import NeighborGraph
from manifoldry.metrics import kernel_loss
from manifoldry.spectral import KernelGram, PosedKernel, SpectralEmbedder

RNG = np.random.default_rng(0)
T = RNG.random((120, 2))
X = np.column_stack([T, np.sin(3 * T[:, 0]), T.prod(axis=1)])
NEW = X[:7] + 0.01

METHODS = [
    mf.ClassicalMDS(),
    mf.KernelPCA(),
    mf.LaplacianEigenmaps(),
    mf.DiffusionMaps(),
    mf.SpectralClustering(),
    mf.Isomap(),
    mf.LLE(),
    mf.LTSA(),
    mf.HessianLLE(),
    mf.ConformalEigenmaps(),
    mf.MVU(max_iter=20, n_landmarks=10),
    mf.SNE(max_iter=5),
    mf.SymmetricSNE(max_iter=5),
    mf.TSNE(max_iter=5),
    mf.ElasticEmbedding(weight=10.0, max_iter=5),
    mf.UKR(init="pca", max_iter=5),
]


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_every_method_takes_regressors(method):
    one = KNeighborsRegressor(1)
    model = clone(method).set_params(extension=one, inverse=one).fit(X)
    nearest = cdist(NEW, X).argmin(axis=1)
    np.testing.assert_allclose(model.transform(NEW), model.embedding_[nearest])
    np.testing.assert_allclose(model.transform(X), model.embedding_)
    back = model.inverse_transform(model.embedding_)
    assert np.isin(np.round(back, 12), np.round(X, 12)).all()
    assert not hasattr(one, "n_samples_fit_")  # a copy is fitted
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))


def test_predictions_are_those_of_the_regressor():
    model = mf.LLE(extension=LinearRegression(), inverse=LinearRegression()).fit(X)
    expected = LinearRegression().fit(X, model.embedding_).predict(NEW)
    np.testing.assert_allclose(model.transform(NEW), expected)
    expected = LinearRegression().fit(model.embedding_, X).predict(expected)
    np.testing.assert_allclose(model.inverse_transform(model.transform(NEW)), expected)


def test_a_single_coordinate_stays_a_column():
    one = KNeighborsRegressor(2)
    model = mf.LLE(1, extension=one, inverse=one).fit(X[:, :1])
    assert model.transform(NEW[:, :1]).shape == (7, 1)
    assert model.inverse_transform(model.embedding_).shape == (120, 1)


def test_parameters_of_the_regressor_can_be_searched():
    search = GridSearchCV(
        mf.LLE(extension=KNeighborsRegressor(), inverse=KNeighborsRegressor()),
        {"extension__n_neighbors": [1, 5], "inverse__n_neighbors": [2, 40]},
        cv=3,
    ).fit(X)
    assert search.best_params_["inverse__n_neighbors"] == 2


def test_points_that_are_not_embedded_are_left_out():
    two = np.vstack([X, X[:30] + 100])
    with pytest.warns(UserWarning, match="connected components"):
        model = mf.Isomap(
            disconnected="largest", extension=KNeighborsRegressor(1), inverse=KNeighborsRegressor(1)
        ).fit(two)
    assert np.isnan(model.embedding_[120:]).all()
    assert np.isfinite(model.transform(NEW)).all()
    assert np.isnan(model.transform(two[120:] + 0.01)).all()  # as without a regressor
    np.testing.assert_allclose(model.inverse_transform(model.embedding_[:5]), X[:5])


def test_precomputed_distances_are_the_regressor_s_features():
    D = cdist(X, X)
    model = mf.Isomap(metric="precomputed", extension=KNeighborsRegressor(1)).fit(D)
    placed = model.transform(cdist(NEW, X))
    np.testing.assert_allclose(placed, model.embedding_[cdist(cdist(NEW, X), D).argmin(axis=1)])
    with pytest.raises(ValueError, match=r"inverse=.*fit was given precomputed values"):
        mf.Isomap(metric="precomputed", inverse=KNeighborsRegressor()).fit(D)


def test_a_graph_without_data_has_nothing_to_fit_a_regressor_to():
    graph = NeighborGraph.build(cdist(X, X), 8, metric="precomputed")
    with pytest.raises(
        ValueError, match=r"extension=.*fit was given a neighbor graph without data"
    ):
        mf.LaplacianEigenmaps(extension=KNeighborsRegressor()).fit(graph)


def test_sparse_data():
    one = KNeighborsRegressor(1)
    model = mf.LLE(extension=one, inverse=one).fit(sparse.csr_array(X))
    dense = mf.LLE(extension=one, inverse=one).fit(X)
    np.testing.assert_allclose(model.transform(sparse.csr_array(NEW)), dense.transform(NEW))


@pytest.mark.parametrize("name", ["extension", "inverse"])
@pytest.mark.parametrize(
    "value",
    ["ridge", 3, KNeighborsRegressor, mf.PCA(), KNeighborsClassifier(), mf.SpectralClustering()],
)
def test_what_is_no_regressor_is_refused(name, value):
    model = mf.LLE().fit(X)
    kept = model.embedding_
    with pytest.raises(TypeError, match=rf"{name}=.* must be None or a regressor with fit and"):
        model.set_params(**{name: value}).fit(X)
    np.testing.assert_array_equal(model.embedding_, kept)


class Wrong(KNeighborsRegressor):
    def predict(self, X):
        return super().predict(X)[:, 0]


class Missing(KNeighborsRegressor):
    def predict(self, X):
        return np.full_like(super().predict(X), np.nan)


class Duck:
    def fit(self, X, y):
        return self

    def predict(self, X):
        return X


def test_predictions_are_checked():
    model = mf.LLE(extension=Wrong(), inverse=Wrong()).fit(X)
    with pytest.raises(ValueError, match=r"extension=Wrong.*shape \(7,\) where \(7, 2\) is needed"):
        model.transform(NEW)
    with pytest.raises(ValueError, match=r"inverse=Wrong.*shape \(3,\) where \(3, 4\) is needed"):
        model.inverse_transform(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="predicted NaN or infinity"):
        mf.LLE(extension=Missing()).fit(X).transform(NEW)


def test_what_cannot_be_fitted_is_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(mf.Isomap, "_pose", None)  # would fail
    with pytest.raises(TypeError, match="cannot be cloned; make its class a subclass of"):
        mf.Isomap(extension=Duck()).fit(X)
    with pytest.raises(ValueError, match=r"inverse=.*was given precomputed values"):
        mf.Isomap(metric="precomputed", inverse=KNeighborsRegressor()).fit(cdist(X, X))
    graph = kneighbors_graph(X, 8, mode="distance")
    with pytest.raises(ValueError, match=r"extension=.*was given precomputed values"):
        mf.Isomap(metric="precomputed", extension=KNeighborsRegressor()).fit(graph)


def test_a_replaced_kernel_is_named():
    model = mf.KernelPCA(extension=KNeighborsRegressor()).fit(X)
    with pytest.raises(TypeError, match=r"extension=KNeighborsRegressor\(\) replaces the kernel"):
        kernel_loss(model, NEW)


def test_named_inverses_of_kernel_pca_are_listed():
    with pytest.raises(TypeError, match="inverse='rdge' must be None, 'ridge', 'fixed_point', "):
        mf.KernelPCA(inverse="rdge").fit(X)


def test_a_replaced_extension_has_no_equivalent_kernel():
    model = mf.LaplacianEigenmaps(extension=KNeighborsRegressor()).fit(X)
    with pytest.raises(ValueError, match="has no equivalent kernel; pass extension=None"):
        model.equivalent_kernel(X)


class WithoutInverse(PosedKernel):
    def invert(self, embedding, extension):
        return None


class LinearKernel:
    n_train = len(X)

    def matrix(self, Z):
        return Z @ X.T

    def among(self, Z):
        return Z @ Z.T


class KernelMethod(SpectralEmbedder):
    """A kernel method that defines no inverse."""

    def __init__(self, n_components=None, inverse=None, eigen_solver="auto", random_state=None):
        self.n_components, self.inverse = n_components, inverse
        self.eigen_solver, self.random_state = eigen_solver, random_state

    def _pose(self, data):
        return WithoutInverse(data, KernelGram.of(LinearKernel(), data.rows @ data.rows.T))


def test_a_missing_inverse_is_explained():
    """By what is the case: the method defines none, or the data were never seen."""
    Z = np.zeros((3, 2))
    with pytest.raises(
        ValueError, match="has no inverse, because the method defines none; pass a regr"
    ):
        KernelMethod().fit(X).inverse_transform(Z)
    assert KernelMethod(inverse=KNeighborsRegressor()).fit(X).inverse_transform(Z).shape == (3, 4)
    with pytest.raises(ValueError, match="was fitted on precomputed values"):
        mf.Isomap(metric="precomputed").fit(cdist(X, X)).inverse_transform(Z)


def test_a_regressor_that_cannot_be_fitted_is_named():
    with pytest.raises(ValueError, match=r"inverse=SVR\(\) could not be fitted.*MultiOutputRegres"):
        mf.Isomap(inverse=SVR()).fit(X)
