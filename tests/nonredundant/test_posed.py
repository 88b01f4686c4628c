"""Posed methods with non-redundant coordinates."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from manifoldry import PCA, KernelPCA, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_strip


@pytest.mark.parametrize("criterion", ["gradient", "prediction"])
def test_training_rows_get_their_coordinates_from_corrected_linear_maps(criterion):
    """A projection maps them exactly; a corrected one needs a lookup.

    For a parabola with some width, the second principal component is the square of the first.
    """
    rng = np.random.default_rng(0)
    x, width = rng.uniform(-1, 1, 120), rng.uniform(size=120)
    X = np.column_stack([3 * x, 2 * x**2, 0.3 * width])
    model = NonRedundant(PCA(), 2, criterion=criterion).fit(X)
    assert abs(np.corrcoef(model.embedding_[:, 1], width)[0, 1]) > 0.9
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


@pytest.mark.parametrize(
    ("estimator", "n_components", "message"),
    [
        (LaplacianEigenmaps(), 2, "no single kernel .*; fit the estimator without NonRedundant"),
        (LaplacianEigenmaps(), 1, "equal those of the estimator, so fit it without"),
        (KernelPCA(), 1, "equal those of the estimator, so fit it without"),
        (
            LaplacianEigenmaps(extension=KNeighborsRegressor()),
            2,
            "replaces the formula of the method",
        ),
    ],
)
def test_why_there_is_no_equivalent_kernel(estimator, n_components, message):
    """One coordinate has no constraints; the second of a long strip has."""
    X, _ = make_strip(150, aspect=3.5, random_state=0)
    model = NonRedundant(estimator, n_components).fit(X)
    with pytest.raises(ValueError, match=message):
        model.estimator_.equivalent_kernel(X)
