"""New coordinates of a map: how they change the augmented Lagrangian, and what they are for."""

import numpy as np
import pytest

from manifoldry import MVU, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.optimize.filter import Jacobi
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.semidefinite.edge_lengths import DistinctPoints, EdgeLengths
from manifoldry.semidefinite.rank_growth import descent_coordinates
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding

RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((25, 2))
ENDS = np.array([(i, j) for i in range(25) for j in range(i) if (i * j) % 3 == 0])
SQUARES = ((POINTS[ENDS[:, 0]] - POINTS[ENDS[:, 1]]) ** 2).sum(axis=1)
PENALTY, VARIANCE_PER_EDGE = 30.0, 5.0


def growth(most, slack=0.0, enough=0.999):
    """An objective, a map that keeps all lengths, and coordinates to add to it."""
    edges = EdgeLengths(ENDS, SQUARES, 25)
    multiplicity = np.arange(1.0, 26.0)
    problem = FreeUnfolding(edges, (0.0, 0.0), slack, multiplicity, np.zeros(25, dtype=np.intp))
    multipliers = np.zeros(edges.count)  # all eigenvalues are zero: every direction helps
    state = multipliers, VARIANCE_PER_EDGE, PENALTY
    new = descent_coordinates(problem, *state, most, np.random.default_rng(0), enough=enough)
    return problem.lagrangian(multipliers, PENALTY, VARIANCE_PER_EDGE), POINTS, new


@pytest.mark.parametrize("slack", [0.0, 0.1])
def test_a_coordinate_has_the_length_that_decreases_the_lagrangian_most(slack):
    objective, R, new = growth(1, slack)
    values = [objective.value(np.hstack([R, size * new])) for size in (0.0, 0.9, 1.0, 1.1)]
    assert values[2] < min(values[0], values[1], values[3])


def test_several_coordinates_decrease_the_lagrangian():
    objective, R, new = growth(8)
    assert new.shape == (25, 8)
    assert objective.value(np.hstack([R, new])) < objective.value(R)


def test_no_coordinate_if_all_eigenvalues_are_large_enough():
    assert growth(8, enough=-1.0)[2].shape == (25, 0)


def test_a_cloud_of_many_dimensions_converges():
    """Random new coordinates do not grow here: the gap remains 1.3 %."""
    model = MVU().fit(np.random.default_rng(0).normal(size=(200, 10)))
    assert model.converged_
    assert model.gap_ <= 0.01


@pytest.mark.parametrize("kind", ["cloud", "roll"])
def test_preconditioner(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20)) if kind == "cloud" else make_swiss_roll(400, random_state=0).X
    graph = NeighborGraph.build(X, 6)
    distinct = DistinctPoints.of(graph, np.ones(400, dtype=bool))
    edges = EdgeLengths.of(graph, distinct, cliques=True)
    problem = FreeUnfolding(edges, (0.0, 0.0), 0.0, np.ones(400), np.zeros(400, dtype=np.intp))
    assert isinstance(problem.filter, Jacobi if kind == "cloud" else SpectralDirection)
