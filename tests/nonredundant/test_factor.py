"""The low-rank factor of a smoother's kernel leaves out what it says."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry.nonredundant.factor import (
    Draws,
    gaussian_kernel,
    kernel_factor,
    largest_singular_value,
)


def coordinates(n, q, seed=0):
    return 2 * np.random.default_rng(seed).standard_normal((n, q))


def smoother_of(K, weights, total):
    """diag(total)^{-1/2} W^{1/2} K W^{1/2} diag(total)^{-1/2}: the eigenvalues of the smoother."""
    scale = np.sqrt(weights / total)
    return scale[:, None] * K * scale


@pytest.mark.parametrize("tol", [0.1, 0.03, 1e-4])
@pytest.mark.parametrize("q", [1, 4, 10])
def test_nothing_above_the_tolerance_is_left_out(q, tol):
    Z = coordinates(700, q)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(Z))
    factor = kernel_factor(Z, weights, tol, len(Z))
    K = np.exp(-cdist(Z, Z, "sqeuclidean") / 2)
    L = factor.L.astype(np.float64)
    left_out = np.linalg.eigvalsh(smoother_of(K - L @ L.T, weights, K @ weights))[-1]
    assert factor.left_out <= tol
    assert left_out <= tol
    assert factor.L.shape[1] < 100 or q > 1


def test_the_kernel_at_all_points_follows_from_the_pivots():
    Z, weights = coordinates(300, 2), np.ones(300)
    factor = kernel_factor(Z, weights, 0.03, 300)
    R = factor.L[factor.pivots].T
    np.testing.assert_allclose(R, np.triu(R), atol=1e-5)
    K = np.exp(-cdist(Z, Z[factor.pivots], "sqeuclidean") / 2)
    np.testing.assert_allclose(factor.L @ R, K, atol=1e-5)


def test_distant_points_in_single_precision():
    """Exponents of distant points are differences of large numbers."""
    Z = coordinates(50, 2) + 1e4
    K = gaussian_kernel(Z, Z, np.float32)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, np.exp(-cdist(Z, Z, "sqeuclidean") / 2), atol=1e-6)


def test_columns_end_where_told_and_say_what_is_left_out():
    Z, weights = coordinates(700, 2), np.ones(700)
    factor = kernel_factor(Z, weights, 1e-3, 40)
    K = np.exp(-cdist(Z, Z, "sqeuclidean") / 2)
    L = factor.L.astype(np.float64)
    left_out = np.linalg.eigvalsh(smoother_of(K - L @ L.T, weights, K @ weights))[-1]
    assert L.shape == (700, 40)
    assert factor.left_out > 1e-3
    assert 0.7 * left_out < factor.left_out < 3 * left_out


def test_the_estimate_of_a_norm_is_accurate():
    """The part of a matrix at two independent samples of rows and columns."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((400, 60)))[0]
    M = U * np.geomspace(1, 1e-3, 60) @ U.T
    diagonal, estimates = M.diagonal(), []
    for _ in range(20):
        rows, columns = (
            np.unique(rng.choice(400, 128, p=diagonal / diagonal.sum()), return_counts=True)
            for _ in range(2)
        )
        i, j = rows[0], columns[0]
        scale = [Draws(diagonal[d], counts).scale for d, counts in (rows, columns)]
        S = scale[0][:, None] * M[np.ix_(i, j)] * scale[1]
        estimates.append(M.trace() * largest_singular_value(S))
    assert 1 < np.mean(estimates) < 1.3
    assert np.std(estimates) < 0.2


@pytest.mark.parametrize("spread", [4.0, 1e5])
def test_what_is_left_out_at_isolated_points_is_seen(spread):
    """Also if no kernel value of the sampled points differs from zero, as for the larger spread."""
    Z = spread * np.random.default_rng(0).standard_normal((20_000, 10))
    factor = kernel_factor(Z, np.ones(len(Z)), 0.03, 64)
    assert factor.L.shape[1] == 64
    assert factor.left_out == pytest.approx(1.0)
