"""Advice for Python in texts that people without it read."""

from textwrap import fill

import pytest

from manifoldry.util import hints
from manifoldry.util.hints import Hint, for_command, for_page

ALL = {name: hint for name, hint in vars(hints).items() if isinstance(hint, Hint)}


@pytest.mark.parametrize("hint", ALL.values(), ids=ALL)
def test_every_hint_is_replaced(hint):
    text = f"Before{hint.python} after."
    assert for_command(text) == f"Before{hint.command} after."
    assert for_page(text) == f"Before{hint.page} after."


@pytest.mark.parametrize("width", range(20, 90, 7))
def test_lines_may_be_wrapped(width):
    text = fill(f"Intervals cover sampling error.{hints.LOCAL_DIMENSION.python}", width)
    assert " ".join(for_command(text).split()) == "Intervals cover sampling error."


def test_other_text_stays():
    text = "Few neighbors in the data are separated.\n\n  x:  1"
    assert for_command(text) == for_page(text) == text
