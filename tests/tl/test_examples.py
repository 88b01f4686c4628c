"""The examples in the docstrings of `manifoldry.tl`, which need AnnData."""

import doctest
from importlib import import_module

import pytest

pytest.importorskip("anndata")


@pytest.mark.parametrize("module", ["assessment", "atlas", "coordinates", "scanpy_graph"])
def test_the_examples_run(module):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testmod(import_module(f"manifoldry.tl.{module}"), optionflags=flags)
    assert found.attempted
    assert not found.failed
