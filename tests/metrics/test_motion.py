"""Fitted motions take further points along."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from manifoldry.metrics import Motion, procrustes

KINDS = ("rigid", "similarity", "affine")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_points_that_it_was_not_fitted_on_go_where_they_belong(kind, scale):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(30, 3)) * scale
    M = ortho_group.rvs(3, random_state=1)
    M = {"rigid": M, "similarity": 1e-20 * M, "affine": rng.normal(size=(3, 3))}[kind]
    T = Y @ M + 7 * scale * np.abs(M).max()
    moved = Motion.fit(Y[:20], T[:20], kind).apply(Y[20:])
    np.testing.assert_allclose(moved, T[20:], rtol=1e-9, atol=1e-12 * np.abs(T).max())


def test_it_is_what_procrustes_did():
    rng = np.random.default_rng(0)
    Y, T = rng.normal(size=(2, 30, 2))
    for kind in KINDS:
        found = procrustes(Y, T, kind)
        np.testing.assert_array_equal(found.motion.apply(Y), found.aligned)


def test_procrustes_does_not_mind_units():
    rng = np.random.default_rng(0)
    Y, T = rng.normal(size=(2, 30, 2))
    for kind in ("similarity", "affine"):
        expected = procrustes(Y, T, kind).error
        assert procrustes(Y * 1e-200, T * 1e150, kind).error == pytest.approx(expected)


def test_points_off_the_map_stay_off():
    Y = np.random.default_rng(0).normal(size=(10, 2))
    moved = Motion.fit(Y, Y).apply(np.array([[np.nan, np.nan], [1.0, 2.0]]))
    assert np.isnan(moved[0]).all()
    np.testing.assert_allclose(moved[1], [1, 2])


def test_unknown_kind():
    with pytest.raises(ValueError, match="allow='free' must be one of"):
        Motion.fit(np.eye(2), np.eye(2), "free")
