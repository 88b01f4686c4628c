"""Small objectives with known minima."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry.objectives.base import Objective


class Function(Objective):
    """Any function of a map with its gradient; records the maps at which it is evaluated."""

    def __init__(self, n, function):
        self._n, self.function, self.evaluated = n, function, []

    @property
    def n(self):
        return self._n

    def value_and_gradient(self, Y):
        self.evaluated.append(Y.tobytes())
        value, G = self.function(Y)
        return value, np.asarray(G, dtype=Y.dtype)

    @property
    def attraction(self):
        return sparse.csr_array((self.n, self.n))

    def diagonal_curvature(self, Y):
        return np.ones_like(Y)


@pytest.fixture
def function():
    """Make an objective of n points from a function that returns value and gradient."""
    return Function


@pytest.fixture
def quadratic():
    """Make ½⟨Y, AY⟩ − ⟨B, Y⟩ + 3 for symmetric positive definite A."""
    return lambda A, B: Function(
        len(A), lambda Y: (0.5 * np.vdot(Y, A @ Y) - np.vdot(B, Y) + 3, A @ Y - B)
    )


@pytest.fixture
def definite():
    """Make a symmetric positive definite matrix with eigenvalues from 1 to `condition`."""

    def make(n, condition, seed=0):
        Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
        return (Q * np.geomspace(1, condition, n)) @ Q.T

    return make
