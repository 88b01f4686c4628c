"""The bundle in the package is made of the sources in frontend; both name them by a hash."""

import hashlib
import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

FRONTEND = Path(__file__).parents[2] / "frontend"
STATIC = files("manifoldry.explorer") / "static"
BUNDLES = ("explorer.js", "style.css")


def sources():
    """As in frontend/build.mjs."""
    inside = (p for p in (FRONTEND / "src").rglob("*") if p.is_file())
    names = [path.relative_to(FRONTEND).as_posix() for path in inside]
    return sorted([*names, "package-lock.json", "build.mjs"])


def hash_of_sources():
    found = hashlib.sha256()
    for name in sources():
        found.update(f"{name}\0".encode() + (FRONTEND / name).read_bytes() + b"\0")
    return found.hexdigest()


@pytest.mark.parametrize("name", BUNDLES)
def test_bundle_is_of_these_sources(name):
    first = (STATIC / name).read_text("utf-8").splitlines()[0]
    made_of = re.search(r"sources ([0-9a-f]{64})", first)[1]
    assert made_of == hash_of_sources(), "make frontend, and commit what it writes"


def test_bundle_needs_nothing_from_elsewhere():
    script = (STATIC / "explorer.js").read_text("utf-8")
    style = (STATIC / "style.css").read_text("utf-8")
    known = {"http://www.w3.org/2000/svg"}  # a name of a namespace
    assert set(re.findall(r"https?://[\w./-]+", script + style)) <= known
    for unsafe in ("innerHTML", "eval(", "new Function"):
        assert unsafe not in script
    assert not re.search(r"^import[ {*]|\bimport\(", script, re.M)
    assert "@import" not in style


def test_lock_file_names_no_registry():
    lock = json.loads((FRONTEND / "package-lock.json").read_text("utf-8"))
    assert lock["packages"]
    assert not [name for name, each in lock["packages"].items() if "resolved" in each]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm, which builds the bundle, is missing")
def test_sources_give_the_bundle_again(tmp_path):
    installed = shutil.ignore_patterns("node_modules")
    shutil.copytree(FRONTEND, tmp_path / "frontend", ignore=installed)
    run = {"cwd": tmp_path / "frontend", "check": True, "capture_output": True}
    subprocess.run(["npm", "ci"], **run)
    subprocess.run(["npm", "run", "build"], **run)
    built = tmp_path / "src" / "manifoldry" / "explorer" / "static"
    for name in BUNDLES:
        assert (built / name).read_bytes() == (STATIC / name).read_bytes()
