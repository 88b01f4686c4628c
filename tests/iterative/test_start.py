"""Starts of searches."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import manifoldry as mf
from manifoldry.base.input import Points
from manifoldry.iterative.start import starting_map, well_scaled
from manifoldry.neighbors import NeighborGraph


class Given(BaseEstimator):
    """Makes the map that it was given."""

    def __init__(self, Y):
        self.Y = Y

    def fit_transform(self, X, y=None):
        return self.Y


def test_points_off_the_map_begin_in_its_middle():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)) + 5.0
    Y[:4] = np.nan
    start = starting_map(Given(Y), Points(X), NeighborGraph.build(X, 5), 2, rng)
    on_map = Y[4:] - Y[4:].mean(axis=0)
    size = np.abs(on_map).max()
    np.testing.assert_allclose(start[4:], on_map / size, atol=0.01)
    np.testing.assert_allclose(start[:4], 0, atol=0.01)


@pytest.mark.filterwarnings("ignore:.* did not converge")
@pytest.mark.parametrize("method", [mf.SNE, mf.SymmetricSNE, mf.TSNE])
def test_random_starts_are_the_caller_s(method):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = method(init="random", max_iter=1)
    one, again, other = (model.set_params(random_state=s).fit_transform(X) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other)
    rng = np.random.default_rng(1)
    passed, on = (model.set_params(random_state=rng).fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(passed, one)
    assert not np.allclose(on, one)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_map_is_rescaled_if_the_value_is_clearly_lower(sign):
    """Also if values are negative."""
    Y = np.ones((3, 1))
    for lower, rescaled in ((0.0, False), (0.005, False), (0.02, True)):
        found = well_scaled(Y, 2.0, lambda Z, lower=lower: sign - lower * (Z[0, 0] == 2.0))
        np.testing.assert_array_equal(found, 2 * Y if rescaled else Y)
