"""``manifoldry report``: the same page from the command line."""

import json
import shlex

import numpy as np
import pytest

from manifoldry.cli.main import main
from manifoldry.io import read_table

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
FAST = ["--method", "pca", "--refits", "0"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with a file that has a missing value."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(50, 3))
    lines = ["a,b,c,kind", *(",".join([*map(repr, row.tolist()), "xy"[i % 2]])
                             for i, row in enumerate(X))]  # fmt: skip
    lines[3] = ",1.5,2,x"
    (tmp_path / "some data.csv").write_text("\n".join(lines))
    return tmp_path


def test_the_command_writes_the_report_and_a_run_file(folder, capsys):
    assert main(["report", "some data.csv", *FAST, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"] == "report"
    assert found["notes"] == ["some data.csv: taken as labels, not as features: 'kind'"]
    assert found["data"]["missing"]["n_cells"] == 1
    assert found["verdict"]["name"] == "PCA"
    assert found["files"]["report"] == "some data-report.html"
    page = folder / "some data-report.html"
    first = page.read_bytes()
    page.unlink()
    assert main(["report", "--run", "some data-report.run.toml", "some data.csv"]) == 0
    assert "Use the PCA map" in capsys.readouterr().out
    assert len(page.read_bytes()) == pytest.approx(len(first), rel=0.01)


def test_the_command_on_the_page_makes_the_same_map(capsys):
    options = ["--scale", "--columns", "b,a", "--label", "kind", "-o", "r.html"]
    assert main(["report", "some data.csv", *FAST, *options, "--json"]) == 0
    repeat = json.loads(capsys.readouterr().out)["repeat"]
    program, *arguments = shlex.split(repeat["command"])
    assert program == "manifoldry"
    assert main([*arguments, "--no-picture", "--no-model", "-o", "map.csv"]) == 0
    names = {}
    exec(repeat["code"], names)
    np.testing.assert_allclose(read_table("map.csv").X, names["embedding"], rtol=1e-12)


def test_names_with_commas_on_the_page(folder, capsys):
    text = (folder / "some data.csv").read_text().replace("a,b,c", '"a,1",b,c', 1)
    (folder / "some data.csv").write_text(text)
    assert main(["report", "some data.csv", *FAST, "--columns", '"a,1",b', "--json"]) == 0
    repeat = json.loads(capsys.readouterr().out)["repeat"]
    arguments = shlex.split(repeat["command"])[1:]
    assert main([*arguments, "--no-picture", "--no-model", "-o", "map.csv"]) == 0


def test_wrong_arguments_are_refused_before_anything_is_computed(folder, capsys):
    assert main(["report", "some data.csv", "--method", "isomop"]) == 2
    assert "did you mean isomap?" in capsys.readouterr().err
    assert main(["report", "some data.csv", "-o", "report.pdf"]) == 2
    assert "choose .html, .htm" in capsys.readouterr().err
    assert [each.name for each in folder.iterdir()] == ["some data.csv"]
