"""Kernel PCA's ways back to the data."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import cdist, pdist

from manifoldry.affinity.dense import median_rbf
from manifoldry.extension import preimage
from manifoldry.extension.preimage import FixedPoint, KernelRidge, ridge_leave_one_out_errors


@pytest.fixture
def rng():
    return np.random.default_rng(17)


def gaussian(A, B, Z):
    """exp(−d²/median d²), the median over the pairs of Z."""
    return np.exp(-cdist(A, B, "sqeuclidean") / np.median(pdist(Z) ** 2))


def kernel_pca(X, n_components=None, kind=np.asarray):
    """Kernel, dual vectors and map of a Gaussian kernel PCA by dense linear algebra."""
    rbf = median_rbf(kind(X))
    n = len(X)
    H = np.eye(n) - 1 / n
    values, V = eigh(H @ gaussian(X, X, X) @ H)
    kept = slice(None, None if n_components is None else -n_components - 1, -1)
    values, V = values[kept], V[:, kept]
    positive = values > 1e-9 * values[0]
    values, V = values[positive], V[:, positive]
    return rbf, V / np.sqrt(values), V * np.sqrt(values)


# --- kernel ridge ------------------------------------------------------------------------------


def test_leave_one_out_by_refitting(rng):
    Z = rng.normal(size=(25, 2))
    Y = np.sin(2 * Z) + 0.1 * rng.normal(size=Z.shape)
    K = gaussian(Z, Z, Z)
    ridges = np.array([1e-6, 1e-3, 1e-1, 1.0])
    expected = []
    for ridge in ridges:
        residuals = []
        for i in range(25):
            rest = np.delete(np.arange(25), i)
            A = K[np.ix_(rest, rest)] + ridge * np.eye(24)
            residuals.append(Y[i] - K[i, rest] @ np.linalg.solve(A, Y[rest]))
        expected.append((np.array(residuals) ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(ridge_leave_one_out_errors(K, Y, ridges), expected, rtol=1e-7)


def test_predictions_are_those_of_kernel_ridge_regression(rng):
    Z, new = rng.normal(size=(40, 2)), rng.normal(size=(12, 2))
    X = np.hstack([np.sin(Z), Z**2]) + 5
    K = gaussian(Z, Z, Z)
    mean = X.mean(axis=0)
    expected = mean + gaussian(new, Z, Z) @ np.linalg.solve(K + 1e-3 * np.eye(40), X - mean)
    np.testing.assert_allclose(KernelRidge(Z, X, 1e-3).predict(new), expected, rtol=1e-9)


def test_a_tiny_ridge_interpolates(rng):
    Z = rng.uniform(size=(30, 2))
    X = np.hstack([np.sin(3 * Z), Z**2])
    np.testing.assert_allclose(KernelRidge(Z, X, 1e-12).predict(Z), X, atol=1e-7)


def test_the_ridge_is_large_for_noise_and_small_for_smooth_data(rng):
    Z = rng.uniform(size=(150, 2))
    smooth = np.sin(3 * Z)
    noisy = smooth + 0.5 * rng.normal(size=Z.shape)
    assert KernelRidge(Z, smooth).ridge_ <= 1e-8
    assert KernelRidge(Z, noisy).ridge_ >= 1e-2
    chosen = KernelRidge(Z, noisy)
    errors = [((KernelRidge(Z, noisy, r).predict(Z) - smooth) ** 2).mean() for r in (1e-10, 1.0)]
    assert ((chosen.predict(Z) - smooth) ** 2).mean() <= min(errors) * 1.01


@pytest.mark.parametrize("scale", [1e-150, 1e200])
def test_units_of_the_data_do_not_choose_the_ridge(rng, scale):
    Z = rng.uniform(size=(60, 2))
    X = np.sin(3 * Z) + 0.1 * rng.normal(size=Z.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert KernelRidge(Z, X * scale).ridge_ == KernelRidge(Z, X).ridge_


@pytest.mark.parametrize("ridge", [None, 1e-300, 1e-16])
def test_coinciding_positions_and_tiny_ridges_do_not_break_the_factorization(rng, ridge):
    Z = np.repeat(rng.normal(size=(100, 2)), 5, axis=0)
    X = np.repeat(rng.normal(size=(100, 3)), 5, axis=0)
    predicted = KernelRidge(Z, X, ridge).predict(np.vstack([Z[:9], [[1e3, 0.0]]]))
    assert np.isfinite(predicted).all()


def test_far_from_the_map_ridge_regression_returns_the_mean(rng):
    Z, X = rng.normal(size=(40, 2)), rng.normal(size=(40, 3))
    predicted = KernelRidge(Z, X).predict(np.array([[1e6, 1e6]]))
    np.testing.assert_allclose(predicted[0], X.mean(axis=0), rtol=1e-12)


def test_ridge_predictions_do_not_depend_on_the_batch(rng):
    Z = rng.normal(size=(60, 2))
    ridge = KernelRidge(Z.astype(np.float32), np.sin(Z))
    new = rng.normal(size=(20, 2))
    alone = np.vstack([ridge.predict(new[i : i + 1]) for i in range(20)])
    np.testing.assert_allclose(ridge.predict(new), alone, atol=1e-7)


# --- fixed point -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_training_point_is_recovered_from_all_its_coordinates(rng, kind):
    X = rng.normal(size=(25, 3)) * 3
    rbf, dual, Z = kernel_pca(X, kind=kind)
    assert Z.shape[1] == 24
    np.testing.assert_allclose(FixedPoint(rbf, dual, Z).predict(Z), X, atol=1e-6)


def test_a_point_between_training_points_is_recovered(rng):
    """Its image is not that of a training point, so the iteration has to travel."""
    X = np.linspace(0, 3, 40)[:, None] * [[1.0, 0.5]]
    rbf, dual, Z = kernel_pca(X)
    truth = np.array([[1.0, 0.5]]) * np.array([[0.71], [1.93], [2.5]])
    K, k = gaussian(X, X, X), gaussian(truth, X, X)
    centered = k - k.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    np.testing.assert_allclose(FixedPoint(rbf, dual, Z).predict(centered @ dual), truth, atol=1e-4)


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_any_position_gives_a_finite_point(rng, n_components):
    X = rng.normal(size=(40, 3))
    rbf, dual, Z = kernel_pca(X, n_components)
    wild = np.vstack([Z, np.zeros_like(Z[:1]), 10 * Z, -1e6 * Z[:5], 1e12 * Z[:2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(FixedPoint(rbf, dual, Z).predict(wild)).all()


def test_where_the_iteration_breaks_down_the_nearest_training_point_is_returned(rng, monkeypatch):
    X = rng.normal(size=(20, 3))
    rbf, dual, Z = kernel_pca(X, 2)
    monkeypatch.setattr(
        preimage.RBF, "matrix", lambda self, current: np.zeros((len(current), len(X)))
    )
    np.testing.assert_array_equal(FixedPoint(rbf, dual, Z).predict(Z), X)


def test_fixed_points_in_blocks_are_the_same(rng, monkeypatch):
    X = rng.normal(size=(30, 3))
    rbf, dual, Z = kernel_pca(X, 2)
    whole = FixedPoint(rbf, dual, Z).predict(Z * 1.1)
    alone = np.vstack([FixedPoint(rbf, dual, Z).predict(1.1 * Z[i : i + 1]) for i in range(30)])
    np.testing.assert_allclose(alone, whole, atol=1e-7)
    blocks = [slice(start, start + 7) for start in range(0, 30, 7)]
    monkeypatch.setattr(preimage, "row_blocks", lambda n, width: blocks)
    np.testing.assert_allclose(FixedPoint(rbf, dual, Z).predict(Z * 1.1), whole, atol=1e-7)
