import numpy as np
import pytest
from scipy.spatial.distance import cdist


@pytest.fixture(scope="session")
def data():
    """Points in general position and a map of them that is neither perfect nor random."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6)) * [4, 3, 2, 1, 1, 1]
    return X, X[:, :2] + 0.3 * rng.normal(size=(150, 2))


@pytest.fixture(scope="session")
def ranks():
    """Rank of every point among the neighbours of every other, 0 for itself, by sorting."""

    def of(X):
        return np.argsort(np.argsort(cdist(X, X), axis=1), axis=1)

    return of
