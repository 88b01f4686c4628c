"""Pages of the site: every Python block runs as a doctest, or says why it cannot."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?P<before>[^\n]*)\n+ *(?P<fence>`{3,})python\n(?P<code>.*?)\n *(?P=fence)", re.S
)
EXCUSE = re.compile(r"<!-- not a doctest: \w.* -->")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_are_doctests(page):
    untested = [
        match["code"]
        for match in BLOCK.finditer(page.read_text())
        if ">>> " not in match["code"] and not EXCUSE.fullmatch(match["before"].strip())
    ]
    assert untested == []
