"""scikit-learn's own tests of the classes that replace it by a changed import, run on ours.

The tests are those of the installed scikit-learn: its test module is loaded with our class in place
of its own. Each test that uses the class is an item here. The others in the same file are about
functions of scikit-learn, for which this package has no replacement.
"""

import sys
from collections.abc import Iterator
from importlib.util import find_spec, module_from_spec
from types import CodeType, FunctionType, ModuleType, SimpleNamespace

import numpy as np
import pytest
from sklearn import manifold

from manifoldry import LocallyLinearEmbedding, SpectralEmbedding


@pytest.fixture(params=[np.float32, np.float64])
def global_dtype(request):
    """The fixture of scikit-learn's conftest.py, which tests float32 only if asked to."""
    return request.param


@pytest.fixture(params=[0, 42])
def global_random_seed(request):
    """The fixture of scikit-learn's conftest.py, with one seed more."""
    return request.param


def suite(file: str, ours: type) -> type:
    """Class whose tests are those of scikit-learn's test module `file` that use `ours`."""
    try:
        module = load(file, ours)
    except ModuleNotFoundError:
        return type("Test" + ours.__name__, (), {"test_absent": staticmethod(skip_absent)})
    tests = {
        name: staticmethod(tied_neighbors(value) if ties_all_neighbors(value) else value)
        for name, value in vars(module).items()
        if name.startswith("test") and isinstance(value, FunctionType) and uses(value, ours)
    }
    return type("Test" + ours.__name__, (), tests)


# Needed for scikit-learn 1.6, whose test passes connectivities, all of them one, as distances:
# which of the tied neighbors it keeps depends on the order in which they are stored. Later versions
# of the test pass distances.
tied_neighbors = pytest.mark.skip(reason="the distances of all neighbors are equal")


def ties_all_neighbors(test: FunctionType) -> bool:
    name = "test_precomputed_nearest_neighbors_filtering"
    return test.__name__ == name and "connectivity" in test.__code__.co_consts


def load(file: str, ours: type) -> ModuleType:
    """A copy of the module of scikit-learn's tests with `ours`; the original is not changed."""
    spec = find_spec(f"sklearn.manifold.tests.{file}")
    if spec is None:
        raise ModuleNotFoundError(f"sklearn.manifold.tests.{file}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    substitute(module, ours)
    return module


def skip_absent() -> None:
    pytest.skip("scikit-learn was installed without its tests")


def substitute(module: ModuleType, ours: type) -> None:
    """Put `ours` where the module has scikit-learn's class of the same name."""
    theirs = getattr(manifold, ours.__name__)
    replaced = SimpleNamespace(**{**vars(manifold), ours.__name__: ours})
    for name, value in list(vars(module).items()):
        if value is theirs:
            setattr(module, name, ours)
        elif value is manifold:
            setattr(module, name, replaced)


def uses(test: FunctionType, ours: type) -> bool:
    return any(ours.__name__ in code.co_names for code in code_objects(test.__code__))


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


TestLocallyLinearEmbedding = suite("test_locally_linear", LocallyLinearEmbedding)
TestSpectralEmbedding = suite("test_spectral_embedding", SpectralEmbedding)


def test_an_error_if_pyamg_is_missing(monkeypatch):
    """One of the tests above, which is skipped where pyamg is installed."""
    monkeypatch.setitem(sys.modules, "pyamg", None)
    try:
        module = load("test_spectral_embedding", SpectralEmbedding)
    except ModuleNotFoundError:
        skip_absent()
    module.test_error_pyamg_not_available()


@pytest.mark.parametrize("suite", [TestLocallyLinearEmbedding, TestSpectralEmbedding])
def test_none_is_lost(suite):
    """The selection by name found tests, with our class in them."""
    tests = [name for name in vars(suite) if name.startswith("test")]
    assert tests == ["test_absent"] or len(tests) >= 5
