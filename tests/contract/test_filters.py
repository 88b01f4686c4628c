"""Tests that every filter passes, at every stage of its schedule."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import DiagonalHessian, Identity, Jacobi, Progress
from manifoldry.optimize.guidance import EveryStep, Never, OnSlowProgress
from manifoldry.optimize.guidance_filters import DeflatedPower, Heat, Power, Projector
from manifoldry.optimize.spectral_direction import SpectralDirection

N = 40
STEP = EveryStep()


class Elastic(Objective):
    """Σ Wᵢⱼ‖yᵢ − yⱼ‖² + λ Σ exp(−‖yᵢ − yⱼ‖²) over ordered pairs."""

    def __init__(self, W, strength=0.1):
        self.W, self.strength = W, strength

    @property
    def n(self):
        return len(self.W)

    @property
    def attraction(self):
        return sparse.csr_array(self.W)

    def value_and_gradient(self, Y):
        D = cdist(Y, Y, "sqeuclidean")
        K = np.exp(-D) - np.eye(self.n)
        T = self.W - self.strength * K
        G = 4 * (T.sum(axis=1)[:, None] * Y - T @ Y)
        return float((self.W * D).sum() + self.strength * K.sum()), G.astype(Y.dtype)

    def diagonal_curvature(self, Y):
        K = np.exp(-cdist(Y, Y, "sqeuclidean"))
        repulsion = np.einsum("ij,ijk->ik", K, (Y[:, None] - Y) ** 2)
        return 4 * self.W.sum(axis=1)[:, None] + 8 * self.strength * repulsion


def weights(X, k=5):
    """Gaussian weights of the symmetrized graph of k nearest neighbors, without a diagonal."""
    D = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    near = np.sort(D, axis=1)[:, k - 1 : k] >= D
    return np.where(near | near.T, np.exp(-D / np.median(D[near])), 0.0)


def connected(rng):
    return weights(rng.uniform(size=(N, 2)))


def in_components(rng):
    """Two components, two points without neighbors."""
    W = np.zeros((N, N))
    for rows in (slice(0, 20), slice(20, N - 2)):
        W[rows, rows] = weights(rng.uniform(size=(W[rows].shape[0], 2)))
    return W


def without_edges(rng):
    return np.zeros((N, N))


GRAPHS = {"connected": connected, "in_components": in_components, "without_edges": without_edges}

# A new filter joins with one line here.
FILTERS = {
    "Identity": Identity,
    "Jacobi": Jacobi,
    "DiagonalHessian": DiagonalHessian,
    "SpectralDirection": SpectralDirection,
    "SpectralDirection-3": partial(SpectralDirection, n_neighbors=3),
    "Power": partial(Power, 5, schedule=STEP),
    "Power-stays": partial(Power, 3, schedule=STEP, final_filter=None),
    "Power-fractions": partial(Power, 2, (0.6, 0.25), schedule=STEP),
    "Power-series": partial(Power, 1, (0.5,), all_eigenvectors_up_to=0, schedule=STEP),
    "DeflatedPower": partial(DeflatedPower, 5, schedule=STEP),
    "DeflatedPower-fractions": partial(DeflatedPower, 2, (0.5,), schedule=STEP),
    "Projector": partial(Projector, step=7, schedule=STEP),
    "Projector-drop": partial(Projector, 2, step=9, drop_first=True, schedule=STEP),
    "Projector-fixed": partial(Projector, 2, schedule=Never()),
    "Heat": partial(Heat, factor=0.4, schedule=STEP),
    "Power-then": partial(Power, 2, schedule=STEP, final_filter=SpectralDirection()),
    "Heat-slow": partial(Heat, factor=0.4, schedule=OnSlowProgress(), final_filter=Jacobi()),
}
# Its operator depends on the gradient.
NONLINEAR = {"DeflatedPower", "DeflatedPower-fractions"}

every_filter = pytest.mark.parametrize("name", FILTERS)
every_graph = pytest.mark.parametrize("graph", GRAPHS)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture(name="Y")
def the_map(rng):
    return rng.normal(size=(N, 2))


def stages(bound, most=60):
    """The bound filter at every stage, one step in each."""
    for i in range(most):
        yield bound
        if bound.finished:
            return
        bound.advance(Progress(i + 1, 1.0, 0.0))
    raise AssertionError(f"not finished after {most} steps")


def explicit(bound, Y, column):
    """The operator on one column, as a matrix."""
    unit = np.zeros((N, N, 2))
    unit[np.arange(N), np.arange(N), column] = 1
    return np.column_stack([bound.apply(G, Y)[:, column] for G in unit])


@every_filter
@every_graph
def test_descent(name, graph, rng, Y):
    objective = Elastic(GRAPHS[graph](rng))
    for bound in stages(FILTERS[name]().operator_for(objective)):
        for G in (objective.value_and_gradient(Y)[1], *rng.normal(size=(20, N, 2))):
            P = bound.apply(G, Y)
            assert P.shape == G.shape
            assert np.isfinite(P).all()
            slopes = (P * G).sum(axis=0)  # of every coordinate
            sizes = np.linalg.norm(P, axis=0) * np.linalg.norm(G, axis=0)
            assert (slopes >= -1e-12 * sizes).all()


@pytest.mark.parametrize("name", [name for name in FILTERS if name not in NONLINEAR])
@every_graph
def test_symmetric_and_semidefinite(name, graph, rng, Y):
    for bound in stages(FILTERS[name]().operator_for(Elastic(GRAPHS[graph](rng)))):
        for column in range(2):
            F = explicit(bound, Y, column)
            size = np.abs(F).max()
            np.testing.assert_allclose(F, F.T, rtol=0, atol=1e-12 * size)
            assert np.linalg.eigvalsh(F)[0] >= -1e-12 * size


@pytest.mark.parametrize("name", [name for name in FILTERS if name not in NONLINEAR])
def test_linear_and_columns_apart(name, rng, Y):
    G, H = rng.normal(size=(2, N, 2))
    for bound in stages(FILTERS[name]().operator_for(Elastic(connected(rng)))):
        together = bound.apply(G - 2 * H, Y)
        apart = bound.apply(G, Y) - 2 * bound.apply(H, Y)
        np.testing.assert_allclose(together, apart, atol=1e-11 * np.abs(apart).max())
        only_first = bound.apply(G * [1, 0], Y)
        np.testing.assert_allclose(only_first[:, 0], bound.apply(G, Y)[:, 0], rtol=1e-9)
        assert not only_first[:, 1].any()


@every_filter
def test_a_gradient_of_zero_gives_no_direction(name, rng, Y):
    for bound in stages(FILTERS[name]().operator_for(Elastic(connected(rng)))):
        assert not bound.apply(np.zeros((N, 2)), Y).any()


@every_filter
def test_the_gradient_is_not_modified_and_keeps_its_type(name, rng, Y):
    objective = Elastic(connected(rng))
    G = objective.value_and_gradient(Y)[1]
    short, kept = G.astype(np.float32), G.copy()
    for bound in stages(FILTERS[name]().operator_for(objective)):
        P, Q = bound.apply(G, Y), bound.apply(short, Y.astype(np.float32))
        np.testing.assert_array_equal(G, kept)
        assert P.dtype == np.float64
        assert Q.dtype == np.float32
        np.testing.assert_allclose(Q, P, atol=1e-4 * np.abs(P).max())


@every_filter
def test_a_second_operator_gives_the_same_bits(name, rng, Y):
    objective, chosen = Elastic(connected(rng)), FILTERS[name]()
    G = objective.value_and_gradient(Y)[1]
    runs = [[b.apply(G, Y) for b in stages(chosen.operator_for(objective))] for _ in range(2)]
    np.testing.assert_array_equal(*runs)


@every_filter
def test_the_scale_of_the_gradient_carries_over(name, rng, Y):
    objective = Elastic(connected(rng))
    G = objective.value_and_gradient(Y)[1]
    for scale in (1e-150, 1e150):
        for bound in stages(FILTERS[name]().operator_for(objective)):
            P = bound.apply(G, Y)
            np.testing.assert_allclose(bound.apply(scale * G, Y) / scale, P, rtol=1e-6, atol=1e-12)


@every_filter
def test_pickled_cloned_and_printed(name, rng, Y):
    chosen = FILTERS[name]()
    objective = Elastic(connected(rng))
    G = objective.value_and_gradient(Y)[1]
    P = chosen.operator_for(objective).apply(G, Y)
    for copy in (pickle.loads(pickle.dumps(chosen)), clone(chosen, safe=False)):
        np.testing.assert_array_equal(copy.operator_for(objective).apply(G, Y), P)
    assert repr(chosen).startswith(type(chosen).__name__)


@every_filter
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_points(name, n, rng):
    objective = Elastic(1.0 - np.eye(n))
    Y = rng.normal(size=(n, 2))
    for bound in stages(FILTERS[name]().operator_for(objective)):
        assert np.isfinite(bound.apply(objective.value_and_gradient(Y)[1], Y)).all()


@every_filter
def test_descends_by_a_backtracking_search(name, rng):
    """The value decreases at every step, in every stage."""
    objective = Elastic(connected(rng))
    bound = FILTERS[name]().operator_for(objective)
    Y = 0.1 * rng.normal(size=(N, 2))
    E, G = objective.value_and_gradient(Y)
    first = E
    for i in range(30):
        P, length = bound.apply(G, Y), 1.0
        while objective.value(Y - length * P) > E and length > 1e-12:
            length /= 2
        assert length > 1e-12 or np.linalg.norm(P) <= 1e-6 * np.linalg.norm(G)
        Y = Y - length * P
        last, (E, G) = E, objective.value_and_gradient(Y)
        assert last >= E
        bound.advance(Progress(i + 1, E, (last - E) / last))
    assert first * 0.999 > E
