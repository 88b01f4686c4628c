"""The method of multipliers: optimality, rounds, interrupts, infeasible lengths."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry import MVU
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.semidefinite.edge_lengths import EdgeLengths
from manifoldry.semidefinite.multipliers import MethodOfMultipliers
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding

N = 18
RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((N, 3)) * [3.0, 1.0, 0.5]
NEAR = np.argsort(((POINTS[:, None] - POINTS) ** 2).sum(axis=2), axis=1)[:, 1:6]
ENDS = np.unique(np.sort([(i, j) for i in range(N) for j in NEAR[i]], axis=1), axis=0)
SQUARES = ((POINTS[ENDS[:, 0]] - POINTS[ENDS[:, 1]]) ** 2).sum(axis=1)


def problem(interval=(-0.01, 0.01), slack=0.0, multiplicity=None, squares=SQUARES):
    multiplicity = np.ones(N) if multiplicity is None else multiplicity
    return FreeUnfolding(
        EdgeLengths(ENDS, squares, N), interval, slack, multiplicity, np.zeros(N, dtype=np.intp)
    )


def solved(posed, method=None, start=POINTS, **options):
    method = MethodOfMultipliers(**options) if method is None else method
    return method.solve(posed, start, np.random.default_rng(0))


@pytest.mark.parametrize(
    "posed",
    [
        problem(),
        problem((-np.inf, 0.0)),
        problem(slack=0.05),
        problem(multiplicity=RNG.integers(1, 4, N) * 1.0),
    ],
    ids=["interval", "at most", "slack", "multiplicities"],
)
def test_optimality(posed):
    """The conditions of Karush, Kuhn and Tucker, each to a stated tolerance."""
    found = solved(posed, tol=1e-4, gap_tol=1e-3)
    assert found.converged
    edges = posed.edges
    changes, u = posed.changes(found.R), found.multipliers
    low, high = posed.interval
    # primal: lengths are kept, up to slack·multiplier
    assert posed.excess(changes, u).max() <= 1e-3
    # complementary: multipliers are nonzero only at an end of the interval
    assert (u[changes < high - 1e-3] <= 1e-2).all()
    assert (u[changes > low + 1e-3] >= -1e-2).all()
    # stationary: forces at every point balance the spread of the variance
    variance_per_edge = found.variance / edges.count
    forces = variance_per_edge * (edges.laplacian(u / edges.scales) @ found.map)
    spread = posed.multiplicity[:, None] * found.map
    assert np.linalg.norm(forces - spread) <= 0.05 * np.linalg.norm(spread)
    # dual: the gap is closed
    assert -1e-3 <= found.gap <= 1e-3
    assert found.variance == pytest.approx(posed.variance(found.R))


@cache
def reference():
    return solved(problem())


@pytest.mark.parametrize("start", ["noise", "line", "tiny", "nothing"])
def test_starts(start):
    starts = {
        "noise": np.random.default_rng(1).standard_normal((N, 2)),
        "line": np.arange(N)[:, None] * 1.0,
        "tiny": 1e-200 * POINTS,
        "nothing": np.zeros((N, 2)),
    }
    found = solved(problem(), start=starts[start])
    assert found.converged
    assert found.variance == pytest.approx(reference().variance, rel=0.01)


def test_it_continues_from_a_result():
    """With the multipliers and rounds of an earlier result."""
    first = solved(problem(), max_iter=150)
    assert not first.converged
    assert first.steps == 150
    rng, method = np.random.default_rng(0), MethodOfMultipliers()
    second = method.solve(problem(), first.R, rng, before=first)
    assert second.rounds[: len(first.rounds)] == first.rounds
    assert second.converged
    assert second.steps <= method.max_iter


def test_on_round_is_called_before_every_round():
    calls, steps = [], []
    posed = problem()
    found = MethodOfMultipliers().solve(
        posed,
        POINTS,
        np.random.default_rng(0),
        callback=lambda iterate: steps.append(iterate.step.iteration),
        on_round=lambda *arguments: calls.append(arguments),
    )
    assert [penalty for _, _, penalty in calls] == [r.penalty for r in found.rounds]
    assert [last for _, last, _ in calls] == [None, *found.rounds[:-1]]
    assert all(which is posed for which, _, _ in calls)
    assert steps.count(0) == len(found.rounds)
    assert sum(step > 0 for step in steps) == found.steps


def test_interrupts_keep_the_best_map():
    def callback(iterate):
        if iterate.step.iteration == 7:
            raise KeyboardInterrupt

    found = MethodOfMultipliers().solve(problem(), POINTS, np.random.default_rng(0), callback)
    assert found.interrupted
    assert not found.converged
    assert found.status == "interrupted"
    assert found.steps == 7
    assert found.bound == found.gap == np.inf
    assert np.isfinite(found.map).all()


def test_lengths_that_contradict_each_other():
    """One edge is far longer than any path around it."""
    squares = SQUARES.copy()
    squares[0] = 10_000.0
    found = solved(problem(squares=squares))
    assert not found.converged
    assert found.status == "the Lagrange multipliers prove that no map keeps these lengths"
    assert found.steps < 2000
    soft = solved(problem(slack=0.01, squares=squares))
    assert soft.converged
    shrunk = solved(problem((-np.inf, 0.0), squares=squares))
    assert shrunk.converged


def test_the_number_of_coordinates_adapts():
    """From one to as many as are needed, and no more than are in use."""
    found = solved(problem(), start=np.arange(N)[:, None] * 1.0)
    ranks = [r.rank for r in found.rounds]
    spectrum = np.linalg.eigvalsh(found.map @ found.map.T)[::-1]
    assert ranks[-1] >= 3
    assert (spectrum[ranks[-1] :] < 1e-3 * SQUARES.mean() * N).all()


def test_a_start_of_rounding_errors_is_replaced():
    """Components far apart in units in which the edges are no longer than rounding errors."""
    X = np.random.default_rng(0).uniform(size=(24, 3))
    X[12:] += 1e4
    model = MVU(metric="precomputed", max_iter=5)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("ignore", ManifoldryWarning)
        Y = model.fit_transform(cdist(X, X) * 1e-150)
    assert np.isfinite(Y).all()
