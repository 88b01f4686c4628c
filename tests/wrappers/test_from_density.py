"""Embeddings of a density against the embeddings of its draws."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline

from manifoldry import PCA, FromDensity, Isomap, KernelPCA, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_swiss_roll
from manifoldry.density import ManifoldParzen, MixtureOfFactorAnalyzers


@pytest.fixture(name="X", scope="module")
def roll():
    return make_swiss_roll(120, random_state=0).X


PARZEN = ManifoldParzen(2, 8, 0.3)
DENSITIES = [
    PARZEN,
    MixtureOfFactorAnalyzers(8, 2),
    KernelDensity(bandwidth=0.5),
    GaussianMixture(8),
]


@pytest.mark.parametrize("given", DENSITIES, ids=lambda given: type(given).__name__)
def test_any_density_can_be_used(X, given):

    def make():
        return FromDensity(KernelPCA(2), given, n_draws=300, random_state=3)

    model = make().fit(X)
    assert model.estimator_.embedding_.shape == (300, 2)
    assert np.array_equal(model.embedding_, make().fit(X).embedding_)  # the seed decides
    other = make().set_params(random_state=4).fit(X)
    assert not np.allclose(np.abs(model.embedding_), np.abs(other.embedding_), atol=1e-6)


def test_it_is_the_estimator_on_draws_of_the_density(X):
    model = FromDensity(KernelPCA(2, gamma=0.02), PARZEN, n_draws=200).fit(X)
    # Those draws again: every one lies where the estimator's own embedding says.
    centered = model.estimator_.embedding_ - model.estimator_.embedding_.mean(axis=0)
    assert np.abs(centered - model.estimator_.embedding_).max() < 1e-9  # centered on the draws,
    assert np.abs(model.embedding_.mean(axis=0)).max() > 1e-3  # not on the data
    assert np.array_equal(model.transform(X), model.embedding_)
    assert np.array_equal(model.transform(X), model.estimator_.transform(X))


def test_pca_of_a_gaussian_has_the_axes_of_its_covariance(rng):
    """PCA of many draws from a Gaussian has the axes of that Gaussian's covariance."""
    X = rng.normal(size=(50, 3)) * [3, 2, 0.5]
    model = FromDensity(PCA(2), GaussianMixture(1), n_draws=50_000).fit(X)
    _, vectors = np.linalg.eigh(np.cov(X.T))
    expected = (X - X.mean(axis=0)) @ vectors[:, :0:-1]
    signs = np.sign((expected * model.embedding_).sum(axis=0))
    assert np.abs(model.embedding_ - expected * signs).max() < 0.15


def test_narrow_windows_give_back_the_embedding(X):
    """As the noise goes to zero, the density is the sample and so is its embedding."""
    narrow = FromDensity(KernelPCA(2, gamma=0.01), ManifoldParzen(0, noise=1e-6), n_draws=3000)
    D, E = pdist(narrow.fit_transform(X)), pdist(KernelPCA(2, gamma=0.01).fit_transform(X))
    assert np.corrcoef(D, E)[0, 1] > 0.99


@pytest.mark.parametrize(
    "estimator", [None, LaplacianEigenmaps(), Isomap(), NonRedundant(LaplacianEigenmaps())]
)
def test_any_embedding_can_be_used(X, estimator):
    model = FromDensity(estimator, PARZEN).fit(X)
    assert model.n_draws_ == 1200
    assert model.embedding_.shape == (120, 2)
    assert np.isfinite(model.embedding_).all()
    back = model.inverse_transform(model.embedding_)
    assert back.shape == X.shape
    assert np.linalg.norm(back - X, axis=1).mean() < 0.5 * X.std()
    _, distance = model.inverse_transform(model.embedding_[:3], return_distance=True)
    assert distance.shape == (3,)


def test_names_frames_and_pipelines(X):
    names = ["a", "b", "c"]
    frame = pd.DataFrame(X, columns=names)
    model = FromDensity(PCA(2), PARZEN, n_draws=100).set_output(transform="pandas")
    Y = model.fit_transform(frame)
    assert (
        list(Y.columns) == ["fromdensity0", "fromdensity1"] == list(model.get_feature_names_out())
    )
    assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[names[::-1]])
    given = PCA(2).set_output(transform="pandas")  # a setting of the inner one changes nothing
    assert isinstance(FromDensity(given, PARZEN, n_draws=100).fit_transform(X), np.ndarray)


def test_grid_search_reaches_inside(X):
    pipeline = make_pipeline(FromDensity(PCA(1), ManifoldParzen(1, 5, 0.3), 100), Ridge())
    grid = {
        "fromdensity__estimator__n_components": [1, 3],
        "fromdensity__density__noise": [0.1, 1.0],
        "fromdensity__n_draws": [100, 200],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, X[:, 2])
    assert search.best_params_["fromdensity__estimator__n_components"] == 3
    assert search.best_score_ > 0.99


def test_given_parts_stay_as_they_are(X):
    estimator, density = PCA(2), ManifoldParzen(0, noise=0.2)
    FromDensity(estimator, density, n_draws=50).fit(X)
    assert not hasattr(estimator, "embedding_")
    assert not hasattr(density, "noise_")


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"estimator": "pca"}, TypeError, "estimator='pca' must have fit and transform"),
        ({"density": PCA()}, TypeError, r"density=PCA\(\) must have fit and sample"),
        ({"n_draws": 1}, ValueError, "n_draws=1 must be at least 2"),
        ({"n_draws": 2.5}, TypeError, "n_draws=2.5 must be a whole number"),
        (
            {"estimator": KernelPCA(kernel="precomputed")},
            ValueError,
            "takes precomputed values.*pass an estimator that takes data",
        ),
        (
            {"estimator": LaplacianEigenmaps(metric="precomputed")},
            ValueError,
            "takes precomputed values",
        ),
    ],
)
def test_bad_parameters_are_named(X, params, error, message):
    with pytest.raises(error, match=message):
        FromDensity(**params).fit(X)


def test_unfitted(X):
    for call in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(FromDensity(), call)(X)
