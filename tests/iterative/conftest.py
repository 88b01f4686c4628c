"""The iterative estimators, on data small enough for many fits."""

from functools import partial

import numpy as np
import pytest

import manifoldry as mf
from manifoldry.datasets import make_swiss_roll
from manifoldry.optimize import EarlyExaggeration

# Estimators with a search that takes more than a few steps and converges.
ESTIMATORS = {
    "SNE": partial(mf.SNE, perplexity=10),
    "SymmetricSNE": partial(mf.SymmetricSNE, perplexity=10),
    "TSNE": partial(
        mf.TSNE, perplexity=10, early_exaggeration=EarlyExaggeration(n_iter=20), max_iter=60
    ),
    "ElasticEmbedding": partial(mf.ElasticEmbedding, perplexity=10),
    "ElasticEmbedding-weight": partial(
        mf.ElasticEmbedding, perplexity=10, weight=20.0, repulsion="uniform"
    ),
    "UKR": partial(mf.UKR, max_iter=60),
    "UKR-box": partial(mf.UKR, max_iter=60, box=3.0),
    "MVU": partial(mf.MVU, max_iter=60),
    "MVU-landmarks": partial(mf.MVU, max_iter=60, n_landmarks=20),
}


def pytest_generate_tests(metafunc):
    if "make" in metafunc.fixturenames:
        metafunc.parametrize("make", list(ESTIMATORS.values()), ids=list(ESTIMATORS))


@pytest.fixture(name="X", scope="session")
def training_data():
    return make_swiss_roll(90, random_state=0).X


@pytest.fixture(name="X_new", scope="session")
def new_data():
    return make_swiss_roll(12, random_state=1).X


def distance_up_to_rotation(Y, reference):
    """Largest difference, relative to the size of the map, after the best rotation."""
    Y, reference = Y - Y.mean(axis=0), reference - reference.mean(axis=0)
    U, _, V = np.linalg.svd(Y.T @ reference)
    return np.abs(Y @ U @ V - reference).max() / np.abs(reference).max()


@pytest.fixture(scope="session")
def rotated():
    return distance_up_to_rotation
