"""The densities of the common tests."""

import numpy as np
import pytest

from manifoldry import FromDensity
from manifoldry.datasets import make_helix
from manifoldry.density import ManifoldParzen, MixtureOfFactorAnalyzers

DENSITIES = {
    "parzen": ManifoldParzen(),
    "parzen-round": ManifoldParzen(n_components=0),
    "parzen-fixed": ManifoldParzen(n_components=1, n_neighbors=5, noise=0.5),
    "factors": MixtureOfFactorAnalyzers(),
    "factors-two": MixtureOfFactorAnalyzers(2, 1),
    "factors-untied": MixtureOfFactorAnalyzers(2, 1, tied_noise=False),
}
ALL = {**DENSITIES, "from-density": FromDensity(n_draws=60)}


# One of each class; slow tests cover the others in expensive cases.
ONE_PER_CLASS = ("parzen", "factors-two", "from-density")


def pytest_configure(config):
    config.addinivalue_line("markers", "one_density_per_class: other densities are slow")


def pytest_generate_tests(metafunc):
    costly = metafunc.definition.get_closest_marker("one_density_per_class")
    for name, models in (("density", DENSITIES), ("model", ALL)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, [param(id, model, costly) for id, model in models.items()])


def param(id, model, costly):
    slow = costly and id not in ONE_PER_CLASS
    return pytest.param(model, id=id, marks=pytest.mark.slow if slow else [])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def helix():
    return make_helix(300, noise=0.02, random_state=0).X


@pytest.fixture(scope="session")
def fresh_helix():
    return make_helix(1000, noise=0.02, random_state=1).X
