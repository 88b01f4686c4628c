"""Properties common to all densities."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from manifoldry import ManifoldParzen


@pytest.fixture(name="X")
def corner(rng):
    """Points in a box, concentrated in one corner."""
    return rng.uniform(size=(60, 3)) ** 2 * [4.0, 2.0, 1.0]


@pytest.mark.one_density_per_class
def test_scikit_learn_checks(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks fit degenerate data
        outcomes = check_estimator(clone(model), on_fail=None, on_skip=None)
    assert not [(o["check_name"], o["exception"]) for o in outcomes if o["status"] == "failed"]
    skipped = {o["check_name"] for o in outcomes if o["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # needs an environment variable of scipy
    assert len(outcomes) > 30


def test_score_is_the_mean_of_score_samples(density, X):
    model = clone(density).fit(X)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean(), rel=1e-14)


def test_rows_are_scored_independently(density, X):
    model = clone(density).fit(X)
    together = model.score_samples(X)
    alone = np.concatenate([model.score_samples(row[None]) for row in X])
    np.testing.assert_allclose(alone, together, rtol=1e-10)


@pytest.mark.parametrize("factor", [1e150, 1e-150, 1e200, 1e-200])
def test_units_only_shift_the_log_density(density, X, factor):
    scaled = {"noise": 0.5 * factor} if getattr(density, "noise", None) else {}
    plain = clone(density).fit(X).score_samples(X[:9] + 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = clone(density).set_params(**scaled).fit(X * factor)
        found = model.score_samples((X[:9] + 0.01) * factor)
        drawn = model.sample(50, random_state=0)
    np.testing.assert_allclose(found + 3 * np.log(factor), plain, atol=1e-6)
    drawn = drawn[0] if isinstance(drawn, tuple) else drawn
    assert np.isfinite(drawn).all()
    assert np.abs(drawn).max() < 20 * factor


def test_offset_changes_nothing(density, X):
    rounded = (X + 1e8) - 1e8
    far = clone(density).fit(X + 1e8).score_samples(X[:9] + 1e8)
    np.testing.assert_allclose(far, clone(density).fit(rounded).score_samples(rounded[:9]), 1e-4)


def test_draws_follow_the_density(density, X):
    """Importance weights p/q integrate to one and reproduce the mean of samples from p."""
    model = clone(density).fit(X)
    drawn = model.sample(20_000, random_state=0)
    drawn = drawn[0] if isinstance(drawn, tuple) else drawn
    assert drawn.shape == (20_000, 3)
    # Samples from a wide Gaussian q, weighted by p/q, have the same mean.
    rng = np.random.default_rng(1)
    spread = 1.5 * drawn.std(axis=0)
    proposal = drawn.mean(axis=0) + spread * rng.standard_normal((40_000, 3))
    standard = ((proposal - drawn.mean(axis=0)) / spread) ** 2
    log_q = -0.5 * (standard + np.log(2 * np.pi)).sum(axis=1) - np.log(spread).sum()
    weights = np.exp(model.score_samples(proposal) - log_q)
    assert weights.mean() == pytest.approx(1, abs=0.1)  # integrates to one
    mean = weights @ proposal / weights.sum()
    np.testing.assert_allclose(mean, drawn.mean(axis=0), atol=0.1 * drawn.std(axis=0).max())


def test_draws_repeat_with_the_seed(density, X):
    model = clone(density).fit(X)
    one, two, other = (np.hstack(np.atleast_2d(_rows(model.sample(5, s)))) for s in (0, 0, 1))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    assert _rows(model.sample()).shape == (1, 3)


def _rows(drawn):
    return drawn[0] if isinstance(drawn, tuple) else drawn


def test_float32(model, X):
    narrow, wide = X.astype(np.float32), X.astype(np.float32).astype(float)
    fitted = clone(model).fit(narrow)
    if hasattr(fitted, "score_samples"):
        expected = clone(model).fit(wide).score_samples(wide)
        np.testing.assert_allclose(fitted.score_samples(narrow), expected, rtol=1e-4, atol=1e-4)
        assert _rows(fitted.sample(3, 0)).dtype == np.float32
    if hasattr(fitted, "transform"):
        assert fitted.transform(narrow).dtype == np.float32
        assert fitted.transform(pd.DataFrame(narrow)).dtype == np.float32


def test_pickle_and_input_not_referenced(model, X):
    given = X.copy()
    fitted = clone(model).fit(given)
    answer = getattr(fitted, "score_samples", None) or fitted.transform
    before = answer(X)
    given[:] = 0.0
    assert np.array_equal(answer(X), before)
    copy = pickle.loads(pickle.dumps(fitted))
    again = getattr(copy, "score_samples", None) or copy.transform
    assert np.array_equal(again(X), before)


def test_grid_search_by_likelihood(density, X):
    parameter = "noise" if hasattr(density, "noise") else "reg"
    search = GridSearchCV(clone(density), {parameter: [0.2, 0.5]}, cv=3).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


BAD = {
    "sparse": (lambda X: sparse.csr_array(X), "(?i)sparse"),
    "NaN": (lambda X: np.full_like(X, np.nan), "contains NaN"),
    "infinite": (lambda X: np.full_like(X, np.inf), "contains infinity"),
    "one row": (lambda X: X[:1], r"1 sample\(s\)"),
    "no rows": (lambda X: X[:0], r"0 sample\(s\)"),
    "1-D": (lambda X: X[:, 0], "Expected 2D array"),
    "complex": (lambda X: X + 1j, "Complex data not supported"),
    "masked": (lambda X: np.ma.masked_less(X, 0.01), "masked cells"),
    "words": (lambda X: np.full(X.shape, "word"), "could not convert"),
}


@pytest.mark.parametrize("kind", BAD)
def test_invalid_data(model, X, kind):
    spoil, message = BAD[kind]
    with pytest.raises((ValueError, TypeError), match=message):
        clone(model).fit(spoil(X))


def test_integers_and_lists(density):
    X = np.random.default_rng(0).integers(0, 40, size=(50, 3))
    expected = clone(density).fit(X.astype(float)).score_samples(X.astype(float))
    for given in (X, X.tolist(), X.astype(np.uint8), X.astype(object)):
        np.testing.assert_allclose(clone(density).fit(given).score_samples(given), expected)


def test_far_points_have_a_small_finite_density(density, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = clone(density).fit(X).score_samples(X[:2] + np.array([[1e4], [1e8]]))
    assert np.isfinite(found).all()
    assert found[1] < found[0] < -1e4


def test_a_fit_that_fails_keeps_the_former_model(density, X):
    model = clone(density).fit(X)
    expected = model.score_samples(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((10, 2), np.nan))
    if not getattr(model, "noise", None):  # the noise of equal rows cannot be estimated
        with pytest.raises(ValueError, match="all rows of X coincide"):
            model.fit(np.zeros((10, 2)))
    assert np.array_equal(model.score_samples(X), expected)
    assert model.n_features_in_ == 3


def test_an_interrupted_fit_keeps_the_former_model(density, X, monkeypatch):
    model = clone(density).fit(X)
    before = model.score_samples(X)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "_learn", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:40] * 2)
    assert np.array_equal(model.score_samples(X), before)


def test_points_much_closer_than_the_data_are_wide():
    """Squares of their distances underflow."""
    X = np.array([[0.0, 0.0], [1e-170, 0.0], [0.0, 1e-170], [1e-170, 1e-170], [1.0, 0.0]])
    with np.errstate(all="raise", under="ignore"):
        model = ManifoldParzen().fit(X)
    assert model.noise_ >= 1e-100
    assert np.isfinite(model.score_samples(X)).all()


def test_draws_out_of_range_are_refused(density):
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    model = density.fit(X / np.abs(X).max() * np.float32(3.4e38))
    with pytest.raises(ValueError, match=r"range of float32.*divide the data by a constant"):
        model.sample(500, random_state=0)
