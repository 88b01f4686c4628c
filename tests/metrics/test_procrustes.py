"""Procrustes against scipy, and its invariances."""

import numpy as np
import pytest
from scipy.spatial import procrustes as scipys
from scipy.stats import ortho_group

from manifoldry.metrics import Alignment, procrustes

KINDS = ("rigid", "similarity", "affine")  # from least to most freedom


@pytest.fixture(name="maps")
def two_maps():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.normal(size=(40, 3))


def test_similarity_equals_scipys(maps):
    disparity = scipys(maps[1], maps[0])[2]
    np.testing.assert_allclose(procrustes(*maps).error, np.sqrt(disparity))


def test_affine_equals_least_squares(maps):
    Y, T = maps
    design = np.column_stack([np.ones(40), Y])
    fitted = design @ np.linalg.lstsq(design, T, rcond=None)[0]
    np.testing.assert_allclose(procrustes(Y, T, "affine").aligned, fitted)


def test_allowed_transformations_have_no_error(maps):
    T = maps[0]
    turned = T @ ortho_group.rvs(3, random_state=0) + 7.0
    sheared = T @ np.array([[2.0, 1, 0], [0, 1, 0], [0, 0, 3]])
    assert procrustes(turned, T, "rigid").error < 1e-12
    assert procrustes(-4 * turned, T, "similarity").error < 1e-12
    assert procrustes(sheared, T, "affine").error < 1e-12
    assert procrustes(sheared, T, "similarity").error > 0.1
    assert procrustes(-4 * turned, T, "rigid").error > 1


def test_more_freedom_never_hurts(maps):
    rigid, similar, affine = (procrustes(*maps, how).error for how in KINDS)
    assert rigid >= similar >= affine


@pytest.mark.parametrize("transformation", KINDS)
def test_maps_of_other_dimensions(transformation):
    """A line in the plane matches a line, with either as the target."""
    line = np.linspace(0, 1, 20)[:, None]
    assert procrustes(line, line * [[0.6, 0.8]], transformation).error < 1e-12
    assert procrustes(line * [[0.6, 0.8]], line, transformation).error < 1e-12


def test_bad_input():
    with pytest.raises(ValueError, match="transformation='free' must be one of"):
        procrustes([[1.0], [2.0]], [[1.0], [2.0]], "free")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        procrustes([[1.0], [2.0]], [[1.0]])
    with pytest.raises(ValueError, match="1 points are in both embeddings"):
        procrustes([[1.0], [np.nan]], [[1.0], [2.0]])


def test_a_target_of_one_point():
    """Scaling by 0 matches it; a rigid transformation cannot."""
    assert procrustes([[1.0], [2.0]], [[3.0], [3.0]]).error == 0.0
    assert procrustes([[1.0], [2.0]], [[3.0], [3.0]], "rigid").error == 1.0


def test_more_columns_than_the_target():
    X = np.random.default_rng(0).normal(size=(60, 3))
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    target = X[:, :2] + 0.1 * np.random.default_rng(2).normal(size=(60, 2))
    for transformation in ("rigid", "similarity", "affine"):
        assert procrustes(X @ turn, X[:, :2], transformation).error < 1e-6
    errors = [
        procrustes(X @ turn, target, transformation).error
        for transformation in ("rigid", "similarity")
    ]
    assert procrustes(X @ turn, target, "affine").error <= errors[1] <= errors[0] < 0.2


def test_estimators_lines_and_rows_of_nan():
    from manifoldry import PCA

    X = np.random.default_rng(0).normal(size=(30, 3))
    model = PCA(2).fit(X)
    assert procrustes(model, model.embedding_ @ [[0, 1], [1, 0]]).error < 1e-12
    assert procrustes(np.arange(5.0), -np.arange(5.0)).error < 1e-12
    Y = model.embedding_.copy()
    Y[3] = np.nan
    assert procrustes(Y, model).error < 1e-12
    assert np.isnan(procrustes(Y, model).aligned[3]).all()


# Alignments


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_alignment_applies_to_points_it_was_not_fitted_on(kind, scale):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(30, 3)) * scale
    M = ortho_group.rvs(3, random_state=1)
    M = {"rigid": M, "similarity": 1e-20 * M, "affine": rng.normal(size=(3, 3))}[kind]
    T = Y @ M + 7 * scale * np.abs(M).max()
    moved = Alignment.fit(Y[:20], T[:20], kind).apply(Y[20:])
    np.testing.assert_allclose(moved, T[20:], rtol=1e-9, atol=1e-12 * np.abs(T).max())


def test_the_alignment_is_the_one_procrustes_applied():
    rng = np.random.default_rng(0)
    Y, T = rng.normal(size=(2, 30, 2))
    for kind in KINDS:
        found = procrustes(Y, T, kind)
        np.testing.assert_array_equal(found.alignment.apply(Y), found.aligned)


def test_units_do_not_change_the_error():
    rng = np.random.default_rng(0)
    Y, T = rng.normal(size=(2, 30, 2))
    for kind in ("similarity", "affine"):
        expected = procrustes(Y, T, kind).error
        assert procrustes(Y * 1e-200, T * 1e150, kind).error == pytest.approx(expected)


def test_rows_of_nan_stay_nan():
    Y = np.random.default_rng(0).normal(size=(10, 2))
    moved = Alignment.fit(Y, Y).apply(np.array([[np.nan, np.nan], [1.0, 2.0]]))
    assert np.isnan(moved[0]).all()
    np.testing.assert_allclose(moved[1], [1, 2])


def test_unknown_kind_of_alignment():
    with pytest.raises(ValueError, match="transformation='free' must be one of"):
        Alignment.fit(np.eye(2), np.eye(2), "free")
