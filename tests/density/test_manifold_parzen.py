"""Manifold Parzen windows against their definition, KernelDensity and quadrature."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.neighbors import KernelDensity

from manifoldry.density import ManifoldParzen, ParzenOptions
from manifoldry.exceptions import RankWarning


def covariance(X, i, others, d, noise):
    """Covariance of the window of point i with neighbors `others`, by definition."""
    _, s, Vt = np.linalg.svd(X[others] - X[i], full_matrices=False)
    V = Vt[:d]
    C = V.T @ np.diag(s[:d] ** 2 / max(1, len(others))) @ V
    return C + noise**2 * np.eye(X.shape[1])


def nearest(X, k):
    D = np.linalg.norm(X[:, None] - X, axis=2)
    return np.argsort(D, axis=1)[:, 1 : k + 1]


def by_definition(X, points, d, k, noise, n_nearest=None):
    N = nearest(X, k)
    logs = np.array(
        [
            multivariate_normal(X[i], covariance(X, i, N[i], d, noise)).logpdf(points)
            for i in range(len(X))
        ]
    )
    far = np.argsort(np.linalg.norm(X[:, None] - points, axis=2), axis=0)[n_nearest or len(X) :]
    np.put_along_axis(logs, far, -np.inf, axis=0)
    return logsumexp(logs, axis=0) - np.log(len(X))


def left_out_by_definition(X, d, k, noise):
    """Mean log density of each point under the others, whose neighbors exclude it."""
    N, found = nearest(X, k), []
    for i in range(len(X)):
        rest = [j for j in range(len(X)) if j != i]
        logs = [
            multivariate_normal(X[j], covariance(X, j, N[j][N[j] != i], d, noise)).logpdf(X[i])
            for j in rest
        ]
        found.append(logsumexp(logs) - np.log(len(rest)))
    return np.mean(found)


@pytest.mark.parametrize("n_features", [2, 4, 12])
@pytest.mark.parametrize(("d", "k"), [(1, 5), (2, 6), (2, 2)])
def test_density_is_that_of_the_definition(rng, n_features, d, k):
    X = rng.normal(size=(40, n_features)) * np.linspace(1, 0.2, n_features)
    model = ManifoldParzen(d, k, 0.15).fit(X)
    points = np.vstack([X[:5], rng.normal(size=(20, n_features))])
    expected = by_definition(X, points, d, k, 0.15)
    np.testing.assert_allclose(model.score_samples(points), expected, rtol=1e-9)


@pytest.mark.parametrize("batch", [1, 100, 2**17])
@pytest.mark.parametrize("n_nearest", [1, 7, 40])
def test_nearest_windows_are_those_of_the_definition(rng, n_nearest, batch):
    """Some windows are near all points, others near none, with batches of any size."""
    X = rng.normal(size=(40, 3)) * [1, 1, 0.1]
    points = np.vstack([X[:5], 0.1 * rng.normal(size=(30, 3)), [[8.0, 8.0, 8.0]]])
    model = ManifoldParzen(2, 6, 0.15, n_nearest=n_nearest).fit(X)
    mixture = model._mixture
    model._mixture = replace(mixture, windows=replace(mixture.windows, batch=batch))
    expected = by_definition(X, points, 2, 6, 0.15, n_nearest)
    np.testing.assert_allclose(model.score_samples(points), expected, rtol=1e-9)
    one_by_one = [model.score_samples(point[None])[0] for point in points]
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-9)


@pytest.mark.parametrize("n_nearest", [3, 20])
def test_truncation_is_the_contribution_of_the_other_windows(rng, n_nearest):
    X = rng.normal(size=(40, 3))
    options = ParzenOptions(n_draws=3000)
    model = ManifoldParzen(2, 6, 0.3, n_nearest=n_nearest, options=options).fit(X)
    points = model.sample(3000, random_state=1)
    whole = by_definition(X, points, 2, 6, 0.3)
    missed = whole - by_definition(X, points, 2, 6, 0.3, n_nearest)
    assert model.truncation_ == pytest.approx(missed.mean(), abs=5 * missed.std() / np.sqrt(3000))


@pytest.mark.parametrize("n_features", [1, 3, 20])
def test_no_axes_give_the_isotropic_estimator(rng, n_features):
    X, points = rng.normal(size=(70, n_features)), rng.normal(size=(30, n_features))
    model = ManifoldParzen(0, noise=0.4).fit(X)
    expected = KernelDensity(bandwidth=0.4).fit(X).score_samples(points)
    np.testing.assert_allclose(model.score_samples(points), expected, rtol=1e-10)
    assert (model.n_components_, model.n_neighbors_, model.noise_) == (0, 0, 0.4)


def test_duplicate_rows_are_weighted_by_multiplicity(rng):
    X = rng.normal(size=(30, 2))
    often = np.vstack([X, X[:10], X[:3]])
    model = ManifoldParzen(0, noise=0.4).fit(often)
    expected = KernelDensity(bandwidth=0.4).fit(often).score_samples(X)
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-10)


def test_integrates_to_one(rng):
    angle = rng.uniform(0, 5, 40)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.03 * rng.normal(size=(40, 2))
    model = ManifoldParzen(1, 6, 0.08).fit(X)
    side = np.arange(-3, 3, 0.02)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    assert np.exp(model.score_samples(grid)).sum() * 0.02**2 == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("d", "k"), [(0, 0), (1, 4), (2, 5), (3, 3)])
def test_likelihood_of_points_left_out(rng, d, k):
    X = rng.normal(size=(30, 4)) * [1, 1, 0.2, 0.1]
    model = ManifoldParzen(d, k or None, 0.2).fit(X)
    assert model.loglikelihood_ == pytest.approx(left_out_by_definition(X, d, k, 0.2), rel=1e-9)
    assert model.loglikelihood_.exact


def test_noise_maximizes_the_likelihood(rng):
    X = rng.normal(size=(25, 3)) * [1, 1, 0.1]
    model = ManifoldParzen(2, 6).fit(X)
    noises = model.noise_ * np.array([1.0, 0.9, 1.1, 0.3, 3.0])
    found = [left_out_by_definition(X, 2, 6, noise) for noise in noises]
    assert np.argmax(found) == 0


@pytest.fixture(scope="module")
def helix_model(helix):
    """The default model of the helix, for tests that do not modify it."""
    return ManifoldParzen().fit(helix)


def test_leave_one_out_likelihood_predicts_that_of_new_points(helix_model, fresh_helix):
    model = helix_model
    assert model.loglikelihood_ == pytest.approx(model.score(fresh_helix), abs=0.15)


def test_as_many_axes_as_neighbors_do_not_make_the_noise_vanish(rng):
    """Windows with a left-out point as neighbor would contain it exactly."""
    X = rng.normal(size=(80, 6))
    assert ManifoldParzen(3, 3).fit(X).noise_ > 0.1


def test_duplicates_do_not_make_the_noise_vanish(rng):
    X = rng.normal(size=(60, 3))
    once, thrice = ManifoldParzen().fit(X), ManifoldParzen().fit(np.repeat(X, 3, axis=0))
    assert thrice.noise_ == pytest.approx(once.noise_, rel=1e-9)
    np.testing.assert_allclose(thrice.score_samples(X), once.score_samples(X), rtol=1e-9)


def test_noisy_curve_has_one_axis(helix_model, helix, fresh_helix):
    assert helix_model.n_components_ == 1
    # Better than isotropic windows, even with a bandwidth chosen on the new points.
    best_isotropic = max(
        KernelDensity(bandwidth=h).fit(helix).score(fresh_helix)
        for h in np.geomspace(0.005, 0.5, 30)
    ) / len(fresh_helix)
    assert helix_model.score(fresh_helix) > best_isotropic + 0.3


def test_trials(helix_model, helix):
    model = helix_model
    best = max(model.trials_, key=lambda trial: trial.loglikelihood)
    assert best == (model.n_components_, model.n_neighbors_, model.noise_, model.loglikelihood_)
    assert {trial.n_components for trial in model.trials_} == {0, 1, 2, 3}
    given = ManifoldParzen(1).fit(helix[::3])
    assert {trial.n_components for trial in given.trials_} == {1}


def test_mean_of_draws_is_that_of_the_data(helix_model, helix):
    drawn = helix_model.sample(40_000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), helix.mean(axis=0), atol=0.02)


@pytest.mark.parametrize("params", [{"n_components": 2, "n_neighbors": 10}, {"n_components": 0}])
def test_truncation_is_accurate(rng, params):
    """Truncation, with more points than are summed exactly, against the exact sum."""
    X, fresh = rng.uniform(size=(2, 600, 3)) * [3, 2, 0.1]
    exact = ManifoldParzen(**params).fit(X)
    model = ManifoldParzen(**params, options=ParzenOptions(max_exact=300)).fit(X)
    assert exact.n_nearest_ == 600
    assert exact.truncation_ == 0
    assert model.n_nearest_ < 600
    truncation = exact.score_samples(fresh) - model.score_samples(fresh)
    assert (truncation >= -1e-12).all()  # a sum of fewer windows is a lower bound
    assert model.truncation_ <= 1e-3
    assert truncation.mean() < 5e-3


def test_given_number_of_nearest_windows(helix):
    model = ManifoldParzen(1, 5, 0.02, n_nearest=10).fit(helix)
    assert model.n_nearest_ == 10
    assert model.truncation_ > 0
    assert ManifoldParzen(1, 5, 0.02, n_nearest=10_000).fit(helix).n_nearest_ == 300


def test_sample_of_left_out_points(helix):
    all_points = ManifoldParzen(1, 10).fit(helix)
    some = ManifoldParzen(1, 10, options=ParzenOptions(max_left_out=100, max_windows=60)).fit(helix)
    assert some.loglikelihood_.low < all_points.loglikelihood_ < some.loglikelihood_.high
    assert some.noise_ == pytest.approx(all_points.noise_, rel=0.15)


def test_data_in_a_plane_warn(rng):
    plane = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 4))
    with pytest.warns(RankWarning, match="exactly on a 2-dimensional surface"):
        model = ManifoldParzen(2).fit(plane)
    assert 0 < model.noise_ < 1e-2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(ManifoldParzen(2, noise=0.1).fit(plane).score(plane))


def test_points_that_all_coincide():
    X = np.full((10, 3), 7.0)
    with pytest.raises(ValueError, match=r"all rows of X coincide.*pass a positive noise"):
        ManifoldParzen().fit(X)
    model = ManifoldParzen(noise=0.5).fit(X)
    expected = multivariate_normal(X[0], 0.25).logpdf(X[0] + 0.1)
    assert model.score(X[:1] + 0.1) == pytest.approx(expected)
    assert model.loglikelihood_ == -np.inf


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_few_points(rng, n):
    X = rng.normal(size=(n, 2))
    model = ManifoldParzen().fit(X)
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_components": 4}, ValueError, "n_components=4 must be at most n_features=3; pass"),
        ({"n_components": -1}, ValueError, "n_components=-1 must be at least 0"),
        ({"n_components": 1.5}, TypeError, "n_components=1.5 must be a whole number"),
        ({"n_neighbors": 20}, ValueError, "n_neighbors=20 must be less than .* distinct rows, 20"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors=0 must be at least 1"),
        ({"n_components": 3, "n_neighbors": 2}, ValueError, "n_neighbors=2 must be at least 3"),
        ({"noise": 0.0}, ValueError, "noise=0.0 must be greater than 0"),
        ({"noise": np.nan}, ValueError, "noise=nan must be finite"),
        ({"noise": "some"}, TypeError, "noise='some' must be a number"),
        ({"noise": 1e-200}, ValueError, "noise=1e-200 is too small or too large"),
        ({"n_nearest": 0}, ValueError, "n_nearest=0 must be at least 1"),
    ],
)
def test_invalid_parameters(rng, params, error, message):
    with pytest.raises(error, match=message):
        ManifoldParzen(**params).fit(rng.normal(size=(20, 3)))


def test_invalid_n_samples(helix):
    model = ManifoldParzen(0, noise=1.0).fit(helix)
    with pytest.raises(ValueError, match="n_samples=0 must be at least 1"):
        model.sample(0)


@pytest.mark.parametrize("count", [300, 950])
def test_stratified_draws(rng, count):
    """Rows that are far apart get numbers of draws within one of equal, by multiplicity."""
    X = 1e3 * np.arange(100.0)[:, None] * [1.0, -2.0]
    X = np.vstack([X, X[:5]])  # five rows twice
    model = ManifoldParzen(0, noise=1.0).fit(X)
    expected = count * (1 + (np.arange(100) < 5)) / 105
    numbers = np.array(
        [
            np.bincount(
                np.rint(model.sample(count, s, stratified=True)[:, 0] / 1e3).astype(int),
                minlength=100,
            )
            for s in range(50)
        ]
    )
    assert (numbers.sum(axis=1) == count).all()
    assert (np.abs(numbers - expected) < 1 + 1e-9).all()
    assert np.abs(numbers.mean(axis=0) - expected).max() < 0.3  # unbiased
    random = np.rint(model.sample(count, 0)[:, 0] / 1e3).astype(int)
    assert np.abs(np.bincount(random, minlength=100) - expected).max() > 2


@pytest.mark.parametrize("stratified", [False, True])
def test_width_multiplies_the_steps(helix, stratified):
    model = ManifoldParzen(1, 5, 0.1).fit(helix)
    at_rows, half, whole = (
        model.sample(2000, 0, width=width, stratified=stratified) for width in (0, 0.5, 1)
    )
    np.testing.assert_allclose(half, (at_rows + whole) / 2, atol=1e-12)
    assert cdist(at_rows, helix).min(axis=1).max() < 1e-9
    with pytest.raises(ValueError, match="width=-1"):
        model.sample(2, width=-1)
