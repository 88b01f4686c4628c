"""What every objective of attracting and repelling pairs has to satisfy."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from manifoldry.objectives.elastic import ElasticObjective
from manifoldry.objectives.sne import SNEObjective
from manifoldry.objectives.squared_distance import squared_distance_weights
from manifoldry.objectives.symmetric_sne import SymmetricSNEObjective
from manifoldry.objectives.tsne import TSNEObjective

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
SPARSE_REPULSION = off_diagonal(squares(X) * (squares(X) > 8))

OBJECTIVES = {
    "elastic, uniform": ElasticObjective(JOINT, weight=30.0),
    "elastic, distances": ElasticObjective(JOINT, squared_distance_weights(X), weight=30.0),
    "elastic, dense": ElasticObjective(JOINT, squares(X) ** 2, weight=30.0),
    "elastic, sparse": ElasticObjective(JOINT, sparse.csr_array(SPARSE_REPULSION), weight=30.0),
    "sne": SNEObjective(P),
    "sne, sum": SNEObjective(P, reduction="sum", weight=1.7),
    "sne, self": SNEObjective(conditional(X, keep_self=True), include_self=True),
    "symmetric sne": SymmetricSNEObjective(JOINT),
    "symmetric sne, weighted": SymmetricSNEObjective(JOINT, weight=0.4),
    "tsne": TSNEObjective(JOINT),
    "tsne, exaggerated": TSNEObjective(JOINT, exaggeration=12.0),
    "tsne, dof 0.5": TSNEObjective(JOINT, dof=0.5),
    "tsne, dof 3": TSNEObjective(JOINT, dof=3.0, exaggeration=2.0, weight=0.7),
}


def divergence(P, K, axis):
    """KL(P‖Q) for Q = K scaled to sum to one along an axis, straight from the definition."""
    Q = K / K.sum(axis=axis, keepdims=True)
    used = P > 0
    return float((P[used] * np.log(P[used] / Q[used])).sum())


@pytest.fixture(params=OBJECTIVES)
def objective(request):
    return OBJECTIVES[request.param]


def central_differences(f, Y, step=1e-5):
    G = np.zeros_like(Y)
    for place in np.ndindex(Y.shape):
        E = np.zeros_like(Y)
        E[place] = step
        G[place] = (f(Y + E) - f(Y - E)) / (2 * step)
    return G


def test_gradient_is_the_derivative_of_the_value(objective):
    value, G = objective.value_and_gradient(MAP)
    assert value == pytest.approx(objective.value(MAP), rel=1e-13)
    expected = central_differences(objective.value, MAP)
    np.testing.assert_allclose(G, expected, atol=1e-6 * abs(expected).max())


@pytest.mark.parametrize("d", [1, 3])
def test_gradient_in_other_dimensions(objective, d):
    Y = RNG.normal(size=(N, d))
    expected = central_differences(objective.value, Y)
    G = objective.value_and_gradient(Y)[1]
    np.testing.assert_allclose(G, expected, atol=1e-6 * abs(expected).max())


def test_maps_that_are_moved_or_turned_are_worth_the_same(objective):
    value, G = objective.value_and_gradient(MAP)
    turn = np.linalg.qr(RNG.normal(size=(D, D)))[0]
    moved, H = objective.value_and_gradient(MAP @ turn + [3.0, -40.0])
    assert moved == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(H, G @ turn, atol=1e-12 * abs(G).max() + 1e-13)
    assert abs(G.sum(axis=0)).max() < 1e-13 * np.abs(G).sum()


def test_a_map_far_from_the_origin_keeps_its_digits(objective):
    value, G = objective.value_and_gradient(MAP)
    moved, H = objective.value_and_gradient(MAP + 2.0**27)
    assert moved == pytest.approx(value, rel=1e-5)  # coordinates there are rounded to 3e-8
    np.testing.assert_allclose(H, G, atol=1e-5 * abs(G).max())


def test_single_precision_is_close_to_double(objective):
    value, G = objective.value_and_gradient(MAP)
    single, H = objective.value_and_gradient(MAP.astype(np.float32))
    assert H.dtype == np.float32
    assert objective.diagonal_curvature(MAP.astype(np.float32)).dtype == np.float32
    assert single == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(H, G, atol=1e-5 * abs(G).max())


def test_gradient_is_the_laplacian_of_the_learned_affinity(objective):
    A = objective.learned_affinity(MAP)
    np.testing.assert_allclose(A, A.T, atol=1e-15)
    assert (np.diag(A) == 0).all()
    G = objective.value_and_gradient(MAP)[1]
    np.testing.assert_allclose(4 * (np.diag(A.sum(axis=1)) - A) @ MAP, G, atol=1e-6 * abs(G).max())


def test_learned_affinity_of_some_pairs(objective):
    pattern = sparse.csr_array(np.triu(squares(X) < 9, k=1))
    edges = objective.learned_affinity_edges(MAP, pattern)
    expected = np.where(pattern.toarray(), objective.learned_affinity(MAP), 0)
    np.testing.assert_allclose(edges.toarray(), expected, atol=1e-16)


def hessian(objective, Y, step=1e-5):
    def column(place):
        E = np.zeros_like(Y)
        E[place] = step
        change = objective.value_and_gradient(Y + E)[1] - objective.value_and_gradient(Y - E)[1]
        return change.ravel() / (2 * step)

    return np.array([column(place) for place in np.ndindex(Y.shape)])


def test_diagonal_curvature_is_an_upper_bound_of_the_hessian(objective):
    h = objective.diagonal_curvature(MAP)
    diagonal = np.diag(hessian(objective, MAP)).reshape(MAP.shape)
    assert (h > 0).all()
    assert (h >= diagonal - 1e-6 * abs(diagonal).max()).all()


def test_curvature_at_the_collapsed_map(objective):
    """Attraction and repulsion at Y = 0 are the Laplacians that a bifurcation compares."""
    Y = np.zeros((N, 1))
    W, repulsion = objective.attraction.toarray(), objective.collapsed_repulsion
    expected = 4 * (np.diag(W.sum(axis=1)) - W) - 4 * objective.weight * repulsion.laplacian()
    np.testing.assert_allclose(hessian(objective, Y), expected, atol=1e-6 * abs(expected).max())
    flat = 4 * W.sum(axis=1)
    np.testing.assert_allclose(objective.diagonal_curvature(Y)[:, 0], flat, rtol=1e-12)


def test_another_weight(objective):
    other = objective.with_weight(2.5)
    assert other.weight == 2.5
    assert objective.weight != 2.5
    direct = replace(objective, weight=2.5)
    assert other.value(MAP) == pytest.approx(direct.value(MAP), rel=1e-14)
    with pytest.raises(ValueError, match="weight=-1"):
        objective.with_weight(-1)


@pytest.mark.parametrize("distance", [1e2, 1e5])
def test_points_far_from_all_others(objective, distance):
    """Where kernels underflow, values and gradients stay finite and agree."""
    Y = MAP.copy()
    Y[:2] += distance
    Y[2] -= distance
    value, G = objective.value_and_gradient(Y)
    assert np.isfinite(value)
    assert np.isfinite(G).all()
    assert np.isfinite(objective.diagonal_curvature(Y)).all()
    step = np.zeros_like(Y)
    step[0] = [0.7, -0.3]
    change = objective.value(Y + 1e-4 * step) - objective.value(Y - 1e-4 * step)
    assert change / 2e-4 == pytest.approx(np.vdot(G, step), rel=1e-4, abs=1e-9 * distance)


def test_wrong_shapes_are_refused(objective):
    with pytest.raises(ValueError, match=f"pass one of {N} rows"):
        objective.value_and_gradient(np.zeros((N + 1, 2)))


def test_all_points_far_apart():
    """Then the nearest pair alone decides; in two dimensions all pairs are nearest."""
    Y = 100 * np.array([[0.0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    even = (1 - np.eye(3)) / 6
    assert SymmetricSNEObjective(even).value(Y) == pytest.approx(0, abs=1e-8)
    assert SNEObjective(3 * even).value(Y) == pytest.approx(0, abs=1e-8)
    objective = SymmetricSNEObjective(even)
    Y[2] *= 1.5
    G = objective.value_and_gradient(Y)[1]
    np.testing.assert_allclose(
        G, central_differences(objective.value, Y, 1e-3), atol=1e-6 * abs(G).max()
    )


def test_values_are_divergences():
    K, T = off_diagonal(np.exp(-squares(MAP))), off_diagonal(1 / (1 + squares(MAP)))
    heavy = off_diagonal((1 + squares(MAP) / 3) ** -2.0)
    for objective, expected in [
        (SNEObjective(P), divergence(P, K, axis=1) / N),
        (SNEObjective(P, reduction="sum"), divergence(P, K, axis=1)),
        (SymmetricSNEObjective(JOINT), divergence(JOINT, K, axis=None)),
        (TSNEObjective(JOINT), divergence(JOINT, T, axis=None)),
        (TSNEObjective(JOINT, dof=3.0), divergence(JOINT, heavy, axis=None)),
        (
            SNEObjective(conditional(X, keep_self=True), include_self=True),
            divergence(conditional(X, keep_self=True), np.exp(-squares(MAP)), axis=1) / N,
        ),
    ]:
        assert expected > 0
        assert objective.value(MAP) == pytest.approx(expected, rel=1e-12)


def test_the_divergence_is_zero_where_both_distributions_agree():
    K, T = off_diagonal(np.exp(-squares(MAP))), off_diagonal(1 / (1 + squares(MAP)))
    for objective in [
        SNEObjective(K / K.sum(axis=1, keepdims=True)),
        SymmetricSNEObjective(K / K.sum()),
        TSNEObjective(T / T.sum()),
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
            TSNEObjective(bad)
    with pytest.raises(ValueError, match=r"row 0 .* sums to 0\.5"):
        SNEObjective(P / 2)
    with pytest.raises(ValueError, match="reduction='max' must be one of"):
        SNEObjective(P, reduction="max")
    with pytest.raises(ValueError, match="dof=0 must be greater"):
        TSNEObjective(JOINT, dof=0)


def test_learned_affinity_of_a_map_with_a_lost_point_is_quiet():
    """Its row's normaliser is e^(-3600) or so; only the diagonal would overflow."""
    P = (1 - np.eye(6)) / 5
    Y = np.arange(12.0).reshape(6, 2) / 10
    Y[0] += 60
    objective = SNEObjective(P)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A = objective.learned_affinity(Y)
    L = np.diag(A.sum(axis=1)) - A
    np.testing.assert_allclose(4 * L @ Y, objective.value_and_gradient(Y)[1], atol=1e-12)
