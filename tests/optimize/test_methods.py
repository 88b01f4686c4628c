"""Properties of single methods: Newton, conjugate gradients, L-BFGS, momentum."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from manifoldry.optimize.filter import Filter, FilterOperator
from manifoldry.optimize.line_search import Armijo, LineSearch
from manifoldry.optimize.methods import LBFGS, ConjugateGradient, GradientDescent, Momentum
from manifoldry.optimize.stopping import Stopping


class Times(Filter):
    """A fixed matrix as a filter."""

    def __init__(self, F):
        self.F = F

    def operator_for(self, objective):
        return _Times(self.F)


class _Times(FilterOperator):
    newton_like = True

    def __init__(self, F):
        self.F = F

    def apply(self, G, Y):
        return self.F @ G


@dataclass(frozen=True)
class Exact(LineSearch):
    """The minimum of a parabola, from the slopes at its start and at one."""

    def search(self, ray, first):
        return ray.at(ray.slope / (ray.slope - ray.at(1.0).slope))


def steps(count):
    return Stopping(max_iter=count, tol=0, value_tol=0, gradient_tol=0)


def path(optimizer, objective, Y):
    """All maps of a search."""
    maps = []
    optimizer.minimize(objective, Y, callback=lambda it: maps.append(it.embedding.copy()))
    return np.array(maps)


@pytest.mark.parametrize("method", [GradientDescent, ConjugateGradient, LBFGS])
def test_exact_inverse_hessian_as_filter_is_newton(quadratic, definite, method):
    A, rng = definite(8, 1e3), np.random.default_rng(1)
    B, Y = rng.normal(size=(8, 2)), rng.normal(size=(8, 2))
    solution = method(Times(np.linalg.inv(A))).minimize(quadratic(A, B), Y)
    assert solution.n_iter == 1
    assert solution.n_evaluations == 2
    assert np.allclose(solution.embedding, np.linalg.solve(A, B), atol=1e-10)


@pytest.mark.parametrize("preconditioned", [False, True])
def test_conjugate_gradients_end_after_n_steps(quadratic, definite, preconditioned):
    n, rng = 7, np.random.default_rng(2)
    A, B = definite(n, 100), rng.normal(size=(n, 1))
    F = definite(n, 10, seed=5) if preconditioned else np.eye(n)
    optimizer = ConjugateGradient(Times(F), line_search=Exact(), stopping=steps(n))
    solution = optimizer.minimize(quadratic(A, B), np.zeros((n, 1)))
    assert np.allclose(solution.embedding, np.linalg.solve(A, B), atol=1e-8)


@pytest.mark.parametrize("preconditioned", [False, True])
def test_lbfgs_with_exact_line_searches_equals_conjugate_gradients(
    quadratic, definite, preconditioned
):
    n, rng = 9, np.random.default_rng(3)
    A, B, Y = definite(n, 50), rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
    F = Times(definite(n, 10, seed=5) if preconditioned else np.eye(n))
    paths = [
        path(optimizer, quadratic(A, B), Y)
        for optimizer in (
            ConjugateGradient(F, line_search=Exact(), stopping=steps(n - 1)),
            LBFGS(F, line_search=Exact(), memory=n, stopping=steps(n - 1)),
        )
    ]
    assert len(paths[0]) == n
    assert np.allclose(*paths, atol=1e-6)


def test_conjugate_gradients_match_the_linear_method(quadratic, definite):
    """Hestenes and Stiefel's iteration, written out."""
    n, rng = 6, np.random.default_rng(4)
    A, b = definite(n, 30), rng.normal(size=(n, 1))
    x = np.zeros((n, 1))
    r = p = b
    expected = [x]
    for _ in range(n - 1):
        a = np.vdot(r, r) / np.vdot(p, A @ p)
        x, r_new = x + a * p, r - a * (A @ p)
        p, r = r_new + np.vdot(r_new, r_new) / np.vdot(r, r) * p, r_new
        expected.append(x)
    optimizer = ConjugateGradient(line_search=Exact(), stopping=steps(n - 1))
    assert np.allclose(path(optimizer, quadratic(A, b), np.zeros((n, 1))), expected, atol=1e-9)


