"""Pages of the site: every Python block runs as a doctest, or says why it cannot."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"(?P<before>[^\n]*)\n+ *(?P<fence>`{3,})python\n(?P<code>.*?)\n *(?P=fence)", re.S
)
TESTED_ELSEWHERE = {
    "docs/anndata.md": "tests/tl/test_documentation.py runs it where AnnData is installed",
    "docs/extending.md": "tests/test_extending.py writes its modules into files and uses them",
}
EXCUSE = re.compile(r"<!-- not a doctest: \w.* -->")
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if str(page.relative_to(ROOT)) not in TESTED_ELSEWHERE
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_are_doctests(page):
    untested = [
        match["code"]
        for match in BLOCK.finditer(page.read_text())
        if ">>> " not in match["code"] and not EXCUSE.fullmatch(match["before"].strip())
    ]
    assert untested == []
