"""Mixtures of factor analyzers against FactorAnalysis, GaussianMixture and full Gaussians."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from manifoldry.datasets import make_s_curve
from manifoldry.density import MixtureOfFactorAnalyzers
from manifoldry.exceptions import ConvergenceWarning, RankWarning


def factor_data(rng, n=400, n_features=6, n_factors=2):
    loadings = rng.normal(size=(n_features, n_factors))
    noise = rng.uniform(0.5, 1.0, n_features)
    return rng.normal(size=(n, n_factors)) @ loadings.T + noise * rng.normal(size=(n, n_features))


def two_sheets(rng, n=300):
    """Two distant planes in five dimensions, each with its own noise."""
    parts = [
        rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + spread * rng.normal(size=(n, 5))
        for spread in (0.1, 0.4)
    ]
    return np.vstack([parts[0], parts[1] + 12.0]), np.repeat([0, 1], n)


def covariances(model):
    return [L @ L.T + np.diag(s**2) for L, s in zip(model.loadings_, model.noise_, strict=True)]


@pytest.mark.parametrize("scale", [np.ones(8), np.array([1e-3, 1, 1, 50, 1, 1, 1, 1])])
def test_one_component_is_factor_analysis(rng, scale):
    """In any units; scikit-learn is fitted in equal units, where it is most accurate."""
    X, fresh = np.split(factor_data(rng, 800, n_features=8), 2)
    model = MixtureOfFactorAnalyzers(1, 2, tol=1e-10, max_iter=5000).fit(X * scale)
    oracle = FactorAnalysis(2, tol=1e-10, max_iter=5000, svd_method="lapack").fit(X)
    assert model.converged_
    shift = np.log(scale).sum()
    assert model.score(X * scale) + shift == pytest.approx(oracle.score(X), abs=1e-6)
    found, expected = model.score_samples(fresh * scale) + shift, oracle.score_samples(fresh)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    np.testing.assert_allclose((model.noise_[0] / scale) ** 2, oracle.noise_variance_, rtol=1e-3)
    np.testing.assert_allclose(model.means_[0] / scale, oracle.mean_, atol=1e-9)


def test_all_factors_are_a_gaussian_mixture(rng):
    """With as many factors as features, any covariance is possible."""
    X, _ = two_sheets(rng)
    model = MixtureOfFactorAnalyzers(2, 5, tied_noise=False, tol=1e-9, max_iter=5000).fit(X)
    oracle = GaussianMixture(2, reg_covar=1e-12, tol=1e-9, max_iter=1000, random_state=0).fit(X)
    assert model.score(X) == pytest.approx(oracle.score(X), abs=1e-3)


@pytest.mark.parametrize("tied", [True, False])
def test_density_is_that_of_the_gaussians(rng, tied):
    X, _ = two_sheets(rng)
    model = MixtureOfFactorAnalyzers(3, 2, tied_noise=tied).fit(X)
    logs = [
        np.log(w) + multivariate_normal(m, C).logpdf(X)
        for w, m, C in zip(model.weights_, model.means_, covariances(model), strict=True)
    ]
    np.testing.assert_allclose(model.score_samples(X), logsumexp(logs, axis=0), rtol=1e-8)
    expected = np.exp(np.array(logs) - logsumexp(logs, axis=0)).T
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-8)
    assert np.array_equal(model.predict(X), expected.argmax(axis=1))
    assert (np.ptp(model.noise_, axis=0).max() < 1e-12) == tied


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("reg", [1e-6, 0.3])
def test_likelihood_never_decreases(rng, tied, reg):
    X, _ = make_s_curve(300, noise=0.05, random_state=0)
    model = MixtureOfFactorAnalyzers(6, 2, tied_noise=tied, reg=reg, max_iter=3000).fit(X)
    assert len(model.trace_) > 5
    assert (np.diff(model.trace_) >= -1e-12).all()
    assert model.trace_[-1] == pytest.approx(model.score(X), rel=1e-10)
    assert (model.noise_**2 >= reg * X.var(axis=0) * (1 - 1e-9)).all()


def test_sheets_are_separated(rng):
    X, labels = two_sheets(rng)
    model = MixtureOfFactorAnalyzers(2, 2, tied_noise=False).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) == 1
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.noise_[order].mean(axis=1), [0.1, 0.4], rtol=0.15)
    np.testing.assert_allclose(model.weights_, 0.5)


def test_local_coordinates_are_conditional_means(rng):
    """E[z | y] = Λᵀ(ΛΛᵀ + Ψ)⁻¹(y − μ), with the D × D matrix that the code avoids."""
    X, _ = two_sheets(rng)
    model = MixtureOfFactorAnalyzers(2, 2).fit(X)
    labels, Z = model.local_coordinates(X)
    assert np.array_equal(labels, model.predict(X))
    assert np.array_equal(Z, model.transform(X))
    for x, j, z in zip(X[::50], labels[::50], Z[::50], strict=True):
        expected = model.loadings_[j].T @ np.linalg.solve(
            covariances(model)[j], x - model.means_[j]
        )
        np.testing.assert_allclose(z, expected, atol=1e-8)


def test_inverse_transform(rng):
    X, _ = make_s_curve(600, noise=0.02, random_state=0)
    model = MixtureOfFactorAnalyzers(12, 2, n_init=2, tol=1e-3, random_state=0).fit(X)
    labels, Z = model.local_coordinates(X)
    back = model.inverse_transform(Z, labels)
    assert np.array_equal(back, model.reconstruct(X))
    assert np.abs(back - X).mean() < 0.1 * X.std()
    expected = model.means_[labels] + np.einsum("nfl,nl->nf", model.loadings_[labels], Z)
    np.testing.assert_allclose(back, expected, atol=1e-12)


def test_factors_are_independent_given_the_data(rng):
    model = MixtureOfFactorAnalyzers(1, 3).fit(factor_data(rng, n_factors=3))
    A = model.loadings_[0] / model.noise_[0][:, None]
    precision = A.T @ A
    off = precision - np.diag(np.diag(precision))
    assert np.abs(off).max() < 1e-9 * precision.max()
    assert (np.diff(np.diag(precision)) < 0).all()


def test_bic_selects_the_number_of_sheets(rng):
    X, _ = two_sheets(rng)
    models = {
        m: MixtureOfFactorAnalyzers(m, 2, tied_noise=False, n_init=2, random_state=0).fit(X)
        for m in (1, 2, 3)
    }
    assert min(models, key=lambda m: models[m].bic(X)) == 2


def test_bic_counts_parameters(rng):
    """One factor in three features: a full covariance has as many parameters."""
    X = factor_data(rng, n_features=3)
    model = MixtureOfFactorAnalyzers(1, 1).fit(X)  # 3 means, 3 loadings, 3 noises
    assert model.bic(X) == pytest.approx(-2 * len(X) * model.score(X) + 9 * np.log(len(X)))


def test_more_initializations_are_no_worse(rng):
    X, _ = make_s_curve(200, noise=0.05, random_state=0)
    once = MixtureOfFactorAnalyzers(5, 2, random_state=0).fit(X)
    often = MixtureOfFactorAnalyzers(5, 2, n_init=5, random_state=0).fit(X)
    assert often.score(X) >= once.score(X)


def test_components_without_points_are_removed(rng):
    X = np.vstack([rng.normal(size=(100, 3)), [[40.0, 0, 0], [40.1, 0, 0]]])
    with pytest.warns(RankWarning, match=r"1 of 2 components had fewer than n_factors \+ 2 = 4"):
        model = MixtureOfFactorAnalyzers(2, 2, tol=1e-3).fit(X)
    assert model.n_components_ == 1
    assert model.weights_ == pytest.approx([1.0])
    assert (np.diff(model.trace_) >= -1e-12).all()


def test_no_convergence_warns(rng):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = MixtureOfFactorAnalyzers(1, 2, max_iter=2).fit(factor_data(rng))
    assert not model.converged_
    assert model.n_iter_ == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MixtureOfFactorAnalyzers(1, 2, tol=0.1).fit(factor_data(rng)).converged_


def test_constant_and_repeated_features(rng):
    X = factor_data(rng, 100, 3)
    X = np.column_stack([X, np.full(100, 5.0), X[:, 0]])
    model = MixtureOfFactorAnalyzers(1, 2).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.loadings_).all()


def test_draws_have_the_mixtures_moments(rng):
    X, _ = two_sheets(rng)
    model = MixtureOfFactorAnalyzers(2, 2, tied_noise=False).fit(X)
    drawn, labels = model.sample(40_000, random_state=0)
    for j, C in enumerate(covariances(model)):
        part = drawn[labels == j]
        np.testing.assert_allclose(len(part) / 40_000, model.weights_[j], atol=0.01)
        np.testing.assert_allclose(np.cov(part.T), C, atol=0.04 * np.abs(C).max())
        np.testing.assert_allclose(part.mean(axis=0), model.means_[j], atol=0.1)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_few_points(rng, n):
    X = rng.normal(size=(n, 3))
    assert np.isfinite(MixtureOfFactorAnalyzers().fit(X).score_samples(X)).all()


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components=0 must be at least 1"),
        ({"n_components": 21}, ValueError, "n_components=21 must be at most .*distinct rows, 20"),
        ({"n_factors": 4}, ValueError, "n_factors=4 must be at most n_features=3; pass"),
        ({"n_factors": 0}, ValueError, "n_factors=0 must be at least 1"),
        ({"reg": 0}, ValueError, "reg=0 must be greater than 0"),
        ({"tol": -1}, ValueError, "tol=-1 must be at least 0"),
        ({"max_iter": 0}, ValueError, "max_iter=0 must be at least 1"),
        ({"n_init": 0}, ValueError, "n_init=0 must be at least 1"),
        ({"random_state": "x"}, TypeError, "random_state='x' must be a whole number"),
    ],
)
def test_invalid_parameters(rng, params, error, message):
    with pytest.raises(error, match=message):
        MixtureOfFactorAnalyzers(**params).fit(rng.normal(size=(20, 3)))


def test_coinciding_rows():
    with pytest.raises(ValueError, match="all rows of X coincide"):
        MixtureOfFactorAnalyzers().fit(np.ones((9, 2)))


def test_labels_are_checked(rng):
    X, _ = two_sheets(rng)
    model = MixtureOfFactorAnalyzers(2, 2).fit(X)
    Z = np.zeros((3, 2))
    for labels, message in [
        (None, "labels are required"),
        ([0, 1], "3 integers"),
        ([0, 1, 2], "between 0 and n_components_ - 1 = 1"),
        ([0.0, 1.0, 1.0], "3 integers"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.inverse_transform(Z, labels)
    with pytest.raises(ValueError, match="X has 3 columns; pass n_factors_=2"):
        model.inverse_transform(np.zeros((3, 3)), [0, 0, 0])
