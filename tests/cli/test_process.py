"""The command in a process of its own."""

import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
DATA = "\n".join(["a,b,c", *(f"{i},{i * i % 97},{i % 7}" for i in range(300))])


def command(*arguments, prefix=""):
    """Run the command; `prefix` is Python that is run before it."""
    script = f"import sys\n{prefix}\nfrom manifoldry.cli.main import main\nsys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip


def test_module_and_script_are_the_same_command(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "manifoldry", "methods", "tsen"], capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip
    assert run.returncode == 2
    assert run.stderr.startswith("manifoldry: error: there is no method 'tsen'; did you mean tsne?")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["manifoldry"].partition(":")
    assert callable(getattr(import_module(module), function))


def test_from_standard_input_to_a_map(tmp_path):
    arguments = ["embed", "-", "-m", "pca", "-o", "map.csv", "--json"]
    run = subprocess.run(
        [sys.executable, "-m", "manifoldry", *arguments], input=DATA, cwd=tmp_path,
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["n_samples"] == 300
    assert len((tmp_path / "map.csv").read_text().splitlines()) == 301
    written = {"map.csv", "map.model", "map.png", "map.run.toml"}
    assert {path.name for path in tmp_path.iterdir()} == written == set(result["files"].values())


def test_help_loads_nothing_heavy():
    end = "import atexit\natexit.register(lambda: print('loaded', *sys.modules))"
    run = command("embed", "--help", prefix=end)
    assert run.returncode == 0
    help_text, _, loaded = run.stdout.partition("loaded ")
    assert "--method" in help_text
    assert not {"numpy", "sklearn", "numba", "matplotlib", "pyarrow"} & set(loaded.split())


def test_a_full_disk_leaves_the_previous_map(tmp_path):
    (tmp_path / "data.csv").write_text(DATA)
    path = tmp_path / "map.csv"
    path.write_text("the previous map")
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    options = ["-m", "pca", "--no-assess", "--no-picture", "-o", path]
    run = command("embed", tmp_path / "data.csv", *options, prefix=limit)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("manifoldry: error: ")
    assert "Traceback" not in run.stderr
    assert path.read_text() == "the previous map"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "map.csv"]


def test_a_closed_pipe_is_no_error():
    run = subprocess.run(
        f"'{sys.executable}' -m manifoldry methods | true",
        env={**os.environ, "PYTHONUNBUFFERED": ""}, shell=True, capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip
    assert run.stderr == ""
