"""The low-rank factor of a smoother's kernel leaves out what it says."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry.nonredundant.factor import kernel_factor, sampled_norm


def coordinates(n, q, seed=0):
    return 2 * np.random.default_rng(seed).standard_normal((n, q))


def smoother_of(K, weights, total):
    """diag(total)^{-1/2} W^{1/2} K W^{1/2} diag(total)^{-1/2}: the eigenvalues of the smoother."""
    scale = np.sqrt(weights / total)
    return scale[:, None] * K * scale


@pytest.mark.parametrize("tol", [0.1, 0.03, 1e-4])
@pytest.mark.parametrize("q", [1, 4])
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


def test_columns_end_where_told_and_say_what_is_left_out():
    Z, weights = coordinates(700, 2), np.ones(700)
    factor = kernel_factor(Z, weights, 1e-3, 40)
    K = np.exp(-cdist(Z, Z, "sqeuclidean") / 2)
    L = factor.L.astype(np.float64)
    left_out = np.linalg.eigvalsh(smoother_of(K - L @ L.T, weights, K @ weights))[-1]
    assert L.shape == (700, 40)
    assert factor.left_out > 1e-3
    assert 0.7 * left_out < factor.left_out < 3 * left_out


def test_sampled_norm_tends_to_the_largest_eigenvalue_from_above():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((400, 60)))[0]
    M = U * np.geomspace(1, 1e-3, 60) @ U.T
    diagonal, mean = M.diagonal(), {}
    for draws in (80, 2000):
        estimates = []
        for _ in range(20):
            drawn = rng.choice(400, draws, p=diagonal / diagonal.sum())
            rows, counts = np.unique(drawn, return_counts=True)
            S = M[np.ix_(rows, rows)]
            estimates.append(sampled_norm(S, diagonal[rows], counts, M.trace()))
        mean[draws] = np.mean(estimates)
    # The spectrum of a sample widens as that of a sample covariance does.
    assert 1 < mean[80] < (1 + np.sqrt(M.trace() / 80)) ** 2
    assert 1 < mean[2000] < (1 + np.sqrt(M.trace() / 2000)) ** 2
