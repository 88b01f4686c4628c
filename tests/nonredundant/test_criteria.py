"""Criteria: constraints of the problem are kept, and penalties have the right sign."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry.eigen import Dense, SpectralProblem
from manifoldry.nonredundant.criteria import (
    GradientCriterion,
    GraphProblem,
    PredictionCriterion,
    penalized,
)

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
