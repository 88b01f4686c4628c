"""Hessian, scaling and repulsion weights of the elastic embedding."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

from manifoldry.objectives import Exact, GaussianKernel, elastic
from manifoldry.objectives.repulsion import (
    DenseRepulsion,
    Repulsion,
    SparseRepulsion,
    UniformRepulsion,
    as_repulsion,
)
from manifoldry.objectives.squared_distance import squared_distance_weights

N = 15
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 4))
MAP = RNG.normal(size=(N, 2))
SQUARES = squareform(pdist(X, "sqeuclidean"))
ATTRACTION = np.exp(-SQUARES) - np.eye(N)
ATTRACTION /= ATTRACTION.sum()
GRAPH = sparse.csr_array(SQUARES * (SQUARES > 6))


def lap(W):
    return np.diag(W.sum(axis=1)) - W


def dense_hessian(W, R, weight, Y):
    """The published Hessian, entry (n, i), (m, j)."""
    K = R * np.exp(-squareform(pdist(Y, "sqeuclidean")))
    steps = Y[:, None] - Y
    H = 4 * np.einsum("nm,ij->nimj", lap(W - weight * K), np.eye(Y.shape[1]))
    for i, j in np.ndindex(Y.shape[1], Y.shape[1]):
        H[:, i, :, j] += 8 * weight * lap(K * steps[:, :, i] * steps[:, :, j])
    return H


@pytest.mark.parametrize(
    "repulsion", ["uniform", SQUARES, GRAPH], ids=["uniform", "dense", "sparse"]
)
def test_hessian_and_its_diagonal(repulsion):
    objective = elastic(ATTRACTION, repulsion, weight=20.0)
    R = 1 - np.eye(N) if isinstance(repulsion, str) else repulsion
    R = R.toarray() if sparse.issparse(R) else R
    R = R / R.sum()
    H = dense_hessian(ATTRACTION, R, 20.0, MAP)
    V = RNG.normal(size=MAP.shape)
    expected = np.einsum("nimj,mj->ni", H, V)
    found = objective.hessian_product(MAP, V)
    np.testing.assert_allclose(found, expected, atol=1e-7 * abs(expected).max())
    K = R * np.exp(-squareform(pdist(MAP, "sqeuclidean")))
    negative = -4 * 20.0 * K.sum(axis=1)[:, None]
    diagonal = np.einsum("nini->ni", H)
    np.testing.assert_allclose(objective.diagonal_curvature(MAP), diagonal - negative, rtol=1e-12)


def test_value_from_the_definition():
    d2 = squareform(pdist(MAP, "sqeuclidean"))
    R = SQUARES / SQUARES.sum()
    expected = (ATTRACTION * d2).sum() + 7.0 * (R * np.exp(-d2)).sum()
    objective = elastic(ATTRACTION, squared_distance_weights(X, np.float64), 7.0)
    assert objective.value(MAP) == pytest.approx(expected, rel=1e-13)


def test_scaling_law():
    """Weights a·W⁺, b·W⁻ at λ are a times weights W⁺, W⁻ at λ·b/a."""
    a, b, weight = 0.3, 5.0, 11.0
    d2 = squareform(pdist(MAP, "sqeuclidean"))
    R = SQUARES / SQUARES.sum()
    raw = (a * ATTRACTION * d2).sum() + weight * (b * R * np.exp(-d2)).sum()
    objective = elastic(ATTRACTION, SQUARES).with_weight(weight * b / a)
    assert a * objective.value(MAP) == pytest.approx(raw, rel=1e-12)


def test_learned_affinity_at_a_minimum():
    objective = elastic(ATTRACTION, squared_distance_weights(X, np.float64), 50.0)

    def fun(y):
        value, G = objective.value_and_gradient(y.reshape(N, 2))
        return value, G.ravel()

    options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-12, "maxls": 50}
    best = minimize(fun, MAP.ravel(), jac=True, method="L-BFGS-B", options=options)
    Y = best.x.reshape(N, 2)
    A = objective.learned_affinity(Y)
    d2 = squareform(pdist(Y, "sqeuclidean"))
    expected = ATTRACTION - 50 * SQUARES / SQUARES.sum() * np.exp(-d2)
    np.testing.assert_allclose(A, expected, atol=1e-15)
    assert np.linalg.norm(lap(A) @ Y) < 1e-4 * np.linalg.norm(lap(ATTRACTION) @ Y)
    assert (A > 0).any()
    assert (A < 0).any()


REPULSIONS = {
    "uniform": (UniformRepulsion(N), (1 - np.eye(N)) / (N * (N - 1))),
    "distances": (squared_distance_weights(X), SQUARES / SQUARES.sum()),
    "sparse data": (squared_distance_weights(sparse.csr_array(X + 3)), SQUARES / SQUARES.sum()),
    "dense": (as_repulsion(SQUARES**2, N), SQUARES**2 / (SQUARES**2).sum()),
    "sparse": (as_repulsion(GRAPH, N), GRAPH.toarray() / GRAPH.sum()),
}


@pytest.fixture(params=REPULSIONS)
def repulsion(request):
    return REPULSIONS[request.param]


class TestRepulsion:
    def test_weights(self, repulsion: tuple[Repulsion, np.ndarray]):
        found, R = repulsion
        i = np.arange(N)
        at = np.where(np.eye(N), 0, found.at(i[:, None], i))
        np.testing.assert_allclose(at, R, rtol=1e-6)
        assert R.sum() == pytest.approx(1)
        np.testing.assert_allclose(found.degrees, R.sum(axis=1), rtol=1e-6)

    def test_laplacian(self, repulsion: tuple[Repulsion, np.ndarray]):
        found, R = repulsion
        V = RNG.normal(size=(N, 3)) + 5
        np.testing.assert_allclose(found.laplacian_product(V), lap(R) @ V, atol=1e-6)
        np.testing.assert_allclose(found.laplacian_product(V[:, 0]), lap(R) @ V[:, 0], atol=1e-6)
        np.testing.assert_allclose(found.laplacian(), lap(R), atol=1e-8)

    def test_sums(self, repulsion: tuple[Repulsion, np.ndarray]):
        found, R = repulsion
        K = R * np.exp(-squareform(pdist(MAP, "sqeuclidean")))
        kernel_sums, force, _ = Exact().sums(GaussianKernel(), MAP, found.matrix)
        np.testing.assert_allclose(found.scale * kernel_sums, K.sum(axis=1), rtol=1e-6)
        np.testing.assert_allclose(found.scale * force, lap(K) @ MAP, atol=1e-7)
        steps = (MAP[:, None] - MAP) ** 2
        moments = found.scale * Exact().moments(GaussianKernel(), MAP, found.matrix)
        np.testing.assert_allclose(moments, np.einsum("nm,nmi->ni", K, steps), rtol=1e-6)

    def test_scaled(self, repulsion: tuple[Repulsion, np.ndarray]):
        found, R = repulsion
        i, scaled = np.arange(N), found.scaled(2.5).without_cache()
        at = np.where(np.eye(N), 0, scaled.at(i[:, None], i))
        np.testing.assert_allclose(at, 2.5 * R, rtol=1e-6)
        assert scaled.n == N
        assert scaled.scale == pytest.approx(2.5 * found.scale)
        assert (scaled.matrix is None) == (found.matrix is None)
        np.testing.assert_allclose(scaled.degrees, 2.5 * R.sum(axis=1), rtol=1e-6)
        np.testing.assert_allclose(scaled.laplacian(), 2.5 * lap(R), atol=1e-8)


def test_laplacian_of_squared_distances_needs_no_matrix():
    """Accurate in double precision, although the weights are stored in single."""
    V = RNG.normal(size=(N, 2))
    exact = lap(SQUARES / SQUARES.sum()) @ V
    found = squared_distance_weights(X)
    np.testing.assert_allclose(found.laplacian_product(V), exact, atol=1e-15)
    np.testing.assert_allclose(found.degrees, SQUARES.sum(axis=1) / SQUARES.sum(), rtol=1e-12)
    assert "_pairs" not in vars(found)


def test_repulsion_of_new_points():
    new = RNG.normal(size=(3, 4))
    d2 = ((new[:, None] - X) ** 2).sum(axis=2)
    found = squared_distance_weights(X)
    np.testing.assert_allclose(found.rows(new), d2 / SQUARES.sum(), rtol=1e-12)
    np.testing.assert_allclose(found.rows(X), found.weights, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(UniformRepulsion(N).rows(new), np.full((3, N), 1 / (N * (N - 1))))
    for given in (SQUARES, GRAPH):
        with pytest.raises(ValueError, match="is unknown"):
            as_repulsion(given, N).rows(new)


@pytest.mark.parametrize(("scale", "offset"), [(1e150, 0), (1e-150, 0), (1.0, 2.0**30)])
def test_units_and_offset_of_the_data_do_not_matter(scale, offset):
    lattice = np.round(X * 1024) / 1024  # so that adding the offset is exact
    plain = squared_distance_weights(lattice).weights
    moved = squared_distance_weights(lattice * scale + offset).weights
    np.testing.assert_allclose(moved, plain, rtol=1e-5)


def test_sparse_data():
    found = squared_distance_weights(sparse.csr_array(X)).weights
    np.testing.assert_allclose(found, squared_distance_weights(X).weights, rtol=1e-5)


def test_given_weights_keep_their_precision_and_stay_unchanged():
    given = SQUARES.astype(np.float32)
    before = given.copy()
    found = as_repulsion(given, N)
    assert isinstance(found, DenseRepulsion)
    assert found.W.dtype == np.float32
    np.testing.assert_array_equal(given, before)
    assert isinstance(as_repulsion(GRAPH, N), SparseRepulsion)


def test_bad_repulsion_is_refused(free_memory):
    for bad, message in [
        ("strong", "repulsion='strong'"),
        (SQUARES[1:, 1:], "14 points"),
        (-SQUARES, "negative"),
        (np.triu(SQUARES), "symmetric"),
        (np.zeros((N, N)), "sum to 0"),
        (sparse.csr_array((N, N)), "sum to 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            elastic(ATTRACTION, bad)
    with pytest.raises(ValueError, match=r"sum to 0\.0 .* coincide"):
        squared_distance_weights(np.ones((5, 2)))
    free_memory(100)
    with pytest.raises(MemoryError, match="repulsion='uniform'"):
        squared_distance_weights(X)
