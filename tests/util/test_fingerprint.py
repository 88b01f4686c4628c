"""Descriptions of values: equal for equal values, different for different ones."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from manifoldry import PCA
from manifoldry.optimize import LBFGS
from manifoldry.util.fingerprint import describe

X = np.random.default_rng(0).normal(size=(40, 3))


def changed(X):
    X = X.copy()
    X[-1, -1] += 1e-12
    return X


VALUES = {
    "numbers": (lambda: 0.1, lambda: 0.2),
    "arrays": (X.copy, lambda: changed(X)),
    "shapes": (X.copy, lambda: X.reshape(3, 40)),
    "precisions": (lambda: np.zeros(3), lambda: np.zeros(3, dtype=np.float32)),
    "strides": (lambda: np.asfortranarray(X), lambda: X.T),
    "sparse": (lambda: sparse.csr_array(X), lambda: sparse.csr_array(changed(X))),
    "frames": (lambda: pd.DataFrame(X), lambda: pd.DataFrame(changed(X))),
    "generators": (lambda: np.random.default_rng(1), lambda: np.random.default_rng(2)),
    "random states": (lambda: np.random.RandomState(1), lambda: np.random.RandomState(2)),
    "optimizers": (lambda: LBFGS(memory=3), lambda: LBFGS(memory=4)),
    "fitted": (lambda: PCA().fit(X), lambda: PCA().fit(changed(X))),
    "lambdas": (lambda: lambda x: x, lambda: len),
}


@pytest.mark.parametrize("kind", VALUES)
def test_equal_and_different_values(kind):
    value, other = VALUES[kind]
    assert describe(value()) == describe(value())
    assert describe(value()) != describe(other())
