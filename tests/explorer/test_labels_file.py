"""Labels that are written and read again."""

import os
import re

import numpy as np
import pandas as pd
import pytest

from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.labels_file import LabelsFile
from manifoldry.explorer.session import Session
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
        ("group\na\n", "is no file of labels, which has a column 'row'"),
        ("", "is no file of labels, which has a column 'row'"),
        ("\x00\x01\x02", "is no file of labels, which has a column 'row'"),
        ("row\nx\n", "of 1 other rows"),
        ('row,group\n1,"a\n', "is no file of labels, which has a column 'row'"),
    ],
)
def test_other_files_are_neither_read_nor_replaced(tmp_path, text, said):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    data = explored()
    with pytest.raises(FileExistsError, match=re.escape(said)) as caught:
        again(path, data)
    assert str(caught.value).startswith(str(path))
    assert "--output" in str(caught.value)
    with pytest.raises(FileExistsError, match=re.escape(said)):
        Session(data, "", [], labels_file=path)
    assert path.read_text() == text


def test_rows_with_other_names_are_other_rows(tmp_path):
    data = explored(list("abcdef"), group=list("uvuvuv"))
    LabelsFile(tmp_path / "labels.csv").write(data)
    before = (tmp_path / "labels.csv").read_bytes()
    with pytest.raises(FileExistsError, match="has labels of 6 other rows"):
        again(tmp_path / "labels.csv", explored(list("abcdeg")))
    assert (tmp_path / "labels.csv").read_bytes() == before


@pytest.mark.parametrize("suffix", [".tsv", ".parquet"])
def test_other_files_of_other_formats(tmp_path, suffix):
    path = tmp_path / f"labels{suffix}"
    path.write_bytes(b"PAR1 but no table")
    with pytest.raises(FileExistsError, match="is no file of labels"):
        again(path, explored())
    assert path.read_bytes() == b"PAR1 but no table"
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(FileExistsError, match="is no file of labels"):
        again(tmp_path / f"folder{suffix}", explored())
    frame = pd.DataFrame({"row": range(1, N), "group": list("abcde")})
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t", index=False)
    with pytest.raises(FileExistsError, match=f"has labels of {N - 1} other rows"):
        again(path, explored())


def test_a_refusal_leaves_no_files(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    (tmp_path / "labels.csv").write_text("mine")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with pytest.raises(FileExistsError):
        Session(explored(), "", [], labels_file=tmp_path / "labels.csv")
    assert list((tmp_path / "temporary").iterdir()) == []


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
