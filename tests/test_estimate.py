import copy
import pickle

import numpy as np
import pytest

from manifoldry._estimate import Estimate


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


def test_one_value_says_nothing_of_its_error():
    assert Estimate.of_mean(np.ones(1)).high == np.inf
