"""The weighted sample from which a smoother of many points is computed."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry.nonredundant import KernelSmoother
from manifoldry.nonredundant.sample import sampled_points, smoother_shares
from manifoldry.nonredundant.smoother import smoother_functions


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_shares_are_the_diagonal_of_the_smoother(rng):
    Z, weights = rng.standard_normal((3000, 2)), rng.uniform(0.5, 2, 3000)
    exact = weights / (np.exp(-cdist(Z, Z, "sqeuclidean") / 2) @ weights)
    found = smoother_shares(Z, weights, rng)
    assert found.sum() == pytest.approx(exact.sum(), rel=0.1)
    assert np.abs(np.log(found / exact)).mean() < 0.1


def test_isolated_points_are_sampled_and_the_others_represented(rng):
    Z, weights = rng.standard_normal((3000, 2)), rng.uniform(0.5, 2, 3000)
    Z[:5] += 100 * np.arange(1, 6)[:, None]
    sample = sampled_points(Z, weights, 400)
    assert set(range(5)) <= set(sample.rows)
    assert len(sample.rows) == pytest.approx(400, rel=0.2)
    assert sample.counts @ weights[sample.rows] == pytest.approx(weights.sum(), rel=0.1)


def test_samples_that_may_be_empty_are_refused():
    with pytest.raises(ValueError, match="sample_size=99 must be at least 100"):
        KernelSmoother(sample_size=99)
    KernelSmoother(sample_size=100)


def test_few_points_are_all_taken(rng):
    sample = sampled_points(rng.standard_normal((3000, 2)), np.ones(3000))
    np.testing.assert_array_equal(sample.rows, np.arange(3000))
    np.testing.assert_array_equal(sample.counts, 1.0)


@pytest.mark.parametrize(("local_fit", "q"), [("nadaraya_watson", 3), ("local_linear", 2)])
def test_functions_from_a_sample_exclude_what_the_smoother_predicts(rng, local_fit, q):
    """Half of the points suffice to leave less than twice the cutoff of 0.03."""
    n = 1200
    F, mass = rng.standard_normal((n, q)), rng.uniform(0.5, 2, n)
    F[:5] *= 4  # isolated points
    exact = smoother_functions(F, mass, 0.3, KernelSmoother(local_fit, tol=0), factor_from=n)
    sampled = KernelSmoother(local_fit, exact_up_to=0, sample_size=n // 2)
    found = smoother_functions(F, mass, 0.3, sampled)
    assert found.values.dtype == np.float32
    assert found.count == pytest.approx(exact.count, rel=0.1)
    root = np.sqrt(mass)[:, None]
    V = np.linalg.qr(root * found.values.astype(float))[0]
    S = exact.singular_values[:, None] * (root * exact.values).T  # the part above the cutoff
    left = np.linalg.norm(S - (S @ V) @ V.T, 2) / exact.singular_values[0]
    assert left < 0.06
