"""What ``import manifoldry`` costs, and what it offers."""

import subprocess
import sys

import pytest

import manifoldry

HEAVY = {"sklearn", "scipy", "matplotlib", "numba", "pandas", "numpy", "pyamg", "joblib"}


def modules_after(code):
    """Top-level modules loaded in a fresh interpreter after running `code`."""
    script = f"{code}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(run.stdout.split())


def test_importing_loads_nothing_heavy():
    """Half a second is out of reach of anything that imports these; so none of them is."""
    assert not HEAVY & modules_after("import manifoldry")
    assert not HEAVY & modules_after("import manifoldry; dir(manifoldry); manifoldry.__version__")


def test_an_estimator_loads_no_plotting():
    loaded = modules_after("import manifoldry; manifoldry.PCA")
    assert "sklearn" in loaded
    assert "matplotlib" not in loaded


@pytest.mark.parametrize("name", manifoldry.__all__)
def test_every_public_name_resolves(name):
    assert getattr(manifoldry, name) is not None
    assert name in dir(manifoldry)


def test_names_are_the_objects_they_name():
    for name in manifoldry.__all__:
        value = getattr(manifoldry, name)
        if isinstance(value, type):
            assert value.__name__ == {"MVU": "MaximumVarianceUnfolding"}.get(name, name)
            assert value.__module__.startswith("manifoldry.")


def test_star_import():
    names = {}
    exec("from manifoldry import *", names)
    assert set(manifoldry.__all__) <= set(names)


def test_submodules_are_there_without_their_own_import():
    """As the docstrings write them: manifoldry.eigen.resolve_solver and the like."""
    code = (
        "import manifoldry\n"
        "manifoldry.eigen.resolve_solver, manifoldry.exceptions.RankWarning\n"
        "manifoldry.neighbors.DisconnectedPolicy, manifoldry.affinity.Gaussian\n"
        "manifoldry.datasets, manifoldry.plotting"
    )
    modules_after(code)


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'manifoldry' has no attribute 'TSNE2'"):
        manifoldry.TSNE2  # noqa: B018 (the access itself must raise)
