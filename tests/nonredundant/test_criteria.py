"""Criteria: constraints of the problem are kept, and penalties have the right sign."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from manifoldry import LaplacianEigenmaps
from manifoldry.eigen import Dense, SpectralProblem, Spectrum
from manifoldry.nonredundant.criteria import (
    Coordinate,
    GradientCriterion,
    GraphProblem,
    PredictionCriterion,
    penalized,
)
from manifoldry.nonredundant.sequence import CoordinateSequence, SequentialSolver

N = 40


def first(problem):
    return Dense().solve(problem, 1, np.random.default_rng(0))


@pytest.mark.parametrize(
    "criterion", [PredictionCriterion(0.3), GradientCriterion()], ids=["prediction", "gradient"]
)
def test_constraints_of_the_problem_are_kept(criterion):
    rng = np.random.default_rng(0)
    L = 2 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)  # a path
    L[0, 0] = L[-1, -1] = 1
    mass, given = rng.uniform(0.5, 1.5, N), rng.normal(size=(N, 2))
    problem = SpectralProblem(L, "smallest", mass=mass, deflate=np.ones(N), constraint=given)
    F = first(problem).vectors
    f = criterion.next(GraphProblem(problem), F, first).f
    excluded = np.column_stack([np.ones(N), given, F])
    np.testing.assert_allclose((mass * f) @ excluded, 0, atol=1e-9)


@pytest.mark.parametrize(("end", "sign", "chosen"), [("largest", -1, -1), ("smallest", 1, 0)])
def test_signs_of_penalties(end, sign, chosen):
    """They are subtracted if the problem maximizes, and added if it minimizes."""
    A, R = (M @ M.T for M in np.random.default_rng(0).normal(size=(2, 12, 12)))
    values, V = np.linalg.eigh(A + sign * R)
    found = first(penalized(SpectralProblem(A, end), sparse.csr_array(R)))
    assert found.values[0] == pytest.approx(values[chosen])
    assert abs(found.vectors[:, 0] @ V[:, chosen]) == pytest.approx(1)


def test_penalties_given_by_products():
    """Penalties as an operator, as on large graphs where products suffice, and as a matrix."""
    X = np.random.default_rng(0).normal(size=(300, 6))
    problem = LaplacianEigenmaps(n_neighbors=8).pose(X).problems[0]
    F = first(problem).vectors
    matrix, products = (
        GradientCriterion().next(GraphProblem(problem, suffice), F, first)
        for suffice in (False, True)
    )
    assert matrix.constrained
    assert products.description == matrix.description
    np.testing.assert_allclose(products.f, matrix.f, atol=1e-8 * np.abs(matrix.f).max())


def test_which_problems_are_solved_fast():
    """Laplacians of more than 5000 points, with a factor if the first coordinate needed it."""
    A = sparse.diags_array(np.arange(1, 5002.0))
    problem = SpectralProblem(A, "smallest", bounds=(0, np.inf))
    positive = replace(
        problem, operator=A + sparse.diags_array([0.1, 0.1], offsets=[-1, 1], shape=A.shape)
    )
    auto = SequentialSolver(GradientCriterion(), "auto")
    for solver, given, name, products, factorize in [
        (auto, problem, "Lanczos", True, False),
        (auto, problem, "ShiftInvertLanczos", False, True),
        (auto, problem, "Lobpcg", False, None),
        (auto, positive, "Lanczos", True, None),
        (auto, replace(problem, bounds=None), "Lanczos", True, None),
        (replace(auto, solver="lanczos"), problem, "Lanczos", True, None),
        (auto, replace(problem, end="largest"), "Lanczos", False, None),
    ]:
        spectrum = Spectrum(*np.ones((4, 1, 1)), 2.0, 1.0, solver=name)
        sequence = CoordinateSequence(GraphProblem(given))
        sequence = sequence.with_next(Coordinate(spectrum, False, 1.0, "the first"))
        prepared = solver.prepared(sequence, np.random.default_rng(0))
        assert prepared.products_suffice == products
        assert getattr(prepared.minimizer, "factorize", None) == factorize


@pytest.mark.parametrize("accurate", [False, True])
def test_an_approximate_coordinate_does_not_excuse_the_others(accurate):
    """Residuals of functions of nearly the least energy may be as large as gaps."""
    vectors, one = np.ones((3, 1)), np.ones(1)
    residuals = one * (1e-9 if accurate else 0.5)
    first = Spectrum(one, vectors, residuals, one, 2.0, 1.0, solver="Lanczos")
    second = replace(first, residuals=one, solver="EnergyMinimizer", energy_errors=np.array([0.01]))
    assert second.accepted
    assert "accepted" not in second.summary()
    coordinates = (Coordinate(s, False, 1.0, "a test") for s in (first, second))
    graph_problem = GraphProblem(SpectralProblem(np.eye(3), "smallest"))
    both = CoordinateSequence(graph_problem, tuple(coordinates)).spectrum
    assert both.accepted == accurate
    verdict = "(accepted)" if accurate else "(not accepted)"
    text = both.summary()
    assert "worst pair 0: " in text
    assert text.endswith(f"{verdict}; energies to 1 %, by estimate, of pairs 1")
    np.testing.assert_array_equal(both.padded(3).errors_of_energies, [np.nan, 0.01, np.nan])
