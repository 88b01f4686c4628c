"""The affine map of PCA and its inverse, at any offset and scale."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry.eigen import Gram, Spectrum
from manifoldry.extension.affine import AffineMap
from manifoldry.neighbors.distances import Frame


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def fitted(X, n_components, kind=np.asarray):
    """The map of the leading principal axes, and the coordinates √ℓ·u it has to give."""
    frame = Frame.of(kind(X))
    F = (X - X.mean(axis=0, dtype=float)) / frame.unit
    U, s, _ = np.linalg.svd(F, full_matrices=False)
    U, s = U[:, :n_components], s[:n_components]
    nothing = np.zeros(n_components)
    spectrum = Spectrum(s**2, U, nothing, nothing, np.nan, 1.0)
    return affine_map(kind(X), frame, spectrum), U * s * frame.unit


def affine_map(X, frame, spectrum):
    F = frame.apply(X)
    return AffineMap.of(Gram(F), np.asarray(F.mean(axis=0)).ravel(), frame, spectrum)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_training_points_get_their_coordinates_and_come_back(rng, kind, dtype):
    X = (rng.normal(size=(40, 5)) + 2).astype(dtype)
    affine, Y = fitted(X, 5, kind)
    np.testing.assert_allclose(affine.transform(kind(X)), Y, atol=1e-13)
    np.testing.assert_allclose(affine.predict(Y), X, atol=1e-13)
    np.testing.assert_allclose(affine.mean, X.mean(axis=0, dtype=float), rtol=1e-14)


def test_fewer_components_project(rng):
    X = rng.normal(size=(40, 5)) * [9, 5, 1, 1, 1]
    affine, _ = fitted(X, 2)
    V = affine.components
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-14)
    projected = X.mean(axis=0) + (X - X.mean(axis=0)) @ V @ V.T
    np.testing.assert_allclose(affine.predict(affine.transform(X)), projected, atol=1e-13)


def whole(rng, n, d):
    return rng.integers(-(2**10), 2**10, size=(n, d)) / 2.0**20


def test_an_offset_of_1e8_costs_no_digits(rng):
    """The mean of points at 1e8 is only known to 1e-8; the coordinates are known to 1e-19."""
    X = whole(rng, 41, 3)
    _, Y = fitted(X, 3)
    shifted = X + 2.0**27
    frame = Frame.of(shifted)
    F = (X - X.mean(axis=0)) / frame.unit
    U, s, _ = np.linalg.svd(F, full_matrices=False)
    nothing = np.zeros(3)
    affine = affine_map(shifted, frame, Spectrum(s**2, U, nothing, nothing, np.nan, 1.0))
    signs = np.sign((U * Y).sum(axis=0))
    np.testing.assert_allclose(affine.transform(shifted) * signs, Y, atol=1e-13 * np.abs(Y).max())
    np.testing.assert_allclose(affine.predict(affine.transform(shifted)), shifted, rtol=2e-16)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_any_magnitude(rng, scale):
    X = rng.normal(size=(30, 4)) * scale
    affine, Y = fitted(X, 4)
    assert np.isfinite(Y).all()
    np.testing.assert_allclose(affine.transform(X), Y, atol=1e-13 * scale)
    np.testing.assert_allclose(affine.predict(Y), X, atol=1e-13 * scale)


def test_dense_and_sparse_new_points_agree(rng):
    X, new = rng.normal(size=(40, 5)) + 3, rng.normal(size=(9, 5))
    for kind in (np.asarray, sparse.csr_array):
        affine, _ = fitted(X, 3, kind)
        np.testing.assert_allclose(
            affine.transform(new), affine.transform(sparse.csr_array(new)), atol=1e-13
        )
        assert isinstance(affine.transform(sparse.csr_matrix(new)), np.ndarray)


def test_a_direction_without_spread_is_a_zero_coordinate(rng):
    X = np.hstack([rng.normal(size=(30, 2)), np.ones((30, 1))])
    affine, _ = fitted(X, 3)
    np.testing.assert_array_equal(affine.transform(X)[:, 2], 0)
    np.testing.assert_allclose(affine.predict(affine.transform(X)), X, atol=1e-14)
