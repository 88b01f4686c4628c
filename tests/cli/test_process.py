"""The command in a process of its own."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from manifoldry.cli.main import main

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


def broken_files(folder):
    """Files of every format that end too early, and other damage, with what is said about them."""
    import pyarrow
    from pyarrow import feather, parquet

    X = np.random.default_rng(0).normal(size=(300, 3))
    columns = pyarrow.table({f"c{j}": X[:, j] for j in range(3)})
    whole = {suffix: io.BytesIO() for suffix in (".npy", ".npz", "2.npz", ".parquet", ".feather")}
    np.save(whole[".npy"], X)
    np.savez(whole[".npz"], X=X)
    sparse.save_npz(whole["2.npz"], sparse.csr_matrix(X))
    parquet.write_table(columns, whole[".parquet"])
    feather.write_feather(columns, whole[".feather"])
    whole[".csv.gz"] = io.BytesIO(gzip.compress(DATA.encode()))
    files = {}
    for suffix, file in whole.items():
        content = file.getvalue()
        for length in (0, 20, len(content) * 2 // 3):
            files[f"cut{length}{suffix}"] = content[:length], ""
    lines = DATA.splitlines()
    files |= {
        "ragged.csv": ("\n".join([*lines[:40], "1,2"]).encode(), "line 41 has 2 fields"),
        "utf16.csv": (DATA.encode("utf-16")[:-1], "damaged utf-16 text"),
        "binary.csv": (b"\x00\x01" * 500, "neither text nor"),
        "text.csv": (b"a,b\n" + b"\n".join(b"x y %d,z %d" % (i, i) for i in range(50)), ""),
        "one-line.csv": (b"x" * 2 * 10**7, "a single line of 20000000 characters"),
        "one-header.csv": (b"x," * 10**6, "a single line of 2000000 characters"),
        "huge.npy": (
            b"\x93NUMPY\x01\x00v\x00"
            + b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**13, 50)}".ljust(117) + b"\n",
            "no NumPy file",
        ),
    }  # fmt: skip
    for name, (content, _) in files.items():
        (folder / name).write_bytes(content)
    return {name: message for name, (_, message) in files.items()}


EACH = """
import contextlib, io, json, os, sys
from manifoldry.cli.main import main
for arguments in json.loads(sys.argv[1]):
    error, output = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(output):
        code = main(arguments)
    print(json.dumps([code, error.getvalue().splitlines(), output.getvalue()]))
"""


def run_each(commands, cwd, prefix=""):
    """Run several commands in one process: exit code, lines of errors, and output of each."""
    run = subprocess.run(
        [sys.executable, "-c", prefix + EACH, json.dumps(commands)], cwd=cwd, capture_output=True,
        text=True, timeout=100,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_broken_and_unusual_files(tmp_path):
    messages = broken_files(tmp_path)
    (tmp_path / "data.csv").write_text(DATA)
    (tmp_path / "map.csv").write_text("the previous map")
    names = ",".join(f"c{j}" for j in range(10_000))
    rows = [",".join(str(i * j % 7) for j in range(10_000)) for i in range(4)]
    (tmp_path / "wide.csv").write_text("\n".join([names, *rows]))
    (tmp_path / "latin.csv").write_bytes("größe".encode("cp1252") + DATA[1:].encode())
    options = ["-m", "pca", "--no-scale", "--no-assess", "--no-picture", "--no-model"]
    broken = [["embed", name, *options, "-o", "map.csv"] for name in messages]
    broken += [["embed", "data.csv", *options, "-o", "data.csv/map.csv"]]  # no folder
    unusual = [["embed", name, *options] for name in ("wide.csv", "latin.csv")]
    *results, wide, latin = run_each([*broken, *unusual], tmp_path)
    for (_, name, *_), (code, errors, output) in zip(broken, results, strict=True):
        assert code == (2 if name == "data.csv" else 1), (name, errors)
        assert output == ""
        assert errors[-1].startswith("manifoldry: error: "), name
        assert messages.get(name, "there is no folder data.csv") in errors[-1]
        assert len(errors[-1]) < 500
        assert not any(line.startswith("Traceback") for line in errors)
    assert (tmp_path / "map.csv").read_text() == "the previous map"
    assert wide[0] == latin[0] == 0
    assert latin[1] == ["latin.csv: latin.csv is not UTF-8; read as Windows-1252"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions as POSIX has them")
def test_files_without_permission(tmp_path):
    """A superuser may read everything, so the process becomes another user once it has started."""
    (tmp_path / "data.csv").write_text(DATA)
    (tmp_path / "data.csv").chmod(0)
    (tmp_path / "open.csv").write_text(DATA)
    tmp_path.chmod(0o755)
    loaded = "import os\nfrom manifoldry.cli import app, embedding\nimport pyarrow.csv\n"
    commands = [["embed", name, "-m", "pca"] for name in ("data.csv", "open.csv")]
    unread, unwritten = run_each(
        commands, tmp_path, f"{loaded}if os.geteuid() == 0: os.setuid(65534)\n"
    )
    assert unread[0] == 2
    assert "path 'data.csv' is not readable" in unread[1][-1]
    if os.geteuid() == 0:  # otherwise the folder is that of the process
        assert unwritten[1] == [
            f"manifoldry: error: the folder {tmp_path} is not writable; name another"
        ]


def test_a_killed_process_leaves_the_previous_map(tmp_path):
    (tmp_path / "data.csv").write_text(DATA)
    path = tmp_path / "map.csv"
    path.write_text("the previous map")
    arguments = ["embed", str(tmp_path / "data.csv"), "-m", "pca", "--no-assess", "--no-picture"]
    kill = "import os, signal\nos.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)"
    run = command(*arguments, "-o", path, prefix=kill)
    assert run.returncode == -signal.SIGKILL
    assert path.read_text() == "the previous map"
    assert main([*arguments, "-o", str(path)]) == 0  # what was left is in nobody's way
    assert path.read_text().startswith('"pca0","pca1"')


def test_ctrl_c_keeps_the_map_so_far(tmp_path):
    (tmp_path / "data.csv").write_text(DATA)
    interrupt = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may ignore it in the background
from manifoldry.cli import fitting
from manifoldry.optimize import Callback
def stop(iterate):
    if iterate.step.iteration == 20:
        os.kill(os.getpid(), signal.SIGINT)
fitting.Callback = lambda **options: Callback(stop, **options)
"""
    options = ["-m", "tsne", "--no-picture", "-o", tmp_path / "map.csv"]
    run = command("embed", tmp_path / "data.csv", *options, prefix=interrupt)
    assert run.returncode == 130
    assert "interrupted: the map so far is in" in run.stderr
    assert "Traceback" not in run.stderr
    assert len((tmp_path / "map-interrupted.csv").read_text().splitlines()) == 301


def test_a_closed_pipe_is_no_error():
    run = subprocess.run(
        f"'{sys.executable}' -m manifoldry methods | true",
        env={**os.environ, "PYTHONUNBUFFERED": ""}, shell=True, capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip
    assert run.stderr == ""
