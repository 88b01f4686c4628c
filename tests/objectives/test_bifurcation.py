"""The critical weight of the repulsion and its bounds."""

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

from manifoldry.objectives import elastic, sne, symmetric_sne, tsne
from manifoldry.objectives.bifurcation import Bifurcation, Numerics
from manifoldry.objectives.squared_distance import squared_distance_weights

N = 40
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3)) * [4, 2, 1]
SQUARES = squareform(pdist(X, "sqeuclidean"))
K = np.exp(-SQUARES / 4) - np.eye(N)
K[K < 0.05] = 0
K += np.eye(N, k=1) / 100 + np.eye(N, k=-1) / 100  # connected, whatever the threshold
P = K / K.sum(axis=1, keepdims=True)
JOINT = (P + P.T) / (2 * N)
GRAPH = SQUARES * (SQUARES > 25)

OBJECTIVES = {
    "uniform": elastic(JOINT),
    "distances": elastic(JOINT, squared_distance_weights(X, np.float64)),
    "dense": elastic(JOINT, SQUARES**2),
    "sparse": elastic(JOINT, sparse.csr_array(GRAPH)),
    "sne": sne(P),
    "sne, self": sne(P, include_self=True, reduction="sum"),
    "symmetric sne": symmetric_sne(JOINT),
    "tsne": tsne(JOINT, dof=2.0, exaggeration=4.0),
}


@pytest.fixture(params=OBJECTIVES)
def objective(request):
    return OBJECTIVES[request.param]


def lap(W):
    return np.diag(W.sum(axis=1)) - W


def exact(objective):
    """All generalized eigenpairs on vectors that sum to zero."""
    basis = linalg.null_space(np.ones((1, N)))
    plus = lap(objective.attraction.toarray())
    minus = objective.repulsion_at_zero.laplacian()
    values, V = linalg.eigh(basis.T @ plus @ basis, basis.T @ minus @ basis)
    return values, basis @ V


def test_critical_weight_and_directions(objective):
    found = Bifurcation.of(objective, n_components=3)
    values, V = exact(objective)
    assert found.weight == pytest.approx(values[0], rel=1e-9)
    V = V[:, :3] / np.linalg.norm(V[:, :3], axis=0)
    np.testing.assert_allclose(abs((found.directions * V).sum(axis=0)), 1, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(found.directions, axis=0), 1)
    assert abs(found.directions.sum(axis=0)).max() < 1e-9


def test_published_bounds(objective):
    found = Bifurcation.of(objective)
    assert 0 < found.lower <= found.weight * (1 + 1e-9)
    assert found.weight <= found.upper * (1 + 1e-9)
    plus = linalg.eigvalsh(lap(objective.attraction.toarray()))[1:]
    minus = linalg.eigvalsh(objective.repulsion_at_zero.laplacian())[1:]
    assert found.lower == pytest.approx(plus[0] / minus[-1])  # some pairs attract with weight 0
    assert found.upper <= (plus / minus).min() * (1 + 1e-9)


@pytest.mark.parametrize("name", ["distances", "dense", "sparse"])
def test_iterations_agree_with_dense_matrices(name):
    objective = OBJECTIVES[name]
    dense = Bifurcation.of(objective, n_components=3)
    found = Bifurcation.of(
        objective, n_components=3, numerics=Numerics(dense_up_to=10, max_density=1)
    )
    assert found.lower == pytest.approx(dense.lower)
    assert dense.upper <= found.upper * (1 + 1e-9)
    assert found.weight == pytest.approx(dense.weight, rel=1e-9)
    np.testing.assert_allclose(found.directions, dense.directions, atol=1e-7)


def descend(objective, Y):
    def fun(y):
        value, G = objective.value_and_gradient(y.reshape(Y.shape))
        return value / scale, G.ravel() / scale

    scale = np.linalg.norm(
        objective.value_and_gradient(Y)[1]
    )  # without it the gradient is below the tolerance
    options = {"maxiter": 3000, "maxfun": 10**5, "ftol": 0, "gtol": 1e-9}
    return minimize(fun, Y.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(Y.shape)


@pytest.mark.parametrize("name", ["uniform", "distances", "sne", "sne, self", "symmetric sne"])
def test_embeddings_collapse_below_and_are_one_dimensional_above(name):
    objective = OBJECTIVES[name]
    found = Bifurcation.of(objective)
    start = 1e-2 * RNG.normal(size=(N, 2))
    closed = descend(objective.with_weight(0.95 * found.weight), start)
    opened = descend(objective.with_weight(1.05 * found.weight), start)
    assert np.linalg.norm(closed - closed.mean(axis=0)) < 1e-3
    U, s, _ = np.linalg.svd(opened - opened.mean(axis=0), full_matrices=False)
    assert s[0] > 0.1
    assert s[1] < 1e-2 * s[0]
    assert abs(U[:, 0] @ found.directions[:, 0]) > 0.99


@pytest.mark.parametrize("repulsion", ["uniform", "dense", "sparse"])
@pytest.mark.parametrize("dense_up_to", [2000, 10])
def test_the_weight_is_zero_if_components_repel_each_other(repulsion, dense_up_to):
    half = np.kron(np.eye(2), 1 - np.eye(12))
    weights = {"uniform": "uniform", "dense": SQUARES[:24, :24]}
    given = weights.get(repulsion, sparse.csr_array(GRAPH[:24, :24]))
    found = Bifurcation.of(
        elastic(half / half.sum(), given), numerics=Numerics(dense_up_to, max_density=1)
    )
    assert found.weight == 0
    assert found.lower == 0
    first = found.directions[:, 0]
    np.testing.assert_allclose(first[:12], first[0], atol=1e-6)
    np.testing.assert_allclose(first[12:], -first[0], atol=1e-6)


def test_components_that_do_not_repel_each_other():
    """The critical weight is the smaller one of the two components."""
    half = np.kron(np.diag([2.0, 1.0]), 1 - np.eye(6))
    repulsion = np.kron(np.eye(2), 1 - np.eye(6))
    found = Bifurcation.of(elastic(half / half.sum(), repulsion), n_components=1)
    # Within a component attraction is c times repulsion: c = (1/90)/(1/60) in the weaker one.
    assert found.weight == pytest.approx(2 / 3, rel=1e-6)


def test_too_many_directions_are_refused():
    with pytest.raises(ValueError, match="n_components=40 must be at most 39"):
        Bifurcation.of(OBJECTIVES["uniform"], n_components=N)
