"""What the command advises: in words of the command line, and fitting what was asked for."""

import tomllib

import numpy as np
import pytest
from sklearn.datasets import load_wine

import manifoldry
from manifoldry.cli.main import main
from manifoldry.io import read_table

pytest.importorskip("typer")
WINE = load_wine()
PYTHON = ("per_point", "NeighborGraph", "return_distance", "novelty(X)", "sklearn", "NonRedundant")


def write_rows(path, X, names=WINE.feature_names):
    np.savetxt(path, X, delimiter=",", header=",".join(names), comments="")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows("wine.csv", WINE.data)
    return tmp_path


@pytest.fixture
def said(capsys):
    def run(*arguments, code=0):
        """Everything that the command prints."""
        assert main([str(each) for each in arguments]) == code, capsys.readouterr()
        return "".join(capsys.readouterr())

    return run


def test_nobody_is_told_to_write_python(said):
    write_rows("poor.csv", WINE.data[:, :2], ["u", "v"])
    for options in ((), ("--json",)):
        text = said("assess", "wine.csv", "poor.csv", *options)
        assert "manifoldry assess DATA MAP -o points.csv" in text
        assert "the relative positions of clusters are not preserved." in text
        assert not [words for words in PYTHON if words in text]
    text = said("dimension", "wine.csv", "--no-scale")
    assert "standardize them first, with --scale." in " ".join(text.split())
    assert not [words for words in PYTHON if words in text]


def test_warnings_about_rows_and_positions_are_for_the_command(said):
    said("embed", "wine.csv", "-m", "pca", "--no-picture", "--no-assess")
    rows = WINE.data[:20].copy()
    rows[0] *= 10
    write_rows("new.csv", rows)
    text = said("transform", "wine-pca.model", "new.csv")
    assert "warning: 1 of 20 rows is unlike the data" in text
    assert "; the column novelty has the distance of each row" in text
    assert not [words for words in PYTHON if words in text]
    Y = read_table("wine-pca.csv").X[:16].copy()
    Y[0] *= 100
    write_rows("positions.csv", Y, ["pca0", "pca1"])
    text = said("inverse", "wine-pca.model", "positions.csv")
    assert "warning: 1 of 16 positions is off the map" in text
    assert "extrapolated; the column distance_from_map has the distance of each position\n" in text
    assert not [words for words in PYTHON if words in text]


def test_one_method_only(said):
    text = said("embed", "wine.csv", "-m", "pca", "-m", "tsne", code=2)
    assert "2 methods were given (pca, tsne)" in text
    assert "manifoldry compare" in text


def test_a_run_file_may_have_a_text_where_several_are_possible(said, folder):
    (folder / "mine.toml").write_text('data = "wine.csv"\nmethod = "pca"\n')
    options = "--no-picture", "--no-model", "--no-assess"
    said("embed", "--run", "mine.toml", *options, "-o", "map.csv")
    assert tomllib.loads((folder / "map.run.toml").read_text())["method"] == "pca"


def test_methods_of_other_packages_are_named_as_such(said):
    text = said("embed", "wine.csv", "-m", "UMAP", code=2)
    assert "'UMAP' is no method of manifoldry; tsne has the same purpose" in text
    assert "isomap" not in text


@pytest.mark.parametrize("command", ["embed", "compare", "report"])
def test_data_of_one_column_get_one_coordinate(said, command):
    write_rows("one.csv", WINE.data[:30, :1], ["alcohol"])
    more = {"embed": ["--no-model"], "compare": [], "report": ["--refits", 0]}[command]
    text = said(command, "one.csv", *(["-m", "pca"] if more != ["--no-model"] else []), *more)
    assert "the map has 1 coordinate, because the data have one feature" in text
    if command == "embed":
        assert "method pca: data of one feature need no other method" in text
        assert read_table("one-pca.csv").X.shape == (30, 1)


def test_more_coordinates_than_features_are_noted(said):
    write_rows("three.csv", WINE.data[:60, :3], WINE.feature_names[:3])
    options = "-m", "laplacian-eigenmaps", "--no-picture", "--no-model"
    text = said("embed", "three.csv", "-d", 5, *options)
    assert "the map has 5 coordinates, although the data have only 3 features" in text
    assert "pass the data first" not in text
    assert "trustworthiness: " in text
    assert "although" not in said("embed", "three.csv", "-d", 3, *options)


def test_help_of_options_fits_the_command(said):
    text = " ".join(said("demo", "--help").replace("│", " ").split())
    assert "chosen from the data" not in text
    assert "[default: tsne]" in text
    assert "picture" not in said("dimension", "--help")


def test_reasons_for_a_method_claim_nothing_that_the_assessment_may_deny():
    from manifoldry.methods.choice import choose_method

    assert choose_method(200, 2, 1, None).reason == "data of 2 features need no other method"
    assert choose_method(12, 13, 1, None).reason == "12 rows are too few for another method"
    reason = choose_method(200, 13, 3, 5).reason
    assert reason.startswith("the data are in 3 separate parts")
    assert "distances" not in reason


def test_pca_is_not_compared_with_itself(said):
    text = said("embed", "wine.csv", "-m", "pca", "--no-picture", "--no-model")
    assert "PCA" not in text
    X = (WINE.data - WINE.data.mean(axis=0)) / WINE.data.std(axis=0)
    assert "PCA" in str(manifoldry.assess(X, X[:, :2]))
