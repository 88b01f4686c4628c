"""Descriptions of values: equal for equal values, different for different ones."""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifoldry import PCA
from manifoldry.optimize import LBFGS
from manifoldry.util.fingerprint import describe

X = np.random.default_rng(0).normal(size=(40, 3))


def changed(X):
    X = X.copy()
    X[-1, -1] += 1e-12
    return X


@dataclass
class Options:
    weights: np.ndarray


long = np.zeros(5000)  # numpy's repr leaves out the middle


def changed_inside(long):
    long = long.copy()
    long[2500] = 1.0
    return long


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
    "fitted pipelines": (
        lambda: make_pipeline(StandardScaler(), PCA()).fit(X),
        lambda: make_pipeline(StandardScaler(), PCA()).fit(changed(X)),
    ),
    "frozen": (
        lambda: FrozenEstimator(PCA().fit(X)),
        lambda: FrozenEstimator(PCA().fit(changed(X))),
    ),
    "private data": (
        lambda: KNeighborsRegressor().fit(X, X[:, 0]),
        lambda: KNeighborsRegressor().fit(changed(X), X[:, 0]),
    ),
    "objects": (
        lambda: np.array(["a", 1, None], dtype=object),
        lambda: np.array(["b", 1, None], dtype=object),
    ),
    "dictionaries": (lambda: {"w": long}, lambda: {"w": changed_inside(long)}),
    "orders": (lambda: {"a": 1, "b": 2}, lambda: {"a": 2, "b": 1}),
    "lists": (lambda: [1, long], lambda: [1, changed_inside(long)]),
    "tuples": (lambda: ("a", (long,)), lambda: ("a", (changed_inside(long),))),
    "kinds": (lambda: [1, 2], lambda: (1, 2)),
    "types": (lambda: np.float64, lambda: np.float32),
    "sets": (lambda: {"a", "b"}, lambda: {"a", "c"}),
    "dataclasses": (lambda: Options(long), lambda: Options(changed_inside(long))),
    "partials": (lambda: partial(max, key=long), lambda: partial(max, key=changed_inside(long))),
    "lambdas": (lambda: lambda x: x, lambda: len),
}


@pytest.mark.parametrize("kind", VALUES)
def test_equal_and_different_values(kind):
    value, other = VALUES[kind]
    assert describe(value()) == describe(value())
    assert describe(value()) != describe(other())


def test_order_of_keys_does_not_matter():
    assert describe({"a": 1, "b": 2}) == describe({"b": 2, "a": 1})


def test_long_texts_are_readable():
    text = describe(PCA().fit(X))
    assert text.startswith("PCA(device=None, eigen_solver='auto', n_components=")
    assert len(text) == 80
    assert describe({"w": long}) == "{'w': " + describe(long) + "}"


def test_use_does_not_change_a_fitted_model():
    model = PCA(2).fit(X)
    before = describe(model)
    model.inverse_transform(model.transform(X + 0.01))
    assert describe(model) == before


IN_ANOTHER_PROCESS = """
import numpy as np, pandas as pd
from manifoldry import PCA
from manifoldry.util.fingerprint import describe
names = [f"feature {i}" for i in range(3)]
X = np.arange(30.0).reshape(10, 3) ** 2
print(describe(np.array(names, dtype=object)))
print(describe(PCA(2).fit(pd.DataFrame(X, columns=names))))
print(describe({"set": set(names), "frozen": frozenset(names)}))
"""


def test_another_process_has_the_same_descriptions():
    first, second = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", IN_ANOTHER_PROCESS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second
    assert first.count("digest") == 3
