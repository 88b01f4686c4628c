"""Kernel regression over nearby pairs, against that over all pairs."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry.objectives import RegressionPairs
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.kernel_regression import UKRObjective, reinsert
from manifoldry.objectives.leave_one_out import leave_one_out_errors
from manifoldry.objectives.nearby_sources import NearbySources
from manifoldry.objectives.regression_kernels import KERNELS, as_kernel
from manifoldry.util.threads import threads_allowed

NEARBY, ALL = RegressionPairs(exact_up_to=0), RegressionPairs(exact_up_to=10**9)
every_short_kernel = pytest.mark.parametrize("kernel", ["gaussian", "quartic", "triweight"])


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def spread_map(rng, n=400, d=2):
    """Data on a map of many kernel widths, with outliers, a cluster and points that coincide."""
    Y = rng.uniform(0, n ** (1 / d), size=(n, d))
    Y[:40] = Y[40] + 0.05 * rng.normal(size=(40, d))
    Y[50:60] = Y[50]
    Y[60:63] += [[40.0], [41.0], [300.0]]
    X = np.column_stack([np.sin(Y / 3), np.cos(Y / 2), rng.normal(size=(n, 2))])
    return X, Y


def objective_of(X, kernel, pairs, leave_one_out=True):
    regression = UKRObjective(X, kernel=kernel, leave_one_out=leave_one_out, pairs=pairs)
    return DensityFloor(regression, 3.0, 0.1, kernel, pairs)


# --- against all pairs -------------------------------------------------------------------------


@every_short_kernel
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("leave_one_out", [True, False])
def test_value_gradient_and_curvature(rng, kernel, d, leave_one_out):
    X, Y = spread_map(rng, d=d)
    near, every = (objective_of(X, kernel, pairs, leave_one_out) for pairs in (NEARBY, ALL))
    value, gradient = near.value_and_gradient(Y)
    expected_value, expected = every.value_and_gradient(Y)
    assert value == pytest.approx(expected_value, rel=1e-11)
    assert near.value(Y) == pytest.approx(expected_value, rel=1e-11)
    assert np.abs(gradient - expected).max() <= 1e-10 * np.abs(expected).max()
    curvature, expected = near.diagonal_curvature(Y), every.diagonal_curvature(Y)
    assert np.abs(curvature - expected).max() <= 1e-10 * np.abs(expected).max()


@every_short_kernel
@pytest.mark.parametrize("negligible", [1e-2, 1e-4, 1e-6])
def test_fitted_values_are_within_the_bound(rng, kernel, negligible):
    X, Y = spread_map(rng)
    coarse, exact = (
        UKRObjective(X, kernel=kernel, pairs=pairs).fitted(Y).values
        for pairs in (replace(NEARBY, negligible=negligible), ALL)
    )
    error = np.linalg.norm(coarse - exact, axis=1).max()
    assert 0 < error <= len(X) * negligible * cdist(X, X).max()


@pytest.mark.parametrize("negligible", [1e-3, 1e-9])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_weights_beyond_the_reach_are_negligible(kernel, negligible):
    nearest = np.linspace(0, 30, 301)
    reach = as_kernel(kernel).reach(negligible)
    if kernel == "student":
        assert reach == np.inf
        return
    weights = as_kernel(kernel).weights(np.column_stack([nearest, nearest + reach])).weights
    assert (weights[:, 1] <= negligible * weights[:, 0] * (1 + 1e-9)).all()


def test_isolated_points_are_reinserted_alike(rng):
    X, Y = spread_map(rng)
    near, every = (reinsert(UKRObjective(X, pairs=pairs), Y) for pairs in (NEARBY, ALL))
    assert not np.array_equal(near, Y)
    np.testing.assert_array_equal(near, every)


def test_a_sample_of_rows_has_their_errors(rng):
    X, Y = spread_map(rng)
    rows = rng.permutation(len(X))[:57]
    errors = leave_one_out_errors(Y, X)
    for pairs in (NEARBY, ALL):
        regression = UKRObjective(X, pairs=pairs)
        found = regression.sampled_value(Y, rows)
        assert found == pytest.approx(errors[rows].mean(), rel=1e-10)
        penalized = DensityFloor(regression, 3.0, 0.1, pairs=pairs)
        assert penalized.sampled_value(Y, np.arange(len(X))) == pytest.approx(
            penalized.value(Y), rel=1e-10
        )
        assert penalized.sampled_value(Y, rows) > found


# --- which pairs -------------------------------------------------------------------------------


@pytest.mark.parametrize("leave_one_out", [True, False])
@pytest.mark.parametrize("max_rows", [1, 7, 128])
def test_tiles_contain_all_pairs_within_reach(rng, leave_one_out, max_rows):
    _, Y = spread_map(rng)
    nearby = NearbySources(Y, reach=6.0, max_rows=max_rows)
    D = cdist(Y, Y, "sqeuclidean")
    if leave_one_out:
        np.fill_diagonal(D, np.inf)
    needed = D.min(axis=1, keepdims=True) + 6.0 >= D
    tiles = nearby.tiles(Y, leave_one_out=leave_one_out)
    np.testing.assert_array_equal(
        np.sort(np.concatenate([tile.rows for tile in tiles])), np.arange(len(Y))
    )
    used = 0
    for tile in tiles:
        sources = nearby.find(tile)
        assert not np.delete(needed[tile.rows], sources, axis=1).any()
        assert np.isin(tile.rows, sources).all()
        used += len(tile.rows) * len(sources)
    assert used < 0.6 * len(Y) ** 2


def test_all_pairs_are_used_where_none_can_be_left_out(rng):
    X, Y = spread_map(rng, d=4)
    for kernel, positions in (("gaussian", Y), ("student", Y[:, :2])):
        near, every = (objective_of(X, kernel, pairs) for pairs in (NEARBY, ALL))
        value, gradient = near.value_and_gradient(positions)
        expected_value, expected = every.value_and_gradient(positions)
        assert value == expected_value
        np.testing.assert_array_equal(gradient, expected)


@every_short_kernel
@pytest.mark.parametrize("spoil", ["nan", "inf", "huge", "one far"])
@pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered:RuntimeWarning")
def test_values_that_overflow_are_nan(rng, kernel, spoil):
    """As with all pairs, so that a line search tries a shorter step."""
    X, Y = spread_map(rng)
    if spoil == "huge":
        Y *= 1e160
    else:
        Y[3] = {"nan": np.nan, "inf": np.inf, "one far": 1e160}[spoil]
    for pairs in (NEARBY, ALL):
        objective = objective_of(X, kernel, pairs)
        value, gradient = objective.value_and_gradient(Y)
        assert np.isnan([value, objective.value(Y)]).all()
        assert np.isnan(objective.sampled_value(Y, np.array([7, 3, 5])))
        assert np.isnan(gradient).any()


@pytest.mark.parametrize("exponent", [150, 152, 153, 153.5, 154, 154.5])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_the_largest_maps_have_the_value_of_all_pairs_or_none(rng, exponent):
    X, Y = spread_map(rng)
    Y *= 10.0**exponent / np.ptp(Y)
    near, every = (UKRObjective(X, pairs=pairs).value(Y) for pairs in (NEARBY, ALL))
    assert near == pytest.approx(every) or (exponent > 153 and np.isnan(near))


def test_the_reason_names_the_choice():
    pairs = RegressionPairs()
    assert pairs.reason("gaussian", 2000, 2) == "all pairs: at most exact_up_to=2000 points"
    assert pairs.reason("gaussian", 2001, 4) == "all pairs: more than 3 dimensions"
    assert pairs.reason("student", 2001, 2).startswith("all pairs: the weights of kernel 'student'")
    assert pairs.reason("quartic", 2001, 2).startswith("nearby pairs: weights below 1e-12")


def test_options_are_checked():
    with pytest.raises(ValueError, match="exact_up_to=-1 must be at least 0"):
        RegressionPairs(exact_up_to=-1)
    with pytest.raises(ValueError, match="negligible"):
        RegressionPairs(negligible=0.0)
    with pytest.raises(ValueError, match="negligible=1 must be less than 1"):
        RegressionPairs(negligible=1.0)
    with pytest.raises(ValueError, match="max_components=-1 must be at least 0"):
        RegressionPairs(max_components=-1)
    for n in (100, 10_000):
        for method in (RegressionPairs().reason, RegressionPairs().reach):
            with pytest.raises(ValueError, match="kernel='gauss' must be one of 'gaussian'"):
                method("gauss", n, 2)


# --- cost --------------------------------------------------------------------------------------


def test_threads_do_not_change_a_bit_of_nearby_pairs(rng):
    X, Y = spread_map(rng)
    objective, found = objective_of(X, "gaussian", NEARBY), []
    for threads in (1, 3):
        with threads_allowed(threads):
            found.append((*objective.value_and_gradient(Y), objective.diagonal_curvature(Y)))
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


def test_memory_of_many_points_is_proportional_to_their_number(rng):
    n = 20_000
    Y = rng.uniform(0, np.sqrt(n), size=(n, 2))
    objective = UKRObjective(np.column_stack([Y, Y**2]))
    objective.value(Y)  # data and imports
    tracemalloc.start()
    objective.value_and_gradient(Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * n  # all pairs take 3.2 GB
