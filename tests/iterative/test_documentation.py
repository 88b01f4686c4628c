"""What a fit leaves on an estimator is in the estimator's own documentation."""

import inspect
import re

import numpy as np
import pytest

import manifoldry as mf
from manifoldry.optimize import EarlyExaggeration

FITTED = {
    mf.SNE: {"max_iter": 2},
    mf.SymmetricSNE: {"max_iter": 2},
    mf.TSNE: {"max_iter": 2, "early_exaggeration": EarlyExaggeration(8.0, 2)},
    mf.ElasticEmbedding: {"max_iter": 2, "weight": 1.0},
    mf.UKR: {"max_iter": 2, "init": "pca"},
    mf.MVU: {"max_iter": 2},
}
SKLEARNS = {"n_features_in_", "feature_names_in_"}


def documented(method):
    """Names in the section on attributes."""
    text = inspect.cleandoc(method.__doc__)  # Python 3.13 dedents it already
    section = text.split("Attributes\n----------\n")[1].split("\n\n")[0]
    return set(re.findall(r"\w+_\b", " ".join(re.findall(r"^(\w.*) :", section, re.M))))


@pytest.mark.parametrize("method", FITTED)
@pytest.mark.filterwarnings("ignore:.* did not converge")
def test_attributes_are_documented(X, method):
    model = method(**FITTED[method]).fit(X)
    public = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    assert documented(method) == public - SKLEARNS


def test_the_parameter_in_the_trace_of_tsne_is_one_over_the_exaggeration(X):
    parameter = mf.TSNE(**FITTED[mf.TSNE]).fit(X).trace_["parameter"]
    assert parameter[0] == 1 / 8
    assert np.isnan(parameter[-1])
