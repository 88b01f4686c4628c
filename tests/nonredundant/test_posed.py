"""What a method's problem means once its coordinates are kept apart."""

import numpy as np
import pytest

from manifoldry import PCA, NonRedundant


@pytest.mark.parametrize("criterion", ["gradient", "prediction"])
def test_training_rows_return_to_their_place_on_corrected_linear_maps(criterion):
    """A projection would return them by itself; one that was corrected does not.

    Of a parabola with some width, the second principal component is the square of the first.
    """
    rng = np.random.default_rng(0)
    x, width = rng.uniform(-1, 1, 120), rng.uniform(size=120)
    X = np.column_stack([3 * x, 2 * x**2, 0.3 * width])
    model = NonRedundant(PCA(), 2, criterion=criterion).fit(X)
    assert abs(np.corrcoef(model.embedding_[:, 1], width)[0, 1]) > 0.9
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
