"""The switch between versions of the site."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import versions


@pytest.mark.parametrize(
    ("releases", "names", "home"),
    [
        ([], ["dev"], "dev"),
        (["0.2.0", "0.10.0"], ["dev", "0.10.0 (stable)", "0.2.0"], "0.10.0"),
    ],
)
def test_switch(tmp_path, releases, names, home):
    versions.write_switch(tmp_path, releases, home, "https://example.org/site")
    entries = json.loads((tmp_path / "versions.json").read_text())
    assert [entry["name"] for entry in entries] == names
    assert [entry["version"] for entry in entries if entry["preferred"]] == [home]
    assert entries[0]["url"] == "https://example.org/site/dev/"
    assert f"url={home}/" in (tmp_path / "index.html").read_text()
