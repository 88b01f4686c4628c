"""Embeddings of a density against the embeddings of its draws."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifoldry import PCA, FromDensity, Isomap, KernelPCA, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_swiss_roll
from manifoldry.density import ManifoldParzen, MixtureOfFactorAnalyzers
from manifoldry.density.held_out_width import WidthSearch
from manifoldry.metrics import kernel_loss


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
        return FromDensity(KernelPCA(2), given, n_draws=300, width=1, random_state=3)

    model = make().fit(X)
    assert model.estimator_.embedding_.shape == (300, 2)
    assert np.array_equal(model.embedding_, make().fit(X).embedding_)  # the seed decides
    other = make().set_params(random_state=4).fit(X)
    assert not np.allclose(np.abs(model.embedding_), np.abs(other.embedding_), atol=1e-6)


def test_it_is_the_estimator_on_draws_of_the_density(X):
    model = FromDensity(KernelPCA(2, gamma=0.02), PARZEN, n_draws=200, width=1).fit(X)
    # Those draws again: every one lies where the estimator's own embedding says.
    centered = model.estimator_.embedding_ - model.estimator_.embedding_.mean(axis=0)
    assert np.abs(centered - model.estimator_.embedding_).max() < 1e-9  # centered on the draws,
    assert np.abs(model.embedding_.mean(axis=0)).max() > 1e-5  # not on the data
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
    for density, width in ((ManifoldParzen(0, noise=1e-6), 1), (PARZEN, 1e-6)):
        narrow = FromDensity(KernelPCA(2, gamma=0.01), density, width=width).fit_transform(X)
        D, E = pdist(narrow), pdist(KernelPCA(2, gamma=0.01).fit_transform(X))
        # Ten copies of every row: the same eigenvectors, coordinates scaled by √10.
        np.testing.assert_allclose(D, E, atol=1e-4 * E.max())


@pytest.mark.parametrize(
    "estimator", [None, LaplacianEigenmaps(), Isomap(), NonRedundant(LaplacianEigenmaps())]
)
def test_any_embedding_can_be_used(X, estimator):
    model = FromDensity(estimator, PARZEN, random_state=1).fit(X)
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
    pipeline = make_pipeline(FromDensity(PCA(1), ManifoldParzen(1, 5, 0.3), 100, 1), Ridge())
    grid = {
        "fromdensity__estimator__n_components": [1, 3],
        "fromdensity__density__noise": [0.1, 1.0],
        "fromdensity__n_draws": [100, 200],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, X[:, 2])
    assert search.best_params_["fromdensity__estimator__n_components"] == 3
    assert search.best_score_ > 0.99


def test_width_zero_is_the_estimator_itself(X):
    for estimator in (KernelPCA(2), LaplacianEigenmaps()):
        model = FromDensity(estimator, PARZEN, width=0).fit(X)
        assert np.array_equal(model.embedding_, clone(estimator).fit(X).embedding_)
        assert (model.width_, model.n_draws_) == (0.0, len(X))


@pytest.mark.parametrize(
    ("estimator", "density"),
    [
        (None, PARZEN),
        (Isomap(), PARZEN),
        (NonRedundant(), PARZEN),
        (NonRedundant(LaplacianEigenmaps()), PARZEN),
        (NonRedundant(KernelPCA(2)), PARZEN),
        (PCA(2), PARZEN),
        (KernelPCA(2, kernel="linear"), PARZEN),
        (make_pipeline(StandardScaler(), KernelPCA(2)), PARZEN),
        (KernelPCA(2), GaussianMixture(3)),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_auto_chooses_only_for_a_gaussian_kernel_pca(X, estimator, density):
    few = X[:40]
    model = FromDensity(estimator, density).fit(few)
    assert (model.width_, model.width_trials_, model.n_draws_) == (1.0, [], 400)
    chosen = FromDensity(KernelPCA(), PARZEN).fit(few)
    assert [trial.width for trial in chosen.width_trials_] == [0.0, 0.1, 0.3, 0.5]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"widths": (-1,)}, "widths=-1 must be greater than 0"),
        ({"n_folds": 0}, "n_folds=0 must be at least 2"),
        ({"draws_per_row": 0}, "draws_per_row=0 must be at least 1"),
        ({"max_rows": 3}, "max_rows=3 must be at least 4"),
        ({"min_errors": -1.0}, "min_errors=-1.0 must be at least 0"),
    ],
)
def test_bad_searches_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        WidthSearch(**params)


def reference_losses(X, density, widths, d, gamma, draws, seed=0):
    """The held-out loss of each width and fold, from formulas in numpy and scipy."""

    def kernel(P, Q):
        return np.exp(-gamma * cdist(P, Q, "sqeuclidean"))

    rng, found = np.random.default_rng(seed), []
    for part in np.array_split(rng.permutation(len(X)), 5):
        H, T = X[part], np.delete(X, part, axis=0)
        windows = clone(density).fit(T)
        losses = []
        for width in widths:
            S = T
            if width:
                S = windows.sample(draws * len(T), seed, width=width, stratified=True)
            values, vectors = np.linalg.eigh(kernel(S, S))
            Z = kernel(H, S) @ vectors[:, -d:] / np.sqrt(values[-d:])
            error = (kernel(H, H) - Z @ Z.T)[~np.eye(len(H), dtype=bool)]
            losses.append((error**2).mean())
        found.append(losses)
    return np.array(found)


def test_the_width_has_the_least_held_out_loss(rng):
    """Against numpy: on points of a plane, for many coordinates, windows beat the points."""
    X, density = rng.normal(size=(60, 2)), ManifoldParzen(0, noise=0.5)
    model = FromDensity(KernelPCA(10, gamma=0.5), density).fit(X)
    widths, losses = np.transpose(model.width_trials_)
    assert list(widths) == [0.0, 0.1, 0.3, 0.5]
    expected = np.mean([reference_losses(X, density, widths, 10, 0.5, 10, s) for s in range(4)], 0)
    gain = expected.mean(axis=0)[0] - expected.mean(axis=0)
    assert gain[3] > 0.1 * expected.mean(axis=0)[0]
    np.testing.assert_allclose(losses / losses[0], 1 - gain / expected.mean(axis=0)[0], atol=0.15)
    assert model.width_ == 0.5
    held_out = rng.normal(size=(400, 2))

    def loss(fitted):
        return kernel_loss(fitted, held_out).losses[-1]

    plain = KernelPCA(10, gamma=0.5).fit(X)
    assert loss(model.estimator_) < loss(plain)


def test_windows_that_are_far_too_wide_are_not_used(rng):
    X = rng.normal(size=(60, 20))
    model = FromDensity(KernelPCA(2), ManifoldParzen(0, noise=10.0)).fit(X)
    assert model.width_ == 0
    assert [trial.loss for trial in model.width_trials_][1:] > [model.width_trials_[0].loss]
    assert np.array_equal(model.embedding_, KernelPCA(2).fit(X).embedding_)


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_few_rows(n, rng):
    model = FromDensity(KernelPCA(1)).fit(rng.normal(size=(n, 3)))
    assert model.embedding_.shape == (n, 1)
    assert n >= 4 or model.width_ == 0


def test_duplicates_and_scales(X):
    repeated = np.vstack([X[:30], X[:30]])
    plain = FromDensity(KernelPCA(2), PARZEN).fit(repeated)
    for factor in (1e-100, 1e100):
        density = ManifoldParzen(2, 8, 0.3 * factor)
        model = FromDensity(KernelPCA(2), density).fit(repeated * factor)
        assert model.width_ == plain.width_
        np.testing.assert_allclose(model.embedding_, plain.embedding_, atol=1e-6)


@pytest.mark.parametrize(
    ("params", "rows", "message"),
    [
        ({}, np.nan, "NaN"),
        ({"estimator": PCA(9)}, 1.0, "n_components=9"),
        ({"n_draws": 1}, 1.0, "n_draws=1"),
    ],
)
def test_a_fit_that_fails_keeps_the_former_model(X, params, rows, message):
    model = FromDensity(PCA(2), PARZEN, n_draws=50, width=1).fit(X)
    expected = model.transform(X)
    model.set_params(**params)
    before = {**vars(model)}
    with pytest.raises(ValueError, match=message):
        model.fit(rows * X[:50])
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())
    assert np.array_equal(model.transform(X), expected)


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
        ({"estimator": KernelPCA(gamma=-1.0)}, ValueError, "gamma=-1.0 must be greater than 0"),
        ({"estimator": KernelPCA(-1)}, ValueError, "n_components=-1 must be at least 1"),
        ({"width": -0.1}, ValueError, "width=-0.1 must be"),
        ({"width": "wide"}, ValueError, "width='wide' must be one of 'auto'"),
        (
            {"width": 0.5, "density": GaussianMixture(2)},
            ValueError,
            "width=0.5 needs windows around the rows",
        ),
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


def test_narrow_draws_do_not_spoil_the_inverse():
    """An inverse tuned by leaving out draws, but not those of the same row, overfits."""
    X = StandardScaler().fit_transform(load_breast_cancer().data)
    X = X[np.random.default_rng(0).permutation(len(X))]
    train, test = X[:80], X[80:]
    model = FromDensity(KernelPCA(5), width=0.1).fit(train)
    assert model.estimator_.score(test) < 0  # on the draws
    assert model.score(test) > KernelPCA(5).fit(train).score(test)
    Z = model.transform(test)
    data, distance = model.inverse_transform(Z, return_distance=True)
    np.testing.assert_array_equal(data, model.inverse_transform(Z))
    assert distance.shape == (len(test),)
    assert model.inverse_transform(Z.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="X has 4 columns, but the embedding has n_components=5"):
        model.inverse_transform(Z[:, :4])
