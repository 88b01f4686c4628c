"""Write the pages of the API reference: one of the package itself, one for each package in it."""

from importlib import import_module
from inspect import getdoc, isclass
from pathlib import Path

from public_names import documented_names, packages, resolve

import manifoldry

# What `manifoldry` itself exports, in the order of the reference.
GROUPS = {
    "Spectral methods": [
        "PCA",
        "ClassicalMDS",
        "KernelPCA",
        "Isomap",
        "LaplacianEigenmaps",
        "DiffusionMaps",
        "LLE",
        "ModifiedLLE",
        "HessianLLE",
        "LTSA",
        "SpectralClustering",
    ],
    "Unfolding": ["MaximumVarianceUnfolding", "ConformalEigenmaps"],
    "Iterative methods": ["TSNE", "SNE", "SymmetricSNE", "ElasticEmbedding", "UKR"],
    "Around another estimator": ["NonRedundant", "ConformalInverse", "FromDensity"],
    "With scikit-learn's names and parameters": ["SpectralEmbedding", "LocallyLinearEmbedding"],
    "Density and transformations": ["ManifoldParzen", "MixtureOfFactorAnalyzers", "LieTransform"],
    "Judging data and maps": [
        "assess",
        "compare",
        "estimate_dimension",
        "find_short_circuits",
        "report",
    ],
    "Looking at maps": ["explore"],
    "Neighbor graphs": ["NeighborGraph"],
    "Computing on a GPU": ["using_device"],
    "Model files": ["save", "load", "read_info"],
}

INDEX = """\
API reference
=============

Every public name. What is not listed here may change without notice
(:doc:`/about/versioning`). Estimators also have what all estimators of scikit-learn have, such as
``get_params``, ``set_params``, ``set_output`` and ``get_feature_names_out``.

{groups}

Packages
--------

.. toctree::
   :maxdepth: 1

{packages}
"""


def write(folder: Path):
    """Write the pages that changed into a folder."""
    check_groups()
    check_examples()
    folder.mkdir(exist_ok=True)
    groups = "\n\n".join(
        f"{title}\n{'-' * len(title)}\n\n{summary(f'manifoldry.{name}' for name in names)}"
        for title, names in GROUPS.items()
    )
    lines = "\n".join(f"   {package}" for package, _ in packages())
    write_changed(folder / "index.rst", INDEX.format(groups=groups, packages=lines))
    for package, names in packages():
        write_changed(folder / f"{package}.rst", package_page(package, names))


def check_groups():
    """Require that the groups name every export once; an alias has no page of its own."""
    names = documented_names()
    exports = sorted(n for n in manifoldry._EXPORTS if names[f"manifoldry.{n}"].endswith(f".{n}"))
    grouped = sorted(name for names in GROUPS.values() for name in names)
    if grouped != exports:
        differing = sorted(set(grouped) ^ set(exports))
        raise ValueError(f"GROUPS in {__file__} and the exports of manifoldry differ: {differing}")


def package_page(package, names):
    """Return the page of one package: its docstring and its names."""
    title = f"manifoldry.{package}"
    text = getdoc(import_module(title))
    paths = [documented_names()[f"{title}.{name}"] for name in names]
    head = f"{title}\n{'=' * len(title)}\n\n.. py:module:: {title}\n\n{text}"
    table = f".. py:currentmodule:: None\n\n{summary(sorted(set(paths)))}"
    return f"{head}\n\n{table}\n"


def summary(paths):
    """Return a table of names that links to a page for each."""
    listed = "\n".join(f"   ~{path}" for path in paths)
    return f".. autosummary::\n   :toctree: generated\n\n{listed}"


def write_changed(path, text):
    """Write a file unless it has this text, so that Sphinx does not read it again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def check_examples():
    """Require that every public class and function shows its use; exceptions need not."""
    objects = {path: resolve(path) for path in set(documented_names().values())}
    missing = sorted(
        path
        for path, found in objects.items()
        if callable(found)
        and not (isclass(found) and issubclass(found, Exception))
        and ">>> " not in getdoc(found)
    )
    if missing:
        raise ValueError(f"public names without an example in their docstring: {missing}")
