"""The extension of methods that define none: local regression on the data."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry.extension.data_regression import DataRegression
from manifoldry.extension.layout import Layout

rng = np.random.default_rng(0)
NEAR, FAR = rng.uniform(size=(60, 2)), rng.uniform(size=(30, 2)) + 10
X = np.vstack([NEAR, FAR, [[30.0, 30.0], [50.0, 50.0]]])
Y = np.vstack([NEAR @ [[2.0], [1.0]], FAR @ [[0.0], [3.0]], [[7.0]], [[0.0]]])
LABELS = np.repeat([0, 1, 2, -1], [60, 30, 1, 1])
LAYOUT = Layout(LABELS, np.array([1.0, 2.0, 1.0]), np.array([[0.0], [100.0], [0.0]]))


def test_coordinates_are_those_of_the_component_of_the_nearest_point():
    new = np.array([[0.5, 0.4], [10.5, 10.6], [29.0, 30.0], [49.0, 50.0]])
    extension = DataRegression(X, Y, LAYOUT)
    coordinates, component = extension.component_coordinates(new)
    np.testing.assert_array_equal(component, [0, 1, 2, -1])
    # Linear functions of the data are exact, and a single point has one value.
    np.testing.assert_allclose(coordinates[:3, 0], [1.4, 31.8, 7.0], atol=1e-9)
    placed = extension.transform(new)
    np.testing.assert_allclose(placed[:3, 0], [1.4, 163.6, 7.0], atol=1e-8)
    assert np.isnan(placed[3]).all()


def test_sparse_data():
    """They are smoothed by a local mean, so the middle of the square is nearly exact."""
    extension = DataRegression(sparse.csr_array(X), Y, LAYOUT)
    new = sparse.csr_array(np.array([[0.5, 0.5]]))
    assert extension.transform(new)[0, 0] == pytest.approx(1.5, abs=0.15)
