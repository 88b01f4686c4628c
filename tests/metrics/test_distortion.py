import numpy as np
import pytest

from manifoldry import LTSA
from manifoldry.datasets import make_swiss_roll
from manifoldry.metrics import local_distortion


def test_linear_maps_have_their_singular_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    A = rng.normal(size=(2, 2))
    found = local_distortion(X * 1e100 + 1e102, X @ A)
    expected = np.linalg.svd(A, compute_uv=False) / 1e100
    np.testing.assert_allclose(found.stretch, np.tile(expected, (200, 1)), rtol=1e-6)


def test_isometric_and_conformal_maps():
    X, sheet = make_swiss_roll(3000, random_state=0)
    flat = local_distortion(X, sheet, n_neighbors=8)
    assert np.median(flat.anisotropy) < 1.05
    np.testing.assert_allclose(np.median(flat.stretch, axis=0), 1, atol=0.05)
    z = np.random.default_rng(0).uniform(1, 2, size=(2000, 2)) @ [1, 1j]
    squared = z**2  # conformal, and magnified by 2|z|
    bent = local_distortion(
        np.column_stack([z.real, z.imag]), np.column_stack([squared.real, squared.imag])
    )
    assert np.median(bent.anisotropy) < 1.1
    assert np.corrcoef(bent.scale, np.abs(z))[0, 1] > 0.99
    assert np.median(bent.relative_scale) == pytest.approx(1)


def test_a_fold_has_no_stretch_across():
    X = np.random.default_rng(0).normal(size=(100, 3))
    found = local_distortion(X, np.column_stack([X[:, 0], X[:, 0]]))
    assert (found.stretch[:, 1] < 1e-8).all()
    assert (found.anisotropy > 1e6).all()


def test_more_coordinates_than_features_and_duplicates():
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 1)), 3, axis=0)
    found = local_distortion(X, np.hstack([X, X, X]), n_neighbors=10)
    assert found.stretch.shape == (60, 3)
    np.testing.assert_allclose(found.stretch[:, 0], np.sqrt(3))
    assert np.isnan(found.stretch[:, 1:]).all()  # the data have one direction
    np.testing.assert_allclose(found.scale, np.sqrt(3))
    np.testing.assert_allclose(found.anisotropy, 1)


def test_duplicates_have_no_distortion():
    X = np.vstack([np.zeros((30, 2)), np.random.default_rng(0).normal(size=(30, 2)) + 5])
    found = local_distortion(X, 2 * X, n_neighbors=8)
    assert np.isnan(found.scale[:30]).all()
    np.testing.assert_allclose(found.scale[30:], 2)


def test_points_that_were_not_embedded_are_nan():
    X, _ = make_swiss_roll(400, random_state=0)
    Y = LTSA(2).fit_transform(X)
    Y[5] = np.nan
    assert np.isnan(local_distortion(X, Y).anisotropy[5])
    assert np.isfinite(np.delete(local_distortion(X, Y).anisotropy, 5)).all()


def test_distances_have_no_directions():
    D = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    with pytest.raises(ValueError, match="pass the data"):
        local_distortion(D, np.arange(20.0), metric="precomputed")


def test_factors_out_of_range_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    for data, embedding in ((1e-200 * X, 1e200 * X), (1e200 * X, 1e-200 * X)):
        with pytest.raises(ValueError, match=r"e[+-]200 in the embedding.*rescale X or the emb"):
            local_distortion(data, embedding)


def test_a_collapsed_neighborhood_of_tiny_data_has_factor_zero():
    """Its size in the embedding is zero, which is not out of range."""
    X = np.random.default_rng(0).normal(size=(30, 2)) * 1e-310
    assert (local_distortion(X, np.zeros((30, 2))).stretch == 0).all()
