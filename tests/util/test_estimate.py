import copy
import pickle

import numpy as np
import pytest
from scipy import stats

from manifoldry.util.estimate import Estimate


def test_estimate_is_a_float_and_survives_copying():
    figure = Estimate(0.5, 0.4, 0.7)
    for same in (pickle.loads(pickle.dumps(figure)), copy.deepcopy(figure)):
        assert (same, same.low, same.high) == (0.5, 0.4, 0.7)
    assert np.asarray([figure]).dtype == np.float64


def test_mean_of_the_whole_population_is_exact():
    assert Estimate.of_mean(np.arange(10.0), population=10).exact
    assert not Estimate.of_mean(np.arange(10.0), population=11).exact


@pytest.mark.parametrize("population", [None, 500])
def test_intervals_of_means_cover_the_truth(population):
    rng = np.random.default_rng(0)
    everyone = rng.exponential(size=500)
    covered = []
    for _ in range(400):
        drawn = everyone[rng.choice(500, 200, replace=population is None)]
        estimate = Estimate.of_mean(drawn, population)
        covered.append(estimate.low <= everyone.mean() <= estimate.high)
    assert 0.91 < np.mean(covered) < 0.99


def test_intervals_by_bootstrap_cover_the_truth():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        drawn = rng.normal(size=(100, 2))
        ratio = Estimate.of_bootstrap(lambda rows, X=drawn: X[rows].std(), 100, rng, draws=50)
        covered.append(ratio.low <= 1 <= ratio.high)
    assert 0.88 < np.mean(covered) < 0.99


def test_intervals_of_positive_numbers():
    """Small intervals agree with scipy's quantiles; all are positive and symmetric in the log."""
    narrow = Estimate.positive(2.0, 1e-4)
    assert narrow.high - 2 == pytest.approx(stats.norm.ppf(0.975) * 1e-4, rel=1e-3)
    wide = Estimate.positive(2.0, 5.0, freedom=4)
    assert 0 < wide.low < 0.1
    assert np.log(wide.high / 2) == pytest.approx(np.log(2 / wide.low))
    assert np.log(wide.high / 2) == pytest.approx(stats.t.ppf(0.975, 4) * 2.5)


def test_one_value_has_an_unknown_error():
    assert Estimate.of_mean(np.ones(1)).high == np.inf


def test_means_of_samples_are_never_exact():
    assert not Estimate.of_mean(np.zeros(2000), population=70_000).exact
    assert not Estimate.of_fraction(np.zeros(2000, bool), population=70_000).exact
    assert pickle.loads(pickle.dumps(Estimate(3.0))).exact


@pytest.mark.parametrize("fraction", [0.001, 0.02, 0.5, 0.999])
def test_intervals_of_fractions_cover_the_truth_and_stay_in_range(fraction):
    rng = np.random.default_rng(0)
    found = [Estimate.of_fraction(rng.random(2000) < fraction) for _ in range(400)]
    assert 0.91 <= np.mean([each.low <= fraction <= each.high for each in found]) <= 1
    assert all(0 <= each.low <= each <= each.high <= 1 for each in found)


def test_few_values_get_students_interval():
    from scipy.stats import t

    values = np.array([1.0, 2.0, 4.0])
    expected = t.interval(0.95, 2, values.mean(), values.std(ddof=1) / np.sqrt(3))
    found = Estimate.of_mean(values)
    np.testing.assert_allclose([found.low, found.high], expected)
    assert Estimate.of_mean(values, within=(0, 3)).low == 0


def test_digits_distinguish_the_ends_of_the_interval():
    assert repr(Estimate(0.99962, 0.99951, 0.99973)) == "0.9996 [0.9995, 0.9997]"
    assert repr(Estimate(0.5, 0.5, 0.5)) == "0.5 [0.5, 0.5]"
    assert repr(Estimate(1234.5, 1200.0, 1300.0)) == "1.23e+03 [1.2e+03, 1.3e+03]"
