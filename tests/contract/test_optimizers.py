"""Tests that every optimizer passes, on known minima and on an elastic embedding."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import Filter, FilterOperator
from manifoldry.optimize.line_search import Armijo, StrongWolfe
from manifoldry.optimize.methods import LBFGS, ConjugateGradient, GradientDescent, Momentum
from manifoldry.optimize.stopping import Stopping


class Jacobi(Filter):
    """The gradient divided by the degrees of attraction."""

    newton_like = True

    def operator_for(self, objective):
        return _Divided(4 * objective.attraction.sum(axis=1)[:, None])


class _Divided(FilterOperator):
    newton_like = True

    def __init__(self, D):
        self.D = D

    def apply(self, G, Y):
        return G / self.D.astype(G.dtype)


STRICT = Stopping(max_iter=4000, tol=0, value_tol=0, gradient_tol=1e-8)
# A new optimizer joins with one line here.
OPTIMIZERS = {
    "gradient": GradientDescent(stopping=STRICT),
    "gradient-wolfe": GradientDescent(line_search=StrongWolfe(), stopping=STRICT),
    "gradient-plain": GradientDescent(line_search=Armijo(expand=1), stopping=STRICT),
    "jacobi": GradientDescent(Jacobi(), stopping=STRICT),
    "cg": ConjugateGradient(stopping=STRICT),
    "cg-jacobi": ConjugateGradient(Jacobi(), stopping=STRICT),
    "lbfgs": LBFGS(stopping=STRICT),
    "lbfgs-jacobi": LBFGS(Jacobi(), stopping=STRICT),
    "lbfgs-armijo": LBFGS(line_search=Armijo(c=1e-4), memory=5, stopping=STRICT),
    "momentum": Momentum(learning_rate=1.0, stopping=STRICT),
}
DESCENTS = {name: o for name, o in OPTIMIZERS.items() if name != "momentum"}
every_optimizer = pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
every_descent = pytest.mark.parametrize("optimizer", DESCENTS.values(), ids=DESCENTS.keys())


class Elastic(Objective):
    """Σ Wd² + λ·Σ e^{−d²}/n² over all pairs, counting evaluations."""

    def __init__(self, W, weight):
        self.W, self.weight, self.evaluated = W, weight, []

    @property
    def n(self):
        return len(self.W)

    def value_and_gradient(self, Y):
        self.evaluated.append(Y.tobytes())
        D = cdist(Y, Y, "sqeuclidean").astype(Y.dtype)
        R = self.weight / self.n**2 * np.exp(-D)
        np.fill_diagonal(R, 0)
        T = self.W.astype(Y.dtype) - R
        value = (self.W * D).sum(dtype=float) + R.sum(dtype=float)
        return float(value), (4 * (T.sum(axis=1)[:, None] * Y - T @ Y)).astype(Y.dtype)

    @property
    def attraction(self):
        return sparse.csr_array(self.W)

    def diagonal_curvature(self, Y):
        return np.repeat(4 * self.W.sum(axis=1)[:, None], Y.shape[1], axis=1)


@pytest.fixture
def elastic():
    """Twelve points on a line: their map is a line again."""
    t = np.linspace(0, 1, 12)[:, None]
    W = np.exp(-((t - t.T) ** 2) / 0.1)
    np.fill_diagonal(W, 0)
    return Elastic(W / W.sum(), 5.0)


@pytest.fixture
def start():
    return np.random.default_rng(3).normal(scale=0.1, size=(12, 2))


class Bowl(Elastic):
    """½⟨Y, LY⟩ − ⟨B, Y⟩ with L the Laplacian of a weighted graph plus a spring at every point."""

    def __init__(self):
        rng = np.random.default_rng(0)
        W = rng.uniform(size=(12, 12))
        super().__init__((W + W.T) / (W + W.T).sum(), 0.0)
        self.A = np.diag(self.W.sum(axis=1)) - self.W + 0.02 * np.eye(12)
        self.B = 0.1 * rng.normal(size=(12, 2))

    def value_and_gradient(self, Y):
        self.evaluated.append(Y.tobytes())
        A, B = self.A.astype(Y.dtype), self.B.astype(Y.dtype)
        return float(np.vdot(Y, A @ Y) / 2 - np.vdot(B, Y)), A @ Y - B


@every_optimizer
def test_finds_the_minimum_of_a_strongly_convex_function(optimizer):
    bowl = Bowl()
    solution = optimizer.minimize(bowl, np.zeros((12, 2)))
    expected = np.linalg.solve(bowl.A, bowl.B)
    assert solution.converged, solution.status
    assert np.allclose(solution.embedding, expected, atol=1e-5 * np.abs(expected).max())


@every_optimizer
def test_reaches_a_minimum_of_an_elastic_embedding(optimizer, elastic, start):
    """Scipy finds nothing lower from where the search has ended."""
    solution = optimizer.minimize(elastic, start)
    assert solution.converged, solution.status

    def flat(y):
        value, G = elastic.value_and_gradient(y.reshape(start.shape))
        return value, G.ravel()

    oracle = minimize(
        flat, solution.embedding.ravel(), jac=True, method="BFGS", options={"gtol": 1e-9}
    )
    assert solution.value == pytest.approx(oracle.fun, rel=1e-6)
    shaken = solution.embedding + 1e-2 * np.random.default_rng(1).normal(size=start.shape)
    there = optimizer.minimize(elastic, shaken)
    oracle = minimize(flat, shaken.ravel(), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert there.value == pytest.approx(oracle.fun, rel=1e-6)


@every_descent
def test_values_never_rise(optimizer, elastic, start):
    values = optimizer.minimize(elastic, start).history("value")
    assert (np.diff(values) <= 16 * np.finfo(float).eps * np.abs(values[:-1])).all()
    assert values[-1] < 0.9 * values[0]


@every_optimizer
def test_trace_is_consistent(optimizer, elastic, start):
    seen = []
    solution = optimizer.minimize(elastic, start, callback=seen.append)
    steps = solution.trace
    assert [iterate.step for iterate in seen] == steps
    assert [step.iteration for step in steps] == list(range(solution.n_iter + 1))
    assert solution.n_evaluations == len(elastic.evaluated) >= steps[-1].evaluations
    assert np.array_equal(seen[0].embedding, start)
    for iterate in seen[:3] + seen[-2:]:
        value, G = elastic.value_and_gradient(iterate.embedding)
        assert iterate.step.value == value
        assert iterate.step.gradient_norm == pytest.approx(np.linalg.norm(G), rel=1e-12)
    assert solution.value == elastic.value(solution.embedding)


@every_optimizer
def test_never_evaluates_a_point_twice(optimizer, elastic, start):
    optimizer.minimize(elastic, start)
    assert len(set(elastic.evaluated)) == len(elastic.evaluated)


@every_optimizer
def test_same_bits_every_time_and_the_start_is_left_alone(optimizer, elastic, start):
    before = start.copy()
    start.flags.writeable = False
    first, second = (optimizer.minimize(elastic, start) for _ in range(2))
    assert np.array_equal(first.embedding, second.embedding)
    assert first.trace == second.trace
    assert np.array_equal(start, before)
    assert not np.shares_memory(first.embedding, start)
    assert first.embedding.flags.writeable


@every_optimizer
def test_leaves_a_tiny_start(optimizer, elastic, start):
    """Coinciding points are a saddle point, near which values agree to ten digits."""
    default = type(optimizer)(**{**vars(optimizer), "stopping": Stopping(max_iter=4000)})
    tiny = default.minimize(elastic, 1e-4 * start)
    assert tiny.converged, tiny.status
    careful = optimizer.minimize(elastic, tiny.embedding)
    assert tiny.value == pytest.approx(careful.value, rel=1e-3)
    assert tiny.value < 0.9 * tiny.trace[0].value


@every_optimizer
def test_single_precision_stays_and_is_almost_as_good(optimizer, elastic, start):
    default = type(optimizer)(**{**vars(optimizer), "stopping": Stopping()})
    single = default.minimize(elastic, start.astype(np.float32))
    assert single.embedding.dtype == np.float32
    assert single.converged, single.status
    polished = LBFGS(stopping=STRICT).minimize(elastic, single.embedding.astype(float))
    assert single.value == pytest.approx(polished.value, rel=1e-3)


@every_descent
def test_tolerances_below_single_precision_converge_at_rounding_error(optimizer, elastic, start):
    unreachable = Stopping(max_iter=3000, tol=0, value_tol=0, gradient_tol=0)
    search = type(optimizer)(**{**vars(optimizer), "stopping": unreachable})
    solution = search.minimize(elastic, start.astype(np.float32))
    assert solution.converged, solution.status
    assert solution.n_iter < 3000


@every_descent
@pytest.mark.parametrize("beyond", [np.nan, np.inf])
def test_values_that_are_not_finite_are_avoided(optimizer, elastic, start, beyond):
    class Bounded(type(elastic)):
        def value_and_gradient(self, Y):
            value, G = super().value_and_gradient(Y)
            return (value, G) if np.abs(Y).max() < 0.5 else (beyond, np.full_like(G, np.nan))

    bounded = Bounded(elastic.W, elastic.weight)
    solution = optimizer.minimize(bounded, start)
    assert np.abs(solution.embedding).max() < 0.5
    assert solution.value < bounded.value(start)


@every_optimizer
def test_interrupted_by_the_callback(optimizer, elastic, start):
    def interrupt(iterate):
        if iterate.step.iteration == 5:
            raise KeyboardInterrupt

    solution = optimizer.minimize(elastic, start, callback=interrupt)
    assert solution.interrupted
    assert not solution.converged
    assert solution.status == "interrupted"
    assert solution.n_iter == 5
    assert solution.value == elastic.value(solution.embedding) == solution.trace[-1].value


@every_optimizer
@pytest.mark.parametrize("call", [1, 2, 9])
def test_interrupted_in_the_objective(optimizer, elastic, start, call):
    class Interrupted(type(elastic)):
        def value_and_gradient(self, Y):
            if len(self.evaluated) == call - 1:
                raise KeyboardInterrupt
            return super().value_and_gradient(Y)

    solution = optimizer.minimize(Interrupted(elastic.W, elastic.weight), start)
    assert solution.interrupted
    assert not solution.converged
    if call == 1:
        assert np.array_equal(solution.embedding, start)
        assert np.isnan(solution.value)
    else:
        assert solution.value == elastic.value(solution.embedding)


@every_optimizer
def test_other_errors_come_through(optimizer, elastic, start):
    def fail(iterate):
        raise RuntimeError("raised by the callback")

    with pytest.raises(RuntimeError, match="raised by the callback"):
        optimizer.minimize(elastic, start, callback=fail)


@every_optimizer
def test_bad_starts(optimizer, elastic, start):
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        optimizer.minimize(elastic, np.full_like(start, np.nan))
    with pytest.raises(ValueError, match=r"has shape \(11, 2\).*n=12 points"):
        optimizer.minimize(elastic, start[1:])
    with pytest.raises(ValueError, match=r"not finite at the start.*1e\+200"):
        optimizer.minimize(elastic, np.linspace(-1e200, 1e200, 24).reshape(12, 2))


@every_optimizer
def test_whole_numbers_as_a_start(optimizer, elastic):
    Y = np.arange(24).reshape(12, 2) % 7
    search = type(optimizer)(**{**vars(optimizer), "stopping": Stopping(max_iter=3)})
    assert search.minimize(elastic, Y).embedding.dtype == np.float64


@every_optimizer
def test_the_callback_cannot_change_the_map(optimizer, elastic, start):
    def write(iterate):
        iterate.embedding[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        optimizer.minimize(elastic, start, callback=write)


@every_optimizer
def test_a_search_continues_from_a_saved_state(optimizer, elastic, start):
    states = []
    whole = optimizer.minimize(elastic, start, lambda it: states.append(it.saved_state()))
    for at in {0, 1, 7, len(states) // 2, len(states) - 1} & set(range(len(states))):
        steps = []
        rest = optimizer.resume(elastic, states[at], lambda it, seen=steps: seen.append(it.step))
        assert np.array_equal(rest.embedding, whole.embedding)
        assert rest.trace == whole.trace
        assert steps == whole.trace[at + 1 :]
        assert (rest.status, rest.n_evaluations) == (whole.status, whole.n_evaluations)
