"""Docstrings of public functions and methods describe every parameter."""

import inspect
import re
from importlib import import_module

import pytest

import manifoldry

PACKAGES = ["manifoldry", *(f"manifoldry.{name}" for name in manifoldry._SUBMODULES)]


def functions(package):
    """Public functions and methods of a package with docstrings of their own, by their names."""
    module = import_module(package)
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        members = {name: value} if inspect.isfunction(value) else {}
        if inspect.isclass(value):
            members = {f"{name}.{each}": part for each, part in vars(value).items()}
        for path, member in members.items():
            # The function of a class method, of a static method, or of one under a condition.
            found = getattr(member, "__func__", getattr(member, "fn", member))
            if inspect.isfunction(found) and found.__doc__ and "._" not in path:
                yield path, found


def documented(function):
    """Names at the beginning of the entries of the section "Parameters"."""
    text = inspect.getdoc(function)
    section = re.search(r"^Parameters\n-+\n(.*?)(\n\n\S[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.M)
    entries = re.findall(r"^(\S.*?)(?: : |$)", section[1], re.M) if section else []
    return {name.strip(" *") for entry in entries for name in entry.split(",")}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_parameter_is_described(package):
    missing = {
        name: undescribed
        for name, function in functions(package)
        if (undescribed := {*inspect.signature(function).parameters} - {"self", "cls"}
            - documented(function))
    }  # fmt: skip
    assert not missing
