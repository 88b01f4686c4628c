"""Faults fit the source: each has its place, and leaves code that can be run."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from .faults import FAULTS

SOURCE = Path(__file__).resolve().parents[2] / "src" / "manifoldry"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.what}")
def test_a_fault_has_one_place(fault):
    text = (SOURCE / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    planted = text.replace(fault.old, fault.new)
    assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(text))  # not in a comment


def test_faults_are_told_apart():
    assert max(Counter((fault.file, fault.what) for fault in FAULTS).values()) == 1
