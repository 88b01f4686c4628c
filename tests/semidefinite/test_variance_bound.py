"""Bounds on the variance: weak duality for any multipliers, and tightness at the optimum."""

import numpy as np
import pytest

from manifoldry.semidefinite.edge_lengths import EdgeLengths
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding
from manifoldry.semidefinite.variance_bound import VarianceBound, dual_value

N = 16
RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((N, 3))
ENDS = np.argwhere(np.triu(RNG.uniform(size=(N, N)) < 0.5, 1))


def problem(interval=(0.0, 0.0), slack=0.0, multiplicity=None, points=POINTS):
    squares = ((points[ENDS[:, 0]] - points[ENDS[:, 1]]) ** 2).sum(axis=1)
    edges = EdgeLengths(ENDS, squares, N)
    multiplicity = np.ones(N) if multiplicity is None else multiplicity
    return FreeUnfolding(edges, interval, slack, multiplicity, np.zeros(N, dtype=np.intp))


def cycle(n, length=1.0):
    ends = np.sort(np.column_stack([np.arange(n), (np.arange(n) + 1) % n]), axis=1)
    edges = EdgeLengths(ends, np.full(n, length**2), n)
    return FreeUnfolding(edges, (0.0, 0.0), 0.0, np.ones(n), np.zeros(n, dtype=np.intp))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("interval", [(0.0, 0.0), (-0.1, 0.1), (-np.inf, 0.05)])
def test_it_holds_for_any_multipliers(seed, duplicates, interval):
    """The points themselves keep all lengths."""
    rng = np.random.default_rng(seed)
    posed = problem(interval, multiplicity=rng.integers(1, 5, N) * 1.0 if duplicates else None)
    pull = rng.uniform(0, 1, len(ENDS)) if interval[0] < -1 else rng.normal(1, 0.5, len(ENDS))
    found = VarianceBound.of(posed, pull, 1.0, rng)
    assert np.isfinite(found.value)
    assert found.value >= posed.variance(POINTS)
    # the returned multipliers prove the bound, by all eigenvalues
    L = posed.edges.laplacian(found.multipliers / posed.edges.scales).toarray()
    root = np.sqrt(posed.multiplicity)
    values, vectors = np.linalg.eigh(L / np.outer(root, root))
    others = np.abs(vectors.T @ root) < 1e-8 * np.linalg.norm(root)
    assert values[others].min() >= 1 - 1e-9
    assert found.value == pytest.approx(dual_value(posed, found.multipliers))
    if interval[0] < -1:
        assert (found.multipliers >= 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_with_slack_it_bounds_the_variance_minus_its_cost(seed):
    """For any map."""
    rng = np.random.default_rng(seed)
    posed = problem((-0.01, 0.01), slack=0.1)
    variance_per_edge = 3.0
    bound = VarianceBound.of(posed, rng.normal(1, 0.5, len(ENDS)), variance_per_edge, rng).value
    for size in (0.5, 1.0, 1.1, 2.0):
        R = size * (POINTS + 0.1 * rng.standard_normal(POINTS.shape))
        cost = variance_per_edge * posed.slack_cost(posed.changes(R))
        assert posed.variance(R) - cost <= bound


@pytest.mark.parametrize("n", [5, 12, 31])
def test_it_is_tight_for_a_ring(n):
    """Equal multipliers are optimal for a regular polygon."""
    posed = cycle(n)
    angle = 2 * np.pi * np.arange(n) / n
    R = np.column_stack([np.cos(angle), np.sin(angle)]) / (2 * np.sin(np.pi / n))
    assert np.abs(posed.changes(R)).max() < 1e-12
    found = VarianceBound.of(posed, np.ones(n), posed.variance(R) / n, np.random.default_rng(0))
    assert found.value == pytest.approx(posed.variance(R), rel=1e-9)


def test_the_scale_of_multipliers_does_not_matter():
    """Only ratios of multipliers count."""
    posed, rng = problem(), np.random.default_rng(0)
    one, ten = (VarianceBound.of(posed, np.full(len(ENDS), t), 1.0, rng) for t in (2.0, 20.0))
    assert one.value == pytest.approx(ten.value, rel=1e-9)


def test_missing_multipliers_are_added():
    """A large negative multiplier makes an eigenvalue negative, so that there is no bound."""
    posed, rng = problem(), np.random.default_rng(0)
    multipliers = np.ones(len(ENDS))
    multipliers[3] = -40.0
    L = posed.edges.laplacian(multipliers / posed.edges.scales).toarray()
    assert np.linalg.eigvalsh(L)[0] < -1
    found = VarianceBound.of(posed, multipliers, 1.0, rng)
    assert posed.variance(POINTS) <= found.value < np.inf


def test_lengths_that_contradict_each_other_have_a_negative_bound():
    """A triangle with sides 1, 1 and 3."""
    edges = EdgeLengths(np.array([[0, 1], [1, 2], [0, 2]]), np.array([1.0, 1.0, 9.0]), 3)
    posed = FreeUnfolding(edges, (0.0, 0.0), 0.0, np.ones(3), np.zeros(3, dtype=np.intp))
    # With weights 2, 2, −1 the Laplacian has a null vector that is not constant.
    multipliers = np.array([2.1, 2.1, -1.0]) * posed.edges.scales * 1e3
    assert VarianceBound.of(posed, multipliers, 1.0, np.random.default_rng(0)).value < 0
