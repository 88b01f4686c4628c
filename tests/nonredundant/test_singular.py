"""Leading singular vectors of a smoother."""

import numpy as np
import pytest

from manifoldry.nonredundant.singular import singular_coefficients

CUT = 0.03


@pytest.mark.parametrize(("rest", "count"), [(0.5, 400), (0.01, 200)])
def test_no_singular_values_above_the_cutoff_are_missing(rest, count):
    """The second half of the columns is left out only if it adds nothing above the cutoff."""
    singular_values = np.concatenate([np.geomspace(1, 2 * CUT, 200), np.full(200, rest)])
    X = np.eye(400, dtype=np.float32)
    A = X * singular_values.astype(np.float32)
    A[199] *= 0.1  # a small singular value among the first does not show that others are small
    squares, E = singular_coefficients(A, X, np.zeros(400), CUT, 400)
    assert len(squares) == E.shape[1] == count - 1
    V = X @ E
    left = A - (A @ V) @ V.T
    assert np.linalg.norm(left, 2) < 1.5 * CUT
