import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator

LOG = []


class Recorded(BaseEstimator):
    """Principal axes by numpy; column 0 numbers the points and is not data."""

    def fit_transform(self, X, y=None):
        self.mean_ = X[:, 1:].mean(axis=0)
        self.axes_ = np.linalg.svd(X[:, 1:] - self.mean_, full_matrices=False)[2][:2].T
        return self._logged("fit", X)

    def transform(self, X):
        return self._logged("transform", X)

    def _logged(self, what, X):
        Y = (X[:, 1:] - self.mean_) @ self.axes_
        LOG.append((what, X[:, 0].astype(int), Y))
        return Y


@pytest.fixture
def recorded():
    """The estimator, data for it, and its log of (method, point numbers, result)."""
    LOG.clear()
    data = np.random.default_rng(0).normal(size=(60, 4)) * [3, 2, 1, 1]
    return Recorded(), np.column_stack([np.arange(60), data]), LOG


@pytest.fixture(scope="session")
def data():
    """Points in general position and an embedding that is neither perfect nor random."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6)) * [4, 3, 2, 1, 1, 1]
    return X, X[:, :2] + 0.3 * rng.normal(size=(150, 2))


@pytest.fixture(scope="session")
def ranks():
    """Rank of every point among the neighbors of every other, 0 for itself, by sorting."""

    def of(X):
        return np.argsort(np.argsort(cdist(X, X), axis=1), axis=1)

    return of
