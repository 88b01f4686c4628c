"""Values of pairwise objectives, and errors for invalid weights."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from manifoldry.objectives import (
    GaussianKernel,
    Pairwise,
    Unnormalized,
    sne,
    symmetric_sne,
    tsne,
)

N, D = 14, 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
MAP = 0.8 * RNG.normal(size=(N, D))


def squares(Y):
    return squareform(pdist(Y, "sqeuclidean"))


def off_diagonal(K):
    return K - np.diag(np.diag(K))


def conditional(X, keep_self=False):
    """Row-stochastic, with some entries that are exactly zero."""
    K = np.exp(-squares(X) / 6)
    K[np.quantile(K, 0.3) > K] = 0
    K = K if keep_self else off_diagonal(K)
    return K / K.sum(axis=1, keepdims=True)


P = conditional(X)
JOINT = (P + P.T) / (2 * N)


def divergence(P, K, axis):
    """KL(P‖Q) for Q = K scaled to sum to one along an axis, straight from the definition."""
    Q = K / K.sum(axis=axis, keepdims=True)
    used = P > 0
    return float((P[used] * np.log(P[used] / Q[used])).sum())


def central_differences(f, Y, step=1e-5):
    G = np.zeros_like(Y)
    for place in np.ndindex(Y.shape):
        E = np.zeros_like(Y)
        E[place] = step
        G[place] = (f(Y + E) - f(Y - E)) / (2 * step)
    return G


def test_all_points_far_apart():
    """Only the nearest pair matters; in two dimensions all pairs are nearest."""
    Y = 100 * np.array([[0.0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    even = (1 - np.eye(3)) / 6
    assert symmetric_sne(even).value(Y) == pytest.approx(0, abs=1e-8)
    assert sne(3 * even).value(Y) == pytest.approx(0, abs=1e-8)
    objective = symmetric_sne(even)
    Y[2] *= 1.5
    G = objective.value_and_gradient(Y)[1]
    np.testing.assert_allclose(
        G, central_differences(objective.value, Y, 1e-3), atol=1e-6 * abs(G).max()
    )


def test_values_are_divergences():
    K, T = off_diagonal(np.exp(-squares(MAP))), off_diagonal(1 / (1 + squares(MAP)))
    heavy = off_diagonal((1 + squares(MAP) / 3) ** -2.0)
    for objective, expected in [
        (sne(P), divergence(P, K, axis=1) / N),
        (sne(P, reduction="sum"), divergence(P, K, axis=1)),
        (symmetric_sne(JOINT), divergence(JOINT, K, axis=None)),
        (tsne(JOINT), divergence(JOINT, T, axis=None)),
        (tsne(JOINT, dof=3.0), divergence(JOINT, heavy, axis=None)),
        (
            sne(conditional(X, keep_self=True), include_self=True),
            divergence(conditional(X, keep_self=True), np.exp(-squares(MAP)), axis=1) / N,
        ),
    ]:
        assert expected > 0
        assert objective.value(MAP) == pytest.approx(expected, rel=1e-12)


def test_the_divergence_is_zero_where_both_distributions_agree():
    K, T = off_diagonal(np.exp(-squares(MAP))), off_diagonal(1 / (1 + squares(MAP)))
    for objective in [
        sne(K / K.sum(axis=1, keepdims=True)),
        symmetric_sne(K / K.sum()),
        tsne(T / T.sum()),
    ]:
        value, G = objective.value_and_gradient(MAP)
        assert abs(value) < 1e-14
        assert abs(G).max() < 1e-14


def test_bad_affinities_are_refused():
    for bad, message in [
        (2 * JOINT, "sum to 2 and must sum to 1"),
        (P / N, "must be symmetric"),
        (np.eye(N) / N, "on the diagonal"),
        (-JOINT, "must not be negative"),
        (JOINT[:, 1:], "square"),
        (np.where(JOINT > 0, np.nan, 0), "NaN"),
        (np.zeros((1, 1)), "2 or more"),
    ]:
        with pytest.raises(ValueError, match=message):
            tsne(bad)
    with pytest.raises(ValueError, match=r"row 0 .* sums to 0\.5"):
        sne(P / 2)
    with pytest.raises(ValueError, match="reduction='max' must be one of"):
        sne(P, reduction="max")
    with pytest.raises(ValueError, match="dof=0 must be greater"):
        tsne(JOINT, dof=0)


def test_repulsion_does_not_attract():
    with pytest.raises(ValueError, match=r"weight=-1\.0 must be at least 0"):
        Pairwise(JOINT, GaussianKernel(), Unnormalized(), weight=-1.0)
    objective = Pairwise(JOINT, GaussianKernel(), Unnormalized())
    with pytest.raises(ValueError, match=r"weight=-1\.0 must be at least 0"):
        objective.with_weight(-1.0)


def test_learned_affinity_with_an_isolated_point_does_not_warn():
    """The normalizer of its row is about e^(-3600); only the diagonal would overflow."""
    P = (1 - np.eye(6)) / 5
    Y = np.arange(12.0).reshape(6, 2) / 10
    Y[0] += 60
    objective = sne(P)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A = objective.learned_affinity(Y)
    L = np.diag(A.sum(axis=1)) - A
    np.testing.assert_allclose(4 * L @ Y, objective.value_and_gradient(Y)[1], atol=1e-12)
