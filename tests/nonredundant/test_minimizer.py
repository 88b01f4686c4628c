"""The fast search for functions of least energy, against eigensolvers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from manifoldry import LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_strip, make_swiss_roll
from manifoldry.eigen import Auto, Dense
from manifoldry.eigen.cholesky import NotDefiniteError
from manifoldry.nonredundant import minimizer as minimizer_module
from manifoldry.nonredundant.block_iteration import RitzBlock, smallest_pairs
from manifoldry.nonredundant.criteria import (
    GradientCriterion,
    GraphProblem,
    constrained,
    mass_of,
    penalized,
    rayleigh_quotient,
)
from manifoldry.nonredundant.gradients import EarlierGradients, quadratic
from manifoldry.nonredundant.minimizer import EnergyMinimizer


def dense(problem):
    return Dense().solve(problem, 1, np.random.default_rng(0))


@pytest.fixture(params=["strip", "cloud"], name="problem")
def graph_laplacian(request):
    """With gaps for which the operator is factorized, and for which products suffice."""
    cloud = np.random.default_rng(0).normal(size=(400, 6))
    X = make_strip(400, aspect=3, random_state=0)[0] if request.param == "strip" else cloud
    return LaplacianEigenmaps(n_neighbors=8).pose(X).problems[0]


@pytest.mark.parametrize("factorize", [False, True])
def test_energies_are_close_to_the_least(problem, factorize):
    F = dense(problem).vectors
    columns = quadratic(F)
    penalty = EarlierGradients(problem_weights(problem), F, compiled_above=0).penalty_products
    minimizer = EnergyMinimizer(problem, np.random.default_rng(0), factorize)
    search = minimizer.orthogonal_to(columns)
    for weight in (16.0, 64.0):
        exact_problem = penalized(constrained(problem, columns), weight * penalty.operator)
        exact, found = dense(exact_problem), search.penalized(penalty, weight)
        assert exact.values[0] <= found.values[0] <= (1 + minimizer.tol) * exact.values[0]
        f, mass = found.vectors[:, 0], mass_of(problem)
        assert rayleigh_quotient(exact_problem, f) == pytest.approx(found.values[0], rel=1e-4)
        assert mass @ f**2 == pytest.approx(1)
        np.testing.assert_allclose(
            (mass * f) @ np.column_stack([np.ones(len(f)), columns]), 0, atol=1e-9
        )
        assert found.accepted


def test_eigenvectors_by_a_factor_are_accurate(problem):
    F = dense(problem).vectors
    minimizer = EnergyMinimizer(problem, np.random.default_rng(0), factorize=True)
    found, exact = minimizer.orthogonal_to(F).eigenvector(), dense(constrained(problem, F))
    np.testing.assert_allclose(
        found.vectors, exact.vectors, atol=1e-3 * np.abs(exact.vectors).max()
    )
    assert found.values[0] == pytest.approx(exact.values[0], rel=minimizer.exact_tol)


@pytest.mark.parametrize("factorize", [False, True])
def test_criterion_decides_as_with_accurate_eigenvectors(problem, factorize):
    F = dense(problem).vectors
    minimizer = EnergyMinimizer(problem, np.random.default_rng(0), factorize)
    exact, fast = (
        GradientCriterion().next(graph_problem, F, dense)
        for graph_problem in (GraphProblem(problem), GraphProblem(problem, minimizer=minimizer))
    )
    assert fast.description == exact.description
    assert fast.error == pytest.approx(exact.error, abs=0.02)
    assert np.corrcoef(fast.f, exact.f)[0, 1] > 0.99


def test_eigenvectors_that_become_coordinates_are_accurate():
    """Where the second eigenvector is new, it is computed again by the eigensolver."""
    X, _ = make_strip(400, aspect=1.3, random_state=0)
    problem = LaplacianEigenmaps(n_neighbors=12).pose(X).problems[0]
    F = dense(problem).vectors
    minimizer = EnergyMinimizer(problem, np.random.default_rng(0), factorize=False)
    criterion = GradientCriterion(new_fraction=0.5)
    coordinate = criterion.next(GraphProblem(problem, minimizer=minimizer), F, dense)
    assert coordinate.description == "the next eigenvector"
    assert coordinate.spectrum.solver == "Dense"


def test_large_rolls_are_the_same_with_accurate_eigenvectors():
    """More than 5000 points are needed for the fast search (about 1 s)."""
    X, _ = make_swiss_roll(5100, random_state=0)
    fast, exact = (
        NonRedundant(LaplacianEigenmaps(n_neighbors=10), eigen_solver=solver).fit(X)
        for solver in ("auto", Auto())
    )
    assert "gap" in fast.solver_.split("; worst pair 0: ")[1]  # the first is an eigenvector
    assert fast.solver_.endswith("(accepted); energies to 1 %, by estimate, of pairs 1")
    assert "EnergyMinimizer" not in exact.solver_
    assert fast.coordinate_descriptions_ == exact.coordinate_descriptions_
    np.testing.assert_allclose(fast.embedding_[:, 0], exact.embedding_[:, 0], atol=1e-6)
    assert abs(np.corrcoef(fast.embedding_[:, 1], exact.embedding_[:, 1])[0, 1]) > 0.9999


@pytest.mark.parametrize("criterion", ["gradient", "prediction"])
def test_units_of_the_weights_do_not_matter(criterion):
    """Also beyond the range of single precision (about 0.5 s for each criterion)."""
    X, _ = make_swiss_roll(5100, random_state=0)
    W = LaplacianEigenmaps(n_neighbors=10).fit(X).affinity_
    expected, *found = (
        NonRedundant(LaplacianEigenmaps(affinity="precomputed"), criterion=criterion).fit(scale * W)
        for scale in (1.0, 1e-90, 1e40)
    )
    for model in found:
        assert model.coordinate_descriptions_ == expected.coordinate_descriptions_
        for f, g in zip(model.embedding_.T, expected.embedding_.T, strict=True):
            assert abs(np.corrcoef(f, g)[0, 1]) > 1 - 1e-6


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_units_of_a_problem_without_mass_do_not_matter(problem, scale):
    plain = replace(problem, mass=None)
    scaled = replace(plain, operator=scale * plain.operator, bounds=None)
    found, expected = (
        EnergyMinimizer(p, np.random.default_rng(0), factorize=False, max_iter=1000)
        .orthogonal_to(np.ones((p.n, 1)))
        .eigenvector()
        for p in (scaled, plain)
    )
    assert found.values[0] == pytest.approx(scale * expected.values[0], rel=1e-3)


def test_a_search_that_fails_leaves_the_problem_to_the_eigensolver(problem):
    F = dense(problem).vectors
    minimizer = EnergyMinimizer(problem, np.random.default_rng(0), False, tol=1e-12, max_iter=2)
    assert minimizer.orthogonal_to(F).eigenvector() is None
    coordinate = GradientCriterion().next(GraphProblem(problem, minimizer=minimizer), F, dense)
    assert coordinate.spectrum.solver == "Dense"


@pytest.mark.parametrize(
    ("name", "error", "factorize"),
    [
        ("ShiftedInverse", MemoryError, True),
        ("ShiftedInverse", NotDefiniteError, True),
        ("cho_factor", np.linalg.LinAlgError, False),
    ],
)
def test_without_a_factor_the_problem_is_left_to_the_eigensolver(
    problem, monkeypatch, name, error, factorize
):
    def failing(*args, **options):
        raise error("no factor")

    monkeypatch.setattr(minimizer_module, name, failing)
    F = dense(problem).vectors
    minimizer = EnergyMinimizer(problem, np.random.default_rng(0), factorize)
    coordinate = GradientCriterion().next(GraphProblem(problem, minimizer=minimizer), F, dense)
    assert coordinate.spectrum.solver == "Dense"


def test_energies_that_are_not_numbers_are_not_accepted(problem, monkeypatch):
    X = np.eye(problem.n, 2)
    broken = RitzBlock(np.full(2, np.nan), X, np.nan, np.nan, 1)
    monkeypatch.setattr(minimizer_module, "smallest_pairs", lambda *_, **__: broken)
    minimizer = EnergyMinimizer(problem, np.random.default_rng(0), factorize=False)
    assert minimizer.orthogonal_to(np.ones((problem.n, 1))).eigenvector() is None


def test_a_shift_above_the_eigenvalues_does_not_lower_the_estimate():
    """As on curves, whose eigenvalues may be below the shift that is factorized."""
    values, shift = np.array([1.0, 2.0, 3.0, 4.0]), 1e3
    start = np.eye(4, 2)
    start[2, 0] = 0.1
    found = smallest_pairs(
        lambda X: values[:, None] * X,
        lambda R: (R / (values + shift)[:, None], R),
        start,
        tol=0.005,  # the start vector has an energy of 1.02
        max_iter=50,
        shift=shift,
    )
    assert found.energy_error <= 0.005
    assert found.values[0] < 1.005


def test_starts_among_the_constraints_are_no_obstacle(problem):
    """As when the eigenvector found before has become a coordinate."""
    F = dense(problem).vectors
    minimizer = EnergyMinimizer(problem, np.random.default_rng(0), factorize=True)
    before = minimizer.orthogonal_to(F).eigenvector()
    more = np.hstack([F, before.vectors])
    found = minimizer.orthogonal_to(more).eigenvector()
    assert found.values[0] == pytest.approx(dense(constrained(problem, more)).values[0])


def test_iterations_survive_dependent_directions():
    """In three dimensions a block of two vectors and their directions is dependent."""
    A = np.diag([1.0, 2.0, 4.0])
    start = np.random.default_rng(0).normal(size=(3, 2))
    found = smallest_pairs(lambda X: A @ X, lambda R: (R.copy(), R), start, tol=1e-9, max_iter=50)
    np.testing.assert_allclose(found.values, [1.0, 2.0], rtol=1e-6)
    assert found.energy_error <= 1e-9


def problem_weights(problem) -> sparse.csr_array:
    return GraphProblem(replace(problem)).weights
