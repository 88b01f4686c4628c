"""Stopping criteria, one by one."""

from itertools import pairwise

import numpy as np
import pytest

from manifoldry.optimize.filter import Filter, FilterOperator
from manifoldry.optimize.methods import LBFGS, ConjugateGradient, GradientDescent, Momentum
from manifoldry.optimize.stopping import Stopping

OFF = {"tol": 0, "value_tol": 0, "gradient_tol": 0}


class Scheduled(Filter):
    """Projects on the first coordinates, one more after every step with little decrease."""

    def operator_for(self, objective):
        return _Scheduled(objective.n)


class _Scheduled(FilterOperator):
    def __init__(self, n):
        self.n, self.open, self.seen = n, 1, []

    def apply(self, G, Y):
        return np.where(np.arange(len(G))[:, None] < self.open, G, 0)

    def advance(self, progress):
        self.seen.append(progress)
        more = not self.finished and progress.decrease < 1e-3
        self.open += more
        return more

    @property
    def finished(self):
        return self.open >= self.n


@pytest.fixture
def bowl(quadratic, definite):
    rng = np.random.default_rng(0)
    return quadratic(definite(6, 30), rng.normal(size=(6, 2)))


@pytest.fixture
def start():
    return np.random.default_rng(1).normal(size=(6, 2))


@pytest.mark.parametrize(
    ("rule", "converged", "status"),
    [
        ({"max_iter": 4}, False, "max_iter=4 steps were taken"),
        ({"max_time": 1e-9}, False, "max_time=1e-09 s has elapsed"),
        ({"tol": 1e-4}, True, "steps change the embedding by less than tol=0.0001"),
        ({"value_tol": 1e-4}, True, "10 steps change the value by less than value_tol=0.0001"),
        ({"gradient_tol": 1e-4}, True, "the gradient norm is below gradient_tol=0.0001"),
    ],
)
def test_reasons(bowl, start, rule, converged, status):
    solution = GradientDescent(stopping=Stopping(**OFF | rule)).minimize(bowl, start)
    assert solution.converged is converged
    assert solution.status.startswith(status)


@pytest.mark.parametrize("largest", [None, 1e-2])
def test_tol_and_its_reference_size(bowl, start, largest):
    maps = []
    rule = Stopping(**OFF | {"tol": 1e-3, "max_reference_size": largest})
    solution = GradientDescent(stopping=rule).minimize(
        bowl, start, callback=lambda it: maps.append(it.embedding.copy())
    )
    sizes = [np.linalg.norm(Y - Y.mean(axis=0)) for Y in maps[1:]]
    if largest is not None:  # per point
        assert min(sizes) > largest * np.sqrt(6)
        sizes = [largest * np.sqrt(6)] * len(sizes)
    changes = [np.linalg.norm(b - a) / s for (a, b), s in zip(pairwise(maps), sizes, strict=True)]
    short = [c <= 1e-3 for c in changes]
    assert solution.converged
    assert short[-3:] == [True] * 3
    assert not any(all(short[i : i + 3]) for i in range(len(short) - 3))


def test_a_stationary_start_has_converged(function):
    solution = LBFGS().minimize(function(2, lambda Y: (1.0, 0 * Y)), np.zeros((2, 1)))
    assert solution.converged
    assert solution.status == "the gradient is zero"
    assert (solution.n_iter, solution.n_evaluations) == (0, 1)


def test_a_flat_saddle_is_not_convergence(function):
    """Short steps without expansion: values differ by 1e-9 for many steps, gradients grow."""
    objective = function(1, lambda Y: (float(((Y**2 - 1) ** 2).sum()), 4 * Y * (Y**2 - 1)))
    rule = Stopping(max_iter=5000)
    optimizer = Momentum(learning_rate=1e-2, momentum=0.0, stopping=rule)
    solution = optimizer.minimize(objective, np.array([[1e-6]]))
    values = solution.history("value")
    assert np.ptp(values[:11]) < 1e-7  # the values are constant to 1e-7
    assert solution.converged
    assert solution.embedding[0, 0] == pytest.approx(1, abs=1e-3)


