"""The words of the code: documented parameters and one meaning per name. Spelling: `make lint`."""

import ast
import inspect
import pydoc
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import manifoldry
from manifoldry import _EXPORTS
from manifoldry.base.docs import SHARED

ROOT = Path(manifoldry.__file__).parent
TREES = {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
ESTIMATORS = sorted(
    name
    for name in _EXPORTS
    if inspect.isclass(getattr(manifoldry, name)) and hasattr(getattr(manifoldry, name), "fit")
)
# Functions that do on AnnData what those of the same name do elsewhere.
ON_ANNDATA = {"assess": "tl/assessment.py", "embed": "tl/coordinates.py"}


def entries(docstring, section):
    """Names that a section of a numpydoc docstring documents."""
    found = re.search(rf"{section}\n-+\n(.*?)(?:\n\n[\w ]+\n-+\n|\Z)", docstring, flags=re.DOTALL)
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", found[1] if found else "", flags=re.MULTILINE)
    return [name for head in heads for name in head.split(", ")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_are_documented_in_the_order_of_the_signature(name):
    cls = getattr(manifoldry, name)
    documented = entries(inspect.cleandoc(cls.__doc__), "Parameters")
    assert documented == list(inspect.signature(cls).parameters)


def test_no_placeholder_is_left():
    """Every docstring with a line ``{name}`` is that of an object which `shared_docs` decorates."""
    documented = (ast.ClassDef, ast.FunctionDef)
    left = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, documented)
        and re.search(r"^\s*\{\w+\}$", ast.get_docstring(node) or "", flags=re.MULTILINE)
        and "shared_docs" not in map(ast.unparse, node.decorator_list)
    ]
    assert left == []


def test_every_shared_description_is_used():
    placeholders = re.compile(r"^\s*\{(\w+)\}$", flags=re.MULTILINE)
    used = {name for path in TREES for name in placeholders.findall(path.read_text())}
    assert used == set(SHARED)


def test_descriptions_of_parameters_are_written_once():
    """What several estimators say in the same words belongs in base/docs.py."""
    described = Counter()
    for name in set(ESTIMATORS) - {"MVU"}:  # another name of MaximumVarianceUnfolding
        cls = getattr(manifoldry, name)
        tree = ast.parse(inspect.getsource(cls))
        source = inspect.cleandoc(ast.get_docstring(tree.body[0]))
        for entry in re.findall(r"^\w+(?:, \w+)* : .*\n(?: {4}.*\n?)+", source, flags=re.MULTILINE):
            if "{" not in entry.split("\n")[1]:
                described[" ".join(entry.split())] += 1
    assert [entry for entry, count in described.items() if count > 1] == []


def test_a_name_has_one_meaning():
    defined = defaultdict(set)
    for path, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                defined[node.name].add(str(path.relative_to(ROOT)))
    for name, place in ON_ANNDATA.items():
        defined[name].remove(place)
    assert {name: places for name, places in defined.items() if len(places) > 1} == {}


@pytest.mark.parametrize(
    "name", sorted(name for name in _EXPORTS if inspect.isclass(getattr(manifoldry, name)))
)
def test_classes_name_their_paper_and_their_relatives(name):
    """A published reference with its year, and names of the package and scikit-learn that exist."""
    text = inspect.cleandoc(getattr(manifoldry, name).__doc__)
    sections = dict(
        re.findall(r"\n([A-Z][\w ]+)\n-+\n(.*?)(?=\n\n[A-Z][\w ]+\n-+\n|\Z)", text, re.S)
    )
    assert re.search(r'"[^"]{10,}",(.|\n)*\s\(?(19|20)\d\d\b', sections["References"])
    relatives = re.findall(r"^([\w., ]+?) : ", sections["See Also"], flags=re.MULTILINE)
    assert relatives
    for path in (each for line in relatives for each in line.split(", ")):
        assert path != name
        assert pydoc.locate(path if "." in path else f"manifoldry.{path}")


def public_callables():
    """Exported classes and functions, and the public methods of the classes."""
    found = {}
    for name in _EXPORTS:
        item = getattr(manifoldry, name)
        found[name] = item
        if inspect.isclass(item):
            methods = inspect.getmembers(item, inspect.isfunction)
            found |= {f"{name}.{m}": f for m, f in methods if not m.startswith("_")}
    return found


def test_signatures_are_readable():
    """As `help` shows them, without the parameters of numpy's generic types."""
    shown = {name: str(inspect.signature(item)) for name, item in public_callables().items()}
    assert {name: text for name, text in shown.items() if "numpy.ndarray[" in text} == {}
    assert shown["Isomap.novelty"].endswith("-> numpy.ndarray")
    assert "-> numpy.ndarray\n" in pydoc.plain(pydoc.render_doc(manifoldry.Isomap.novelty))
