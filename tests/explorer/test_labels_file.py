"""Labels that are written and read again."""

import os

import numpy as np
import pandas as pd
import pytest

from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.labels_file import LabelsFile
from manifoldry.io import Table
from manifoldry.plotting.point_labels import missing_entries

N = 6


def explored(ids=None, **own):
    X = np.random.default_rng(0).normal(size=(N, 2))
    data = ExploredData(Table(X, ids=None if ids is None else np.asarray(ids)), X)
    data.own_labels = {name: np.array(values, dtype=object) for name, values in own.items()}
    return data


def again(path, data):
    """The labels that the next exploration reads, and what it says."""
    notes = []
    fresh = ExploredData(data.table, data.prepared)
    return LabelsFile(path).read(fresh, notes), notes


def check_same(found, expected):
    """Texts are the same, and so is what is missing."""
    assert list(found) == list(expected)
    for name, values in expected.items():
        missing = missing_entries(values)
        np.testing.assert_array_equal(missing_entries(found[name]), missing)
        assert found[name][~missing].astype(str).tolist() == values[~missing].astype(str).tolist()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("ids", [None, list("abcdef")])
@pytest.mark.parametrize(
    "values",
    [
        ["a", None, "b", None, None, "a"],
        ["a", "b", "c", "d", "e", "f"],  # all different, as names of rows are
        ["1", None, "2", None, None, "10"],
        ["1", "2", "1", "2", "1", "2"],
        ["007", None, "7", "07", "7.0", "1e3"],
        ["NA", "nan", "None", None, "null", "-"],
        ["=1+1", None, "@x", "-2", "+3", "'quoted"],
        ['with "quotes"', "a,b", "a;b", "a\tb", "true", "False"],
        ["ä", "漢字", "😀", None, "2024-01-01", "12:30"],
        [None, None, None, None, None, "x" * 10_000],
    ],
)
def test_labels_come_back(tmp_path, suffix, ids, values):
    data = explored(ids, group=values, other=list("uvuvuv"))
    path = tmp_path / f"labels{suffix}"
    assert LabelsFile(path).write(data) == str(path)
    found, notes = again(path, data)
    check_same(found, data.own_labels)
    assert notes == [f"labels of an earlier exploration are read from {path}"]


@pytest.mark.parametrize("name", ["ID", "name", "index", "label", "class", "x 1", "=f", "7"])
def test_names_of_labels(tmp_path, name):
    """Whatever a reader usually takes for names or features."""
    data = explored(**{name: ["a", "b", "c", "d", "e", None], "other": list("uvuvuv")})
    LabelsFile(tmp_path / "labels.csv").write(data)
    check_same(again(tmp_path / "labels.csv", data)[0], data.own_labels)


def test_the_file_is_a_table_for_people(tmp_path):
    data = explored(list("abcdef"), group=["x", None, "y", None, None, "x"])
    LabelsFile(tmp_path / "labels.csv").write(data)
    frame = pd.read_csv(tmp_path / "labels.csv")
    assert frame["row"].tolist() == [1, 2, 3, 4, 5, 6]
    assert frame["id"].tolist() == list("abcdef")
    assert frame["group"].fillna("").tolist() == ["x", "", "y", "", "", "x"]


def test_the_first_exploration(tmp_path):
    assert again(tmp_path / "labels.csv", explored()) == ({}, [])
    assert LabelsFile.of(None, explored()) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("row,group\n1,a\n2,b\n", "has labels of 2 other rows"),
        ("row,group\n" + "".join(f"{i},a\n" for i in (1, 2, 3, 4, 6, 5)), "of 6 other rows"),
        ("group\na\n", "labels are not read"),
        ("", "labels are not read"),
        ("\x00\x01\x02", "labels are not read"),
        ("row\nx\n", "of 1 other rows"),
        ('row,group\n1,"a\n', "labels are not read"),
    ],
)
def test_other_files_are_not_read(tmp_path, text, said):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    found, notes = again(path, explored())
    assert found == {}
    assert len(notes) == 1
    assert said in notes[0]
    assert path.read_text() == text


def test_rows_with_other_names_are_other_rows(tmp_path):
    data = explored(list("abcdef"), group=list("uvuvuv"))
    LabelsFile(tmp_path / "labels.csv").write(data)
    found, notes = again(tmp_path / "labels.csv", explored(list("abcdeg")))
    assert found == {}
    assert "other rows" in notes[0]


def test_a_failure_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "labels.csv"
    LabelsFile(path).write(explored(group=list("uvuvuv")))
    before = path.read_bytes()

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        LabelsFile(path).write(explored(group=list("zzzzzz")))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["labels.csv"]
