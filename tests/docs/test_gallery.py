"""Examples of the gallery: where they are, what they need, and what a build shows without it."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import gallery_runs  # noqa: E402  (an extension of the site, found through the line above)

SCRIPTS = gallery_runs.scripts(ROOT / "examples")


def test_every_folder_and_script_is_in_the_gallery():
    others = {"demo.py"}
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == others
    assert sorted(SCRIPTS) == sorted((ROOT / "examples").glob("*/*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_examples_have_a_title_and_link_on(script):
    title, underline, *text = ast.get_docstring(ast.parse(script.read_text())).splitlines()
    assert set(underline) == {"="}
    assert len(underline) == len(title) <= 60
    assert any(text)
    last_words = script.read_text().rstrip().rpartition("# %%")[2]
    assert ":doc:" in last_words or ":ref:" in last_words


def test_examples_without_their_data_have_a_stored_picture(monkeypatch, tmp_path):
    monkeypatch.setenv("MANIFOLDRY_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    without = [path for path in SCRIPTS if gallery_runs.reason_not_to_run(path) is not None]
    assert len(without) >= 4
    assert [path for path in without if not gallery_runs.picture(path).exists()] == []
    assert {gallery_runs.picture(path) for path in without} == set(gallery_runs.PICTURES.iterdir())
