"""Estimators of the contract suites with drawn parameters, some of them invalid."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..contract.conftest import ESTIMATORS

REGISTRY = {method.id: method for method in ESTIMATORS}
count = st.integers(1, 8)
# Valid values of parameters, by name; an estimator gets those that it has.
VALID = {
    "n_components": st.integers(1, 4),
    "n_clusters": st.integers(1, 4),
    "n_neighbors": st.integers(1, 12),
    "radius": st.sampled_from([1e-3, 0.5, 3.0, 1e6]),
    "disconnected": st.sampled_from(["separate", "join", "largest", "error"]),
    "eigen_solver": st.sampled_from(
        ["auto", "dense", "lanczos", "lobpcg", "randomized", "shift_invert"]
    ),
    "metric": st.sampled_from(["euclidean", "cityblock", "chebyshev", "cosine", "correlation"]),
    "normalization": st.sampled_from(["rw", "sym", "none"]),
    "perplexity": st.floats(1, 12),
    "affinity": st.sampled_from(["gaussian", "self_tuning", "binary"]),
    "gamma": st.sampled_from([1e-6, 0.1, 1.0, 1e6]),
    "alpha": st.sampled_from([0.0, 0.5, 1.0]),
    "t": st.sampled_from([0.0, 0.5, 3.0]),
    "reg": st.sampled_from([1e-12, 1e-3, 1.0]),
    "n_landmarks": count,
    "landmarks": st.sampled_from(["maxmin", "random"]),
    "short_circuits": st.sampled_from(["warn", "remove", "ignore"]),
    "additive_constant": st.booleans(),
    "kernel": st.sampled_from(["rbf", "linear", "poly", "cosine", "laplacian", "sigmoid"]),
    "criterion": st.sampled_from(["gradient", "prediction"]),
    "bandwidth": st.sampled_from([0.1, 0.3, "auto"]),
    "metric_fit": st.booleans(),
    "laplacian_weight": st.sampled_from([0.0, 0.1]),
    "normalize_rows": st.booleans(),
    "init": st.sampled_from(["random", "spectral", "pca"]),
    "optimizer": st.sampled_from(["lbfgs", "descent", "cg", "spectral_direction"]),
    "weight": st.sampled_from([1e-3, 1.0, 100.0]),
    "repulsion": st.sampled_from(["uniform", "squared_distance"]),
    "degrees_of_freedom": st.sampled_from([0.5, 1.0, 3.0]),
    "constraint": st.sampled_from(["equal", "at_most"]),
    "n_basis": count,
    "refine": st.booleans(),
    "leave_one_out": st.booleans(),
    "box": st.sampled_from([0.5, 3.0]),
    "density_floor": st.sampled_from([1e-3, 0.1]),
    "max_iter": st.integers(1, 30),
    "random_state": st.integers(0, 3),
}
# Values that are wrong for most parameters: out of bounds or of the wrong type.
WRONG = st.sampled_from([0, -1, 1.5, 10_000, float("nan"), float("inf"), "best", [2], True, None])
# Their matrices say what they hold; another metric or kernel is another estimator.
FIXED = ("metric", "affinity", "kernel")


@dataclass(frozen=True)
class Model:
    """An estimator of the contract suites and parameters that replace its own."""

    id: str
    parameters: dict[str, Any]

    @property
    def method(self):
        return REGISTRY[self.id]

    @property
    def finds_training_rows(self):
        """Whether ``transform`` returns the coordinates of training rows to the last bit."""
        # Rows of one direction coincide for these metrics, although their numbers differ.
        by_direction = self.parameters.get("metric") in ("cosine", "correlation")
        return self.method.finds_training_rows and not by_direction

    def make(self, **more):
        return self.method.make().set_params(**{**self.parameters, **more})

    def input(self, X):
        """What ``fit`` is given for the data `X`."""
        return self.between(X, X)

    def between(self, X_new, X):
        """What ``transform`` is given for new points, in the precision of the data."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a kernel of coinciding points is NaN, and refused
            return self.method.between(X_new, X).astype(X.dtype, copy=False)


def names_of(method):
    """Parameters that can be drawn for an estimator."""
    own = method.make().get_params(deep=False)
    fixed = FIXED if method.takes != "data" else ()
    return sorted(name for name in own if name in VALID and name not in fixed)


@st.composite
def models(draw, select=lambda method: True, parameters=True):
    """An estimator with up to three valid parameters."""
    method = draw(st.sampled_from([method for method in ESTIMATORS if select(method)]))
    if not parameters:
        return Model(method.id, {})
    chosen = draw(st.lists(st.sampled_from(names_of(method)), max_size=3, unique=True))
    return Model(method.id, {name: draw(VALID[name]) for name in sorted(chosen)})


@st.composite
def invalid_models(draw):
    """An estimator with one parameter that is probably wrong."""
    model = draw(models())
    name = draw(st.sampled_from(names_of(model.method)))
    return Model(model.id, {**model.parameters, name: draw(WRONG)})
