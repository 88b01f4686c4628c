"""Extra eigenvalues, norms and residuals that small problems get at little cost."""

import numpy as np
import pytest
import scipy.sparse as sp

from manifoldry.eigen import (
    Dense,
    EigenSolver,
    Gram,
    Lanczos,
    ShiftInvertLanczos,
    SpectralProblem,
    resolve_solver,
)
from manifoldry.eigen.standard import estimated_norm, symmetric_product

END = {"lanczos": "largest", "shift_invert": "smallest", "dense": "smallest", "auto": "largest"}


def problem_of(values, end, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values),) * 2))[0]
    A = (Q * values) @ Q.T
    return SpectralProblem((A + A.T) / 2, end)


@pytest.mark.parametrize("name", END)
def test_pairs_are_exact_and_extra_eigenvalues_close(name):
    values = np.linspace(1, 3, 300) ** 4
    problem = problem_of(values, END[name])
    solver, rng = resolve_solver(name), np.random.default_rng(0)
    found = solver.solve_with_extra(problem, 2, 5, rng)
    expected = values if END[name] == "smallest" else values[::-1]
    gaps = np.abs(np.diff(expected))
    assert found.accepted
    np.testing.assert_allclose(found.values, expected[:2], rtol=1e-12)
    assert abs(found.next_value - expected[2]) < 1e-4 * gaps[2]
    assert len(found.further_values) == 5
    assert (np.abs(found.further_values - expected[3:8]) < 0.01 * gaps[3:8]).all()


@pytest.mark.parametrize("solver", [Lanczos(), ShiftInvertLanczos()])
def test_a_repeated_wanted_eigenvalue_is_found_beside_extra_ones(solver):
    values = np.arange(1.0, 301)
    values[-3:], values[:3] = 300.0, 1.0
    end = "largest" if isinstance(solver, Lanczos) else "smallest"
    found = solver.solve_with_extra(problem_of(values, end), 3, 4, np.random.default_rng(0))
    np.testing.assert_allclose(found.values, 300.0 if end == "largest" else 1.0, rtol=1e-12)


class LoopDense(EigenSolver):
    """A solver written outside the package, with extra pairs."""

    extra_pairs_are_cheap = True

    def solve(self, problem, k, rng):
        return Dense().solve(problem, k, rng)


def test_a_solver_without_its_own_way_computes_more_pairs():
    problem = SpectralProblem(np.diag(np.arange(6.0)), "largest", constraint=np.eye(6)[5])
    found = LoopDense().solve_with_extra(problem, 2, 20, np.random.default_rng(0))
    np.testing.assert_allclose(found.values, [4, 3])
    np.testing.assert_allclose(found.computed, [4, 3, 2, 1, 0])


@pytest.mark.parametrize("columns", [None, 1, 3, 9])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_with_a_dense_symmetric_matrix(columns, order):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(70, 70))
    A = np.asarray(A + A.T, order=order)
    X = rng.normal(size=70 if columns is None else (70, columns))
    np.testing.assert_allclose(symmetric_product(A, X), A @ X, atol=1e-12)


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
def test_norm_is_a_close_lower_estimate(as_matrix):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(400, 400))
    A = A + A.T
    norm = np.linalg.norm(A, 2)
    assert 0.8 * norm < estimated_norm(as_matrix(A)) <= norm * (1 + 1e-12)
    assert estimated_norm(as_matrix(np.zeros((5, 5)))) == 0
    assert estimated_norm(as_matrix(np.diag([-3.0]))) == pytest.approx(3)


def test_residuals_of_a_factor_are_bounds():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(300, 12)) * np.geomspace(1, 0.05, 12)
    F -= F.mean(axis=0)
    problem = SpectralProblem(Gram(F), "largest", deflate=np.ones(300))
    found = Dense().solve_with_extra(problem, 3, 4, np.random.default_rng(0))
    exact = np.linalg.svd(F, compute_uv=False) ** 2
    np.testing.assert_allclose(found.values, exact[:3], rtol=1e-12)
    np.testing.assert_allclose(found.computed, exact[:8], rtol=1e-10)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(3), atol=1e-12)
    beyond = Dense().solve_with_extra(problem, 10, 5, np.random.default_rng(0)).computed
    np.testing.assert_allclose(beyond, [*exact, 0, 0, 0, 0], atol=1e-12)
    # With a perturbed FᵀF the residuals are not those of rounding.
    rough = Gram(F)
    noise = rng.normal(size=(12, 12)) * 1e-3
    vars(rough)["_small_matrix"] = F.T @ F + noise + noise.T
    perturbed = SpectralProblem(rough, "largest", deflate=np.ones(300))
    found = Dense().solve(perturbed, 3, np.random.default_rng(0))
    true = np.linalg.norm(F @ (F.T @ found.vectors) - found.vectors * found.values, axis=0)
    assert (true > 1e-6).all()
    assert (found.residuals >= true * (1 - 1e-9)).all()


@pytest.mark.parametrize("k", [2, 4])
def test_a_factor_of_fewer_dimensions_than_columns(k):
    """Two constraints leave four dimensions of six, and the factor has five columns."""
    rng = np.random.default_rng(0)
    c, F = rng.normal(size=6), rng.normal(size=(6, 5))
    Q = np.linalg.qr(np.c_[np.ones(6), c])[0]
    F -= Q @ (Q.T @ F)
    problem = SpectralProblem(Gram(F), "largest", deflate=np.ones(6), constraint=c)
    found = Dense().solve_with_extra(problem, k, 20, rng)
    exact = np.linalg.svd(F, compute_uv=False)[:4] ** 2
    np.testing.assert_allclose(found.values, exact[:k], rtol=1e-12)
    np.testing.assert_allclose(found.computed, exact, rtol=1e-10)
