"""Points within a few steps, against shortest paths."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from manifoldry.neighbors.step_balls import StepBalls


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_pairs_within_steps_are_those_of_shortest_paths(steps):
    rng, n = np.random.default_rng(0), 150  # more than two words of bits
    A = sparse.random_array((n, n), density=0.012, rng=rng, format="csr")
    A[:, [7, 70]] = A[[7, 70]] = 0  # points without edges, also the first of a block
    A = sparse.csr_array(A + A.T)
    A.eliminate_zeros()
    start, end = np.divmod(np.arange(n * n), n)
    expected = shortest_path(A, unweighted=True)[start, end] <= steps
    assert 0.01 < expected.mean() < 0.9
    np.testing.assert_array_equal(StepBalls(A).connects(start, end, steps), expected)
