"""Data sets of known dimension, and all methods as a parametrization."""

import numpy as np
import pytest

from manifoldry.datasets import make_swiss_roll
from manifoldry.dimension import (
    correlation_dimension,
    diffusion_slope,
    gram_rank,
    local_pca,
    maximum_likelihood,
    pca_dimension,
    residual_variance_elbow,
    two_nn,
)

METHODS = {
    method.__name__: method
    for method in (
        two_nn,
        maximum_likelihood,
        correlation_dimension,
        local_pca,
        diffusion_slope,
        residual_variance_elbow,
        pca_dimension,
        gram_rank,
    )
}


def pytest_generate_tests(metafunc):
    if "method" in metafunc.fixturenames and not _chosen(metafunc):
        metafunc.parametrize("method", METHODS.values(), ids=METHODS.keys())


def _chosen(metafunc):
    """Whether a test parametrizes `method` itself."""
    marks = metafunc.definition.iter_markers("parametrize")
    return any("method" in mark.args[0] for mark in marks)


def cube(d, n=2000, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, d))


def sphere(d, n=2000, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d + 1))
    return X / np.linalg.norm(X, axis=1)[:, None]


def roll(n=2000, seed=0, noise=0.0):
    return make_swiss_roll(n, noise=noise, random_state=seed).X


@pytest.fixture(scope="session")
def sheet():
    """A few hundred points of a curved sheet in four features."""
    u = np.random.default_rng(3).uniform(size=(300, 2))
    return np.column_stack([u[:, 0], 2 * u[:, 1], np.sin(2 * u[:, 0]), u[:, 0] * u[:, 1]])