def test_gradients_that_vanish_as_a_map_diverges_are_not_convergence(function):
    """E = −log ‖Y‖² decreases without bound, ever more slowly."""
    unbounded = function(2, lambda Y: (-np.log((Y**2).sum()), -2 * Y / (Y**2).sum()))
    rule = Stopping(max_iter=10_000, tol=0, value_tol=0)
    solution = LBFGS(stopping=rule).minimize(unbounded, np.array([[-1.0], [1.0]]))
    assert not solution.converged
    assert "the embedding diverges" in solution.status


every_search = pytest.mark.parametrize("method", [GradientDescent, ConjugateGradient, LBFGS])


@every_search
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_minimizer_as_the_start_is_recognized(bowl, start, method, dtype):
    solution = method(stopping=Stopping(**OFF)).minimize(bowl, start.astype(dtype))
    again = method().minimize(bowl, solution.embedding)
    assert solution.converged
    assert again.converged
    assert again.n_iter <= 20


@every_search
def test_a_failed_line_search_is_convergence_only_at_rounding_error(function, method):
    flat = function(1, lambda Y: (1.0, np.full_like(Y, 1e-18)))
    solution = method(stopping=Stopping(**OFF)).minimize(flat, np.ones((1, 1)))
    assert solution.converged
    assert solution.status == "any further decrease is below rounding error"
    wrong = function(2, lambda Y: (float((Y**2).sum()), -2 * Y))
    solution = method(stopping=Stopping(**OFF)).minimize(wrong, np.ones((2, 1)))
    assert not solution.converged
    assert solution.status.startswith("the line search found no lower value")


@every_search
def test_invariance_to_translations_of_the_map(function, method):
    """Springs of length one between all points: the objective is invariant to translations."""

    def springs(Y):
        away = Y[:, None] - Y
        stretch = (away**2).sum(axis=2) - 1
        np.fill_diagonal(stretch, 0)
        return (stretch**2).sum() / 2, 4 * (stretch[:, :, None] * away).sum(axis=1)

    Y = np.random.default_rng(3).normal(size=(3, 2))
    search = method(stopping=Stopping(max_iter=5000))
    here, there = (search.minimize(function(3, springs), Y + shift) for shift in (0, 2**20))
    assert here.converged
    assert here.value < 1e-6
    assert there.value < 1e-6
    assert there.n_iter > 3


@pytest.mark.parametrize("method", [GradientDescent, LBFGS])
def test_converges_only_after_the_filter_has_finished(quadratic, definite, method):
    """Every subspace has a minimum; only that of the whole space is a solution."""
    n, rng = 5, np.random.default_rng(2)
    A, B = definite(n, 10), rng.normal(size=(n, 1))
    solution = method(Scheduled()).minimize(quadratic(A, B), np.zeros((n, 1)))
    assert solution.converged
    assert np.allclose(solution.embedding, np.linalg.solve(A, B), atol=1e-3)


def test_a_failed_step_advances_the_schedule(quadratic):
    """Only the last coordinate has to change, which the filter projects out at first."""
    B = np.array([[0.0], [0.0], [5.0]])
    solution = GradientDescent(Scheduled()).minimize(quadratic(np.eye(3), B), np.zeros((3, 1)))
    assert np.allclose(solution.embedding, B, atol=1e-6)
    assert solution.trace[1].length == 0


def test_progress_is_passed_to_filters(bowl, start):
    bound = []

    class Spy(Scheduled):
        def operator_for(self, objective):
            bound.append(super().operator_for(objective))
            return bound[0]

    solution = GradientDescent(Spy(), stopping=Stopping(max_iter=8, **OFF)).minimize(bowl, start)
    values = solution.history("value")
    seen = bound[0].seen
    assert [p.iteration for p in seen] == list(range(1, 9))
    assert [p.value for p in seen] == list(values[1:])
    assert np.allclose([p.decrease for p in seen], -np.diff(values) / abs(values[:-1]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": 0}, "max_iter=0 must be at least 1"),
        ({"tol": -1.0}, "tol=-1.0 must be at least 0"),
        ({"value_tol": float("nan")}, "value_tol=nan must be finite"),
        ({"max_time": 0}, "max_time=0 must be greater than 0"),
        ({"max_reference_size": -1.0}, "max_reference_size=-1.0 must be greater than 0"),
        ({"window": 0}, "window=0 must be at least 1"),
    ],
)
def test_parameters_out_of_bounds(parameters, message):
    with pytest.raises(ValueError, match=message):
        Stopping(**parameters)
