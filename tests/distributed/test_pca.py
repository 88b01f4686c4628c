"""PCA of distributed rows, against PCA of the same rows in memory."""

import warnings

import dask.array as da
import numpy as np
import pytest

from manifoldry import PCA
from manifoldry.distributed import using_options
from manifoldry.eigen import Randomized
from manifoldry.exceptions import ConvergenceWarning, DominatedCoordinateWarning, RankWarning
from manifoldry.spectral import distributed_pca

ATTRIBUTES = (
    *("mean_", "components_", "explained_variance_", "explained_variance_ratio_"),
    *("eigenvalues_", "computed_eigenvalues_", "loss_", "dimension_hint_", "n_components_"),
)


def cloud(n=2500, d=8, seed=0):
    """Rows whose variances decrease from feature to feature."""
    return np.random.default_rng(seed).normal(size=(n, d)) * np.geomspace(10, 0.5, d) + 3.0


def assert_same_fit(model, X, tolerance=1e-7):
    """The model of a collection equals that of X in memory, signs included."""
    expected = PCA(model.n_components, random_state=model.random_state).fit(X)
    for name in ATTRIBUTES:
        found, wanted = getattr(model, name), getattr(expected, name)
        size = 1.0 if name == "loss_" else np.abs(wanted).max() or 1.0
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * size, err_msg=name)
    size = np.abs(expected.embedding_).max()
    np.testing.assert_allclose(
        model.embedding_.compute(), expected.embedding_, rtol=0, atol=tolerance * size
    )


@pytest.mark.parametrize("chunks", [(2500, 8), (700, 3), ((1, 0, 1499, 1000), 8), (100, 8)])
def test_as_in_memory(chunks):
    X = cloud()
    assert_same_fit(PCA(3).fit(da.from_array(X, chunks=chunks)), X, 1e-12)


@pytest.mark.parametrize("n_components", [None, 1, 8])
def test_numbers_of_components(n_components):
    X = cloud()
    assert_same_fit(PCA(n_components).fit(da.from_array(X, chunks=(600, 8))), X, 1e-12)


@pytest.mark.parametrize(
    ("scale", "offset"), [(1e-3, 1e8), (1e-140, 0.0), (1e140, 0.0), (1.0, -1e12)]
)
def test_scale_and_offset(scale, offset):
    X = cloud() * scale + offset
    assert_same_fit(PCA(3).fit(da.from_array(X, chunks=(600, 8))), X, 1e-10)


def test_single_precision_is_summed_in_double():
    X = (cloud() + 1000).astype(np.float32)
    model = PCA(3).fit(da.from_array(X, chunks=(600, 8)))
    assert model.embedding_.dtype == np.float32 == model.embedding_.compute().dtype
    exact = PCA(3).fit(X.astype(np.float64))
    np.testing.assert_allclose(model.explained_variance_, exact.explained_variance_, rtol=1e-12)
    np.testing.assert_allclose(model.components_, exact.components_, atol=1e-12)


def test_many_features_by_products():
    rng = np.random.default_rng(0)
    d = distributed_pca.MOST_FEATURES + 1
    X = rng.normal(size=(1200, 4)) * [8, 4, 2, 1] @ rng.normal(size=(4, d)) / 40
    X += 0.01 * rng.normal(size=X.shape) + 100
    model = PCA(2, random_state=0).fit(da.from_array(X, chunks=(500, -1)))
    assert "passes over the data" in model.fitted_on_
    expected = PCA(2, random_state=0).fit(X)
    Y, wanted = model.embedding_.compute(), expected.embedding_
    np.testing.assert_allclose(Y, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())
    np.testing.assert_allclose(model.explained_variance_ratio_, expected.explained_variance_ratio_)
    again = PCA(2, random_state=0).fit(da.from_array(X, chunks=(500, -1)))
    np.testing.assert_array_equal(again.components_, model.components_)


def test_a_product_that_stops_early_says_so(monkeypatch):
    monkeypatch.setattr(distributed_pca, "MOST_FEATURES", 100)
    X = da.random.default_rng(0).normal(size=(1500, 200), chunks=(500, 200))
    with pytest.warns(ConvergenceWarning):
        PCA(2, eigen_solver=Randomized(power=1, max_iter=1)).fit(X)


def test_rank_deficient_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2)) @ rng.normal(size=(2, 5))
    with pytest.warns(RankWarning, match="2 positive eigenvalues, so 1 of"):
        model = PCA(3).fit(da.from_array(X, chunks=(400, 5)))
    assert not model.components_[2].any()
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-12)


def test_constant_data():
    with pytest.warns(RankWarning, match="all points coincide"):
        model = PCA(1).fit(da.full((1500, 3), 7.0, chunks=(400, 3)))
    assert not model.embedding_.compute().any()


def test_rows_of_its_own_for_novelty():
    X = cloud()
    model = PCA(2).fit(da.from_array(X, chunks=(600, 8)))
    assert model.fitted_on_ == (
        "all 2500 rows; 1000 of them, drawn at random, are kept to measure the novelty of new rows"
    )
    assert model.landmark_model_.embedding_.shape == (1000, 2)
    far = model.novelty(np.full((1, 8), 1e4))
    assert 0.5 < np.median(model.novelty(X)) < 2 < far[0]


def test_few_rows_are_fitted_in_memory():
    X = cloud(300)
    model = PCA(2).fit(da.from_array(X, chunks=(70, 8)))
    assert model.fitted_on_ == "all rows, on one worker"
    assert_same_fit(model, X, 1e-13)


def test_more_components_than_rows_of_the_sample(monkeypatch):
    monkeypatch.setattr(distributed_pca, "SAMPLE", 5)
    X = cloud(100)
    assert_same_fit(PCA(7).fit(da.from_array(X, chunks=(30, 8))), X, 1e-12)
    with pytest.raises(ValueError, match="n_components=9 must be at most"):
        PCA(9).fit(da.from_array(X, chunks=(30, 8)))


def test_landmarks_are_asked_for():
    X = da.from_array(cloud(), chunks=(600, 8))
    with using_options(landmarks=100):
        assert PCA(2).fit(X).fitted_on_.startswith("100 of 2500 rows")


def test_rows_that_dominate_have_their_own_numbers(monkeypatch):
    monkeypatch.setattr(distributed_pca, "SAMPLE", 1500)
    X = cloud(2000)
    X[np.arange(0, 2000, 400)] = 1e5
    with pytest.warns(DominatedCoordinateWarning) as caught:
        PCA(1).fit(da.from_array(X, chunks=(600, 8)))
    [message] = [str(each.message) for each in caught]
    numbers = [
        int(word.strip(","))
        for word in message.split(" hold")[0].split()
        if word[0] in "0123456789"
    ]
    assert numbers
    assert all(number % 400 == 0 for number in numbers)


@pytest.mark.parametrize("eigen_solver", ["dense", "lanczos", "randomized"])
def test_solvers(eigen_solver):
    X = cloud()
    model = PCA(2, eigen_solver=eigen_solver).fit(da.from_array(X, chunks=(600, 8)))
    assert_same_fit(model, X)
    with pytest.raises(ValueError, match="eigen_solver"):
        PCA(2, eigen_solver="best").fit(da.from_array(X, chunks=(600, 8)))


def test_on_workers(client):
    X = cloud()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PCA(3).fit(da.from_array(X, chunks=(600, 8)))
        assert_same_fit(model, X, 1e-12)
