import pickle
import sys

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from manifoldry import LLE, PCA, ConformalInverse, Isomap, LaplacianEigenmaps
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import CalibrationWarning
from manifoldry.wrappers.calibration import conformal_quantile


def noisy_line(n, seed):
    """Points along an axis whose distance from it grows with the position."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 10, n)
    return np.column_stack([3 * t, (0.1 + 0.3 * t) * rng.normal(size=n)])


def errors(model, X):
    back, radius, reliable = model.inverse_with_radius(model.transform(X))
    return np.linalg.norm(back - X, axis=1), radius, reliable


@pytest.mark.parametrize("coverage", [0.5, 0.9])
@pytest.mark.parametrize(
    "estimator", [PCA(1), LaplacianEigenmaps(1), LLE(1)], ids=lambda e: type(e).__name__
)
def test_radii_cover_as_often_as_they_say(estimator, coverage):
    covered = []
    for seed in range(8):
        model = ConformalInverse(estimator, coverage, random_state=seed)
        model.fit(noisy_line(240, seed))
        error, radius, _ = errors(model, noisy_line(400, 100 + seed))
        covered.append((error <= radius).mean())
    # Of 60 held-out points each, coverage varies by about .04 from split to split.
    assert abs(np.mean(covered) - coverage) < 0.06


def test_radii_follow_the_noise():
    model = ConformalInverse(PCA(1), random_state=0).fit(noisy_line(1000, 0))
    ends = model.transform(np.array([[1.0, 0.0], [29.0, 0.0]]))
    radius = model.inverse_with_radius(ends).radius
    assert radius[1] > 3 * radius[0]


def test_positions_far_from_the_data_are_unreliable():
    X, _ = make_swiss_roll(600, random_state=0)
    model = ConformalInverse(Isomap(2, n_neighbors=7), random_state=0).fit(X)
    X_new, _ = make_swiss_roll(400, random_state=1)
    assert model.inverse_with_radius(model.transform(X_new)).reliable.mean() > 0.93
    span = np.ptp(model.embedding_, axis=0)
    outside = model.embedding_.max(axis=0) + [[1, 1], [3, 0], [0, 9]] * span
    assert not model.inverse_with_radius(outside).reliable.any()
    usual = np.median(model.inverse_with_radius(model.embedding_).radius)
    far = model.embedding_.max(axis=0) + [[1e3, 1e3]] * span
    assert model.inverse_with_radius(far).radius[0] > 1e3 * usual


def test_a_hole_in_the_embedding_is_unreliable():
    angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    model = ConformalInverse(PCA(2)).fit(ring)
    assert not model.inverse_with_radius(np.zeros((1, 2))).reliable[0]
    assert model.inverse_with_radius(model.transform(ring[:5])).reliable.all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_errors_are_reliable(dtype):
    X = noisy_line(400, 0).astype(dtype)
    model = ConformalInverse(PCA(1)).fit(X[:300])
    assert model.inverse_with_radius(model.transform(X[300:])).reliable.mean() > 0.9


def test_models_fitted_elsewhere_are_calibrated_on_new_data():
    fitted = PCA(1).fit(noisy_line(300, 0))
    before = fitted.embedding_.copy()
    model = ConformalInverse(FrozenEstimator(fitted)).fit(noisy_line(400, 1))
    np.testing.assert_array_equal(fitted.embedding_, before)
    assert len(model.held_out_) == 200
    fewer = ConformalInverse(FrozenEstimator(fitted), calibration=0.1).fit(noisy_line(400, 1))
    assert len(fewer.held_out_) == 40
    error, radius, _ = errors(model, noisy_line(2000, 2))
    assert 0.84 < (error <= radius).mean() < 0.96


FRAMES = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "sparse": lambda columns: pandas.DataFrame(columns).astype(pandas.SparseDtype(float, 0.0)),
}


@pytest.mark.parametrize("frame_of", FRAMES.values(), ids=FRAMES)
@pytest.mark.filterwarnings("error:.*feature names")
def test_models_fitted_on_frames_do_not_warn_about_names(frame_of):
    X = noisy_line(300, 0)
    frame = frame_of({"a": X[:, 0], "b": X[:, 1]})
    models = {}
    for data in (X, frame):
        fitted = FrozenEstimator(PCA(1).fit(data))
        model = models[data is X] = ConformalInverse(fitted, coverage=np.float32(0.8)).fit(data)
        model.inverse_with_radius(model.transform(data[:5]))
    np.testing.assert_allclose(models[False].errors_, models[True].errors_, rtol=1e-10)


@pytest.mark.filterwarnings("error:.*feature names")
def test_models_fitted_on_frames_without_pandas(monkeypatch):
    X = noisy_line(300, 0)
    fitted = PCA(1).fit(polars.DataFrame(X, schema=["a", "b"]))
    monkeypatch.setitem(sys.modules, "pandas", None)
    model = ConformalInverse(FrozenEstimator(fitted)).fit(X)
    np.testing.assert_allclose(model.embedding_, fitted.embedding_, rtol=1e-10)


def test_quantile_is_that_of_one_more_score():
    rng = np.random.default_rng(0)
    held = [rng.normal() <= conformal_quantile(rng.normal(size=19), 0.9) for _ in range(4000)]
    assert 0.89 < np.mean(held) < 0.93  # (n + 1) · .9 = 18 of 20
    assert conformal_quantile(np.arange(8.0), 0.9) == np.inf


def test_too_few_points_say_so():
    with pytest.warns(CalibrationWarning, match="needs at least 9"):
        model = ConformalInverse(PCA(1)).fit(noisy_line(20, 0))
    assert np.isinf(model.inverse_with_radius([[0.0]]).radius).all()


def test_the_estimator_contract():
    check_estimator(ConformalInverse())


def test_sparse_float32_pickles_and_searches():
    X = noisy_line(200, 0).astype(np.float32)
    model = ConformalInverse(PCA(1)).fit(sparse.csr_array(X))
    assert model.embedding_.dtype == np.float32
    again = pickle.loads(pickle.dumps(model))
    for a, b in zip(
        again.inverse_with_radius([[1.0]]), model.inverse_with_radius([[1.0]]), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    search = GridSearchCV(ConformalInverse(PCA()), {"estimator__n_components": [1, 2]}, cv=3).fit(X)
    assert search.best_params_ == {"estimator__n_components": 2}


def test_points_that_were_not_embedded_are_not_used_for_calibration():
    far = np.vstack([noisy_line(200, 0), noisy_line(12, 1) + 1e4])
    estimator = LaplacianEigenmaps(1, n_neighbors=5, disconnected="largest")
    with pytest.warns(UserWarning, match="only the largest"):
        model = ConformalInverse(estimator).fit(far)
    assert np.isfinite(model.factor_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"coverage": 1.0}, "coverage=1.0 must be a number between 0 and 1"),
        ({"calibration": 0}, "calibration=0 must be a number"),
        ({"estimator": 3}, "has no fit"),
        ({"estimator": LaplacianEigenmaps(metric="precomputed")}, "precomputed"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ConformalInverse(**parameters).fit(noisy_line(50, 0))


def test_held_out_points_infinitely_far_from_the_map():
    X = np.random.default_rng(0).normal(size=(40, 2))
    held_out = ConformalInverse(PCA(1), random_state=0).fit(X).held_out_
    X[held_out[:2]] = 1e120
    with np.errstate(all="raise", under="ignore"):
        model = ConformalInverse(PCA(1), random_state=0).fit(X)
    assert np.isfinite(model.errors_).all()
