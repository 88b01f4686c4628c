"""Estimators of the contract suites with drawn parameters, some of them invalid."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..contract.conftest import ESTIMATORS

REGISTRY = {method.id: method for method in ESTIMATORS}
# Valid values of parameters, by name; an estimator gets those that it has. They are valid for
# most estimators and data: others are in OWN.
VALID = {
    "n_components": st.integers(1, 4),
    "n_clusters": st.integers(1, 4),
    "n_neighbors": st.integers(3, 8) | st.integers(1, 12),
    "radius": st.sampled_from([1e6, 3.0, 0.5]),
    "disconnected": st.sampled_from(["separate", "join", "largest", "error"]),
    "eigen_solver": st.sampled_from(
        ["auto", "dense", "lanczos", "lobpcg", "randomized", "shift_invert"]
    ),
    "metric": st.sampled_from(["euclidean", "cityblock", "chebyshev", "cosine", "correlation"]),
    "normalization": st.sampled_from(["rw", "sym", "none"]),
    "perplexity": st.floats(1, 6),
    "affinity": st.sampled_from(["gaussian", "self_tuning", "binary"]),
    "gamma": st.sampled_from([0.1, 1e-6, 1.0, 1e6]),
    "alpha": st.sampled_from([0.0, 0.5, 1.0]),
    "t": st.sampled_from([0.0, 0.5, 3.0]),
    "reg": st.sampled_from([1e-12, 1e-3, 1.0]),
    "n_landmarks": st.integers(4, 8),
    "landmarks": st.sampled_from(["maxmin", "random"]),
    "short_circuits": st.sampled_from(["warn", "ignore"]),
    "additive_constant": st.booleans(),
    "kernel": st.sampled_from(["rbf", "linear", "poly", "cosine", "laplacian", "sigmoid"]),
    "criterion": st.sampled_from(["gradient", "prediction"]),
    "bandwidth": st.sampled_from([0.1, 0.3, "auto"]),
    "metric_fit": st.booleans(),
    "laplacian_weight": st.sampled_from([0.0, 0.1]),
    "normalize_rows": st.booleans(),
    "init": st.sampled_from(["random", "spectral", "pca"]),
    "optimizer": st.sampled_from(["lbfgs", "gradient", "cg", "spectral", "jacobi"]),
    "weight": st.sampled_from([1e-3, 1.0, 100.0]),
    "repulsion": st.sampled_from(["uniform", "squared_distance"]),
    "degrees_of_freedom": st.sampled_from([0.5, 1.0, 3.0]),
    "constraint": st.sampled_from(["equal", "at_most"]),
    "n_basis": st.integers(1, 8),
    "refine": st.booleans(),
    "leave_one_out": st.booleans(),
    "box": st.sampled_from([0.5, 3.0]),
    "density_floor": st.sampled_from([1e-3, 0.1]),
    "max_iter": st.integers(1, 30),
    "random_state": st.integers(0, 3),
}
# Values of parameters that are others for some estimators, by the beginning of their names; none
# if the estimator does not take the parameter, or not with the other ones that it has here.
UNFOLDED = st.sampled_from(["separate", "largest", "error"])
OWN = {
    "UKR": {
        "kernel": st.sampled_from(["gaussian", "student", "quartic", "triweight"]),
        "leave_one_out": None,
    },
    "MVU": {"optimizer": None},
    "MVU-distances": {"n_landmarks": None},
    "LLE": {"disconnected": UNFOLDED},
    "LTSA": {"disconnected": UNFOLDED},
    "HessianLLE": {"disconnected": UNFOLDED, "n_neighbors": st.integers(9, 14)},
    "ModifiedLLE": {"disconnected": UNFOLDED},
    "ConformalEigenmaps": {"disconnected": UNFOLDED},
    "KernelPCA": {"alpha": st.sampled_from([1e-6, 0.5, 1.0])},
    "KernelPCA-fixed_point": {"kernel": None},
    "LaplacianEigenmaps-radius": {"n_neighbors": None},
    "LaplacianEigenmaps-binary": {"gamma": None},
    "LaplacianEigenmaps-entropic": {"gamma": None},
    "DiffusionMaps-self_tuning": {"gamma": None},
    "SpectralEmbedding": {"affinity": st.sampled_from(["nearest_neighbors", "rbf"])},
    "SNE": {"affinity": None, "gamma": None},
    "SymmetricSNE": {"affinity": None, "gamma": None},
    "ElasticEmbedding": {"affinity": None},
    "ElasticEmbedding-squared_distance": {"metric": None, "repulsion": None},
}
# Of these, only one can be given.
EXCLUSIVE = [("n_neighbors", "radius"), ("affinity", "gamma", "perplexity")]
# Wrong for all parameters but those tested for truth.
WRONG = st.sampled_from([-1, float("nan"), "best", [2]])
TRUTHS = ("additive_constant", "metric_fit", "normalize_rows", "leave_one_out", "refine")
# Wrong for some parameters: out of bounds or of the wrong type.
DOUBTFUL = st.sampled_from([0, 1.5, 10_000, float("inf"), True, None])
# Their matrices say what they hold; another metric or kernel is another estimator.
FIXED = ("metric", "affinity", "kernel")
# Parameters that are not read, since affinities are given or of another kind.
UNUSED = {
    "LaplacianEigenmaps-affinity": ("gamma", "n_neighbors", "radius"),
    "DiffusionMaps-precomputed": ("gamma", "n_neighbors"),
    "SpectralEmbedding": ("gamma",),
    "SpectralEmbedding-rbf": ("n_neighbors",),
    "SpectralEmbedding-precomputed": ("gamma", "n_neighbors"),
}


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


def values_of(method):
    """The valid values that can be drawn for each parameter of an estimator."""
    own = method.make().get_params(deep=False)
    values = {name: VALID[name] for name in sorted(own) if name in VALID}
    for beginning, others in OWN.items():
        if method.id.startswith(beginning):
            values |= {name: value for name, value in others.items() if name in values}
    fixed = FIXED if method.takes != "data" else ()
    return {name: v for name, v in values.items() if v is not None and name not in fixed}


@st.composite
def models(draw, select=lambda method: True, parameters=True):
    """An estimator with up to three valid parameters."""
    method = draw(st.sampled_from([method for method in ESTIMATORS if select(method)]))
    if not parameters:
        return Model(method.id, {})
    values = values_of(method)
    chosen = set(draw(st.lists(st.sampled_from(list(values)), max_size=3, unique=True)))
    for group in EXCLUSIVE:
        chosen -= set([name for name in group if name in chosen][1:])
    return Model(method.id, {name: draw(values[name]) for name in sorted(chosen)})


@st.composite
def invalid_models(draw, wrong):
    """An estimator with one parameter whose value is drawn from `wrong`."""
    model = draw(models())
    excluded = (*TRUTHS, *UNUSED.get(model.id, ()))
    names = [name for name in values_of(model.method) if name not in excluded]
    return Model(model.id, {**model.parameters, draw(st.sampled_from(names)): draw(wrong)})
