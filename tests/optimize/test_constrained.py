"""Minimizing under a constraint on the covariance of the map."""

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles
from scipy.optimize import minimize

from manifoldry import objectives
from manifoldry.affinity.entropic import Entropic
from manifoldry.datasets import make_swiss_roll
from manifoldry.iterative.neighbor_weights import joint
from manifoldry.neighbors import NeighborGraph
from manifoldry.objectives.weights import graph_laplacian
from manifoldry.optimize import (
    LBFGS,
    Constrained,
    Power,
    SpectralDirection,
    Stopping,
    resolve_optimizer,
)

N = 80
STRICT = Stopping(max_iter=3000, tol=0, value_tol=0, gradient_tol=1e-8)
searches = pytest.mark.parametrize(
    "search", ["gradient", "jacobi", "diagonal", "spectral", "cg", "lbfgs", "spectral-lbfgs"]
)
masses = pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "degree"])


@pytest.fixture(scope="module")
def elastic():
    graph = NeighborGraph.build(make_swiss_roll(N, random_state=0).X, n_neighbors=24)
    W = joint(Entropic(8.0).fit(graph).conditional(graph))
    return objectives.elastic(W, weight=5.0)


@pytest.fixture
def start():
    return np.random.default_rng(0).normal(size=(N, 2))


@pytest.fixture
def mass(elastic, weighted):
    return elastic.attraction.sum(axis=1) if weighted else None


def diagonal(mass):
    return np.full(N, 1 / N) if mass is None else mass / mass.sum()


@searches
@masses
def test_without_repulsion_it_finds_laplacian_eigenmaps(elastic, start, mass, search):
    springs, size = elastic.with_weight(0.0), 3.0
    search = resolve_optimizer(search, STRICT)
    solution = Constrained(search, mass, size).minimize(springs, start)
    L = graph_laplacian(elastic.attraction).toarray()
    values, V = eigh(L, np.diag(diagonal(mass)), subset_by_index=(1, 2))
    assert solution.converged, solution.status
    assert subspace_angles(solution.embedding, V).max() < 1e-4
    assert solution.value == pytest.approx(2 * size**2 * values.sum(), rel=1e-8)


@searches
@masses
def test_every_map_keeps_the_constraint_and_no_value_rises(elastic, start, mass, search):
    seen = []
    constrained = Constrained(resolve_optimizer(search, STRICT), mass, 2.0)
    solution = constrained.minimize(elastic, start, callback=seen.append)
    for Y in [iterate.embedding for iterate in seen] + [solution.embedding]:
        assert np.allclose(Y.T * diagonal(mass) @ Y, 4 * np.eye(2), atol=1e-10)
        assert np.allclose(diagonal(mass) @ Y, 0, atol=1e-10)
    values = solution.history("value")
    for iterate in seen[:3] + seen[-2:]:
        assert iterate.step.value == pytest.approx(elastic.value(iterate.embedding), rel=1e-14)
    assert (np.diff(values) <= 16 * np.finfo(float).eps * values[:-1]).all()
    assert values[-1] < 0.9 * values[0]


@masses
def test_gradient_vanishes_but_for_what_would_break_the_constraint(elastic, start, mass):
    solution = Constrained(LBFGS(SpectralDirection(), stopping=STRICT), mass).minimize(
        elastic, start
    )
    Y, b = solution.embedding, diagonal(mass)
    G = elastic.value_and_gradient(Y)[1]
    M = Y.T @ G
    assert solution.converged, solution.status
    left = np.linalg.norm(G - b[:, None] * Y @ (M + M.T) / 2)
    assert left < 1e-6 * np.linalg.norm(G)
    # The map of least value, which at the end of a search need not be the last.
    assert np.isclose(solution.history("gradient_norm"), left, rtol=1e-3).any()
    assert solution.value == pytest.approx(elastic.value(Y), rel=1e-14)


@masses
def test_scipy_finds_nothing_lower_nearby(elastic, start, mass):
    """Sequential quadratic programming, which is told of the constraint as such."""
    W = elastic.affinity.toarray()[::4, ::4] + 1e-5 * (1 - np.eye(20))
    small = objectives.elastic(W / W.sum(), weight=elastic.weight)
    mass = None if mass is None else small.attraction.sum(axis=1)
    b = np.full(20, 1 / 20) if mass is None else mass / mass.sum()

    def flat(y):
        value, G = small.value_and_gradient(y.reshape(20, 2))
        return value, G.ravel()

    def broken(y):
        Y = y.reshape(20, 2)
        C = Y.T * b @ Y - np.eye(2)
        return np.concatenate([C[np.triu_indices(2)], b @ Y])

    solution = Constrained(LBFGS(stopping=STRICT), mass).minimize(small, start[:20])
    shaken = solution.embedding + 1e-2 * np.random.default_rng(1).normal(size=(20, 2))
    oracle = minimize(
        flat,
        shaken.ravel(),
        jac=True,
        method="SLSQP",
        constraints={"type": "eq", "fun": broken},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert oracle.success
    assert solution.value == pytest.approx(oracle.fun, rel=1e-6)


def test_interrupted_it_returns_the_best_map_so_far(elastic, start):
    def interrupt(iterate):
        if iterate.step.iteration == 5:
            raise KeyboardInterrupt

    solution = Constrained(LBFGS()).minimize(elastic, start, callback=interrupt)
    assert solution.interrupted
    assert solution.n_iter == 5
    assert solution.value == elastic.value(solution.embedding) == solution.trace[-1].value
    assert np.allclose(solution.embedding.T @ solution.embedding, N * np.eye(2), atol=1e-10)


def test_bounds_and_filters_reach_the_optimizer(elastic, start):
    constrained = Constrained(LBFGS(), size=2.0).with_stopping(7, 0.0)
    assert constrained.minimize(elastic, start).n_iter == 7
    guided = Constrained(LBFGS(Power(), stopping=STRICT)).minimize(elastic.with_weight(0.0), start)
    plain = Constrained(LBFGS(stopping=STRICT)).minimize(elastic.with_weight(0.0), start)
    assert guided.value == pytest.approx(plain.value, rel=1e-8)


def test_the_watcher_cannot_change_the_map_and_the_start_is_left_alone(elastic, start):
    before = start.copy()

    def write(iterate):
        iterate.embedding[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        Constrained(LBFGS()).minimize(elastic, start, callback=write)
    assert np.array_equal(start, before)


def test_single_precision_stays(elastic, start):
    single = Constrained(LBFGS()).minimize(elastic, start.astype(np.float32))
    double = Constrained(LBFGS()).minimize(elastic, start)
    assert single.embedding.dtype == np.float32
    assert single.converged, single.status
    assert single.value == pytest.approx(double.value, rel=1e-2)


def test_bad_starts(elastic, start):
    constrained = Constrained(LBFGS())
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        constrained.minimize(elastic, np.full_like(start, np.nan))
    with pytest.raises(ValueError, match=r"has shape \(79, 2\).*n=80 points"):
        constrained.minimize(elastic, start[1:])
    with pytest.raises(ValueError, match="has a rank below 2"):
        constrained.minimize(elastic, np.zeros_like(start))
