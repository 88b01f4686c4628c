"""Unpredictability: near 0 for functions of earlier coordinates, near 1 for others."""

import numpy as np
import pytest

from manifoldry import LaplacianEigenmaps
from manifoldry.datasets import make_strip
from manifoldry.metrics import unpredictability


def test_functions_are_redundant_and_new_directions_are_not():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(2, 600))
    errors = unpredictability(np.column_stack([x, np.cos(7 * x), y, x * y + y**2]))
    assert errors[0] == 1
    assert errors[1] < 0.05
    assert 0.9 < errors[2] < 1.1
    assert errors[3] < 0.1


def test_units_and_offsets_do_not_matter():
    rng = np.random.default_rng(0)
    Y = rng.uniform(size=(300, 3))
    Y[:, 2] = np.sin(5 * Y[:, 0]) + 0.3 * rng.normal(size=300)
    scaled = Y * [1e-6, 1e9, 3.0] + [5.0, -1e9, 0.0]
    np.testing.assert_allclose(unpredictability(scaled), unpredictability(Y), rtol=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_second_coordinate_of_a_long_strip_repeats_the_first(seed):
    """Of one hardly longer than wide it shows the width."""
    long, square = (
        unpredictability(
            LaplacianEigenmaps(2).fit_transform(make_strip(600, aspect=a, random_state=seed).X)
        )
        for a in (3.5, 1.2)
    )
    assert long[1] < 0.1
    assert square[1] > 0.8


def test_constants_say_nothing():
    x = np.linspace(0, 1, 50)
    assert np.array_equal(
        unpredictability(np.column_stack([np.ones(50), x, np.ones(50)])), [1, 1, 0]
    )


def test_bad_input():
    with pytest.raises(ValueError, match="NaN"):
        unpredictability([[1.0, np.nan], [2.0, 1.0], [3.0, 2.0]])
    with pytest.raises(ValueError, match="minimum of 3"):
        unpredictability([[1.0, 2.0], [2.0, 1.0]])


def test_no_coordinate_is_less_predictable_than_by_its_mean():
    # Without the mean as a prediction, local regression on five points of noise had errors above 1.
    for seed in range(40):
        errors = unpredictability(np.random.default_rng(seed).standard_t(1, size=(12, 3)))
        assert (errors <= 1).all()


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**600])
def test_squares_do_not_overflow(scale):
    y = np.random.default_rng(0).normal(size=100)
    Y = np.column_stack([y, y**2])
    np.testing.assert_array_equal(unpredictability(scale * Y), unpredictability(Y))
