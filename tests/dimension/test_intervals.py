"""Intervals cover the mean estimate about as often as they should."""

import numpy as np
import pytest

from manifoldry.dimension import (
    correlation_dimension,
    diffusion_slope,
    local_pca,
    maximum_likelihood,
    pca_dimension,
    two_nn,
)
from manifoldry.dimension.pair_counts import PairDistances

from .conftest import cube, roll, sphere

DRAW = {
    "square": lambda seed: cube(2, 300, seed),
    "cube": lambda seed: cube(5, 300, seed),
    "sphere": lambda seed: sphere(2, 300, seed),
    "roll": lambda seed: roll(300, seed),
}
METHODS = [two_nn, maximum_likelihood, correlation_dimension, local_pca, diffusion_slope]


# Each method and each data set in all runs, all combinations with the slow tests.
PAIRS = [
    pytest.param(method, name, marks=[] if i == j % len(DRAW) else pytest.mark.slow)
    for i, name in enumerate(DRAW)
    for j, method in enumerate(METHODS)
]


@pytest.mark.parametrize(("method", "name"), PAIRS)
def test_coverage(method, name):
    """Of 50 intervals at 95 %, 42 or fewer cover the mean with a probability of 0.3 %."""
    found = [method(DRAW[name](seed)).value for seed in range(50)]
    mean, spread = np.mean(found), np.std(found)
    covered = sum(value.low <= mean <= value.high for value in found)
    stated = np.mean([(value.high - value.low) / 2 / 1.96 for value in found])
    assert covered > 42
    assert 0.75 < stated / spread < 1.8


def test_ratios_of_neighbors_are_not_independent():
    """Estimates from n points vary by more than 1/√n, since neighbors share distances."""
    found = [two_nn(cube(2, 400, seed), fit="likelihood").value for seed in range(150)]
    spread = np.log(found).std()
    stated = np.mean([np.log(value.high / value.low) / 2 / 1.96 for value in found])
    assert spread > 1.15 / np.sqrt(400)
    assert 0.9 < stated / spread < 1.3


@pytest.mark.parametrize("method", [correlation_dimension, diffusion_slope])
def test_coverage_of_sampled_pairs(method):
    """With the pairs of few points, intervals widen as much as the estimates vary."""
    found = [method(cube(2, 400, seed), max_rows=60, random_state=seed).value for seed in range(60)]
    mean, spread = np.mean(found), np.std(found)
    stated = np.mean([(value.high - value.low) / 2 / 1.96 for value in found])
    assert 0.7 < stated / spread < 1.6
    assert sum(value.low <= mean <= value.high for value in found) > 51


def test_pca_fractions_near_the_threshold_widen_the_interval():
    """The true fraction of two directions is exactly 95 %, so both 2 and 3 are possible."""
    scale = np.sqrt([0.5, 0.45, 0.05])
    found = [
        pca_dimension(np.random.default_rng(seed).normal(size=(500, 3)) * scale).value
        for seed in range(40)
    ]
    assert {2.0, 3.0} == {float(value) for value in found}
    assert np.mean([value.low <= 2 and value.high >= 3 for value in found]) > 0.85


def test_pairs_are_distances_to_all_others():
    X = cube(3, 500) + 1e6
    pairs = PairDistances(X, np.array([3, 77, 400]))
    D = np.concatenate(list(pairs.blocks()), axis=1) * pairs.frame.unit
    expected = np.linalg.norm(X[pairs.rows, None] - X[None], axis=2)
    expected[np.arange(3), pairs.rows] = np.inf
    np.testing.assert_allclose(D, expected, rtol=1e-9)
