"""Frames: similarity transformations to the square that is drawn, and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from manifoldry.explorer.drawing import Drawing, plane

POINTS = np.random.default_rng(0).normal(size=(40, 2)) @ [[3.0, 0.0], [1.0, 0.5]]


def turned(points, degrees, mirrored=False, size=1.0, shift=(0.0, 0.0)):
    a = np.radians(degrees)
    matrix = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    matrix = matrix @ np.diag([1, -1]) if mirrored else matrix
    return size * points @ matrix + shift


@settings(deadline=None, database=None, derandomize=True, max_examples=60)
@given(st.floats(-8, 8), st.floats(-3, 3), st.floats(0, 360), st.booleans(), st.booleans())
def test_back_from_the_drawing(power, shift, degrees, mirrored, aligned):
    points = turned(POINTS, degrees, mirrored, 10**power, 10**power * np.array([shift, -shift]))
    frame = Drawing.around(points, Drawing.around(POINTS).drawn(POINTS) if aligned else None)
    drawn = frame.drawn(points)
    np.testing.assert_allclose(frame.coordinates(drawn), points, atol=1e-9 * 10**power)
    assert np.abs(drawn).max() <= 1
    assert np.abs(drawn).max() == pytest.approx(1 / 1.02)  # it fills the square, but for a margin


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("degrees", [0, 30, 117, 180, 271])
def test_alignment_recovers_rotations_and_reflections(degrees, mirrored):
    reference = Drawing.around(POINTS).drawn(POINTS)
    points = turned(POINTS, degrees, mirrored, 7.0, (50.0, -3.0))
    np.testing.assert_allclose(
        Drawing.around(points, reference).drawn(points), reference, atol=1e-9
    )


def test_it_is_a_similarity_even_of_unlike_points():
    other = np.random.default_rng(1).normal(size=(40, 2)) ** 3
    drawn = Drawing.around(other, Drawing.around(POINTS).drawn(POINTS)).drawn(other)
    ratio = pdist(drawn) / pdist(other)
    np.testing.assert_allclose(ratio, ratio[0])


def test_missing_rows_do_not_matter():
    gaps = POINTS.copy()
    gaps[::5] = np.nan
    frame, known = Drawing.around(gaps), np.isfinite(gaps).all(axis=1)
    np.testing.assert_allclose(frame.matrix, Drawing.around(gaps[known]).matrix)
    assert np.isnan(frame.drawn(gaps)[::5]).all()
    reference = frame.drawn(gaps)
    again = Drawing.around(turned(POINTS, 50), reference).drawn(turned(POINTS, 50))
    shape = Drawing.around(again[known]).drawn(again[known])
    np.testing.assert_allclose(shape, reference[known], atol=1e-9)


def test_constant_maps_are_drawn_in_the_middle():
    same = np.full((5, 2), 3.7e8)
    for reference in (None, Drawing.around(POINTS[:5]).drawn(POINTS[:5])):
        frame = Drawing.around(same, reference)
        np.testing.assert_allclose(frame.drawn(same), 0, atol=1e-6)
        np.testing.assert_allclose(frame.coordinates(np.zeros((1, 2))), same[:1])


def test_a_constant_reference_turns_nothing():
    frame = Drawing.around(POINTS, np.zeros_like(POINTS))
    np.testing.assert_allclose(frame.matrix, Drawing.around(POINTS).matrix)


def test_a_line_as_reference():
    line = np.column_stack([np.linspace(-1, 1, 40), np.zeros(40)])
    frame = Drawing.around(POINTS, line)
    size = np.abs(np.linalg.det(frame.matrix))
    np.testing.assert_allclose(frame.matrix @ frame.matrix.T, size * np.eye(2), atol=1e-12)


@pytest.mark.parametrize("offset", [1e8, -1e10])
def test_an_offset_does_not_matter(offset):
    unit = Drawing.around(POINTS).drawn(POINTS)
    moved = POINTS + offset
    np.testing.assert_allclose(Drawing.around(moved).drawn(moved), unit, atol=1e-5)


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_units_do_not_matter(size):
    frame = Drawing.around(size * POINTS, Drawing.around(POINTS).drawn(POINTS))
    np.testing.assert_allclose(frame.drawn(size * POINTS), Drawing.around(POINTS).drawn(POINTS))


def test_plane_of_a_line():
    Y = np.array([[1.0], [np.nan], [3.0]], dtype=np.float32)
    found = plane(Y, (0, 0))
    np.testing.assert_array_equal(found, [[1, 0], [np.nan, np.nan], [3, 0]])
    assert found.dtype == np.float64


def test_plane_of_chosen_coordinates():
    Y = np.arange(12.0).reshape(4, 3)
    Y[1, 2] = np.inf
    Y[2, 1] = np.nan  # is not shown
    expected = [[2, 0], [np.nan, np.nan], [8, 6], [11, 9]]
    np.testing.assert_array_equal(plane(Y, (2, 0)), expected)
    assert np.isinf(Y[1, 2])  # the map itself is not changed