def test_scaling_of_the_objective_and_of_the_filter_do_not_matter_to_lbfgs(quadratic, definite):
    """γ cancels any factor of F except in the first step, which is therefore an exact minimum."""
    n, rng = 6, np.random.default_rng(5)
    A, B, Y = definite(n, 40), rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    a, b = (
        path(
            LBFGS(Times(f * np.eye(n)), line_search=Exact(), stopping=steps(6)), quadratic(A, B), Y
        )
        for f in (1.0, 1e3)
    )
    assert np.allclose(a, b, atol=1e-7)


@pytest.mark.parametrize("method", [LBFGS, ConjugateGradient])
def test_rosenbrock(function, method):
    objective = function(5, lambda Y: (rosen(Y.ravel()), rosen_der(Y.ravel()).reshape(Y.shape)))
    Y = np.full((5, 2), 0.5)
    stopping = Stopping(tol=0, value_tol=0, gradient_tol=1e-9, max_iter=2000)
    solution = method(stopping=stopping).minimize(objective, Y)
    assert solution.converged
    assert np.allclose(solution.embedding, 1, atol=1e-6)
    oracle = minimize(rosen, Y.ravel(), jac=rosen_der, method="L-BFGS-B")
    if method is LBFGS:
        assert solution.n_evaluations < 2 * oracle.nfev


def test_lbfgs_stores_no_step_without_a_change_of_gradient(function):
    """Huber's function is linear away from its minimum and quadratic close to it."""

    def huber(Y):
        return np.where(abs(Y) < 1, Y**2 / 2, abs(Y) - 0.5).sum(), np.clip(Y, -1, 1)

    Y = np.array([[100.0, -80.0], [60.0, 90.0]])
    optimizer = LBFGS(line_search=Armijo(expand=1), initial_step=0.01)
    solution = optimizer.minimize(function(2, huber), Y)
    assert solution.trace[1].gradient_norm == solution.trace[0].gradient_norm
    assert solution.converged
    np.testing.assert_allclose(solution.embedding, 0, atol=1e-5)


def test_momentum_is_the_recursion_of_van_der_maaten_and_hinton(quadratic, definite):
    A, rng = definite(4, 5), np.random.default_rng(6)
    B, Y = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    expected, V, gains = [Y], np.zeros_like(Y), np.ones_like(Y)
    for _ in range(30):
        G = A @ Y - B
        same = np.sign(G) == np.sign(V)
        gains = np.maximum(np.where(same, gains * 0.8, gains + 0.2), 0.01)
        gains[V == 0] = 0.8  # a zero velocity has no sign
        V = 0.6 * V - 0.02 * gains * G
        Y = Y + V
        expected.append(Y)
    optimizer = Momentum(learning_rate=0.02, momentum=0.6, stopping=steps(30))
    assert np.allclose(path(optimizer, quadratic(A, B), expected[0]), expected, atol=1e-12)


def test_momentum_reports_divergence(quadratic, definite):
    A = definite(4, 5)
    optimizer = Momentum(learning_rate=1e3, stopping=steps(5000))
    solution = optimizer.minimize(quadratic(A, np.zeros((4, 1))), np.ones((4, 1)))
    assert not solution.converged
    assert "lower learning_rate=1000" in solution.status
    assert np.isfinite(solution.embedding).all()


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (LBFGS, {"memory": 0}, "memory=0 must be at least 1"),
        (Momentum, {"learning_rate": "fast"}, "learning_rate='fast' must be one of 'auto'"),
        (Momentum, {"learning_rate": -1.0}, "learning_rate=-1.0 must be greater than 0"),
        (Momentum, {"momentum": 1.0}, "momentum=1 must be less than 1"),
    ],
)
def test_parameters_out_of_bounds(make, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters)
