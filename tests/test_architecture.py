"""The shape of the code: packages in one order, shallow classes, nobody touches private things."""

import ast
import inspect
import pathlib
import platform
import re
import subprocess
import sys
import tomllib

import pytest

import manifoldry
from manifoldry import _EXPORTS

ROOT = pathlib.Path(manifoldry.__file__).parent
# Every package imports only those before it; docs/architecture.md has the picture.
ORDER = (
    *("exceptions", "util", "device", "distributed", "datasets", "neighbors", "affinity", "eigen"),
    *("objectives", "optimize", "extension", "base", "spectral", "iterative", "semidefinite"),
    *("density", "nonredundant", "wrappers", "metrics", "dimension", "lie", "methods", "plotting"),
    *("io", "tl"),
    "reporting",
    *("explorer", "cli"),
)
# numba has no parameter for the class of its cache; os._exit is public, whatever its name.
NO_PUBLIC_WAY = {("util", "dispatcher._cache"), ("explorer", "os._exit")}
TREES = {p: ast.parse(p.read_text()) for p in sorted(ROOT.rglob("*.py")) if p.parent != ROOT}


def package(path):
    return path.relative_to(ROOT).parts[0]


def imported(tree):
    """Packages that a module imports, inside its functions too, but not for type checkers."""
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "manifoldry":
            for name in node.names:
                yield _EXPORTS.get(name.name, name.name).split(".")[0]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("manifoldry."):
            yield node.module.split(".")[1]


def test_packages_import_only_those_before_them():
    wrong = [
        f"{path.relative_to(ROOT)} imports {other}"
        for path, tree in TREES.items()
        for other in set(imported(tree)) - {package(path)}
        if ORDER.index(other) > ORDER.index(package(path))
    ]
    assert not wrong


def test_every_package_has_its_place_in_the_order():
    assert {package(path) for path in TREES} <= set(ORDER)


def test_no_package_imports_a_private_module_of_another():
    wrong = [
        f"{path.relative_to(ROOT)} imports {node.module}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and re.match(r"manifoldry\.\w+\.(\w+\.)*_", node.module or "")
        and node.module.split(".")[1] != package(path)
    ]
    assert not wrong


def test_nobody_touches_private_attributes_of_another_object():
    touched = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
                continue
            if node.attr.startswith("__") or node.attr in ("_replace", "_fields", "_asdict"):
                continue
            owner = ast.unparse(node.value)
            if (package(path), f"{owner}.{node.attr}") in NO_PUBLIC_WAY:
                continue
            if owner not in ("self", "cls", "other", "sys", "super()"):
                touched.append(f"{path.relative_to(ROOT)}:{node.lineno} {owner}.{node.attr}")
    assert not touched


@pytest.mark.parametrize("name", sorted(_EXPORTS))
def test_at_most_four_classes_of_ours_lead_to_an_estimator(name):
    thing = getattr(manifoldry, name)
    if inspect.isclass(thing):
        ours = [c.__name__ for c in thing.__mro__ if c.__module__.startswith("manifoldry")]
        assert len(ours) <= 4, ours


@pytest.mark.parametrize("name", sorted(_EXPORTS))
def test_at_most_sixteen_parameters(name):
    thing = getattr(manifoldry, name)
    if inspect.isclass(thing):
        assert len(inspect.signature(thing).parameters) <= 16


def test_ci_runs_the_interpreters_that_the_package_declares():
    project = pathlib.Path(__file__).parents[1]
    classifiers = tomllib.loads((project / "pyproject.toml").read_text())["project"]["classifiers"]
    declared = set(re.findall(r"Python :: (3\.\d+)", " ".join(classifiers)))
    command = [sys.executable, ".ci/interpreters.py"]
    listed = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stdout
    assert set(listed.split()) == declared - {platform.python_version().rpartition(".")[0]}
    assert not re.findall(r"3\.\d+", (project / ".ci" / "run").read_text())
