"""The augmented Lagrangian of unfolding: its gradient, its multipliers, its curvature."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from manifoldry.semidefinite.edge_lengths import EdgeLengths
from manifoldry.semidefinite.landmarks import LandmarkUnfolding
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding, UnfoldingLagrangian

N = 14
RNG = np.random.default_rng(0)
ENDS = np.argwhere(np.triu(RNG.uniform(size=(N, N)) < 0.4, 1))
INTERVALS = {"equal": (0.0, 0.0), "interval": (-0.05, 0.04), "at_most": (-np.inf, 0.02)}


def posed(interval=(0.0, 0.0), slack=0.0, components=1, multiplicity=None, landmarks=False):
    component = np.arange(N) % components
    within = component[ENDS[:, 0]] == component[ENDS[:, 1]]
    ends = ENDS[within]
    lengths = np.random.default_rng(1).uniform(0.5, 2.0, len(ends))
    edges = EdgeLengths(ends, lengths**2, N)
    whole = FreeUnfolding(
        edges, interval, slack, np.ones(N) if multiplicity is None else multiplicity, component
    )
    if not landmarks:
        return whole
    Q = np.random.default_rng(2).standard_normal((N, 6))
    return LandmarkUnfolding.of(whole, Q, np.arange(0, edges.count, 2))


def objective(problem, penalty=30.0):
    multipliers = np.random.default_rng(3).normal(1.0, 1.0, problem.edges.count)
    return UnfoldingLagrangian(problem, multipliers, penalty, 2.5)


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("slack", [0.0, 0.1])
@pytest.mark.parametrize(
    "more",
    [{}, {"multiplicity": RNG.integers(1, 4, N) * 1.0}, {"components": 2}, {"landmarks": True}],
    ids=["plain", "multiplicities", "components", "landmarks"],
)
def test_gradient(interval, slack, more):
    problem = posed(INTERVALS[interval], slack, **more)
    f = objective(problem)
    R = np.random.default_rng(4).standard_normal((problem.n, 3))
    value, G = f.value_and_gradient(R)
    assert value == f.value(R)
    V = np.random.default_rng(5).standard_normal(R.shape)
    h = 1e-5
    slopes = [(f.value(R + t * V) - f.value(R - t * V)) / (2 * t) for t in (h, 2 * h)]
    slope = (4 * slopes[0] - slopes[1]) / 3  # Richardson
    assert slope == pytest.approx((G * V).sum(), rel=1e-8)


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("slack", [0.0, 0.1])
def test_an_updated_multiplier_maximizes_its_term(interval, slack):
    """The formula in the documentation, by search over a grid of multipliers."""
    problem = posed(INTERVALS[interval], slack)
    low, high = problem.interval
    f = objective(problem)
    c = np.random.default_rng(6).uniform(-0.3, 0.3, problem.edges.count)
    u = np.linspace(-30.0, 30.0, 600_001)[:, None]
    for chosen in np.array_split(np.arange(len(c)), len(c)):
        h = np.where(u > 0, u * high, 0.0)
        h[u[:, 0] < 0] = u[u[:, 0] < 0] * low if np.isfinite(low) else np.inf
        t = f.multipliers[chosen]
        cost = u * c[chosen] - h - slack / 2 * u**2 - (u - t) ** 2 / (2 * f.penalty)
        assert f.updated_multipliers(c)[chosen] == pytest.approx(u[cost.argmax()], abs=1e-3)


def test_multipliers_of_edges_that_may_shrink_are_nonnegative():
    f = objective(posed(INTERVALS["at_most"]))
    assert (
        f.updated_multipliers(np.random.default_rng(7).uniform(-1, 1, len(f.multipliers))) >= 0
    ).all()


def test_constants_do_not_matter():
    f = objective(posed(components=2))
    R = np.random.default_rng(8).standard_normal((N, 2))
    moved = R + np.array([[1.0, -2.0], [3.0, 0.5]])[np.arange(N) % 2]
    assert f.value(moved) == pytest.approx(f.value(R), rel=1e-12)
    np.testing.assert_allclose(f.value_and_gradient(moved)[1], f.value_and_gradient(R)[1])


def test_diagonal_curvature_is_that_of_positive_terms():
    """The diagonal of the Hessian without the terms that would lower it."""
    problem = posed(INTERVALS["interval"], 0.1)
    f = objective(problem)
    R = np.random.default_rng(9).standard_normal((N, 2))

    def terms(r):  # of the edges, without the variance, whose curvature is negative
        r = r.reshape(R.shape)
        c = problem.changes(r)
        u = f.updated_multipliers(c)
        cost = (
            u * c
            - problem.penalized_support_function(u, problem.interval)
            - (u - f.multipliers) ** 2 / (2 * f.penalty)
        )
        return cost.sum()

    def slope(r, i):
        step = np.zeros(r.size)
        step[i] = 1e-4
        return (terms(r.ravel() + step) - terms(r.ravel() - step)) / 2e-4

    steps = problem.edge_vectors(R)
    u = f.updated_multipliers(problem.changes(R))
    negative = (np.minimum(u, 0.0) / problem.edges.scales)[:, None] * np.ones_like(steps)
    expected = np.array([approx_fprime(R.ravel(), slope, 1e-4, i)[i] for i in range(R.size)])
    expected = expected.reshape(R.shape) - 2 * (abs(problem.edges.incidence).T @ negative)
    np.testing.assert_allclose(f.diagonal_curvature(R), expected, rtol=1e-2)
