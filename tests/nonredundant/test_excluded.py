"""Many constraints in single precision give the solution of those in double precision."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from manifoldry.eigen import Lanczos, SpectralProblem
from manifoldry.nonredundant.excluded import excluding


@pytest.fixture
def problem():
    n = 400
    L = sp.diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1])
    mass = np.linspace(1, 2, n)
    given = np.sin(np.arange(n))
    return SpectralProblem(L, end="smallest", mass=mass, bounds=(0, 4), constraint=given)


def test_many_functions_are_excluded_in_single_precision(problem):
    rng = np.random.default_rng(0)
    F = rng.standard_normal((problem.n, 2))
    functions = rng.standard_normal((problem.n, 80)) / 20
    # One is nearly an earlier coordinate, and its remainder outside of the other constraints.
    functions[:, 0] = F[:, 0] / 20 + 0.09 * rng.standard_normal(problem.n) / 20
    double = excluding(problem, F, functions)
    single = excluding(problem, F, functions.astype(np.float32))
    assert double.constraint.dtype == np.float64
    assert single.constraint.dtype == np.float32
    f, g = (Lanczos().solve(p, 1, np.random.default_rng(0)).vectors[:, 0] for p in (double, single))
    np.testing.assert_allclose(g, f, atol=1e-4)
    weighted = problem.mass * g
    assert np.abs(np.column_stack([problem.constraint, F]).T @ weighted).max() < 1e-4
    assert np.abs(functions.T @ weighted).max() < 1e-4


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_units_of_the_mass_do_not_matter(problem, scale):
    """Single precision has a smaller range."""
    rng = np.random.default_rng(0)
    F, functions = rng.standard_normal((problem.n, 2)), rng.standard_normal((problem.n, 80)) / 20
    scaled = replace(problem, mass=scale * problem.mass)
    found, expected = (
        excluding(p, F, functions.astype(np.float32)).standard().Q for p in (scaled, problem)
    )
    np.testing.assert_allclose(found @ (found.T @ expected), expected, atol=1e-5)


def test_few_functions_are_excluded_in_double_precision(problem):
    F, functions = np.ones((problem.n, 1)), np.eye(problem.n, 5, dtype=np.float32)
    assert excluding(problem, F, functions).constraint.dtype == np.float64
