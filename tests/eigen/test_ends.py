"""The two ends of a spectrum."""

import numpy as np
import pytest

from manifoldry.eigen.standard import SpectrumEnd

SMALLEST, LARGEST = SpectrumEnd.SMALLEST, SpectrumEnd.LARGEST


def test_the_wanted_end_comes_first():
    values, V = np.array([1.0, 2.0, 5.0]), np.eye(3)
    assert SMALLEST.from_end(values).tolist() == [1, 2, 5]
    assert LARGEST.from_end(values).tolist() == [5, 2, 1]
    assert np.array_equal(LARGEST.from_end(V), V[:, ::-1])


def test_the_first_value_maximizes_sign_times_value():
    values = np.array([-3.0, 1.0, 2.0])
    for end in SpectrumEnd:
        assert (end.sign * values).argmax() == np.flatnonzero(values == end.from_end(values)[0])


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [(None, None, None), ((0.0, 2.0), 0.0, 2.0), ((0.0, np.inf), 0.0, None)],
)
def test_an_edge_is_known_where_it_is_finite(bounds, low, high):
    assert SMALLEST.edge(bounds) == LARGEST.other.edge(bounds) == low
    assert LARGEST.edge(bounds) == SMALLEST.other.edge(bounds) == high
